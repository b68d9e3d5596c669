"""How each column spreads: histograms that zoom in on its values, and the scale that follows from them.

Bounds are chosen without the records, so they may be far too wide, and their width would decide how much a column
counts. So the scale is released: a few rounds find a window around nearly all values of each column (`Locate`), one
counts them there (`Measure`), and their mean and deviation are the centre and the spread. Where nobody knows bounds, a
round before that finds how large values are (`Bounds`). Rounds whose noise would decide are idle, and cost nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt, log, sqrt

import numpy as np
from numpy.typing import NDArray

from cloister.columns import CLIP, Scale, least_spread, level_spread, list_levels, take_bounds
from cloister.protocols.guided_sums.postprocessing import estimate_counts
from cloister.protocols.guided_sums.query import IDLE, Asking, PublicValues, pose
from cloister.protocols.guided_sums.settings import BUDGET_UNITS
from cloister.protocols.synopsis.settings import ZOOMS, SpreadSettings
from cloister.protocols.synopsis.zoom_questions import (
    LEAST_POWER,
    LOCATE_BINS,
    MEASURE_BINS,
    MOST_POWER,
    OUTER_BINS,
    OUTER_EDGES,
    Bounds,
    Locate,
    Measure,
)
from cloister.records import FloatArray, IntArray
from cloister.wire import Array

BoolArray = NDArray[np.bool_]

_LEAST_SIGNAL = 12.0  # records over the noise in a bin: with less, the noise would decide
_LOCATE_SIGNAL, _MEASURE_SIGNAL = 30.0, 60.0  # what shares are raised for, where records are few
_MOST = 0.97  # of a column's values that a window holds
_DOUBT = 1.5  # deviations of the noise by which a window may hold less
_WIDE, _NARROW = LOCATE_BINS // 2, 4  # bins up to which a window is moved, and the next one is looked for in it
_MARGIN = 4  # a window is widened by its width over this on each side
_CONSTANT_DOUBT, _CONSTANT_SIGNAL = 2.0, 30.0
_OUTER_LEAST = 3.3  # deviations from which an outer bin counts, at least
_HULL = 0.25  # deviations from which a bin is in the box
_BITS, _STEPS = 16, 64  # a spread has four significant bits, and a centre is a multiple of a 64th of it
_STANDS_OUT = 4.75  # deviations from which a bin of magnitudes holds records: a false alarm in a million bins


@dataclass(frozen=True, kw_only=True, eq=False)
class FoundScale:
    """A scale, where the records are in it, and what it cost to find out.

    Attributes
    ----------
    scale
        The map.
    low, high
        A box around the records, scaled.
    l2_squared
        The price of all its questions.
    """

    scale: Scale
    low: FloatArray
    high: FloatArray
    l2_squared: int


@dataclass(frozen=True, kw_only=True, eq=False)
class Windows:
    """What is known of the columns so far.

    Attributes
    ----------
    low, high
        A window on each.
    open
        Those whose values may all be in a small part of theirs.
    lost
        Those of which nothing was found.
    missing
        About how many cells are missing in each.
    l2_squared
        What it cost.
    """

    low: FloatArray
    high: FloatArray
    open: IntArray
    lost: IntArray
    missing: FloatArray
    l2_squared: int = 0


def find_scale(settings: SpreadSettings, *, records: float) -> Asking[FoundScale]:
    """Find a scale, at most for what the knobs allow.

    Privacy
    -------
    As `Bounds`, `Locate` and `Measure`; a scale is a function of their totals.
    """
    windows = yield from find_windows(settings, records=records)
    for zoom in range(ZOOMS):
        windows = yield from _locate(settings, windows, records=records, name=f"zoom {zoom + 1} on each column")
    return (yield from _measure(settings, windows, records=records))


def _raise_share(
    settings: SpreadSettings, share: float, most: float, *, wanted: float, columns: int, records: float
) -> int:
    """Return a share with which a column's records are ``wanted`` times the noise in a bin, at most ``most``."""
    needed = columns * (wanted / (records * settings.signal(BUDGET_UNITS))) ** 2
    return int(max(share, min(most, needed)) * BUDGET_UNITS)


