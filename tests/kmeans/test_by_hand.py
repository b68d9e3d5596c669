"""Initial centres and the cut of work among threads, computed a second time with plain loops."""

from __future__ import annotations

import math

import numpy as np
import pytest

from cloister.crypto import Stream
from cloister.kmeans import kernel, pool
from cloister.kmeans.flow import SizeLimits, _round_costs
from cloister.kmeans.initialisation import kmeans_plus_plus, random_in_domain, random_records, sphere_packing
from cloister.kmeans.kernel import _choose_threads


def pack_by_hand(stream, k, d, radius):
    """At most 128 candidates for each centre: 8, 16, 32, 64, and the 8 that are left."""
    centres = []
    for _ in range(k):
        for batch in (8, 16, 32, 64, 8):
            candidates = (1 - radius) * (2 * stream.uniform(batch, d) - 1)
            far = [c for c in candidates if all(((c - other) ** 2).sum() >= (2 * radius) ** 2 for other in centres)]
            if far:
                centres.append(far[0])
                break
        else:
            return None
    return np.array(centres)


@pytest.mark.parametrize(("k", "d"), [(1, 2), (2, 1), (5, 2), (9, 3), (3, 20)])
def test_spheres_are_packed_by_twenty_halvings(k, d):
    stream = Stream.from_seed(k, "spheres")
    low, high = 0.0, 1.0 if k == 1 else math.sqrt(d) / (1 + math.sqrt(d))
    found = None
    for _ in range(20):
        middle = (low + high) / 2
        packed = pack_by_hand(stream, k, d, middle)
        if packed is None:
            high = middle
        else:
            low, found = middle, packed
    assert np.array_equal(sphere_packing(Stream.from_seed(k, "spheres"), k, d), found)


def test_random_centres_and_records_are_the_streams():
    stream, again = Stream.from_seed(1, "centres"), Stream.from_seed(1, "centres")
    assert np.array_equal(random_in_domain(stream, 4, 3), 2 * again.uniform(4, 3) - 1)
    points = np.random.default_rng(1).normal(size=(30, 2))
    order = again.permutation(30)
    assert np.array_equal(random_records(stream, points, 30), points[order])


@pytest.mark.parametrize("candidates", [1, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_kmeans_plus_plus_draws_where_the_cumulated_mass_passes(candidates, weighted):
    rng = np.random.default_rng(3)
    points = rng.normal(size=(25, 2))
    weights = rng.integers(0, 4, 25).astype(float) if weighted else np.ones(25)
    uniform = Stream.from_seed(2, "plus plus").uniform(6, candidates)
    squares = np.ones(25)
    centres = []
    for j in range(6):
        cumulated = np.cumsum(weights * squares)
        drawn = [int(np.flatnonzero(cumulated > u * cumulated[-1])[0]) for u in (uniform[j] if j else uniform[j][:1])]
        left = [((points - points[i]) ** 2).sum(axis=1) for i in drawn]
        if j:
            left = [np.minimum(own, squares) for own in left]
        best = min(range(len(drawn)), key=lambda i: left[i] @ weights)
        centres.append(points[drawn[best]])
        squares = left[best]
    found = kmeans_plus_plus(
        Stream.from_seed(2, "plus plus"), points, 6, weights if weighted else None, candidates=candidates
    )
    assert np.array_equal(found, np.array(centres))


def test_a_call_gets_a_thread_for_each_180_microseconds_of_work(monkeypatch):
    """As measured: 6 ns a record and 0.09 a product of a coordinate with a centre's."""
    monkeypatch.setattr(kernel, "available_cores", lambda: 8)
    for rows, products in ((1, 1), (29_999, 1), (60_000, 30), (20_000, 500), (10**7, 1)):
        threads = math.floor(rows * (6 + 0.09 * products) / 180_000)
        assert _choose_threads(None, rows, products) == min(max(threads, 1), 8)
        assert _choose_threads(3, rows, products) == min(max(threads, 1), 3)


@pytest.mark.parametrize(("chunks", "threads"), [(1, 4), (7, 2), (100, 4), (1000, 3), (33, 2)])
def test_threads_take_quarters_of_their_share_but_no_less_than_four_chunks(chunks, threads, monkeypatch):
    monkeypatch.setattr(pool._Helper, "run", lambda self: None)  # the caller does it all
    taken = []
    pool.run_in_threads(lambda first, last: taken.append((first, last)), chunks, threads)
    share = math.ceil(chunks / min(threads, chunks))
    step = chunks if min(threads, chunks) == 1 else max(math.ceil(share / 4), min(share, 4))
    assert taken == [(first, min(first + step, chunks)) for first in range(0, chunks, step)]


@pytest.mark.parametrize(("n", "k"), [(1, 1), (50, 3), (2**26, 2)])
def test_costs_have_thirty_bits_or_as_many_as_the_solver_holds(n, k):
    squares = np.broadcast_to(np.array([0.25, 1.0][:k] + [0.5] * (k - 2)), (n, k))[:, :k] if n < 100 else None
    if squares is None:

        class Large:
            shape = (n, k)

            def max(self, initial):
                return 4.0

            def __mul__(self, scale):
                return np.array([4.0 * scale])

        squares = Large()
    bits = min(30, 61 - math.ceil(math.log2((k + 2) * (n + k + 3))))
    costs, penalty = _round_costs(squares)
    assert costs.max() == 2**bits
    assert penalty == (k + 2) * 2**bits
    assert not _round_costs(np.zeros((2, 2)))[0].any()


@pytest.mark.parametrize(
    ("limits", "holds"),
    [
        ({"size_min": 3, "size_max": 3}, True),
        ({"size_min": 4, "size_max": 3}, False),
        ({"size_min": 0, "size_max": 10, "memberships_max": 0}, False),
        ({"size_min": 0, "size_max": 10, "memberships_max": 3}, True),
        ({"size_min": 0, "size_max": 10, "memberships_max": 4}, False),
        ({"size_min": 10, "size_max": 10, "memberships_max": 3}, True),
        ({"size_min": 11, "size_max": 11, "memberships_max": 3}, False),
        ({"size_min": 4, "size_max": 9}, False),
        ({"size_min": 4, "size_max": 9, "records": 12}, True),
        ({"size_min": 0, "size_max": 3}, False),
        ({"size_min": 0, "size_max": 3, "records": 9}, True),
    ],
)
def test_sizes_that_arithmetic_rules_out(limits, holds):
    limits = {"records": 9 if limits == {"size_min": 3, "size_max": 3} else 10, "clusters": 3} | limits
    made = SizeLimits(**limits)
    if holds:
        made.check_feasible()
    else:
        with pytest.raises(ValueError, match="no assignment meets the cluster sizes"):
            made.check_feasible()
    if limits["size_max"] == 3 and limits["size_min"] == 0:
        made.check_feasible(all_assigned=False)
