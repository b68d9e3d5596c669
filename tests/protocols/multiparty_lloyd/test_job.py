"""A job end to end: any kind of table, the same centres as scikit-learn, and no record value anywhere outside."""

import json
import logging
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.cluster import KMeans

from cloister.columns import Column
from cloister.errors import ConfigError, DataError, PrecisionError
from cloister.job import DataOptions, Job, JobParty, Setup, make_options
from cloister.report import write_result
from cloister.report.result import Evaluation
from cloister.sessions import simulate
from tests.owners import told_to_owner
from tests.sessions import blobs

COLUMNS = (Column(name="length", low=0, high=50), Column(name="width", low=-10, high=10))
UNIT = blobs(240, 2, 3, seed=8)
ORIGINAL = np.column_stack([25 + 25 * UNIT[:, 0], 10 * UNIT[:, 1]])
PARTS = {"a": ORIGINAL[:100], "b": ORIGINAL[100:180], "c": ORIGINAL[180:]}
START = tuple(tuple(row) for row in ORIGINAL[[0, 110, 200]])


def make_job(**options):
    protocol = {"name": "masked-sum-count", "initialisation": "given", "start": START, "iterations": 5}
    parts = {
        "name": "test",
        "k": 3,
        "columns": COLUMNS,
        "parties": tuple(JobParty(name=name) for name in PARTS),
    }
    protocol.update(options.pop("protocol", {}))
    return Job(protocol=make_options(**protocol), **{**parts, **options})


def run(job=None, *, seed=3, sources=PARTS, **options):
    return simulate(make_job() if job is None else job, seed=seed, sources=sources, **options)


@pytest.mark.parametrize("variant", ["naive", "masked-sum-count"])
def test_centres_are_scikit_learns_in_original_units(variant):
    result = run(make_job(protocol={"name": variant}))
    # Columns are scaled, so compare in unit scaling, where k-means is run.
    expected = KMeans(3, init=to_unit(START), n_init=1, max_iter=5, tol=0, algorithm="lloyd").fit(UNIT)
    assert np.abs(to_unit(result.centres) - expected.cluster_centers_).max() <= 2**-16


def to_unit(points):
    points = np.array(points)
    return np.column_stack([points[:, 0] / 25 - 1, points[:, 1] / 10])


def test_tables_of_every_kind_give_the_same_centres(tmp_path):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    frames = {name: pd.DataFrame(part, columns=["length", "width"]) for name, part in PARTS.items()}
    frames["a"].to_csv(tmp_path / "a.csv", index=False, float_format="%.17g")
    (tmp_path / "b").mkdir()
    pq.write_table(pa.Table.from_pandas(frames["b"][:40]), tmp_path / "b" / "1.parquet")
    pq.write_table(pa.Table.from_pandas(frames["b"][40:]), tmp_path / "b" / "2.parquet")
    mixed = run(sources={"a": tmp_path / "a.csv", "b": tmp_path / "b", "c": pa.Table.from_pandas(frames["c"])})
    arrays = run()
    assert np.array_equal(mixed.centres, arrays.centres)
    assert np.array_equal(run(sources=frames).centres, arrays.centres)


def test_equal_seeds_give_equal_runs_and_no_seed_gives_fresh_masks():
    first, again = (run() for _ in range(2))
    assert first.transcript_sha256 == again.transcript_sha256
    assert first.seeded
    assert "anyone who knows the seed" in " ".join(first.notes)
    fresh = [run(seed=None) for _ in range(2)]
    assert fresh[0].transcript_sha256 is None  # it would tell records apart to whoever holds the common seed
    assert np.array_equal(fresh[0].centres, first.centres)
    assert not fresh[0].seeded


def test_notes_say_what_is_not_private():
    assert "nothing here is differentially private" in " ".join(run().notes)
    two = make_job(parties=(JobParty(name="a"), JobParty(name="b")))
    notes = " ".join(run(two, sources={"a": PARTS["a"], "b": PARTS["b"]}).notes)
    assert "each can subtract its own part" in notes


