"""Both samplers against exact probabilities, and the wrong samplers that the same battery must catch.

The exact sampler cannot be seeded. Its tests fail by chance with a probability of about 1e-6 each.
"""

from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from cloister.crypto import Stream, SystemEntropy
from cloister.errors import ConfigError, PrecisionError
from cloister.privacy.mechanisms import DiscreteGaussian, DiscreteGaussianSum, DiscreteLaplace, PolyaDifference
from cloister.privacy.samplers import ExactSampler, draw_uniform, fold_to_geometric, thin_geometric
from cloister.privacy.simulation_sampler import SimulationSampler
from tests.privacy.distributions import ALPHA, battery, battery_for_huge_scales, chi_square, convolve, pmf, polya_pmf

EXACT_ENTRIES = 20_000
SIMULATED_ENTRIES = 1_000_000
REACH = 400
SMALL = [
    DiscreteGaussian(sigma=0.1),
    DiscreteGaussian(sigma=0.3),
    DiscreteGaussian(sigma=1.0),
    DiscreteGaussian(sigma=3.7),
    DiscreteGaussian(sigma=33.0),
    DiscreteLaplace(scale=0.1),
    DiscreteLaplace(scale=0.3),
    DiscreteLaplace(scale=2.5),
    DiscreteLaplace(scale=33.0),
    DiscreteGaussianSum(sigma=0.6, shares=3),
    PolyaDifference(scale=0.3, shares=2),
    PolyaDifference(scale=5.0, shares=4),
]
HUGE = [
    DiscreteGaussian(sigma=2.0**30 + 1.25),
    DiscreteLaplace(scale=2.0**30 + 1.25),
    DiscreteGaussian(sigma=2.0**40),
    DiscreteLaplace(scale=2.0**40),
]


def simulation(*context):
    return SimulationSampler(Stream.from_seed(7, "test samplers", *context))


class TestExactSampler:
    def test_is_not_a_simulation(self):
        assert not ExactSampler().is_simulation

    @pytest.mark.parametrize("noise", SMALL, ids=str)
    def test_has_the_exact_distribution(self, noise):
        assert battery(ExactSampler().draw(noise, EXACT_ENTRIES), pmf(noise, REACH)) > ALPHA

    @pytest.mark.parametrize("noise", HUGE, ids=str)
    def test_has_the_exact_distribution_at_huge_scales(self, noise):
        assert battery_for_huge_scales(ExactSampler().draw(noise, EXACT_ENTRIES), noise) > ALPHA

    def test_never_repeats_itself(self):
        noise = DiscreteGaussian(sigma=2.0**30)
        assert np.unique(np.concatenate([ExactSampler().draw(noise, 8) for _ in range(4)])).size == 32

    def test_leaves_the_switch_for_unreviewed_opendp_functions_as_it_was(self):
        from opendp.mod import GLOBAL_FEATURES

        before = set(GLOBAL_FEATURES)
        ExactSampler().draw(DiscreteLaplace(scale=1.2345), 1)
        assert set(GLOBAL_FEATURES) == before


class TestSimulationSampler:
    def test_is_a_simulation(self):
        assert simulation().is_simulation

    @pytest.mark.parametrize("noise", SMALL, ids=str)
    def test_has_the_exact_distribution(self, noise):
        assert battery(simulation(str(noise)).draw(noise, SIMULATED_ENTRIES), pmf(noise, REACH)) > ALPHA

    @pytest.mark.parametrize("noise", HUGE, ids=str)
    def test_has_the_exact_distribution_at_huge_scales(self, noise):
        assert battery_for_huge_scales(simulation(str(noise)).draw(noise, SIMULATED_ENTRIES), noise) > ALPHA

    @pytest.mark.parametrize(
        ("noise", "expected"),
        [
            (DiscreteGaussian(sigma=0.3), [0, 0, 0, 0, 0, 0, 0, 0]),
            (DiscreteGaussian(sigma=3.7), [-2, -1, 9, -4, 0, 2, 2, 1]),
            (
                DiscreteGaussian(sigma=1099511627776.0),
                [
                    -811076732659,
                    -304678772353,
                    2648119685173,
                    -1236086255835,
                    161560995731,
                    741982869968,
                    732061772253,
                    441851008416,
                ],
            ),
            (DiscreteLaplace(scale=2.5), [-1, 10, -3, 0, 1, 1, 0, -5]),
            (
                DiscreteLaplace(scale=1073741824.0),
                [-871417587, -205856385, 4298879029, -1350267099, 164177811, 631249360, 709372381, 408901024],
            ),
            (DiscreteGaussianSum(sigma=0.6, shares=3), [1, 1, -1, 0, 1, 2, 0, 1]),
            (PolyaDifference(scale=1000.0, shares=4), [-30, -410, -10, -402, -21, -55, 98, 74]),
        ],
        ids=str,
    )
    def test_known_answers(self, noise, expected):
        assert simulation("known answers").draw(noise, 8).tolist() == expected

    def test_the_same_stream_gives_the_same_noise_and_goes_on(self):
        noise = DiscreteGaussian(sigma=50.0)
        one, other = simulation("a"), simulation("a")
        first = one.draw(noise, 100_000)
        assert np.array_equal(first, other.draw(noise, 100_000))
        assert not np.array_equal(first, one.draw(noise, 100_000))
        assert not np.array_equal(first, simulation("b").draw(noise, 100_000))


