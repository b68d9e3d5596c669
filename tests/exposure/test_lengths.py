"""How long messages are says nothing: the same senders, receivers and lengths, whatever the tables, keys and noise are.

Not for neighbours only: where the coordinator learns nothing, not even what is released may show in a length. Where
lengths depend on records by design, the table of who learned what says that all are told what they follow from.
"""

import os
import tempfile
import zlib
from dataclasses import replace
from functools import partial
from pathlib import Path

import msgspec
import pytest

from cloister.exposure.neighbours import ALIGNED, Neighbours
from cloister.job import Setup
from cloister.jobfile import parse_setup
from cloister.privacy.books import make_sampler
from cloister.privacy.units import Learns
from cloister.protocol import PublicInput, find_protocol, placeholder_directory
from cloister.protocols.guided_sums import coordinator, statements
from cloister.protocols.guided_sums.statements import Forms
from cloister.sessions.instruments import Instruments
from cloister.sessions.simulation import Simulation
from cloister.wire import Codec
from tests.golden.jobs import JOBS
from tests.protocols.align.sessions import AlignSession, name_ids

LONG = os.environ.get("CLOISTER_LONG") == "1"
BY_DESIGN = (
    "secfc",  # labels travel as changes; both ends know them
    "naive-tolerance",  # stops once the centres stand still; all know the centres
    "align",  # below
)
NOT_ALWAYS_POSSIBLE = (
    "masked-centroid-distance",
    "masked-centroid-exclusive",
    "masked-centroid-e-exclusive",
    "masked-centroid-non-exclusive",
    "fastlloyd-published",
    "fastlloyd-csulloyd",
    "fastlloyd-sulloyd",
    "fastlloyd-mna",
    "fastlloyd-amn",
    "fastlloyd-infeasible",
)  # no assignment meets the sizes: the card says that this shows
MANY = ("synopsis-client", "feddp-client", "feddp-published-client")
ALL = tuple(name for name in JOBS if not name.startswith(BY_DESIGN + NOT_ALWAYS_POSSIBLE))
FEW = (
    "synopsis-shared",
    "synopsis-local",
    "synopsis-choose-k",
    "feddp-record",
    "feddp-published",
    "naive",
    "masked-sum-count",
    "mask-noise-average",
    "mask-noise-average-ring-joint",
    "fastlloyd-gaussian",
    "fastlloyd-ring-shared",
    "vertical-labels",
    "vertical-id",
    "vertical-server-aided",
    "vertical-collective",
)


def list_messages(job, tables, neighbours, seed):
    """Simulate once; who sent how much to whom, in order."""
    instruments = Instruments(
        keys=bytes([seed]) * 32, make_sampler=partial(make_sampler, seed=seed), record_frames=True
    )
    with tempfile.TemporaryDirectory() as folder:
        sources = neighbours.write(tables, Path(folder))
        simulation = Simulation.open(Setup(job=job, folder=Path(folder)), sources, instruments=instruments)
        frames = simulation.cluster().run.frames
        aligned = () if simulation.aligned is None else simulation.aligned.run.frames
    return tuple((one.sender, one.receiver, len(one.frame)) for one in (*aligned, *frames))


def load(name):
    job = parse_setup(JOBS[name], folder=Path("nowhere")).job
    if job.protocol.facts.split == "columns":  # how many are aligned is public
        return replace(job, data=msgspec.structs.replace(job.data, records=ALIGNED))
    return job


def list_all(name, seeds=(1, 2), *, both=True, runs=None):
    """What is sent with and without a record, or in turn, under different seeds, from different tables.

    ``runs`` is the seed of all sessions, where tables alone should differ.
    """
    job, seen = load(name), []
    for seed in seeds:
        neighbours = Neighbours.draw(job, bytes([seed]) * 32)
        inputs = (neighbours.without, neighbours.present)
        for tables in inputs if both else inputs[seed % 2 :][:1]:
            seen.append(list_messages(job, tables, neighbours, seed if runs is None else runs))
    return seen


@pytest.mark.parametrize("name", ALL if LONG else FEW)
def test_lengths_are_the_same_whatever_is_sent(name):
    fixed = 1 if name == "feddp-sample" else None  # who is asked follows from the seed
    seen = list_all(name, seeds=(1, 2, 3) if LONG and name not in MANY else (1, 2), both=LONG, runs=fixed)
    assert len(seen[0]) >= 10
    assert len(set(seen)) == 1


@pytest.mark.parametrize("name", ["secfc", "naive-tolerance"])
def test_lengths_that_depend_on_records_are_in_the_table_of_who_learned_what(name):
    """Both roles are told exactly what the lengths follow from."""
    assert len(set(list_all(name, seeds=range(4)))) > 1
    job = load(name)
    public = PublicInput()
    table = find_protocol(job).leakage(find_protocol(job).agree(job, placeholder_directory(job), public))
    known = {(row.role, row.value): row.learns for row in table.rows}
    for role in ("coordinator", "party"):
        assert known[role, "labels" if name == "secfc" else "mu_i"] is Learns.EXACT


def align(first, second, seed):
    session = AlignSession([name_ids(first), name_ids(second)], seed=seed)
    run, _ = session.run(record_frames=True)
    return tuple((one.sender, one.receiver, len(one.frame)) for one in run.frames)


def test_an_alignment_shows_the_sizes_that_its_table_names_and_nothing_else():
    same = {align(range(at, at + 9), range(at + 4, at + 14), seed) for at, seed in ((0, 1), (50, 2), (90, 3))}
    assert len(same) == 1
    assert align(range(9), range(4, 15), 1) not in same  # one ID more: the coordinator is told how many each has


# --- mutants ------------------------------------------------------------------------------------------------------


def test_frames_that_are_compressed_are_noticed(monkeypatch):
    encode, decode = Codec.encode, Codec.open
    monkeypatch.setattr(Codec, "encode", lambda *given, **named: zlib.compress(encode(*given, **named)))
    monkeypatch.setattr(Codec, "open", lambda codec, frame, **named: decode(codec, zlib.decompress(frame), **named))
    assert len(set(list_all("naive"))) > 1
    assert len(set(list_all("synopsis-shared"))) == 1  # there nothing can be compressed: all is masked or sealed


def test_questions_that_are_not_padded_are_noticed(monkeypatch):
    write = Forms.write

    def write_short(forms, round_, question):
        written = write(forms, round_, question)
        return written[: 4 + int.from_bytes(written[:4], "little")]

    monkeypatch.setattr(Forms, "write", write_short)
    for module in (statements, coordinator):
        monkeypatch.setattr(module, "check_stated", lambda *_, **__: None)
    assert len(set(list_all("synopsis-choose-k"))) > 1
