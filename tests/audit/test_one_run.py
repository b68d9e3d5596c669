"""The one-run auditor against its theorem, special cases, and mechanisms with a known epsilon."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from cloister.audit import audit_one_run
from cloister.audit.one_run import Guesses, one_run_epsilon_lower_bound, one_run_p_value
from cloister.errors import ConfigError

OUTCOMES = st.integers(1, 60).flatmap(
    lambda m: st.integers(1, m).flatmap(
        lambda r: st.integers(0, r).map(lambda v: Guesses(canaries=m, made=r, correct=v))
    )
)


def theorem(guesses, epsilon, delta):
    """Theorem 5.2 term by term, with all i up to m and no shortcut."""
    q = Fraction(1 / (1 + math.exp(-epsilon)))
    r, v = guesses.made, guesses.correct

    def tail(least):
        return sum(math.comb(r, w) * q**w * (1 - q) ** (r - w) for w in range(max(0, least), r + 1))

    rise = max((tail(v - i) - tail(v)) / i for i in range(1, guesses.canaries + 1))
    return float(min(Fraction(1), tail(v) + 2 * guesses.canaries * Fraction(delta) * rise))


class TestPValue:
    @pytest.mark.parametrize("epsilon", [0.0, 0.7, 4.0])
    @pytest.mark.parametrize("delta", [0.0, 1e-6, 1e-3, 0.2])
    @pytest.mark.parametrize(("m", "r", "v"), [(1, 1, 1), (10, 6, 5), (20, 20, 16), (30, 12, 0), (40, 40, 40)])
    def test_is_the_theorem(self, m, r, v, epsilon, delta):
        guesses = Guesses(canaries=m, made=r, correct=v)
        assert one_run_p_value(guesses, epsilon=epsilon, delta=delta) == pytest.approx(
            theorem(guesses, epsilon, delta), rel=1e-9
        )

    @given(OUTCOMES)
    def test_without_privacy_loss_guessing_is_coin_tossing(self, guesses):
        coin = stats.binom.sf(guesses.correct - 1, guesses.made, 0.5)
        assert one_run_p_value(guesses, epsilon=0, delta=0) == pytest.approx(coin, rel=1e-9)

    @given(OUTCOMES, st.floats(0, 5), st.floats(0, 2))
    def test_grows_with_epsilon_when_delta_is_zero(self, guesses, epsilon, more):
        smaller = one_run_p_value(guesses, epsilon=epsilon, delta=0)
        assert smaller <= one_run_p_value(guesses, epsilon=epsilon + more, delta=0) * (1 + 1e-9)

    @given(OUTCOMES, st.floats(0, 5), st.floats(0, 0.01), st.floats(0, 0.01))
    def test_grows_with_delta_and_with_canaries_not_guessed(self, guesses, epsilon, delta, more):
        base = one_run_p_value(guesses, epsilon=epsilon, delta=delta)
        assert base <= one_run_p_value(guesses, epsilon=epsilon, delta=delta + more) + 1e-12
        wider = Guesses(canaries=guesses.canaries + 5, made=guesses.made, correct=guesses.correct)
        assert base <= one_run_p_value(wider, epsilon=epsilon, delta=delta) + 1e-12


class TestBound:
    def test_stands_just_at_the_level(self):
        guesses = Guesses(canaries=2000, made=400, correct=330)
        epsilon = one_run_epsilon_lower_bound(guesses, delta=1e-6, confidence=0.95)
        assert one_run_p_value(guesses, epsilon=epsilon, delta=1e-6) <= 0.05
        assert one_run_p_value(guesses, epsilon=epsilon + 1e-6, delta=1e-6) > 0.05

    @given(OUTCOMES)
    def test_coin_tossing_shows_nothing(self, guesses):
        if guesses.correct <= guesses.made / 2:
            assert one_run_epsilon_lower_bound(guesses, delta=0, confidence=0.5) == 0

    def test_more_options_more_confidence_and_more_delta_all_show_less(self):
        guesses = Guesses(canaries=1000, made=500, correct=420)
        best = one_run_epsilon_lower_bound(guesses, delta=0, confidence=0.95)
        assert best > 1
        for change in ({"options": 3}, {"confidence": 0.999}, {"delta": 1e-4}):
            arguments = {"delta": 0.0, "confidence": 0.95, **change}
            assert one_run_epsilon_lower_bound(guesses, **arguments) < best

    @pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
    def test_randomised_response_is_bounded_tightly_and_covered(self, epsilon):
        """Each canary's bit is told truly with probability e^eps / (1 + e^eps): exactly epsilon."""
        repetitions, m = 400, 2000
        correct = np.random.default_rng(5).binomial(m, 1 / (1 + math.exp(-epsilon)), repetitions)
        bounds = np.array(
            [
                one_run_epsilon_lower_bound(Guesses(canaries=m, made=m, correct=int(v)), delta=0, confidence=0.9)
                for v in correct
            ]
        )
        assert np.mean(bounds > epsilon) <= stats.binom.isf(1e-6, repetitions, 0.1) / repetitions
        assert np.median(bounds) > 0.8 * epsilon

    def test_a_mechanism_that_tells_all_with_probability_delta_is_covered(self):
        epsilon, delta, m, repetitions = 1.0, 0.02, 100, 400
        rng = np.random.default_rng(6)
        correct = np.where(
            rng.random(repetitions) < delta, m, rng.binomial(m, 1 / (1 + math.exp(-epsilon)), repetitions)
        )
        bounds = [
            one_run_epsilon_lower_bound(Guesses(canaries=m, made=m, correct=int(v)), delta=delta, confidence=0.9)
            for v in correct
        ]
        assert np.mean(np.array(bounds) > epsilon) <= stats.binom.isf(1e-6, repetitions, 0.1) / repetitions


class TestAuditOneRun:
    def run(self, mu, m=4000, seed=8):
        """A Gaussian release with one coordinate per canary: each costs mu-GDP."""
        rng = np.random.default_rng(seed)
        included = rng.random(m) < 0.5
        return included, included * mu + rng.normal(size=m)

    def test_noisy_canaries_show_something_below_the_truth(self):
        included, scores = self.run(mu=1.0)
        report = audit_one_run(included, scores, delta=1e-5, confidence=0.95)
        assert 0.8 < report.epsilon_lower < 4.38  # mu = 1 has epsilon 4.38 at delta 1e-5

    def test_missing_noise_shows_more_than_any_sound_claim(self):
        included, scores = self.run(mu=50.0)
        assert audit_one_run(included, scores, delta=1e-6).epsilon_lower > 4

    def test_a_confidence_that_the_deltas_do_not_allow_shows_nothing(self):
        included, scores = self.run(mu=50.0)
        assert audit_one_run(included, scores, delta=1e-6, confidence=1 - 1e-6).epsilon_lower == 0

    def test_scores_that_know_nothing_show_nothing(self):
        included, scores = self.run(mu=0.0)
        assert audit_one_run(included, scores, delta=0).epsilon_lower == 0

    def test_bad_input(self):
        included, scores = self.run(mu=1.0, m=10)
        with pytest.raises(ConfigError, match="one finite score"):
            audit_one_run(included, scores[:5], delta=0)
        with pytest.raises(ConfigError, match="guess_fractions"):
            audit_one_run(included, scores, delta=0, guess_fractions=())
        with pytest.raises(ConfigError, match="correct <= made"):
            Guesses(canaries=3, made=4, correct=0)
