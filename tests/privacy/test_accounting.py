"""The accountant: refuses before it records, adds what ran, holds under threads, and is fast."""

import copy
import math
import threading
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cloister.errors import BudgetError, ConfigError, LocalProtocolError
from cloister.privacy import accounting
from cloister.privacy.accounting import Accountant, Spent, compose_plan
from cloister.privacy.costs import epsilon_of_rho, rho_of
from cloister.privacy.mechanisms import DiscreteGaussian, DiscreteGaussianSum, DiscreteLaplace, Release
from cloister.privacy.units import Budget, Sensitivity

ONE = Sensitivity(l1=1, l2_squared=1)
BUDGET = Budget(epsilon=1.0, delta=1e-6)


def release(mechanism, name="sums", sensitivity=ONE, entries=1):
    return Release(name=name, mechanism=mechanism, sensitivity=sensitivity, entries=entries)


def gaussian(sigma, **more):
    return release(DiscreteGaussian(sigma=sigma), **more)


def laplace(scale, **more):
    return release(DiscreteLaplace(scale=scale), **more)


mechanisms = st.one_of(
    st.floats(20, 1e4).map(lambda sigma: DiscreteGaussian(sigma=sigma)),
    st.floats(20, 1e4).map(lambda scale: DiscreteLaplace(scale=scale)),
    st.builds(DiscreteGaussianSum, sigma=st.floats(20, 1e4), shares=st.integers(1, 10)),
)


def test_a_new_accountant_has_spent_nothing():
    spent = Accountant(BUDGET).spent()
    assert spent == Spent(epsilon=0.0, delta=0.0, how="nothing was released", releases=(), rho=0.0)


@settings(max_examples=50)
@given(st.lists(mechanisms, min_size=1, max_size=20))
def test_the_cost_is_that_of_the_releases_in_any_order(noises):
    accountant, backwards = Accountant(Budget(epsilon=50, delta=1e-6)), Accountant(Budget(epsilon=50, delta=1e-6))
    listed = [release(noise) for noise in noises]
    for item in listed:
        accountant.charge(item)
    for item in reversed(listed):
        backwards.charge(item)
    spent = accountant.spent()
    assert spent.releases == tuple(listed)
    assert spent.rho == pytest.approx(math.fsum(map(rho_of, listed)), rel=1e-12)
    assert spent.rho >= math.fsum(map(rho_of, listed))
    assert spent.epsilon == pytest.approx(backwards.spent().epsilon, rel=1e-9)
    assert spent.epsilon <= epsilon_of_rho(spent.rho, 1e-6)
    assert spent.epsilon == Accountant(Budget(epsilon=50, delta=1e-6)).would_spend(listed).epsilon


def test_a_refused_charge_is_not_recorded_and_names_spent_asked_and_cap():
    accountant = Accountant(BUDGET)
    accountant.charge(gaussian(8.0, name="round 1"))
    before = accountant.spent()
    with pytest.raises(BudgetError) as caught:
        accountant.charge(gaussian(2.0, name="round 2"))
    message = str(caught.value)
    for part in ("epsilon = 1 ", "delta = 1e-06", f"spent {before.epsilon:.6g}", "'round 2'", "Nothing was released"):
        assert part in message
    alone = Accountant(BUDGET).would_spend([gaussian(2.0)]).epsilon
    assert f"costs {alone:.6g} alone" in message
    assert accountant.spent() == before
    accountant.charge(gaussian(100.0))  # and what fits is still taken


def test_the_last_release_before_the_cap_is_taken_and_the_next_is_not():
    accountant = Accountant(BUDGET)
    while accountant.would_spend([gaussian(40.0)]).epsilon <= 1:
        accountant.charge(gaussian(40.0))
    before = accountant.spent()
    assert len(before.releases) > 10
    assert before.epsilon <= 1
    with pytest.raises(BudgetError):
        accountant.charge(gaussian(40.0))
    assert accountant.spent() == before


def test_pure_releases_add_up_where_that_is_better():
    accountant = Accountant(BUDGET)
    accountant.charge(laplace(2.0))  # as zCDP this one alone would cost more than 1
    spent = accountant.spent()
    assert (spent.epsilon, spent.delta) == (pytest.approx(0.5), 0.0)
    assert epsilon_of_rho(spent.rho, 1e-6) > 1
    accountant.charge(laplace(2.0001))
    with pytest.raises(BudgetError):
        accountant.charge(laplace(1000.0))


def test_many_small_pure_releases_are_composed_as_zcdp():
    accountant = Accountant(BUDGET)
    for _ in range(400):
        accountant.charge(laplace(140.0))
    spent = accountant.spent()
    assert 400 / 140 > 1 >= spent.epsilon
    assert spent.delta == 1e-6
    assert "zCDP" in spent.how


def test_without_delta_only_pure_releases_are_taken():
    accountant = Accountant(Budget(epsilon=1.0, delta=0.0))
    with pytest.raises(ConfigError, match="delta = 0"):
        accountant.charge(gaussian(1e9))
    accountant.charge(laplace(1.0001))
    assert accountant.spent().epsilon <= 1
    with pytest.raises(BudgetError):
        accountant.charge(laplace(1e3))
    assert len(accountant.spent().releases) == 1


