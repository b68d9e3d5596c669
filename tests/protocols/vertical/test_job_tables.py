"""Tables of vertical jobs: aligned before anything else, refused where they do not fit, and no value in any message."""

import dataclasses
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from cloister.columns import Column, to_unit
from cloister.crypto import SystemEntropy
from cloister.data.samples.customers import write_customers
from cloister.errors import CloisterError, ConfigError, DataError
from cloister.job import DataOptions, Job, JobParty, OwnSide, Setup, make_options
from cloister.jobfile import load_setup
from cloister.protocol import PublicInput
from cloister.protocols.align.terms import Mode, NormalForm
from cloister.protocols.vertical.protocol import Vertical
from cloister.sessions import Aligned, align_job, simulate
from cloister.sessions.alignment import align_tables, load_alignment, save_alignment
from cloister.sessions.assembly import know_alignment, take_input
from cloister.sessions.instruments import Instruments
from cloister.sessions.tables import check_source_names, open_own_table
from tests.data.test_canary import everything_said
from tests.owners import told_to_owner

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


def make_setup(*, data=None, own=None, seed=4):
    job = Job(
        name="customers",
        k=3,
        columns=COLUMNS,
        parties=(JobParty(name="telco", columns=("z",)), JobParty(name="bank", columns=("y", "x"))),
        protocol=make_options("vertical"),
        data=data or DataOptions(id="id"),
    )
    return Setup(job=job, own=own or {}, seed=seed)


@dataclass
class Opened:
    """What the parties have before the first message of the clustering."""

    aligned: Aligned | None
    public: PublicInput
    points: dict[str, np.ndarray]


def open_tables(setup, sources, on_table=None):
    """Open and align everybody's tables, and agree on the session."""
    job = setup.job
    check_source_names(job, sources)
    tables = {party.name: open_own_table(setup, party, sources, on_table) for party in job.parties}
    aligned = align_tables(setup, tables, Instruments.of_seed(setup.seed))
    public = know_alignment(job, tables, aligned, PublicInput())
    Vertical().agree(job, (bytes(32),) * len(job.parties), public)
    inputs = {name: take_input(job, name, table, aligned, public, SystemEntropy()) for name, table in tables.items()}
    return Opened(aligned, public, {name: np.concatenate(list(own.records.batches())) for name, own in inputs.items()})


def join_by_hand(frames):
    joint = frames["bank"].merge(frames["telco"], on="id")
    return {
        name: to_unit(row[["x", "y", "z"]].to_numpy(float)[None, :], COLUMNS)[0]
        for name, row in joint.set_index("id").iterrows()
    }


def test_rows_of_one_record_meet_and_others_stay_out():
    frames = make_frames()
    seen, joined = {}, []
    opened = open_tables(make_setup(), frames, seen.__setitem__)
    telco, bank = opened.points["telco"], opened.points["bank"]
    assert opened.public.records == 30
    assert (telco.shape, bank.shape) == ((30, 1), (30, 2))
    found = np.concatenate([bank[:, ::-1], telco], axis=1)  # the bank's columns are y, x
    wanted = np.array(list(join_by_hand(frames).values()))
    np.testing.assert_allclose(found[np.argsort(found[:, 0])], wanted[np.argsort(wanted[:, 0])], atol=2**-16)
    assert {name: (check.records, len(check.clipped)) for name, check in seen.items()} == {
        "telco": (36, 1),
        "bank": (34, 2),
    }
    assert opened.aligned.run is not None
    assert opened.public.alignment == opened.aligned.alignments["bank"].digest
    simulate(make_setup(), sources=frames, evaluate=False, on_records=joined.extend)
    np.testing.assert_array_equal(np.concatenate(list(joined[0].batches())), found)


def save_all(folder, setup, frames, **options):
    """Align as ``cloister align`` does; returns the job with the files in everybody's own side."""
    aligned = align_job(setup, "id", sources=frames, **options)
    for name, alignment in aligned.alignments.items():
        save_alignment(alignment, folder / f"{name}.alignment.json", overwrite=True)
    return name_files(setup, folder)


def name_files(setup, folder, **names):
    own = {
        party.name: OwnSide(alignment=folder / f"{names.get(party.name, party.name)}.alignment.json")
        for party in setup.job.parties
    }
    return dataclasses.replace(setup, own=own)


def test_alignments_of_an_earlier_run_give_the_order(tmp_path):
    frames = make_frames()
    opened = open_tables(save_all(tmp_path, make_setup(), frames), frames)
    assert opened.aligned.run is None
    assert opened.public.alignment == load_alignment(tmp_path / "bank.alignment.json").digest
    fresh = open_tables(make_setup(), frames)  # the same seed, so the same order
    for name, points in opened.points.items():
        np.testing.assert_array_equal(points, fresh.points[name])


