"""Laplace and Gaussian releases together: privacy loss distributions, composed by Google's ``dp_accounting``.

Used for lists of releases that are fixed in advance. What goes in is one-dimensional and proved to dominate
(docs/proofs/accounting.md): all Gaussian releases are one continuous Gaussian shift (`gaussian_dp`); a discrete Laplace
vector of L1 sensitivity Delta_1 is one discrete Laplace number shifted by Delta_1.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from cloister.errors import MissingExtraError
from cloister.privacy.costs import pure_epsilon_of
from cloister.privacy.gaussian_dp import gaussian_cost_of
from cloister.privacy.mechanisms import DiscreteLaplace, Release
from cloister.privacy.zcdp import OUTWARD

LEAST_DELTA = 1e-9  # below, the rounding of Fourier transforms (about 1e-15) is no longer small against delta
_TRANSFORM_ERROR = 1e-12  # taken off delta for that rounding; much more than tests see
_LARGEST_SHIFT = 1_000_000  # dp_accounting lists the values of a discrete Laplace loss


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
