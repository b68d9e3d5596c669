"""Where noise is put: by the aggregator once, by the parties in shares, in full or jointly.

Given the mechanism that is wanted against whoever receives a sum, a placement says what ONE holder adds, what the
accountant must be charged for, and who could take the noise away again. The test for each is the same: whoever knows
a noise value is not protected against by it. So the mechanism to charge is the noise of the honest holders only; what
the others add is independent of the records, and adding it is post-processing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from cloister.errors import ConfigError
from cloister.privacy.costs import ripple_of_sum
from cloister.privacy.mechanisms import DiscreteGaussian, DiscreteGaussianSum, DiscreteLaplace, Mechanism
from cloister.privacy.polya import PolyaDifference
from cloister.privacy.samplers import Noise
from cloister.privacy.variance import compute_variance

_ROUNDING_SLACK = 1.0 + 2.0**-40  # for the double roundings here and in an accountant


@dataclass(frozen=True, kw_only=True)
class Aggregator:
    """The coordinator adds the noise once, to a sum that it sees only masked (thesis 7.2.4).

    Privacy
    -------
    Protects against everyone who receives the sum but does not learn the noise from the aggregator. Event: the
    mechanism wanted (docs/proofs/placement-aggregator.md).
    """

    def mechanism_for_share(self, target: Mechanism) -> Noise:
        """Return what the aggregator adds."""
        return target

    def released_mechanism(self, target: Mechanism) -> Mechanism:
        """Return what the accountant is charged for."""
        return target

    def total_variance(self, target: Mechanism) -> float:
        """Return the variance of one entry of all noise together."""
        return compute_variance(target)

    @property
    def who_adds(self) -> str:
        """Who adds noise, for the privacy card."""
        return "The coordinator adds the noise, once, to the masked sum."

    @property
    def who_could_subtract(self) -> str:
        """Who could take noise away again, for the privacy card."""
        return "The coordinator knows the noise: it and one party together could subtract it from the sum."


@dataclass(frozen=True, kw_only=True)
class Local:
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

    parties: int

    def __post_init__(self) -> None:
        _check_parties(self.parties, 1)

    def mechanism_for_share(self, target: Mechanism) -> Noise:
        """Return what each party adds."""
        return target

    def released_mechanism(self, target: Mechanism) -> Mechanism:
        """Return what the accountant is charged for: the record's own party is the only one relied on."""
        return target

    def total_variance(self, target: Mechanism) -> float:
        """Return the variance of one entry of all noise together."""
        return self.parties * compute_variance(target)

    @property
    def who_adds(self) -> str:
        """Who adds noise, for the privacy card."""
        return f"Each of the {self.parties} parties adds the full noise to its own numbers."

    @property
    def who_could_subtract(self) -> str:
        """Who could take noise away again, for the privacy card."""
        return "Nobody: each party knows only its own noise, which protects its own records."


