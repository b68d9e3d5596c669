"""The public values of a session of guided sums: the budget, who adds the noise, and what is sent when."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import isqrt, sqrt
from typing import Any, ClassVar, Self

from cloister.errors import ConfigError
from cloister.numeric import FixedPoint
from cloister.privacy.calibration import SLACK, rho_for
from cloister.privacy.mechanisms import DiscreteGaussian, Mechanism
from cloister.privacy.placement import Aggregator, Owner, Placement
from cloister.privacy.units import Budget, Unit

BUDGET_UNITS = 2**56
"""The budget in integer units: the most that the squared L2 norms of one's vectors may add up to over all rounds.

One is a record, or a client; a person is a few records, and its noise is so many times larger (docs/proofs/persons.md).

Noise has one scale for the whole session; the size of contributions in a round is its weight in the budget. So
whoever adds the noise need not know how the budget is split, which depends on values that were released before.
"""
CLUSTERS_MOST, DIMENSIONS_MOST = 1000, 2000
UNITS = (Unit.RECORD, Unit.PERSON, Unit.CLIENT)
"""What a vector is bounded for: the part of one record, or of a person's few; or all of it."""


@dataclass(frozen=True, kw_only=True)
class Slot:
    """One round on the wire: its purpose, and how many numbers each party sends, from public values alone.

    ``kind`` is the one kind of `Question` that may be stated in it, besides `Idle`; None where only that may be.
    ``mechanism`` is its noise where that is not the session's.
    """

    name: str
    length: int
    kind: type[Any] | None = None
    mechanism: Mechanism | None = None


@dataclass(frozen=True, kw_only=True)
class RoundLimits:
    """The least and the most rounds of Lloyd's algorithm."""

    least: int
    most: int


@dataclass(frozen=True, kw_only=True)
class GuidedSettings(ABC):
    """The settings that all algorithms on guided sums have in common; each adds its own.

    Parameters
    ----------
    clusters
        k.
    dimensions
        d.
    budget
        What all rounds together may cost; ``delta > 0``.
    parties
        How many take part.
    records
        The number of records, where it is declared public; None spends a part of the budget on it.
    placement
        Who adds the noise.
    fixed_point
        The grid of the records.
    """

    protocol: ClassVar[str]
    """The protocol's name, in jobs, in results and on the wire."""
    clusters: int
    dimensions: int
    budget: Budget
    parties: int
    records: int | None = None
    placement: Placement = field(default_factory=Aggregator)
    fixed_point: FixedPoint = field(default_factory=lambda: FixedPoint(16))

    def __post_init__(self) -> None:
        require(1 <= self.clusters <= CLUSTERS_MOST, "clusters", f"from 1 to {CLUSTERS_MOST}", self.clusters)
        require(1 <= self.dimensions <= DIMENSIONS_MOST, "columns", f"from 1 to {DIMENSIONS_MOST}", self.dimensions)
        what_to_do = "Leave it out, and a part of the budget is spent on it."
        require(self.records is None or self.records >= 1, "records", "at least 1", self.records, what_to_do)
        require(self.parties >= 1, "parties", "at least 1", self.parties)
        units = " or ".join(unit.value for unit in UNITS)
        require(self.budget.unit in UNITS, "budget.unit", units, self.budget.unit.value)

    @property
    @abstractmethod
    def slots(self) -> tuple[Slot, ...]:
        """Every round of the session in order. A round that turns out not to be needed is sent as zeros."""

    @property
    @abstractmethod
    def round_limits(self) -> RoundLimits:
        """The limits of the rounds of Lloyd's algorithm."""

    @property
    def sample_size(self) -> int:
        """How many parties are asked in a round; a public sample where that is not all of them."""
        return self.parties

    @property
    def axes_most(self) -> int:
        """The most axes of the subspace in which records may be assigned to centres; 0 where there is none."""
        return 0

    @property
    def scaled(self) -> bool:
        """Whether columns are scaled by a spread that is released."""
        return False

    @property
    def clear(self) -> float:
        """How many times nearer to its own centre than to others a record must be to count in the first round."""
        return 1.0

    @cached_property
    def target(self) -> DiscreteGaussian:
        """The noise on every number that is released.

        Privacy
        -------
        Neighbours: one unit added or removed. Over all rounds the integer vectors of a record, or a client, have
        squared L2 norms that add up to at most P = ``BUDGET_UNITS``; those of a unit of m records to m^2 P
        (docs/proofs/persons.md). So all releases together are rho-zCDP with rho = m^2 P / 2 sigma^2, which is
        what the budget converts to (docs/proofs/synopsis.md).
        """
        sigma = self.budget.most_records * sqrt(BUDGET_UNITS / (2 * rho_for(self.budget)))
        return DiscreteGaussian(sigma=sigma * SLACK)

    @cached_property
    def noise_std(self) -> float:
        """The standard deviation of all noise on one released number, whoever added it."""
        return float(self.placement.total_variance(self.target) ** 0.5)

    @property
    def prices_most(self) -> int:
        """What the prices of all questions may add up to, in squared integers, whoever chooses them."""
        return BUDGET_UNITS

    @property
    def client_level(self) -> bool:
        """Whether a unit is all records of a party."""
        return self.budget.unit is Unit.CLIENT

    @property
    def alone(self) -> bool:
        """Whether one party holds the whole table and runs the algorithm by itself."""
        return isinstance(self.placement, Owner)

    @property
    def contribution_most(self) -> int:
        """The most that a unit can add to a number."""
        return isqrt(BUDGET_UNITS)

    def scaled_to(self, parties: int) -> Self:
        """Return the settings of a job with this many parties, who place their noise as before."""
        return replace(self, parties=parties, placement=self.placement.scaled_to(parties))

    def noise_in(self, slot: Slot) -> Mechanism:
        """Return the noise on every number of a round."""
        return self.target if slot.mechanism is None else slot.mechanism

    def signal(self, l2_squared: int) -> float:
        """mu: the largest contribution over the noise in a round that may cost this many of the budget units."""
        return isqrt(l2_squared) / self.noise_std


def require(holds: bool, name: str, must: str, value: object, what_to_do: str = "") -> None:
    """Raise `ConfigError` with a message of the usual form, unless the condition holds."""
    if not holds:
        raise ConfigError(f"{name} must be {must}; got {value}. {what_to_do}".rstrip())
