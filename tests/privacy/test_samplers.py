"""Both samplers against exact probabilities, and the wrong samplers that the same battery must catch."""

import random
from fractions import Fraction
from itertools import islice

import numpy as np
import pytest
from scipy import stats

from cloister.crypto import SeededEntropy, Stream
from cloister.errors import ConfigError, PrecisionError
from cloister.privacy.mechanisms import DiscreteGaussian, DiscreteGaussianSum, DiscreteLaplace, PolyaDifference
from cloister.privacy.proposals import WORDS, Proposal, propose
from cloister.privacy.samplers import ExactSampler, fold_to_geometric
from cloister.privacy.simulation_sampler import SimulationSampler
from tests.privacy.cks20 import draw_gaussian, draw_laplace
from tests.privacy.distributions import ALPHA, battery, battery_for_huge_scales, convolve, pmf
from tests.privacy.exact import Bits, bound_exponential
from tests.privacy.opendp_sampler import draw_with_opendp

EXACT_ENTRIES = 20_000
SEEDED_ENTRIES = 1_000_000
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
PLAIN = [
    DiscreteGaussian(sigma=0.6),
    DiscreteGaussian(sigma=3.7),
    DiscreteGaussian(sigma=2.0**30 + 1.25),
    DiscreteLaplace(scale=0.6),
    DiscreteLaplace(scale=2.5),
    DiscreteLaplace(scale=2.0**30 + 1.25),
]


def simulation(*context):
    return SimulationSampler(Stream.from_seed(7, "test samplers", *context))


def seeded(*context):
    """The exact sampler on words that a seed gives, so that its tests are the same every time."""
    sampler = ExactSampler()
    sampler._entropy = SeededEntropy(7, " ".join(map(str, context)))
    return sampler


class TestExactSampler:
    def test_is_not_a_simulation(self):
        assert not ExactSampler().is_simulation

    @pytest.mark.parametrize("noise", SMALL, ids=str)
    def test_has_the_exact_distribution(self, noise):
        assert battery(seeded(noise).draw(noise, SEEDED_ENTRIES), pmf(noise, REACH)) > ALPHA

    @pytest.mark.parametrize("noise", HUGE, ids=str)
    def test_has_the_exact_distribution_at_huge_scales(self, noise):
        assert battery_for_huge_scales(seeded(noise).draw(noise, SEEDED_ENTRIES), noise) > ALPHA

    def test_has_it_with_the_bits_of_the_system(self):
        """The one test that cannot be seeded: it fails by chance once in a million."""
        noise = DiscreteGaussian(sigma=3.7)
        assert battery(ExactSampler().draw(noise, EXACT_ENTRIES), pmf(noise, REACH)) > ALPHA

    def test_never_repeats_itself(self):
        noise = DiscreteGaussian(sigma=2.0**30)
        assert np.unique(np.concatenate([ExactSampler().draw(noise, 8) for _ in range(4)])).size == 32

    @pytest.mark.parametrize("noise", PLAIN, ids=str)
    def test_cannot_be_told_from_opendps(self, noise):
        theirs = draw_with_opendp(noise, EXACT_ENTRIES)
        assert compare(seeded("opendp", noise).draw(noise, SEEDED_ENTRIES), theirs) > ALPHA

    @pytest.mark.parametrize("noise", PLAIN, ids=str)
    def test_cannot_be_told_from_the_papers_algorithm(self, noise):
        rng = random.Random(6)
        draw, scale = (
            (draw_gaussian, noise.sigma) if isinstance(noise, DiscreteGaussian) else (draw_laplace, noise.scale)
        )
        theirs = np.array([draw(Fraction(scale), rng.randrange) for _ in range(6000)])
        assert compare(seeded("paper", noise).draw(noise, SEEDED_ENTRIES), theirs) > ALPHA


