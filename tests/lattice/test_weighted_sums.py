"""Many weighted sums at once, against whole integers and polynomials by the school book; and at the edges of words."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cloister.errors import ConfigError, LocalProtocolError
from cloister.lattice.ring import Ring, find_primes
from cloister.lattice.weighted_sums import Products, WeightedSums, mirror_weights, sum_bodies
from tests.lattice import reference
from tests.lattice.answers import accumulate_masks

RING = Ring(16, find_primes(16, 2))
LARGEST = 2**31 - 1
weights_of = st.sampled_from([1, 300, 2**31 - 1])


def draw_rows(ring, count, seed):
    words = np.random.default_rng(seed).integers(0, ring.prime_words[:, None], (count, len(ring.primes), ring.degree))
    return words.astype(np.uint32)


def make_products(weights, row_of, source_of, targets):
    """From a list of (sum, factor) for each product."""
    flat = [target for own in targets for target in own]
    return Products(
        weights=np.array(weights, dtype=np.int32),
        row_of=np.array(row_of, dtype=np.int64),
        source_of=np.array(source_of, dtype=np.int64),
        first_target=np.concatenate([[0], np.cumsum([len(own) for own in targets])]).astype(np.int64),
        into=np.array([into for into, _ in flat], dtype=np.int64),
        factors=np.array([factor for _, factor in flat], dtype=np.int64),
    )


def add_slowly(ring, count, blocks):
    """The same in Python's integers: factor times weights times ciphertext; of bodies coefficient 0 only."""
    q, primes, degree = ring.modulus, ring.primes, ring.degree
    masks, bodies = [[0] * degree for _ in range(count)], [0] * count
    for block_masks, block_bodies, products in blocks:
        first = products.first_target.tolist()
        for j, (row, source) in enumerate(zip(products.row_of.tolist(), products.source_of.tolist(), strict=True)):
            weights = products.weights[row].tolist()
            polynomial = [0] * degree  # X^-p is -X^(N-p)
            for p, weight in enumerate(weights):
                polynomial[-p % degree] += weight if p == 0 else -weight
            mask = reference.multiply(polynomial, reference.polynomial_from_residues(block_masks[source], primes), q)
            body = reference.polynomial_from_residues(block_bodies[source], primes)
            product = sum(w * b for w, b in zip(weights, body, strict=True))
            for target in range(first[j], first[j + 1]):
                into, factor = int(products.into[target]), int(products.factors[target])
                masks[into] = [(x + factor * y) % q for x, y in zip(masks[into], mask, strict=True)]
                bodies[into] = (bodies[into] + factor * product) % q
    return masks, bodies


def compare(ring, count, blocks):
    sums = WeightedSums(ring, count)
    for masks, bodies, products in blocks:
        sums.add(ring.forward(masks), bodies, products)
    masks, bodies = sums.finish()
    expected_masks, expected_bodies = add_slowly(ring, count, blocks)
    assert [reference.polynomial_from_residues(x, ring.primes) for x in masks] == expected_masks
    assert [reference.from_residues([int(r) for r in row], ring.primes) for row in bodies] == expected_bodies


@st.composite
def block(draw_from, count):
    rng = np.random.default_rng(draw_from(st.integers(0, 2**32)))
    peak = draw_from(st.sampled_from([1, 300, LARGEST]))
    factor = draw_from(st.sampled_from([1, 2**20, 2**62]))
    rows, sources, products = (draw_from(st.integers(1, top)) for top in (4, 3, 12))
    weights = rng.integers(-peak, peak + 1, (rows, RING.degree))
    targets = [
        [(int(rng.integers(count)), int(rng.integers(-factor, factor + 1))) for _ in range(rng.integers(0, 4))]
        for _ in range(products)
    ]
    return (
        draw_rows(RING, sources, int(rng.integers(2**32))),
        draw_rows(RING, sources, int(rng.integers(2**32))),
        make_products(weights, np.sort(rng.integers(0, rows, products)), rng.integers(0, sources, products), targets),
    )


@settings(deadline=None, max_examples=60)
@given(st.data(), st.integers(1, 5), st.integers(1, 3))
def test_sums_are_those_of_whole_integers(data, count, blocks):
    compare(RING, count, [data.draw(block(count)) for _ in range(blocks)])


@pytest.mark.parametrize("weight", [LARGEST, -LARGEST, -LARGEST - 1, 1, -1])
@pytest.mark.parametrize("factor", [1, -1, 2**62, -(2**63), 2**63 - 1])
def test_the_largest_weights_factors_and_residues(weight, factor):
    top = np.broadcast_to(RING.prime_words[:, None] - 1, (1, 2, RING.degree)).astype(np.uint32)
    products = make_products(np.full((1, RING.degree), weight), [0], [0], [[(0, factor), (1, 1)]])
    compare(RING, 2, [(top, top, products)])


