"""The public values of a synopsis: the queries, the budget, and what is sent when."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Annotated, ClassVar, Final

from msgspec import Meta

from cloister.columns import Coordinate, list_levels
from cloister.job.refusals import check_fields, refuse
from cloister.protocols.guided_sums.refinement import list_rounds
from cloister.protocols.guided_sums.settings import (
    BUDGET_UNITS,
    CLUSTERS_MOST,
    GuidedSettings,
    RoundLimits,
    Slot,
    require,
)
from cloister.protocols.guided_sums.statistics import Moments, list_size_slots, moments_length
from cloister.protocols.synopsis.questions import BOX_BINS, NORM_BINS, Columns, Histogram, Lengths, Middle
from cloister.protocols.synopsis.zoom_questions import SCALED, Bounds, Locate, Measure

SYNOPSIS: Final = "synopsis"
"""The protocol's name, in jobs, in results and on the wire."""
AXES_PER_CLUSTER = 2
"""k centres span k - 1 directions; noise mixes these with others, so as many again are kept."""
DIRECT_DIMENSIONS = 5
"""Up to this many columns the grid is laid on the columns themselves: 6000 cells still give each at least five bins."""
ZOOMS = 4
"""Looks at where columns lie: bounds may be 2^-40 of what they were afterwards."""
BEFORE_HISTOGRAM_MOST = 0.75
"""Of the budget: with more, a scale leaves too little for the histogram and the rounds."""
SIGNAL_LEAST = 100.0
"""Of `Settings.measure_signal`: with less, bounds that nobody knows are not found."""
SIGNAL_GUESS, SIGNAL_GOOD = 60.0, 300.0
"""Below the first a scale is a guess; from the second on it costs at most 2 % in most tables."""
_MOMENTS_LEAST = 0.05  # what the shares before them must leave below `BEFORE_HISTOGRAM_MOST`
Share = Annotated[float, Meta(ge=1e-4, le=0.99)]
Rounds = Annotated[int, Meta(ge=1, le=50)]


@dataclass(frozen=True, kw_only=True)
class Knobs:
    """Advanced settings. The defaults were tuned on synthetic families (docs/study-synopsis.md); few need others.

    Parameters
    ----------
    count_share, box_share, middle_share, norm_share, moment_share
        Parts of the budget for the number of records, the box around them, their middle, their distances from it, and
        (at most) their second moments. With ``scale = "spread"`` there is no box and no middle.
    bounds_share, locate_share, measure_share
        With ``scale = "spread"``: for how large columns are that have no bounds, for each of four looks at where
        columns lie, and for how they spread.
    bounds_most, locate_most, measure_most
        What these are raised to at most where records are few.
    histogram_share_direct, histogram_share_projected
        Parts of what is then left for the histogram, in a subspace at most; the rest goes to the rounds of Lloyd's
        algorithm.
    cells_max
        The most cells of the histogram, and the length of its vector.
    rounds_min, rounds_max
        The least and the most rounds of Lloyd's algorithm.
    restarts
        How often the cells are clustered from another start.
    """

    count_share: Share = 0.01
    box_share: Share = 0.05
    middle_share: Share = 0.03
    norm_share: Share = 0.03
    moment_share: Share = 0.30
    bounds_share: Share = 0.02
    bounds_most: Share = 0.15
    locate_share: Share = 0.015
    locate_most: Share = 0.05
    measure_share: Share = 0.05
    measure_most: Share = 0.15
    histogram_share_direct: Share = 0.50
    histogram_share_projected: Share = 0.35
    cells_max: Annotated[int, Meta(ge=16, le=10**6)] = 6000
    rounds_min: Rounds = 2
    rounds_max: Rounds = 8
    restarts: Annotated[int, Meta(ge=1, le=1000)] = 20

    def __post_init__(self) -> None:
        check_fields((SYNOPSIS,), self)
        first = self.count_share + max(self.box_share, self.middle_share + self.norm_share + self.moment_share)
        if first > 0.95:
            got = f"{first:g} before the histogram"
            refuse((SYNOPSIS,), "leave 0.05 of the budget for the histogram and the rounds", got, "Lower a share.")
        if self.rounds_min > self.rounds_max:
            got = f"rounds_min = {self.rounds_min}, rounds_max = {self.rounds_max}"
            refuse((SYNOPSIS, "rounds_max"), "be at least rounds_min", got, "Raise it, or lower rounds_min.")


