"""The public values of a session of guided sums: what may be spent, who adds noise, what goes over the wire when."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cached_property
from math import isqrt, sqrt
from typing import ClassVar

from cloister.errors import ConfigError
from cloister.numeric import FixedPoint
from cloister.privacy.calibration import SLACK, rho_for
from cloister.privacy.mechanisms import DiscreteGaussian, Mechanism
from cloister.privacy.placement import Aggregator, Placement
from cloister.privacy.units import Budget, Unit

PURSE = 2**56
"""All that a unit may ever contribute, over all rounds: the sum of the squared L2 norms of its integer vectors.

Noise has one scale for the whole session and a round's weight in the budget is how large contributions are in it, so
that whoever adds the noise need not know how the budget is split, which depends on values that were released before.
"""
CLUSTERS_MOST, DIMENSIONS_MOST = 1000, 2000


@dataclass(frozen=True, kw_only=True)
class Slot:
    """One round on the wire: what it is for, and how many numbers each party sends, from public values alone.

    ``mechanism`` is its noise where that is not the session's.
    """

    name: str
    length: int
    mechanism: Mechanism | None = None


@dataclass(frozen=True, kw_only=True)
class RoundLimits:
    """How many rounds of Lloyd's algorithm at least and at most."""

    least: int
    most: int


@dataclass(frozen=True, kw_only=True)
class GuidedSettings(ABC):
    """What every algorithm on guided sums is told; each has its own besides.

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
        The number of records, where it is declared public; None lets a part of the budget be spent on it.
    placement
        Who adds the noise.
    fixed_point
        The grid of the records.
    """

    protocol: ClassVar[str]
    """The protocol's name, in jobs, in results and on the wire."""
    may_return: ClassVar[bool] = False
    """Whether a party that was not asked, or not reached, in a round is asked again: it is then told what it missed."""
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

    @property
    @abstractmethod
    def slots(self) -> tuple[Slot, ...]:
        """Every round of the session in order. A round that turns out not to be needed is sent as zeros."""

    @property
    @abstractmethod
    def round_limits(self) -> RoundLimits:
        """Of the rounds of Lloyd's algorithm."""

    @property
    def sample_size(self) -> int:
        """How many parties are asked in a round; a public sample where these are not all."""
        return self.parties

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

    @property
    def contribution_most(self) -> int:
        """The most that a unit can add to a number."""
        return isqrt(PURSE)

    def noise_in(self, slot: Slot) -> Mechanism:
        """Return the noise on every number of a round."""
        return self.target if slot.mechanism is None else slot.mechanism

    def signal(self, l2_squared: int) -> float:
        """mu: the largest contribution over the noise, where a round may cost this much of the purse."""
        return isqrt(l2_squared) / self.noise_std


def require(holds: bool, name: str, must: str, value: object, what_to_do: str = "") -> None:
    """Raise in the one form of such messages."""
    if not holds:
        raise ConfigError(f"{name} must be {must}; got {value}. {what_to_do}".rstrip())
