"""What releases cost: never below the truth, close to it; and conversion between rho and (epsilon, delta)."""

import itertools
import math
from dataclasses import dataclass

import dp_accounting
import numpy as np
import pytest
from dp_accounting.rdp import RdpAccountant
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq, minimize_scalar
from scipy.special import log_ndtr, ndtr

from cloister.errors import ConfigError, LocalProtocolError
from cloister.privacy.costs import (
    delta_of_rho,
    epsilon_of_rho,
    pure_epsilon_of,
    rho_of,
    rho_of_epsilon,
    ripple_of_rounding,
    ripple_of_sum,
    runs_of,
)
from cloister.privacy.mechanisms import DiscreteGaussian, DiscreteGaussianSum, DiscreteLaplace, Release
from cloister.privacy.units import Sensitivity

REACH = 400  # at the scales below, what lies outside is negligible
GRID = np.arange(-REACH, REACH + 1)
ORDERS = (1.0001, 1.05, 1.3, 1.5, 2, 2.5, 3, 4, 7.5, 10, 30, 100)
rhos = st.floats(-12, 4).map(lambda power: 10.0**power)
deltas = st.floats(-12, -2).map(lambda power: 10.0**power)
epsilons = st.floats(math.log10(0.01), math.log10(20)).map(lambda power: 10.0**power)


def event(mechanism, *, l1=1, l2_squared=1, entries=1):
    sensitivity = Sensitivity(l1=l1, l2_squared=l2_squared)
    return Release(name="test", mechanism=mechanism, sensitivity=sensitivity, entries=entries)


def shift_of(mechanism, shift):
    return event(mechanism, l1=shift, l2_squared=shift * shift)


def log_probabilities(mechanism):
    """On GRID, normalised."""
    if isinstance(mechanism, DiscreteLaplace):
        weights = -np.abs(GRID) / mechanism.scale
    elif isinstance(mechanism, DiscreteGaussian):
        weights = -(GRID**2) / (2 * mechanism.sigma**2)
    else:
        one = np.exp(-(GRID**2) / (2 * mechanism.sigma**2))
        total = one / one.sum()
        for _ in range(mechanism.shares - 1):
            total = np.convolve(total, one / one.sum(), mode="same")
        weights = np.log(np.maximum(total, 1e-300))
    return weights - np.logaddexp.reduce(weights)


def renyi(log_p, log_q, order):
    return np.logaddexp.reduce(order * log_p + (1 - order) * log_q) / (order - 1)


def largest_rho(log_p, log_q):
    """The largest divergence / order: what rho must not be below."""
    return max(renyi(log_p, log_q, order) / order for order in ORDERS)


def shifted_pair(mechanism, shift, keep=250):
    """Log probabilities of noise and of noise + shift, on the integers within ``keep`` of 0."""
    log_p = log_probabilities(mechanism)
    middle = slice(REACH - keep, REACH + keep + 1)
    return log_p[middle], np.roll(log_p, shift)[middle]


@pytest.mark.parametrize("sigma", [0.4, 1.0, 3.7, 9.0])
@pytest.mark.parametrize("shift", [1, 2, 5])
def test_discrete_gaussian_costs_its_largest_divergence_and_no_more(sigma, shift):
    rho = rho_of(shift_of(DiscreteGaussian(sigma=sigma), shift))
    assert rho == pytest.approx(shift**2 / (2 * sigma**2), rel=1e-12)
    # For integer orders the bound is met (Canonne, Kamath and Steinke 2020, Prop. 5).
    p, q = shifted_pair(DiscreteGaussian(sigma=sigma), shift, keep=150)
    assert renyi(p, q, 2) / 2 == pytest.approx(rho, rel=1e-6)
    assert max(renyi(p, q, order) / order for order in ORDERS[:9]) <= rho * (1 + 1e-9)


@pytest.mark.parametrize("scale", [0.2, 0.5, 1.0, 3.0, 8.0])
@pytest.mark.parametrize("shift", [1, 2, 5])
def test_discrete_laplace_costs_at_least_its_largest_divergence(scale, shift):
    release = shift_of(DiscreteLaplace(scale=scale), shift)
    p, q = shifted_pair(DiscreteLaplace(scale=scale), shift)
    assert largest_rho(p, q) <= rho_of(release) * (1 + 1e-9)
    assert np.max(p - q) <= pure_epsilon_of(release) + 1e-12  # the rounding is in p and q
    if shift == 1:  # then it is randomised response, for which epsilon tanh(epsilon / 2) is tight
        assert largest_rho(p, q) == pytest.approx(rho_of(release), rel=1e-3)


