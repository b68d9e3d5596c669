"""The noise of the published variant: Gaussian and Laplace, split as appendix G.4 recommends.

The paper sets the noise of each step from its own epsilon_i (section 2): a standard deviation of
sqrt(2 ln(1.25 / delta)) S / epsilon_i for sums, a scale of S / epsilon_i for counts, where the epsilon_i are fixed
parts of some epsilon_init. Privacy loss distributions give the cost of all steps together (section 5). So one
number remains, epsilon_init, which is chosen such that the total is the budget's.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import isqrt, log, sqrt

from cloister.privacy.calibration import calibrate
from cloister.privacy.mechanisms import DiscreteGaussian, DiscreteLaplace, Release
from cloister.privacy.units import Budget, Sensitivity, Unit

_SPLITS = {Unit.RECORD: (0.2, 0.2, 0.45, 0.15), Unit.CLIENT: (0.35, 0.1, 0.45, 0.1)}  # appendix G.4


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """The bounds on one unit's vectors, in integers; for a record or for a client (appendix G.5)."""

    products_l2: int
    """Of the outer products."""
    weights_l1: int
    """Of the weights of the server's points."""
    sums_l2: int
    """Of the sums, or means, of the clusters."""
    counts_l1: int
    """Of the counts of the clusters."""
    products_entries: int
    """How many products there are, on which the cost of Gaussian noise on integers depends a little."""
    sums_entries: int
    """How many sums."""


@dataclass(frozen=True, kw_only=True)
class PublishedNoise:
    """The noise of each kind of release."""

    products: DiscreteGaussian
    weights: DiscreteLaplace
    sums: DiscreteGaussian
    counts: DiscreteLaplace


@lru_cache(maxsize=32)
def calibrate_published(budget: Budget, bounds: Bounds, steps: int) -> PublishedNoise:
    """Return the least noise, in the recommended proportions, with which all releases fit the budget.

    Parameters
    ----------
    budget
        With ``delta > 0``.
    bounds
        What a unit adds at most.
    steps
        How many times sums and counts are released: once for the first centres (Algorithm 1), once for each step of
        Algorithm 2. All share the parts of epsilon for them, as T does in Algorithm 2.

    Privacy
    -------
    Neighbours: one unit added or removed. Event: all releases, fixed in advance; Gaussian and Laplace ones are composed
    by `compose_plan`: privacy loss distributions, for which the extra ``papers`` brings ``dp_accounting``.
    """

    def make_releases(scale: float) -> list[Release]:
        return list_releases(_scale(budget, bounds, steps, scale), bounds, steps)

    return _scale(budget, bounds, steps, calibrate(budget, make_releases=make_releases, fixed_plan=True))


def _scale(budget: Budget, bounds: Bounds, steps: int, multiplier: float) -> PublishedNoise:
    products, weights, sums, counts = _SPLITS[budget.unit]
    gaussian = sqrt(2 * log(1.25 / budget.delta)) * multiplier
    return PublishedNoise(
        products=DiscreteGaussian(sigma=gaussian * bounds.products_l2 / products),
        weights=DiscreteLaplace(scale=multiplier * bounds.weights_l1 / weights),
        sums=DiscreteGaussian(sigma=gaussian * bounds.sums_l2 * steps / sums),
        counts=DiscreteLaplace(scale=multiplier * bounds.counts_l1 * steps / counts),
    )


def list_releases(noise: PublishedNoise, bounds: Bounds, steps: int) -> list[Release]:
    """All releases, as an accountant prices them."""
    products = _release(noise.products, bounds.products_l2, bounds.products_entries)
    weights = _release(noise.weights, bounds.weights_l1, None)
    sums = _release(noise.sums, bounds.sums_l2, bounds.sums_entries)
    counts = _release(noise.counts, bounds.counts_l1, None)
    return [products, weights, *[sums] * steps, *[counts] * steps]


def _release(mechanism: DiscreteGaussian | DiscreteLaplace, norm: int, entries: int | None) -> Release:
    """Return the release of a vector of ``entries`` entries bounded in L2; without a number, of one bounded in L1."""
    l1 = norm if entries is None else min(isqrt(entries * norm**2), norm**2)
    sensitivity = Sensitivity(l1=l1, l2_squared=norm**2)
    return Release(name="calibration", mechanism=mechanism, sensitivity=sensitivity, entries=entries or max(norm, 1))
