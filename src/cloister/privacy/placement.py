"""Where noise is added: once by the aggregator or a table's owner, or by the parties: in shares, in full, or jointly.

Given the mechanism that is wanted against whoever receives a sum, a placement says what ONE holder adds, what the
accountant must be charged for, and who could take the noise away again. The test for each is the same: whoever knows
a noise value is not protected against by it. So the mechanism to charge is the noise of the honest holders only; what
the others add is independent of the records, and adding it is post-processing.

A placement also says what follows from it for sums with common masks (aggregation.common_masks), which the coordinator
and any one party together can remove, and with double masks: who may collude then, and who may not.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Self

from cloister.errors import ConfigError
from cloister.privacy.costs import size_gaussian_share
from cloister.privacy.mechanisms import (
    DiscreteGaussian,
    DiscreteGaussianSum,
    DiscreteLaplace,
    Mechanism,
    Noise,
    PolyaDifference,
    compute_variance,
)
from cloister.privacy.units import LIMIT, Budget

_REACH = 90  # standard deviations that all noise together exceeds with probability below 1e-37, Laplace tails included
_RESERVED = 2.0**-10  # of delta, for joint noise, whose law is only nearly as stated


class _Placement(ABC):
    """What every placement answers; where most agree, their answer stands here.

    Attributes
    ----------
    by_coordinator
        Whether the coordinator adds the noise, rather than the parties.
    each_party_draws
        Whether each party draws noise of its own and adds it to its own vector.
    sampled_jointly
        Whether the parties sample the noise together, so that nobody draws it.
    """

    # Not annotated: an annotation would make them fields, and fields enter digests.
    by_coordinator = False
    each_party_draws = False
    sampled_jointly = False

    def mechanism_for_share(self, target: Mechanism) -> Noise:
        """Return what one holder adds."""
        return target

    def released_mechanism(self, target: Mechanism) -> Mechanism:
        """Return what the accountant is charged for."""
        return target

    @abstractmethod
    def total_variance(self, target: Mechanism) -> float:
        """Return the variance of one entry of all noise together, when no share is missing."""

    def bound_noise(self, target: Mechanism) -> int:
        """Return a magnitude that all noise on one number exceeds with probability below 1e-37."""
        return int(_REACH * self.total_variance(target) ** 0.5) + 1

    @property
    def members_min(self) -> int:
        """The fewest parties in a sum that leave the promised noise."""
        return 1

    @abstractmethod
    def scaled_to(self, parties: int) -> Self:
        """Return the same placement for another number of parties."""

    @abstractmethod
    def check_parties(self, parties: int) -> None:
        """Refuse a sum over another number of parties than the noise is placed for."""

    def reserve_delta(self, budget: Budget, rounds: int) -> Budget:
        """Return the budget that is left for noise exactly as stated."""
        return budget

    @property
    @abstractmethod
    def who_adds(self) -> str:
        """Who adds noise, for the privacy card."""

    @property
    @abstractmethod
    def who_could_subtract(self) -> str:
        """Who could take noise away again, for the privacy card."""

    @abstractmethod
    def name_removers(self, *, masked_twice: bool) -> str:
        """Name who could take noise away again, in a few words, for tables."""

    @abstractmethod
    def withstands(self, *, masked_twice: bool, middleman: str = "coordinator") -> str:
        """Say who may collude and learns nothing of the others beyond `LIMIT`, in the model that is proved."""

    @abstractmethod
    def breaks_if(self, *, masked_twice: bool, middleman: str = "coordinator") -> str:
        """Say which coalition undoes the protection of a masked sum."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """What everybody must heed who has a result with this noise, for the privacy card and the plan."""
        return ()


@dataclass(frozen=True, kw_only=True)
class Aggregator(_Placement):
    """The coordinator adds the noise once, to a sum that it sees only masked (thesis 7.2.4).

    Privacy
    -------
    Protects against everyone who receives the sum but does not learn the noise from the aggregator. Event: the
    mechanism wanted (docs/proofs/placement-aggregator.md).
    """

    by_coordinator = True
    who_adds = "The coordinator adds the noise, once, to the masked sum."
    who_could_subtract = "The coordinator, which knows it."  # what else it needs is in breaks_if
    warnings = (
        "The coordinator adds the noise and knows it: the result must never reach the coordinator, which could take "
        "the noise away. So do not publish the result.",
    )

    def total_variance(self, target: Mechanism) -> float:
        """Return the variance of one entry of the noise."""
        return compute_variance(target)

    def name_removers(self, *, masked_twice: bool) -> str:
        """Name who could take noise away again."""
        return "the coordinator"

    def withstands(self, *, masked_twice: bool, middleman: str = "coordinator") -> str:
        """Say who may collude: parties, as long as the coordinator is honest."""
        return (
            f"Semi-honest parties, however many collude, learn nothing of the others {LIMIT}, as long as the "
            f"{middleman} follows the protocol, never sees the result, and is helped by nobody."
        )

    def breaks_if(self, *, masked_twice: bool, middleman: str = "coordinator") -> str:
        """Say which coalition undoes it: masks do not help against whoever knows the noise."""
        return (
            f"The {middleman}, once it sees the centres or any one party helps it: it knows the noise and can take it "
            "away. Keep the result from it; noise that the parties add (placement shared or local) nobody knows."
        )

    def scaled_to(self, parties: int) -> Self:
        """Return this one: the parties add nothing."""
        return self

    def check_parties(self, parties: int) -> None:
        """Accept any number: the parties add nothing."""


@dataclass(frozen=True, kw_only=True)
class _AmongParties(_Placement):
    parties: int

    _parties_least = 2

    def __post_init__(self) -> None:
        if self.parties < self._parties_least:
            raise ConfigError(
                f"noise from the parties needs at least {self._parties_least} of them; got {self.parties}."
            )

    def scaled_to(self, parties: int) -> Self:
        """Return the same placement for another number of parties."""
        return replace(self, parties=parties)

    def check_parties(self, parties: int) -> None:
        """Refuse a sum over another number of parties than the noise is placed for."""
        if self.parties != parties:
            raise ConfigError(
                f"the noise must be shared out among all {parties} parties; got a placement for {self.parties}."
            )


@dataclass(frozen=True, kw_only=True)
class Local(_AmongParties):
    """Each party adds the noise wanted, in full, to its own vector.

    Parameters
    ----------
    parties
        How many add noise, at least 1.

    Privacy
    -------
    Protects the records of a party against all others together. Event: the mechanism wanted, which is the noise of
    the party that holds the record (docs/proofs/placement-local.md).
    """

    each_party_draws = True
    who_could_subtract = "Nobody: each party knows only its own noise, which protects its own records."
    _parties_least = 1

    def withstands(self, *, masked_twice: bool, middleman: str = "coordinator") -> str:
        """Say who may collude: everybody else."""
        return f"All others together, an active {middleman} among them, learn nothing of a party {LIMIT}."

    def breaks_if(self, *, masked_twice: bool, middleman: str = "coordinator") -> str:
        """Say which coalition undoes it: none, with whatever masks."""
        return "No coalition of the others: each party's sums carry the whole noise."

    def total_variance(self, target: Mechanism) -> float:
        """Return the variance of one entry of all noise together."""
        return self.parties * compute_variance(target)

    def name_removers(self, *, masked_twice: bool) -> str:
        """Name who could take noise away again."""
        return "nobody"

    @property
    def who_adds(self) -> str:
        """Who adds noise, for the privacy card."""
        return f"Each of the {self.parties} parties adds the full noise to its own numbers."


@dataclass(frozen=True, kw_only=True)
class Owner(_Placement):
    """Whoever holds the only table adds the noise, once; nothing is masked, and nobody else takes part.

    Privacy
    -------
    Protects against everyone but the one who holds the table. Event: the mechanism wanted (docs/proofs/synopsis.md,
    "One table").
    """

    each_party_draws = True
    who_adds = "Whoever holds the table adds the noise, once."
    who_could_subtract = "Whoever holds the table, who has every record anyway."

    def total_variance(self, target: Mechanism) -> float:
        """Return the variance of one entry of the noise."""
        return compute_variance(target)

    def name_removers(self, *, masked_twice: bool) -> str:
        """Name who could take noise away again."""
        return "the table's owner"

    def withstands(self, *, masked_twice: bool, middleman: str = "coordinator") -> str:
        """Say who learns nothing more: all who see the result."""
        return f"Whoever sees the result learns nothing of any record {LIMIT}."

    def breaks_if(self, *, masked_twice: bool, middleman: str = "coordinator") -> str:
        """Say who is not withstood."""
        return "Nothing is promised against whoever holds the table: they have every record and know the noise."

    def scaled_to(self, parties: int) -> Self:
        """Return this one: there is one table."""
        return self

    def check_parties(self, parties: int) -> None:
        """Refuse more than one party."""
        if parties != 1:
            raise ConfigError(f"noise by the owner of one table must be for one party; got {parties}.")


@dataclass(frozen=True, kw_only=True)
class Shared(_AmongParties):
    """Each party adds a share, such that the honest shares in any sum over a quorum are the noise wanted.

    Parameters
    ----------
    parties
        n: how many add a share, at least 2.
    colluding_max
        t: at most this many tell their shares to each other and to the receiver, or add none; 0 <= t < n. A party that
        receives the sum knows its own share and counts as one of them, so 0 is right only if no party receives it.
    quorum
        q: a sum is over at least so many parties, t < q <= n; all of them if it is not given. Who is missing is decided
        by whoever adds up, so a missing share must not count on the colluding parties: they are t of those present.

    Privacy
    -------
    Protects against the receivers together with any t parties. Event: discrete Laplace as wanted, exactly; or the sum
    of q - t discrete Gaussians, which costs at most what the one wanted does (docs/proofs/placement-shared.md).
    """

    colluding_max: int
    quorum: int | None = None

    each_party_draws = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.colluding_max < self.parties:
            raise ConfigError(
                f"colluding_max must be at least 0 and less than the number of parties; got {self.colluding_max} of "
                f"{self.parties}. Take 1 if parties receive the sum and trust each other not to collude."
            )
        if not self.colluding_max < self.members_min <= self.parties:
            raise ConfigError(
                f"a quorum must be more than the {self.colluding_max} parties that may collude and at most all "
                f"{self.parties}; got {self.quorum}."
            )

    def withstands(self, *, masked_twice: bool, middleman: str = "coordinator") -> str:
        """Say who may collude: up to t parties, with whoever adds up where masks are double."""
        some = "any one" if self.colluding_max == 1 else f"up to {self.colluding_max}"
        if masked_twice:
            return (
                f"An active {middleman} together with {some} of the {self.parties} parties learns nothing of the "
                f"others {LIMIT}."
            )
        return (
            f"Semi-honest parties, {_count_together(self.colluding_max, self.parties)}, learn nothing of the others "
            f"{LIMIT}, as long as the {middleman} follows the protocol and is helped by nobody."
        )

    def breaks_if(self, *, masked_twice: bool, middleman: str = "coordinator") -> str:
        """Say which coalition undoes it."""
        most = self.colluding_max
        colluding = "Two or more colluding parties" if most == 1 else f"More than {most} colluding parties"
        if masked_twice:
            return f"{colluding}, with the {middleman} or without: they know their own shares of the noise."
        return (
            f"The {middleman} and any one party together, as masks come from a common seed: they can unmask each "
            f"party's sums, which carry one share of the noise, too little alone. {colluding}, too: they know their "
            "own shares."
        )

    @property
    def members_min(self) -> int:
        """The quorum: a sum over fewer has too little noise."""
        return self.parties if self.quorum is None else self.quorum

    @property
    def honest_min(self) -> int:
        """How many honest shares the noise wanted is made of: q - t."""
        return self.members_min - self.colluding_max

    def scaled_to(self, parties: int) -> Self:
        """Return the same placement for another number of parties, of which as many may be missing."""
        missing = self.parties - self.members_min
        quorum = None if self.quorum is None else max(parties - missing, self.colluding_max + 1)
        return replace(self, parties=parties, quorum=quorum)

    def mechanism_for_share(self, target: Mechanism) -> Noise:
        """Return what each party adds."""
        if self.honest_min == 1 and not isinstance(target, DiscreteGaussianSum):
            return target
        match target:
            case DiscreteLaplace(scale=scale):
                return PolyaDifference(scale=scale, shares=self.honest_min)
            case DiscreteGaussian(sigma=sigma):
                return DiscreteGaussian(sigma=size_gaussian_share(sigma, self.honest_min))
            case DiscreteGaussianSum():
                raise ConfigError(
                    "noise that is a sum of shares already cannot be shared out again; got a DiscreteGaussianSum. "
                    "Ask for DiscreteGaussian or DiscreteLaplace."
                )

    def released_mechanism(self, target: Mechanism) -> Mechanism:
        """Return what the accountant is charged for: the sum of q - t shares."""
        share = self.mechanism_for_share(target)
        if self.honest_min > 1 and isinstance(share, DiscreteGaussian):
            return DiscreteGaussianSum(sigma=share.sigma, shares=self.honest_min)
        return target

    def total_variance(self, target: Mechanism) -> float:
        """Return the variance of one entry of all noise together, when no share is missing."""
        return self.parties * compute_variance(self.mechanism_for_share(target))

    def name_removers(self, *, masked_twice: bool) -> str:
        """Name who could take noise away again."""
        if self.honest_min == 1:
            return "nobody"  # one share is the noise wanted
        if not masked_twice:
            return "the coordinator with any one party, in part"
        return f"any {self.colluding_max + 1} parties, in part" if self.colluding_max else "each party, its own share"

    @property
    def who_adds(self) -> str:
        """Who adds noise, for the privacy card."""
        return f"Each of the {self.parties} parties adds a share; any {self.honest_min} of them are the stated noise."

    @property
    def who_could_subtract(self) -> str:
        """Who could take noise away again, for the privacy card."""
        most = self.colluding_max
        if self.honest_min == 1:
            return "Nobody: each party could subtract its own share, and any other one is already the stated noise."
        if most == 0:
            return "Each party could subtract its own share: the noise protects only against receivers that add none."
        leave = "One of them" if most == 1 else f"Up to {most} of them"
        leave += f", with whoever receives the sum, {'leaves' if most == 1 else 'leave'} the stated noise"
        return f"Each party could subtract its own share. {leave}; {'two' if most == 1 else most + 1} leave less."


@dataclass(frozen=True, kw_only=True)
class Joint(_AmongParties):
    """The parties sample the noise together inside secure computation; nobody knows it (FastLloyd 7.2, thesis 7.3.2).

    Parameters
    ----------
    parties
        How many sample together, at least 2.

    Privacy
    -------
    Protects against the receivers together with all parties but one, as long as the dealer of the correlated randomness
    tells none of them what it dealt. Event: discrete Laplace as wanted; what is sampled is within 2^-80 of it in total
    variation, computationally (docs/proofs/joint-noise.md).
    """

    sampled_jointly = True

    def withstands(self, *, masked_twice: bool, middleman: str = "coordinator") -> str:
        """Say who may collude: all parties but one, or the dealer alone."""
        return (
            f"Semi-honest parties, {_count_together(self.parties - 1, self.parties)}, or the semi-honest {middleman} "
            f"alone, learn nothing of the others {LIMIT}."
        )

    def breaks_if(self, *, masked_twice: bool, middleman: str = "coordinator") -> str:
        """Say which coalition undoes it."""
        return (
            f"The {middleman}, which dealt the randomness for sampling the noise, together with any one party: they "
            "can compute it."
        )

    def mechanism_for_share(self, target: Mechanism) -> Noise:
        """Refuse: a share of joint noise comes out of the computation; no holder draws it alone."""
        _check_laplace(target)
        raise ConfigError(
            "joint noise is sampled by all parties together, so no holder adds noise that it drew alone; got a request "
            "for one holder's noise. Sample it with cloister.joint_noise, or choose shared or local noise."
        )

    def released_mechanism(self, target: Mechanism) -> Mechanism:
        """Return what the accountant is charged for."""
        return _check_laplace(target)

    def total_variance(self, target: Mechanism) -> float:
        """Return the variance of one entry of all noise together: there is one noise, however many parties."""
        return compute_variance(_check_laplace(target))

    def name_removers(self, *, masked_twice: bool) -> str:
        """Name who could take noise away again."""
        return "whoever deals the randomness, with any one party"

    @property
    def who_adds(self) -> str:
        """Who adds noise, for the privacy card."""
        return (
            f"The {self.parties} parties sample the noise together, once, within a statistical distance of 2^-80 of "
            "what is stated; each adds a random-looking share of it."
        )

    @property
    def who_could_subtract(self) -> str:
        """Who could take noise away again, for the privacy card."""
        most = f"Not even {self.parties - 1} of the {self.parties} parties together"
        return (
            f"{most if self.parties > 2 else 'Neither party alone'}. Whoever dealt the randomness for the sampling, "
            "together with any one party, could compute the noise and subtract it."
        )

    def reserve_delta(self, budget: Budget, rounds: int) -> Budget:
        """Keep back the part of delta that the sampling's distance from the stated noise costs.

        Joint noise is within 2^-80 of it in total variation per round: probabilities of events change by so much on
        either input, so delta grows by at most rounds (1 + e^epsilon) 2^-80 (docs/proofs/joint-noise.md).
        """
        reserve = budget.delta * _RESERVED
        needed = rounds * (1.0 + math.exp(min(budget.epsilon, 700.0))) * 2.0**-80
        if reserve < needed:
            raise ConfigError(
                f"delta must be at least {needed / _RESERVED:.2g} with joint noise, whose law is within 2^-80 of the "
                f"stated one in each of {rounds} rounds; got {budget.delta:g}. Write delta = 1e-6."
            )
        return replace(budget, delta=budget.delta - reserve)


Placement = Aggregator | Owner | Shared | Local | Joint


def _count_together(most: int, parties: int) -> str:
    """Say how many may collude."""
    return "each alone" if most == 1 else f"up to {most} of the {parties} together"


def _check_laplace(target: Mechanism) -> DiscreteLaplace:
    """Refuse what cannot be sampled jointly."""
    if not isinstance(target, DiscreteLaplace):
        raise ConfigError(
            f"joint noise must be DiscreteLaplace; got {type(target).__name__}. Ask for Laplace noise, or let the "
            "parties add Gaussian noise in shares."
        )
    return target
