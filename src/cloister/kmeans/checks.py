"""The conditions on arrays that all of this package asks for, each with one message."""

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
