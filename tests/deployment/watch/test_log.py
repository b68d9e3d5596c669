"""What logs and metrics show of a run: time apart, nothing that depends on records. Planted leaks are found."""

import ast
import asyncio
import hashlib
import json
import re
from pathlib import Path

import msgspec
import numpy as np
import pytest

from cloister.deployment import watch as watch_package
from cloister.deployment.ends import coordinate, participate
from cloister.deployment.record import describe_run
from cloister.deployment.watch import EventLog, Limiter, Watch, open_log
from cloister.deployment.watch.metrics import write_health, write_metrics
from cloister.errors import BudgetError, ConfigError
from cloister.jobfile import parse_setup
from cloister.runtime import Progress
from cloister.runtime.remote import hub as hub_module
from cloister.runtime.remote.channel import Channel
from cloister.runtime.remote.events import Connected, Passed, Refused
from tests.deployment.organisations import COORDINATOR, Organisations
from tests.golden.jobs import JOBS

pytest.importorskip("grpc")
CANARY = "73.4375"
CLOCKS = re.compile("cloister_(run_seconds|waiting)")  # who is awaited is a matter of time


class Watched(Organisations):
    """Everybody has a log and metrics."""

    def __init__(self, setup, on_table=None):
        super().__init__(setup)
        self.watches = {name: Watch.make(setup.job, name) for name in (*self.names, COORDINATOR)}
        self.on_table = on_table
        self.proofs = {}

    async def run(self, path):
        with open_log(str(path)):
            port = asyncio.get_running_loop().create_future()
            watch = self.watches[COORDINATOR]
            serving = asyncio.ensure_future(
                watch.around(
                    coordinate(
                        self.own_setup(COORDINATOR),
                        self.make_end(COORDINATOR),
                        listen="127.0.0.1:0",
                        on_listening=port.set_result,
                        observe=watch.observe,
                    )
                )
            )
            address = f"127.0.0.1:{await port}"
            parties = [self.run_watched(name, address) for name in self.names]
            return await asyncio.gather(serving, *parties, return_exceptions=True)

    async def run_watched(self, name, address):
        watch = self.watches[name]
        return await watch.around(
            participate(
                self.own_setup(name),
                name,
                self.make_end(name),
                address=address,
                keep=lambda result, labels, sign: self.proofs.update({name: sign({"result.json": b""})}),
                contract="the job's text",
                on_table=None if self.on_table is None else lambda party, check: self.on_table(watch, check),
                observe=watch.observe,
            )
        )


def write_tables(folder, seed):
    """Tables that have nothing in common with those of another seed, not even how many rows they have or lose."""
    rng = np.random.default_rng(seed)
    for name in ("north", "harbour", "valley"):
        rows = rng.uniform(-20, 130, (rng.integers(20, 90), 2))
        rows[0] = float(CANARY)
        (folder / f"{name}.csv").write_text("x0,x1\n" + "".join(f"{a},{b}\n" for a, b in rows))


def watch_run(job, folder, seed, monkeypatch, *, status=False, spoil=None, on_table=None):
    """Run a job once; returns by role what it shows, time apart."""
    if not status:  # how many there are depends on the clock
        monkeypatch.setattr(hub_module, "_STATUS_EVERY_S", 3600.0)
    folder.mkdir()
    write_tables(folder, seed)
    if spoil is not None:
        spoil(folder)
    organisations = Watched(parse_setup(JOBS[job], folder=folder), on_table)
    ends = asyncio.run(organisations.run(folder / "log"))
    lines = [json.loads(line) for line in (folder / "log").read_text().splitlines()]
    shown = {}
    for name, watch in organisations.watches.items():
        own = [{k: v for k, v in line.items() if k not in ("time", "port")} for line in lines if line["role"] == name]
        metrics = [line for line in write_metrics(watch.board).decode().splitlines() if not CLOCKS.match(line)]
        health = json.loads(write_health(watch.board)) | {"waiting": ()}  # who was the last one to go, here
        # Who of several parties speaks first is chance; of each role and peer the order is not.
        log = sorted(own, key=lambda line: line.get("peer", ""))
        shown[name] = (json.dumps(log, indent=0), metrics, health)
    for name, raw in organisations.proofs.items():
        shown[name] += (read_proof(raw),)
    return shown, (folder / "log").read_text(), ends


