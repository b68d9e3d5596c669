"""The public values of a synopsis: the queries, the budget, and what is sent when."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Final

from msgspec import Meta

from cloister.job.refusals import check_fields, refuse
from cloister.protocols.guided_sums.refinement import list_rounds
from cloister.protocols.guided_sums.settings import CLUSTERS_MOST, GuidedSettings, RoundLimits, Slot, require
from cloister.protocols.guided_sums.statistics import Moments, list_size_slots, moments_length
from cloister.protocols.synopsis.questions import BOX_BINS, NORM_BINS, Columns, Histogram, Lengths, Middle

SYNOPSIS: Final = "synopsis"
"""The protocol's name, in jobs, in results and on the wire."""
AXES_PER_CLUSTER = 2
"""k centres span k - 1 directions; noise mixes these with others, so as many again are kept."""
DIRECT_DIMENSIONS = 5
"""Up to this many columns the grid is laid on the columns themselves: 6000 cells still give each at least five bins."""
Share = Annotated[float, Meta(ge=1e-4, le=0.99)]
Rounds = Annotated[int, Meta(ge=1, le=50)]


@dataclass(frozen=True, kw_only=True)
class Knobs:
    """Advanced settings. The defaults were tuned on synthetic families (docs/study-synopsis.md); few need others.

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
        The least and the most rounds of Lloyd's algorithm.
    restarts
        How often the cells are clustered from another start.
    """

    count_share: Share = 0.01
    box_share: Share = 0.05
    middle_share: Share = 0.03
    norm_share: Share = 0.03
    moment_share: Share = 0.30
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
