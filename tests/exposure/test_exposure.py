"""Runs that release the same on neighbouring inputs show the same, to the last bit; every leak that is planted differs.

The mutants publish what the program once published, and its relatives. Each is caught without being told where to look.
"""

import hashlib
import os
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest

from cloister.audit.whole_view import Released, compare_views, flatten
from cloister.data import Table
from cloister.errors import AbsentError, DataError
from cloister.exposure import compare_everything, runs
from cloister.jobfile import parse_setup
from cloister.privacy.books import JobBooks
from cloister.protocols.multiparty_lloyd.party import LloydState
from cloister.report import folder as result_folder
from cloister.sessions import simulation
from cloister.wire import CoordinatorEndpoint, PartyEndpoint
from tests.golden.jobs import JOBS

LONG = os.environ.get("CLOISTER_LONG") == "1"
NO_CLAIM = ("secfc", "fastlloyd-published", "fastlloyd-csulloyd", "fastlloyd-sulloyd", "fastlloyd-mna", "fastlloyd-amn")
SAMPLED = ("feddp-sample", "fastlloyd-infeasible")  # who is asked differs from round to round; no claim either
CLAIMS = tuple(
    name for name, text in JOBS.items() if "[budget]" in text and not name.startswith(NO_CLAIM) and name not in SAMPLED
)
FEW = (
    "synopsis-aggregator",
    "synopsis-shared",
    "synopsis-local",
    "feddp-shared",
    "mask-noise-average",
    "mask-noise-average-laplace-shared",
    "mask-noise-average-ring-joint",
    "fastlloyd-local",
    "fastlloyd-laplace",
    "fastlloyd-ring-shared",
    "vertical-random-budget",
    "vertical-id",
    "vertical-audited",
)


def load(name, *, extra=""):
    text = JOBS[name].replace("[run]\nseed = 11\n", "").replace("[protocol]\n", f"[protocol]\n{extra}\n")
    return parse_setup(text, folder=Path("nowhere"))  # no table of the job is read


AGGREGATOR = 'placement = "aggregator"'
MASKED = load("mask-noise-average", extra=AGGREGATOR)  # masks are common: whoever has the seed reads exact vectors


@pytest.mark.parametrize("name", CLAIMS if LONG else FEW)
def test_a_private_job_shows_what_it_releases_and_nothing_else(name):
    report = compare_everything(load(name), pairs=3 if LONG else 1, ledgers=name.endswith("ledger"))
    assert report.exposed == ()
    assert report.pairs == (3 if LONG else 1)
    assert report.values > 200
    assert set(report.unjudged) <= {"result.json.created"}
    assert "nothing differs" in report.text()


@pytest.mark.parametrize("name", ["synopsis", "feddp", "fastlloyd"])
def test_so_does_one_whose_coordinator_adds_the_noise(name):
    jobs = {"synopsis": "synopsis-shared", "feddp": "feddp-record", "fastlloyd": "fastlloyd-gaussian"}
    text = JOBS[jobs[name]].replace("[run]\nseed = 11\n", "").replace('placement = "shared"\ncolluding_max = 1', "")
    setup = parse_setup(text.replace("[protocol]\n", f"[protocol]\n{AGGREGATOR}\n"), folder=Path("nowhere"))
    assert compare_everything(setup, pairs=1).exposed == ()


KINDS = """[columns]
age = { low = 0, high = 100 }
sex = { levels = ["f", "m"] }
ward = { levels = ["a", "b", "c"], weight = 2 }
smoker = { boolean = true }
admitted = { from = 2015-01-01, to = 2024-12-31 }
"""


@pytest.mark.parametrize("protocol", ["synopsis", "fastlloyd"])
def test_so_does_one_with_columns_of_all_kinds(protocol):
    parties = "".join(f'[[parties]]\nname = "{name}"\n' for name in "abc")
    head = f'name = "kinds"\n[protocol]\nname = "{protocol}"\n[budget]\nepsilon = 1.0\n[clusters]\nk = 2\n'
    setup = parse_setup(f'{head}[data]\nmissing = "drop"\n{KINDS}{parties}', folder=Path("nowhere"))
    report = compare_everything(setup, pairs=1)
    assert report.exposed == ()
    assert report.values > 200


