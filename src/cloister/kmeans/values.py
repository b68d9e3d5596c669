"""The conditions on arrays that all of this package asks for, and noisy values brought back into their domain.

Truncating and folding (thesis 6.1.3) are post-processing: they cost no privacy.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.errors import ConfigError, DataError
from cloister.records import FloatArray

_NOT_FINITE = (
    "records must be finite numbers; got NaN or infinity in at least one record. Clean or drop such records first."
)


def check_centres(centres: FloatArray) -> FloatArray:
    """Return the centres as a C-contiguous float64 array of shape (k, d), all finite."""
    centres = np.ascontiguousarray(centres, dtype=np.float64)
    if centres.ndim != 2 or centres.size == 0:
        raise ConfigError(
            f"centres must be an array of shape (k, d) with k, d >= 1; got shape {centres.shape}. "
            "Give at least one centre."
        )
    if not np.isfinite(centres).all():
        raise ConfigError("centres must be finite; got NaN or infinity. Check the update that made them.")
    return centres


def check_points(points: NDArray[Any], dimensions: int | None = None) -> NDArray[Any]:
    """Return the points as a C-contiguous array of shape (n, d), float64 or float32; does not read them."""
    if points.ndim != 2 or (dimensions is not None and points.shape[1] != dimensions):
        raise ConfigError(
            f"records must have shape (n, {'d' if dimensions is None else dimensions}), as many columns as "
            f"the centres; got {points.shape}. Use records and centres of the same columns."
        )
    if points.dtype not in (np.float64, np.float32):
        raise ConfigError(f"records must be float64 or float32; got {points.dtype}. Convert them with astype(float).")
    return np.ascontiguousarray(points)


def check_finite_points(points: NDArray[Any], dimensions: int | None = None) -> FloatArray:
    """Return the points as a C-contiguous float64 array of shape (n, d), all finite."""
    points = check_points(points, dimensions)
    if not np.isfinite(points).all():
        raise DataError(_NOT_FINITE)
    return points.astype(np.float64, copy=False)


def check_finite_loss(loss: float) -> None:
    """Raise if a loss shows that some record was not finite; cheaper than to look at each."""
    if not np.isfinite(loss):
        raise DataError(_NOT_FINITE)


def check_weights(weights: FloatArray, records: int) -> FloatArray:
    """Return the weights as float64, one for each record, none negative, all finite."""
    weights = np.ascontiguousarray(weights, dtype=np.float64)
    if weights.shape != (records,):
        raise ConfigError(
            f"weights must be one number for each of {records} records; got shape {weights.shape}. "
            "Give as many weights as records."
        )
    if not (np.isfinite(weights).all() and (weights >= 0).all()):
        raise ConfigError(
            "weights must be finite and at least 0; got some that are not. Truncate noisy weights at 0 first."
        )
    return weights


def check_at_least(name: str, value: int, least: int) -> None:
    """Raise unless a count is at least so large."""
    if value < least:
        raise ConfigError(f"{name} must be at least {least}; got {value}. Give a larger number.")


def truncate(values: FloatArray, low: float, high: float) -> FloatArray:
    """Move each value outside [low, high] to the nearest bound: ``max(min(x, high), low)``."""
    return np.clip(_check_values(values, low, high), low, high)


def fold(values: FloatArray, low: float, high: float) -> FloatArray:
    """Reflect each value outside [low, high] at the bound that it passed, as often as it takes to be inside.

    ``x < low`` becomes ``2 low - x`` and ``x > high`` becomes ``2 high - x``. The thesis writes one
    reflection; noise larger than the domain's width needs more, and all of them together are a triangle wave
    of period 2 (high - low). Values inside are returned as they are.
    """
    values = _check_values(values, low, high)
    width = high - low
    phase = np.mod(values - low, 2.0 * width)
    reflected = np.clip(low + np.where(phase > width, 2.0 * width - phase, phase), low, high)
    folded: FloatArray = np.where((values >= low) & (values <= high), values, reflected)
    return folded


def _check_values(values: FloatArray, low: float, high: float) -> FloatArray:
    """Return the values as float64, all finite, if the bounds make an interval."""
    values = np.asarray(values, dtype=np.float64)
    if not (low < high and np.isfinite(high - low)):
        raise ConfigError(f"low must be less than high, both finite; got {low} and {high}. Swap the bounds.")
    if not np.isfinite(values).all():
        raise ConfigError("values must be finite; got NaN or infinity. Check the noise that was added.")
    return values
