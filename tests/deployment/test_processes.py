"""Real processes: they end with one result, whoever is killed and started again, and nothing is charged twice."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from cloister.credentials import renew_keys
from cloister.privacy.ledger import UNDECLARED, Ledger
from cloister.privacy.units import Unit
from cloister.report import read_result
from tests.deployment.processes import COORDINATOR, EXACT, JOB, NAMES, Processes
from tests.golden.tables import HELD

LOCAL = 'placement = "local"'


def check_end(processes, *, charged=True):
    """One result, its own traffic at each, one charge each, and no journal left."""
    results = {name: read_result(processes.folder / f"result-{name}") for name in processes.names}
    first = results[processes.names[0]]
    for name, result in results.items():
        assert np.array_equal(result.centres, first.centres)
        assert result.ran == "between organisations"
        assert [party.name for party in result.parties] == [name]
        assert result.party_names == processes.names
        assert not list((processes.folder / f"data-{name}").rglob("journals/*/*"))
    assert not list((processes.folder / f"data-{COORDINATOR}").rglob("journals/*/*"))
    if charged:
        for name in processes.names:
            with Ledger(processes.folder / f"{name}.ledger") as ledger:
                spent = ledger.total(UNDECLARED, Unit.RECORD)
            assert spent.epsilon(1e-6) == pytest.approx(first.card.epsilon, rel=1e-3), name
    return results


def test_four_processes_end_with_one_result(tmp_path):
    with Processes(tmp_path, JOB.format(protocol=LOCAL)) as processes:
        processes.start_all()
        processes.wait_all()
        results = check_end(processes)
        record = json.loads((tmp_path / "run-processes.json").read_text())
    assert [party["name"] for party in record["parties"]] == list(NAMES)
    assert [one["kind"] for one in record["sessions"]] == ["clustering"]
    assert record["run"] == results["north"].between.run


STEPS = {"party": 4, "coordinator": 6}
"""A record in the middle of the rounds."""


@pytest.mark.parametrize("instant", ["before", "inside", "after", "paid", "found"])
def test_a_party_that_is_killed_and_started_again_goes_on(instant, tmp_path):
    with Processes(tmp_path, JOB.format(protocol=LOCAL)) as processes:
        processes.start_all({"harbour": (instant, STEPS["party"])})
        assert processes.wait("harbour")[0] == -signal.SIGKILL
        processes.start("harbour")
        processes.wait_all()
        check_end(processes)


@pytest.mark.parametrize("instant", ["before", "inside", "after"])
def test_a_coordinator_that_is_killed_and_started_again_goes_on(instant, tmp_path):
    with Processes(tmp_path, JOB.format(protocol=LOCAL)) as processes:
        processes.start_all({COORDINATOR: (instant, STEPS["coordinator"])})
        assert processes.wait(COORDINATOR)[0] == -signal.SIGKILL
        processes.start(COORDINATOR)
        processes.wait_all()
        check_end(processes)


VERTICAL = """
name = "processes"
[clusters]
k = 3
[protocol]
name = "vertical"
cells = 4
iterations = 2
labels = ["telco"]
[budget]
epsilon = 8.0
delta = 1e-6
[data]
id = "id"
[columns]
income = { low = 0, high = 100 }
savings = { low = 0, high = 100 }
gigabytes = { low = 0, high = 100 }
"""


@pytest.mark.parametrize("kind", ["alignment", "clustering", "labels"])
@pytest.mark.parametrize("who", [COORDINATOR, "bank", "telco"])
def test_every_session_of_a_run_goes_on_after_a_kill(kind, who, tmp_path):
    names = ("bank", "telco")
    with Processes(tmp_path, VERTICAL, names, held=HELD) as processes:
        processes.start_all({who: (f"{kind} after", 4)})
        assert processes.wait(who)[0] == -signal.SIGKILL
        processes.start(who)
        processes.wait_all()
        check_end(processes, charged=False)
        assert (tmp_path / "result-telco" / "labels-telco.csv").exists()
        assert not (tmp_path / "result-bank" / "labels-telco.csv").exists()


def test_a_certificate_is_renewed_in_the_middle_of_a_run(tmp_path):
    """As docs/deploy.md says: the new public file goes to the hub, both start again, and the run goes on."""
    with Processes(tmp_path, JOB.format(protocol=LOCAL)) as processes:
        processes.start_all({"harbour": ("after", STEPS["party"])})
        assert processes.wait("harbour")[0] == -signal.SIGKILL
        processes.running[COORDINATOR].kill()  # what systemd does, too
        assert processes.wait(COORDINATOR)[0] == -signal.SIGKILL
        renew_keys(tmp_path / "harbour.key")  # its harbour.pub is where all look for it here
        for name in (COORDINATOR, "harbour"):
            processes.start(name)
        processes.wait_all()
        check_end(processes)


def test_everybody_is_killed_and_started_again(tmp_path):
    dooms = {COORDINATOR: ("after", 7), "north": ("after", 3), "harbour": ("inside", 5), "valley": ("before", 5)}
    with Processes(tmp_path, JOB.format(protocol=LOCAL)) as processes:
        processes.start_all(dooms)
        for name in ("north", "harbour", "valley", COORDINATOR):
            assert processes.wait(name)[0] == -signal.SIGKILL
            processes.start(name)
        processes.wait_all()
        check_end(processes)


def test_a_party_that_never_comes_back_is_left_out_where_the_protocol_can_go_on(tmp_path):
    with Processes(
        tmp_path, EXACT.replace("iterations = 4", "iterations = 4\nmin_parties = 2"), deadline=4
    ) as processes:
        processes.start_all({"valley": ("before", 5)})
        assert processes.wait("valley")[0] == -signal.SIGKILL
        del processes.running["valley"]
        processes.wait_all()
        north, harbour = (read_result(tmp_path / f"result-{name}") for name in ("north", "harbour"))
        assert np.array_equal(north.centres, harbour.centres)
        record = json.loads((tmp_path / "run-processes.json").read_text())
        assert [party["name"] for party in record["parties"] if party["left"]] == ["valley"]


def test_a_run_whose_record_is_there_is_not_begun_again(tmp_path):
    """It holds what the parties of that run agreed to, and they are gone."""
    with Processes(tmp_path, EXACT) as processes:
        (tmp_path / "run-processes.json").write_text("what was agreed to")
        processes.start_process(COORDINATOR)
        code, text = processes.wait(COORDINATOR)
    assert code == 2
    assert "an earlier run is over" in text
    assert (tmp_path / "run-processes.json").read_text() == "what was agreed to"


def test_others_end_with_a_typed_error_that_names_who_is_missing(tmp_path):
    with Processes(tmp_path, EXACT, deadline=3) as processes:
        processes.start(COORDINATOR, more=("--start-deadline", "5"))
        for name in ("north", "harbour"):
            processes.start(name)
        for name in (COORDINATOR, "north", "harbour"):
            code, text = processes.wait(name)
            assert code == 8
            assert "valley" in text


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("who", [COORDINATOR, "harbour"])
def test_who_is_stopped_says_what_was_spent_and_tells_the_others(who, how, tmp_path):
    with Processes(tmp_path, JOB.format(protocol=LOCAL), deadline=30) as processes:
        for name in (COORDINATOR, "north", "harbour"):
            processes.start(name)
        time.sleep(2)  # they wait for valley
        os.kill(processes.running[who].pid, how)
        code, text = processes.wait(who)
        assert code == 130, text
        if who == COORDINATOR:
            for name in ("north", "harbour"):
                code, text = processes.wait(name)
                assert code == 8, text
                assert "withdrew" in text
        assert not list((tmp_path / f"data-{who}").rglob("journals/*/*"))


def test_who_is_stopped_in_the_middle_says_what_stays_spent(tmp_path):
    """Its role is at work and hangs; the others cannot go on without its noise, and learn so at once."""
    with Processes(tmp_path, JOB.format(protocol=LOCAL), deadline=30) as processes:
        processes.start_all({"harbour": ("hang", STEPS["party"])})
        wait_for(lambda: "hangs" in processes.read_errors("harbour"))
        os.kill(processes.running["harbour"].pid, signal.SIGTERM)
        code, text = processes.wait("harbour")
        assert code == 130
        assert (
            "harbour had been charged when the run stopped, and stays charged: Spent: epsilon 0 before, 8 now" in text
        )
        started_s = time.monotonic()
        for name in ("north", "valley", COORDINATOR):
            code, text = processes.wait(name)
            assert code == 8
            assert name == COORDINATOR or f"{name} had been charged" in text
        assert time.monotonic() - started_s < 20  # and not the deadline


def wait_for(holds, timeout_s=60):
    until_s = time.monotonic() + timeout_s
    while not holds():
        assert time.monotonic() < until_s
        time.sleep(0.05)


def test_the_demo_as_four_processes(tmp_path):
    """As a newcomer starts it: nothing is forked, everything is imported anew."""
    line = [sys.executable, "-m", "cloister", "demo", "--network", "--out", str(tmp_path / "out")]
    environment = {**os.environ, "XDG_DATA_HOME": str(tmp_path / "data")}
    done = subprocess.run(line, env=environment, capture_output=True, text=True, timeout=180, check=False)
    assert done.returncode == 0, done.stderr
    assert "clinics: 4 clusters over the records of 3 parties (between organisations)" in done.stdout
    assert read_result(tmp_path / "out").card.private