def test_ledgers_and_pictures_are_looked_at_too():
    pytest.importorskip("matplotlib")
    report = compare_everything(load("mask-noise-average-audited"), pairs=1, ledgers=True, picture=True)
    assert report.exposed == ()


# --- mutants ------------------------------------------------------------------------------------------------------


def note(monkeypatch, make):
    """Publish what ``make`` returns of a simulation's outcome, among the notes of its result."""
    real = runs.summarise

    def publish(setup, clustered, evaluation):
        result = real(setup, clustered, evaluation)
        return msgspec.structs.replace(result, notes=(*result.notes, make(clustered, evaluation)))

    monkeypatch.setattr(runs, "summarise", publish)


def digest_of(table):
    return hashlib.sha256(b"".join(batch.tobytes() for batch in table.batches())).hexdigest()


def publish_transcript(monkeypatch):
    note(monkeypatch, lambda clustered, _: clustered.run.transcript_sha256)
    return MASKED


def publish_digest_of_exact_vectors(monkeypatch):
    real, seen = LloydState.contribute, []

    def contribute(state, round_):
        rule = state._agreement.rule
        seen.append(rule.contribute(state._records, state.centres, round_, state._assignment, state._last).tobytes())
        return real(state, round_)

    monkeypatch.setattr(LloydState, "contribute", contribute)
    note(monkeypatch, lambda *_: hashlib.sha256(b"".join(sorted(seen[-3:]))).hexdigest())
    return load("mask-noise-average")


def publish_loss(monkeypatch):
    note(monkeypatch, lambda _, evaluation: f"loss {evaluation.loss:.3g}")
    return load("synopsis-local")


def keep_loss_in_the_result(monkeypatch):
    real = result_folder.encode_result

    def encode(result):
        fields = msgspec.json.decode(real(result))
        return msgspec.json.encode(fields | {"evaluation": msgspec.to_builtins(result.evaluation)})

    monkeypatch.setattr(result_folder, "encode_result", encode)
    return load("fastlloyd-shared")


def publish_fingerprint(monkeypatch):
    prints = lambda books, _: tuple(book.ledger.fingerprint for book in books.parties)  # noqa: E731
    monkeypatch.setattr(JobBooks, "describe_ledgers", prints)
    return load("mask-noise-average-audited")


def digest_a_table_in_the_alignment(monkeypatch):
    real = simulation.align_tables

    def align(setup, tables, *arguments):
        aligned = real(setup, tables, *arguments)
        digest = hashlib.sha256("".join(digest_of(own.table) for own in tables.values()).encode()).hexdigest()
        marked = {name: replace(one, digest=digest) for name, one in aligned.alignments.items()}
        return replace(aligned, alignments=marked)

    monkeypatch.setattr(simulation, "align_tables", align)
    return load("vertical-id")


def lengthen_a_frame(monkeypatch):
    """A party's frames are longer the more records it has; the coordinator cuts the end off again."""
    answer, take = PartyEndpoint.receive, CoordinatorEndpoint.receive

    def receive(endpoint, frame):
        state = getattr(endpoint._party, "state", None) or endpoint._party.contributor
        longer = sum(map(len, state._records.batches())) % 7
        return answer(endpoint, frame) + bytes(longer) + bytes([longer])

    def cut(endpoint, party, frame):
        take(endpoint, party, frame[: -1 - frame[-1]])

    monkeypatch.setattr(PartyEndpoint, "receive", receive)
    monkeypatch.setattr(CoordinatorEndpoint, "receive", cut)
    return load("fastlloyd-ring-shared")


def count_in_an_error(monkeypatch):
    """An error tells all how many cells were clipped, or read."""
    real = Table._read_raw

    def read(table, faults, *rest):
        outside = 0
        for values in real(table, faults, *rest):
            outside += int((np.nan_to_num(values) > [column.high for column in table.columns]).sum())
            yield values
        if faults:
            raise DataError(f"{outside} cells outside the bounds")

    def tell(error, party, why=None):
        super(AbsentError, error).__init__(f"{party}: {why}")
        error.party, error.why = party, why

    monkeypatch.setattr(Table, "_read_raw", read)
    monkeypatch.setattr(AbsentError, "__init__", tell)
    return MASKED


