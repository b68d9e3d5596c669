"""The noise of a session, planned from public values before it starts.

Each round releases one joint vector with one sensitivity: that of what one record can add by the plan's rule. The
parties add the noise to what they mask or, with another placement, the coordinator adds it once, to masked sums.

:func:`plan_noise` plans "Mask, Noise then Average" (thesis 7.2.4). The thesis adds Laplace noise with separate
sensitivities to sums and counts and rounds it to the grid. Here noise is discrete, drawn exactly on the grid, and
rounds compose in zCDP (with ``noise = "laplace"``: pure epsilons add up).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from cloister.numeric import FixedPoint
from cloister.privacy.calibration import calibrate_gaussian, calibrate_laplace, round_for_all
from cloister.privacy.centre_noise import UNKNOWN
from cloister.privacy.encoder import SumCountEncoder, balance_count_weight
from cloister.privacy.mechanisms import DiscreteGaussian, DiscreteLaplace, Release
from cloister.privacy.placement import Aggregator, Placement
from cloister.privacy.samplers import check_draw
from cloister.privacy.units import Budget, Sensitivity
from cloister.protocols.multiparty_lloyd.rules import BoundedSums, NoisyRule
from cloister.records import FloatArray, IntArray

NoiseKind = Literal["gaussian", "laplace"]
Target = DiscreteGaussian | DiscreteLaplace


@dataclass(frozen=True, kw_only=True)
class NoisePlan:
    """What every round releases, and how it is protected.

    Parameters
    ----------
    budget
        What all rounds together may cost.
    targets
        The noise of each round.
    rule
        What a round's vector is, and its sensitivity, which with a ``flaw`` is only claimed.
    clusters
        k.
    placement
        Who adds the noise.
    flaw
        Why the stated guarantee does not hold; empty if it does.

    Privacy
    -------
    Neighbours: one record added to or removed from one party, or one person. Sensitivity: ``rule.sensitivity_of``,
    times the records of a person that count (docs/proofs/persons.md). Event: adaptive releases of :meth:`release_of`,
    whose mechanism is the noise that the receiver does not know.
    Theorem: composition of zCDP or of pure epsilon (docs/proofs/accounting.md); docs/proofs/mask-noise-average.md,
    docs/proofs/fastlloyd.md. Void with a ``flaw``.
    """

    budget: Budget
    targets: tuple[Target, ...]
    rule: NoisyRule
    clusters: int
    placement: Placement
    flaw: str = ""

    def __post_init__(self) -> None:
        if self.placement.sampled_jointly:
            return
        for target in set(self.targets):  # refused here, not after the charge
            check_draw(self.placement.mechanism_for_share(target), self.clusters * self.rule.width)

    def target_of(self, round_: int) -> Target:
        """Return the noise of one round; rounds count from 1."""
        return self.targets[round_ - 1]

    def release_of(self, round_: int) -> Release:
        """Return the event of one round, as every party is charged for it."""
        return Release(
            name=f"round {round_}: {self.rule.released} of {self.clusters} clusters",
            mechanism=self.placement.released_mechanism(self.target_of(round_)),
            sensitivity=self.rule.sensitivity_of(round_).times(self.budget.most_records),
            entries=self.clusters * self.rule.width,
        )

    @property
    def releases(self) -> tuple[Release, ...]:
        """The events of all rounds."""
        return tuple(self.release_of(round_) for round_ in range(1, len(self.targets) + 1))

    def blur_centre(self, cluster_records: float) -> float:
        """Return how far all noise together moves a coordinate of a centre in the last round, in unit scaling."""
        rounds = len(self.targets)
        deviation = self.placement.total_variance(self.target_of(rounds)) ** 0.5
        return self.rule.blur_centre(deviation, rounds, cluster_records)

    def find_centre_noise(self, totals: Sequence[IntArray], dimensions: int) -> FloatArray | None:
        """Return the standard deviations of the noise in the final centres, in unit scaling, from all rounds' sums.

        The start reads no record, so at first nothing is known of the centres. None where the guarantee does not hold.
        """
        if self.flaw:
            return None
        left = np.full((self.clusters, dimensions), UNKNOWN)
        for round_, total in enumerate(totals, start=1):
            deviation = self.placement.total_variance(self.target_of(round_)) ** 0.5
            last = totals[round_ - 2] if round_ > 1 else None
            left = self.rule.carry_noise(left, total, deviation, round_=round_, last=last)
        found: FloatArray = np.sqrt(left)
        return found

    @property
    def count_noise(self) -> float | None:
        """The standard deviation of a cluster's released number of records; None if it is not released."""
        weight = self.rule.count_weight
        deviation = self.placement.total_variance(self.targets[-1]) ** 0.5
        return None if weight is None else float(deviation / weight)

    @property
    def by_coordinator(self) -> bool:
        """Whether the coordinator adds the noise, rather than the parties."""
        return self.placement.by_coordinator

    @property
    def reach(self) -> int:
        """A magnitude that one entry's noise exceeds with probability below 1e-37, in any round."""
        return max(self.placement.bound_noise(target) for target in set(self.targets))

    @property
    def members_min(self) -> int:
        """The fewest parties in a sum that leave the promised noise against each of them, which knows its own share."""
        return self.placement.members_min


def calibrate_rounds(budget: Budget, sensitivity: Sensitivity, *, kind: NoiseKind, iterations: int) -> Target:
    """Return the least noise with which all rounds fit the budget, rounded up for all to agree.

    All have the sensitivity of one record, of which a unit may have several (docs/proofs/persons.md).
    """
    sensitivity = sensitivity.times(budget.most_records)
    if kind == "gaussian":
        return DiscreteGaussian(sigma=round_for_all(calibrate_gaussian(budget, sensitivity.l2_squared, iterations)))
    scale = calibrate_laplace(budget, sensitivity, iterations)
    return DiscreteLaplace(scale=scale if budget.delta == 0 else round_for_all(scale))  # a quotient is the same for all


def plan_noise(
    budget: Budget,
    *,
    kind: NoiseKind,
    iterations: int,
    clusters: int,
    dimensions: int,
    fixed_point: FixedPoint,
    norm_bound: int | None = None,
    placement: Placement | None = None,
) -> NoisePlan:
    """Spend a budget evenly on the rounds of mask-noise-average; every number comes from public values."""
    encoder = SumCountEncoder(
        dimensions=dimensions,
        fixed_point=fixed_point,
        count_weight=balance_count_weight(dimensions, fixed_point),
        norm_bound=norm_bound,
    )
    placement = placement or Aggregator()
    budget = placement.reserve_delta(budget, iterations)
    target = calibrate_rounds(budget, encoder.sensitivity, kind=kind, iterations=iterations)
    return NoisePlan(
        budget=budget,
        targets=(target,) * iterations,
        rule=BoundedSums(encoder=encoder),
        clusters=clusters,
        placement=placement,
    )
