"""The public values of a synopsis: what is asked, what may be spent, and what goes over the wire when."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from math import isqrt, sqrt
from typing import Final

from cloister.errors import ConfigError
from cloister.numeric import FixedPoint
from cloister.privacy.calibration import SLACK, rho_for
from cloister.privacy.mechanisms import DiscreteGaussian
from cloister.privacy.placement import Aggregator, Placement
from cloister.privacy.units import Budget, Unit

SYNOPSIS: Final = "synopsis"
"""The protocol's name, in jobs, in results and on the wire."""
PURSE = 2**56
"""All that a unit may ever contribute, over all rounds: the sum of the squared L2 norms of its integer vectors.

Noise has one scale for the whole session and a round's weight in the budget is how large contributions are in it, so
that whoever adds the noise need not know how the budget is split, which depends on values that were released before.
"""
CLUSTERS_MOST, DIMENSIONS_MOST = 1000, 2000
DIRECT_DIMENSIONS = 5
"""Up to so many columns the grid is laid on the columns themselves: 6000 cells are still five bins or more on each."""
BOX_BINS = 16
"""Of each column's histogram: bounds may be cut to a sixteenth; narrower bins hold fewer records under equal noise."""
NORM_BINS = 24
"""Of the distances from the middle: each ends a factor 2^(1/4) below the last, down to a fiftieth of the longest."""
SIZE_BINS = 20
"""Of the sizes of parties: 1, 2, 3 to 4, 5 to 8 and so on, each twice the last; more than 2^18 records share one."""


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
                _require(1e-4 <= value <= 0.99, name, "from 0.0001 to 0.99", value, _DEFAULT)
        first = self.count_share + max(self.box_share, self.middle_share + self.norm_share + self.moment_share)
        _require(first <= 0.95, "the shares before the histogram", "at most 0.95 together", first, "Lower one of them.")
        _require(
            1 <= self.rounds_min <= self.rounds_max <= 50,
            "rounds_min and rounds_max",
            "1 to 50, in order",
            (self.rounds_min, self.rounds_max),
            "Raise rounds_max, or lower rounds_min.",
        )
        _require(16 <= self.cells_max <= 10**6, "cells_max", "from 16 to 1000000", self.cells_max, _DEFAULT)
        _require(1 <= self.restarts <= 1000, "restarts", "from 1 to 1000", self.restarts, _DEFAULT)


@dataclass(frozen=True, kw_only=True)
class Slot:
    """One round on the wire: what it is for, and how many numbers each party sends, from public values alone."""

    name: str
    length: int


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What one synopsis is made of.

    Parameters
    ----------
    clusters
        k; with ``choose_k`` the most there may be.
    dimensions
        d.
    budget
        What all rounds together may cost; ``delta > 0``.
    parties
        How many take part.
    records
        The number of records, where it is declared public; None lets a part of the budget be spent on it.
    choose_k
        Let the synopsis decide how many clusters there are.
    placement
        Who adds the noise.
    fixed_point
        The grid of the records.
    knobs
        Advanced settings.
    """

    clusters: int
    dimensions: int
    budget: Budget
    parties: int
    records: int | None = None
    choose_k: bool = False
    placement: Placement = field(default_factory=Aggregator)
    fixed_point: FixedPoint = field(default_factory=lambda: FixedPoint(16))
    knobs: Knobs = field(default_factory=Knobs)

    def __post_init__(self) -> None:
        least = 2 if self.choose_k else 1
        _require(least <= self.clusters <= CLUSTERS_MOST, "clusters", f"from {least} to {CLUSTERS_MOST}", self.clusters)
        _require(1 <= self.dimensions <= DIMENSIONS_MOST, "columns", f"from 1 to {DIMENSIONS_MOST}", self.dimensions)
        what_to_do = "Leave it out, and a part of the budget is spent on it."
        _require(self.records is None or self.records >= 1, "records", "at least 1", self.records, what_to_do)
        _require(self.parties >= 1, "parties", "at least 1", self.parties)

    @cached_property
    def target(self) -> DiscreteGaussian:
        """The noise on every number that is released.

        Privacy
        -------
        Neighbours: one unit added or removed. Over all rounds a unit's integer vectors have squared L2 norms that add
        up to at most ``PURSE``, so all releases together are rho-zCDP with rho = PURSE / 2 sigma^2, which is what the
        budget converts to (docs/proofs/synopsis.md).
        """
        return DiscreteGaussian(sigma=sqrt(PURSE / (2 * rho_for(self.budget))) * SLACK)

    @cached_property
    def noise_std(self) -> float:
        """The standard deviation of all noise on one released number, whoever added it."""
        return float(self.placement.total_variance(self.target) ** 0.5)

    @property
    def client_level(self) -> bool:
        """Whether a unit is all records of a party."""
        return self.budget.unit is Unit.CLIENT

    def signal(self, l2_squared: int) -> float:
        """mu: the largest contribution over the noise, where a round may cost this much of the purse."""
        return isqrt(l2_squared) / self.noise_std

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
            slots.append(Slot(name="number of records", length=SIZE_BINS if self.client_level else 1))
        if self.may_project:
            slots.append(Slot(name="sum and number of all records", length=d + 1))
            slots.append(Slot(name="histogram of distances from the middle", length=NORM_BINS))
            slots.append(Slot(name="sums and second moments", length=d + d * (d + 1) // 2))
        else:
            slots.append(Slot(name="histogram of each column", length=BOX_BINS * d))
        slots.append(Slot(name="histogram", length=self.knobs.cells_max))
        return (
            *slots,
            *(
                Slot(name=f"Lloyd round {t}", length=self.clusters * (d + 2))
                for t in range(1, self.knobs.rounds_max + 1)
            ),
        )


_DEFAULT = "Leave it out for the default."


def _require(holds: bool, name: str, must: str, value: object, what_to_do: str = "") -> None:
    if not holds:
        raise ConfigError(f"{name} must be {must}; got {value}. {what_to_do}".rstrip())