@dataclass(frozen=True, kw_only=True)
class Shared:
    """Each party adds a share, such that the shares of any n - t honest parties are the noise wanted.

    Parameters
    ----------
    parties
        n: how many add a share, at least 2.
    colluding_max
        t: at most this many tell their shares to each other and to the receiver, or add none; 0 <= t < n. A party that
        receives the sum knows its own share and counts as one of them, so 0 is right only if no party receives it.

    Privacy
    -------
    Protects against the receivers together with any t parties. Event: discrete Laplace as wanted, exactly; or the sum
    of n - t discrete Gaussians, which costs at most what the one wanted does (docs/proofs/placement-shared.md).
    """

    parties: int
    colluding_max: int

    def __post_init__(self) -> None:
        _check_parties(self.parties, 2)
        if not 0 <= self.colluding_max < self.parties:
            raise ConfigError(
                f"colluding_max must be at least 0 and less than the number of parties; got {self.colluding_max} of "
                f"{self.parties}. Take 1 if parties receive the sum and trust each other not to collude."
            )

    @property
    def honest_min(self) -> int:
        """How many honest shares the noise wanted is made of: n - t."""
        return self.parties - self.colluding_max

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
        """Return what the accountant is charged for: the sum of n - t shares."""
        share = self.mechanism_for_share(target)
        if self.honest_min > 1 and isinstance(share, DiscreteGaussian):
            return DiscreteGaussianSum(sigma=share.sigma, shares=self.honest_min)
        return target

    def total_variance(self, target: Mechanism) -> float:
        """Return the variance of one entry of all noise together, when no share is missing."""
        return self.parties * compute_variance(self.mechanism_for_share(target))

    @property
    def who_adds(self) -> str:
        """Who adds noise, for the privacy card."""
        return f"Each of the {self.parties} parties adds a share; any {self.honest_min} of them are the stated noise."

    @property
    def who_could_subtract(self) -> str:
        """Who could take noise away again, for the privacy card."""
        if self.colluding_max == 0:
            return "Each party could subtract its own share: the noise protects only against receivers that add none."
        return (
            f"Each party could subtract its own share. Up to {self.colluding_max} of them together, with whoever "
            f"receives the sum, leave the stated noise; {self.colluding_max + 1} leave less."
        )


@dataclass(frozen=True, kw_only=True)
class Joint:
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

    parties: int

    def __post_init__(self) -> None:
        _check_parties(self.parties, 2)

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
        return (
            f"Not even {self.parties - 1} of the {self.parties} parties together. Whoever dealt the randomness for the "
            "sampling, together with any one party, could compute the noise and subtract it."
        )


Placement = Aggregator | Shared | Local | Joint


def size_gaussian_share(sigma: float, shares: int) -> float:
    """Return a share's sigma such that ``shares`` of them cost at most what one discrete Gaussian of ``sigma`` does.

    It is sigma / sqrt(shares) and a relative 2^-40 where that is 2 or more. Below, a sum of discrete Gaussians is too
    far from a discrete Gaussian and the share must be larger, but never more than sigma: then one share is enough.

    Privacy
    -------
    With s = share sqrt(shares) and r the ripple of the sum, its cost for norms D_1 and D_2 is at most
    rho = (D_2^2 / s^2 + 2 r D_1 / s + r^2 D_1) / 2 (docs/proofs/accounting.md, "Sums of discrete Gaussians"). Integer
    vectors have D_1 <= D_2^2, so this is at most D_2^2 (1 / s + r)^2 / 2: not more than D_2^2 / 2 sigma^2 as soon as
    1 / s + r <= 1 / sigma, whatever the sensitivity and the number of entries.
    """
    low = sigma / math.sqrt(shares) * _ROUNDING_SLACK
    if low >= sigma or not _costs_no_more(sigma, shares, sigma):
        return sigma
    if _costs_no_more(low, shares, sigma):
        return low
    high = sigma
    while high > low * _ROUNDING_SLACK:
        middle = (low + high) / 2.0
        if _costs_no_more(middle, shares, sigma):
            high = middle
        else:
            low = middle
    return high


def _costs_no_more(share_sigma: float, shares: int, sigma: float) -> bool:
    """Whether 1 / (share sqrt(shares)) + ripple <= 1 / sigma, with room for roundings."""
    inverse_deviation = 1.0 / (share_sigma * math.sqrt(shares))
    return (inverse_deviation + ripple_of_sum(share_sigma, shares)) * math.sqrt(_ROUNDING_SLACK) <= 1.0 / sigma


def _check_laplace(target: Mechanism) -> DiscreteLaplace:
    """Refuse what cannot be sampled jointly."""
    if not isinstance(target, DiscreteLaplace):
        raise ConfigError(
            f"joint noise must be DiscreteLaplace; got {type(target).__name__}. Ask for Laplace noise, or let the "
            "parties add Gaussian noise in shares."
        )
    return target


def _check_parties(parties: int, least: int) -> None:
    if parties < least:
        raise ConfigError(f"noise from the parties needs at least {least} of them; got {parties}.")
