"""Tables of vertical jobs: aligned before anything else, refused where they do not fit, and no value in any message."""

import dataclasses
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from cloister.data import Column, to_unit
from cloister.data.alignment_file import load_alignment, save_alignment
from cloister.data.samples.customers import write_customers
from cloister.errors import CloisterError, ConfigError, DataError
from cloister.job import DataOptions, Job, JobParty, ProtocolOptions, load_job
from cloister.protocols.align import Mode, NormalForm
from cloister.simulation.alignment import align_job
from cloister.simulation.stage import set_stage
from cloister.simulation.vertical_tables import join_columns, open_vertical_tables
from tests.data.test_canary import everything_said

COLUMNS = tuple(Column(name=name, low=0, high=100) for name in "xyz")
CANARY = 8675309


def make_frames(*, common=30, seed=5):
    """Customers of both, in each table in another order, and some that only one has."""
    rng = np.random.default_rng(seed)
    everyone = pd.DataFrame(rng.uniform(0, 100, (common + 10, 3)).round(1), columns=list("xyz"))
    everyone.insert(0, "id", [f"C{i}" for i in rng.permutation(900)[: common + 10]])
    bank = everyone.iloc[: common + 4][["id", "y", "x"]].sample(frac=1, random_state=1)
    telco = everyone.drop(index=range(common, common + 4))[["id", "z"]].sample(frac=1, random_state=2)
    return {"bank": bank.reset_index(drop=True), "telco": telco.reset_index(drop=True)}


def make_job(*, data=None, bank=None, telco=None, **options):
    return Job(
        name="customers",
        k=3,
        columns=COLUMNS,
        parties=(
            JobParty(name="telco", columns=("z",), **(telco or {})),
            JobParty(name="bank", columns=("y", "x"), **(bank or {})),
        ),
        protocol=ProtocolOptions(name="vertical"),
        data=data or DataOptions(id="id"),
        seed=4,
        **options,
    )


def join_by_hand(frames):
    joint = frames["bank"].merge(frames["telco"], on="id")
    return {
        name: to_unit(row[["x", "y", "z"]].to_numpy(float)[None, :], COLUMNS)[0]
        for name, row in joint.set_index("id").iterrows()
    }


def test_rows_of_one_record_meet_and_others_stay_out():
    frames = make_frames()
    seen = {}
    tables = open_vertical_tables(make_job(), frames, on_table=seen.__setitem__)
    telco, bank = tables.parties
    assert tables.records == telco.records == bank.records == 30
    assert (telco.points.shape, bank.points.shape) == ((30, 1), (30, 2))
    found = np.concatenate([bank.points[:, ::-1], telco.points], axis=1)  # the bank's columns are y, x
    wanted = np.array(list(join_by_hand(frames).values()))
    np.testing.assert_allclose(found[np.argsort(found[:, 0])], wanted[np.argsort(wanted[:, 0])], atol=2**-16)
    assert {name: (check.records, len(check.clipped)) for name, check in seen.items()} == {
        "telco": (36, 1),
        "bank": (34, 2),
    }
    assert tables.aligned is not None
    assert tables.digest == tables.aligned.alignments["bank"].digest
    joined = join_columns(make_job(), tables)
    np.testing.assert_array_equal(np.concatenate(list(joined.batches())), found)


def test_the_stage_of_a_vertical_job_has_aligned_tables_only():
    stage = set_stage(make_job(), make_frames())
    assert stage.tables == ()
    assert stage.vertical is not None
    assert stage.vertical.records == 30


def save_all(folder, job, frames, **options):
    """Align as ``cloister align`` does; returns the job that names the files."""
    aligned = align_job(job, "id", sources=frames, **options)
    for name, alignment in aligned.alignments.items():
        save_alignment(alignment, folder / f"{name}.alignment.json", overwrite=True)
    return name_files(job, folder)


def name_files(job, folder, **names):
    parties = tuple(
        dataclasses.replace(party, alignment=str(folder / f"{names.get(party.name, party.name)}.alignment.json"))
        for party in job.parties
    )
    return dataclasses.replace(job, parties=parties)


