"""Box, middle, radius and axes: found where they can be seen, and corrected by what of them is noise."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cloister.privacy.units import Unit
from cloister.protocols.guided_sums.postprocessing import shrink_mean
from cloister.protocols.guided_sums.settings import BUDGET_UNITS
from cloister.protocols.guided_sums.statistics import Subspace
from cloister.protocols.synopsis.extent import correct_spectrum, find_axes, find_box, find_middle, find_radius
from cloister.protocols.synopsis.histogram import choose_bins
from cloister.protocols.synopsis.questions import BOX_BINS, Grid
from cloister.records import ArrayRecords
from tests.protocols.synopsis.steps import answer, make_settings

D = 20


def make_spiked(n, *, d=D, spikes=(0.3, 0.2), base=0.03, seed=0):
    """Records that spread by these standard deviations along as many axes, and by ``base`` along all others."""
    rng = np.random.default_rng(seed)
    axes = np.linalg.qr(rng.normal(size=(d, d)))[0]
    deviations = np.full(d, base)
    deviations[: len(spikes)] = spikes
    return np.clip(rng.standard_normal((n, d)) * deviations @ axes.T, -1, 1), axes


# --- the middle ---------------------------------------------------------------------------------------------------


def middle_of(points, *, share, epsilon=1.0, seed=1):
    public = make_settings(dimensions=points.shape[1], epsilon=epsilon)
    asking = find_middle(public, l2_squared=share)
    return answer(asking, [points], noise_std=public.noise_std, seed=seed).found, public


def test_the_middle_is_the_mean_of_the_records():
    points = make_spiked(5000)[0] + np.linspace(-0.5, 0.5, D)
    middle, _ = middle_of(points, share=BUDGET_UNITS, epsilon=10.0)
    np.testing.assert_allclose(middle, points.mean(axis=0), atol=0.01)


@pytest.mark.parametrize("seed", range(3))
def test_a_middle_that_is_all_noise_is_none(seed):
    """Records around 0, and noise of about 0.3 in each coordinate of their mean."""
    points = make_spiked(300, d=100)[0]
    middle, public = middle_of(points, share=BUDGET_UNITS // 100, epsilon=1.0, seed=seed)
    noise = public.noise_std * 100**0.5 / (BUDGET_UNITS / 100) ** 0.5 / 300
    assert noise > 0.1
    assert np.sqrt((middle**2).mean()) < 0.5 * noise


def test_means_are_shrunk_by_their_noise_and_no_further_than_to_zero():
    """James and Stein: factor 1 - (d - 2) s^2 / |m|^2."""
    mean = np.full(12, 0.1)
    np.testing.assert_allclose(shrink_mean(mean, 0.05), mean * (1 - 10 * 0.0025 / 0.12))
    np.testing.assert_allclose(shrink_mean(mean, 1e-6), mean, rtol=1e-6)
    assert not shrink_mean(mean, 1.0).any()
    assert not shrink_mean(np.zeros(12), 0.1).any()
    np.testing.assert_array_equal(shrink_mean(mean[:2], 1.0), mean[:2])  # in two dimensions it would not help


# --- the radius ---------------------------------------------------------------------------------------------------


def radius_of(parts, middle, *, unit=Unit.RECORD, share=BUDGET_UNITS // 10, seed=1):
    public = make_settings(dimensions=len(middle), unit=unit, parties=len(parts))
    records = float(sum(len(part) for part in parts))
    asking = find_radius(public, l2_squared=share, records=records, middle=middle)
    return answer(asking, parts, noise_std=public.noise_std, seed=seed).found


@pytest.mark.parametrize("spread", [0.01, 0.1, 0.5])
@pytest.mark.parametrize("unit", [Unit.RECORD, Unit.CLIENT])
def test_the_radius_is_about_the_median_distance(spread, unit):
    points = np.clip(spread * np.random.default_rng(2).standard_normal((6000, 7)), -0.9, 0.9)
    middle = np.full(7, 0.05)
    median = np.median(np.linalg.norm(points - middle, axis=1))
    # A party votes for one bin, and a bin and a border are at most a factor of 2^(1/4) away each.
    slack = 2**0.25 if unit is Unit.RECORD else 2**0.5
    assert median / slack <= radius_of(np.array_split(points, 300), middle, unit=unit) * 1.01 <= median * slack * 1.03


def test_few_records_far_away_do_not_make_the_radius_longer():
    points = 0.05 * np.random.default_rng(2).standard_normal((2000, 7))
    points[:400] = 1.0
    assert radius_of([points], np.zeros(7)) < 0.05 * 7**0.5 * 2**0.5


# --- the axes -----------------------------------------------------------------------------------------------------


def spread_of(
    points, *, parties=1, unit=Unit.RECORD, radius=2.0, epsilon=1.0, share=BUDGET_UNITS // 3, seed=1, clusters=1
):
    public = make_settings(clusters=clusters, dimensions=points.shape[1], epsilon=epsilon, unit=unit, parties=parties)
    asking = find_axes(
        public, l2_squared=share, records=float(len(points)), middle=np.zeros(points.shape[1]), radius=radius
    )
    return answer(asking, np.array_split(points, parties), noise_std=public.noise_std, seed=seed).found


def test_the_directions_and_lengths_of_a_clear_spread_are_found():
    points, axes = make_spiked(20_000)
    spread = spread_of(points + 0.1, epsilon=20.0)
    turned = np.abs(axes[:, :2].T @ spread.subspace.axes)
    np.testing.assert_allclose(turned, np.eye(2), atol=0.05)
    np.testing.assert_allclose(spread.deviations, [0.3, 0.2], rtol=0.05)
    np.testing.assert_allclose(spread.subspace.origin, points.mean(axis=0) + 0.1, atol=0.01)
    assert spread.total_variance == pytest.approx(np.trace(np.cov(points.T)), rel=0.03)
    np.testing.assert_allclose(spread.subspace.axes.T @ spread.subspace.axes, np.eye(2), atol=1e-12)


def test_columns_that_vary_together_are_told_from_those_that_do_not():
    """Each entry of the matrix has its own weight in the release: 5 on the diagonal, 7 off it."""
    rng = np.random.default_rng(0)
    points = 0.1 * rng.standard_normal((30_000, 6))
    points[:, 1] = 0.8 * points[:, 0] + 0.6 * points[:, 1]
    points[:, 5] = 3 * points[:, 5]
    spread = spread_of(points, epsilon=100.0, clusters=3)
    exact = np.cov(points.T)
    found = spread.subspace.axes @ np.diag(spread.deviations**2) @ spread.subspace.axes.T
    np.testing.assert_allclose(found, exact, atol=0.02 * exact.max())


def test_records_beyond_the_radius_count_by_their_direction_only():
    points, axes = make_spiked(5000, spikes=(0.1,), base=0.01)
    points[:500] = np.sign(axes[:, 1])
    spread = spread_of(points, epsilon=20.0, radius=0.1)
    assert abs(axes[:, 0] @ spread.subspace.axes[:, 0]) > 0.95


def make_noise(d, std, rng):
    """A symmetric matrix with noise of this deviation on the diagonal, and a sqrt 2 smaller one off it."""
    noise = rng.normal(scale=std / 2**0.5, size=(d, d))
    noise = np.triu(noise, 1)
    return noise + noise.T + np.diag(rng.normal(scale=std, size=d))


@pytest.mark.parametrize("seed", range(3))
def test_the_spread_along_the_axes_that_are_seen_is_recovered_from_a_noisy_spectrum(seed):
    d, noise_std, base = 200, 0.01, 0.02
    spikes = np.array([1.0, 0.5, 0.3, 0.25])
    covariance = np.diag(np.concatenate([base + spikes, np.full(d - 4, base)]))
    values, vectors = np.linalg.eigh(covariance + make_noise(d, noise_std, np.random.default_rng(seed)))
    values, vectors = values[::-1][:8], vectors[:, ::-1][:, :8]
    seen = np.einsum("ia,ij,ja->a", vectors, covariance, vectors)
    corrected = correct_spectrum(values, base=base, noise_std=noise_std, d=d)
    np.testing.assert_allclose(corrected[:4], seen[:4], rtol=0.15)
    assert (np.abs(corrected - seen) <= np.abs(values - seen)).all()
    assert np.abs(corrected - seen).sum() < 0.3 * np.abs(values - seen).sum()
    assert corrected[4:].max() < base + 0.4 * (values[4] - base)  # axes that are noise alone


def test_a_spectrum_without_noise_is_not_corrected():
    values = np.array([1.0, 0.4, 0.1])
    np.testing.assert_allclose(correct_spectrum(values, base=0.05, noise_std=0.0, d=50), values)
    assert not correct_spectrum(values - 2, base=-1.0, noise_std=0.1, d=50).any()


@pytest.mark.parametrize("seed", range(2))
def test_clients_axes_are_as_long_as_their_records_spread_along_them(seed):
    points = make_spiked(4000, d=60, spikes=(0.3, 0.2), base=0.02)[0]
    radius = float(np.median(np.linalg.norm(points, axis=1)))
    spread = spread_of(points, parties=1500, unit=Unit.CLIENT, radius=radius, epsilon=3.0, clusters=4, seed=seed)
    along = (points @ spread.subspace.axes).std(axis=0)
    assert spread.deviations.shape == (8,)
    np.testing.assert_allclose(spread.deviations[:2], along[:2], rtol=0.3)
    # Six axes are the noise's. As the spectrum shows them, they are 2.3 times too long, and get cells of their own.
    assert (spread.deviations[2:] / along[2:]).mean() < 1.9


SHARE = BUDGET_UNITS // 20
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
    assert Grid(**values, subspace=Subspace(**where)).pack(1) != grid.pack(1)
