"""What the operators of serve and party see while they run: at 60 columns, and line by line."""

import io

import pytest
from rich.console import Console
from tests.agreement.people import NAMES, make_people

from cloister.cli.live import RunView, show_run
from cloister.deployment.watch import Watch
from cloister.runtime import Progress
from cloister.runtime.remote.events import (
    Connected,
    Disconnected,
    Left,
    Listening,
    Opened,
    Passed,
    Refused,
    Unreachable,
)
from cloister.runtime.remote.messages import Refusal

COORDINATOR = "coordinator"


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    return make_people(tmp_path_factory.mktemp("keys")).job


def draw(job, role, events, width=60, ledger=""):
    out = io.StringIO()
    console = Console(file=out, width=width, force_terminal=True, color_system=None, markup=False, highlight=False)
    watch = Watch.make(job, role)
    view = RunView(watch, job, console)
    view._ledger = ledger
    watch.add(view.observe)
    for event in events:
        watch.observe(event)
    out.truncate(0)
    out.seek(0)
    console.print(view.render())
    return out.getvalue()


EVENTS = (
    Listening(7400),
    Connected("north", "0.1.0"),
    Connected("harbour", "0.1.0"),
    Disconnected("harbour"),
    Passed("north", "Reply", 51900, is_sent=False),
    Opened("clustering"),
    Progress(step=3, steps=40, label="party 1 works out what comes next", waiting_for=("north", "harbour")),
)


def test_a_coordinator_sees_who_is_there_and_who_is_awaited_at_60_columns(job):
    shown = draw(job, COORDINATOR, EVENTS)
    assert all(len(line.rstrip()) <= 60 for line in shown.splitlines()), shown
    assert "clinics · coordinator · clustering · 00:00" in shown
    assert "step 4 of 40: party 1 works out what comes next" in shown
    assert "waiting for north, harbour" in shown
    rows = {line.split()[0]: line.split()[1:] for line in shown.splitlines() if line.startswith(NAMES)}
    assert rows["north"][:2] == ["awaited", "50.7"]
    assert rows["harbour"][:2] == ["cut", "off"]
    assert rows["valley"][:3] == ["not", "here", "yet"]
    assert "budget" not in shown


def test_a_party_sees_its_budget(job):
    events = [Connected(COORDINATOR, "0.1.0"), Opened("clustering")]
    before = draw(job, "north", events, ledger="epsilon 0.5 spent before this job")
    assert "budget epsilon 1: nothing charged yet" in before
    assert "ledger epsilon 0.5 spent before this job" in before
    after = draw(job, "north", [*events, Passed(COORDINATOR, "Reply", 300, is_sent=True)])
    assert "budget epsilon 1: charged" in after


def test_a_thousand_parties_fit_on_a_screen(job):
    watch = Watch.make(job, COORDINATOR)
    names = [f"clinic-with-a-long-name-{number}" for number in range(1000)]
    watch.board.peers = {name: type(watch.board.peers["north"])(name=name) for name in names}
    out = io.StringIO()
    console = Console(file=out, width=60, color_system=None)
    watch.board.observe(Progress(step=0, steps=0, label="joining", waiting_for=tuple(names[500:])))
    console.print(RunView(watch, job, console).render())
    lines = out.getvalue().splitlines()
    assert len(lines) < 22
    assert all(len(line.rstrip()) <= 60 for line in lines)
    assert "and 496 more" in out.getvalue()
    assert "and 988 more" in out.getvalue()


def say(job, role, *events):
    out = io.StringIO()
    watch = Watch.make(job, role)
    with show_run(watch, job, Console(file=out, width=100, markup=False, highlight=False)):
        for event in events:
            watch.observe(event)
    return out.getvalue()


@pytest.mark.parametrize("reason", [*(one.name for one in Refusal), "BROKEN", "CROWDED", "SILENT", "CERTIFICATE"])
def test_a_coordinator_reads_why_somebody_was_refused(job, reason):
    shown = say(job, COORDINATOR, Refused("north", reason))
    assert shown.startswith("cloister: refused north: ")
    assert len(shown) > 60


def test_a_coordinator_reads_why_a_party_refused_it(job):
    shown = say(job, COORDINATOR, Refused("north", "REVOKED", by_peer=True))
    assert shown.startswith("cloister: north does not accept us: neither end's policy may revoke")


def test_a_party_is_told_once_by_the_error_that_ends_it(job):
    assert say(job, "north", Refused(COORDINATOR, "JOB", by_peer=True)) == ""
    assert "Try again" in say(job, "north", Refused(COORDINATOR, "RATE", by_peer=True))


def test_lines_without_a_terminal(job):
    waiting = Progress(step=0, steps=0, label="joining", waiting_for=("harbour", "valley"))
    shown = say(
        job,
        "north",
        Unreachable(COORDINATOR, "Nobody listens there."),
        Unreachable(COORDINATOR, "Nobody listens there."),
        Connected(COORDINATOR, "0.1.0"),
        waiting,
        waiting,
        Progress(step=0, steps=2, label="round 1", waiting_for=()),
        Disconnected(COORDINATOR),
        Connected(COORDINATOR, "0.1.0"),
        Passed(COORDINATOR, "Over", 3, is_sent=False),
        Disconnected(COORDINATOR),
    )
    assert shown.splitlines() == [
        "cloister: the coordinator cannot be reached now, and is called again. Nobody listens there.",
        "cloister: the coordinator is connected, with Cloister 0.1.0.",
        "joining, waiting for harbour, valley",
        "[0/2] round 1",
        "cloister: the coordinator is cut off, and may come back.",
        "cloister: the coordinator is connected, with Cloister 0.1.0.",
    ]


def test_a_flood_fills_no_screen(job):
    shown = say(job, COORDINATOR, *[Refused("", "HANDSHAKE")] * 1000, Left("north"))
    assert len(shown.splitlines()) == 31
    assert shown.splitlines()[-1] == "cloister: north has left."
