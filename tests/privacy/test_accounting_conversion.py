"""The zCDP conversion: never below the truth, never above the classic bound, monotone, its own inverse."""

import math

import dp_accounting
import pytest
from dp_accounting.rdp import RdpAccountant
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq, minimize_scalar
from scipy.special import log_ndtr, ndtr

from cloister.errors import ConfigError
from cloister.privacy.zcdp import delta_of_rho, epsilon_of_rho, rho_of_epsilon

rhos = st.floats(-12, 4).map(lambda power: 10.0**power)
deltas = st.floats(-12, -2).map(lambda power: 10.0**power)
epsilons = st.floats(math.log10(0.01), math.log10(20)).map(lambda power: 10.0**power)


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
