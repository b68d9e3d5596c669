"""The kernel decides only what is certain: its bounds hold, and its answers are those of whole numbers without end."""

from fractions import Fraction

import numpy as np
import pytest

from cloister.crypto import SeededEntropy
from cloister.privacy.mechanisms import DiscreteGaussian, DiscreteLaplace
from cloister.privacy.noise_kernel import GAP, bound_probability, fill, tabulate_exponentials, thin_left
from cloister.privacy.proposals import RUNS, WORDS, propose
from tests.privacy.distributions import ALPHA, chi_square, kept_probability
from tests.privacy.exact import Bits, bound_exponential

NEXT_BELOW_1 = float(np.nextafter(1.0, 0.0))
SCALES = (1e-300, 0.05, 0.0625, 0.3, NEXT_BELOW_1, 1.0, 1.5, 1.0 + 2.0**-52, 2.0, 33.3, 1e6 + 0.1)
HUGE = (2.0**40, float(np.nextafter(2.0**40, 0.0)), 2.0**39 + 2.0**-13)
NOISES = [kind(**{name: scale}) for kind, name in ((DiscreteGaussian, "sigma"), (DiscreteLaplace, "scale"))
          for scale in SCALES + HUGE]  # fmt: skip
GAP_PROVED = GAP / 2 + 7


