"""Slots: codecs, products slot by slot, and weights that sum over slots."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from cloister.crypto import Stream
from cloister.errors import ConfigError
from cloister.lattice.encryption import decrypt, encrypt_public, encrypt_seeded
from cloister.lattice.parameters import Parameters
from cloister.lattice.ring import Ring, find_primes
from cloister.lattice.sampling import expand_masks
from cloister.lattice.slots import (
    SLOT_MODULUS,
    RlweCiphertext,
    SlotCodec,
    encode_slots,
    encode_weights,
    flood_rlwe,
    multiply_plain,
    rerandomise_rlwe,
    slot_error_bound,
)
from tests.lattice import reference
from tests.lattice.answers import SEED, make_keys, quotient_is_small

PARAMETERS = Parameters.make(4096, 4, SLOT_MODULUS)
CODEC = SlotCodec(4096)
KEYS, PUBLIC = make_keys(PARAMETERS, count=2)


def centre(x):
    return (x + SLOT_MODULUS // 2) % SLOT_MODULUS - SLOT_MODULUS // 2


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 2**32), st.sampled_from([4, 32]))
def test_slots_multiply_place_by_place(seed, degree):
    codec = SlotCodec(degree)
    x, y = np.random.default_rng(seed).integers(-(2**40), 2**40, (2, 3, degree))
    product = [
        reference.multiply(a.tolist(), b.tolist(), SLOT_MODULUS)
        for a, b in zip(codec.encode(x), codec.encode(y), strict=True)
    ]
    assert np.array_equal(codec.decode(np.array(product)), centre(x % SLOT_MODULUS * (y % SLOT_MODULUS)))
    assert np.array_equal(codec.decode(codec.encode(x)), centre(x))
    assert abs(codec.encode(x)).max() <= SLOT_MODULUS // 2


@pytest.mark.parametrize("public", [False, True])
def test_labels_from_encrypted_indicators(public):
    """Bob's cell is encrypted one-hot; Alice knows each record's label for each cell. Bob reads labels only."""
    rng = np.random.default_rng(2)
    cells, degree = 8, 4096
    cell_of, labels = rng.integers(0, cells, degree), rng.integers(0, 100, (cells, degree))
    indicators = np.stack([CODEC.encode((cell_of == c).astype(np.int64)) for c in range(cells)])
    messages = np.stack([indicators, np.zeros_like(indicators)], axis=1)
    stream = Stream.from_seed(3, "labels")
    if public:
        masks, bodies = encrypt_public(PUBLIC, messages, stream)
    else:
        bodies = encrypt_seeded(KEYS, messages, seed=SEED, block=0, stream=stream)
        masks = expand_masks(PARAMETERS, SEED, 0, cells)
    ring = PARAMETERS.ring
    answer = rerandomise_rlwe(multiply_plain(ring, masks, bodies, CODEC.encode(labels)), PUBLIC, stream)
    plain = decrypt(KEYS, answer.mask[None], answer.bodies[None])[0]
    expected = labels[cell_of, np.arange(degree)]
    assert np.array_equal(CODEC.decode(plain[0]), expected)
    assert not plain[1].any()
    noisy = ring.subtract(answer.bodies, ring.inverse(ring.multiply(answer.mask, KEYS.ntt)))
    errors = ring.to_integers(np.moveaxis(noisy, -2, -1)) - PARAMETERS.delta * plain.astype(object)
    bound = slot_error_bound(PARAMETERS, cells, public_key=public)
    assert max(abs(errors).ravel()) < bound
    flood_bits = 40 + int(bound).bit_length()
    assert 2**flood_bits + bound < PARAMETERS.delta / 2
    flooded = flood_rlwe(ring, answer, flood_bits, stream)
    assert np.array_equal(CODEC.decode(decrypt(KEYS, flooded.mask[None], flooded.bodies[None])[0, 0]), expected)


def test_flood_is_uniform_over_its_range_in_every_coefficient():
    ring = Ring(2048, find_primes(2048, 3))
    zero = RlweCiphertext(mask=np.zeros((3, 2048), dtype=np.uint32), bodies=np.zeros((2, 3, 2048), dtype=np.uint32))
    for bits in (0, 31, 40, 70):
        flood = ring.to_integers(
            np.moveaxis(flood_rlwe(ring, zero, bits, Stream.from_seed(1, "f")).bodies, -2, -1)
        ).ravel()
        assert -(2**bits) <= min(flood)
        assert max(flood) < 2**bits
        bins = min(16, 2 ** (bits + 1))
        counts = np.bincount([int(x + 2**bits) * bins >> (bits + 1) for x in flood], minlength=bins)
        assert stats.chisquare(counts).pvalue > 1e-6


def test_rerandomisation_makes_the_mask_fresh_and_keeps_the_message():
    messages = np.random.default_rng(1).integers(-100, 100, (1, 2, 4096))
    masks, bodies = encrypt_public(PUBLIC, messages, Stream.from_seed(1, "x"))
    before = RlweCiphertext(mask=masks[0], bodies=bodies[0])
    one, two = (rerandomise_rlwe(before, PUBLIC, Stream.from_seed(i, "r")) for i in (1, 2))
    assert np.mean(one.mask == two.mask) < 0.01
    assert np.mean(one.bodies == two.bodies) < 0.01
    assert np.array_equal(decrypt(KEYS, one.mask[None], one.bodies[None]), messages)
    added = PARAMETERS.ring.subtract(one.mask, before.mask)
    assert not quotient_is_small(PARAMETERS, added, PUBLIC.mask)
    with pytest.raises(ConfigError, match="shape of the public keys"):
        rerandomise_rlwe(RlweCiphertext(mask=masks[0], bodies=bodies[0, :1]), PUBLIC, Stream.from_seed(1, "x"))


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 2**32), st.sampled_from([(2, 5), (8, 17), (16, 97), (64, 257)]))
def test_encoded_weights_sum_over_slots(seed, ring):
    degree, t = ring
    rng = np.random.default_rng(seed)
    weights, slots = rng.integers(-50, 50, (2, degree))
    coefficients = encode_slots(degree, t, slots)
    encoded = encode_weights(degree, t, weights)
    assert encoded.dtype == np.int32
    assert max(np.abs(encoded).max(), np.abs(coefficients).max()) <= t // 2
    assert (int(encoded.astype(np.int64) @ coefficients) - int(weights @ slots)) % t == 0
