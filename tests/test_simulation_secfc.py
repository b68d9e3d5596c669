"""SecFC jobs, end to end: the same centres as Lloyd's algorithm, with and without membership privacy."""

import dataclasses

import numpy as np
import pandas as pd
import pytest

from cloister import Budget, Column, DataOptions, Job, JobParty, ProtocolOptions, plan, simulate
from cloister.errors import ConfigError

COLUMNS = (Column(name="x", low=0, high=100), Column(name="y", low=0, high=100))
CENTRES = np.array([[20.0, 20.0], [60.0, 25.0], [40.0, 70.0]])


def make_frames(parties=5, seed=2):
    rng = np.random.default_rng(seed)
    points = np.concatenate([rng.normal(centre, 4, (80, 2)) for centre in CENTRES])
    frame = pd.DataFrame(np.clip(points, 0, 100), columns=["x", "y"])
    frame.insert(0, "pid", [f"P{i}" for i in rng.permutation(len(frame))])
    frame = frame.sample(frac=1, random_state=1)
    return {name: frame.iloc[i::parties].reset_index(drop=True) for i, name in enumerate("abcdefg"[:parties])}


def make_job(parties=5, *, data=None, **options):
    return Job(
        name="coded",
        k=3,
        columns=COLUMNS,
        parties=tuple(JobParty(name=name) for name in "abcdefg"[:parties]),
        protocol=ProtocolOptions(name="secfc", **options),
        data=data or DataOptions(),
        seed=4,
    )


@pytest.mark.parametrize("data", [DataOptions(), DataOptions(id="pid"), DataOptions(records=1000)])
def test_it_ends_at_a_fixed_point_of_lloyds_algorithm(data):
    frames = make_frames()
    result = simulate(make_job(data=data), sources=frames)
    points = np.concatenate([frame[["x", "y"]].to_numpy() for frame in frames.values()])
    labels = np.linalg.norm(points[:, None] - result.centres, axis=2).argmin(axis=1)
    means = np.array([points[labels == j].mean(axis=0) for j in range(3)])
    assert np.abs(means - result.centres).max() < 0.01
    assert result.card is None
    assert "rotation" in result.breaks_if
    held = next(row for row in result.leakage if "which client holds which" in row.what and "party" in row.role)
    assert (held.how == "only its own") == (data.id is not None)
    sized = [row for row in result.leakage if "how many records each client has" in row.what]
    assert [row.how for row in sized] == ["exactly", "exactly"]


def test_an_id_that_two_parties_hold_is_refused():
    frames = make_frames()
    frames["a"].loc[0, "pid"] = frames["b"].loc[0, "pid"]
    with pytest.raises(ConfigError, match="must be held by one party"):
        simulate(make_job(data=DataOptions(id="pid")), sources=frames)


def test_too_few_records_are_refused():
    frames = {name: frame.head(1) for name, frame in make_frames().items()}
    with pytest.raises(ConfigError, match=r"at least clusters\.k = 9 records"):
        simulate(dataclasses.replace(make_job(), k=9), sources=frames)


def test_a_plan_says_what_the_coordinator_learns_and_bounds_the_bytes():
    job = make_job()
    planned = plan(job, records=240)
    assert "distance of every record" in planned.learned
    result = simulate(dataclasses.replace(job), sources=make_frames())
    assert sum(party.bytes_sent for party in result.parties) < 5 * planned.traffic.other.bytes_up
    assert any("17 bits" in note for note in planned.notes)


def test_noise_on_revealed_centres_is_labelled_with_the_little_that_it_protects():
    frames, budget = make_frames(), Budget(epsilon=4.0, delta=1e-6)
    result = simulate(dataclasses.replace(make_job(), budget=budget, seed=None), sources=frames)
    card = result.card
    assert not card.private
    assert "labels" in card.scope
    assert card.plain_words.startswith("This result as a whole is not differentially private")
    assert "value replaced" in card.neighbours
    assert 0.99 * 4 < card.epsilon <= 4
    exact = simulate(dataclasses.replace(make_job(), seed=None), sources=frames)
    assert exact.card is None
    assert result.evaluation is not None
