"""The simulation sampler's envelope: how far what it computes is from the exact distribution, number by number."""

import decimal
from decimal import Decimal
from itertools import pairwise

import numpy as np
import pytest

from cloister.crypto import Stream, SystemEntropy
from cloister.privacy.mechanisms import DiscreteGaussian, DiscreteLaplace
from cloister.privacy.simulation_sampler import build_staircase, draw_uniform, thin_geometric
from tests.privacy.distributions import ALPHA, chi_square, kept_probability, polya_pmf
from tests.privacy.exact import Bits

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


class TestUniformIntegers:
    def test_the_words_that_would_favour_small_numbers_are_drawn_again(self):
        last = 2**64 - 1  # 2^64 mod 3 = 1, so that only the last word is one too many
        assert draw_uniform(np.array([3, 3]), Bits(last, last - 1, 7)).tolist() == [1, 2]

    @pytest.mark.parametrize("high", [1, 2, 2**40, 2**62])
    def test_powers_of_two_reject_nothing(self, high):
        assert draw_uniform(np.array([high]), Bits(2**64 - 1)).tolist() == [high - 1]

    @pytest.mark.parametrize("high", [3, 5, 12, 2**62 - 1, 2**63 - 1])
    def test_as_many_words_are_left_as_a_multiple_of_the_range(self, high):
        limit = 2**64 - 2**64 % high
        assert draw_uniform(np.array([high]), Bits(limit - 1)).tolist() == [high - 1]
        assert draw_uniform(np.array([high]), Bits(limit, 0)).tolist() == [0]

    def test_the_system_is_a_source(self):
        drawn = draw_uniform(np.full(6000, 6), SystemEntropy())
        assert chi_square(np.bincount(drawn, minlength=6).astype(float), np.full(6, 1000.0)) > ALPHA


class TestThinning:
    @pytest.mark.parametrize("shares", [1, 2, 3, 7])
    @pytest.mark.parametrize("scale", [0.5, 2.0])
    def test_a_geometric_number_of_things_leaves_a_negative_binomial(self, scale, shares):
        p = np.exp(-1.0 / scale)
        for kept in range(6):
            mixed = sum(
                (1 - p) * p**things * float(kept_probability(kept, things, shares)) for things in range(kept, 75)
            )
            assert mixed == pytest.approx(polya_pmf(scale, shares, 6)[kept], abs=1e-12)

    @pytest.mark.parametrize("shares", [2, 5])
    def test_the_code_keeps_what_the_algorithm_keeps(self, shares):
        things, draws = 9, 200_000
        kept = thin_geometric(np.full(draws, things), shares, Stream.from_seed(3, "thin", shares))
        expected = [float(kept_probability(k, things, shares)) * draws for k in range(things + 1)]
        assert chi_square(np.bincount(kept, minlength=things + 1).astype(float), np.array(expected)) > ALPHA

    def test_one_share_keeps_all(self):
        things = np.array([0, 1, 5, 2**45])
        assert np.array_equal(thin_geometric(things, 1, Stream.from_seed(3, "all")), things)
