"""The public values of a synopsis: what is asked, what may be spent, and what goes over the wire when."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Final

from cloister.protocols.guided_sums.moments import moments_length
from cloister.protocols.guided_sums.refinement import list_rounds
from cloister.protocols.guided_sums.settings import CLUSTERS_MOST, GuidedSettings, RoundLimits, Slot, require
from cloister.protocols.guided_sums.size import count_slot_length

SYNOPSIS: Final = "synopsis"
"""The protocol's name, in jobs, in results and on the wire."""
DIRECT_DIMENSIONS = 5
"""Up to so many columns the grid is laid on the columns themselves: 6000 cells are still five bins or more on each."""
BOX_BINS = 16
"""Of each column's histogram: bounds may be cut to a sixteenth; narrower bins hold fewer records under equal noise."""
NORM_BINS = 24
"""Of the distances from the middle: each ends a factor 2^(1/4) below the last, down to a fiftieth of the longest."""


@dataclass(frozen=True, kw_only=True)
class Knobs:
    """Advanced settings. The defaults were tuned on synthetic families (docs/study-synopsis.md); nobody needs them.

    Parameters
    ----------
    count_share, box_share, middle_share, norm_share, moment_share
        Parts of the budget for the number of records, the box around them, their middle, their distances from it, and
        (at most) their second moments.
    histogram_share_direct, histogram_share_projected
        Parts of what is then left for the histogram, in a subspace at most; the rest goes to the rounds of Lloyd's
        algorithm.
    cells_max
        The most cells of the histogram, and the length of its vector.
    rounds_min, rounds_max
        How many rounds of Lloyd's algorithm at least and at most.
    restarts
        How often the cells are clustered from another start.
    """

    count_share: float = 0.01
    box_share: float = 0.05
    middle_share: float = 0.03
    norm_share: float = 0.03
    moment_share: float = 0.30
    histogram_share_direct: float = 0.50
    histogram_share_projected: float = 0.35
    cells_max: int = 6000
    rounds_min: int = 2
    rounds_max: int = 8
    restarts: int = 20

    def __post_init__(self) -> None:
        for name in self.__dataclass_fields__:
            value = getattr(self, name)
            if name.endswith(("share", "direct", "projected")):
                require(1e-4 <= value <= 0.99, name, "from 0.0001 to 0.99", value, _DEFAULT)
        first = self.count_share + max(self.box_share, self.middle_share + self.norm_share + self.moment_share)
        require(first <= 0.95, "the shares before the histogram", "at most 0.95 together", first, "Lower one of them.")
        require(
            1 <= self.rounds_min <= self.rounds_max <= 50,
            "rounds_min and rounds_max",
            "1 to 50, in order",
            (self.rounds_min, self.rounds_max),
            "Raise rounds_max, or lower rounds_min.",
        )
        require(16 <= self.cells_max <= 10**6, "cells_max", "from 16 to 1000000", self.cells_max, _DEFAULT)
        require(1 <= self.restarts <= 1000, "restarts", "from 1 to 1000", self.restarts, _DEFAULT)


@dataclass(frozen=True, kw_only=True)
class Settings(GuidedSettings):
    """What one synopsis is made of; with ``choose_k``, ``clusters`` is the most there may be.

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
        """Of the rounds of Lloyd's algorithm."""
        return RoundLimits(least=self.knobs.rounds_min, most=self.knobs.rounds_max)

    @property
    def may_project(self) -> bool:
        """Whether the grid may be laid in a subspace; in few dimensions it never is."""
        return self.dimensions > DIRECT_DIMENSIONS

    @property
    def slots(self) -> tuple[Slot, ...]:
        """Every round of the session in order. A round that turns out not to be needed is sent as zeros."""
        d = self.dimensions
        slots = []
        if self.records is None:
            slots.append(Slot(name="number of records", length=count_slot_length(self)))
        if self.may_project:
            slots.append(Slot(name="sum and number of all records", length=d + 1))
            slots.append(Slot(name="histogram of distances from the middle", length=NORM_BINS))
            slots.append(Slot(name="sums and second moments", length=moments_length(d)))
        else:
            slots.append(Slot(name="histogram of each column", length=BOX_BINS * d))
        slots.append(Slot(name="histogram", length=self.knobs.cells_max))
        return (*slots, *list_rounds(self))


_DEFAULT = "Leave it out for the default."
