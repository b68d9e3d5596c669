from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from cloister.crypto import Stream
from cloister.errors import ConfigError
from cloister.lattice.lwe import (
    LweBatch,
    SmallLweBatch,
    add_error,
    add_plain,
    decrypt_lwe,
    draw_flood,
    rerandomise,
    switch_modulus,
)
from cloister.lattice.noise import choose_switch_bits, flood_reach_max
from cloister.lattice.parameters import Load, Parameters
from tests.lattice.answers import make_answers, make_keys, quotient_is_small

ALPHA = 1e-6
PARAMETERS = Parameters.make(2048, 2, 2**24)
KEYS, PUBLIC = make_keys(PARAMETERS)
ANSWERS = make_answers(KEYS)
LOAD = Load(sum_max=2**22, terms=3 * 2 * 2048, weight_max=200)


@pytest.mark.parametrize(
    ("degree", "primes", "public"), [(2048, 2, False), (4096, 3, True), (4096, 4, False), (8192, 8, True)]
)
def test_a_whole_answer_is_exact(degree, primes, public):
    """Weighted sums, re-randomised, noise added, flooded as far as there is room, switched: exact integers."""
    parameters = Parameters.make(degree, primes, 2**24)
    keys, public_keys = make_keys(parameters, count=3)
    answers = make_answers(keys, count=2, public=public_keys if public else None)
    load = Load(sum_max=2**22, terms=3 * 2 * degree, weight_max=200, public_key=public)
    stream = Stream.from_seed(5, "answer")
    noise = [int(x) for x in np.random.default_rng(1).integers(-1000, 1000, 6)]
    flood_bits = int(flood_reach_max(parameters, load)).bit_length() - 1
    batch = add_plain(rerandomise(answers.batch, public_keys, stream), noise)
    batch = add_error(batch, draw_flood(stream, flood_bits, 6))
    expected = [x + y for x, y in zip(answers.sums, noise, strict=True)]
    assert decrypt_lwe(keys, batch) == expected
    assert decrypt_lwe(keys, switch_modulus(batch, choose_switch_bits(parameters, load))) == expected