def count_in_progress(monkeypatch):
    real = simulation.run_local

    def run_local(coordinator, parties, *, on_progress, **options):
        records = sum(map(len, parties[0].state._records.batches()))
        return real(
            coordinator,
            parties,
            on_progress=lambda step: on_progress(replace(step, label=f"{step.label}, {records} records")),
            **options,
        )

    monkeypatch.setattr(simulation, "run_local", run_local)
    return load("mask-noise-average-local")


def stop_early(monkeypatch):
    """A party leaves a round out where its own records have not moved: who misses which round then says it."""
    real = PartyEndpoint.receive

    def receive(endpoint, frame):
        state = getattr(endpoint._party, "state", None)
        even = state is not None and sum(map(len, state._records.batches())) % 2
        return real(endpoint, frame) + bool(even) * b"\0"  # refused, so the party counts as silent

    monkeypatch.setattr(PartyEndpoint, "receive", receive)
    return load("mask-noise-average-local")


MUTANTS = {
    "the hash of all messages": (publish_transcript, "result.json.notes["),
    "the hash of vectors without noise": (publish_digest_of_exact_vectors, "result.json.notes["),
    "the loss": (publish_loss, "result.json.notes["),
    "the loss, where it belongs in a run that is not private": (keep_loss_in_the_result, "result.json.evaluation.loss"),
    "a ledger's fingerprint": (publish_fingerprint, "result.json.notes["),
    "the digest of a table in an alignment": (digest_a_table_in_the_alignment, ".alignment.json.digest"),
    "a frame longer by a record": (lengthen_a_frame, "length"),
    "a count in an error": (count_in_an_error, "error"),
    "a count in a line of progress": (count_in_progress, "progress["),
    "a party that is silent for its records": (stop_early, "error"),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_planted_leak_is_found(name, monkeypatch):
    plant, where = MUTANTS[name]
    setup = plant(monkeypatch)
    report = compare_everything(setup, pairs=1, ledgers="ledger" in name)
    assert any(where in path for path in report.exposed), report.exposed
    assert report.violates
    assert "IT TELLS MORE THAN WAS RELEASED" in report.text()


def test_where_masks_are_nobodys_and_parties_add_the_noise_the_hash_of_all_messages_says_nothing(monkeypatch):
    """All messages then follow from what was released: the same to the last bit whoever holds which record."""
    publish_transcript(monkeypatch)
    assert not compare_everything(load("mask-noise-average-shared"), pairs=1).violates


# --- parts --------------------------------------------------------------------------------------------------------


def test_whatever_is_there_is_flattened():
    value = {"a": [1, (2.5, None)], "b": np.arange(2), "c": "one\ntwo", "d": DataError("bad"), "e": b"x", "f": object}
    flat = dict(flatten(value, "v"))
    assert flat["v: length"] == 6
    assert flat["v.a[1][0]"] == 2.5
    assert (flat["v.b[1]"], flat["v.b: shape"]) == (1, "(2,)")
    assert [flat["v.c[0]"], flat["v.c[1]"], flat["v.c: length"]] == ["one", "two", 2]
    assert (flat["v.d.class"], flat["v.d.text"]) == ("DataError", "bad")
    assert flat["v.e"] == b"x"
    assert flat["v.f"] == repr(object)


def test_what_changes_anyway_is_named_and_not_judged():
    report = compare_views([({"a": 1, "b": 1, "c": 1}, {"a": 1, "b": 2, "c": 1}, {"a": 1, "b": 3, "d": 1})])
    assert (report.unjudged, report.exposed, report.values) == (("b",), ("c", "d"), 3)
    assert report.text().endswith("IT TELLS MORE THAN WAS RELEASED: c, d.")
    assert "was not compared" in compare_views([]).text()
    many = compare_views([({str(place): 0 for place in range(30)}, {}, {})])
    assert many.exposed == ()  # nothing is judged of what is not there the second time
    assert "and 20 more." in compare_views([({str(place): 0 for place in range(30)},) * 2 + ({},)]).text()


def test_the_first_draw_that_differs_is_shifted():
    def release(*vectors):
        arrays = tuple(np.array(vector) for vector in vectors)
        return Released(drawn_by=1, draws=(2, 4), vectors=arrays, follows="all")

    draw, by = release([1, 2], [3]).find_shift(release([1, 2], [5]))
    assert (draw, by.tolist()) == (4, [-2])
    assert release([1, 2], [3]).find_shift(release([1, 2], [3])) is None