def test_leakage_and_traffic_are_reported():
    result = run(Setup(job=make_job(), network="thesis-WAN"))
    assert {row.role for row in result.leakage} == {"the coordinator", "each party", "everyone"}
    coordinator = next(row for row in result.leakage if row.role == "the coordinator")
    assert coordinator.how == "nothing of"
    assert result.network.simulated_s == pytest.approx(0.1 * (3 + 5 + 2))
    assert all(party.rounds_missed == 0 for party in result.parties)


@pytest.mark.parametrize(
    "constraint",
    [
        {"assignment": "constrained-exclusive", "alpha_min": 1.25, "alpha_max": 1.25},
        {"assignment": "constrained-non-exclusive", "size_min": 10},
        {"assignment": "constrained-e-exclusive", "size_min": 15, "size_max": 99, "memberships_max": 2},
        {"assignment": "distance-constrained", "size_min": 5, "size_max": 99, "radius": 1.5},
    ],
)
def test_every_assignment_method_runs_from_a_job(constraint):
    result = run(make_job(protocol=constraint))
    assert np.isfinite(result.centres).all()


def test_missing_and_unknown_tables_are_refused():
    with pytest.raises(ConfigError, match="'c' must have a table"):
        run(sources={"a": PARTS["a"], "b": PARTS["b"]})
    with pytest.raises(ConfigError, match="'d', which is not one"):
        run(sources={**PARTS, "d": PARTS["a"]})
    with pytest.raises(ConfigError, match=r'network.model must be one of .*Did you mean "thesis-WAN"'):
        run(Setup(job=make_job(), network="thesisWAN"))


def test_a_table_larger_than_the_public_cap_is_refused():
    job = make_job(data=DataOptions(max_records=90))
    with told_to_owner(PrecisionError, "max_records = 90 records"):
        run(job)
    assert run(replace(job, data=DataOptions(max_records=100))).ring_bits == 32
    assert run().ring_bits == 64


def test_a_bad_table_is_refused_before_anything_is_sent():
    steps = []
    bad = PARTS["b"].copy()
    bad[3, 1] = np.nan
    with told_to_owner(DataError, "'width'", party="b"):
        run(sources={**PARTS, "b": bad}, on_progress=steps.append)
    assert steps == []


def test_an_empty_party_is_refused():
    with told_to_owner(DataError, "party 'b'"):
        run(sources={**PARTS, "b": PARTS["b"][:0]})


def test_tables_are_described_to_their_owner_only(tmp_path):
    told = {}
    outside = PARTS["a"].copy()
    outside[:7, 0] = 1000.0
    result = run(sources={**PARTS, "a": outside}, on_table=told.__setitem__)
    assert told["a"].clipped == (7, 0)
    write_result(result, tmp_path / "result")
    text = (tmp_path / "result" / "result.json").read_text()
    assert "clipped" not in text
    assert "records" not in json.loads(text)["parties"][0]


def test_record_values_appear_nowhere(tmp_path, caplog):
    """A magic value in the records never reaches a log, a progress line, an error or the result."""
    caplog.set_level(logging.DEBUG)
    canary = 47.11471147
    parts = {name: part.copy() for name, part in PARTS.items()}
    parts["b"][5, 0] = canary
    lines = []
    result = run(seed=None, sources=parts, on_progress=lambda p: lines.append(repr(p)))
    folder = write_result(result, tmp_path / "result")
    seen = " ".join([*lines, caplog.text, repr(result), *(p.read_text("latin-1") for p in folder.iterdir())])
    parts["c"][0, 1] = np.inf
    with told_to_owner(DataError) as caught:
        run(sources=parts)
    assert "4711" not in seen + str(caught.value) + str(caught.value.why)


def test_evaluation_can_be_left_out_and_survives_few_records():
    assert run(evaluate=False).evaluation is None
    few = {name: part[:1] for name, part in PARTS.items()}
    job = make_job(k=5, protocol={"start": None, "initialisation": "random"})
    assert isinstance(run(job, sources=few).evaluation, Evaluation)


def test_the_simulated_network_follows_the_seed():
    """Without one, its public numbers are the same in all runs."""
    setup = Setup(job=make_job(), network="regWAN100")
    times = [run(setup, seed=seed).network.simulated_s for seed in (1, 1, 2, None, None)]
    assert times[0] == times[1] != times[2]
    assert times[3] == times[4]