@given(epsilon=st.floats(1e-3, 40), order=st.floats(1.0001, 200))
def test_the_pure_bound_holds_for_the_worst_pure_mechanism(epsilon, order):
    worst = np.array([0.0, -epsilon]) - np.logaddexp(0.0, -epsilon)  # randomised response
    rho = rho_of(event(DiscreteLaplace(scale=1 / epsilon)))
    assert renyi(worst, worst[::-1], order) / order <= rho * (1 + 1e-9) + 1e-12
    assert rho <= epsilon**2 / 2 * (1 + 1e-12)


def test_laplace_over_many_entries_pays_by_the_better_norm():
    few = rho_of(event(DiscreteLaplace(scale=10.0), l1=100, l2_squared=100, entries=100))
    assert few == pytest.approx(100 / 200, rel=1e-12)  # not (100 / 10)^2 / 2
    many = rho_of(event(DiscreteLaplace(scale=10.0), l1=100, l2_squared=10_000, entries=100))
    assert many == pytest.approx(10 * math.tanh(5), rel=1e-12)


@pytest.mark.parametrize("sigma", [0.3, 0.45, 0.6, 0.8, 1.0, 1.5])
@pytest.mark.parametrize("shares", [2, 3, 5])
@pytest.mark.parametrize("shift", [1, 3])
def test_sum_of_discrete_gaussians_costs_at_least_its_largest_divergence(sigma, shares, shift):
    mechanism = DiscreteGaussianSum(sigma=sigma, shares=shares)
    keep = round(6 * sigma * math.sqrt(shares)) + 3
    p, q = shifted_pair(mechanism, shift, keep=keep)
    truth = max(renyi(p, q, order) / order for order in ORDERS[:7])
    rho = rho_of(shift_of(mechanism, shift))
    assert truth <= rho * (1 + 1e-9)
    assert rho <= shift**2 / (2 * sigma**2) * (1 + 1e-12)  # one share alone protects
    if sigma >= 1.5:
        assert rho == pytest.approx(shift**2 / (2 * shares * sigma**2), rel=1e-4)


@pytest.mark.parametrize("sigma", [0.5, 0.7, 1.0, 2.0, 50.0])
@pytest.mark.parametrize("shares", [2, 10, 100])
@pytest.mark.parametrize(("l1", "l2_squared", "entries"), [(1, 1, 1), (40, 100, 64), (1000, 4000, 784)])
def test_sum_costs_at_most_what_the_published_theorem_says(sigma, shares, l1, l2_squared, entries):
    """Kairouz, Liu and Steinke 2021, Prop. 14, for sigma >= 1/2."""
    tau = 10 * sum(math.exp(-2 * math.pi**2 * sigma**2 * j / (j + 1)) for j in range(1, shares))
    root = math.sqrt(l2_squared) / (math.sqrt(shares) * sigma)
    published = (root + tau * math.sqrt(entries)) ** 2 / 2
    release = event(DiscreteGaussianSum(sigma=sigma, shares=shares), l1=l1, l2_squared=l2_squared, entries=entries)
    ideal = l2_squared / (2 * shares * sigma**2)
    assert ideal <= rho_of(release) <= published * (1 + 1e-9)


@pytest.mark.parametrize("sigma", [0.3, 0.5, 0.8, 1.1])
@pytest.mark.parametrize("shares", [2, 3, 6])
def test_ripple_bounds_the_ratio_to_a_discrete_gaussian(sigma, shares):
    total = log_probabilities(DiscreteGaussianSum(sigma=sigma, shares=shares))
    gaussian = log_probabilities(DiscreteGaussian(sigma=sigma * math.sqrt(shares)))
    likely = gaussian > -200 if shares == 2 else gaussian > -25  # where convolution is exact enough
    ratio = (total - gaussian)[likely & (total > -600)]
    assert np.ptp(ratio) <= ripple_of_sum(sigma, shares) + 1e-9
    if shares == 2:
        assert np.ptp(ratio) >= ripple_of_sum(sigma, shares) * 0.3


@pytest.mark.parametrize("variance", [0.05, 0.1, 0.3, 0.5, 1.0])
def test_ripple_of_rounding_bounds_the_periodic_sum(variance):
    y = np.arange(-60, 61)
    sums = [np.exp(-((y - x) ** 2) / (2 * variance)).sum() for x in np.linspace(0, 0.5, 101)]
    exact = math.log(max(sums) / min(sums))
    assert exact <= ripple_of_rounding(variance) + 1e-14
    if variance >= 0.3:
        assert exact == pytest.approx(ripple_of_rounding(variance), rel=0.02, abs=1e-13)


