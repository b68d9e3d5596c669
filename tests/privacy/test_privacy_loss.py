"""Plans fixed in advance: the Gaussian curve and privacy loss distributions, against exact probabilities."""

import builtins
import math

import dp_accounting
import numpy as np
import pytest
from dp_accounting import pld
from dp_accounting.pld import PLDAccountant
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr

from cloister.errors import MissingExtraError
from cloister.privacy.accounting import Accountant, compose_plan
from cloister.privacy.costs import ripple_of_rounding, ripple_of_sum
from cloister.privacy.mechanisms import DiscreteGaussian, DiscreteGaussianSum, DiscreteLaplace, Release
from cloister.privacy.privacy_loss import (
    ROUNDING_VARIANCE,
    GaussianCost,
    delta_of_gaussian,
    epsilon_of_gaussian,
    epsilon_of_mixture,
    gaussian_cost_of,
)
from cloister.privacy.units import Budget, Sensitivity

BUDGET = Budget(epsilon=1.0, delta=1e-6)


def release(mechanism, *, l1=1, l2_squared=None, entries=1, name="sums"):
    sensitivity = Sensitivity(l1=l1, l2_squared=l1 * l1 if l2_squared is None else l2_squared)
    return Release(name=name, mechanism=mechanism, sensitivity=sensitivity, entries=entries)


def hockey_stick(p, q, epsilon):
    return np.maximum(p - math.exp(epsilon) * q, 0).sum()


def gaussian_probabilities(sigma, shift=0, reach=400):
    weights = np.exp(-((np.arange(-reach, reach + 1) - shift) ** 2) / (2 * sigma**2))
    return weights / weights.sum()


def laplace_probabilities(scale, shift=0, reach=400):
    rate = math.exp(-1 / scale)
    return (1 - rate) / (1 + rate) * rate ** np.abs(np.arange(-reach, reach + 1) - shift)


@given(mu=st.floats(1e-3, 8), epsilon=st.floats(0.0, 20))
def test_the_curve_is_that_of_balle_and_wang(mu, epsilon):
    got = delta_of_gaussian(GaussianCost(mu_squared=mu * mu), epsilon)
    plain = ndtr(-epsilon / mu + mu / 2) - math.exp(epsilon) * ndtr(-epsilon / mu - mu / 2)
    assert got >= plain * (1 - 1e-9) - 1e-14
    assert got <= plain * (1 + 1e-7) + 1e-12


@pytest.mark.parametrize(("mu", "epsilon"), [(0.01, 0.05), (0.2, 1.0), (0.2, 6.0), (1.0, 8.0), (5.0, 1.0)])
def test_the_curve_against_high_precision(mu, epsilon):
    mpmath = pytest.importorskip("mpmath")
    with mpmath.workdps(60):
        m, e = mpmath.mpf(mu), mpmath.mpf(epsilon)
        truth = mpmath.ncdf(-e / m + m / 2) - mpmath.exp(e) * mpmath.ncdf(-e / m - m / 2)
        excess = float(mpmath.mpf(delta_of_gaussian(GaussianCost(mu_squared=mu * mu), epsilon)) / truth - 1)
    assert 0 <= excess <= 1e-7


@given(mu=st.floats(1e-3, 20), delta=st.floats(-12, -2).map(lambda power: 10.0**power))
def test_epsilon_inverts_the_curve_from_above(mu, delta):
    cost = GaussianCost(mu_squared=mu * mu, ripple=1e-12)
    epsilon = epsilon_of_gaussian(cost, delta)
    assert delta_of_gaussian(cost, epsilon) <= delta
    if epsilon > 0:
        assert delta_of_gaussian(cost, epsilon * (1 - 1e-8)) > delta * (1 - 1e-9)


@pytest.mark.parametrize("sigma", [2.2, 3.0, 5.0, 20.0])
@pytest.mark.parametrize("shift", [1, 3, 8])
def test_no_discrete_gaussian_is_above_its_curve(sigma, shift):
    """The claim of gaussian_dp, at every epsilon, for one release of one number."""
    p, q = gaussian_probabilities(sigma), gaussian_probabilities(sigma, shift)
    cost = gaussian_cost_of([release(DiscreteGaussian(sigma=sigma), l1=shift)])
    for epsilon in np.linspace(0, 4, 60):
        assert hockey_stick(p, q, epsilon) <= delta_of_gaussian(cost, epsilon) + 1e-15