def test_factors_beyond_a_prime_are_residues():
    prime = RING.primes[0]
    masks, bodies = draw_rows(RING, 1, 1), draw_rows(RING, 1, 2)
    for factor in (prime, -prime, prime + 1, RING.modulus, -RING.modulus - 1):
        compare(RING, 1, [(masks, bodies, make_products(np.ones((1, 16)), [0], [0], [[(0, factor)]]))])


@pytest.mark.parametrize("count", [510, 511, 512, 1022, 1023, 1024, 1025, 3000])
@pytest.mark.parametrize("blocks", [1, 2])
def test_many_products_into_one_sum_do_not_overflow(count, blocks):
    """The largest residues and factors: a 64-bit word holds about a thousand of their products."""
    ring = Ring(4, find_primes(4, 2))
    primes = ring.prime_words.astype(np.int64)
    top = np.broadcast_to(primes[:, None] - 1, (1, 2, 4)).astype(np.uint32)
    weights = np.zeros((1, 4))
    weights[0, 0] = -1  # the constant -1 is p - 1 at every place of its NTT form, times p - 1: 1; the factor -1: p - 1
    products = make_products(weights, [0] * count, [0] * count, [[(0, -1)]] * count)
    sums = WeightedSums(ring, 1)
    for _ in range(blocks):
        sums.add(top, np.ascontiguousarray(top), products)
    masks, bodies = sums.finish()
    expected = -count * blocks % primes
    assert np.array_equal(ring.forward(masks)[0], np.broadcast_to(expected[:, None], (2, 4)))
    assert np.array_equal(bodies[0], expected)


def test_one_product_with_many_targets():
    """What a counting product does: the count, and a constant for each encrypted column."""
    masks, bodies = draw_rows(RING, 2, 3), draw_rows(RING, 2, 4)
    targets = [[(i, (-1) ** i * 1000 * i) for i in range(40)], [(39 - i, i) for i in range(40)]]
    compare(RING, 40, [(masks, bodies, make_products(np.eye(2, 16), [0, 1], [1, 0], targets))])


def test_no_products_leave_zeros_and_blocks_of_the_full_size_agree():
    ring = Ring(2048, find_primes(2048, 2))
    sums = WeightedSums(ring, 3)
    nothing = make_products(np.zeros((0, 2048)), [], [], [])
    sums.add(draw_rows(ring, 1, 1), draw_rows(ring, 1, 2), nothing)
    masks, bodies = sums.finish()
    assert not masks.any()
    assert not bodies.any()
    weights = np.random.default_rng(5).integers(-500, 501, (2, 2048))
    source = draw_rows(ring, 2, 6)
    products = make_products(weights, [0, 1], [1, 0], [[(2, 3)], [(2, -7), (0, 1)]])
    sums.add(ring.forward(source), source, products)
    masks, bodies = sums.finish()
    dots = np.einsum("jn,jln->jl", weights.astype(object), source[[1, 0]].astype(object))
    primes = np.array(ring.primes, dtype=object)
    assert np.array_equal(bodies[2], (3 * dots[0] - 7 * dots[1]) % primes)
    assert np.array_equal(bodies[0], dots[1] % primes)
    assert not bodies[1].any()
    # Masks and bodies are of the same polynomials here, and coefficient 0 of a product is what a body holds.
    assert np.array_equal(masks[:, :, 0], bodies)


GOOD = {
    "weights": np.ones((2, 16), dtype=np.int32),
    "row_of": np.array([0, 1]),
    "source_of": np.array([0, 1]),
    "first_target": np.array([0, 1, 2]),
    "into": np.array([0, 1]),
    "factors": np.array([1, 1]),
}


@pytest.mark.parametrize(
    "wrong",
    [
        {"weights": np.ones((2, 15), dtype=np.int32)},
        {"weights": np.ones((1, 16), dtype=np.int32)},
        {"row_of": np.array([0, 2])},
        {"row_of": np.array([-1, 1])},
        {"row_of": np.array([1, 0])},
        {"source_of": np.array([0, 2])},
        {"source_of": np.array([0, -1])},
        {"source_of": np.array([0])},
        {"into": np.array([0, 2])},
        {"into": np.array([-1, 0])},
        {"factors": np.array([1])},
        {"first_target": np.array([0, 2])},
        {"first_target": np.array([0, 1, 3])},
        {"first_target": np.array([1, 1, 2])},
        {"first_target": np.array([0, 2, 1])},
        {"first_target": np.array([0, 3, 2])},
        {"first_target": np.array([0, -1, 2])},
    ],
)
def test_products_that_point_nowhere_are_refused(wrong):
    sums, source = WeightedSums(RING, 2), draw_rows(RING, 2, 1)
    sums.add(source, source, Products(**GOOD))
    with pytest.raises(LocalProtocolError, match="must name existing"):
        sums.add(source, source, Products(**{**GOOD, **wrong}))
    with pytest.raises(LocalProtocolError, match="one shape"):
        sums.add(source, source[:, :1], Products(**GOOD))


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
