"""Sizes add up, are at least 0, and carry the noise that the fit leaves in them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from cloister.errors import ConfigError
from cloister.report.sizes import Sizes, fit_sizes, share_out

numbers = st.floats(-1e6, 1e6)
positive = st.floats(1e-3, 1e6)
FITS = [fit_sizes, share_out]


def weighted(least=1):
    return st.lists(st.tuples(numbers, positive), min_size=least, max_size=12)


@pytest.mark.parametrize("fit", FITS)
@given(pairs=weighted(), total=st.none() | st.floats(0, 1e9), variance=st.just(0.0) | positive)
def test_whatever_was_released_sizes_add_up_and_are_at_least_0(fit, pairs, total, variance):
    counts, variances = np.array(pairs).T
    sizes = fit(counts, variances, total=total, total_variance=variance)
    assert min(sizes.clusters) >= 0
    assert sum(sizes.clusters) == pytest.approx(sizes.total, rel=1e-9, abs=1e-9)
    assert (sizes.unit == "records") is (fit is fit_sizes or total is not None)


@pytest.mark.parametrize("magnitude", [1e9, 2.0**62, 1e100])
def test_senseless_totals_still_give_sizes(magnitude):
    counts = np.array([-magnitude, magnitude / 3, -magnitude / 7, 5.0])
    for fit in FITS:
        for total in (None, 0.0, 1.0, magnitude):
            sizes = fit(counts, np.full(4, 1e-3), total=total, total_variance=1.0)
            assert sum(sizes.clusters) == pytest.approx(sizes.total)


def test_exact_counts_stay_as_they_are():
    sizes = fit_sizes(np.array([3.0, 0.0, 7.0]), np.zeros(3))
    assert (sizes.clusters, sizes.noise, sizes.total, sizes.total_noise) == ((3, 0, 7), (0, 0, 0), 10, 0)


def test_the_fit_is_the_one_of_weighted_least_squares():
    """Against a general optimiser, on the sizes and the total together, where no size is near 0."""
    counts, variances, total, variance = np.array([50.0, 80.0, 20.0]), np.array([4.0, 9.0, 1.0]), 140.0, 6.0

    def loss(sizes):
        return ((sizes - counts) ** 2 / variances).sum() + (sizes.sum() - total) ** 2 / variance

    fitted = fit_sizes(counts, variances, total=total, total_variance=variance)
    best = minimize(loss, counts, tol=1e-12).x
    assert fitted.clusters == pytest.approx(best, abs=1e-4)


def test_sizes_at_0_are_the_nearest_to_the_counts_with_their_total():
    """Against a general optimiser under constraints."""
    counts, variances = np.array([-30.0, 50.0, 20.0, -1.0]), np.array([4.0, 9.0, 1.0, 2.0])
    fitted = fit_sizes(counts, variances, total=30.0)
    best = minimize(
        lambda sizes: ((sizes - counts) ** 2 / variances).sum(),
        np.full(4, 7.5),
        bounds=[(0, None)] * 4,
        constraints={"type": "eq", "fun": lambda sizes: sizes.sum() - fitted.total},
        tol=1e-12,
    ).x
    assert fitted.clusters == pytest.approx(best, abs=1e-3)
    assert fitted.clusters[0] == 0


def simulate_counts(true, std, total_std, runs=8000):
    rng = np.random.default_rng(3)
    return true + std * rng.standard_normal((runs, len(true))), true.sum() + total_std * rng.standard_normal(runs)


@pytest.mark.parametrize("total_std", [0.0, 5.0, 100.0])
def test_the_noise_stated_is_that_of_the_fit(total_std):
    true, std = np.array([500.0, 800.0, 300.0]), np.array([20.0, 30.0, 10.0])
    fits = [
        fit_sizes(counts, std**2, total=total, total_variance=total_std**2)
        for counts, total in zip(*simulate_counts(true, std, total_std), strict=True)
    ]
    clusters, totals = np.array([fit.clusters for fit in fits]), np.array([fit.total for fit in fits])
    assert clusters.std(axis=0) == pytest.approx(fits[0].noise, rel=0.03)
    assert totals.std() == pytest.approx(fits[0].total_noise, rel=0.03, abs=1e-9)
    assert clusters.mean(axis=0) == pytest.approx(true, abs=1)
    assert (np.array(fits[0].noise) < std).all()


@pytest.mark.parametrize("unit", [1.0, 7.5])
def test_proportions_carry_the_noise_of_counts_and_of_the_total_in_the_totals_unit(unit):
    """Counts of clients are in a unit of their own; sizes and their noise are in records."""
    true, std, total_std = np.array([500.0, 800.0, 300.0]), np.array([20.0, 30.0, 10.0]), 100.0
    counts, totals = simulate_counts(true, std, total_std)
    fits = [
        share_out(row / unit, (std / unit) ** 2, total=total, total_variance=total_std**2)
        for row, total in zip(counts, totals, strict=True)
    ]
    stated = np.mean([fit.noise for fit in fits], axis=0)
    assert np.array([fit.clusters for fit in fits]).std(axis=0) == pytest.approx(stated, rel=0.03)
    assert fits[0].total_noise == total_std
    parts = [share_out(row / unit, (std / unit) ** 2) for row in counts]
    assert np.array([part.clusters for part in parts]).std(axis=0) == pytest.approx(parts[0].noise, rel=0.05)
    assert {(part.unit, part.total, part.total_noise) for part in parts} == {("share", 1.0, 0.0)}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"clusters": (1.0, 2.5)}, "add up"),
        ({"noise": (1.0,)}, "noise of each of 2"),
        ({"total": float("nan")}, "finite"),
        ({"total_noise": -1.0}, "at least 0"),
        ({"clusters": (4.0, -1.0)}, "at least 0"),
    ],
)
def test_sizes_that_cannot_be_are_refused(change, message):
    good = {"unit": "records", "clusters": (1.0, 2.0), "noise": (1.0, 1.0), "total": 3.0, "total_noise": 1.0}
    with pytest.raises(ConfigError, match=message):
        Sizes(**good | change)
