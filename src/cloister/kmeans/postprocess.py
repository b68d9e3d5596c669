"""Bring noisy values back into their domain (thesis 6.1.3). Post-processing: it costs no privacy."""

from __future__ import annotations

import numpy as np

from cloister.errors import ConfigError
from cloister.records import FloatArray


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