@dataclass(frozen=True, kw_only=True)
class Settings(GuidedSettings):
    """The settings of one synopsis; with ``choose_k``, ``clusters`` is the maximum.

    Parameters
    ----------
    choose_k
        Let the synopsis decide how many clusters there are.
    knobs
        Advanced settings.
    """

    protocol: ClassVar[str] = SYNOPSIS
    choose_k: bool = False
    knobs: Knobs = field(default_factory=Knobs)

    def __post_init__(self) -> None:
        super().__post_init__()
        require(not self.choose_k or self.clusters >= 2, "clusters", f"from 2 to {CLUSTERS_MOST}", self.clusters)

    @property
    def round_limits(self) -> RoundLimits:
        """The limits of the rounds of Lloyd's algorithm."""
        return RoundLimits(least=self.knobs.rounds_min, most=self.knobs.rounds_max)

    @property
    def may_project(self) -> bool:
        """Whether the grid may be in a subspace; with few columns it never is."""
        return self.dimensions > DIRECT_DIMENSIONS

    def measure_signal(self, records: float) -> float:
        """Return v = n mu / sqrt(d): the records over the noise, had a histogram of each column the whole budget."""
        return float(records * self.signal(BUDGET_UNITS) / self.dimensions**0.5)

    @property
    def grid_axes_most(self) -> int:
        """The most axes of a subspace in which the grid may be laid; 0 where it never is.

        Each k-means centre spans two at most. All but the first have two cells at least, and cells multiply.
        """
        if not self.may_project:
            return 0
        return min(self.dimensions, AXES_PER_CLUSTER * self.clusters, self.knobs.cells_max.bit_length())

    @property
    def slots(self) -> tuple[Slot, ...]:
        """Every round of the session in order. A round that turns out not to be needed is sent as zeros."""
        d = self.dimensions
        slots = [*list_size_slots(self)]
        if self.may_project:
            slots.append(Slot(name="sum and number of all records", length=d + 1, kind=Middle))
            slots.append(Slot(name="histogram of distances from the middle", length=NORM_BINS, kind=Lengths))
            slots.append(Slot(name="sums and second moments", length=moments_length(d), kind=Moments))
        else:
            slots.append(Slot(name="histogram of each column", length=BOX_BINS * d, kind=Columns))
        slots.append(Slot(name="histogram", length=self.knobs.cells_max, kind=Histogram))
        return (*slots, *list_rounds(self))


def describe_signal(signal: float) -> str:
    """Say whether the records are strong enough beside the noise to find the scale."""
    if signal < SIGNAL_GUESS:
        return (
            f"The scale is a guess: records and budget are too weak to find it, {signal:.0f} of at least "
            f'{SIGNAL_GUESS:g}. With good bounds, scale = "bounds" in [data] does better.'
        )
    how = "" if signal >= SIGNAL_GOOD else " roughly"
    return (
        f"Strong enough to find the scale{how}: {signal:,.0f} (from {SIGNAL_GOOD:g} on mostly within 2 % of the loss "
        "that the right scale has)."
    )


@dataclass(frozen=True, kw_only=True)
class SpreadSettings(Settings):
    """The settings of a synopsis that scales columns by a spread which it releases.

    Parameters
    ----------
    axes
        What is public about each column.
    """

    axes: tuple[Coordinate, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        require(len(self.axes) == self.dimensions, "axes", "one for each column", len(self.axes))
        require(not self.client_level, "scale", '"bounds" with unit = "client"', '"spread"')
        knobs = self.knobs
        before = knobs.count_share + knobs.norm_share + ZOOMS * max(knobs.locate_share, knobs.locate_most)
        before += max(knobs.measure_share, knobs.measure_most)
        before += max(knobs.bounds_share, knobs.bounds_most) if self.any_private else 0.0
        most = BEFORE_HISTOGRAM_MOST - _MOMENTS_LEAST
        require(before <= most, "the shares before moments and histogram", f"at most {most:g}", f"{before:g}")

    @property
    def scaled(self) -> bool:
        """They are."""
        return True

    @property
    def any_private(self) -> bool:
        """Whether nobody knows the bounds of some column."""
        return any(axis.private for axis in self.axes)

    @property
    def slots(self) -> tuple[Slot, ...]:
        """Every round of the session in order. A round that turns out not to be needed is sent as zeros."""
        numbers = sum(not axis.is_level for axis in self.axes)
        levels = sum(max(len(places), 2) for places in list_levels(self.axes))
        slots = [*list_size_slots(self)]
        private = sum(axis.private for axis in self.axes)
        if private:
            slots.append(Slot(name="range of each column", length=Bounds.bins * private, kind=Bounds))
        for zoom in range(1, ZOOMS + 1):
            slots.append(Slot(name=f"zoom {zoom} on each column", length=max(1, Locate.bins * numbers), kind=Locate))
        slots.append(Slot(name="spread of each column", length=Measure.bins * numbers + levels, kind=Measure))
        scaled = [(SCALED.get(slot.kind), slot) for slot in super().slots]  # type: ignore[arg-type]
        return (*slots, *(replace(slot, kind=kind) for kind, slot in scaled if kind is not None))