@pytest.mark.parametrize(("form", "fits"), [("integer", True), ("text", False)])
def test_the_form_of_ids_is_the_one_that_they_were_aligned_by(tmp_path, form, fits):
    frames = make_frames()
    for frame in frames.values():
        frame["id"] = frame["id"].str.removeprefix("C")
    frames["bank"]["id"] = "00" + frames["bank"]["id"]
    plain = make_setup(data=DataOptions(id="id", id_form=form))
    setup = save_all(tmp_path, plain, frames, form=NormalForm(kind="integer"))
    if fits:
        assert open_tables(setup, frames).public.records == open_tables(plain, frames).public.records == 30
    else:
        with told_to_owner(DataError, "must hold the IDs that were aligned"):
            open_tables(setup, frames)
        with pytest.raises(ConfigError, match=r"k = 3 records must be aligned; 0 are\. .*id_form"):
            open_tables(plain, frames)


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
def test_a_table_that_changed_since_is_refused_before_anything_is_sent(tmp_path, party, change, words):
    frames = make_frames()
    setup = save_all(tmp_path, make_setup(), frames)
    with told_to_owner(DataError, words, party=party) as caught:
        simulate(setup, sources={**frames, party: change(frames[party])}, on_progress=pytest.fail)
    assert "CANARY" not in everything_said(caught.value)


def test_alignments_that_do_not_belong_together_are_refused(tmp_path):
    frames = make_frames()
    setup = save_all(tmp_path, make_setup(), frames)
    other = save_all(tmp_path / "other", make_setup(seed=5), frames)
    mixed = {"telco": setup.own_side("telco"), "bank": other.own_side("bank")}
    with pytest.raises(ConfigError, match="one alignment, with one digest"):
        open_tables(make_setup(own=mixed), frames)
    with told_to_owner(DataError, "rows that were aligned"):  # the files of the two parties swapped
        open_tables(name_files(setup, tmp_path, bank="telco", telco="bank"), frames)
    union = save_all(tmp_path / "union", make_setup(), frames, mode=Mode.UNION)
    with pytest.raises(ConfigError, match="needs an alignment by intersection"):
        open_tables(union, frames)
    with told_to_owner(ConfigError, "the alignment must be a readable file"):
        open_tables(name_files(setup, tmp_path / "nowhere"), frames)


def test_rows_in_the_same_order_are_taken_as_they_are():
    rng = np.random.default_rng(1)
    sources = {"telco": rng.uniform(0, 100, (20, 1)), "bank": rng.uniform(0, 100, (20, 2))}
    setup = make_setup(data=DataOptions(aligned=True, records=20))
    opened = open_tables(setup, sources)
    assert (opened.aligned, opened.public.alignment, opened.public.records) == (None, None, 20)
    joined = []
    simulate(setup, sources=sources, evaluate=False, on_records=joined.extend)
    # An array has no names: its columns are the party's, in the order that the party lists them.
    wanted = to_unit(np.concatenate([sources["bank"][:, ::-1], sources["telco"]], axis=1), COLUMNS)
    np.testing.assert_allclose(np.concatenate(list(joined[0].batches())), wanted, atol=2**-16)
    with pytest.raises(DataError, match="the same number of rows, in the same order; they do not") as caught:
        open_tables(setup, {**sources, "telco": sources["telco"][1:]})
    assert not re.search(r"\d", str(caught.value)), "how many rows each has is its own business"


def test_too_few_aligned_records_and_a_wrong_number_are_refused():
    with pytest.raises(ConfigError, match=r"at least clusters\.k = 3 records must be aligned; 2 are"):
        open_tables(make_setup(), make_frames(common=2))
    with pytest.raises(ConfigError, match=r"data\.records must be the number of aligned .* it is 31, and 30 are"):
        open_tables(make_setup(data=DataOptions(id="id", records=31)), make_frames())
    frames = make_frames()
    with pytest.raises(ConfigError, match="must be aligned; 0 are"):
        open_tables(make_setup(), {**frames, "bank": frames["bank"].iloc[:0]})


def test_a_party_that_only_computes_has_no_table():
    setup = make_setup()
    job = dataclasses.replace(setup.job, parties=(JobParty(name="cloud", columns=()), *setup.job.parties))
    setup, frames = dataclasses.replace(setup, job=job), make_frames()
    opened = open_tables(setup, frames)
    assert [points.shape for points in opened.points.values()] == [(30, 0), (30, 1), (30, 2)]
    np.testing.assert_array_equal(
        np.sort(opened.points["telco"], axis=0), np.sort(open_tables(make_setup(), frames).points["telco"], axis=0)
    )
    with pytest.raises(ConfigError, match="'cloud' holds no columns, so it must have no table"):
        open_tables(setup, {**frames, "cloud": frames["bank"]})


def test_a_missing_table_and_an_unknown_party_are_refused():
    frames = make_frames()
    with pytest.raises(ConfigError, match="'bank' must have a table"):
        open_tables(make_setup(), {"telco": frames["telco"]})
    with pytest.raises(ConfigError, match="sources must be named after the job's parties; got 'banc'"):
        open_tables(make_setup(), {**frames, "banc": frames["bank"]})


def test_a_stream_that_can_be_read_once_is_enough():
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    frames = make_frames()
    stream = pa.Table.from_pandas(frames["bank"]).to_reader()
    opened, expected = open_tables(make_setup(), {**frames, "bank": stream}), open_tables(make_setup(), frames)
    np.testing.assert_array_equal(opened.points["bank"], expected.points["bank"])


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
        open_tables(make_setup(), {**frames, "bank": change(frames["bank"])})
    said = everything_said(caught.value)
    assert str(CANARY) not in said
    assert not any(name in said for name in frames["bank"]["id"])


def test_the_sample_opens_from_its_files(tmp_path: Path):
    opened = open_tables(load_setup(write_customers(tmp_path)), {})
    assert (opened.public.records, [points.shape[1] for points in opened.points.values()]) == (1200, [2, 2])