def test_a_discrete_gaussian_can_be_above_the_continuous_curve_of_its_own_sigma():
    # Why variance is given up: without that the claim would be false.
    p, q = gaussian_probabilities(2.2), gaussian_probabilities(2.2, 1)
    naive = GaussianCost(mu_squared=1 / 2.2**2)
    assert any(hockey_stick(p, q, e) > 1.05 * delta_of_gaussian(naive, e) for e in np.linspace(0, 2, 60))


@pytest.mark.parametrize("shift", [(3, 0), (2, 2), (1, 2)])
def test_nor_is_a_vector_over_two_adaptive_releases(shift):
    sigma, reach = 4.0, 40
    p, q = (np.ones(1), np.ones(1))
    for part in (*shift, *shift):
        p = np.multiply.outer(p, gaussian_probabilities(sigma, 0, reach)[reach - 25 : reach + 26]).ravel()
        q = np.multiply.outer(q, gaussian_probabilities(sigma, part, reach)[reach - 25 : reach + 26]).ravel()
    squared = shift[0] ** 2 + shift[1] ** 2
    one = release(DiscreteGaussian(sigma=sigma), l1=sum(shift), l2_squared=squared, entries=2)
    cost = gaussian_cost_of([one, one])
    for epsilon in (0.1, 0.7, 1.5, 3.0):
        assert hockey_stick(p, q, epsilon) <= delta_of_gaussian(cost, epsilon)


@pytest.mark.parametrize("sigma", [0.9, 1.3, 2.5])
def test_nor_is_a_sum_of_shares(sigma):
    shares, reach = 6, 400
    one = gaussian_probabilities(sigma, 0, reach)
    p = one
    for _ in range(shares - 1):
        p = np.convolve(p, one, mode="same")
    q = np.roll(p, 2)
    cost = gaussian_cost_of([release(DiscreteGaussianSum(sigma=sigma, shares=shares), l1=2)])
    for epsilon in np.linspace(0, 3, 40):
        assert hockey_stick(p, q, epsilon) <= delta_of_gaussian(cost, epsilon) + 1e-15


def test_ripple_counts_every_entry_that_a_unit_can_change_in_every_release():
    mechanism = DiscreteGaussianSum(sigma=0.6, shares=15)
    each = ripple_of_sum(0.6, 15) + ripple_of_rounding(2.25)
    assert each > 0.01
    for l1, entries, touched in ((3, 7, 3), (7, 3, 3)):
        one = release(mechanism, l1=l1, l2_squared=l1, entries=entries)
        assert gaussian_cost_of([one, one]).ripple == pytest.approx(2 * touched * each)
    cost = GaussianCost(mu_squared=0.01, ripple=0.5)  # e^ripple delta(epsilon - ripple)
    plain = delta_of_gaussian(GaussianCost(mu_squared=0.01), 0.1)
    assert delta_of_gaussian(cost, 0.6) == pytest.approx(math.exp(0.5) * plain, rel=1e-7)
    assert delta_of_gaussian(cost, 0.4) == 1.0


def test_small_variances_and_laplace_noise_are_not_covered():
    assert gaussian_cost_of([release(DiscreteGaussian(sigma=1.0))]) is None
    assert gaussian_cost_of([release(DiscreteGaussian(sigma=9.0)), release(DiscreteLaplace(scale=9.0))]) is None


def test_a_plan_of_gaussians_costs_less_than_zcdp_and_not_less_than_the_exact_curve():
    plan = [release(DiscreteGaussian(sigma=2000.0), l1=400, l2_squared=10_000, entries=60)] * 30
    spent = compose_plan(plan, 1e-6)
    adaptive = Accountant(Budget(epsilon=9, delta=1e-6)).would_spend(plan)
    assert spent.epsilon < adaptive.epsilon * 0.95
    assert spent.rho == adaptive.rho
    accountant = PLDAccountant()
    accountant.compose(dp_accounting.SelfComposedDpEvent(dp_accounting.GaussianDpEvent(20.0), 30))
    assert spent.epsilon == pytest.approx(accountant.get_epsilon(1e-6), rel=1e-3)


@settings(max_examples=60, deadline=None)
@given(
    scale=st.floats(0.3, 20),
    first=st.integers(1, 6),
    second=st.integers(1, 6),
    epsilon=st.floats(0, 4),
)
def test_a_laplace_vector_is_dominated_by_one_number_of_its_l1_shift(scale, first, second, epsilon):
    def pair(shift):
        return laplace_probabilities(scale), laplace_probabilities(scale, shift)

    (p1, q1), (p2, q2), (p, q) = pair(first), pair(second), pair(first + second)
    vector = hockey_stick(np.multiply.outer(p1, p2), np.multiply.outer(q1, q2), epsilon)
    assert vector <= hockey_stick(p, q, epsilon) + 1e-12


