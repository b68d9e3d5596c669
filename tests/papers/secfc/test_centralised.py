"""A session of SecFC ends as the algorithm in one place does, to the last label, however the records are spread."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cloister.crypto import Stream
from cloister.field import FIELD61, FIELD122
from cloister.numeric import FixedPoint
from papers.data.partition import split_even
from papers.secfc import trials
from papers.secfc.centralised import run_double_lloyd, run_integer_lloyd
from papers.secfc.datasets import DigitSet, MixtureSet, load_study
from papers.secfc.sessions import Code, Job, choose_code, draw_start, make_agreement, run_session
from papers.secfc.trials import Trial, score_trial, split_records

DATA = MixtureSet(clusters=4, records=240, deviation=20.0, dimensions=6)
TRIAL = Trial(data=DATA, method="secfc", run=3, clients=7, local_clusters=2, protocol=True)


@pytest.mark.parametrize("local_clusters", [1, 2, 4])
def test_every_spread_of_the_records_gives_the_labels_of_one_place(local_clusters: int) -> None:
    score = score_trial(replace(TRIAL, local_clusters=local_clusters))
    alone = score_trial(replace(TRIAL, local_clusters=None, protocol=False))
    assert score.exact
    assert replace(score, exact=None) == alone
    assert alone.rounds is not None
    assert alone.rounds > 3  # overlapping clusters: not over at once


def test_a_session_that_ends_otherwise_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    other = replace(trials.make_job(TRIAL), seed=99)
    monkeypatch.setattr(
        trials, "run_session", lambda job, points, parts: run_session(other, points, parts)
    )  # another start
    assert score_trial(TRIAL).exact is False


@pytest.mark.parametrize(("code", "union"), [((2, 2), False), ((3, 1), True), ((1, 3), False)])
@pytest.mark.parametrize("separate_after", [None, 0, 2])
def test_code_membership_and_separation_change_nothing(code, union, separate_after) -> None:
    """Without membership privacy, rows stand in the clients' order."""
    study = load_study(MixtureSet(clusters=3, records=90, deviation=4.0, dimensions=5))
    parts = split_even(90, 7, Stream.from_seed(1, "parts"))
    job = Job(
        clusters=3,
        code=Code(privacy=code[0], segments=code[1]),
        seed=5,
        union=union,
        separate_after=separate_after,
        rounds_max=30,
    )
    order = np.arange(90) if union else np.concatenate(parts)
    agreement = make_agreement(job, records=90, dimensions=5, directory=tuple(bytes([n]) for n in range(7)))
    coding = agreement.choose_coding(90)
    outcome = run_session(job, study.unit_points, parts)
    alone = run_integer_lloyd(
        coding.fixed_point.encode(study.unit_points[order]),
        draw_start(job, 90),
        clusters=3,
        field=coding.field,
        rounds_max=30,
        separate_after=separate_after,
    )
    assert outcome.labels.tolist() == alone.labels.tolist()
    assert (outcome.rounds, outcome.converged, outcome.separated) == (alone.rounds, alone.converged, alone.separated)


@pytest.mark.parametrize("field", [FIELD61, FIELD122])
@pytest.mark.parametrize("separate_after", [None, 0, 1, 3])
@pytest.mark.parametrize("seed", range(4))
def test_integers_and_doubles_are_one_algorithm(field, separate_after, seed) -> None:
    """On the grid, where rounding does nothing; two programs, written apart."""
    rng = np.random.default_rng(seed)
    units = FixedPoint(10).encode(rng.uniform(-1, 1, (120, 3)))
    if seed == 0:  # clusters far apart, so that the 1/3 rule is met, and one more centre than clusters
        units[40:] += np.array([20, 0, 0]) * 1024
        units[80:] += np.array([0, 30, 0]) * 1024
    start = (rng.permutation(120) % 4).astype(np.int32)
    options = {"clusters": 4, "rounds_max": 60, "separate_after": separate_after}
    exact = run_integer_lloyd(units, start, field=field, **options)
    close = run_double_lloyd(units.astype(np.float64), start, **options)
    assert exact.labels.tolist() == close.labels.tolist()
    assert (exact.rounds, exact.converged, exact.separated) == (close.rounds, close.converged, close.separated)
    assert exact.converged


def test_some_run_separates() -> None:
    units = np.concatenate([np.arange(5), 1000 + np.arange(5), 5000 + np.arange(5)])[:, None]
    start = (np.arange(15) // 5).astype(np.int32)
    start[4] = 1
    for run in (
        run_integer_lloyd(units, start, clusters=3, field=FIELD61, rounds_max=9, separate_after=0),
        run_double_lloyd(units.astype(np.float64), start, clusters=3, rounds_max=9, separate_after=0),
    ):
        assert run.separated
        assert run.labels.tolist() == [0] * 5 + [1] * 5 + [2] * 5


def test_an_empty_cluster_takes_the_farthest_record_in_both() -> None:
    units = np.array([[0], [0], [0], [1], [9]])
    start = np.array([0, 1, 2, 0, 1], dtype=np.int32)
    options = {"clusters": 3, "rounds_max": 20, "separate_after": None}
    exact = run_integer_lloyd(units, start, field=FIELD61, **options)
    close = run_double_lloyd(units.astype(np.float64), start, **options)
    assert exact.labels.tolist() == close.labels.tolist()
    assert set(exact.labels.tolist()) == {0, 1, 2}


def test_clients_hold_at_most_k_prime_components_and_all_records_are_held() -> None:
    study = load_study(DATA)
    for local in (1, 2, 4):
        parts = split_records(replace(TRIAL, local_clusters=local), study)
        assert max(len(set(study.components[rows].tolist())) for rows in parts) <= local
        assert sorted(np.concatenate(parts).tolist()) == list(range(240))


def test_a_mixture_has_two_truths_that_differ_where_gaussians_overlap() -> None:
    near, far = (load_study(replace(DATA, deviation=deviation)) for deviation in (0.1, 20.0))
    assert np.array_equal(near.components, near.closest)
    assert 0.02 < np.mean(far.components != far.closest) < 0.75
    assert np.abs(far.unit_points).max() == 1.0
    assert far.unit_points * np.abs(far.points).max() == pytest.approx(far.points)


def test_the_stand_in_says_that_it_is_one(tmp_path) -> None:
    assert "stand-in" in DigitSet(digit=2).label
    assert "MNIST" in DigitSet(digit=2, mnist=tmp_path).label


@pytest.mark.parametrize(("clients", "expected"), [(5, (2, 1)), (7, (3, 1)), (10, (4, 1)), (16, (6, 2)), (50, (17, 8))])
def test_the_code_is_private_against_a_third_and_fits(clients, expected) -> None:
    code = choose_code(clients)
    assert (code.privacy, code.segments) == expected
    assert 2 * code.privacy + 2 * code.segments - 1 <= clients