def find_windows(settings: SpreadSettings, *, records: float) -> Asking[Windows]:
    """Return the bounds of the columns; for those that have none, release how large their values are.

    Privacy
    -------
    As `Bounds`.
    """
    axes, d, knobs = settings.axes, settings.dimensions, settings.knobs
    low, high, _ = take_bounds(axes)
    asked = np.array([j for j in range(d) if axes[j].private], dtype=np.int64)
    numbers = np.array([j for j in range(d) if not axes[j].is_level], dtype=np.int64)
    lost, l2_squared = np.zeros(0, dtype=np.int64), 0
    if asked.size:
        m = len(asked)
        share = _raise_share(
            settings, knobs.bounds_share, knobs.bounds_most, wanted=_MEASURE_SIGNAL, columns=m, records=records
        )
        question = Bounds(share=share, columns=Array.of(asked))
        total = yield pose(PublicValues(settings=settings), "range of each column", question)
        height = isqrt(share // m)
        l2_squared = m * height**2
        stands_out = total.reshape(m, Bounds.bins) > _STANDS_OUT * settings.noise_std
        low[asked], high[asked], found = _read_bounds(stands_out)
        lost = asked[~found]
    return Windows(
        low=low,
        high=high,
        open=np.setdiff1d(numbers, lost),
        lost=lost,
        missing=np.zeros(d),
        l2_squared=l2_squared,
    )


def _read_bounds(stands_out: BoolArray) -> tuple[FloatArray, FloatArray, BoolArray]:
    """Return the outermost bins that hold records, and one more on each side; and whether any but that of 0 does."""
    powers = 2.0 ** np.arange(LEAST_POWER, MOST_POWER + 1)
    edges = np.concatenate([-powers[::-1], powers])
    found = np.asarray(np.delete(stands_out, len(powers) - 1, axis=1).any(axis=1))
    first = np.maximum(stands_out.argmax(axis=1) - 1, 0)
    last = np.minimum(stands_out.shape[1] - stands_out[:, ::-1].argmax(axis=1), stands_out.shape[1] - 1)
    return edges[first], edges[last + 1], found


def _locate(settings: SpreadSettings, windows: Windows, *, records: float, name: str) -> Asking[Windows]:
    """Look where the values of columns lie that are still open, and move their windows there.

    Privacy
    -------
    As `Locate`.
    """
    knobs, columns = settings.knobs, windows.open
    m = len(columns)
    if not m:
        yield IDLE
        return windows
    share = _raise_share(
        settings, knobs.locate_share, knobs.locate_most, wanted=_LOCATE_SIGNAL, columns=m, records=records
    )
    height = isqrt(share // m)
    noise_std = settings.noise_std / max(height, 1)
    if height == 0 or records < _LEAST_SIGNAL * noise_std:
        yield IDLE
        return _close(windows)
    low, high = windows.low[columns], windows.high[columns]
    question = Locate(share=share, columns=Array.of(columns), low=Array.of(low), high=Array.of(high))
    total = yield pose(PublicValues(settings=settings), name, question)
    counts = total.reshape(m, Locate.bins) / height
    missing, lows, highs, still = windows.missing.copy(), windows.low.copy(), windows.high.copy(), []
    missing[columns] = np.clip(counts[:, -1], 0.0, records)
    for row, j in zip(counts, columns.tolist(), strict=True):
        first, width = _find_run(row[:LOCATE_BINS], _MOST * (records - missing[j]), noise_std)
        if width > _WIDE:
            continue
        if width <= _NARROW:
            still.append(j)
        margin = max(1.0, width / _MARGIN)
        side = (highs[j] - lows[j]) / LOCATE_BINS
        axis = settings.axes[j]
        start = lows[j]
        lows[j] = max(axis.low, start + (first - margin) * side)
        highs[j] = min(axis.high, start + (first + width + margin) * side)
        if highs[j] - lows[j] < LOCATE_BINS * least_spread(axis):
            still = [one for one in still if one != j]  # no narrower window is told apart
    return Windows(
        low=lows,
        high=highs,
        open=np.array(still, dtype=np.int64),
        lost=windows.lost,
        missing=missing,
        l2_squared=windows.l2_squared + m * height**2,
    )


def _close(windows: Windows) -> Windows:
    return Windows(
        low=windows.low,
        high=windows.high,
        open=np.zeros(0, dtype=np.int64),
        lost=windows.lost,
        missing=windows.missing,
        l2_squared=windows.l2_squared,
    )


def _find_run(counts: FloatArray, most: float, noise_std: float) -> tuple[int, int]:
    """Return the first bin and the width of the shortest run that holds so many records; a wider one if none does."""
    cumulated = np.concatenate([[0.0], np.cumsum(counts)])
    for width in range(1, len(counts) + 1):
        sums = cumulated[width:] - cumulated[:-width]
        best = int(sums.argmax())
        if sums[best] + _DOUBT * noise_std * sqrt(width) >= most:
            return best, width
    return 0, len(counts) + 1


def _measure(settings: SpreadSettings, windows: Windows, *, records: float) -> Asking[FoundScale]:
    """Release how the columns spread on their windows; where noise would decide, the windows are the scale.

    Privacy
    -------
    As `Measure`.
    """
    knobs, axes, levels = settings.knobs, settings.axes, list_levels(settings.axes)
    numbers = [j for j in range(settings.dimensions) if not axes[j].is_level]
    columns = np.setdiff1d(numbers, windows.lost).astype(np.int64)
    m = len(columns) + len(levels)
    share = _raise_share(
        settings, knobs.measure_share, knobs.measure_most, wanted=_MEASURE_SIGNAL, columns=max(m, 1), records=records
    )
    height = isqrt(share // max(m, 1))
    noise_std = settings.noise_std / max(height, 1)
    low, high = windows.low, windows.high
    centre, spread = (low + high) / 2, (high - low) / (2 * CLIP)
    lows, highs = low.copy(), high.copy()
    spread[windows.lost], l2_squared = 0.0, windows.l2_squared
    for place in (place for places in levels for place in places):
        spread[place] = level_spread(axes[place])
    if not m or height == 0 or records < _LEAST_SIGNAL * noise_std:
        yield IDLE
    else:
        ends = low[columns], high[columns]
        question = Measure(share=share, columns=Array.of(columns), low=Array.of(ends[0]), high=Array.of(ends[1]))
        total = yield pose(PublicValues(settings=settings), "spread of each column", question)
        l2_squared += m * height**2
        counts = total[: len(columns) * Measure.bins].reshape(-1, Measure.bins) / height
        if columns.size:
            held = records - windows.missing[columns]
            seen = _Seen.of(counts, noise_std, low=ends[0], high=ends[1])
            centre[columns], spread[columns] = seen.means, np.where(seen.is_constant(held), 0.0, seen.deviations)
            lows[columns], highs[columns] = seen.low, seen.high
        _centre_levels(levels, total[counts.size :] / height, centre)
    scale = _round_scale(settings, centre, spread)
    ends_scaled = scale.encode(np.stack([lows, highs]))
    return FoundScale(scale=scale, low=ends_scaled[0], high=ends_scaled[1], l2_squared=l2_squared)


def _centre_levels(levels: tuple[tuple[int, ...], ...], counts: FloatArray, centre: FloatArray) -> None:
    """Put the centre of a level at its share of the records."""
    first = 0
    for places in levels:
        some = np.maximum(counts[first : first + max(len(places), 2)], 0.0)
        first += len(some)
        shares = some / some.sum() if some.any() else np.full(len(some), 1 / len(some))
        centre[list(places)] = shares[-len(places) :]


@dataclass(frozen=True, kw_only=True, eq=False)
class _Seen:
    """What the histograms of the columns show, in original units, (m,) each."""

    means: FloatArray
    deviations: FloatArray
    low: FloatArray
    high: FloatArray
    fullest: FloatArray
    noise_std: float

    @classmethod
    def of(cls, counts: FloatArray, noise_std: float, *, low: FloatArray, high: FloatArray) -> _Seen:
        """Read the counts of `Measure`, with this noise."""
        m = len(counts)
        inner = slice(OUTER_BINS, OUTER_BINS + MEASURE_BINS)
        held = np.where(counts > max(_OUTER_LEAST, sqrt(2 * log(2 * OUTER_BINS * m))) * noise_std, counts, 0.0)
        within = estimate_counts(counts[:, inner].ravel(), noise_std, level=0.0).means.reshape(m, MEASURE_BINS)
        held[:, inner] = within
        beyond = np.concatenate([OUTER_EDGES, [2 * OUTER_EDGES[-1] + 2]])
        edges = np.concatenate([-beyond[::-1], np.arange(MEASURE_BINS + 1.0), MEASURE_BINS + beyond])
        side = (high - low) / MEASURE_BINS
        mass = np.maximum(held.sum(axis=1), 1e-300)
        middles = (edges[1:] + edges[:-1]) / 2
        means = np.where(held.any(axis=1), held @ middles / mass, MEASURE_BINS / 2)
        variances = (held * (middles - means[:, None]) ** 2).sum(axis=1) / mass
        full = held > _HULL * noise_std
        first, last = full.argmax(axis=1), full.shape[1] - full[:, ::-1].argmax(axis=1)
        some = full.any(axis=1)
        return cls(
            means=low + side * means,
            deviations=side * np.sqrt(np.maximum(variances - 1 / 12, 1 / 12)),
            low=np.where(some, low + side * edges[first], low),
            high=np.where(some, low + side * edges[last], high),
            fullest=counts[:, inner].max(axis=1),
            noise_std=noise_std,
        )

    def is_constant(self, held: FloatArray) -> FloatArray:
        """Whether nearly all of a column's values, about ``held``, are in one bin."""
        sure = held >= _CONSTANT_SIGNAL * self.noise_std
        return np.asarray(sure & (self.fullest >= _MOST * held - _CONSTANT_DOUBT * self.noise_std))


def _round_scale(settings: SpreadSettings, centre: FloatArray, spread: FloatArray) -> Scale:
    """Return the scale as it is stated: four significant bits of a spread, and centres in 64ths of it."""
    low, high, least = take_bounds(settings.axes)
    mantissas, exponents = np.frexp(spread)
    rounded = np.ldexp(np.rint(mantissas * _BITS) / _BITS, exponents)
    public = np.array([axis.is_level for axis in settings.axes])
    rounded = np.where(public, spread, rounded)
    rounded = np.where(spread > 0, np.clip(rounded, least, high - low), 0.0)
    steps = rounded / _STEPS
    moved = np.where(rounded > 0, np.rint(centre / np.where(rounded > 0, steps, 1.0)) * steps, centre)
    return Scale(
        axes=settings.axes,
        centre=tuple(np.clip(moved, low, high).tolist()),
        spread=tuple(rounded.tolist()),
        grid=settings.fixed_point,
    )