def test_alignments_of_an_earlier_run_give_the_order(tmp_path):
    frames = make_frames()
    job = save_all(tmp_path, make_job(), frames)
    tables = open_vertical_tables(job, frames)
    assert tables.aligned is None
    assert tables.digest == load_alignment(tmp_path / "bank.alignment.json").digest
    fresh = open_vertical_tables(make_job(), frames)  # the same seed, so the same order
    for table, other in zip(tables.parties, fresh.parties, strict=True):
        np.testing.assert_array_equal(table.points, other.points)


@pytest.mark.parametrize(("form", "fits"), [("integer", True), ("text", False)])
def test_the_form_of_ids_is_the_one_that_they_were_aligned_by(tmp_path, form, fits):
    frames = make_frames()
    for frame in frames.values():
        frame["id"] = frame["id"].str.removeprefix("C")
    frames["bank"]["id"] = "00" + frames["bank"]["id"]
    plain = make_job(data=DataOptions(id="id", id_form=form))
    job = save_all(tmp_path, plain, frames, form=NormalForm(kind="integer"))
    if fits:
        assert open_vertical_tables(job, frames).records == open_vertical_tables(plain, frames).records == 30
    else:
        with pytest.raises(DataError, match="must hold the IDs that were aligned"):
            open_vertical_tables(job, frames)
        with pytest.raises(ConfigError, match=r"k = 3 records must be aligned; 0 are\. .*id_form"):
            open_vertical_tables(plain, frames)


def shuffle(frame):
    return frame.iloc[::-1].reset_index(drop=True)


def drop_one(frame):
    return frame.iloc[1:].reset_index(drop=True)


def rename_one(frame):
    return frame.assign(id=["CANARY", *frame["id"][1:]])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (shuffle, "in the same order"),
        (rename_one, "must hold the IDs that were aligned"),
        (drop_one, "rows that were aligned"),
    ],
)
@pytest.mark.parametrize("party", ["bank", "telco"])
def test_a_table_that_changed_since_is_refused_before_its_numbers_are_read(tmp_path, party, change, words):
    frames = make_frames()
    job = save_all(tmp_path, make_job(), frames)
    with pytest.raises(DataError, match=words) as caught:
        open_vertical_tables(job, {**frames, party: change(frames[party])}, on_table=pytest.fail)
    assert "CANARY" not in everything_said(caught.value)


def test_alignments_that_do_not_belong_together_are_refused(tmp_path):
    frames = make_frames()
    job = save_all(tmp_path, make_job(), frames)
    other = tmp_path / "other"
    save_all(other, dataclasses.replace(make_job(), seed=5), frames)
    mixed = tuple(
        dataclasses.replace(
            party, alignment=str((other if party.name == "bank" else tmp_path) / f"{party.name}.alignment.json")
        )
        for party in job.parties
    )
    with pytest.raises(ConfigError, match="one alignment, with one digest"):
        open_vertical_tables(dataclasses.replace(job, parties=mixed), frames, on_table=pytest.fail)
    with pytest.raises(DataError, match="rows that were aligned"):  # the files of the two parties swapped
        open_vertical_tables(name_files(job, tmp_path, bank="telco", telco="bank"), frames)
    union = save_all(tmp_path / "union", make_job(), frames, mode=Mode.UNION)
    with pytest.raises(ConfigError, match="needs an alignment by intersection"):
        open_vertical_tables(union, frames, on_table=pytest.fail)
    with pytest.raises(ConfigError, match="the alignment must be a readable file"):
        open_vertical_tables(name_files(job, tmp_path / "nowhere"), frames)


