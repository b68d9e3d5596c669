"""Exact probabilities of the noise, and one battery of tests that compares samples with them."""

from fractions import Fraction
from functools import cache

import numpy as np
from scipy import special, stats

from cloister.privacy.mechanisms import (
    DiscreteGaussian,
    DiscreteGaussianSum,
    DiscreteLaplace,
    PolyaDifference,
    compute_variance,
)

ALPHA = 1e-6
LEAST_EXPECTED = 100.0  # in a cell of a chi-square test, so that its approximation holds far out


def pmf(noise, reach):
    """P[x] for x = -reach .. reach; what lies beyond is lost."""
    x = np.arange(-reach, reach + 1)
    match noise:
        case DiscreteGaussian(sigma=sigma):
            weights = np.exp(-0.5 * np.square(x / sigma))
            return weights / weights.sum()
        case DiscreteLaplace(scale=scale):
            return np.tanh(0.5 / scale) * np.exp(-np.abs(x) / scale)
        case DiscreteGaussianSum(sigma=sigma, shares=shares):
            return convolve([pmf(DiscreteGaussian(sigma=sigma), reach)] * shares)
        case PolyaDifference(scale=scale, shares=shares):
            one = polya_pmf(scale, shares, 2 * reach)
            return np.array([one[max(0, d) :][: one.size - abs(d)] @ one[max(0, -d) :][: one.size - abs(d)] for d in x])


def polya_pmf(scale, shares, reach):
    """P[x] of NB(1 / shares, exp(-1 / scale)) for x = 0 .. reach."""
    r, x = 1.0 / shares, np.arange(reach + 1)
    log_normaliser = r * np.log(-np.expm1(-1.0 / scale))
    return np.exp(special.gammaln(x + r) - special.gammaln(r) - special.gammaln(x + 1) - x / scale + log_normaliser)


@cache
def kept_probability(kept, things, shares):
    """P[kept | things] of the cycle algorithm, by the first cycle's length and fate."""
    if kept < 0:
        return Fraction(0)
    if things == 0:
        return Fraction(int(kept == 0))
    keep = Fraction(1, shares)
    total = sum(
        keep * kept_probability(kept - cycle, things - cycle, shares)
        + (1 - keep) * kept_probability(kept, things - cycle, shares)
        for cycle in range(1, things + 1)
    )
    return total / things


def convolve(parts):
    """The distribution of a sum of independent variables, all on -reach .. reach."""
    total = parts[0]
    for part in parts[1:]:
        total = np.convolve(total, part, mode="same")
    return total


def battery(samples, probabilities):
    """One p-value for "these are independent samples of this distribution", Bonferroni over four tests."""
    reach = probabilities.size // 2
    inside = np.abs(samples) <= reach
    counts = np.bincount(samples[inside] + reach, minlength=probabilities.size).astype(float)
    counts = np.append(counts, np.count_nonzero(~inside))
    masses = np.append(probabilities, max(0.0, 1.0 - probabilities.sum()))
    return _combine(
        chi_square(counts, masses * samples.size), _tails(samples, masses), _signs(samples), _pairs(samples, masses)
    )


def battery_for_huge_scales(samples, noise):
    """As `battery`, where single integers are too rare to count: quantile cells instead, and the lowest bits."""
    scale = np.sqrt(compute_variance(noise))
    family = stats.norm(scale=scale) if isinstance(noise, DiscreteGaussian) else stats.laplace(scale=noise.scale)
    # The continuous CDF at half-integers is the discrete one up to a relative 1 / scale^2.
    edges = np.floor(family.ppf(np.arange(1, 40) / 40.0)) + 0.5
    cell = np.searchsorted(edges, samples)
    masses = np.diff(np.concatenate([[0.0], family.cdf(edges), [1.0]]))
    low_bits = np.bincount(samples & 15, minlength=16).astype(float)
    far = np.abs(samples) > family.ppf(0.9995)
    pairs = np.bincount(cell[0:-1:2] // 14 * 3 + cell[1::2] // 14, minlength=9).astype(float)
    thirds = np.array([masses[:14].sum(), masses[14:28].sum(), masses[28:].sum()])
    return _combine(
        chi_square(np.bincount(cell, minlength=40).astype(float), masses * samples.size),
        chi_square(low_bits, np.full(16, samples.size / 16)),
        stats.binomtest(int(far.sum()), samples.size, 0.001).pvalue,
        _signs(samples),
        chi_square(pairs, np.outer(thirds, thirds).ravel() * (samples.size // 2)),
    )


def chi_square(counts, expected):
    """The p-value of Pearson's statistic, with rare cells pooled into one."""
    is_rare = expected < LEAST_EXPECTED
    if is_rare.any():
        # Enough of the next larger cells join them for the pool to be large enough.
        order = np.argsort(expected)
        pooled = np.searchsorted(np.cumsum(expected[order]), LEAST_EXPECTED) + 1
        pooled = max(pooled, int(is_rare.sum()))
        pool, rest = order[:pooled], order[pooled:]
        counts = np.append(counts[rest], counts[pool].sum())
        expected = np.append(expected[rest], expected[pool].sum())
    if counts.size < 2:
        return 1.0
    return float(stats.chi2.sf(np.sum((counts - expected) ** 2 / expected), counts.size - 1))


def _tails(samples, masses):
    """How often |x| passes the last point that at least one sample in a thousand should."""
    reach = (masses.size - 2) // 2
    magnitudes = masses[reach:-1] + np.append(0.0, masses[:reach][::-1])
    beyond = 1.0 - np.cumsum(magnitudes)
    cut = max(0, int(np.count_nonzero(beyond >= 1e-3)) - 1)
    count = int(np.count_nonzero(np.abs(samples) > cut))
    return float(stats.binomtest(count, samples.size, float(np.clip(beyond[cut], 0.0, 1.0))).pvalue)


def _signs(samples):
    nonzero = int(np.count_nonzero(samples))
    if nonzero == 0:
        return 1.0
    return float(stats.binomtest(int(np.count_nonzero(samples > 0)), nonzero).pvalue)


def _pairs(samples, masses):
    """Whether neighbours are independent: the nine combinations of their signs."""
    reach = (masses.size - 2) // 2
    below, zero = masses[:reach].sum(), masses[reach]
    thirds = np.array([below, zero, max(0.0, 1.0 - below - zero)])
    sign = np.sign(samples) + 1
    counts = np.bincount(sign[0:-1:2] * 3 + sign[1::2], minlength=9).astype(float)
    return chi_square(counts, np.outer(thirds, thirds).ravel() * (samples.size // 2))


def _combine(*p_values):
    return min(1.0, min(p_values) * len(p_values))
