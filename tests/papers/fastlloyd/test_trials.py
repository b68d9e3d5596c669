"""A trial is named by its value: same score anywhere; without noise it is Lloyd's algorithm; flows are solved once."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cloister.crypto import Stream
from cloister.errors import DataError
from cloister.kmeans import ConstrainedExclusive, lloyd, sphere_packing
from cloister.protocols.multiparty_lloyd.noise import NoisePlan
from papers.fastlloyd.ablations import count_best
from papers.fastlloyd.datasets import DrawnSet, FileSet, Scope, load_points
from papers.fastlloyd.lines import ALL_LINES
from papers.fastlloyd.trials import NO_ASSIGNMENT, Cell, FlowCache, Score, Trial, deal_records, make_plan, score_trial
from papers.lab.products import Estimate
from papers.lab.scores import nicv
from tests.papers.fastlloyd.conftest import write_files

SYNTH = DrawnSet(family="SynthSEP", clusters=3, dimensions=2, records=600)


def test_the_same_trial_gives_the_same_score_and_another_run_another() -> None:
    trial = Trial(data=SYNTH, method="sound", run=1, epsilon=1.0)
    assert score_trial(trial) == score_trial(trial)
    assert score_trial(trial) != score_trial(replace(trial, run=2))
    assert score_trial(trial) != score_trial(replace(trial, epsilon=0.1))


def test_where_the_folder_lies_does_not_matter(tmp_path: Path) -> None:
    folders = [write_files(tmp_path / name) for name in ("a", "b")]
    trials = [
        Trial(data=FileSet(name="lsun", path=folder / "lsun.txt", clusters=3), method="mna", run=0, epsilon=4.0)
        for folder in folders
    ]
    assert score_trial(trials[0]) == score_trial(trials[1])


def test_without_noise_the_unconstrained_method_is_seven_steps_of_lloyd() -> None:
    points = load_points(SYNTH)
    start = sphere_packing(Stream.from_seed(3, "start", "sphere-packing", SYNTH.label), 3, 2)
    expected = nicv(points, lloyd(points, start, iterations=7).centres)
    assert score_trial(Trial(data=SYNTH, method="sulloyd", run=3)).loss == pytest.approx(expected, rel=1e-9)


def test_points_are_scaled_to_their_extremes_and_on_the_grid(data_folder: Path) -> None:
    points = load_points(FileSet(name="house", path=data_folder / "house.txt", clusters=3))
    np.testing.assert_array_equal(points.min(axis=0), -1.0)
    np.testing.assert_array_equal(points.max(axis=0), 1.0)
    np.testing.assert_array_equal(points * 2**16, np.rint(points * 2**16))


def test_a_sample_says_that_it_is_one(data_folder: Path) -> None:
    data = FileSet(name="s1", path=data_folder / "s1.txt", clusters=15, most=60)
    assert len(load_points(data)) == 60
    assert data.label == "s1 (60)"


@pytest.mark.parametrize("text", ["1 2\n3 x\n", "1 2\n", "1 2\n3 nan\n4 5\n6 7\n", ""])
def test_a_file_that_is_no_table_is_refused_without_a_word_of_it(tmp_path: Path, text: str) -> None:
    path = tmp_path / "iris.txt"
    path.write_text(text)
    with pytest.raises(DataError, match="must") as caught:
        load_points(FileSet(name="iris", path=path, clusters=3))
    assert "x" not in str(caught.value).replace(str(path), "").replace("fastlloyd", "")


def test_an_assignment_that_cannot_be_is_a_score_and_no_error(tmp_path: Path) -> None:
    # All records in one corner of the domain, but for one that stretches it: far centres have nobody within reach.
    rng = np.random.default_rng(1)
    path = tmp_path / "s1.txt"
    np.savetxt(path, np.vstack([rng.normal(0, 1e-3, (200, 2)), [[1.0, 1.0]]]))
    data = FileSet(name="s1", path=path, clusters=15)
    trial = Trial(data=data, method="published", run=0, epsilon=1.0, assignment="distance-constrained")
    assert score_trial(trial) is NO_ASSIGNMENT


@pytest.mark.parametrize("line", [line for line in ALL_LINES if line.private], ids=lambda line: line.key)
def test_what_a_legend_says_of_a_guarantee_is_what_its_plan_says(line) -> None:
    plan, _ = make_plan(line.make_trials(SYNTH, 1.0, 1)[0], 600, 2)
    assert isinstance(plan, NoisePlan)
    assert bool(plan.flaw) == (line.guarantee == "fails")
    assert bool(plan.flaw) == ("guarantee fails" in line.label)


def test_a_flow_is_solved_once_and_gives_what_it_gave(monkeypatch: pytest.MonkeyPatch) -> None:
    records = deal_records(SYNTH, 0, 2)[0]
    inner = ConstrainedExclusive(size_min=40, size_max=150)
    centres = sphere_packing(Stream.from_seed(1, "test"), 3, 2)
    flow = FlowCache(inner=inner)
    expected = inner.sums(next(records.batches()), centres)
    first = flow.sums(records, centres)
    solved: list[int] = []
    monkeypatch.setattr(ConstrainedExclusive, "_assign_by_distance", lambda *_: solved.append(1))
    again = flow.sums(records, centres)
    assert solved == []
    for sums in (first, again):
        np.testing.assert_array_equal(sums.sums, expected.sums)
        np.testing.assert_array_equal(sums.counts, expected.counts)


def test_what_is_remembered_of_a_flow_is_for_its_own_centres_part_and_sizes() -> None:
    parts = deal_records(SYNTH, 0, 2)
    near, far = (sphere_packing(Stream.from_seed(seed, "test"), 3, 2) for seed in (1, 2))
    for limits in ((40, 150), (90, 110)):
        inner = ConstrainedExclusive(size_min=limits[0], size_max=limits[1])
        for records in (*parts, deal_records(SYNTH, 1, 2)[0]):
            for centres in (near, far):
                found = FlowCache(inner=inner).sums(records, centres)
                np.testing.assert_array_equal(found.sums, inner.sums(next(records.batches()), centres).sums)


def test_parts_are_a_partition() -> None:
    points = load_points(SYNTH)
    parts = [next(part.batches()) for part in deal_records(SYNTH, 4, 3)]
    assert max(map(len, parts)) - min(map(len, parts)) <= 1
    joined = np.concatenate(parts)
    np.testing.assert_array_equal(joined[np.lexsort(joined.T)], points[np.lexsort(points.T)])
    assert not np.array_equal(joined, points)


def test_runs_without_an_assignment_are_in_no_mean() -> None:
    scores = [
        Score(loss=1.0, empty=0.0, silhouette=math.nan),
        Score(loss=3.0, empty=2.0, silhouette=0.5),
        NO_ASSIGNMENT,
    ]
    cell = Cell.of(scores)
    assert (cell.loss.mean, cell.empty.mean, cell.silhouette.mean) == (2.0, 1.0, 0.5)
    assert (cell.runs, cell.infeasible) == (3, 1)
    assert cell.loss.half_width == pytest.approx(12.7062 * 1.0, rel=1e-4)  # Student's t, one degree of freedom
    assert math.isnan(Estimate.of([]).mean)


def test_best_counts() -> None:
    losses = {"a": {"x": 1.0, "y": 9.0}, "b": {"x": 2.0, "y": 1.0}, "c": {"x": 3.0, "y": 2.0}}
    assert count_best(losses, top=1) == {"a": 1, "b": 1, "c": 0}
    assert count_best(losses, top=2) == {"a": 1, "b": 2, "c": 1}


def test_a_scope_finds_the_files_that_are_there(tiny: Scope) -> None:
    assert [data.name for data in tiny.find_sets(("adult", "image", "iris"))] == ["adult", "iris"]
    assert tiny.explain_missing(("adult", "image"))[0].startswith("image: left out")