def assert_same(one, other):
    for name, shown in one.items():
        assert shown == other[name], name


def read_proof(raw):
    """One party's session.json, without what is drawn at random or signed: IDs, keys, salts, and hence signatures."""
    whole = json.loads(raw)
    record = whole.pop("record")
    known = ("party", "job", "connection_version", "program", "transport", "outcome", "left", "files")
    random = {"date", "digest", "run", "sessions", "consents", "votes", "ledger"}
    assert record.keys() == {*known, *random}
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", record["date"])  # no time of day: how long a run took depends on tables
    assert whole.keys() == {"cloister_session", "signature", "ledger"}
    consents = [(one["party"], one["program"]) for one in record["consents"]]
    votes = None if record["votes"] is None else record["votes"]["members"]
    kinds = [part["kind"] for part in record["sessions"]]
    charges = whole["ledger"]["charges"], whole["ledger"]["dataset"]
    return [record[name] for name in known], consents, votes, kinds, charges


def read_record(course):
    """The coordinator's record of a run, without what is drawn at random: IDs and signatures; and time apart."""
    record = msgspec.to_builtins(describe_run(course))
    for part in record["sessions"]:
        assert isinstance(part.pop("seconds"), int)  # finer times would show which rounds were idle
        del part["session"]
    for part in record["parties"]:
        del part["identity"], part["consent"]
    return {name: value for name, value in record.items() if name not in ("run", "digest", "began", "ended")}


@pytest.mark.parametrize("job", ["mask-noise-average-local", "synopsis-shared"])
def test_what_is_shown_does_not_depend_on_any_table(job, tmp_path, monkeypatch):
    runs = (watch_run(job, tmp_path / str(seed), seed, monkeypatch) for seed in (1, 2))
    (one, text, ends), (other, _, others) = runs
    assert not any(isinstance(end, BaseException) for end in (*ends, *others)), ends
    assert_same(one, other)
    assert read_record(ends[0]) == read_record(others[0])
    events = {json.loads(line)["event"] for line in text.splitlines()}
    assert events >= {
        "started",
        "listening",
        "connected",
        "consented",
        "session",
        "seated",
        "step",
        "confirmed",
        "ended",
    }


def test_what_shows_a_run_cannot_reach_what_is_private():
    """It imports nothing that opens a table, a ledger or a journal, and no role."""
    folder = Path(watch_package.__file__).parent
    imported = {
        node.module
        for path in folder.glob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and node.module.startswith("cloister.") and "watch" not in node.module
    }
    assert imported == {"cloister.errors", "cloister.job", "cloister.runtime", "cloister.runtime.remote.events"}


# --- planted leaks ----------------------------------------------------------------------------------------------------


def show_a_digest(monkeypatch):
    real = Channel._note

    def note(self, message, packed, *, is_sent):
        real(self, message, packed, is_sent=is_sent)
        if type(message).__name__ == "Reply":
            self._observe(Refused(self.peer, hashlib.sha256(packed[1]).hexdigest()))

    monkeypatch.setattr(Channel, "_note", note)


def test_a_digest_of_what_was_sent_would_be_found(tmp_path, monkeypatch):
    show_a_digest(monkeypatch)
    one, other = (watch_run("mask-noise-average-local", tmp_path / str(seed), seed, monkeypatch)[0] for seed in (1, 2))
    with pytest.raises(AssertionError):
        assert_same(one, other)


def test_a_count_of_clipped_cells_would_be_found(tmp_path, monkeypatch):
    """It is for the owner, on the owner's screen (`on_table`), and in no log: those are kept, and shown to others."""

    def on_table(watch, check):
        watch.log.write("table", clipped=sum(check.clipped))

    one, other = (
        watch_run("mask-noise-average-local", tmp_path / str(seed), seed, monkeypatch, on_table=on_table)[0]
        for seed in (1, 2)
    )
    assert one[COORDINATOR] == other[COORDINATOR]
    assert one["north"] != other["north"]


# --- trouble on one's own side ----------------------------------------------------------------------------------------


