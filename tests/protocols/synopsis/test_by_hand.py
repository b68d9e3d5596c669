"""How large a grid is, what it may cost, how far offsets reach: each rule of docs/study-synopsis.md, written again."""

from __future__ import annotations

import math

import numpy as np
import pytest

from cloister.crypto import Stream
from cloister.privacy.centre_noise import UNKNOWN
from cloister.privacy.units import Unit
from cloister.protocols.guided_sums.query import LENGTH_LEAST
from cloister.protocols.guided_sums.settings import BUDGET_UNITS
from cloister.protocols.guided_sums.statistics import Subspace
from cloister.protocols.synopsis import grid_plan
from cloister.protocols.synopsis.extent import Spread, _cut_ends, find_middle, find_radius
from cloister.protocols.synopsis.grid_plan import GridPlan, plan_grid, widen_radii
from cloister.protocols.synopsis.histogram import Histogram, Start, choose_bins, cluster_cells, denoise_histogram
from cloister.protocols.synopsis.questions import Grid
from tests.protocols.synopsis.steps import answer, make_settings

P = BUDGET_UNITS
NORMS, MIDDLE = int(0.03 * P), int(0.03 * P)


def signal(public, records, share):
    """Records over the noise of a count, where a record's contribution has this squared length."""
    return records * math.isqrt(share) / public.noise_std


def within(value, least, most):
    return sorted((least, value, most))[1]


