"""How much noise there is: the variance of one entry, for utility. Privacy is never computed from it."""

from __future__ import annotations

import math

import numpy as np

from cloister.privacy.mechanisms import DiscreteGaussian, DiscreteGaussianSum, DiscreteLaplace
from cloister.privacy.polya import PolyaDifference
from cloister.privacy.samplers import Noise

_SIGMA_SQUARED_FROM = 2.0  # from here on sigma^2 is the variance up to a factor 1 - 8 pi^2 sigma^2 exp(-2 pi^2 sigma^2)


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
