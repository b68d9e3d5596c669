"""The questions that find how columns spread: where their values lie, how they spread, and how large they are.

Each is a histogram of several columns at once, of values in original units within the columns' bounds. The bins, with
those for what is outside and what is missing, are disjoint: a record is in one of each column, or in none.
"""

from __future__ import annotations

from collections.abc import Callable
from math import isqrt
from typing import ClassVar, Self

import numpy as np

from cloister.columns import Coordinate, list_levels, take_bounds
from cloister.protocols.guided_sums.query import (
    SHARE_MOST,
    Form,
    PublicValues,
    Question,
    Share,
    largest_array,
)
from cloister.protocols.guided_sums.refinement import Offsets
from cloister.protocols.guided_sums.scaling import Scaled, encode_stored
from cloister.protocols.guided_sums.settings import require
from cloister.protocols.guided_sums.statistics import Moments
from cloister.protocols.synopsis.questions import Histogram, Lengths
from cloister.records import FloatArray, IntArray, Records, iterate_chunks
from cloister.wire import Array

LOCATE_BINS, MEASURE_BINS, OUTER_BINS = 64, 32, 6
"""Equal bins of a window; bins beyond each side of it where it is measured, each twice as wide as the one before."""
LEAST_POWER, MOST_POWER = -24, 44
"""Of two: magnitudes below the first count as 0, those from the second on as the largest."""
POWERS = MOST_POWER - LEAST_POWER
OUTER_EDGES = 2.0 * (2.0 ** np.arange(1, OUTER_BINS) - 1.0)
"""Ends of the outer bins, in bins from the window; the last is open."""

Binning = Callable[[FloatArray], IntArray]
"""From values, (n, m), to each one's bin; -1 for none."""


