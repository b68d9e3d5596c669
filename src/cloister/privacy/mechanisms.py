"""Noise as data: which distribution, at which scale. Sampling is in ``samplers``, cost in ``accounting``.

A scale is a double and means exactly that rational number: the samplers and the accountants read the same one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from cloister.errors import ConfigError
from cloister.privacy.units import Sensitivity


@dataclass(frozen=True, kw_only=True)
class DiscreteGaussian:
    """Integers with P[x] proportional to exp(-x^2 / 2 sigma^2), independent in every entry."""

    sigma: float

    def __post_init__(self) -> None:
        _check_scale("sigma", self.sigma)


@dataclass(frozen=True, kw_only=True)
class DiscreteLaplace:
    """Integers with P[x] proportional to exp(-|x| / scale), independent in every entry."""

    scale: float

    def __post_init__(self) -> None:
        _check_scale("scale", self.scale)


@dataclass(frozen=True, kw_only=True)
class DiscreteGaussianSum:
    """The sum of ``shares`` independent discrete Gaussians of parameter ``sigma``: what honest parties add together.

    It is close to a discrete Gaussian of parameter sigma sqrt(shares), not equal; its cost has its own theorem.
    """

    sigma: float
    shares: int

    def __post_init__(self) -> None:
        _check_scale("sigma", self.sigma)
        if self.shares < 1:
            raise ConfigError(f"shares must be at least 1; got {self.shares}.")


Mechanism = DiscreteGaussian | DiscreteLaplace | DiscreteGaussianSum


def _check_scale(name: str, value: float) -> None:
    if not 0 < value < math.inf:
        raise ConfigError(f"{name} must be finite and greater than 0; got {value}.")


@dataclass(frozen=True, kw_only=True)
class Release:
    """One release of an integer vector, as an accountant sees it; immutable, and nothing in it is private.

    Parameters
    ----------
    name
        What is released, in plain words: "round 3: sums and counts".
    mechanism
        The noise that protects it against whoever receives it.
    sensitivity
        Of the released vector.
    entries
        Its length.
    """

    name: str
    mechanism: Mechanism
    sensitivity: Sensitivity
    entries: int

    def __post_init__(self) -> None:
        if self.entries < 1:
            raise ConfigError(f"a release must have at least one entry; got {self.entries}.")
