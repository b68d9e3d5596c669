"""How many records each cluster has: released counts, made consistent with their total by weighted least squares.

Everything here is post-processing. It takes released numbers and the public scales of their noise, never a record; the
formulas are derived in docs/proofs/uncertainty.md.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
import numpy as np

from cloister.errors import ConfigError
from cloister.privacy.units import Counted
from cloister.records import FloatArray

_ROUNDING = 1e-6  # relative: by how much sizes may miss their total

Amount = Annotated[float, msgspec.Meta(ge=0)]


class Sizes(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The sizes of the clusters, which add up to their total; and what of them is noise.

    Attributes
    ----------
    unit
        ``"records"``; ``"persons"``, where each counts once at a party; or ``"share"``, parts of 1: where noise hides
        how many records there are.
    clusters, noise
        Of each cluster: its size, at least 0, and the standard deviation of the noise in it.
    total, total_noise
        Of all clusters together. The noise is 0 where the total is public.

    Raises
    ------
    ConfigError
        If numbers are not finite, lengths differ, or the sizes do not add up to the total.
    """

    unit: Literal["records", "persons", "share"]
    clusters: tuple[Amount, ...]
    noise: tuple[Amount, ...]
    total: Amount
    total_noise: Amount

    def __post_init__(self) -> None:
        if not np.isfinite([*self.clusters, *self.noise, self.total, self.total_noise]).all():
            raise ConfigError("sizes must be finite; some are not.")
        if min(*self.clusters, *self.noise, self.total, self.total_noise) < 0:
            raise ConfigError("sizes must be at least 0; some are not.")
        if len(self.clusters) != len(self.noise):
            raise ConfigError(
                f"sizes must have the noise of each of {len(self.clusters)} clusters; got {len(self.noise)}."
            )
        if abs(sum(self.clusters) - self.total) > _ROUNDING * max(self.total, 1.0):
            raise ConfigError("sizes must add up to their total; they do not.")


def name_counted(sizes: Sizes | None, counted: Counted) -> Sizes | None:
    """Return sizes that say what they count; shares stay shares."""
    if sizes is None or sizes.unit == "share":
        return sizes
    return msgspec.structs.replace(sizes, unit=counted)


def fit_sizes(
    counts: FloatArray, variances: FloatArray, *, total: float | None = None, total_variance: float = 0.0
) -> Sizes:
    """Fit sizes to noisy counts and, where it was released or is public, their total.

    The total is the mean of the released one and the sum of the counts, by their precision. The sizes are the nearest
    numbers of at least 0 that add up to it, by least squares with the counts' precisions. The noise stated is that of
    the fit without the bound at 0, which makes it less.

    Parameters
    ----------
    counts, variances
        (k,): as released, negative ones too, and the variances of their noise, which is independent.
    total, total_variance
        A number of the same records with noise of its own; a variance of 0: it is public. None: there is none.
    """
    spread = float(variances.sum())
    fitted, fitted_variance, noise = float(counts.sum()), spread, np.sqrt(variances)
    if total is not None:
        believed = spread / (spread + total_variance) if spread > 0 else 0.0
        fitted += believed * (total - fitted)
        fitted_variance = believed * total_variance
        noise = np.sqrt(variances * (1.0 - variances * (believed / spread if spread > 0 else 0.0)))
    fitted = max(fitted, 0.0)
    return Sizes(
        unit="records",
        clusters=tuple(_bring_up_to(counts, variances, fitted).tolist()),
        noise=tuple(noise.tolist()),
        total=fitted,
        total_noise=float(np.sqrt(fitted_variance)),
    )


def share_out(
    counts: FloatArray, variances: FloatArray, *, total: float | None = None, total_variance: float = 0.0
) -> Sizes:
    """Share a total out in proportion to noisy counts in another unit; without one, return parts of 1.

    The noise stated is that of the proportions and of the total, to first order.

    Parameters
    ----------
    counts, variances
        (k,): as released, in any unit, and the variances of their noise, which is independent.
    total, total_variance
        How many records there are, and the variance of its noise; None: nothing is known of it.
    """
    spread, whole = float(variances.sum()), 1.0 if total is None else total
    seen = max(float(counts.sum()), spread**0.5, 1e-300)
    shares = _bring_up_to(counts, variances, seen) / seen
    of_shares = (variances * (1.0 - 2.0 * shares) + shares**2 * spread) / seen**2
    noise = np.sqrt(np.minimum(np.maximum(of_shares, 0.0), 1.0) * whole**2 + shares**2 * total_variance)
    return Sizes(
        unit="share" if total is None else "records",
        clusters=tuple((whole * shares).tolist()),
        noise=tuple(noise.tolist()),
        total=whole,
        total_noise=float(total_variance**0.5),
    )


def _bring_up_to(counts: FloatArray, variances: FloatArray, total: float) -> FloatArray:
    """Return the numbers of at least 0 that add up to a total and are nearest to counts, by the counts' precisions."""
    free, weights = np.ones(len(counts), dtype=bool), variances if variances.any() else np.ones(len(counts))
    fitted: FloatArray = counts
    while free.any():  # what is negative stays 0: without it, the others are lowered further (Michelot 1986)
        fitted = np.where(free, counts + weights * ((total - counts[free].sum()) / weights[free].sum()), 0.0)
        if (fitted >= 0).all():
            break
        free &= fitted > 0
    added = float(fitted.sum())  # the total, but for the rounding of numbers that are far larger
    return fitted * (total / added) if free.any() and added > 0 else np.full(len(counts), total / len(counts))