SAMPLERS = [ExactSampler(), simulation("common")]


@pytest.mark.parametrize("sampler", SAMPLERS, ids=["exact", "simulation"])
class TestBothSamplers:
    def test_give_64_bit_integers_of_the_length_asked(self, sampler):
        for noise in SMALL:
            samples = sampler.draw(noise, 3)
            assert samples.shape == (3,)
            assert samples.dtype == np.int64
        assert sampler.draw(SMALL[0], 0).shape == (0,)

    def test_tiny_scales_end(self, sampler):
        for noise in (DiscreteGaussian(sigma=1e-300), DiscreteLaplace(scale=1e-300)):
            assert not sampler.draw(noise, 10).any()

    @pytest.mark.parametrize(
        "noise",
        [
            DiscreteGaussian(sigma=2.0**40 + 1),
            DiscreteLaplace(scale=2.0**40 + 1),
            DiscreteGaussianSum(sigma=2.0**39, shares=5),
            PolyaDifference(scale=1e300, shares=2),
        ],
        ids=str,
    )
    def test_refuse_scales_that_could_leave_64_bits(self, sampler, noise):
        with pytest.raises(PrecisionError, match="at most 2\\^40"):
            sampler.draw(noise, 1)

    def test_refuse_a_negative_length(self, sampler):
        with pytest.raises(ConfigError, match="at least 0; got -1"):
            sampler.draw(DiscreteGaussian(sigma=1.0), -1)

    def test_report_progress_up_to_the_end(self, sampler):
        entries = 40_000 if not sampler.is_simulation else 200_000
        reports = []
        sampler.draw(DiscreteLaplace(scale=3.0), entries, lambda done, total: reports.append((done, total)))
        assert len(reports) > 2
        assert reports == sorted(reports)
        assert {total for _, total in reports} == {entries}
        assert reports[-1][0] == entries


class TestTheBatteryCatches:
    """Wrong samplers, at the size of the exact sampler's tests."""

    @pytest.mark.parametrize("sigma", [0.3, 0.6])
    def test_a_rounded_continuous_gaussian(self, sigma):
        samples = np.rint(np.random.default_rng(11).normal(0.0, sigma, EXACT_ENTRIES)).astype(np.int64)
        assert battery(samples, pmf(DiscreteGaussian(sigma=sigma), REACH)) < ALPHA

    @pytest.mark.parametrize("noise", [DiscreteGaussian(sigma=3.7), DiscreteLaplace(scale=2.5)], ids=str)
    def test_half_the_scale(self, noise):
        half = type(noise)(**{name: value / 2 for name, value in vars(noise).items()})
        assert battery(simulation("half").draw(half, EXACT_ENTRIES), pmf(noise, REACH)) < ALPHA

    @pytest.mark.parametrize("noise", HUGE[:2], ids=str)
    def test_half_a_huge_scale(self, noise):
        half = type(noise)(**{name: value / 2 for name, value in vars(noise).items()})
        assert battery_for_huge_scales(simulation("half").draw(half, EXACT_ENTRIES), noise) < ALPHA

    def test_noise_with_a_bias_to_positive_values(self):
        noise = DiscreteGaussian(sigma=3.7)
        samples = simulation("bias").draw(noise, EXACT_ENTRIES)
        is_flipped = np.random.default_rng(12).random(EXACT_ENTRIES) < 0.08
        assert battery(np.where(is_flipped, np.abs(samples), samples), pmf(noise, REACH)) < ALPHA

    @pytest.mark.parametrize("noise", HUGE[:2], ids=str)
    def test_noise_that_was_a_float32(self, noise):
        samples = simulation("float32").draw(noise, EXACT_ENTRIES).astype(np.float32).astype(np.int64)
        assert battery_for_huge_scales(samples, noise) < ALPHA

    def test_a_cut_tail(self):
        noise = DiscreteGaussian(sigma=3.7)
        samples = np.clip(simulation("cut").draw(noise, EXACT_ENTRIES), -11, 11)
        assert battery(samples, pmf(noise, REACH)) < ALPHA

    def test_noise_used_twice(self):
        noise = DiscreteGaussian(sigma=3.7)
        samples = np.repeat(simulation("twice").draw(noise, EXACT_ENTRIES // 2), 2)
        assert battery(samples, pmf(noise, REACH)) < ALPHA

    def test_a_zero_that_counts_double(self):
        # Sign and magnitude without the rejection of minus zero.
        rng, noise = np.random.default_rng(13), DiscreteLaplace(scale=2.5)
        samples = (rng.geometric(-np.expm1(-1 / 2.5), EXACT_ENTRIES) - 1) * rng.choice([-1, 1], EXACT_ENTRIES)
        assert battery(samples, pmf(noise, REACH)) < ALPHA


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
