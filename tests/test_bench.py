"""What benchmarks judge by: verdicts, changes from the command line, and rivals that spend exactly the budget."""

import math
from dataclasses import replace

import numpy as np
import pytest
from bench import placement, secure_sum
from bench.harness import conclude, find_centres, judge, parse_changes, run_sections, take_changes
from bench.rivals import (
    find_sigma,
    fold,
    pack_by_halving,
    plan_fastlloyd,
    plan_sulloyd_gaussian,
    plan_sulloyd_laplace,
    run_rounds,
    run_variants,
)

from cloister.crypto import Stream
from cloister.kmeans import cluster_sums
from cloister.privacy.privacy_loss import GaussianCost, delta_of_gaussian
from cloister.privacy.units import Budget
from cloister.protocols.synopsis.settings import Knobs
from papers.lab.products import Estimate
from tests.sessions import blobs

BUDGET = Budget(epsilon=1.0, delta=1e-5)
SHAPES = [(150, 3, 4), (5000, 15, 2), (10_000, 20, 20), (48_842, 3, 6)]


@pytest.mark.parametrize(
    ("mean", "half_width", "verdict"),
    [(0.9, 0.0, "ok"), (1.04, 0.0, "ok"), (1.06, 0.01, "MISS"), (1.06, 0.1, "ok"), (2.0, 1.5, "wide")],
)
def test_a_cell_is_judged_by_its_mean_and_by_an_interval_that_shows_something(mean, half_width, verdict):
    assert judge(Estimate(mean=mean, half_width=half_width), 1.0) == verdict


def test_a_ratio_of_means_has_an_interval_of_pairs():
    below = np.linspace(1.0, 2.0, 40)
    exact = placement.Ratio.of(1.5 * below, below)
    assert (exact.value, exact.low, exact.high) == pytest.approx((1.5, 1.5, 1.5))
    rough = placement.Ratio.of(below[::-1], below)
    assert rough.low < 1.0 < rough.high


def test_what_a_sum_costs_is_judged_by_round_and_by_bytes(capsys):
    watches, rounds = secure_sum.run_session("synopsis", 3)
    other = watches[2]
    assert rounds == 11
    assert {*other.spent_s} >= {"Answer", "OpenTotal"}
    assert "Lead" in watches[1].spent_s
    assert other.noise_s > 0 < watches[1].algorithm_s
    quick = replace(other, spent_s={"Answer": 0.0})
    assert secure_sum.print_row("synopsis", 3, "other", quick, rounds) == []
    slow = replace(other, spent_s={"Answer": 0.0013 * rounds}, received=8001, sent=53_000)
    assert len(secure_sum.print_row("synopsis", 3, "other", slow, rounds)) == 3
    assert len(secure_sum.print_row("synopsis", 4, "other", slow, rounds)) == 0
    assert capsys.readouterr().out.count("synopsis") == 3


class Serial:
    """A pool without processes."""

    def map(self, function, tasks, *, together):
        return [function(task) for task in tasks]


@pytest.mark.parametrize(("ratio", "missed"), [(1.01, []), (1.03, ["s1 (k = 15): 1.0300, mark 1.02"])])
def test_noise_by_the_parties_is_judged_on_sets_with_a_thousand_records(monkeypatch, capsys, ratio, missed):
    monkeypatch.setattr(placement, "has_set", lambda name: name in ("iris", "s1"))
    monkeypatch.setattr(placement, "load_unit", lambda name: np.zeros((150 if name == "iris" else 5000, 2)))
    monkeypatch.setattr(
        placement,
        "measure_loss",
        lambda run: 1.0 if run.placement.by_coordinator else ratio * (1 + (run.name == "iris")),
    )
    assert placement.print_ratios(Serial(), runs=2) == missed
    assert "adult   skipped: adult.txt was not found" in capsys.readouterr().out
    monkeypatch.setattr(placement, "has_set", lambda name: name == "iris")
    assert "no set of 1,000 records or more was found" in placement.print_ratios(Serial(), runs=2)[0]


def test_only_the_part_that_is_asked_for_is_run_and_what_it_misses_is_told(capsys):
    sections = {"one": lambda: ["too slow"], "two": lambda: []}
    assert run_sections(sections) == 1
    assert run_sections(sections, "two") == 0
    assert conclude([]) == 0
    assert capsys.readouterr().out.count("too slow") == 1


def test_changes_become_numbers_of_the_kind_that_they_replace():
    changes = parse_changes(["rounds_min=3", "draws=10"])
    knobs = take_changes(Knobs, changes)
    assert (knobs.rounds_min, type(knobs.rounds_min)) == (3, int)
    assert knobs == replace(Knobs(), rounds_min=3)
    assert changes == {"draws": "10"}


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
