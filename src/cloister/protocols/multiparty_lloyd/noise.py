"""The noise of "Mask, Noise then Average" (thesis 7.2.4), planned from public values before a session.

Each round releases one joint vector, (sums, w counts) of all clusters, with one L2 sensitivity: a record joins one
cluster and contributes (x, w) to it (privacy.encoder). The coordinator adds the noise once, to masked sums; or, by
another placement, each party adds its share before it masks.

The thesis adds Laplace noise with separate sensitivities to sums and counts and rounds it to the grid. Here noise is
discrete, drawn exactly on the grid, and rounds compose in zCDP (with ``noise = "laplace"``: pure epsilons add up).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from cloister.numeric import FixedPoint
from cloister.privacy.calibration import calibrate_gaussian, calibrate_laplace
from cloister.privacy.encoder import SumCountEncoder, balance_count_weight
from cloister.privacy.mechanisms import DiscreteGaussian, DiscreteLaplace, Release
from cloister.privacy.placement import Aggregator, Placement
from cloister.privacy.samplers import check_draw
from cloister.privacy.units import Budget
from cloister.protocols.noise_holders import bound_noise, count_members_min, is_by_coordinator

NoiseKind = Literal["gaussian", "laplace"]


@dataclass(frozen=True, kw_only=True)
class NoisePlan:
    """What every round releases, and how it is protected.

    Privacy
    -------
    Neighbours: one record added to or removed from one party. Sensitivity: ``encoder.sensitivity``. Event:
    adaptive releases of :meth:`release_of`, whose mechanism is the noise that the receiver does not know.
    Theorem: composition of zCDP or of pure epsilon (docs/proofs/accounting.md); docs/proofs/mask-noise-average.md.
    """

    budget: Budget
    target: DiscreteGaussian | DiscreteLaplace
    encoder: SumCountEncoder
    clusters: int
    placement: Placement

    def release_of(self, round_: int) -> Release:
        """The event of one round, as every party is charged for it."""
        return Release(
            name=f"round {round_}: sums and counts of {self.clusters} clusters",
            mechanism=self.placement.released_mechanism(self.target),
            sensitivity=self.encoder.sensitivity,
            entries=self.clusters * (self.encoder.dimensions + 1),
        )

    @property
    def by_coordinator(self) -> bool:
        """Whether the coordinator adds the noise, rather than the parties."""
        return is_by_coordinator(self.placement)

    @property
    def reach(self) -> int:
        """A magnitude that one entry's noise exceeds with probability below 1e-37."""
        return bound_noise(self.placement, self.target)

    @property
    def members_min(self) -> int:
        """The fewest parties in a sum that leave the promised noise against one of them, who knows its own share."""
        return count_members_min(self.placement)


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
    """Spend a budget evenly on the rounds; every number comes from public values."""
    encoder = SumCountEncoder(
        dimensions=dimensions,
        fixed_point=fixed_point,
        count_weight=balance_count_weight(dimensions, fixed_point),
        norm_bound=norm_bound,
    )
    sensitivity = encoder.sensitivity
    target: DiscreteGaussian | DiscreteLaplace
    if kind == "gaussian":
        target = DiscreteGaussian(sigma=calibrate_gaussian(budget, sensitivity.l2_squared, iterations))
    else:
        target = DiscreteLaplace(scale=calibrate_laplace(budget, sensitivity, iterations))
    placement = placement or Aggregator()
    check_draw(placement.mechanism_for_share(target), clusters * (dimensions + 1))  # now, and not after the charge
    return NoisePlan(budget=budget, target=target, encoder=encoder, clusters=clusters, placement=placement)