def test_what_is_wrong_with_a_table_is_in_no_log(tmp_path, monkeypatch):
    """Its owner's says which kind of error it was, and nobody else's even that; the error's text is on the screen."""

    def cells(folder):
        table = folder / "harbour.csv"
        table.write_text(table.read_text() + f"{CANARY}x,1\n" * 3)

    def rows(folder):
        (folder / "harbour.csv").write_text("x0,x1\n1,2,3\n")

    monkeypatch.setattr(Organisations, "make_end", with_short_deadline(Organisations.make_end))
    seen = [
        watch_run("mask-noise-average-local", tmp_path / spoil.__name__, 1, monkeypatch, spoil=spoil)
        for spoil in (cells, rows)
    ]
    (one, text, ends), (other, _, _) = seen
    assert all(isinstance(end, BaseException) for end in ends)
    assert_same(one, other)
    assert '"outcome":"DataError","exit_code":3' in text.replace(" ", "")
    assert CANARY not in text
    assert "DataError" not in one[COORDINATOR][0] + one["north"][0]


def with_short_deadline(make_end):
    from dataclasses import replace

    def make(self, name):
        end = make_end(self, name)
        return replace(end, deadlines=replace(end.deadlines, start_s=2.0))

    return make


# --- the log itself ---------------------------------------------------------------------------------------------------


def test_every_line_is_json_to_the_second_and_standard_error_is_a_place(capsys):
    with open_log("-"):
        EventLog("north").observe(Connected('a"b\n', "0.1.0"), 0.0)
    (line,) = capsys.readouterr().err.splitlines()
    said = json.loads(line)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", said["time"])
    assert (said["event"], said["peer"], said["level"]) == ("connected", 'a"b\n', "info")


def test_a_flood_fills_no_disk(tmp_path):
    log = EventLog(COORDINATOR)
    with open_log(str(tmp_path / "log")):
        for number in range(5000):
            log.observe(Refused("", "HANDSHAKE"), number * 0.01)
        log.observe(Refused("", "HANDSHAKE"), 100.0)
    lines = (tmp_path / "log").read_text().splitlines()
    assert len(lines) == 32
    assert json.loads(lines[-2])["event"] == "left out" or json.loads(lines[-2])["lines"] == 5000 - 30


def test_a_limiter_says_how_much_it_has_dropped():
    limiter = Limiter()
    assert [limiter.allow(0.0) for _ in range(31)] == [True] * 30 + [False]
    assert limiter.dropped == 1
    assert limiter.allow(60.0)
    assert limiter.dropped == 0


def test_who_is_awaited_for_long_is_named(tmp_path):
    log = EventLog(COORDINATOR)
    with open_log(str(tmp_path / "log")):
        for now_s in range(0, 35):
            log.observe(Progress(step=2, steps=9, label="round 1", waiting_for=("valley",)), float(now_s))
    events = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    assert [(line["event"], line.get("seconds")) for line in events] == [
        ("step", None),
        ("waiting", 10),
        ("waiting", 20),
        ("waiting", 30),
    ]
    assert events[1]["parties"] == ["valley"]


def test_a_full_disk_ends_the_log_and_not_the_run(capsys):
    with open_log("/dev/full"):
        EventLog("north").write("started")
    assert capsys.readouterr().err == ""


def test_a_log_that_cannot_be_written_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="--log"), open_log(str(tmp_path / "none" / "log")):
        pass


def test_the_end_of_a_run_says_its_class_and_no_more(tmp_path):
    with open_log(str(tmp_path / "log")):
        EventLog("north").end(BudgetError(f"spent {CANARY}"))
        EventLog("north").end(ValueError(CANARY))
        EventLog("north").end(KeyboardInterrupt())
        EventLog("north").end(None)
    text = (tmp_path / "log").read_text()
    assert re.findall(r'"outcome":"(\w+)"', text) == ["BudgetError", "failed", "stopped", "done"]
    assert CANARY not in text


def test_lengths_of_messages_are_in_no_log(tmp_path):
    with open_log(str(tmp_path / "log")):
        EventLog("north").observe(Passed("north", "Done", 12345, is_sent=True), 0.0)
    assert "12345" not in (tmp_path / "log").read_text()
