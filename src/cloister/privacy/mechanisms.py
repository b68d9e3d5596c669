"""Noise as data: which distribution, at which scale. Sampling is in ``samplers``, cost in ``costs``.

A scale is a double and means exactly that rational number: the samplers and the accountants read the same one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from cloister.errors import ConfigError
from cloister.privacy.units import Sensitivity

_SIGMA_SQUARED_FROM = 2.0  # from here on sigma^2 is the variance up to a factor 1 - 8 pi^2 sigma^2 exp(-2 pi^2 sigma^2)


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


@dataclass(frozen=True, kw_only=True)
class PolyaDifference:
    """One holder's share of discrete Laplace noise: the difference of two NB(1 / shares, exp(-1 / scale)).

    For sampling only. One share alone is not a mechanism that an accountant knows, and must never be one: the sum of
    ``shares`` of them is :class:`~cloister.privacy.mechanisms.DiscreteLaplace` of the same scale.
    """

    scale: float
    shares: int

    def __post_init__(self) -> None:
        if not 0 < self.scale < math.inf:
            raise ConfigError(f"scale must be finite and greater than 0; got {self.scale}.")
        if self.shares < 1:
            raise ConfigError(f"shares must be at least 1; got {self.shares}.")


Noise = Mechanism | PolyaDifference
"""What can be sampled: the mechanisms, and the shares that only together are one."""


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


def compute_variance(noise: Noise) -> float:
    """Return the variance of one entry, to double precision."""
    match noise:
        case DiscreteGaussian(sigma=sigma):
            return _gaussian_variance(sigma)
        case DiscreteGaussianSum(sigma=sigma, shares=shares):
            return shares * _gaussian_variance(sigma)
        case DiscreteLaplace(scale=scale):
            return _laplace_variance(scale)
        case PolyaDifference(scale=scale, shares=shares):
            return _laplace_variance(scale) / shares


def _gaussian_variance(sigma: float) -> float:
    """Sum over the integers where sigma^2 is not close enough."""
    if sigma >= _SIGMA_SQUARED_FROM:
        return sigma * sigma
    x = np.arange(-40, 41)  # the rest is below exp(-200)
    with np.errstate(over="ignore"):  # tiny sigma: exp(-inf) = 0 is right
        weights = np.exp(-0.5 * np.square(x / sigma))
    return float(weights @ (x * x) / weights.sum())


def _laplace_variance(scale: float) -> float:
    """2 p / (1 - p)^2 with p = exp(-1 / scale)."""
    return 2.0 * math.exp(-1.0 / scale) / math.expm1(-1.0 / scale) ** 2


def _check_scale(name: str, value: float) -> None:
    if not 0 < value < math.inf:
        raise ConfigError(f"{name} must be finite and greater than 0; got {value}.")
