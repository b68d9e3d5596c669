"""Collective decryption: all holders together, each mask once; shares are smudged and carry noise."""

import hashlib
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from cloister.crypto import Stream
from cloister.errors import ConfigError, LocalProtocolError, RemoteProtocolError
from cloister.lattice.collective import combine_public_shares
from cloister.lattice.decryption import (
    DIGEST_BYTES,
    DecryptionGuard,
    choose_smudge_bits,
    combine_decryptions,
    digest_mask,
    share_decryption,
)
from cloister.lattice.encryption import encrypt_public
from cloister.lattice.lwe import LweBatch, rerandomise
from cloister.lattice.parameters import Parameters
from cloister.lattice.weighted_sums import mirror_weights
from tests.lattice.test_collective import make_holders

SEED = bytes(range(32))
PARAMETERS = Parameters.make(2048, 2, 1 << 12)
SMUDGE_BITS = 20


def make_answers(public, integers, seed=1):
    """Encrypt (A, S) integers in coefficient 0 and keep that coefficient."""
    parameters, stream = public.parameters, Stream.from_seed(seed, "answers")
    messages = np.zeros((len(integers), public.count, parameters.degree), dtype=np.int64)
    messages[:, :, 0] = integers
    masks, bodies = encrypt_public(public, messages, stream)
    answers, secrets = messages.shape[:2]
    batch = LweBatch(
        parameters=parameters,
        masks=parameters.ring.inverse(masks),
        bodies=np.ascontiguousarray(bodies[..., 0].reshape(-1, len(parameters.primes))),
        mask_of=np.repeat(np.arange(answers), secrets),
        secret_of=np.tile(np.arange(secrets), answers),
    )
    return rerandomise(batch, public, stream)


def share(key, batch, number=0, **options):
    stream = Stream.from_seed(number, "share")
    guard = options.pop("guard", None) or DecryptionGuard()
    return share_decryption(key, batch, smudge_bits=SMUDGE_BITS, stream=stream, guard=guard, **options)


def exact_phase(key, batch):
    """<mask, s> from the ternary coefficients, in Python's integers."""
    rows = mirror_weights(key.ternary.astype(np.int64))
    q, ring = batch.parameters.modulus, batch.parameters.ring
    masks = ring.to_integers(np.moveaxis(batch.masks, 1, -1))
    pairs = zip(batch.mask_of, batch.secret_of, strict=True)
    return [int((masks[a] * rows[s].astype(object)).sum()) % q for a, s in pairs]


@pytest.mark.parametrize("count", [1, 2, 3, 8])
def test_all_holders_together_decrypt(count):
    keys, public = make_holders(count)
    integers = np.array([[2047, -2000], [0, 1], [-7, 512]])
    batch = make_answers(public, integers)
    shares = [share(key, batch, number) for number, key in enumerate(keys)]
    assert combine_decryptions(batch, shares) == integers.ravel().tolist()
    if count > 1:
        assert combine_decryptions(batch, shares[1:]) != integers.ravel().tolist()


@settings(deadline=None, max_examples=20)
@given(
    st.lists(st.integers(-300, 300), min_size=6, max_size=6), st.lists(st.integers(-300, 300), min_size=4, max_size=4)
)
def test_each_holders_noise_is_added_to_the_plaintext(noise, plain):
    keys, public = make_holders(3, secrets=1)
    batch = make_answers(public, np.array(plain[:2])[:, None])
    noises = [noise[2 * number : 2 * number + 2] for number in range(3)]
    shares = [share(key, batch, number, noise=lambda own=noises[number]: own) for number, key in enumerate(keys)]
    assert combine_decryptions(batch, shares) == [plain[i] + sum(n[i] for n in noises) for i in range(2)]


