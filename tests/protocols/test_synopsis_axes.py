"""Middle, radius and axes: found where they can be seen, and corrected by what of them is noise."""

import numpy as np
import pytest

from cloister.privacy.units import Unit
from cloister.protocols.guided_sums.bounding import bound_answers
from cloister.protocols.guided_sums.settings import PURSE
from cloister.protocols.guided_sums.shrinkage import shrink_mean
from cloister.protocols.synopsis.axes import correct_spectrum, find_axes
from cloister.protocols.synopsis.middle import find_middle, find_radius
from tests.protocols.synopsis_steps import answer, make_settings

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
    middle, _ = middle_of(points, share=PURSE, epsilon=10.0)
    np.testing.assert_allclose(middle, points.mean(axis=0), atol=0.01)


@pytest.mark.parametrize("seed", range(3))
def test_a_middle_that_is_all_noise_is_none(seed):
    """Records around 0, and noise of about 0.3 in each coordinate of their mean."""
    points = make_spiked(300, d=100)[0]
    middle, public = middle_of(points, share=PURSE // 100, epsilon=1.0, seed=seed)
    noise = public.noise_std * 100**0.5 / (PURSE / 100) ** 0.5 / 300
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


def radius_of(parts, middle, *, unit=Unit.RECORD, share=PURSE // 10, seed=1):
    public = make_settings(dimensions=len(middle), unit=unit, parties=len(parts))
    records = float(sum(len(part) for part in parts))
    asking = find_radius(public, l2_squared=share, records=records, middle=middle)
    return answer(asking, parts, noise_std=public.noise_std, seed=seed).found


@pytest.mark.parametrize("spread", [0.01, 0.1, 0.5])
@pytest.mark.parametrize("unit", Unit)
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


def spread_of(points, *, parties=1, unit=Unit.RECORD, radius=2.0, epsilon=1.0, share=PURSE // 3, seed=1, clusters=1):
    public = make_settings(clusters=clusters, dimensions=points.shape[1], epsilon=epsilon, unit=unit, parties=parties)
    asking = find_axes(
        public, l2_squared=share, records=float(len(points)), middle=np.zeros(points.shape[1]), radius=radius
    )
    asking = bound_answers(asking) if public.client_level else asking
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
