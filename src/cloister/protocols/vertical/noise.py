"""What hides an answer: each holder's share of the noise on totals, and a flood over the errors of ciphertexts.

A key holder knows the errors e of its own ciphertexts. The computing party's answer carries <w, e> in its low bits: an
equation about its weights w, and so about its columns. Two ways to hide it:

* **statistical**: add uniform noise 2^40 times as large. What is left is within 2^-40 per number.
* **charged**: with a budget and one key holder, add a discrete Gaussian and pay for what it does not hide, like for any
  other release. That takes a smaller modulus, half the upload, and a sliver of the budget (``Settings.flood_share``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, log, sqrt

import numpy as np

from cloister.lattice.sampling import ERROR_STD
from cloister.privacy.mechanisms import DiscreteGaussian, Release
from cloister.privacy.release import NoiseDuty
from cloister.privacy.samplers import Sampler
from cloister.privacy.units import Sensitivity
from cloister.protocols.vertical.query import LloydQuery, Part, Query
from cloister.protocols.vertical.settings import Settings
from cloister.records import IntArray

STATISTICAL_BITS = 40
"""What is not charged happens, or shows, with a probability of 2^-40 per number at most; rarer for a smaller delta."""
STATISTICAL_BITS_MOST, CHARGED_BITS_MOST = 64, 57  # beyond, a Gaussian flood's own tail would count
BOUNDS_OF_PAIR = 2  # an answer's bounds must hold for both of two neighbouring inputs
ERRORS_FAILURE_BITS = 60
_FAILURE_LOG = ERRORS_FAILURE_BITS * log(2)  # for one record's errors


def draw_share(settings: Settings, parts: Sequence[Part], sampler: Sampler) -> IntArray:
    """What one holder of noise adds to a total: a draw for each part, in order."""
    drawn = [
        np.zeros(part.length, dtype=np.int64)
        if part.sigma is None
        else sampler.draw(settings.share_of(part.sigma), part.length)
        for part in parts
    ]
    return np.concatenate(drawn)


def pay_share(settings: Settings, parts: Sequence[Part], duty: NoiseDuty | None) -> IntArray:
    """Charge one holder of noise for all parts, then draw what it adds; zeros without a budget."""
    if duty is None:
        return np.zeros(sum(part.length for part in parts), dtype=np.int64)
    for part in parts:
        duty.charger.charge(part.release(settings))
    return draw_share(settings, parts, duty.sampler)


@dataclass(frozen=True, kw_only=True)
class StatisticalFlood:
    """Uniform noise in +-2^bits on every number of an answer.

    Privacy
    -------
    The number's error e is hidden but for a probability of |e| / 2^bits, which counts as delta: floods of all errors up
    to |e| are the same within a common interval (docs/proofs/vertical.md, claim 13).
    """

    bits: int


@dataclass(frozen=True, kw_only=True)
class ChargedFlood:
    """Discrete Gaussian noise, and a price.

    Parameters
    ----------
    std
        The noise's parameter, in units of the ciphertext modulus.
    bodies
        How many ciphertexts a record's place is in: cells, and residuals of cells.
    """

    std: float
    bodies: int

    def price(self, query: Query) -> Release:
        """Return what an answer's errors reveal to its key holder, as a release.

        Privacy
        -------
        Neighbours: one aligned record added or removed. A record's places in the ciphertexts carry errors e_c, one for
        each of C ``bodies``; by its columns Alice decides what multiplies each: at worst all go to one cluster. There
        an error adds at most |e_c| (1, a, b) with |a| <= R_A and |b| <= R_B, so that the record adds a vector of length
        at most sum_c |e_c| sqrt(1 + R_A^2 + R_B^2) <= `bound_errors` times that. Event: a discrete Gaussian on every
        number. Holds except with probability 2^-60 per record, that its errors are longer (docs/proofs/vertical.md).
        """
        weight = sqrt(1 + query.l2_squared) if isinstance(query, LloydQuery) else 1.0
        longest = ceil(bound_errors(self.bodies) * weight)
        return Release(
            name=f"{query.name}: errors of the ciphertexts",
            mechanism=DiscreteGaussian(sigma=self.std),
            sensitivity=Sensitivity(l1=longest**2, l2_squared=longest**2),
            entries=query.length,
        )


Flood = StatisticalFlood | ChargedFlood


def bound_errors(bodies: int) -> float:
    """Return a bound on |e_1| + ... + |e_C| for one record, which fails with probability 2^-60.

    |e|_1 <= sqrt(C) |e|_2, and for independent subgaussian errors of parameter s,
    P[|e|_2^2 > s^2 (C + 2 sqrt(C x) + 2 x)] <= exp(-x) (Hsu, Kakade and Zhang 2012, Theorem 2.1).
    """
    return ERROR_STD * sqrt(bodies * (bodies + 2 * sqrt(bodies * _FAILURE_LOG) + 2 * _FAILURE_LOG))


def least_charged_std(*, bodies: int, weight_max: float, queries: int, rho: float) -> float:
    """The least noise with which all answers' errors together cost at most rho."""
    longest = ceil(bound_errors(bodies) * weight_max) + 1
    return longest * sqrt(queries / (2 * rho)) * (1 + 1e-9)