def test_rows_in_the_same_order_are_taken_as_they_are():
    rng = np.random.default_rng(1)
    sources = {"telco": rng.uniform(0, 100, (20, 1)), "bank": rng.uniform(0, 100, (20, 2))}
    job = make_job(data=DataOptions(aligned=True, records=20))
    tables = open_vertical_tables(job, sources)
    assert (tables.digest, tables.aligned, tables.records) == (None, None, 20)
    joined = np.concatenate(list(join_columns(job, tables).batches()))
    # An array has no names: its columns are the party's, in the order that the party lists them.
    wanted = to_unit(np.concatenate([sources["bank"][:, ::-1], sources["telco"]], axis=1), COLUMNS)
    np.testing.assert_allclose(joined, wanted, atol=2**-16)
    with pytest.raises(DataError, match="equally many rows, in the same order; got telco 19, bank 20"):
        open_vertical_tables(job, {**sources, "telco": sources["telco"][1:]})


def test_too_few_aligned_records_and_a_wrong_number_are_refused():
    with pytest.raises(ConfigError, match=r"at least clusters\.k = 3 records must be aligned; 2 are"):
        open_vertical_tables(make_job(), make_frames(common=2))
    with pytest.raises(ConfigError, match=r"data\.records must be the number of aligned records.* says 31, and 30 are"):
        open_vertical_tables(make_job(data=DataOptions(id="id", records=31)), make_frames())
    frames = make_frames()
    with pytest.raises(ConfigError, match="must be aligned; 0 are"):
        open_vertical_tables(make_job(), {**frames, "bank": frames["bank"].iloc[:0]})


def test_a_party_that_only_computes_has_no_table():
    job = make_job()
    job = dataclasses.replace(job, parties=(JobParty(name="cloud", columns=()), *job.parties))
    frames = make_frames()
    tables = open_vertical_tables(job, frames)
    assert [table.points.shape for table in tables.parties] == [(30, 0), (30, 1), (30, 2)]
    np.testing.assert_array_equal(
        np.sort(tables.parties[1].points, axis=0),
        np.sort(open_vertical_tables(make_job(), frames).parties[0].points, axis=0),
    )
    with pytest.raises(ConfigError, match="'cloud' holds no columns, so it must have no table"):
        open_vertical_tables(job, {**frames, "cloud": frames["bank"]})


def test_a_missing_table_and_an_unknown_party_are_refused():
    frames = make_frames()
    with pytest.raises(ConfigError, match="'bank' must have a table"):
        open_vertical_tables(make_job(), {"telco": frames["telco"]})
    with pytest.raises(ConfigError, match="sources must be named after the job's parties; got 'banc'"):
        open_vertical_tables(make_job(), {**frames, "banc": frames["bank"]})


def test_a_stream_that_can_be_read_once_is_refused_before_anything_is_sent():
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    frames = make_frames()
    stream = pa.Table.from_pandas(frames["bank"]).to_reader()
    with pytest.raises(DataError, match="no stream that can be read only once"):
        open_vertical_tables(make_job(), {**frames, "bank": stream})


def spoil(column, value):
    def change(frame):
        return frame.astype({column: object}).assign(**{column: [value, *frame[column][1:]]})

    return change


@pytest.mark.parametrize(
    "change",
    [
        spoil("x", f"{CANARY}x"),
        spoil("x", [CANARY]),
        spoil("id", float(CANARY)),
        spoil("id", f" {CANARY}"),
        lambda frame: frame.assign(id=str(CANARY)),
        lambda frame: frame.rename(columns={"x": str(CANARY)}),
        lambda frame: frame.rename(columns={"id": str(CANARY)}),
        lambda frame: frame.to_numpy(),
    ],
)
def test_no_message_holds_a_value_of_a_record(change):
    frames = make_frames()
    with pytest.raises(CloisterError) as caught:
        open_vertical_tables(make_job(), {**frames, "bank": change(frames["bank"])})
    said = everything_said(caught.value)
    assert str(CANARY) not in said
    assert not any(name in said for name in frames["bank"]["id"])


def test_the_sample_opens_from_its_files(tmp_path: Path):
    job = load_job(write_customers(tmp_path))
    tables = open_vertical_tables(job, {})
    assert (tables.records, [table.dimensions for table in tables.parties]) == (1200, [2, 2])
