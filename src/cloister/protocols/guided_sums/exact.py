"""Offsets as whole numbers: what one record adds must not depend on the records that lie beside it.

A product of two matrices of doubles rounds a row in another way when there are more rows (whole tiles, tails and single
rows run through different code). A record on the border between two cells would then change its cell because another
record was added, and one record would move two. Sums of whole numbers below 2^53 are exact in any order, so here
everything that decides where a record counts is made of them.
"""

from __future__ import annotations

import numpy as np

from cloister.records import FloatArray

UNITS = 2.0**20
"""Units in 1. With x and origin in [-1, 1]^d and d <= 2000, |x - origin|^2 <= 4 d UNITS^2 < 2^53."""
_AXIS_UNITS = 2.0**25  # |x - origin| |axis| <= 2 sqrt(d) 2^20 (2^25 + sqrt(d)/2) < 2^52, and so is any part of the sum


def count_offsets(points: FloatArray, origin: FloatArray) -> FloatArray:
    """Return the offsets from the origin in whole units, (n, d)."""
    offsets: FloatArray = np.rint((points - origin) * UNITS)
    return offsets


def measure_lengths(offsets: FloatArray) -> FloatArray:
    """Return the length of each offset, in units, (n,)."""
    lengths: FloatArray = np.sqrt((offsets**2).sum(axis=1))
    return lengths


def project_offsets(offsets: FloatArray, axes: FloatArray) -> FloatArray:
    """Return the coordinates along unit vectors, (d, m), in [-1, 1] scaling, (n, m)."""
    coordinates: FloatArray = (offsets @ np.rint(axes * _AXIS_UNITS)) / (UNITS * _AXIS_UNITS)
    return coordinates
