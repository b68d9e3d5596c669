"""SecFC jobs, end to end: the same centres as Lloyd's algorithm, with and without membership privacy."""

import dataclasses

import numpy as np
import pandas as pd
import pytest

from cloister.columns import Column
from cloister.data.opening import read_ids
from cloister.errors import ConfigError
from cloister.job import Budget, DataOptions, Job, JobParty, OwnSide, Setup, make_options
from cloister.protocols.align.terms import Mode
from cloister.sessions import align_job, simulate
from cloister.sessions.alignment import save_alignment

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
        protocol=make_options("secfc", **options),
        data=data or DataOptions(),
    )


@pytest.mark.parametrize("data", [DataOptions(), DataOptions(id="pid"), DataOptions(records=1000)])
def test_it_ends_at_a_fixed_point_of_lloyds_algorithm(data):
    frames = make_frames()
    result = simulate(make_job(data=data), sources=frames, seed=4)
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
    with pytest.raises(ConfigError, match="must be held by exactly one party"):
        simulate(make_job(data=DataOptions(id="pid")), sources=frames)


def test_too_few_records_are_refused_also_where_ids_are_aligned():
    frames = {name: frame.head(1) for name, frame in make_frames().items()}
    for data in (DataOptions(), DataOptions(id="pid")):
        with pytest.raises(ConfigError, match=r"at least clusters\.k = 9 records"):
            simulate(dataclasses.replace(make_job(data=data), k=9), sources=frames)


@pytest.mark.parametrize("id_column", [None, "pid"])
def test_more_records_than_the_job_declares_are_refused(id_column):
    with pytest.raises(ConfigError, match=r"data\.records = 239 must be at least the number of records"):
        simulate(make_job(data=DataOptions(records=239, id=id_column)), sources=make_frames())


def test_the_number_of_records_need_not_be_known_to_anybody_before():
    """Declaring it, or more that the same field holds, changes no result."""
    results = [
        simulate(make_job(data=DataOptions(records=records)), sources=make_frames(), seed=4)
        for records in (None, 240, 5000)
    ]
    assert all(np.array_equal(result.centres, results[0].centres) for result in results)
    assert {result.rounds for result in results} == {results[0].rounds}
    assert {result.fractional_bits for result in results} == {16}


def test_an_earlier_union_stands_in_for_aligning_again(tmp_path):
    frames, job = make_frames(), make_job(data=DataOptions(id="pid"))
    aligned = align_job(Setup(job=job, seed=4), "pid", mode=Mode.UNION, sources=frames)
    own = {}
    for name, alignment in aligned.alignments.items():
        save_alignment(alignment, tmp_path / f"{name}.json")
        own[name] = OwnSide(alignment=tmp_path / f"{name}.json")
    again = simulate(Setup(job=job, seed=4, own=own), sources=frames)
    fresh = simulate(job, seed=4, sources=frames)
    assert again.transcript_sha256 == fresh.transcript_sha256
    assert np.array_equal(again.centres, fresh.centres)
    assert any("first aligned privately" in note for note in fresh.notes)
    assert not any("first aligned privately" in note for note in again.notes)


def test_an_earlier_union_with_an_id_that_two_parties_hold_is_refused(tmp_path):
    frames, job = make_frames(), make_job(data=DataOptions(id="pid"))
    frames["a"].loc[0, "pid"] = frames["b"].loc[0, "pid"]
    aligned = align_job(Setup(job=job), "pid", mode=Mode.UNION, sources=frames)
    own = {}
    for name, alignment in aligned.alignments.items():
        save_alignment(alignment, tmp_path / f"{name}.json")
        own[name] = OwnSide(alignment=tmp_path / f"{name}.json")
    with pytest.raises(ConfigError, match="must be held by exactly one party"):
        simulate(Setup(job=job, own=own), sources=frames)


def test_a_table_is_read_once(tmp_path):
    """IDs and columns come from one pass: a stream is enough."""
    pa = pytest.importorskip("pyarrow")
    frames, job = make_frames(), make_job(data=DataOptions(id="pid"))
    tables = {name: pa.Table.from_pandas(frame) for name, frame in frames.items()}
    streams = {name: pa.RecordBatchReader.from_batches(t.schema, t.to_batches()) for name, t in tables.items()}
    assert read_ids(tables["a"], "pid") == frames["a"]["pid"].tolist()
    streamed = simulate(job, seed=4, sources=streams)
    assert streamed.transcript_sha256 == simulate(job, seed=4, sources=frames).transcript_sha256


def test_noise_on_revealed_centres_is_labelled_with_the_little_that_it_protects():
    frames, budget = make_frames(), Budget(epsilon=4.0, delta=1e-6)
    job = dataclasses.replace(make_job(), budget=budget)
    card = simulate(job, sources=frames).card
    assert not card.private
    assert "labels" in card.scope
    assert card.plain_words.startswith("This result as a whole is not differentially private")
    assert "value replaced" in card.neighbours
    assert 0.99 * 4 < card.epsilon <= 4
    noisy, exact = simulate(job, sources=frames, seed=4), simulate(make_job(), sources=frames, seed=4)
    assert exact.card is None
    assert noisy.rounds == exact.rounds
    assert not np.array_equal(noisy.centres, exact.centres)
