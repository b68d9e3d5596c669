"""What a list of releases costs that is fixed in advance: less than zCDP knows of.

*Gaussian releases only.* The zCDP conversion, which knows only Rényi divergences, asks for 4 to 13 % more noise than
the Gaussian mechanism itself needs. A discrete Gaussian is not dominated by the continuous one of the same sigma, but
it is, up to a factor e^ripple in its probabilities, a continuous Gaussian of variance sigma^2 - r^2 rounded at random
to the integers. With r = 1.5 the ripple is below 2e-19 for each entry that one unit can change. Proof:
docs/proofs/accounting.md, "Discrete Gaussians as Gaussians".

*Laplace and Gaussian releases together* are composed as privacy loss distributions, by Google's ``dp_accounting``. What
goes in is one-dimensional and proved to dominate: all Gaussian releases are one continuous Gaussian shift; a discrete
Laplace vector of L1 sensitivity Delta_1 is one discrete Laplace number shifted by Delta_1.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from cloister.errors import MissingExtraError
from cloister.late import load_late
from cloister.privacy.costs import OUTWARD, pure_epsilon_of, ripple_of_rounding, ripple_of_sum, runs_of
from cloister.privacy.mechanisms import DiscreteGaussian, DiscreteGaussianSum, DiscreteLaplace, Release

special = load_late("scipy.special")

ROUNDING_VARIANCE = 2.25  # r^2: what is given up of sigma^2
LEAST_DELTA = 1e-9  # below, the rounding of Fourier transforms (about 1e-15) is no longer small against delta
_TRANSFORM_ERROR = 1e-12  # taken off delta for that rounding; much more than tests see
_LARGEST_SHIFT = 1_000_000  # dp_accounting lists the values of a discrete Laplace loss


@dataclass(frozen=True, kw_only=True)
class GaussianCost:
    """Several releases as one Gaussian shift.

    Parameters
    ----------
    mu_squared
        Of the Gaussian mechanism that dominates: N(0, 1) against N(mu, 1).
    ripple
        How far the logarithm of a probability ratio is from it, in all.
    """

    mu_squared: float = 0.0
    ripple: float = 0.0


def gaussian_cost_of(releases: Iterable[Release]) -> GaussianCost | None:
    """Return the Gaussian shift that dominates these releases together; None if the theorem does not cover one of them.

    Privacy
    -------
    Neighbours: add or remove one unit. Event: all of these releases. Theorem: docs/proofs/accounting.md,
    "Discrete Gaussians as Gaussians": delta(epsilon) <= e^ripple delta_mu(epsilon - ripple), where delta_mu is the
    curve of the Gaussian mechanism (Balle and Wang 2018, Thm 8).
    """
    mu_squared = ripple = 0.0
    for release, times in runs_of(releases):
        mechanism, sensitivity = release.mechanism, release.sensitivity
        if isinstance(mechanism, DiscreteGaussian):
            variance, ripple_of_entry = mechanism.sigma * mechanism.sigma, 0.0
        elif isinstance(mechanism, DiscreteGaussianSum):
            variance = mechanism.shares * mechanism.sigma * mechanism.sigma
            ripple_of_entry = ripple_of_sum(mechanism.sigma, mechanism.shares)
        else:
            return None
        if variance < 2 * ROUNDING_VARIANCE:
            return None
        touched = min(release.entries, sensitivity.l1)
        mu_squared += times * sensitivity.l2_squared / (variance - ROUNDING_VARIANCE)
        ripple += times * touched * (ripple_of_entry + ripple_of_rounding(ROUNDING_VARIANCE))
    return GaussianCost(mu_squared=mu_squared * (1 + 1e-11), ripple=ripple * (1 + 1e-11))


def delta_of_gaussian(cost: GaussianCost, epsilon: float) -> float:
    """Return a delta for which these releases are (epsilon, delta)-DP, raised by a relative 1e-9.

    Privacy
    -------
    As `gaussian_cost_of`. With x = epsilon / mu - mu / 2 and y = epsilon / mu + mu / 2,
    delta_mu = Phi(-x) - e^epsilon Phi(-y), and e^epsilon phi(y) = phi(x), so both terms share the factor e^(-x^2 / 2).
    """
    if cost.mu_squared == 0:
        return 0.0
    if not cost.mu_squared < math.inf or cost.ripple > epsilon:
        return 1.0
    mu = math.sqrt(cost.mu_squared)
    shifted = (epsilon - cost.ripple) / mu
    x, y = shifted - mu / 2, (shifted + mu / 2) / math.sqrt(2)
    factor = math.exp(-x * x / 2) / 2
    # erfcx(x / sqrt 2) e^(-x^2 / 2) / 2 = Phi(-x), but it neither under- nor overflows for x > 0
    first = factor * float(special.erfcx(x / math.sqrt(2))) if x > 0 else float(special.ndtr(-x))
    second = factor * float(special.erfcx(y))
    delta = (first - second + 1e-14 * first) * math.exp(cost.ripple) * (1 + 1e-15 * min(x * x, 1e4)) * OUTWARD
    return min(1.0, math.nextafter(max(0.0, delta), 1.0))


def epsilon_of_gaussian(cost: GaussianCost, delta: float) -> float:
    """Return the smallest epsilon (to a relative 1e-9) with ``delta_of_gaussian(cost, epsilon) <= delta``.

    Privacy
    -------
    As `gaussian_cost_of`; the returned epsilon was put through `delta_of_gaussian`.
    """
    if delta_of_gaussian(cost, 0.0) <= delta:
        return 0.0
    if not cost.mu_squared < math.inf or cost.ripple >= 1:
        return math.inf
    exceeds, fits = 0.0, cost.mu_squared / 2 + math.sqrt(cost.mu_squared)
    while delta_of_gaussian(cost, fits) > delta:
        exceeds, fits = fits, 2 * fits
    while fits - exceeds > 1e-10 * fits:
        middle = (exceeds + fits) / 2
        if delta_of_gaussian(cost, middle) <= delta:
            fits = middle
        else:
            exceeds = middle
    return fits


def epsilon_of_mixture(releases: Sequence[Release], delta: float, *, expected_epsilon: float) -> float | None:
    """Return an epsilon for which these releases are (epsilon, delta)-DP together, or None where this cannot tell.

    Parameters
    ----------
    releases
        Fixed in advance; the data that they are computed from may depend on earlier ones.
    delta
        Less than 1.
    expected_epsilon
        A valid but loose epsilon: sets the grid, not the result.

    Raises
    ------
    MissingExtraError
        If ``dp_accounting`` is not installed.

    Privacy
    -------
    Neighbours: add or remove one unit. Event: all releases together. Theorems: dominating pairs compose
    (Zhu, Dong and Wang 2022, Thm 10); the discretisation is pessimistic (Doroshenko, Ghazi, Kamath, Kumar and
    Manurangsi 2022, "connect the dots"); each dominating pair as the module says. The rounding of the Fourier
    transforms has no proof in the library: delta is lowered by 1e-12 for it, and nothing is answered below 1e-9.
    """
    laplace = [release for release in releases if isinstance(release.mechanism, DiscreteLaplace)]
    gaussian = gaussian_cost_of([release for release in releases if not isinstance(release.mechanism, DiscreteLaplace)])
    shifts = Counter((release.mechanism.scale, release.sensitivity.l1) for release in laplace)  # type: ignore[union-attr]
    epsilons = [epsilon for release in laplace if (epsilon := pure_epsilon_of(release))]
    if gaussian is None or gaussian.ripple > 1e-3 or delta < LEAST_DELTA or expected_epsilon > 1e3:
        return None
    if any(shift > _LARGEST_SHIFT for _, shift in shifts):
        return None
    try:
        from dp_accounting.pld import privacy_loss_distribution as pld  # noqa: PLC0415
    except ImportError as error:
        raise MissingExtraError("composing Laplace with Gaussian releases", "dp-accounting", "papers") from error
    # A fifth of the smallest loss resolves every release; the grid has at most some 10^5 points.
    finest = min([*epsilons, math.sqrt(gaussian.mu_squared) or math.inf, 5e-3]) / 5
    interval = max(finest, expected_epsilon / 2e5)
    parts = [
        pld.from_discrete_laplace_mechanism(
            1 / scale, sensitivity=shift, value_discretization_interval=interval, use_connect_dots=True
        ).self_compose(count)
        for (scale, shift), count in shifts.items()
        if shift > 0
    ]
    if gaussian.mu_squared > 0:
        deviation = 1 / math.sqrt(gaussian.mu_squared)
        parts.append(pld.from_gaussian_mechanism(deviation, value_discretization_interval=interval))
    if not parts:
        return 0.0
    composed = parts[0]
    for part in parts[1:]:
        composed = composed.compose(part)
    left = (delta - _TRANSFORM_ERROR) * math.exp(-gaussian.ripple)
    return (float(composed.get_epsilon_for_delta(left)) + gaussian.ripple) * OUTWARD
