"""One run of one method on one data set, named by a value: the same trial gives the same centres anywhere, any time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from cloister.privacy.units import Budget
from papers.feddp.datasets import DataSet

Method = Literal[
    "optimal", "k-fed", "server-kmeans++", "server-lloyds", "sphere-packing", "published", "cloister", "synopsis"
]
DELTA = 1e-6
"""For all steps and for the total (5)."""


@dataclass(frozen=True, kw_only=True)
class Split:
    """Shares of epsilon_init for Algorithm 1's releases: projection, weights, sums and counts (G.4)."""

    projection: float
    weights: float
    sums: float
    counts: float

    @property
    def shares(self) -> tuple[float, float, float, float]:
        """In the order of Tables 2 and 3."""
        return (self.projection, self.weights, self.sums, self.counts)


@dataclass(frozen=True, kw_only=True)
class Trial:
    """What is to be run.

    Parameters
    ----------
    data, method, run
        Where, what, and which repetition: noise and starts follow from it.
    epsilon
        The total, at delta = 1e-6; None for what has no privacy.
    steps
        Rounds of FedDP-Lloyds after the start; None where the method decides.
    split
        For ``published``.
    """

    data: DataSet
    method: Method
    run: int
    epsilon: float | None = None
    steps: int | None = None
    split: Split | None = None

    @property
    def budget(self) -> Budget:
        """For all releases together."""
        assert self.epsilon is not None
        return Budget(epsilon=self.epsilon, delta=DELTA, unit=self.data.unit)


@dataclass(frozen=True, kw_only=True)
class Score:
    """How a run went.

    Attributes
    ----------
    cost
        Squared distance to the nearest centre, a record, in the data's own units.
    accuracy
        Share of records matched with their component; None for real data.
    cpu_s
        CPU seconds of everything that clients and server do; loading apart.
    """

    cost: float
    accuracy: float | None
    cpu_s: float