def test_the_worst_flood_still_decrypts_and_a_little_more_does_not():
    bits = choose_switch_bits(PARAMETERS, LOAD)
    reach = int(flood_reach_max(PARAMETERS, LOAD))
    for sign in (-1, 1):
        batch = add_error(ANSWERS.batch, [sign * reach] * 8)
        assert decrypt_lwe(KEYS, switch_modulus(batch, bits)) == ANSWERS.sums
    too_much = add_error(ANSWERS.batch, [PARAMETERS.delta // 2 + 2**20] * 8)
    assert decrypt_lwe(KEYS, too_much) != ANSWERS.sums


def test_rerandomised_answers_say_nothing_by_their_masks():
    """The same answer twice: masks differ everywhere, are uniform, and so is their difference to the first ones."""
    first, second = (rerandomise(ANSWERS.batch, PUBLIC, Stream.from_seed(i, "r")) for i in (1, 2))
    for masks in (
        first.masks,
        PARAMETERS.ring.subtract(first.masks, ANSWERS.batch.masks),
        PARAMETERS.ring.subtract(first.masks, second.masks),
    ):
        for row, prime in enumerate(PARAMETERS.primes):
            counts = np.histogram(masks[:, row], bins=32, range=(0, prime))[0]
            assert stats.chisquare(counts).pvalue > ALPHA
    assert not np.array_equal(first.bodies, second.bodies)
    assert decrypt_lwe(KEYS, first) == decrypt_lwe(KEYS, second) == ANSWERS.sums


def test_answers_that_share_a_mask_share_its_randomness_and_others_do_not():
    zero = replace(ANSWERS.batch, masks=np.zeros_like(ANSWERS.batch.masks), bodies=np.zeros_like(ANSWERS.batch.bodies))
    fresh = rerandomise(zero, PUBLIC, Stream.from_seed(1, "r"))
    assert len({mask.tobytes() for mask in fresh.masks}) == 4
    assert decrypt_lwe(KEYS, fresh) == [0] * 8
    # Without an error of its own a mask a u would give u away to whoever divides by a.
    assert not quotient_is_small(PARAMETERS, PARAMETERS.ring.forward(fresh.masks[0]), PUBLIC.mask)


@settings(deadline=None, max_examples=30)
@given(st.lists(st.integers(-(2**200), 2**200), min_size=8, max_size=8))
def test_plaintexts_are_added_modulo_t(numbers):
    t = PARAMETERS.plaintext_modulus
    small = [n % t for n in numbers]
    expected = [(x + y + t // 2) % t - t // 2 for x, y in zip(ANSWERS.sums, small, strict=True)]
    assert decrypt_lwe(KEYS, add_plain(ANSWERS.batch, small)) == expected
    whole = [PARAMETERS.modulus * n for n in numbers]
    assert np.array_equal(add_error(ANSWERS.batch, whole).bodies, ANSWERS.batch.bodies)


@pytest.mark.parametrize("bits", [0, 7, 8, 31, 32, 40, 79])
def test_flood_is_uniform_over_its_whole_range(bits):
    flood = draw_flood(Stream.from_seed(4, "flood"), bits, 4000)
    assert -(2**bits) <= min(flood) < -0.9 * 2**bits
    assert 0.9 * 2**bits - 1 <= max(flood) < 2**bits
    bins = min(16, 2 ** (bits + 1))
    counts = np.bincount([(x + 2**bits) * bins >> (bits + 1) for x in flood], minlength=bins)
    assert stats.chisquare(counts).pvalue > ALPHA


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 60), st.integers(0, 2**32))
def test_switching_rounds_to_the_nearest(bits, seed):
    x = [int(v) for v in np.random.default_rng(seed).integers(0, PARAMETERS.modulus, 5)] + [0, PARAMETERS.modulus - 1]
    residues = np.array([[v % p for p in PARAMETERS.primes] for v in x], dtype=np.uint32)
    empty = LweBatch(
        parameters=PARAMETERS,
        masks=np.zeros((1, 2, 2048), dtype=np.uint32),
        bodies=residues,
        mask_of=np.zeros(7, dtype=np.int64),
        secret_of=np.zeros(7, dtype=np.int64),
    )
    slack = 0.5 + 2 * 2.0 ** (bits - 64)
    for body, value in zip(switch_modulus(empty, bits).bodies.tolist(), x, strict=True):
        rest = (body * PARAMETERS.modulus - (value << bits)) % (PARAMETERS.modulus << bits)
        assert body < 2**bits
        assert min(rest, (PARAMETERS.modulus << bits) - rest) <= slack * PARAMETERS.modulus


def test_wrong_batches_are_refused():
    batch = ANSWERS.batch
    for wrong in ({"mask_of": batch.mask_of + 1}, {"mask_of": batch.mask_of - 1}, {"secret_of": batch.secret_of - 1}):
        with pytest.raises(ConfigError, match="one of 4"):
            replace(batch, **wrong)
    with pytest.raises(ConfigError, match="mask and a secret"):
        replace(batch, secret_of=batch.secret_of[1:])
    with pytest.raises(ConfigError, match="masks must be uint32"):
        replace(batch, masks=batch.masks[:, :, :-1])
    with pytest.raises(ConfigError, match="bodies must be uint32"):
        replace(batch, bodies=batch.bodies.astype(np.int64))
    with pytest.raises(ConfigError, match="a secret for every body"):
        decrypt_lwe(KEYS, replace(batch, secret_of=batch.secret_of + 1))
    with pytest.raises(ConfigError, match="a public key for every secret"):
        rerandomise(replace(batch, secret_of=batch.secret_of + 1), PUBLIC, Stream.from_seed(1, "x"))
    with pytest.raises(ConfigError, match="another ring's"):
        rerandomise(batch, make_keys(Parameters.make(2048, 1, 2))[1], Stream.from_seed(1, "x"))
    with pytest.raises(ConfigError, match="8 integers"):
        add_plain(batch, [1])
    for bits in (0, 61):
        with pytest.raises(ConfigError, match="from 1 to 60"):
            switch_modulus(batch, bits)
    small = switch_modulus(batch, 40)
    assert small.plaintext_modulus == 2**24
    with pytest.raises(ConfigError, match="masks must be uint64"):
        replace(small, masks=small.masks[:, 1:])
    with pytest.raises(ConfigError, match="bodies must be uint64"):
        SmallLweBatch(
            parameters=PARAMETERS,
            bits=40,
            masks=small.masks,
            bodies=small.bodies[:, None],
            mask_of=small.mask_of,
            secret_of=small.secret_of,
        )