def places(proposal, rng, count):
    """Pairs of U and V: the corners, and others."""
    width = proposal.width
    for run in range(RUNS):
        yield from ((offset, run) for offset in {0, width // 2, width - 1})
    yield from ((int(rng.integers(width)), int(rng.integers(RUNS))) for _ in range(count))


def bound(proposal, offset, run):
    _, width, _, is_gaussian, scaling, factor, constant, _ = proposal.constants
    table = tabulate_exponentials()
    place = np.uint64(offset), np.uint64(run)
    return int(bound_probability(*place, width, is_gaussian, scaling, factor, constant, table))


def words_for(proposal, offset, run, third):
    """Three words that propose U = offset, V = run, with a third word."""
    first = ((offset << 64) // proposal.width) + 1 + (1 << 64) % proposal.width // proposal.width
    while (first * proposal.width) % (1 << 64) < (1 << 64) % proposal.width:
        first += 1
    levels = [(1 << 64) - 1, *proposal.constants.thresholds.tolist()]
    return [first, (levels[run] + levels[run + 1]) // 2, third]


class TestBounds:
    def test_tables_are_floors_of_the_truth(self):
        table = tabulate_exponentials().tolist()
        for place, row in enumerate(table):
            assert row[0] == 2**64 - 1
            for i in range(1, 64 if place == 0 else 256):
                assert row[i] == bound_exponential(Fraction(i, 256**place), 64)[0].__floor__()
        assert table[0][64:] == [0] * 192

    @pytest.mark.parametrize("noise", NOISES, ids=str)
    def test_hold_the_truth(self, noise):
        proposal, most = propose(noise), 0.0
        for offset, run in places(proposal, np.random.default_rng(8), 150):
            below, above = bound_exponential(proposal.exponent(offset, run), 63)
            known = bound(proposal, offset, run)
            assert known <= below, (offset, run)
            assert above <= known + GAP_PROVED < known + GAP, (offset, run)
            most = max(most, float(above - known))
        if proposal.width > 1 << 20:
            assert most > 2**14  # no wider than it must be, within a factor of 16

    def test_numbers_stay_within_64_bits_at_every_scale(self):
        """What claim 6 bounds, with integers of any length."""
        for noise in [*NOISES, *(DiscreteGaussian(sigma=float(s)) for s in 2.0 ** np.arange(-1074, 41, 7))]:
            proposal = propose(noise)
            width, unfair, is_gaussian, scaling, factor, constant, shift = map(int, proposal.constants[1:])
            largest = width * RUNS - 1
            assert largest < 2**57
            assert unfair < width
            scaled = (largest if is_gaussian else width - 1) << scaling
            assert scaled < 2**64
            exponent = ((scaled * scaled >> 64 if is_gaussian else scaled) * factor >> 64) + constant
            assert exponent < 2**63
            assert factor < 2**64
            assert shift < 64


class TestDecisions:
    @pytest.mark.parametrize("noise", NOISES, ids=str)
    def test_agree_with_the_definition_or_are_left_open_around_the_truth(self, noise):
        """Coins on both sides of the bound, of the truth and of the gap."""
        proposal = propose(noise)
        for offset, run in places(proposal, np.random.default_rng(9), 10):
            if run and proposal.constants.thresholds[run - 1] < 4:
                continue  # no word proposes this V for certain
            known = bound(proposal, offset, run)
            truth = bound_exponential(proposal.exponent(offset, run), 63)[0].__floor__()
            coins = {0, known - 1, known, truth - 1, truth, truth + 1, known + GAP - 1, known + GAP, 2**63 - 1}
            for coin in sorted(coin for coin in coins if 0 <= coin < 2**63):
                words = words_for(proposal, offset, run, 2 * coin)
                samples = np.zeros(1, dtype=np.int64)
                at, filled = fill(np.array(words, dtype=np.uint64), 0, proposal.constants, samples, 0)
                is_open = known <= coin < known + GAP
                assert at == (0 if is_open else WORDS)
                if not is_open:
                    expected = proposal.decide(words, Bits())  # 63 bits must do: there are no more
                    assert filled == (expected is not None)
                    assert not filled or samples[0] == expected

    @pytest.mark.parametrize("noise", [DiscreteLaplace(scale=5.5), DiscreteLaplace(scale=0.75)], ids=str)
    def test_a_v_that_its_word_leaves_open_or_that_is_large_is_left_to_the_definition(self, noise):
        proposal, samples = propose(noise), np.zeros(1, dtype=np.int64)
        for run, threshold in enumerate(proposal.constants.thresholds.tolist()):
            for word, is_open in ((threshold + 1, False), (threshold, True), (threshold - 1, run == RUNS - 1)):
                words = [1 << 62, word, 0]  # a coin of 0 is kept
                at, filled = fill(np.array(words, dtype=np.uint64), 0, proposal.constants, samples, 0)
                assert (at, filled) == ((0, 0) if is_open else (WORDS, 1))
                assert is_open or samples[0] == proposal.decide(words, Bits())

    @pytest.mark.parametrize("noise", [DiscreteLaplace(scale=3.0), DiscreteLaplace(scale=2.0**40 - 0.125)], ids=str)
    def test_words_that_would_favour_small_numbers_propose_nothing(self, noise):
        proposal, samples = propose(noise), np.zeros(1, dtype=np.int64)
        unfair = int(proposal.constants.unfair)
        # U is 0 for the first words; of these the ones whose product is below 2^64 mod width are too many.
        for word in (0, -(-unfair // proposal.width) - 1, -(-unfair // proposal.width)):
            words = [word, 1 << 63, 0]
            at, filled = fill(np.array(words, dtype=np.uint64), 0, proposal.constants, samples, 0)
            is_fair = word * proposal.width >= unfair
            assert (at, filled) == (WORDS, is_fair)
            assert (proposal.decide(words, Bits()) is not None) is is_fair

    @pytest.mark.parametrize("noise", NOISES, ids=str)
    def test_random_words_give_what_the_definition_gives(self, noise):
        proposal = propose(noise)
        words = np.frombuffer(SeededEntropy(4, str(noise)).bytes(8 * WORDS * 150), dtype=np.uint64)
        samples = np.zeros(150, dtype=np.int64)
        at, filled = fill(words, 0, proposal.constants, samples, 0)
        expected = [proposal.decide(three, Bits()) for three in words.reshape(-1, WORDS).tolist()]
        assert at == words.size
        assert samples[:filled].tolist() == [sample for sample in expected if sample is not None]

    def test_it_ends_where_the_samples_or_the_words_do(self):
        proposal = propose(DiscreteGaussian(sigma=9.0))
        words = np.frombuffer(SeededEntropy(4, "ends").bytes(8 * 31), dtype=np.uint64)
        samples = np.zeros(2, dtype=np.int64)
        at, filled = fill(words, 0, proposal.constants, samples, 0)
        assert filled == 2
        assert at < 30
        again = np.zeros(50, dtype=np.int64)
        at_end, _ = fill(words, 0, proposal.constants, again, 0)
        assert at_end == 30  # one word is too few
        assert again[:2].tolist() == samples.tolist()
        assert fill(words, at, proposal.constants, again[2:].copy(), 0)[0] == 30


def thin(things, shares, label):
    """Thin with seeded words, in blocks that end in the middle of entries."""
    left, kept, done, source = np.array(things, dtype=np.int64), np.zeros(len(things), dtype=np.int64), 0, label
    entropy = SeededEntropy(3, source)
    while done < left.size:
        done = thin_left(np.frombuffer(entropy.bytes(8 * 1001), np.uint64), left, kept, np.uint64(shares), done)
    return kept


class TestThinning:
    @pytest.mark.parametrize("shares", [2, 5])
    def test_keeps_what_the_algorithm_keeps(self, shares):
        things, draws = 9, 200_000
        kept = thin([things] * draws, shares, f"thin {shares}")
        expected = [float(kept_probability(k, things, shares)) * draws for k in range(things + 1)]
        assert chi_square(np.bincount(kept, minlength=things + 1).astype(float), np.array(expected)) > ALPHA

    def test_one_share_keeps_all(self):
        assert thin([0, 1, 5, 2**45], 1, "all").tolist() == [0, 1, 5, 2**45]

    def test_with_a_product_beyond_64_bits_the_second_word_decides(self):
        """Two things, 2^63 shares: only words give a cycle of 1 or 2, and whether it is kept."""
        shares, top = 1 << 63, 1 << 63
        for words, expected in (
            ([top, 0], 2),  # both in one cycle, which is kept
            ([top, 2], 0),  # and not kept
            ([0, 2, 0, 1], 1),  # one and one: the second is kept (1 * 2^63 places, the word's half is 0)
        ):
            left, kept = np.array([2]), np.zeros(1, dtype=np.int64)
            given = np.array([*words, 7], dtype=np.uint64)
            assert thin_left(given, left, kept, np.uint64(shares), 0) == 1
            assert (kept[0], left[0]) == (expected, 0)

    def test_words_that_would_favour_small_numbers_are_dropped(self):
        # Three things and one share: 2^64 = 1 modulo 3, and the word 0 is the one too many.
        left, kept = np.array([3]), np.zeros(1, dtype=np.int64)
        assert thin_left(np.array([0, 5], dtype=np.uint64), left, kept, np.uint64(1), 0) == 0
        assert left[0] == 3
        thin_left(np.array([0, 5, 9], dtype=np.uint64), left, kept, np.uint64(1), 0)
        assert left[0] == 2
