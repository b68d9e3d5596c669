"""Noise of a fixed plan of releases: calibrated once, charged one by one, drawn only then."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from cloister.privacy.accounting import Accountant
from cloister.privacy.calibration import calibrate
from cloister.privacy.mechanisms import DiscreteGaussian, DiscreteLaplace, Release
from cloister.privacy.samplers import Sampler
from cloister.privacy.units import Budget, Sensitivity
from cloister.records import IntArray

LabelArray = NDArray[np.int32]
"""What the kernel gives: each record's cluster."""


@dataclass(frozen=True, kw_only=True)
class Step:
    """One release of integers, before its noise is known.

    Parameters
    ----------
    name
        What is released.
    share
        Its part of the sum of all steps' epsilons.
    entries
        How many numbers.
    longest
        The most that a unit adds: in L2 for Gaussian noise, in L1 for Laplace.
    is_gaussian
        Which of both.
    """

    name: str
    share: float
    entries: int
    longest: int
    is_gaussian: bool

    def make_release(self, epsilon: float, delta: float) -> Release:
        """The release with the noise that the text asks for (2), at its own epsilon.

        Gaussian: sigma = sqrt(2 ln(1.25 / delta)) S / epsilon. Laplace: scale S / epsilon.
        """
        noise: DiscreteGaussian | DiscreteLaplace
        if self.is_gaussian:
            noise = DiscreteGaussian(sigma=math.sqrt(2 * math.log(1.25 / delta)) * self.longest / epsilon)
            sensitivity = Sensitivity(l1=self.longest**2, l2_squared=self.longest**2)
        else:
            noise = DiscreteLaplace(scale=self.longest / epsilon)
            sensitivity = Sensitivity(l1=self.longest, l2_squared=self.longest**2)
        return Release(name=self.name, mechanism=noise, sensitivity=sensitivity, entries=self.entries)


@lru_cache(maxsize=512)
def plan_releases(budget: Budget, steps: tuple[Step, ...]) -> tuple[Release, ...]:
    """Find the least noise at which all steps together fit the budget, with their epsilons in the given proportions.

    Privacy
    -------
    Neighbours: one unit added or removed; it changes a step's integers by at most ``longest`` in the step's norm.
    Event: all steps. Theorem: `Accountant` with a fixed plan, which composes privacy loss distributions.
    """
    whole = sum(step.share for step in steps)

    def make_releases(multiplier: float) -> tuple[Release, ...]:
        made = {
            step: step.make_release(budget.epsilon * step.share / whole / multiplier, budget.delta) for step in steps
        }
        return tuple(made[step] for step in steps)

    return make_releases(calibrate(budget, make_releases=make_releases, fixed_plan=True))


class PlannedNoise:
    """Adds the noise of a plan, in its order; every release is charged before its noise is drawn.

    Parameters
    ----------
    budget, releases
        What may be spent, and the whole plan.
    sampler
        Draws the noise.
    """

    def __init__(self, budget: Budget, releases: Sequence[Release], sampler: Sampler) -> None:
        self._accountant = Accountant(budget, plan=releases)
        self._due = iter(releases)
        self._sampler = sampler

    def release(self, exact: IntArray) -> IntArray:
        """Charge the next release of the plan and return these numbers with its noise."""
        release = next(self._due)
        self._accountant.charge(release)
        return exact + self._sampler.draw(release.mechanism, exact.size).reshape(exact.shape)
