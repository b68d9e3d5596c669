from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cloister.errors import ConfigError
from cloister.lattice import Ring, sum_bodies
from cloister.lattice.inner_product import mirror_weights
from cloister.lattice.primes import find_primes
from tests.lattice import reference
from tests.lattice.answers import accumulate_masks

RING = Ring(16, find_primes(16, 2))
weights_of = st.sampled_from([1, 300, 2**31 - 1])


def draw(ring, shape, seed):
    rows = np.random.default_rng(seed).integers(0, ring.prime_words[:, None], (*shape, len(ring.primes), ring.degree))
    return rows.astype(np.uint32)


def draw_weights(ring, rows, peak, seed):
    weights = np.random.default_rng(seed).integers(-peak, peak + 1, (rows, ring.degree)).astype(np.int32)
    weights[:, 1:3] = (-(2**31), 2**31 - 1) if peak == 2**31 - 1 else (-peak, peak)
    return weights


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 2**32), weights_of, st.integers(1, 4), st.integers(1, 40))
def test_mask_and_bodies_agree_with_whole_integers(seed, peak, groups, rows):
    rng = np.random.default_rng(seed)
    q, primes, degree = RING.modulus, RING.primes, RING.degree
    masks, bodies = draw(RING, (3,), seed), draw(RING, (3, 2), seed + 1)
    weights = draw_weights(RING, rows, peak, seed)
    mask_of, into = rng.integers(0, 3, rows), rng.integers(0, groups, rows)
    before = draw(RING, (groups,), seed + 2)
    after = RING.forward(before)
    accumulate_masks(RING, after, RING.forward(masks), weights, mask_of, into)
    sums = sum_bodies(RING, bodies, weights, mask_of, secrets=2)
    expected = [reference.polynomial_from_residues(x, primes) for x in before]
    for j in range(rows):
        # X^-p is -X^(N-p): the polynomial of weights, written out by powers.
        polynomial = [0] * degree
        for p, weight in enumerate(weights[j].tolist()):
            polynomial[-p % degree] += weight if p == 0 else -weight
        mask = reference.polynomial_from_residues(masks[mask_of[j]], primes)
        expected[into[j]] = reference.add(expected[into[j]], reference.multiply(polynomial, mask, q), q)
        for s in range(2):
            body = reference.polynomial_from_residues(bodies[mask_of[j], s], primes)
            total = sum(w * b for w, b in zip(weights[j].tolist(), body, strict=True)) % q
            assert reference.from_residues([int(x) for x in sums[j, s]], primes) == total
            assert reference.multiply(polynomial, body, q)[0] == total
    assert [reference.polynomial_from_residues(x, primes) for x in RING.inverse(after)] == expected


def test_many_products_into_one_accumulator_do_not_overflow():
    """Largest residues 2500 times: 64-bit words must be reduced on the way (2^54 * 2500 > 2^64)."""
    ring = Ring(4, find_primes(4, 2))
    rows = 2500
    top = np.broadcast_to(ring.prime_words[:, None] - 1, (1, 2, 4)).astype(np.uint32)
    weights = np.zeros((rows, 4), dtype=np.int32)
    weights[:, 0] = -1  # the constant -1 is p - 1 at every place of its NTT form
    total = top.copy()
    accumulate_masks(ring, total, top, weights, np.zeros(rows, dtype=int), np.zeros(rows, dtype=int))
    assert np.array_equal(total[0], np.full((2, 4), rows - 1, dtype=np.uint32))


@pytest.mark.parametrize("weight", [-(2**31), 2**31 - 1, 2**23])
def test_largest_weights_times_largest_residues_do_not_overflow(weight):
    ring = Ring(4096, find_primes(4096, 2))
    top = np.broadcast_to(ring.prime_words[:, None] - 1, (1, 1, 2, 4096)).astype(np.uint32)
    sums = sum_bodies(ring, top, np.full((1, 4096), weight, dtype=np.int32), np.zeros(1, dtype=int), secrets=1)
    assert sums[0, 0].tolist() == [-4096 * weight % prime for prime in ring.primes]


def test_first_secrets_only_and_blocks_of_the_full_size():
    ring = Ring(4096, find_primes(4096, 2))
    bodies = draw(ring, (2, 3), 1)
    weights = draw_weights(ring, 5, 500, 1)
    mask_of = np.array([0, 1, 1, 0, 1])
    sums = sum_bodies(ring, bodies, weights, mask_of, secrets=1)
    assert sums.shape == (5, 1, 2)
    expected = np.einsum("jn,jln->jl", weights.astype(object), bodies[mask_of, 0].astype(object))
    assert np.array_equal(sums[:, 0], expected % np.array(ring.primes, dtype=object))


def test_two_threads_give_what_one_gives():
    ring = Ring(2048, find_primes(2048, 2))
    masks, weights = draw(ring, (4,), 2), draw_weights(ring, 40, 300, 2)
    mask_of, into = np.arange(40) % 4, np.arange(40) % 3

    def work(_):
        total = np.zeros((3, 2, 2048), dtype=np.uint32)
        accumulate_masks(ring, total, masks, weights, mask_of, into)
        return total

    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(work, range(6)))
    assert all(np.array_equal(result, results[0]) for result in results)


def test_mirroring_is_its_own_inverse():
    weights = np.array([[3, -1, 4, 1]])
    assert mirror_weights(weights).tolist() == [[3, -1, -4, 1]]
    assert np.array_equal(mirror_weights(mirror_weights(weights)), weights)


def test_indices_and_shapes_are_checked_before_the_compiled_loop():
    masks, weights = draw(RING, (2, 1), 0), draw_weights(RING, 2, 5, 0)
    zeros = np.zeros(2, dtype=int)
    for bad in (np.array([0, 2]), np.array([-1, 0]), np.array([0])):
        with pytest.raises(ConfigError, match="places in"):
            sum_bodies(RING, masks, weights, bad, secrets=1)
    with pytest.raises(ConfigError, match="weights must be int32"):
        sum_bodies(RING, masks, weights.astype(np.int64), zeros, secrets=1)
    with pytest.raises(ConfigError, match="residues must be uint32"):
        sum_bodies(RING, masks[..., :1, :], weights, zeros, secrets=1)
    with pytest.raises(ConfigError, match="secrets must be from 1 to 1"):
        sum_bodies(RING, masks, weights, zeros, secrets=2)