def test_ripple_rounds_up_where_exponentials_underflow():
    assert 0 < ripple_of_sum(1e6, 5) < 1e-290
    assert 0 < ripple_of_sum(1e200, 5) < 1e-290
    assert ripple_of_sum(1e-12, 5) == math.inf
    assert ripple_of_sum(7.0, 1) == 0.0
    assert rho_of(event(DiscreteGaussianSum(sigma=1e-12, shares=5))) < math.inf  # one share alone


@settings(max_examples=50)
@given(
    sigma=st.floats(1e-100, 1e100),
    l2_squared=st.integers(1, 2**200),
    mechanism=st.sampled_from([DiscreteGaussian, lambda sigma: DiscreteGaussianSum(sigma=sigma, shares=3)]),
)
def test_never_zero_never_nan_at_any_scale(sigma, l2_squared, mechanism):
    rho = rho_of(event(mechanism(sigma=sigma), l1=l2_squared, l2_squared=l2_squared, entries=3))
    assert rho > 0


def test_what_moves_nothing_costs_nothing():
    for mechanism in (
        DiscreteGaussian(sigma=1.0),
        DiscreteLaplace(scale=1.0),
        DiscreteGaussianSum(sigma=1.0, shares=3),
    ):
        assert rho_of(event(mechanism, l1=0, l2_squared=0)) == 0
        assert pure_epsilon_of(event(mechanism, l1=0, l2_squared=0)) == 0


def test_gaussian_noise_is_not_pure():
    assert pure_epsilon_of(event(DiscreteGaussian(sigma=1e9))) is None
    assert pure_epsilon_of(event(DiscreteGaussianSum(sigma=1e9, shares=2))) is None


def test_an_unknown_mechanism_is_refused():
    @dataclass(frozen=True)
    class Homemade:
        scale: float = 1.0

    for cost in (rho_of, pure_epsilon_of):
        with pytest.raises(LocalProtocolError, match="Homemade"):
            cost(event(Homemade()))


@given(pattern=st.lists(st.integers(0, 3), max_size=12))
def test_runs_put_together_only_what_is_one_object_in_a_row(pattern):
    pool = [event(DiscreteGaussian(sigma=1.0)) for _ in range(4)]
    listed = [pool[i] for i in pattern]
    expected = [(pool[key], len(list(run))) for key, run in itertools.groupby(pattern)]
    got = list(runs_of(listed))
    assert [(id(release), times) for release, times in got] == [(id(release), times) for release, times in expected]


def log_delta_at(rho, epsilon, alpha):
    """Canonne, Kamath and Steinke 2020, Cor. 13, as printed."""
    return (alpha - 1) * (alpha * rho - epsilon) - math.log(alpha - 1) + alpha * math.log1p(-1 / alpha)


def exact_gaussian_epsilon(rho, delta):
    """The epsilon of one Gaussian release of that rho (Balle and Wang 2018, Thm 8): no valid bound is below it."""
    mu = math.sqrt(2 * rho)

    def excess(epsilon):
        first, second = log_ndtr(-epsilon / mu + mu / 2), epsilon + log_ndtr(-epsilon / mu - mu / 2)
        return first + math.log(max(-math.expm1(second - first), 1e-300)) - math.log(delta)

    if ndtr(mu / 2) - ndtr(-mu / 2) <= delta:
        return 0.0
    return brentq(excess, 0, rho + 2 * math.sqrt(rho * -math.log(delta)) + 1e-9, xtol=1e-13, rtol=1e-13)


@given(rho=rhos, delta=deltas)
def test_epsilon_lies_between_the_exact_gaussian_and_the_classic_bound(rho, delta):
    epsilon = epsilon_of_rho(rho, delta)
    classic = rho + 2 * math.sqrt(rho * -math.log(delta))  # Bun and Steinke 2016, Prop. 1.3
    assert exact_gaussian_epsilon(rho, delta) <= epsilon * (1 + 1e-8) + 1e-12
    assert epsilon <= classic * (1 + 1e-8)


@given(rho=rhos, delta=deltas)
def test_epsilon_is_the_minimum_over_orders(rho, delta):
    epsilon = epsilon_of_rho(rho, delta)

    def at(log_a):
        a = math.exp(log_a)
        return rho * (a + 1) + (-math.log(delta) - math.log1p(a)) / a - math.log1p(1 / a)

    best = minimize_scalar(at, bounds=(-12, 35), method="bounded", options={"xatol": 1e-10}).fun
    assert epsilon == pytest.approx(max(0.0, best), rel=1e-6, abs=1e-12)
    assert epsilon >= max(0.0, best) * (1 - 1e-9)


