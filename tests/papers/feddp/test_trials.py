"""Every method runs at both levels on one small mixture; the same trial gives the same score."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import numpy as np
import pytest

from cloister.crypto import Stream
from cloister.privacy.units import Unit
from papers.feddp import trials
from papers.feddp.datasets import MixtureSet, load_study
from papers.feddp.printed import RECOMMENDED_CLIENT, RECOMMENDED_RECORD
from papers.feddp.published import Split
from papers.feddp.trials import Method, Trial, find_centres, score_trial
from papers.lab.k_fed import k_fed

SILO = MixtureSet(clients=5, records_each=400, unit=Unit.RECORD, dimensions=20)
DEVICES = MixtureSet(clients=100, records_each=20, unit=Unit.CLIENT, dimensions=20)


def make_trial(data: MixtureSet, method: Method, epsilon: float = 2.0, run: int = 0) -> Trial:
    if method in ("optimal", "k-fed"):
        return Trial(data=data, method=method, run=run)
    shares = RECOMMENDED_RECORD if data.unit is Unit.RECORD else RECOMMENDED_CLIENT
    return Trial(
        data=data,
        method=method,
        run=run,
        epsilon=epsilon,
        steps=None if method in ("cloister", "synopsis") else 1,
        split=Split(**dict(zip(("projection", "weights", "sums", "counts"), shares, strict=True)))
        if method == "published"
        else None,
    )


@pytest.mark.parametrize("data", [SILO, DEVICES], ids=["record", "client"])
@pytest.mark.parametrize("method", get_args(Method))
def test_a_method_gives_ten_centres_that_are_no_better_than_the_optimum(method: Method, data: MixtureSet) -> None:
    trial = make_trial(data, method)
    centres = find_centres(trial, load_study(data))
    assert centres.shape == (10, 20)
    assert np.isfinite(centres).all()
    score = score_trial(trial)
    best = score_trial(make_trial(data, "optimal"))
    assert score.cost >= best.cost * (1 - 1e-3)
    assert score.accuracy is not None
    assert 0.1 <= score.accuracy <= 1
    again = score_trial(trial)
    assert (again.cost, again.accuracy) == (score.cost, score.accuracy)


@pytest.mark.parametrize("method", ["published", "cloister", "synopsis", "server-lloyds"])
def test_runs_differ_in_their_noise(method: Method) -> None:
    one, two = (score_trial(make_trial(SILO, method, run=run)) for run in (0, 1))
    assert one.cost != two.cost


@pytest.mark.parametrize("method", ["published", "cloister", "server-lloyds"])
def test_more_epsilon_costs_less(method: Method) -> None:
    costs = [
        np.mean([score_trial(make_trial(SILO, method, epsilon, run)).cost for run in range(3)])
        for epsilon in (0.02, 8.0)
    ]
    assert costs[0] > costs[1]


def test_with_server_data_the_private_result_is_close_to_the_optimum() -> None:
    best = score_trial(make_trial(SILO, "optimal")).cost
    assert score_trial(make_trial(SILO, "cloister", 8.0)).cost < 1.05 * best
    assert score_trial(make_trial(SILO, "server-kmeans++", 8.0)).cost > 1.05 * best


def test_baselines_read_clients_only_through_the_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their start and their bounds must not change when the clients' records do."""
    seen = []
    monkeypatch.setattr(
        trials, "run_feddp_lloyds", lambda parts, start, bounds, **rest: seen.append((start, bounds)) or start
    )
    study = load_study(DEVICES)
    for points in (study.points, 3 * study.points[::-1]):
        for method in ("server-kmeans++", "server-lloyds", "sphere-packing"):
            find_centres(make_trial(DEVICES, method), replace(study, points=points))
    for (one, bounds), (two, other) in zip(seen[:3], seen[3:], strict=True):
        np.testing.assert_array_equal(one, two)
        assert bounds == other


def test_more_starts_of_its_clients_help_k_fed() -> None:
    study = load_study(SILO)
    costs = {
        restarts: [
            trials.cluster_sums(
                study.points,
                k_fed(study.parts, 10, 10, Stream.from_seed(s, "k-fed"), variant="repaired", restarts=restarts).centres,
            ).loss
            for s in range(6)
        ]
        for restarts in (1, 10)
    }
    assert np.mean(costs[10]) < np.mean(costs[1])
