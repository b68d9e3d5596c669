"""What the utility benchmark judges by: the marks it reads, its verdicts, and rivals that spend exactly the budget."""

import math

import numpy as np
import pytest
from bench.utility_rivals import (
    find_sigma,
    fold,
    pack_by_halving,
    plan_fastlloyd,
    plan_sulloyd_gaussian,
    plan_sulloyd_laplace,
    run_rounds,
    run_variants,
)
from bench.utility_runs import Estimate, find_centres
from bench.utility_table import read_marks

from cloister.crypto import Stream
from cloister.kmeans import cluster_sums
from cloister.privacy.gaussian_dp import GaussianCost, delta_of_gaussian
from cloister.privacy.units import Budget
from tests.harness import blobs

BUDGET = Budget(epsilon=1.0, delta=1e-5)
SHAPES = [(150, 3, 4), (5000, 15, 2), (10_000, 20, 20), (48_842, 3, 6)]


def test_marks_are_read_with_the_epsilon_that_they_are_for():
    text = """| data (n,d,k) floor | eps .1 | .25 | .5 | 1 | 2 |
| --- | --- | --- | --- | --- | --- |
| s1 (5000,2,15) .00823 | .0114 (.0401) | .00842 | .00828 (.0216) | .00824 (.0177) | .00824 (.0175) |
| mixture 100k x 100, k=10, excess | .37 | – (.2: .074) | – (.4: .020) | .0038 | .0011 |
"""
    marks = read_marks(text)
    assert marks["s1"] == {0.1: 0.0114, 0.25: 0.00842, 0.5: 0.00828, 1.0: 0.00824, 2.0: 0.00824}
    assert marks["mixture"] == {0.1: 0.37, 0.2: 0.074, 0.4: 0.020, 1.0: 0.0038, 2.0: 0.0011}
    assert set(marks) == {"s1", "mixture"}


@pytest.mark.parametrize(
    ("mean", "half_width", "verdict"),
    [(0.9, 0.0, "ok"), (1.04, 0.0, "ok"), (1.06, 0.01, "MISS"), (1.06, 0.1, "ok"), (2.0, 1.5, "wide")],
)
def test_a_cell_is_judged_by_its_mean_and_by_an_interval_that_shows_something(mean, half_width, verdict):
    assert Estimate(mean=mean, half_width=half_width).judge(1.0) == verdict


def test_the_interval_is_students():
    estimate = Estimate.of([1.0, 2.0, 3.0])
    assert estimate.mean == 2.0
    assert estimate.half_width == pytest.approx(4.3027 / math.sqrt(3), rel=1e-4)


@pytest.mark.parametrize(("n", "k", "d"), SHAPES)
def test_gaussian_rivals_spend_the_budget_and_no_more(n, k, d):
    for plan, norms in (
        (plan_fastlloyd(n, k, d, BUDGET), None),
        (plan_sulloyd_gaussian(n, k, d, BUDGET), math.sqrt(d)),
    ):
        signals = [
            ((norms or radius) / noise) ** 2 + plan.count_noise**-2
            for radius, noise in zip(plan.radii, plan.sum_noises, strict=True)
        ]
        assert 2 <= len(signals) <= 7
        delta = delta_of_gaussian(GaussianCost(mu_squared=sum(signals), ripple=0.0), BUDGET.epsilon)
        assert delta == pytest.approx(BUDGET.delta, rel=1e-6)


@pytest.mark.parametrize(("n", "k", "d"), SHAPES)
def test_laplace_rival_spends_epsilon_and_no_more(n, k, d):
    plan = plan_sulloyd_laplace(n, k, d, BUDGET)
    assert sum(d / noise + 1 / plan.count_noise for noise in plan.sum_noises) == pytest.approx(BUDGET.epsilon)


def test_sigma_of_a_known_budget():
    # Balle and Wang's analytic Gaussian mechanism, epsilon 1 and delta 1e-5.
    assert find_sigma(BUDGET) == pytest.approx(3.7306, rel=1e-3)


def test_without_noise_a_rival_is_lloyds_algorithm():
    points = blobs(600, 2, 3, seed=3)
    centres = pack_by_halving(Stream.from_seed(1, "start"), 3, 2)
    plan = plan_sulloyd_gaussian(600, 3, 2, Budget(epsilon=1e5, delta=1e-5))
    expected = centres
    for _ in plan.radii:
        exact = cluster_sums(points, expected)
        expected = exact.sums / np.maximum(exact.counts, 1)[:, None]
    found = run_rounds(points, centres, plan, np.random.default_rng(1))
    np.testing.assert_allclose(found, expected, atol=1e-2)


def test_folding_mirrors_at_the_border_and_leaves_the_inside():
    np.testing.assert_allclose(fold(np.array([-1.0, 0.3, 1.0, 1.2, -1.5, 3.1])), [-1.0, 0.3, 1.0, 0.8, -0.5, -0.9])


def test_runs_are_named_by_their_seed():
    points = blobs(400, 2, 2, seed=5)
    first, again, other = (find_centres((points[::2], points[1::2]), 2, BUDGET, seed) for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
    losses = list(run_variants("SuLloyd", points, 2, BUDGET, 1))
    assert losses == list(run_variants("SuLloyd", points, 2, BUDGET, 1))
    assert len(set(losses)) == 4