@given(rho=rhos, epsilon=epsilons)
def test_delta_is_the_minimum_over_orders_and_not_below(rho, epsilon):
    delta = delta_of_rho(rho, epsilon)
    assert 0 < delta <= 1
    best = minimize_scalar(
        lambda log_a: log_delta_at(rho, epsilon, 1 + math.exp(log_a)), bounds=(-12, 30), method="bounded"
    ).fun
    if -600 < best < -1e-6:
        assert math.log(delta) == pytest.approx(best, rel=1e-5, abs=1e-5)


@given(rho=st.floats(-6, 3).map(lambda power: 10.0**power), delta=deltas)
def test_epsilon_and_delta_are_inverse(rho, delta):
    epsilon = epsilon_of_rho(rho, delta)
    if epsilon > 0:
        back = delta_of_rho(rho, epsilon)
        assert math.log(back) == pytest.approx(math.log(delta), abs=1e-5)
        assert epsilon_of_rho(rho, back * (1 - 1e-6)) >= epsilon * (1 - 1e-7)


@given(rho=rhos, delta=deltas, factor=st.floats(1.000001, 100))
def test_more_rho_or_less_delta_never_costs_less(rho, delta, factor):
    assert epsilon_of_rho(rho * factor, delta) >= epsilon_of_rho(rho, delta)
    assert epsilon_of_rho(rho, delta / factor) >= epsilon_of_rho(rho, delta)
    assert delta_of_rho(rho * factor, 1.0) >= delta_of_rho(rho, 1.0)
    assert delta_of_rho(rho, factor) <= delta_of_rho(rho, 1.0)


@given(epsilon=epsilons, delta=deltas)
def test_the_largest_rho_fits_and_is_the_largest(epsilon, delta):
    rho = rho_of_epsilon(epsilon, delta)
    assert epsilon_of_rho(rho, delta) <= epsilon
    assert epsilon_of_rho(rho * (1 + 1e-8), delta) > epsilon


@settings(max_examples=10, deadline=None)
@given(sigma=st.floats(0.5, 50), delta=deltas)
def test_not_looser_than_dp_accountings_renyi_accountant(sigma, delta):
    # Its orders are a fixed grid and ours are all of them: ours is at most its epsilon.
    accountant = RdpAccountant()
    accountant.compose(dp_accounting.GaussianDpEvent(sigma))
    theirs = accountant.get_epsilon(delta)
    ours = epsilon_of_rho(1 / (2 * sigma**2), delta)
    assert ours <= theirs * (1 + 1e-8)
    assert ours >= theirs * 0.9


@pytest.mark.parametrize(("rho", "delta"), [(0.1, 1e-6), (1e-12, 1e-12), (1e4, 1e-2), (3.0, 1e-300)])
def test_against_high_precision(rho, delta):
    mpmath = pytest.importorskip("mpmath")
    with mpmath.workdps(60):
        log_inverse = -mpmath.log(mpmath.mpf(delta))
        r = mpmath.mpf(rho)
        low, high = mpmath.mpf(10) ** -30, mpmath.exp(log_inverse)
        for _ in range(2500):
            middle = mpmath.sqrt(low * high)
            low, high = (middle, high) if r * middle**2 + mpmath.log1p(middle) < log_inverse else (low, middle)
            if high / low < 1 + mpmath.mpf(10) ** -50:
                break
        a = low
        truth = r * (a + 1) + (log_inverse - mpmath.log1p(a)) / a - mpmath.log1p(1 / a)
        excess = float(mpmath.mpf(epsilon_of_rho(rho, delta)) / truth - 1)
    assert 0 <= excess <= 2e-9


def test_extremes():
    assert epsilon_of_rho(0.0, 1e-6) == 0.0
    assert epsilon_of_rho(math.inf, 1e-6) == math.inf
    assert delta_of_rho(0.0, 1.0) == 0.0
    assert delta_of_rho(math.inf, 1.0) == 1.0
    assert delta_of_rho(1e-12, 1.0) > 0  # underflow rounds up
    assert epsilon_of_rho(5e-324, 5e-324) >= 0
    assert rho_of_epsilon(1e-300, 1e-300) >= 0


@pytest.mark.parametrize(
    "call",
    [
        lambda: epsilon_of_rho(-1.0, 1e-6),
        lambda: epsilon_of_rho(math.nan, 1e-6),
        lambda: epsilon_of_rho(1.0, 0.0),
        lambda: epsilon_of_rho(1.0, 1.0),
        lambda: delta_of_rho(1.0, -0.1),
        lambda: rho_of_epsilon(0.0, 1e-6),
        lambda: rho_of_epsilon(1.0, 0.0),
    ],
)
def test_what_has_no_meaning_is_refused(call):
    with pytest.raises(ConfigError):
        call()