def test_a_budget_without_delta_can_be_spent_to_the_last_bit():
    accountant = Accountant(Budget(epsilon=1.0, delta=0.0))
    accountant.charge(laplace(1 + 1e-12))
    assert accountant.spent().epsilon <= 1


def test_an_unknown_mechanism_is_refused():
    accountant = Accountant(BUDGET)
    with pytest.raises(LocalProtocolError, match="must know"):
        accountant.charge(release("gauss"))
    assert accountant.spent().releases == ()


def test_no_noise_at_all_is_refused_and_has_no_rho():
    huge = Sensitivity(l1=2**600, l2_squared=2**1200)
    accountant = Accountant(BUDGET)
    with pytest.raises(BudgetError):
        accountant.charge(gaussian(1e-9, sensitivity=huge))
    assert accountant.would_spend([gaussian(1e-9, sensitivity=huge)]).rho is None


def test_threads_cannot_spend_more_than_the_budget_together(monkeypatch):
    def slow_rho_of(item):
        time.sleep(1e-4)  # lets another thread in, in the middle of a charge
        return rho_of(item)

    monkeypatch.setattr("cloister.privacy.accounting.rho_of", slow_rho_of)
    accountant = Accountant(BUDGET)
    refused = []

    def spend():
        for _ in range(30):
            try:
                accountant.charge(gaussian(40.0))
            except BudgetError:
                refused.append(1)

    threads = [threading.Thread(target=spend) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    spent = accountant.spent()
    assert refused
    assert len(spent.releases) + len(refused) == 120
    assert spent.rho >= len(spent.releases) * rho_of(gaussian(40.0))
    assert Accountant(BUDGET).would_spend(spent.releases).epsilon <= 1


def test_a_charge_costs_microseconds():
    listed = [gaussian(1e5, name=f"round {i}", entries=784) for i in range(100)]
    best = math.inf
    for _ in range(5):
        accountant = Accountant(BUDGET)
        start = time.perf_counter()
        for item in listed:
            accountant.charge(item)
        best = min(best, (time.perf_counter() - start) / len(listed))
    assert best < 500e-6  # 3 microseconds where this was written


def test_copies_of_an_accountant_are_the_same_accountant():
    accountant = Accountant(BUDGET)
    assert copy.copy(accountant) is accountant
    assert copy.deepcopy([accountant])[0] is accountant
    with pytest.raises(TypeError, match="would spend the budget again"):
        accountant.__reduce__()


def plan_of(sigma, count=5):
    return [release(DiscreteGaussian(sigma=sigma), name=f"round {i}") for i in range(count)]


def test_a_plan_is_checked_at_once():
    with pytest.raises(BudgetError, match="asked for 5 releases"):
        Accountant(BUDGET, plan=plan_of(5.0))
    with pytest.raises(ConfigError, match="delta = 0"):
        Accountant(Budget(epsilon=1, delta=0), plan=plan_of(100.0))


def test_a_plan_may_use_what_adaptive_releases_may_not():
    plan = plan_of(9.6)
    adaptive = Accountant(BUDGET)
    for item in plan[:-1]:
        adaptive.charge(item)
    with pytest.raises(BudgetError):
        adaptive.charge(plan[-1])
    accountant = Accountant(BUDGET, plan=plan)
    for item in plan:
        accountant.charge(item)
    spent = accountant.spent()
    assert spent.epsilon <= 1
    assert spent.releases == tuple(plan)
    assert spent == compose_plan(plan, BUDGET.delta)


def test_only_what_is_planned_is_taken_in_order_and_once():
    plan = plan_of(20.0)
    accountant = Accountant(BUDGET, plan=plan)
    accountant.charge(plan[1])  # the first is left out
    for wrong in (plan[0], plan[1], release(DiscreteGaussian(sigma=1e9), name="not planned")):
        with pytest.raises(LocalProtocolError, match="plan"):
            accountant.charge(wrong)
    accountant.charge(plan[4])
    assert accountant.spent().releases == (plan[1], plan[4])
    assert accountant.spent().epsilon < compose_plan(plan, BUDGET.delta).epsilon
    with pytest.raises(LocalProtocolError):
        accountant.charge(plan[4])


def test_where_two_rules_give_the_same_the_simpler_is_named(monkeypatch):
    plan = [gaussian(20.0)] * 2
    with monkeypatch.context() as patch:
        patch.setattr(accounting, "gaussian_cost_of", lambda listed: None)
        added = compose_plan(plan, delta=1e-6).epsilon
    monkeypatch.setattr(accounting, "epsilon_of_gaussian", lambda cost, delta: added)
    assert "Gaussian curve" not in compose_plan(plan, delta=1e-6).how
    monkeypatch.setattr(accounting, "epsilon_of_gaussian", lambda cost, delta: 0.999 * added)
    assert "Gaussian curve" in compose_plan(plan, delta=1e-6).how
