"""Polya shares: the algorithm in exact fractions, the code against it, and what the shares add up to."""

from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from cloister.crypto import Stream, SystemEntropy
from cloister.errors import ConfigError
from cloister.privacy.mechanisms import DiscreteLaplace
from cloister.privacy.polya import PolyaDifference, draw_uniform, fold_to_geometric, thin_geometric
from tests.privacy.distributions import ALPHA, chi_square, convolve, pmf, polya_pmf


class Words:
    """A byte source that gives the stated 64-bit words and then nothing."""

    def __init__(self, *words):
        self.words = list(words)

    def bytes(self, count):
        taken, self.words = self.words[: count // 8], self.words[count // 8 :]
        assert len(taken) == count // 8, "more words were asked for than stated"
        return np.array(taken, dtype="<u8").tobytes()


class TestUniformIntegers:
    def test_the_words_that_would_favour_small_numbers_are_drawn_again(self):
        last = 2**64 - 1  # 2^64 mod 3 = 1, so that only the last word is one too many
        assert draw_uniform(np.array([3, 3]), Words(last, last - 1, 7)).tolist() == [1, 2]

    @pytest.mark.parametrize("high", [1, 2, 2**40, 2**62])
    def test_powers_of_two_reject_nothing(self, high):
        assert draw_uniform(np.array([high]), Words(2**64 - 1)).tolist() == [high - 1]

    @pytest.mark.parametrize("high", [3, 5, 12, 2**62 - 1, 2**63 - 1])
    def test_as_many_words_are_left_as_a_multiple_of_the_range(self, high):
        limit = 2**64 - 2**64 % high
        assert draw_uniform(np.array([high]), Words(limit - 1)).tolist() == [high - 1]
        assert draw_uniform(np.array([high]), Words(limit, 0)).tolist() == [0]

    def test_the_system_is_a_source(self):
        drawn = draw_uniform(np.full(6000, 6), SystemEntropy())
        assert chi_square(np.bincount(drawn, minlength=6).astype(float), np.full(6, 1000.0)) > ALPHA


@cache
def kept_probability(kept, things, shares):
    """P[kept | things] of the cycle algorithm, by the first cycle's length and fate."""
    if kept < 0:
        return Fraction(0)
    if things == 0:
        return Fraction(int(kept == 0))
    keep = Fraction(1, shares)
    total = sum(
        keep * kept_probability(kept - cycle, things - cycle, shares)
        + (1 - keep) * kept_probability(kept, things - cycle, shares)
        for cycle in range(1, things + 1)
    )
    return total / things


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

    def test_folding_maps_two_laplace_values_to_each_geometric_one(self):
        assert fold_to_geometric(np.array([-3, -2, -1, 0, 1, 2])).tolist() == [2, 1, 0, 0, 1, 2]


class TestShares:
    @pytest.mark.parametrize("shares", [2, 3, 6])
    @pytest.mark.parametrize("scale", [0.3, 1.0, 4.0])
    def test_add_up_to_discrete_laplace(self, scale, shares):
        share = pmf(PolyaDifference(scale=scale, shares=shares), 300)
        wanted = pmf(DiscreteLaplace(scale=scale), 300)
        assert np.abs(convolve([share] * shares) - wanted).max() < 1e-12
        assert np.abs(convolve([share] * (shares - 1)) - wanted).max() > 1e-3

    @pytest.mark.parametrize(("scale", "shares"), [(0.0, 1), (-1.0, 1), (float("inf"), 1), (1.0, 0)])
    def test_refuse_nonsense(self, scale, shares):
        with pytest.raises(ConfigError):
            PolyaDifference(scale=scale, shares=shares)