def compare(ours, theirs):
    """The p-value for "both have one distribution", in cells of about equal size by the rank in ours."""
    edges = np.unique(np.quantile(ours, np.arange(0.01, 1, 0.01)))
    counts = np.array([np.bincount(np.searchsorted(edges, x), minlength=edges.size + 1) for x in (ours, theirs)])
    counts = counts[:, counts.sum(axis=0) > 0]
    return stats.chi2_contingency(counts).pvalue if counts.shape[1] > 1 else 1.0


class Recorded:
    """Words of a seeded source, with a record of every call."""

    def __init__(self, *context):
        self.source, self.calls = SeededEntropy(7, " ".join(map(str, context))), []

    def bytes(self, count):
        self.calls.append(self.source.bytes(count))
        return self.calls[-1]


class TestWords:
    """Every word is used once, in one proposal."""

    @pytest.mark.parametrize("noise", PLAIN, ids=str)
    def test_samples_are_those_of_the_words_in_their_order(self, noise):
        sampler = ExactSampler()
        sampler._entropy = source = Recorded("words", noise)
        samples = sampler.draw(noise, 3000)
        words = iter(np.frombuffer(b"".join(source.calls), dtype="<u8").reshape(-1, WORDS).tolist())
        decide = propose(noise).decide
        expected = (sample for three in words if (sample := decide(three, source)) is not None)
        assert samples.tolist() == list(islice(expected, 3000))
        assert len(source.calls) > 1

    def test_an_open_proposal_is_decided_by_further_bits_and_the_next_takes_the_next_words(self):
        """Coins that the kernel leaves open, between words that it decides; the last is open for 64 bits, too."""
        noise = DiscreteLaplace(scale=3.0)
        one, half = 2**64 // 3 + 5, 1 << 63
        coin = 2 * bound_exponential(Fraction(1, 3), 63)[0].__floor__()
        two, kept = 2 * (2**64 // 3) + 5, 2
        for more, expected in ((0, [0, 1, 2, -2]), (2**64 - 1, [0, 2, -2, 0])):
            block = [1, half, kept, one, half, coin, two, half, kept, two, half, kept + 1, 1, half, kept]
            filler = [1, half, kept] * 40
            sampler = ExactSampler()
            sampler._entropy = Bits(*(block + filler)[: 3 * (5 * 4 // 2 + 16)], more)
            assert sampler.draw(noise, 4).tolist() == expected
            assert not sampler._entropy.words

    @pytest.mark.parametrize("sample", [2**63, -(2**63) - 1])
    def test_a_sample_beyond_64_bits_is_an_error_and_not_saturated(self, monkeypatch, sample):
        sampler = ExactSampler()
        sampler._entropy = Bits(*([1, 0, 2] * (5 // 2 + 16)))  # a V that 64 zeros leave open
        monkeypatch.setattr(Proposal, "decide", lambda self, words, source: sample)
        with pytest.raises(OverflowError):
            sampler.draw(DiscreteLaplace(scale=3.0), 1)

    def test_a_large_v_is_decided_by_the_definition(self):
        sampler = ExactSampler()
        word = int(2**64 * np.exp(-20.5))
        sampler._entropy = Bits(*([1, word, 2] * (5 // 2 + 16)))
        assert sampler.draw(DiscreteLaplace(scale=3.0), 1).tolist() == [60]


class TestSimulationSampler:
    def test_is_a_simulation(self):
        assert simulation().is_simulation

    @pytest.mark.parametrize("noise", SMALL, ids=str)
    def test_has_the_exact_distribution(self, noise):
        assert battery(simulation(str(noise)).draw(noise, SEEDED_ENTRIES), pmf(noise, REACH)) > ALPHA

    @pytest.mark.parametrize("noise", HUGE, ids=str)
    def test_has_the_exact_distribution_at_huge_scales(self, noise):
        assert battery_for_huge_scales(simulation(str(noise)).draw(noise, SEEDED_ENTRIES), noise) > ALPHA

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


class TestShares:
    def test_folding_maps_two_laplace_values_to_each_geometric_one(self):
        assert fold_to_geometric(np.array([-3, -2, -1, 0, 1, 2])).tolist() == [2, 1, 0, 0, 1, 2]

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
