"""The privacy card: what a result promises, what it cost and what it does not promise; plain words first.

It is made from the releases that ran (the accountant's books), never from the parameters that were asked for.
"""

from __future__ import annotations

import math
from typing import assert_never

import msgspec

from cloister.privacy.accounting import Spent
from cloister.privacy.costs import pure_epsilon_of, rho_of
from cloister.privacy.mechanisms import DiscreteGaussian, DiscreteGaussianSum, DiscreteLaplace, Mechanism, Release
from cloister.privacy.placement import Placement, Shared
from cloister.privacy.units import Budget, Unit

_MOSTLY_NOISE = 0.25
_NOT_PROMISED = (
    "Nothing is promised against parties that lie about their records, nor against whoever sees a party's memory.",
    "The promise is about one unit: many records of one person are protected as a group, at a multiple of epsilon.",
    "What each party may learn from its own records is its own business.",
)


class CardRelease(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One release on the card, in the integer units of the noise."""

    name: str
    noise: str
    scale: float
    sensitivity_l1: int
    sensitivity_l2: float
    entries: int
    rho: float
    pure_epsilon: float | None


class PrivacyCard(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What every differentially private result carries and prints.

    Attributes
    ----------
    private
        False if the noise came from a seed: the numbers then describe a study, and nobody is protected.
    unit, neighbours
        Whose presence is hidden, and how two neighbouring inputs differ.
    epsilon, delta, how_composed
        The cost of all releases together, and the theorem that adds them up.
    budget_epsilon, budget_delta
        What was allowed.
    releases
        Each release with its sensitivity and noise.
    who_adds_noise, who_could_subtract
        Whoever knows a noise value is not protected against by it.
    protects_against, breaks_if
        Against whom the promise holds, and which coalition breaks it.
    not_promised, warnings
        What a reader must not conclude, and what is odd about this run.
    """

    private: bool
    unit: str
    neighbours: str
    epsilon: float
    delta: float
    how_composed: str
    budget_epsilon: float
    budget_delta: float
    releases: tuple[CardRelease, ...]
    who_adds_noise: str
    who_could_subtract: str
    protects_against: str
    breaks_if: str
    not_promised: tuple[str, ...]
    warnings: tuple[str, ...] = ()

    @property
    def plain_words(self) -> str:
        """The promise in one sentence that needs no mathematics."""
        if not self.private:
            return "A study: its noise came from a seed, so this result protects nobody."
        times = math.exp(min(self.epsilon, 700.0))
        return (
            f"Whatever someone does with this result, it is at most {times:.3g} times as likely as it would be if any "
            f"one {self.unit} had not taken part"
            + (f", but for a chance of {self.delta:.3g}." if self.delta > 0 else ".")
        )


def make_card(
    spent: Spent,
    *,
    budget: Budget,
    placement: Placement,
    breaks_if: str,
    is_simulation: bool,
    estimated_records: float | None = None,
    centre_noise: float | None = None,
    shares_missing: int = 0,
) -> PrivacyCard:
    """Write the card of a run.

    Parameters
    ----------
    spent
        The accountant's books after the run.
    budget, placement
        What was agreed.
    breaks_if
        Which coalition breaks it.
    is_simulation
        Whether the noise came from a seed.
    estimated_records
        A number of records that has been released with noise, for the warning about delta.
    centre_noise
        By how much noise moves a coordinate of a centre of average size in a round, where a column runs from -1 to 1.
    shares_missing
        How many shares of the noise were missing in the worst round, where the parties add shares.
    """
    unit = budget.unit.value
    whole = "one record" if budget.unit is Unit.RECORD else "all records of one client"
    return PrivacyCard(
        private=not is_simulation,
        unit=unit,
        neighbours=f"{whole} added or removed",
        epsilon=spent.epsilon,
        delta=spent.delta,
        how_composed=spent.how,
        budget_epsilon=budget.epsilon,
        budget_delta=budget.delta,
        releases=tuple(_describe(release) for release in spent.releases),
        who_adds_noise=placement.who_adds,
        who_could_subtract=placement.who_could_subtract,
        protects_against="Each party's records are protected against every other party, and against the coordinator.",
        breaks_if=breaks_if,
        not_promised=_NOT_PROMISED,
        warnings=(
            *_warn(spent, is_simulation=is_simulation, estimated_records=estimated_records, centre_noise=centre_noise),
            *_warn_of_dropouts(placement, shares_missing),
        ),
    )


def _warn(
    spent: Spent, *, is_simulation: bool, estimated_records: float | None, centre_noise: float | None
) -> tuple[str, ...]:
    warnings = []
    if centre_noise is not None and centre_noise > _MOSTLY_NOISE:
        warnings.append(
            f"These centres are mostly noise: in a round it moves a coordinate of a centre of average size by about "
            f"{centre_noise:.2g}, where a column runs from -1 to 1. Raise epsilon, or use fewer rounds or clusters."
        )
    if is_simulation:
        warnings.append("The noise came from a seed: whoever knows it can take the noise away. Run without a seed.")
    if estimated_records is not None and spent.delta * max(estimated_records, 1.0) > 1:
        warnings.append(
            f"delta = {spent.delta:.3g} is larger than 1 / {max(estimated_records, 1.0):.3g}, the noisy number of "
            "records: a mechanism that publishes one record at random would pass. Choose a smaller delta."
        )
    return tuple(warnings)


def _warn_of_dropouts(placement: Placement, shares_missing: int) -> tuple[str, ...]:
    if not isinstance(placement, Shared) or not shares_missing:
        return ()
    return (
        f"In a round {shares_missing} of {placement.parties} parties were missing, and their shares with them: "
        f"the promise holds against at most {placement.colluding_max - shares_missing} colluding parties, not "
        f"{placement.colluding_max}.",
    )


def _describe(release: Release) -> CardRelease:
    noise, scale = _name_noise(release.mechanism)
    return CardRelease(
        name=release.name,
        noise=noise,
        scale=scale,
        sensitivity_l1=release.sensitivity.l1,
        sensitivity_l2=release.sensitivity.l2_squared**0.5,
        entries=release.entries,
        rho=rho_of(release),
        pure_epsilon=pure_epsilon_of(release),
    )


def _name_noise(mechanism: Mechanism) -> tuple[str, float]:
    match mechanism:
        case DiscreteGaussian(sigma=sigma):
            return "discrete Gaussian", sigma
        case DiscreteLaplace(scale=scale):
            return "discrete Laplace", scale
        case DiscreteGaussianSum(sigma=sigma, shares=shares):
            return f"sum of {shares} discrete Gaussians", sigma
    assert_never(mechanism)
