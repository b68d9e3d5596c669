"""The certificate: Clopper-Pearson, epsilon, rho; coverage by simulation on mechanisms whose cost is known."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from cloister.audit.bounds import (
    EventCounts,
    bound_rates,
    epsilon_lower_bound,
    epsilon_of_rates,
    estimate_gaussian_epsilon,
    largest_certifiable_epsilon,
    rate_high,
    rate_low,
    rho_lower_bound,
    rho_of_rates,
)
from cloister.errors import ConfigError

RATES = st.floats(1e-9, 1 - 1e-9)


def counts(likelier, other, runs):
    return EventCounts(hits_likelier=likelier, runs_likelier=runs, hits_other=other, runs_other=runs)


def renyi(p, q, order):
    """D_order of two Bernoulli distributions, from the definition."""
    inside = order * math.log(p) + (1 - order) * math.log(q)
    outside = order * math.log1p(-p) + (1 - order) * math.log1p(-q)
    return float(np.logaddexp(inside, outside)) / (order - 1)


class TestRates:
    @pytest.mark.parametrize(("hits", "runs"), [(0, 10), (3, 10), (10, 10), (17, 4000), (4000, 4000), (0, 10**6)])
    def test_agree_with_the_binomial_tails_that_define_them(self, hits, runs):
        alpha = 5e-7
        low, high = float(rate_low(hits, runs, alpha)), float(rate_high(hits, runs, alpha))
        if hits > 0:
            assert stats.binom.sf(hits - 1, runs, low) == pytest.approx(alpha, rel=1e-6)
        else:
            assert low == 0
        if hits < runs:
            assert stats.binom.cdf(hits, runs, high) == pytest.approx(alpha, rel=1e-6)
        else:
            assert high == 1

    def test_split_the_error_over_the_two_rates(self):
        rates = bound_rates(counts(700, 200, 1000), confidence=0.9)
        assert rates.likelier_low == float(rate_low(700, 1000, 0.05))
        assert rates.other_high == float(rate_high(200, 1000, 0.05))


class TestEpsilon:
    def test_is_the_better_of_the_event_and_its_complement(self):
        assert epsilon_of_rates(0.3, 0.1, 0.05) == pytest.approx(math.log(0.25 / 0.1))
        assert epsilon_of_rates(0.9, 0.7, 0.05) == pytest.approx(math.log(0.25 / 0.1))
        assert epsilon_of_rates(0.3, 0.1, 0.3) == 0

    @pytest.mark.parametrize(("likelier", "other"), [(0, 0), (500, 500), (1000, 1000), (100, 900), (0, 1000)])
    def test_no_difference_or_the_wrong_direction_shows_nothing(self, likelier, other):
        assert epsilon_lower_bound(counts(likelier, other, 1000), delta=0) == 0
        assert rho_lower_bound(counts(likelier, other, 1000)) == 0

    def test_a_delta_that_covers_the_event_shows_nothing(self):
        event = counts(1000, 0, 100_000)  # one percent
        assert epsilon_lower_bound(event, delta=0) > 3
        assert epsilon_lower_bound(event, delta=0.02) == 0

    def test_a_perfect_attack_certifies_about_log_of_runs_over_log_of_error(self):
        for runs in (1000, 10**5):
            assert largest_certifiable_epsilon(runs) == pytest.approx(math.log(runs / math.log(2e6)), abs=0.05)

    @given(RATES, RATES, st.floats(0, 0.5), st.floats(0, 1), st.floats(0, 1))
    def test_worse_rates_never_show_more(self, p, q, delta, less, more):
        worse_p, worse_q = p * less, q + (1 - q) * more
        assert epsilon_of_rates(worse_p, worse_q, delta) <= epsilon_of_rates(p, q, delta) + 1e-12
        assert rho_of_rates(worse_p, worse_q) <= rho_of_rates(p, q) * (1 + 1e-9) + 1e-12


class TestRho:
    @given(st.floats(0.001, 0.999), st.floats(0.001, 0.999), st.floats(1.001, 100))
    def test_every_order_is_within_what_a_dense_search_finds(self, p, q, order):
        rho = float(rho_of_rates(max(p, q), min(p, q)))
        largest = max(renyi(a, b, order) / order for a, b in ((p, q), (q, p)))
        assert largest <= rho * 1.02 + 1e-9  # the grid of orders loses at most two percent

    @given(st.floats(0.001, 0.999), st.floats(0.001, 0.999))
    def test_is_never_more_than_the_supremum_over_all_orders(self, p, q):
        p, q = max(p, q), min(p, q)
        kl = max(a * math.log(a / b) + (1 - a) * math.log((1 - a) / (1 - b)) for a, b in ((p, q), (q, p)))
        orders = 1 + np.geomspace(1e-2, 300, 400)
        dense = max(renyi(a, b, order) / order for a, b in ((p, q), (q, p)) for order in orders)
        assert float(rho_of_rates(p, q)) <= max(kl, dense) * (1 + 1e-3) + 1e-9

    def test_a_gaussian_event_at_the_middle_shows_two_over_pi(self):
        mu = 0.01
        p, q = stats.norm.cdf(mu / 2), stats.norm.cdf(-mu / 2)
        assert float(rho_of_rates(p, q)) / (mu**2 / 2) == pytest.approx(2 / math.pi, rel=1e-3)


class TestCoverage:
    """On a known mechanism the bound exceeds the truth in at most 1 - confidence of the repetitions."""

    CONFIDENCE = 0.9
    REPETITIONS = 4000

    def draws(self, p, q, runs):
        rng = np.random.default_rng(3)
        likelier, other = rng.binomial(runs, p, self.REPETITIONS), rng.binomial(runs, q, self.REPETITIONS)
        return [counts(int(a), int(b), runs) for a, b in zip(likelier, other, strict=True)]

    def check(self, bounds, truth):
        exceeded = np.mean(np.array(bounds) > truth)
        allowed = stats.binom.isf(1e-6, self.REPETITIONS, 1 - self.CONFIDENCE) / self.REPETITIONS
        assert exceeded <= allowed
        assert np.median(bounds) > 0.5 * truth  # and it is not empty

    @pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
    def test_epsilon_of_randomised_response(self, epsilon):
        p = 1 / (1 + math.exp(-epsilon))
        events = self.draws(p, 1 - p, 1500)
        self.check([epsilon_lower_bound(e, delta=0, confidence=self.CONFIDENCE) for e in events], epsilon)

    @pytest.mark.parametrize("delta", [0.01, 0.1])
    def test_epsilon_of_randomised_response_that_sometimes_tells(self, delta):
        epsilon = 1.0
        p = delta + (1 - delta) / (1 + math.exp(-epsilon))
        q = (1 - delta) / (1 + math.exp(epsilon))
        truth = math.log((p - delta) / q)
        events = self.draws(p, q, 1500)
        self.check([epsilon_lower_bound(e, delta=delta, confidence=self.CONFIDENCE) for e in events], truth)

    def test_rho_of_randomised_response(self):
        p = 1 / (1 + math.exp(-1.0))
        events = self.draws(p, 1 - p, 1500)[:1000]
        truth = float(rho_of_rates(p, 1 - p))
        bounds = [rho_lower_bound(e, confidence=self.CONFIDENCE) for e in events]
        assert np.mean(np.array(bounds) > truth) <= stats.binom.isf(1e-6, 1000, 0.1) / 1000
        assert np.median(bounds) > 0.5 * truth

    def test_plain_rates_without_a_confidence_bound_would_fail(self):
        p = 1 / (1 + math.exp(-1.0))
        bounds = [
            float(epsilon_of_rates(e.hits_likelier / 1500, e.hits_other / 1500, 0)) for e in self.draws(p, 1 - p, 1500)
        ]
        with pytest.raises(AssertionError):
            self.check(bounds, 1.0)


class TestGaussianEstimate:
    @pytest.mark.parametrize(("mu", "delta"), [(0.2, 1e-5), (1.0, 1e-5), (3.0, 1e-2)])
    def test_recovers_the_exact_curve_from_rates(self, mu, delta):
        runs = 10**9
        event = counts(int(runs * stats.norm.cdf(mu / 2)), int(runs * stats.norm.cdf(-mu / 2)), runs)
        epsilon = estimate_gaussian_epsilon(event, delta=delta)
        back = stats.norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * stats.norm.cdf(-mu / 2 - epsilon / mu)
        assert back == pytest.approx(delta, rel=1e-2)

    def test_no_difference_is_no_cost_and_no_delta_has_no_answer(self):
        assert estimate_gaussian_epsilon(counts(50, 50, 100), delta=1e-5) == 0
        assert estimate_gaussian_epsilon(counts(60, 50, 100), delta=0) == math.inf


@pytest.mark.parametrize("bad", [(5, 4, 0, 4), (-1, 4, 0, 4), (0, 0, 0, 4), (1, 4, 5, 4)])
def test_impossible_counts_are_refused(bad):
    with pytest.raises(ConfigError, match="hits <= runs"):
        EventCounts(hits_likelier=bad[0], runs_likelier=bad[1], hits_other=bad[2], runs_other=bad[3])


def test_bad_confidence_and_delta_are_refused():
    with pytest.raises(ConfigError, match="confidence"):
        epsilon_lower_bound(counts(1, 0, 4), delta=0, confidence=1)
    with pytest.raises(ConfigError, match="delta"):
        epsilon_lower_bound(counts(1, 0, 4), delta=1)