def test_a_share_is_the_exact_phase_plus_a_uniform_smudge():
    """The smudge is drawn anew for every body, fills its whole range, and is all that differs from the phase."""
    keys, public = make_holders(2, secrets=1)
    batch = make_answers(public, np.zeros((150, 1)))
    sent = batch.parameters.ring.to_integers(share(keys[0], batch))
    q = batch.parameters.modulus
    smudges = [
        (int(x) - phase + q // 2) % q - q // 2 for x, phase in zip(sent, exact_phase(keys[0], batch), strict=True)
    ]
    places = (np.array(smudges) + 2**SMUDGE_BITS) / 2 ** (SMUDGE_BITS + 1)
    assert 0 <= places.min() < 0.1
    assert 0.9 < places.max() < 1
    assert stats.kstest(places, "uniform").pvalue > 1e-6


def test_a_second_decryption_is_refused_even_with_other_bodies():
    keys, public = make_holders(2)
    batch = make_answers(public, np.array([[1, 2], [3, 4]]))
    guard = DecryptionGuard()
    share(keys[0], batch, guard=guard)
    other = LweBatch(
        parameters=PARAMETERS,
        masks=batch.masks[:1],
        bodies=batch.bodies[:1] ^ np.uint32(1),
        mask_of=np.array([0]),
        secret_of=np.array([1]),
    )
    for again in (batch, other):
        with pytest.raises(RemoteProtocolError, match="decrypted once"):
            share(keys[0], again, guard=guard)


def test_two_bodies_for_one_mask_and_secret_are_refused_and_not_remembered():
    keys, public = make_holders(1)
    batch = make_answers(public, np.array([[1, 2]]))
    doubled = LweBatch(
        parameters=PARAMETERS,
        masks=batch.masks,
        bodies=batch.bodies,
        mask_of=np.zeros(2, int),
        secret_of=np.zeros(2, int),
    )
    guard = DecryptionGuard()
    with pytest.raises(RemoteProtocolError, match="belong to two"):
        share(keys[0], doubled, guard=guard)
    unknown = LweBatch(
        parameters=PARAMETERS,
        masks=batch.masks,
        bodies=batch.bodies,
        mask_of=np.zeros(2, int),
        secret_of=np.array([0, 2]),
    )
    with pytest.raises(RemoteProtocolError, match="one of the 2 secrets"):
        share(keys[0], unknown, guard=guard)
    assert guard.masks_spent == 0
    share(keys[0], batch, guard=guard)


def test_ciphertexts_of_another_ring_are_refused():
    keys, _ = make_holders(1)
    parameters = Parameters.make(4096, 2, 1 << 12)
    _, public = make_holders(1, parameters=parameters)
    with pytest.raises(RemoteProtocolError, match="first primes of the key"):
        share(keys[0], make_answers(public, np.array([[1, 2]])))


def test_noise_must_be_one_integer_a_body():
    keys, public = make_holders(1)
    with pytest.raises(LocalProtocolError, match="one integer for each of 2"):
        share(keys[0], make_answers(public, np.array([[1, 2]])), noise=lambda: [1])


def test_no_noise_is_drawn_for_a_request_that_is_refused():
    keys, public = make_holders(1)
    guard, drawn = DecryptionGuard(), []
    batch = make_answers(public, np.array([[1, 2]]))
    for _ in range(2):
        with suppress(RemoteProtocolError):
            share(keys[0], batch, noise=lambda: drawn.append(1) or [0, 0], guard=guard)
    assert drawn == [1]


@settings(deadline=None, max_examples=60)
@given(
    st.sampled_from([np.uint32, np.int64, np.float64]),
    st.sampled_from([(2, 2), (2, 1), (1, 2), (4,), (2, 2, 1)]),
    st.integers(0, 2**32 - 1),
)
def test_shares_off_the_wire_are_accepted_or_refused_by_name(dtype, shape, value):
    keys, public = make_holders(1)
    batch = make_answers(public, np.array([[1, 2]]))
    wire = np.full(shape, value).astype(dtype)
    valid = dtype is np.uint32 and shape == (2, 2) and value < min(PARAMETERS.primes)
    try:
        combine_decryptions(batch, [share(keys[0], batch), wire])
        assert valid
    except RemoteProtocolError as error:
        assert not valid
        assert "holder 1" in str(error)
        assert value < 10 or str(value) not in str(error)
    bad = np.full((2, 2, 2048), value).astype(np.uint32)
    if value >= max(PARAMETERS.primes):
        with pytest.raises(RemoteProtocolError, match="holder 1"):
            combine_public_shares(PARAMETERS, SEED, [public.bodies, bad])


def test_smudges_hide_the_error_and_fit_the_room():
    assert choose_smudge_bits(error_bound=2.0**20, room=2.0**62, smudgers=4) == 60
    with pytest.raises(ConfigError, match=r"4 smudges of 2\^60 .* 1\.0 bits are lacking"):
        choose_smudge_bits(error_bound=2.0**20, room=2.0**61, smudgers=4)


def masks(*seeds):
    return np.stack([np.random.default_rng(seed).integers(0, 2**27, (2, 16)).astype(np.uint32) for seed in seeds])


def test_a_second_request_is_refused():
    guard = DecryptionGuard()
    guard.admit(masks(1, 2))
    guard.admit(masks(3))
    for repeated in (masks(1), masks(2), masks(3), masks(4, 2)):
        with pytest.raises(RemoteProtocolError, match="decrypted once"):
            guard.admit(repeated)
    assert guard.masks_spent == 3


def test_a_refused_request_is_not_remembered():
    guard = DecryptionGuard()
    guard.admit(masks(1))
    with pytest.raises(RemoteProtocolError, match="1 of 2"):
        guard.admit(masks(2, 1))
    guard.admit(masks(2))


def test_a_mask_twice_in_one_request_is_refused():
    guard = DecryptionGuard()
    with pytest.raises(RemoteProtocolError, match="1 of 3"):
        guard.admit(masks(1, 2, 1))
    assert guard.masks_spent == 0


def test_one_changed_residue_is_another_mask():
    guard = DecryptionGuard()
    first = masks(1)
    guard.admit(first)
    second = first.copy()
    second[0, 1, 15] ^= 1
    guard.admit(second)
    with pytest.raises(RemoteProtocolError):
        guard.admit(np.asfortranarray(second))


def test_memory_is_bounded_and_nothing_is_forgotten():
    guard = DecryptionGuard(masks_max=3)
    guard.admit(masks(1, 2))
    with pytest.raises(RemoteProtocolError, match="at most 3 masks; 2 are spent and 2 more"):
        guard.admit(masks(3, 4))
    guard.admit(masks(3))
    with pytest.raises(RemoteProtocolError, match="at most 3"):
        guard.admit(masks(4))
    with pytest.raises(RemoteProtocolError, match="decrypted once"):
        guard.admit(masks(1))
    with pytest.raises(ConfigError):
        DecryptionGuard(masks_max=0)


def test_known_digest():
    wanted = hashlib.blake2b(bytes([1, 0, 0, 0, 2, 1, 0, 0]), digest_size=16, person=b"cloister mask").digest()
    digest = digest_mask(np.array([[1, 258]], dtype=np.uint32))
    assert digest == wanted
    assert len(digest) == DIGEST_BYTES


# --- what a share of decryption rests on --------------------------------------------------------------------------

WIDE = Parameters.make(4096, 4, 1 << 20)


def choose_masks(parameters, places, factor):
    """Masks with one number each, so that <mask, s> is that number times one coefficient of the secret."""
    masks = np.zeros((len(places), len(parameters.primes), parameters.degree), dtype=np.uint32)
    for row, place in enumerate(places):
        masks[row, :, -place % parameters.degree] = [factor % prime for prime in parameters.primes]
    return masks


def read_secret(phases, parameters, places, factor):
    """The coefficients, each the nearest of -1, 0 and 1; a mask at X^(N - k) gives minus coefficient k."""
    found = []
    for place, phase in zip(places, parameters.ring.to_integers(phases), strict=True):
        centred = (int(phase) + parameters.modulus // 2) % parameters.modulus - parameters.modulus // 2
        found.append(round(centred / factor) * (-1 if place else 1))
    return found


def test_a_requester_that_chooses_the_masks_reads_the_secret_whatever_noise_and_smudging_are_added():
    """64 of 64 coefficients: why the model is semi-honest. See collective-keys.md, section 3."""
    (key, _), _ = make_holders(2, secrets=1, parameters=WIDE)
    places, smudge_bits = list(range(64)), 60
    factor = WIDE.modulus // 4
    batch = LweBatch(
        parameters=WIDE,
        masks=choose_masks(WIDE, places, factor),
        bodies=np.zeros((64, len(WIDE.primes)), dtype=np.uint32),
        mask_of=np.arange(64),
        secret_of=np.zeros(64, dtype=np.int64),
    )
    noise = np.random.default_rng(1).normal(0, 1000, 64).astype(int).tolist()
    phases = share_decryption(
        key,
        batch,
        smudge_bits=smudge_bits,
        stream=Stream.from_seed(1, "smudge"),
        guard=DecryptionGuard(64),
        noise=lambda: noise,
    )
    read = read_secret(phases, WIDE, places, factor)
    assert read == key.ternary[0, :64].tolist()
    assert len(set(read)) == 3


def test_a_member_refuses_what_it_can_see_to_be_wrong():
    """The same masks again, more of them than the schedule has numbers, another ring, and two bodies of one mask."""
    keys, public = make_holders(2)
    batch = make_answers(public, np.array([[5, 6], [7, 8]]))
    guard = DecryptionGuard(2)
    share(keys[0], batch, guard=guard)
    with pytest.raises(RemoteProtocolError, match="decrypted once"):
        share(keys[0], batch, guard=guard)
    with pytest.raises(RemoteProtocolError, match="at most 2 masks"):
        share(keys[0], make_answers(public, np.array([[5, 6]]), seed=2), guard=guard)
    assert guard.masks_spent == 2