@pytest.mark.parametrize("unit", [Unit.RECORD, Unit.CLIENT])
@pytest.mark.parametrize("n", [40, 3000, 10**5])
@pytest.mark.parametrize("clusters", [2, 7])
@pytest.mark.parametrize("d", [1, 3, 5])
def test_a_grid_on_the_columns(unit, n, clusters, d):
    public = make_settings(clusters=clusters, dimensions=d, unit=unit, parties=5)
    points = np.random.default_rng(d).uniform(-0.4, 0.5, (n, d))
    answered = answer(plan_grid(public, l2_squared=P, records=float(n)), [points])
    plan = answered.found
    box = answered.l2_squared
    assert box == (d * math.isqrt(int(0.05 * P) // d) ** 2 if answered.queries[0].length else 0)
    share = int(0.5 * (P - box))
    assert (plan.histogram_l2_squared, plan.left_l2_squared) == (share, P - box - share)
    dense = 5.0 if unit is Unit.CLIENT else 3.0
    wanted = (signal(public, n, share) / dense) ** (2 * d / (2 + d))
    cells = within(wanted, 8 * clusters, 6000)
    assert plan.route == "direct"
    assert plan.grid.subspace is None
    assert np.array_equal(plan.grid.bins, choose_bins(plan.grid.high - plan.grid.low, cells))
    if answered.queries[0].length and unit is Unit.RECORD:
        assert np.abs(plan.grid.low - -0.5).max() < 0.2
        assert np.abs(plan.grid.high - 0.5).max() < 0.2


def test_more_clusters_than_cells_leave_the_cells_as_they_are():
    public = make_settings(clusters=30, dimensions=2, cells_max=100, epsilon=0.1)
    plan = answer(plan_grid(public, l2_squared=P, records=10.0), [np.zeros((10, 2))]).found
    assert plan.grid.cells == 100


@pytest.mark.parametrize(("unit", "least"), [(Unit.RECORD, 2.5), (Unit.CLIENT, 2.0)])
def test_the_axes_are_asked_for_where_they_are_not_all_noise(unit, least):
    public = make_settings(clusters=2, dimensions=12, unit=unit, parties=9, epsilon=20.0)
    enough = least * 12 * public.noise_std / math.isqrt(P)
    points = 0.1 * np.random.default_rng(1).standard_normal((400, 12))
    for records, route, asked in ((0.999 * enough, "direct", 0), (1.001 * enough, "projected", 3)):
        answered = answer(plan_grid(public, l2_squared=P, records=records), np.array_split(points, 9))
        assert answered.found.route == route
        assert [bool(query.length) for query in answered.queries] == [bool(asked)] * 3
    assert np.array_equal(plan_direct(public).low, np.full(12, -1.0))
    assert np.array_equal(plan_direct(public).high, np.full(12, 1.0))


def plan_direct(public):
    return answer(plan_grid(public, l2_squared=P, records=0.1), [np.zeros((1, public.dimensions))]).found.grid


@pytest.mark.parametrize("unit", [Unit.RECORD, Unit.CLIENT])
@pytest.mark.parametrize("clearness", [2.6, 4.9, 5.1, 20.0, 400.0])
def test_a_grid_in_a_subspace(unit, clearness, monkeypatch):
    d, k = 8, 3
    public = make_settings(clusters=k, dimensions=d, unit=unit, parties=60, epsilon=3.0)
    records = clearness * d * public.noise_std / math.isqrt(P)
    spread = Spread(
        subspace=Subspace(origin=np.zeros(d), axes=np.eye(d)[:, :6]),
        deviations=np.array([0.3, 0.2, 0.1, 0.05, 1e-3, 0.0]),
        total_variance=0.2,
    )
    asked = {}

    def finder(name, found):
        def find(settings, *, l2_squared, **known):
            asked[name] = (l2_squared, known)
            return found
            yield

        return find

    middle = np.full(d, 0.1)
    monkeypatch.setattr(grid_plan, "find_middle", finder("middle", middle))
    monkeypatch.setattr(grid_plan, "find_radius", finder("radius", 0.45))
    monkeypatch.setattr(grid_plan, "find_axes", finder("axes", spread))
    with pytest.raises(StopIteration) as stop:
        next(plan_grid(public, l2_squared=P - 5, records=records))
    plan = stop.value.value
    taper = (1.0 if unit is Unit.CLIENT else 1.3) / math.sqrt(clearness)
    moments = int(within(taper, 1e-4, 0.3) * P)
    assert [asked[name][0] for name in asked] == [MIDDLE, NORMS, pytest.approx(moments, rel=1e-9)]
    assert asked["radius"][1] == {"records": records, "middle": middle, "longest": None}
    assert asked["axes"][1] == {"records": records, "middle": middle, "radius": 0.45}
    left = P - 5 - MIDDLE - NORMS - asked["axes"][0]
    share = plan.histogram_l2_squared
    assert share == pytest.approx(within(taper, 0.1, 0.35) * left, rel=1e-9)
    assert plan.left_l2_squared == left - share
    cells = within(signal(public, records, share) / 1.0, 16 * k, 6000)
    width = 2.0 if clearness > 5 else 1.6
    half = np.clip(width * spread.deviations, LENGTH_LEAST, 0.45)
    bins = choose_bins(2 * half, cells)
    used = np.maximum(np.arange(6) == 0, bins > 1)
    assert np.array_equal(plan.grid.bins, bins[used])
    assert np.allclose(plan.grid.high, half[used], rtol=1e-12)
    assert np.array_equal(plan.grid.low, -plan.grid.high)
    assert np.array_equal(plan.grid.subspace.axes, np.eye(d)[:, :6][:, used])
    assert np.array_equal(plan.grid.subspace.origin, spread.subspace.origin)


def start_of(**changes):
    start = {
        "centres": np.array([[0.2, 0.1], [-0.3, 0.0]]),
        "weights": np.array([30.0, 10.0]),
        "weight_variances": np.ones(2),
        "centre_variances": np.full((2, 2), 0.01),
        "variances": np.array([0.04, 0.01]),
        "loss": 0.02,
    }
    return Start(**start | changes)


def test_radii_on_the_columns_are_half_the_clusters_own():
    grid = Grid(low=np.full(2, -1.0), high=np.full(2, 1.0), bins=np.array([2, 2]))
    plan = GridPlan(grid=grid, histogram_l2_squared=1, left_l2_squared=1)
    start = start_of()
    centres, radii = plan.place(start)
    assert np.array_equal(centres, start.centres)
    assert np.allclose(radii, np.sqrt([0.03, 0.015]))
    assert np.array_equal(plan.spread_noise(start.centre_variances), start.centre_variances)
    assert np.array_equal(plan.embed(start.centres), start.centres)


@pytest.mark.parametrize(("total", "inside"), [(0.5, 0.5 - 0.06), (0.061, 0.0061), (0.0, 1e-12)])
def test_radii_in_a_subspace_are_those_of_what_the_centres_do_not_explain(total, inside):
    axes = np.linalg.qr(np.random.default_rng(3).normal(size=(5, 2)))[0]
    subspace = Subspace(origin=np.full(5, 0.4), axes=axes)
    grid = Grid(low=np.full(2, -1.0), high=np.full(2, 1.0), bins=np.array([2, 2]), subspace=subspace)
    spread = Spread(subspace=subspace, deviations=np.ones(2), total_variance=total)
    plan = GridPlan(grid=grid, histogram_l2_squared=1, left_l2_squared=1, spread=spread)
    start = start_of()
    explained = (30 * 0.05 + 10 * 0.09) / 40
    assert explained == pytest.approx(0.06)
    centres, radii = plan.place(start)
    assert np.allclose(centres, np.clip(0.4 + start.centres @ axes.T, -1, 1))
    assert np.allclose(radii, 1.15 * math.sqrt(inside), rtol=1e-6)
    far = plan.embed(np.array([[5.0, 5.0], [-5.0, 5.0]]))
    assert np.abs(far).max() == 1.0
    noise = plan.spread_noise(np.array([[0.01, 0.04], [9.0, 9.0]]))
    assert np.allclose(noise[0], 0.01 * axes[:, 0] ** 2 + 0.04 * axes[:, 1] ** 2)
    assert noise[1].max() == UNKNOWN


@pytest.mark.parametrize("d", [2, 6, 12, 50])
@pytest.mark.parametrize("share", [P // 100, P])
@pytest.mark.parametrize("records", [100.0, 10_000.0, 10.0**7])
def test_radii_grow_with_the_fourth_root_of_how_still_a_step_is(d, share, records):
    public = make_settings(clusters=3, dimensions=d)
    radii = np.array([0.1, 0.2, 0.4])
    noise = 3 * math.sqrt(d) / signal(public, records, share)
    factor = max(0.7, (0.05 / noise) ** (0.25 * min(1, 6 / d)))
    assert np.allclose(widen_radii(public, radii, l2_squared=share, records=records), factor * radii, rtol=1e-12)


def slow_cut(counts, price=16.0):
    """Every pair of ends, one by one."""
    total = max(sum(counts), 1.0)
    costs = {
        (a, b): math.log(b - a) + price * max(1 - sum(counts[a:b]) / total, 0.0)
        for a in range(16)
        for b in range(a + 1, 17)
    }
    return min(costs, key=lambda ends: (costs[ends], ends))


@pytest.mark.parametrize("seed", range(20))
def test_the_ends_that_are_cut_off_are_the_best_of_all(seed):
    rng = np.random.default_rng(seed)
    counts = rng.exponential(1.0, 16) ** rng.integers(1, 9) * rng.choice([0.001, 1.0, 100.0])
    assert _cut_ends(counts) == slow_cut(counts.tolist())


@pytest.mark.parametrize("in_subspace", [False, True])
def test_cells_that_noise_explains_are_left_out(in_subspace):
    """Kept are cells that are probably fuller than the noise; in a subspace, beyond half of the noise's maximum."""
    public = make_settings(clusters=2, dimensions=2 if not in_subspace else 9)
    subspace = Subspace(origin=np.zeros(9), axes=np.eye(9)[:, :2]) if in_subspace else None
    grid = Grid(low=np.full(2, -1.0), high=np.array([1.0, 2.0]), bins=np.array([10, 20]), subspace=subspace)
    limit = 0.5 * 4.0 * math.sqrt(2 * math.log(200)) if in_subspace else None
    counts = np.zeros(200)
    counts[:20] = 400.0
    if limit is not None:
        counts[20], counts[21] = limit * 1.01, limit * 0.99
    histogram = denoise_histogram(public, grid, counts, noise_std=4.0, records=8000.0)
    kept = 21 if in_subspace else 20
    assert np.array_equal(histogram.points, grid.centres[:kept])
    assert np.allclose(histogram.weights[:20], 400.0, rtol=0.05)
    assert histogram.variance == 16.0
    assert histogram.cell_variance == pytest.approx((0.2**2 + 0.15**2) / 12)


def test_of_noise_alone_four_cells_are_kept_for_each_cluster_but_no_more_than_there_are():
    public = make_settings(clusters=2)
    for bins, kept in ((10, 8), (2, 4)):
        grid = Grid(low=np.full(2, -1.0), high=np.full(2, 1.0), bins=np.array([bins, bins]))
        noisy = 0.1 * np.sin(np.arange(bins**2))
        histogram = denoise_histogram(public, grid, noisy, noise_std=50.0, records=5.0)
        assert len(histogram.points) == kept
        assert (histogram.weights >= 5e-9).all()
    flat = Grid(low=np.full(2, -1.0), high=np.full(2, 1.0), bins=np.array([4, 1]))
    assert denoise_histogram(public, flat, np.ones(4), noise_std=1.0, records=4.0).cell_variance == 0.25 / 12


def test_what_is_known_of_clusters_of_cells():
    points = np.array([[-0.5, 0.0], [-0.5, 0.2], [0.5, 0.0], [0.5, 0.1], [0.6, 0.0]])
    weights = np.array([10.0, 30.0, 5.0, 5.0, 10.0])
    histogram = Histogram(points=points, weights=weights, variance=2.0, cell_variance=0.003)
    start = cluster_cells(histogram, 2, restarts=3, stream=Stream.from_seed(1, "cells"))
    order = np.argsort(start.centres[:, 0])
    means = np.array([[-0.5, 0.15], [0.55, 0.025]])
    assert np.allclose(start.centres[order], means)
    assert np.allclose(start.weights[order], [40, 20])
    assert np.allclose(start.weight_variances[order], [4, 6])
    losses = np.array(
        [
            10 * 0.15**2 + 30 * 0.05**2,
            5 * (0.05**2 + 0.025**2) * 1 + 5 * (0.05**2 + 0.075**2) + 10 * (0.05**2 + 0.025**2),
        ]
    )
    assert np.allclose(start.variances[order], losses / [40, 20] + 0.003)
    assert start.loss == pytest.approx(losses.sum() / 60 + 0.003)
    own = (points[:2] - means[0]) ** 2
    assert np.allclose(start.centre_variances[order][0], np.minimum(2.0 * own.sum(axis=0) / 40**2, UNKNOWN))


def tell(asking, total):
    """The one question of a step, and what is made of this total."""
    query = next(asking)
    with pytest.raises(StopIteration) as stop:
        asking.send(np.asarray(total, dtype=np.int64))
    return query, stop.value.value


def test_the_middle_is_shrunk_by_its_noise():
    public, share, d = make_settings(dimensions=6, epsilon=2.0), P // 33, 6
    longest = math.isqrt(share * 16 // 17)
    scale = (longest - math.sqrt(6) / 2 - 1) / math.sqrt(6)
    total = np.append(np.array([3, -1, 2, 0, 1, -2]) * 40 * scale, 900 * (longest // 4))
    query, middle = tell(find_middle(public, l2_squared=share), np.rint(total))
    assert query.l2_squared == longest**2 + (longest // 4) ** 2
    mean, noise = total[:d] / scale / 900, public.noise_std / scale / 900
    shrunk = mean * max(0.0, 1 - 4 * noise**2 / (mean @ mean))
    assert np.allclose(middle, np.clip(shrunk, -1, 1), rtol=1e-6)
    _, nothing = tell(find_middle(public, l2_squared=share), np.append(total[:d], -5))
    assert np.abs(nothing).max() <= 1


@pytest.mark.parametrize("unit", [Unit.RECORD, Unit.CLIENT])
def test_the_radius_is_the_first_edge_beyond_which_half_of_the_records_may_be(unit):
    public, share = make_settings(dimensions=7, unit=unit, epsilon=40.0), P // 33
    middle, height = np.full(7, 0.3), math.isqrt(P // 33)
    counts = np.zeros(24)
    counts[[0, 3, 8, 9, 10, 23]] = 10, 30, 400, 300, 450, 50
    asking = find_radius(public, l2_squared=share, records=1240.0, middle=middle)
    query, radius = tell(asking, np.rint(counts * height))
    longest = math.sqrt(7) + 0.3 * math.sqrt(7)
    edges = query.question.edges.to_numpy(np.float64, 24)
    assert np.allclose(edges, [longest * 2 ** (-i / 4) for i in range(24)])
    assert np.array_equal(query.question.middle.to_numpy(np.float64, 7), middle)
    if unit is Unit.CLIENT:  # between the bins 9 and 10, which together have most votes
        assert radius == edges[10]
        return
    noise = public.noise_std / height
    assert noise < 2
    beyond = next(i for i in range(24) if counts[: i + 1].sum() + noise * math.sqrt(i + 1) > 620)
    assert beyond == 9
    assert radius == edges[9]
    _, least = tell(find_radius(public, l2_squared=share, records=1e9, middle=middle), np.rint(counts * height))
    assert least == edges[23]