class Binned(Question, frozen=True, kw_only=True):
    """A histogram of each of m columns.

    Privacy
    -------
    A record adds a to at most one bin of each of m columns: squared L2 norm m a^2 <= share.
    """

    bins: ClassVar[int]
    share: Share
    columns: Array
    """Which, rising."""

    def form(self, public: PublicValues) -> Form:
        """Count."""
        settings = public.settings
        require(not settings.client_level, "a histogram of columns' values", "about records", "parties")
        m = self.columns.shape[0] if self.columns.shape else 0
        columns: IntArray = self.columns.to_numpy(np.int64, m)
        rising = bool((np.diff(columns) > 0).all() and ((columns >= 0) & (columns < settings.dimensions)).all())
        require(rising, "a question's columns", "the session's, rising", "others")
        levels = self.list_levels(settings.axes)
        histograms = m + len(levels)
        require(histograms >= 1, "the number of a question's columns", "at least 1", histograms)
        height, bins = isqrt(self.share // histograms), self.bins
        require(height >= 1, "the share of a question about columns", f"at least {histograms}", self.share)
        binning = self.choose_bins(tuple(settings.axes[j] for j in columns))

        def measure(party: Records) -> IntArray:
            counts = np.zeros(m * bins, dtype=np.int64)
            of_levels = [np.zeros(max(len(places), 2), dtype=np.int64) for places in levels]
            for values in iterate_chunks(encode_stored(party, settings.axes), fill=None):
                found = binning(values[:, columns])
                places = found + bins * np.arange(m)
                counts += np.bincount(places[found >= 0], minlength=m * bins)
                for place, chosen in enumerate(levels):
                    of_levels[place] += count_levels(values[:, chosen])
            return height * np.concatenate([counts, *of_levels])

        length = m * bins + sum(max(len(places), 2) for places in levels)
        return Form(length=length, l2_squared=histograms * height**2, measure=measure)

    def list_levels(self, axes: tuple[Coordinate, ...]) -> tuple[tuple[int, ...], ...]:
        """Return the coordinates of each category whose levels are counted, too."""
        return ()

    def choose_bins(self, axes: tuple[Coordinate, ...]) -> Binning:
        """Check the range, and return which bin a value is in."""
        raise NotImplementedError


def count_levels(values: FloatArray) -> IntArray:
    """Return how many records have each level: each is in the first whose coordinate is above 1/2, or in none.

    Of a single coordinate, 0 or 1, both are levels.
    """
    here = ~np.isnan(values).any(axis=1)
    if values.shape[1] == 1:
        values = np.concatenate([1.0 - values, values], axis=1)
    above = values > 0.5
    first = above.argmax(axis=1)[here & above.any(axis=1)]
    return np.bincount(first, minlength=values.shape[1])


class Windows(Binned, frozen=True, kw_only=True):
    """A histogram of each column on a window of it."""

    low: Array
    high: Array

    def take_windows(self, axes: tuple[Coordinate, ...]) -> tuple[FloatArray, FloatArray]:
        """Return the windows' ends: within the bounds, and wide enough to be cut."""
        low, high = (ends.to_numpy(np.float64, len(axes)) for ends in (self.low, self.high))
        least, most, width = take_bounds(axes)
        wide = (low >= least) & (high <= most) & (high - low >= width)
        require(bool(wide.all()), "a question's windows", "within the bounds, and wide enough", "others")
        return low, high

    @classmethod
    def largest(cls, public: PublicValues) -> Self:
        """Return the longest."""
        d = public.settings.dimensions
        ends = largest_array(d)
        return cls(share=SHARE_MOST, columns=largest_array(d, dtype=np.int64), low=ends, high=ends)


class Locate(Windows, frozen=True, kw_only=True):
    """Where columns' values lie: bins on a window, two for what is outside, one for what is missing."""

    bins = LOCATE_BINS + 3

    def choose_bins(self, axes: tuple[Coordinate, ...]) -> Binning:
        """Return which bin a value is in."""
        low, high = self.take_windows(axes)

        def find(values: FloatArray) -> IntArray:
            places = (values - low) * (LOCATE_BINS / (high - low))
            found = np.clip(places, 0, LOCATE_BINS - 1).astype(np.int64)
            found[values < low] = LOCATE_BINS
            found[values > high] = LOCATE_BINS + 1
            found[np.isnan(values)] = LOCATE_BINS + 2
            return found

        return lambda values: _without_warnings(find, values)


class Measure(Windows, frozen=True, kw_only=True):
    """How columns' values spread: bins on a window, and six to each side, the last of them open; and all levels.

    A category is one histogram, with a bin for each level.
    """

    bins = MEASURE_BINS + 2 * OUTER_BINS

    def list_levels(self, axes: tuple[Coordinate, ...]) -> tuple[tuple[int, ...], ...]:
        """Return the coordinates of each category and boolean."""
        return list_levels(axes)

    def choose_bins(self, axes: tuple[Coordinate, ...]) -> Binning:
        """Return which bin a value is in; a missing one is in none."""
        low, high = self.take_windows(axes)
        width = (high - low) / MEASURE_BINS

        def find(values: FloatArray) -> IntArray:
            places = (values - low) / width
            found = OUTER_BINS + np.clip(places, 0, MEASURE_BINS - 1).astype(np.int64)
            below, above = values < low, values > high
            beyond = (values - high) / width
            found[below] = OUTER_BINS - 1 - np.searchsorted(OUTER_EDGES, -places[below], side="right")
            found[above] = OUTER_BINS + MEASURE_BINS + np.searchsorted(OUTER_EDGES, beyond[above], side="right")
            found[np.isnan(values)] = -1
            return found

        return lambda values: _without_warnings(find, values)


class Bounds(Binned, frozen=True, kw_only=True):
    """How large columns' values are: bins between powers of two, of both signs, and one around 0."""

    bins = 2 * POWERS + 1

    def choose_bins(self, axes: tuple[Coordinate, ...]) -> Binning:
        """Return which bin a value is in; a missing one is in none."""

        def find(values: FloatArray) -> IntArray:
            powers = np.clip(np.frexp(values)[1] - 1 - LEAST_POWER, 0, POWERS - 1).astype(np.int64)
            found = np.where(values < 0, POWERS - 1 - powers, POWERS + 1 + powers)
            found[np.abs(values) < 2.0**LEAST_POWER] = POWERS
            found[np.isnan(values)] = -1
            return np.asarray(found, dtype=np.int64)

        return find

    @classmethod
    def largest(cls, public: PublicValues) -> Self:
        """Return the longest."""
        return cls(share=SHARE_MOST, columns=largest_array(public.settings.dimensions, dtype=np.int64))


def _without_warnings(find: Binning, values: FloatArray) -> IntArray:
    with np.errstate(invalid="ignore"):  # a missing cell has no bin among the others; it is set afterwards
        return find(values)


class ScaledLengths(Scaled, frozen=True, kw_only=True):
    """Distances of scaled records from a middle."""

    inner = Lengths
    question: Lengths


class ScaledMoments(Scaled, frozen=True, kw_only=True):
    """Second moments of scaled records."""

    inner = Moments
    question: Moments


class ScaledHistogram(Scaled, frozen=True, kw_only=True):
    """Scaled records in cells."""

    inner = Histogram
    question: Histogram


class ScaledOffsets(Scaled, frozen=True, kw_only=True):
    """A step of Lloyd's algorithm on scaled records."""

    inner = Offsets
    question: Offsets


SCALED: dict[type[Question], type[Scaled]] = {
    kind.inner: kind for kind in (ScaledLengths, ScaledMoments, ScaledHistogram, ScaledOffsets)
}
