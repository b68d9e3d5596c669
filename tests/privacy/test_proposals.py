"""What is proposed and kept has the stated law, as a sum over all proposals; and three words decide as they should."""

from fractions import Fraction

import numpy as np
import pytest

from cloister.privacy.mechanisms import DiscreteGaussian, DiscreteLaplace
from cloister.privacy.proposals import propose
from tests.privacy.distributions import pmf
from tests.privacy.exact import Bits, bound_exponential

NOISES = [
    DiscreteGaussian(sigma=0.1),
    DiscreteGaussian(sigma=0.7),
    DiscreteGaussian(sigma=1.0),
    DiscreteGaussian(sigma=3.75),
    DiscreteGaussian(sigma=7.0),
    DiscreteLaplace(scale=0.1),
    DiscreteLaplace(scale=0.75),
    DiscreteLaplace(scale=1.0),
    DiscreteLaplace(scale=2.25),
    DiscreteLaplace(scale=6.0),
]
HALF = 1 << 63


def sum_proposals(noise, reach):
    """P[x] for x = -reach .. reach, from the probabilities of U, V, coin and sign."""
    proposal, mass = propose(noise), np.zeros(2 * reach + 1)
    for run in range(41):
        chosen = np.exp(-float(run * proposal.step)) * -np.expm1(-float(proposal.step)) / proposal.width / 2
        for offset in range(proposal.width):
            magnitude = (offset + proposal.width * run) >> proposal.shift
            if magnitude <= reach:
                kept = chosen * np.exp(-float(proposal.exponent(offset, run)))
                mass[reach + magnitude] += kept
                if magnitude > 0:
                    mass[reach - magnitude] += kept
    return mass


@pytest.mark.parametrize("noise", NOISES, ids=str)
def test_all_proposals_together_have_the_stated_law(noise):
    mass = sum_proposals(noise, 30)
    assert np.allclose(mass / mass.sum(), pmf(noise, 30) / pmf(noise, 30).sum(), rtol=1e-12, atol=1e-300)
    assert mass.sum() > 0.3  # fewer than four proposals a sample


@pytest.mark.parametrize("noise", [*NOISES, DiscreteGaussian(sigma=2.0**40), DiscreteLaplace(scale=2.0**40 - 0.125)])
def test_the_scale_is_the_fraction_that_the_double_is(noise):
    proposal = propose(noise)
    rng = np.random.default_rng(2)
    for _ in range(20):
        offset, run = int(rng.integers(proposal.width)), int(rng.integers(20))
        x = offset + proposal.width * run
        weight = run * proposal.step + proposal.exponent(offset, run)
        if isinstance(noise, DiscreteGaussian):
            constant = proposal.exponent(0, 0)
            assert weight - constant == Fraction(x * x) / (2 * Fraction(noise.sigma) ** 2)
        else:
            assert weight == Fraction(x, 1 << proposal.shift) / Fraction(noise.scale)


class TestDecisions:
    """A discrete Laplace of scale 3: U below 3, V by exp(-1), kept with exp(-U / 3)."""

    proposal = propose(DiscreteLaplace(scale=3.0))

    def test_a_word_that_would_favour_small_numbers_proposes_nothing(self):
        # 2^64 = 1 modulo 3: the word 0 is the one too many.
        assert self.proposal.decide([0, HALF, 2], Bits()) is None
        assert self.proposal.decide([1, HALF, 2], Bits()) == 0

    def test_the_lowest_bit_is_the_sign_and_zero_has_one_only(self):
        one = 2**64 // 3 + 5
        assert self.proposal.decide([one, HALF, 2], Bits()) == 1
        assert self.proposal.decide([one, HALF, 3], Bits()) == -1
        assert self.proposal.decide([1, HALF, 3], Bits()) is None

    def test_v_counts_powers_of_one_over_e(self):
        for run in range(1, 30):
            word = int(2**64 * np.exp(-(run + 0.5)))
            assert self.proposal.decide([1, word, 2], Bits()) == 3 * run

    def test_the_first_word_of_all_zeros_takes_more_bits(self):
        source = Bits(HALF)  # u = 2^-65, between exp(-46) and exp(-45)
        assert self.proposal.decide([1, 0, 2], source) == 3 * 45
        assert not source.words

    @pytest.mark.parametrize(("more", "kept"), [(0, 1), (2**64 - 1, None)])
    def test_an_open_coin_takes_more_bits(self, more, kept):
        one = 2**64 // 3 + 5
        coin = bound_exponential(Fraction(1, 3), 63)[0].__floor__()
        source = Bits(more)
        assert self.proposal.decide([one, HALF, 2 * coin], source) == kept
        assert not source.words
