"""The privacy card: what a result promises, what it cost and what it does not promise; plain words first.

It is made from the releases that ran (the accountant's books), never from the parameters that were asked for.
"""

from __future__ import annotations

import math
from typing import assert_never

import msgspec

from cloister.privacy.accounting import Spent
from cloister.privacy.card_warnings import EPSILON_WEAK, Circumstances, write_warnings
from cloister.privacy.costs import pure_epsilon_of, rho_of
from cloister.privacy.mechanisms import DiscreteGaussian, DiscreteGaussianSum, DiscreteLaplace, Mechanism, Release
from cloister.privacy.placement import Placement
from cloister.privacy.units import Budget, Unit

_PLAIN_TIMES_MOST = 1e6  # beyond, how many times likelier tells nobody anything
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
        False if the noise came from a seed, or if the guarantee as published does not hold: the numbers then describe
        a study, and nobody is protected.
    unit, neighbours
        Whose presence is hidden, and how two neighbouring inputs differ.
    epsilon, delta, how_composed
        The cost of all releases together, and the theorem that adds them up. Where released values decide which
        rounds run, it is the cost of all that could have run: only that is guaranteed.
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
    flaw
        Why the guarantee as published does not hold; empty where it does. Epsilon is then what is claimed.
    scope
        Where noise protects less than a differentially private result does: what it does protect.
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
    flaw: str = ""
    scope: str = ""

    @property
    def plain_words(self) -> str:
        """The promise in one sentence that needs no mathematics."""
        if self.scope:
            return f"This result as a whole is not differentially private. {self.scope}"
        if self.flaw:
            return (
                f"A reproduction: the published text claims epsilon = {self.epsilon:.4g}, and that claim is false. "
                "This result protects nobody by proof."
            )
        if not self.private:
            return "A study: its noise came from a seed, so this result protects nobody."
        absent = "party had held no records" if self.unit == Unit.CLIENT.value else "record had not taken part"
        if self.epsilon > math.log(_PLAIN_TIMES_MOST):
            return (
                "Whatever someone does with this result, it may be more than a million times as likely as it would be "
                f"if any one {absent}: that is practically no promise."
            )
        return (
            f"Whatever someone does with this result, it is at most {_round_up(math.exp(self.epsilon))} times as "
            f"likely as it would be if any one {absent}"
            + (f", but for a chance of {self.delta:.3g}." if self.delta > 0 else ".")
        )

    @property
    def is_weak(self) -> bool:
        """Whether epsilon is so large that the promise is practically none."""
        return self.epsilon > EPSILON_WEAK


def make_card(
    spent: Spent,
    *,
    budget: Budget,
    placement: Placement,
    breaks_if: str,
    is_simulation: bool,
    circumstances: Circumstances | None = None,
    middleman: str = "coordinator",
) -> PrivacyCard:
    """Write the card of a run.

    Parameters
    ----------
    spent
        What the run costs, and the releases that ran.
    budget, placement
        What was agreed.
    breaks_if
        Which coalition breaks it.
    is_simulation
        Whether the noise came from a seed.
    circumstances
        What else is known of the run, for the warnings.
    middleman
        Whoever stands between the parties: the coordinator, or a relay.
    """
    circumstances = circumstances or Circumstances()
    whole = "one record" if budget.unit is Unit.RECORD else "all records of one client"
    return PrivacyCard(
        private=not (is_simulation or circumstances.flaw),
        unit=budget.unit.value,
        neighbours=f"{whole} added or removed",
        epsilon=spent.epsilon,
        delta=spent.delta,
        how_composed=spent.how,
        budget_epsilon=budget.epsilon,
        budget_delta=budget.delta,
        releases=tuple(_describe(release) for release in spent.releases),
        who_adds_noise=placement.who_adds,
        who_could_subtract=placement.who_could_subtract,
        protects_against=_name_protected(is_simulation, circumstances.flaw, middleman),
        breaks_if=breaks_if,
        not_promised=_NOT_PROMISED,
        warnings=write_warnings(
            spent,
            unit=budget.unit,
            placement=placement,
            is_simulation=is_simulation,
            circumstances=circumstances,
        ),
        flaw=circumstances.flaw,
    )


def _name_protected(is_simulation: bool, flaw: str, middleman: str) -> str:
    if flaw:
        return "Nobody is protected by proof: the guarantee as published does not hold."
    if is_simulation:
        return "Nobody is protected: the noise came from a seed."
    return f"Each party's records are protected against every other party, and against the {middleman}."


def _round_up(times: float) -> str:
    """Write a factor with three digits that matter, or all before the point: never less than it is."""
    step = 10.0 ** min(0, math.floor(math.log10(times)) - 2)
    return f"{math.ceil(round(times / step, 6)) * step:,.{max(0, -round(math.log10(step)))}f}"


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
