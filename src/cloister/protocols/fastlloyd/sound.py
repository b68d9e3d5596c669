"""The sound default: rounds, radii, weights and noise, all from public values, which exclude the number of records.

Every constant was chosen on synthetic families (docs/study-fastlloyd.md), none on the papers' data sets.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from cloister.errors import ConfigError
from cloister.numeric import RING32, RingBits
from cloister.privacy.calibration import round_for_all
from cloister.privacy.placement import Aggregator, Placement
from cloister.privacy.units import Budget, Sensitivity
from cloister.protocols.fastlloyd.offsets import Offsets, measure_contribution
from cloister.protocols.multiparty_lloyd.noise import NoiseKind, NoisePlan, Target, calibrate_rounds

ROUNDS = 12
_FIRST_RADIUS = 0.6
"""In the first round, as a part of sqrt(d), which is half the domain's diagonal."""
_LATER_RADIUS = 0.6
"""In the second round, as a part of sqrt(d) / k^(1/d): k balls of that size have about the volume of the domain."""
_RADIUS_DECAY = 0.85
"""The factor from round to round after that: centres settle, and noise is in proportion to the radius."""
_RADIUS_LEAST = 0.1
"""Where it stops shrinking, as a part of the second round's."""
_BLUR = 0.01
"""How far noise may move a centre, as a part of the second round's radius, before a radius shrinks for it."""
_GIVEN_RADIUS_LEAST = 1e-6
_SCALE_MOST, _SCALE_LEAST = 2**16, 2**10
"""Steps of the grid per radius. Rounding n records adds about sqrt(n / 12) steps to a sum, noise some thousands."""


@dataclass(frozen=True, kw_only=True)
class SoundSettings:
    """The settings of the sound default; everything is public.

    Parameters
    ----------
    clusters, dimensions, parties
        k, d and M.
    max_records
        A cap on one party's records: if it is small enough, 32-bit words suffice.
    kind
        Gaussian noise, accounted in zCDP, or Laplace noise: pure epsilon.
    iterations
        T, or None for the default.
    radius
        The radius of all rounds in unit scaling, or None for the schedule.
    ring_bits
        The ring that the job asks for, if it does.
    """

    clusters: int
    dimensions: int
    parties: int
    max_records: int
    kind: NoiseKind = "gaussian"
    iterations: int | None = None
    radius: float | None = None
    ring_bits: RingBits | Literal["auto"] = "auto"

    def __post_init__(self) -> None:
        if self.radius is not None and not self.radius >= _GIVEN_RADIUS_LEAST:
            raise ConfigError(
                f"radius must be at least {_GIVEN_RADIUS_LEAST:g}, in unit scaling; got {self.radius:g}. "
                "A column runs from -1 to 1: use about the size of a cluster, or leave it out."
            )

    @property
    def rounds(self) -> int:
        """T."""
        return ROUNDS if self.iterations is None else self.iterations

    @property
    def later_radius(self) -> float:
        """The least radius of the second round."""
        balls = float(self.clusters ** (1.0 / self.dimensions))
        return round_for_all(_LATER_RADIUS * math.sqrt(self.dimensions) / balls)

    @property
    def radii(self) -> tuple[float, ...]:
        """The radius of each round; none is larger than the domain's diagonal."""
        root = math.sqrt(self.dimensions)
        if self.radius is not None:
            return (min(self.radius, 2.0 * root),) * self.rounds
        later = self.later_radius
        return tuple(
            round_for_all(max(_FIRST_RADIUS * root, later) if t == 0 else later * self._shrink(t))
            for t in range(self.rounds)
        )

    @staticmethod
    def _shrink(round_: int) -> float:
        """The factor of a radius after so many rounds."""
        return max(float(_RADIUS_DECAY ** (round_ - 1)), _RADIUS_LEAST)


def plan_fastlloyd(options: SoundSettings, budget: Budget, *, placement: Placement | None = None) -> NoisePlan:
    """Spend a budget evenly on the rounds.

    Privacy
    -------
    Neighbours: one record added to or removed from one party. Sensitivity and event: :class:`Offsets`, one joint
    release per round. Theorem: docs/proofs/fastlloyd.md.
    """
    placement = placement or Aggregator()
    budget = placement.reserve_delta(budget, options.rounds)
    scale = _choose_scale(options, budget, placement)
    sensitivity, target = _calibrate(options, budget, scale)
    rule = Offsets(
        dimensions=options.dimensions,
        radii=options.radii,
        scale=scale,
        count_weight=_weigh_count(options.dimensions, scale),
        deviation=round_for_all(math.sqrt(placement.total_variance(target))),
        blur=0.0 if options.radius is not None else _BLUR * options.later_radius,
    )
    assert rule.sensitivity_of(1) == sensitivity
    return NoisePlan(
        budget=budget,
        targets=(target,) * options.rounds,
        rule=rule,
        clusters=options.clusters,
        placement=placement,
    )


def _weigh_count(dimensions: int, scale: int) -> int:
    """w^2 : radius^2 = 1 : 2 sqrt(d), the split of FastLloyd's second version."""
    return max(1, round(scale / math.sqrt(2.0 * math.sqrt(dimensions))))


def _calibrate(options: SoundSettings, budget: Budget, scale: int) -> tuple[Sensitivity, Target]:
    sensitivity = measure_contribution(options.dimensions, scale, _weigh_count(options.dimensions, scale))
    return sensitivity, calibrate_rounds(budget, sensitivity, kind=options.kind, iterations=options.rounds)


def _choose_scale(options: SoundSettings, budget: Budget, placement: Placement) -> int:
    """Return the finest grid whose sums fit 32 bits, if that is fine enough; else the finest of all, in 64 bits."""
    if options.ring_bits == 64:
        return _SCALE_MOST
    scale = _SCALE_MOST
    while scale >= _SCALE_LEAST:
        _, target = _calibrate(options, budget, scale)
        most = options.parties * options.max_records * scale + placement.bound_noise(target)
        if most <= RING32.largest:
            return scale
        scale //= 2
    return _SCALE_MOST
