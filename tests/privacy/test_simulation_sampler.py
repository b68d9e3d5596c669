"""The simulation sampler's envelope: how far what it computes is from the exact distribution, number by number."""

import decimal
from decimal import Decimal
from itertools import pairwise

import numpy as np
import pytest

from cloister.privacy.mechanisms import DiscreteGaussian, DiscreteLaplace
from cloister.privacy.simulation_sampler import build_staircase

NOISES = [
    DiscreteGaussian(sigma=0.1),
    DiscreteGaussian(sigma=0.7),
    DiscreteGaussian(sigma=31.9),
    DiscreteGaussian(sigma=200.1),
    DiscreteLaplace(scale=0.1),
    DiscreteLaplace(scale=31.9),
    DiscreteLaplace(scale=100.3),
]


def picking_probabilities(staircase):
    """Which share of the 2^64 words picks each stair, exactly."""
    edges = [0, *(int(edge) for edge in staircase.boundaries), 1 << 64]
    return [Decimal(after - before) / (1 << 64) for before, after in pairwise(edges)]


def keeping_ratio(noise, start, offset):
    """The share of 53-bit uniforms below the ratio, as the sampler computes it."""
    if isinstance(noise, DiscreteGaussian):
        exponent = np.float64(offset) * (2 * start + offset) / (-2.0 * noise.sigma**2)
    else:
        exponent = offset / -noise.scale
    return Decimal(int(np.ceil(np.exp(exponent) * 2.0**53))) / (1 << 53)


def exact_weight(noise, x):
    if isinstance(noise, DiscreteGaussian):
        return (-Decimal(x * x) / (2 * Decimal(noise.sigma) ** 2)).exp()
    return (-Decimal(x) / Decimal(noise.scale)).exp()


@pytest.mark.parametrize("noise", NOISES, ids=str)
def test_the_total_variation_is_below_2_to_the_minus_50(noise):
    staircase = build_staircase(noise)
    width = 1 << staircase.width_bits
    with decimal.localcontext(decimal.Context(prec=45)):
        computed, exact = [], []
        for stair, picked in enumerate(picking_probabilities(staircase)):
            for offset in range(width):
                x = stair * width + offset
                ratio = keeping_ratio(noise, stair * width, offset) if width > 1 else Decimal(1)
                computed.append(picked / width * ratio * (Decimal("0.5") if x == 0 else 1))
                exact.append(exact_weight(noise, x) * (Decimal("0.5") if x == 0 else 1))
        sampled, wanted = sum(computed), sum(exact)
        distance = sum(abs(a / sampled - b / wanted) for a, b in zip(computed, exact, strict=True)) / 2
        # The tail left out is less than 101 times its first term at these scales.
        beyond = 101 * exact_weight(noise, len(exact)) / wanted
    assert distance + beyond < Decimal(2) ** -50


@pytest.mark.parametrize("scale", [32.0, 47.3, 63.9, 2.0**30, 2.0**40])
def test_tables_stay_small(scale):
    for noise in (DiscreteGaussian(sigma=scale), DiscreteLaplace(scale=scale)):
        staircase = build_staircase(noise)
        assert staircase.boundaries.size < 2**11
        assert 2**staircase.width_bits <= scale / 16