def test_a_mixture_costs_at_least_the_truth_and_less_than_zcdp():
    noisy_sum, noisy_count = DiscreteGaussian(sigma=8.0), DiscreteLaplace(scale=3.0)
    plan = [release(noisy_sum, l1=3), release(noisy_count), release(noisy_count)]
    p, q = np.ones(1), np.ones(1)
    for part, other in (
        (gaussian_probabilities(8.0, 0, 80), gaussian_probabilities(8.0, 3, 80)),
        (laplace_probabilities(3.0, 0, 60), laplace_probabilities(3.0, 1, 60)),
        (laplace_probabilities(3.0, 0, 60), laplace_probabilities(3.0, 1, 60)),
    ):
        p, q = np.multiply.outer(p, part).ravel(), np.multiply.outer(q, other).ravel()
    delta = 1e-5
    spent = compose_plan(plan, delta)
    assert hockey_stick(p, q, spent.epsilon) <= delta
    assert hockey_stick(p, q, spent.epsilon * 0.95) > delta  # and it is not far from the truth
    assert "loss distributions" in spent.how
    assert spent.epsilon < 0.9 * Accountant(Budget(epsilon=9, delta=delta)).would_spend(plan).epsilon


@pytest.mark.parametrize("delta", [1e-9, 1e-6, 0.1])
def test_the_library_is_asked_for_less_delta_by_what_transforms_may_round_away(delta, monkeypatch):
    """Transforms of double precision err by about 1e-15 for each of their 10^3 and more steps: 1e-12 is kept back."""
    releases = [release(DiscreteLaplace(scale=20.0))] * 3 + [release(DiscreteGaussian(sigma=30.0), entries=4)]
    asked = []
    kind = pld.privacy_loss_distribution.PrivacyLossDistribution
    answer = kind.get_epsilon_for_delta
    monkeypatch.setattr(kind, "get_epsilon_for_delta", lambda self, delta: asked.append(delta) or answer(self, delta))
    expected = math.sqrt(2 * 3 / 20)
    epsilon = epsilon_of_mixture(releases, delta, expected_epsilon=expected)
    (given_delta,) = asked
    assert given_delta <= delta - 1e-12
    assert given_delta > delta - 1e-11
    assert epsilon > 0


def test_many_pure_releases_agree_with_dp_accounting():
    plan = [release(DiscreteLaplace(scale=50.0), l1=5)] * 40
    spent = compose_plan(plan, 1e-6)
    accountant = PLDAccountant()
    accountant.compose(dp_accounting.SelfComposedDpEvent(dp_accounting.LaplaceDpEvent(10.0), 40))
    assert spent.epsilon == pytest.approx(accountant.get_epsilon(1e-6), rel=0.05)
    assert spent.epsilon < 40 * 0.1


def test_where_loss_distributions_are_not_proved_zcdp_decides():
    count = release(DiscreteLaplace(scale=3.0))
    tiny = release(DiscreteGaussian(sigma=1.0))
    assert epsilon_of_mixture([tiny, count], 1e-6, expected_epsilon=5.0) is None
    large = release(DiscreteGaussian(sigma=9.0))
    assert epsilon_of_mixture([large, count], 1e-10, expected_epsilon=5.0) is None
    assert epsilon_of_mixture([release(DiscreteLaplace(scale=1e9), l1=10**9)], 1e-6, expected_epsilon=5.0) is None
    for plan, delta in (([tiny, count], 1e-6), ([large, count], 1e-10)):
        assert "zCDP" in compose_plan(plan, delta).how


def test_nothing_that_moves_costs_nothing():
    still = release(DiscreteLaplace(scale=3.0), l1=0)
    assert compose_plan([still], 1e-6).epsilon == 0
    assert compose_plan([], 1e-6).epsilon == 0
    assert compose_plan([release(DiscreteGaussian(sigma=3.0))], 0.0).epsilon == math.inf


def test_a_mixture_without_the_extra_says_which(monkeypatch):
    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name.startswith("dp_accounting"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingExtraError, match=r"cloister\[papers\]"):
        compose_plan([release(DiscreteGaussian(sigma=9.0)), release(DiscreteLaplace(scale=9.0))], 1e-6)


def test_costs_are_raised_by_what_adding_up_may_round_away():
    """By a relative 1e-11: that is 2^-53 for each of 90,000 additions."""
    one = release(DiscreteGaussian(sigma=1e6), l1=1)
    shift, exact = gaussian_cost_of([one]), 1 / (1e12 - ROUNDING_VARIANCE)
    assert shift.mu_squared / exact - 1 == pytest.approx(1e-11, rel=1e-3)
