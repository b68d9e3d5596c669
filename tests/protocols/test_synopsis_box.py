"""The box and the grid: wide bounds are cut to where records are, and every record lies in exactly one cell."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cloister.protocols.guided_sums.settings import PURSE
from cloister.protocols.guided_sums.subspace import Subspace
from cloister.protocols.synopsis.box import find_box
from cloister.protocols.synopsis.grid import Grid, choose_bins
from cloister.protocols.synopsis.settings import BOX_BINS
from cloister.records import ArrayRecords
from tests.protocols.synopsis_steps import answer, make_settings

SHARE = PURSE // 20
BIN = 2 / BOX_BINS


def find(points, *, epsilon=1.0, seed=1):
    public = make_settings(dimensions=points.shape[1], epsilon=epsilon)
    asking = find_box(public, l2_squared=SHARE, records=float(len(points)))
    return answer(asking, [points[::2], points[1::2]], noise_std=public.noise_std, seed=seed)


@pytest.mark.parametrize("middle", [-0.875, 0.0, 0.5])
@pytest.mark.parametrize("d", [1, 2, 5])
def test_bounds_ten_times_too_wide_are_cut_to_two_bins(middle, d):
    points = middle + 0.1 * np.random.default_rng(0).uniform(-1, 1, (2000, d))
    answered = find(points)
    box = answered.found
    assert (box.high - box.low <= 2 * BIN + 1e-12).all()
    assert (box.low <= points.min(axis=0)).all()
    assert (box.high >= points.max(axis=0)).all()
    assert box.l2_squared == answered.l2_squared
    assert 0.99 * SHARE < box.l2_squared <= SHARE


def test_each_column_has_its_own_ends():
    points = np.random.default_rng(0).uniform(-1, 1, (3000, 3)) * [1.0, 0.1, 0.3] + [0.0, 0.5, -0.6]
    box = find(points).found
    np.testing.assert_allclose(box.low, [-1.0, 0.375, -1.0], atol=BIN)
    np.testing.assert_allclose(box.high, [1.0, 0.625, -0.25], atol=BIN)


@pytest.mark.parametrize("seed", range(3))
def test_a_cluster_at_each_end_stays_inside(seed):
    rng = np.random.default_rng(seed)
    points = np.array([-0.97, 0.0, 0.97])[rng.integers(3, size=(1500, 2))] + 0.01 * rng.standard_normal((1500, 2))
    box = find(points, seed=seed).found
    np.testing.assert_array_equal(box.low, [-1, -1])
    np.testing.assert_array_equal(box.high, [1, 1])


@pytest.mark.parametrize("seed", range(3))
def test_one_record_far_away_does_not_widen_the_box(seed):
    points = np.append(0.05 * np.random.default_rng(seed).uniform(-1, 1, 3000), 1.0)[:, None]
    box = find(points, seed=seed).found
    assert box.high[0] - box.low[0] <= 2 * BIN


def test_where_noise_would_decide_nothing_is_asked_and_nothing_is_charged():
    points = np.zeros((100, 2))
    answered = find(points, epsilon=0.5)
    assert [query.length for query in answered.queries] == [0]
    assert answered.l2_squared == answered.found.l2_squared == 0
    np.testing.assert_array_equal(answered.found.low, [-1, -1])
    np.testing.assert_array_equal(answered.found.high, [1, 1])
    assert find(points, epsilon=50.0).l2_squared > 0


# --- cells --------------------------------------------------------------------------------------------------------


@given(
    st.lists(st.one_of(st.just(0.0), st.floats(1e-3, 10.0)), min_size=1, max_size=6).map(np.array),
    st.floats(1.0, 1000.0),
)
@settings(max_examples=200, deadline=None)
def test_bins_are_as_many_as_allowed_and_as_equal_as_can_be(sides, cells_max):
    bins = choose_bins(sides, cells_max)
    assert (bins >= 1).all()
    assert np.prod(bins) <= cells_max
    assert (bins[sides == 0] == 1).all()
    if not sides.any():
        return
    longest = (sides / bins).max()
    for axis in np.flatnonzero(bins > 1):  # a cut was made where cells were longest: before it, none was longer
        assert sides[axis] / (bins[axis] - 1) >= longest * (1 - 1e-12)
    axis = (sides / bins).argmax()
    assert np.prod(bins) / bins[axis] * (bins[axis] + 1) > cells_max


def make_grid(seed, bins, *, in_subspace):
    rng = np.random.default_rng(seed)
    m = len(bins)
    subspace = None
    if in_subspace:
        axes = np.ascontiguousarray(np.linalg.qr(rng.normal(size=(m + 3, m)))[0])
        subspace = Subspace(origin=rng.uniform(-0.2, 0.2, m + 3), axes=axes)
    low = rng.uniform(-0.6, -0.1, m)
    return Grid(low=low, high=low + rng.uniform(0.3, 0.9, m), bins=np.array(bins), subspace=subspace)


@pytest.mark.parametrize("in_subspace", [False, True], ids=["columns", "subspace"])
@given(seed=st.integers(0, 2**16), bins=st.lists(st.integers(1, 7), min_size=1, max_size=4))
@settings(max_examples=60, deadline=None)
def test_every_record_is_in_the_cell_whose_middle_is_nearest(in_subspace, seed, bins):
    """Records outside too: theirs is a border cell."""
    grid = make_grid(seed, bins, in_subspace=in_subspace)
    d = len(bins) + 3 * in_subspace
    points = np.random.default_rng(seed + 1).uniform(-1, 1, (200, d))
    cells = grid.find_cells(points)
    coordinates = points if grid.subspace is None else (points - grid.subspace.origin) @ grid.subspace.axes
    used = grid.bins > 1
    gaps = np.abs(np.clip(coordinates, grid.low, grid.high) - grid.centres[cells])[:, used]
    assert (gaps <= grid.sides[used] / 2 + 1e-6).all()
    counts = grid.count(ArrayRecords(points))
    np.testing.assert_array_equal(counts, np.bincount(cells, minlength=grid.cells))
    assert counts.sum() == len(points)
    assert len(grid.centres) == len(counts) == grid.cells == np.prod(bins)


def test_the_middle_of_each_cell_is_in_it():
    for in_subspace in (False, True):
        grid = make_grid(5, [3, 1, 4], in_subspace=in_subspace)
        middles = grid.centres if grid.subspace is None else grid.subspace.embed(grid.centres)
        np.testing.assert_array_equal(grid.find_cells(middles), np.arange(12))


@pytest.mark.parametrize("part", ["low", "high", "bins", "origin", "axes"])
def test_grids_that_count_otherwise_have_other_bytes(part):
    grid = make_grid(5, [3, 2], in_subspace=True)
    values = {"low": grid.low, "high": grid.high, "bins": grid.bins}
    where = {"origin": grid.subspace.origin, "axes": grid.subspace.axes}
    for changed in (values, where):
        if part in changed:
            changed[part] = changed[part][::-1].copy()
    assert Grid(**values, subspace=Subspace(**where)).to_bytes() != grid.to_bytes()
