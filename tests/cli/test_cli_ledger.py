"""``cloister ledger``: what was paid, in words and numbers; caps with a reason; an export; what a run says of it."""

from __future__ import annotations

import json
import math
import re
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.conftest import JOB, Invoke
from tests.privacy.ledger.helpers import CUSTOMERS, PATIENTS, gaussian, open_session

from cloister.cli.ledger_report import format_epsilon
from cloister.privacy.costs import epsilon_of_rho, rho_of_epsilon
from cloister.privacy.ledger import Ledger
from cloister.privacy.units import Budget, Unit


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Two data sets."""
    path = tmp_path / "ledger.db"
    with Ledger(path) as ledger:
        open_session(ledger, PATIENTS, job="blood", session=b"1").charge_all([gaussian(0.01), gaussian(0.02)])
        open_session(ledger, PATIENTS, job="age", session=b"2").charge(gaussian(0.01))
        open_session(ledger, CUSTOMERS, job="baskets").charge(gaussian(0.01))
    return path


def set_cap(invoke: Invoke, path: object, *, epsilon: object = 2, delta: object = "1e-5", **more: str):
    options = {"reason": "the board agreed", "dataset": PATIENTS, **more}
    arguments = [f"--{name}={value}" if value else f"--{name}" for name, value in options.items() if value is not None]
    return invoke("ledger", "cap", path, "--epsilon", epsilon, "--delta", delta, *arguments)


@pytest.mark.parametrize(
    ("epsilon", "written"),
    [
        (0.0, "0"),
        (math.inf, "infinite"),
        (1.0 + 1e-12, "1"),
        (0.14442, "0.1445"),
        (1.00601, "1.007"),
        (12.081, "12.09"),
        (87_950.2, "87,951"),
        (87_950.0, "87,950"),
        (3.1e-5, "0.000031"),
    ],
)
def test_what_was_spent_is_never_written_as_less(epsilon: float, written: str) -> None:
    assert format_epsilon(epsilon) == written


class TestShow:
    def test_says_what_each_data_set_has_paid(self, invoke: Invoke, path: Path) -> None:
        shown = invoke("ledger", "show", path)
        assert shown.exit_code == 0
        assert "2 data sets; 4 entries, none changed." in shown.stdout
        patients, customers, together = re.split("\n(?=data set '|all data sets)", shown.stdout)[1:]
        assert patients.startswith("data set 'patients'")
        assert "3 releases in 2 sessions of blood, age, 20" in patients
        assert f"epsilon {epsilon_of_rho(0.04, 1e-6):.4g}"[:-1] in patients
        assert "at delta 1e-06" in patients
        assert "No cap" in patients
        assert "1 release in 1 session of baskets" in customers
        assert "4 releases in 3 sessions of blood, age, baskets" in together
        assert f"epsilon {epsilon_of_rho(0.05, 1e-6):.4g}"[:-1] in together

    def test_states_epsilon_at_the_caps_delta_or_at_the_one_asked_for(self, invoke: Invoke, path: Path) -> None:
        set_cap(invoke, path)
        shown = invoke("ledger", "show", path, "--delta", "1e-3").stdout
        assert f"epsilon {epsilon_of_rho(0.04, 1e-5):.4g}"[:-1] in shown
        assert f"epsilon {epsilon_of_rho(0.01, 1e-3):.4g}"[:-1] in shown
        assert "Cap: epsilon 2 at delta 1e-05 for one record." in shown

    def test_claims_no_protection_above_epsilon_10(self, invoke: Invoke, tmp_path: Path) -> None:
        path = tmp_path / "spent.ledger"
        with Ledger(path) as ledger:
            open_session(ledger, PATIENTS).charge(gaussian(9.0))
        shown = " ".join(invoke("ledger", "show", path).stdout.split())
        assert f"Spent: epsilon {format_epsilon(epsilon_of_rho(9.0, 1e-6))} (rho 9)" in shown
        assert "Above epsilon 10 no protection is claimed." in shown
        assert "no protection is claimed" not in invoke("ledger", "show", path, "--delta", "0").stdout
        assert "no bound holds for one record at delta 0" in invoke("ledger", "show", path, "--delta", "0").stdout

    def test_checks_a_noted_head(self, invoke: Invoke, path: Path) -> None:
        head = invoke("ledger", "show", path).stdout.split("head ")[1].split()[0]
        set_cap(invoke, path)
        assert invoke("ledger", "show", path, "--head", head.upper()).exit_code == 0
        missing = invoke("ledger", "show", path, "--head", "0" * 64)
        assert missing.exit_code == 11
        assert "not among its 5 entries" in missing.stderr

    def test_a_missing_ledger_is_not_created(self, invoke: Invoke, tmp_path: Path) -> None:
        for command in (("show",), ("export",), ("cap", "--dataset=a", "--epsilon=1", "--delta=0", "--reason=x")):
            failed = invoke("ledger", command[0], tmp_path / "typo.db", *command[1:])
            assert failed.exit_code == 11
            assert "there is none" in failed.stderr
        assert not list(tmp_path.iterdir())

    def test_another_file_is_named_as_such(self, invoke: Invoke, tmp_path: Path) -> None:
        table = tmp_path / "patients.csv"
        table.write_text("age,bmi\n71.625,22\n" * 100)
        failed = invoke("ledger", "show", table)
        assert failed.exit_code == 11
        assert "must be a whole ledger" in failed.stderr
        assert "71.625" not in failed.output

    def test_an_edited_ledger_is_refused(self, invoke: Invoke, path: Path) -> None:
        connection = sqlite3.connect(path)
        (trigger,) = connection.execute("SELECT sql FROM sqlite_master WHERE name = 'entry_stays'").fetchone()
        connection.execute("DROP TRIGGER entry_stays")
        connection.execute("UPDATE entry SET text = replace(text, 'blood', 'sweat')")
        connection.execute(trigger)
        connection.commit()
        connection.close()
        failed = invoke("ledger", "show", path)
        assert failed.exit_code == 11
        assert "was edited or damaged" in failed.stderr

    def test_a_newer_ledger_is_refused(self, invoke: Invoke, path: Path) -> None:
        connection = sqlite3.connect(path)
        connection.execute("PRAGMA user_version = 9")
        connection.close()
        failed = invoke("ledger", "show", path)
        assert failed.exit_code == 11
        assert "must have schema 2; got 9" in failed.stderr

    def test_an_unbounded_cost_is_said_to_be_one(self, invoke: Invoke, path: Path) -> None:
        set_cap(invoke, path, unit="client")
        shown = invoke("ledger", "show", path).stdout
        assert "no bound holds for one client" in shown
        assert "every further release is refused" in shown


class TestCap:
    def test_sets_a_cap_that_later_jobs_meet(self, invoke: Invoke, path: Path) -> None:
        done = set_cap(invoke, path)
        assert done.exit_code == 0
        assert "Cap: epsilon 2 at delta 1e-05" in done.stdout
        with Ledger(path) as ledger:
            summary = ledger.summarise_one(PATIENTS)
            assert summary.cap == Budget(epsilon=2, delta=1e-5, unit=Unit.RECORD)
            assert "the board agreed" in list(ledger.export())[-1]

    def test_below_what_is_spent_says_what_follows(self, invoke: Invoke, path: Path) -> None:
        done = set_cap(invoke, path, epsilon="0.1")
        assert done.exit_code == 0
        assert "every further release is refused" in done.stdout

    def test_a_data_set_can_be_capped_before_its_first_job(self, invoke: Invoke, path: Path) -> None:
        done = set_cap(invoke, path, dataset="staff")
        assert done.exit_code == 0
        assert "data set 'staff'" in done.stdout
        assert "Nothing has been released from it yet" in done.stdout

    def test_a_partys_default_ledger_can_be_capped_before_any_job(self, invoke: Invoke, user_data: Path) -> None:
        missing = set_cap(invoke, "north", dataset=None)
        assert missing.exit_code == 11
        assert "there is none" in missing.stderr
        done = set_cap(invoke, "north", dataset=None, new="")
        assert done.exit_code == 0, done.output
        assert "all data sets together" in done.stdout
        assert "Cap: epsilon 2 at delta 1e-05" in invoke("ledger", "show", "north").stdout
        with Ledger(user_data / "cloister" / "north.ledger", create=False) as ledger:
            assert ledger.find_cap(None) == Budget(epsilon=2, delta=1e-5)

    def test_for_persons_and_over_all_data_sets(self, invoke: Invoke, path: Path) -> None:
        done = set_cap(invoke, path, dataset=None, unit="person")
        assert "for one person" in done.stdout
        with Ledger(path) as ledger:
            assert ledger.find_cap(None) == Budget(epsilon=2, delta=1e-5, unit=Unit.PERSON)
            assert ledger.find_cap(PATIENTS) is None

    @pytest.mark.parametrize(
        ("wrong", "message"),
        [
            ({"dataset": " "}, "a data set's name must be printable"),
            ({"dataset": "ff" * 32}, "a data set's name must be printable"),
            ({"epsilon": 0}, "epsilon must lie between 1e-06 and 1e+06; got 0"),
            ({"epsilon": "nan"}, "epsilon must lie between"),
            ({"delta": 1}, "delta must be at least 0 and less than 1; got 1"),
            ({"reason": " "}, "must come with a reason"),
            ({"unit": "family"}, "must be record, person or client; got 'family'"),
        ],
    )
    def test_bad_input_changes_nothing(self, invoke: Invoke, path: Path, wrong: dict, message: str) -> None:
        failed = set_cap(invoke, path, **wrong)
        assert failed.exit_code == 2
        assert message in failed.stderr
        assert "4 entries" in invoke("ledger", "show", path).stdout


class TestExport:
    def test_writes_every_entry_and_no_salt(self, invoke: Invoke, path: Path, tmp_path: Path) -> None:
        printed = invoke("ledger", "export", path)
        about, *entries = map(json.loads, printed.stdout.splitlines())
        assert about["entries"] == len(entries) == 4
        assert about["head"] == entries[-1]["chain"]
        assert [line["entry"]["job"] for line in entries] == ["blood", "blood", "age", "baskets"]
        with Ledger(path) as ledger:
            assert ledger.salt.hex() not in printed.stdout
        invoke("ledger", "export", path, "--out", tmp_path / "out.jsonl")
        assert (tmp_path / "out.jsonl").read_text() == printed.stdout

    def test_does_not_overwrite(self, invoke: Invoke, path: Path, tmp_path: Path) -> None:
        out = tmp_path / "out.jsonl"
        out.write_text("mine")
        failed = invoke("ledger", "export", path, "--out", out)
        assert failed.exit_code == 2
        assert "which exists" in failed.stderr
        assert out.read_text() == "mine"
        assert invoke("ledger", "export", path, "--out", tmp_path / "no" / "x").exit_code == 2


class TestJoin:
    def test_two_names_become_one_data_set(self, invoke: Invoke, path: Path) -> None:
        options = ("--dataset", CUSTOMERS, "--into", PATIENTS, "--reason", "the same people")
        done = invoke("ledger", "join", path, *options)
        assert done.exit_code == 0, done.output
        assert "data set 'patients'\n  4 releases in 3 sessions" in done.stdout
        assert "1 data set; 5 entries" in invoke("ledger", "show", path).stdout
        again = invoke("ledger", "join", path, *options)
        assert again.exit_code == 2
        assert "one data set already" in again.stderr


PRIVATE = JOB.replace('name = "masked-sum-count"\niterations = 4', 'name = "mask-noise-average"\niterations = 2')
PRIVATE += "[budget]\nepsilon = 1.0\ndelta = 1e-6\n"


class TestRuns:
    """What ``cloister run`` says of ledgers, and where they are if nobody says so."""

    @pytest.fixture
    def job(self, job_file: Path) -> Path:
        job_file.write_text(PRIVATE.replace('data = "north.csv"', 'data = "north.csv"\ndataset = "patients"'))
        return job_file

    def test_every_party_keeps_one_in_the_users_data_folder(self, invoke: Invoke, job: Path, user_data: Path) -> None:
        folder = user_data / "cloister"
        once = rho_of_epsilon(1.0, 1e-6)
        totals = [format_epsilon(epsilon_of_rho(runs * once, 1e-6)) for runs in range(4)]
        for spent, now, again in zip(totals, totals[1:], totals[2:], strict=False):
            done = invoke("run", job, "--overwrite")
            assert done.exit_code == 0, done.output
            text = " ".join(done.stdout.split())
            assert text.count(f"Spent: epsilon {spent} before, {now} now, at delta 1e-06 for one record.") == 3
            assert text.count(f"Running again makes it {again}.") == 3
        assert sorted(one.name for one in folder.iterdir()) == ["harbour.ledger", "north.ledger", "valley.ledger"]
        assert f"north: data set 'patients' in {folder / 'north.ledger'}" in text
        assert f"harbour: data set 'undeclared' in {folder / 'harbour.ledger'}" in text
        assert "Set one: cloister ledger cap north" in text
        written = Path("result-small/result.json").read_text()
        assert "patients" not in written
        assert str(folder) not in written

    def test_a_cap_that_was_set_before_the_first_job_holds(self, invoke: Invoke, job: Path) -> None:
        set_cap(invoke, "north", dataset=None, epsilon=1.2, delta="1e-6", new="")
        first = invoke("run", job)
        assert first.exit_code == 0
        assert "Cap on all data sets: epsilon 1.2 at delta 1e-06" in first.stdout
        second = invoke("run", job, "--overwrite")
        assert second.exit_code == 8  # of this simulation; at the owner's own machine it is a budget's
        assert "for north only: party 'north' (" in second.stderr
        assert "must cost at most epsilon = 1.2" in second.stderr
        assert "1.2" not in second.stderr.splitlines()[-1]
        seeded = invoke("run", job, "--overwrite", "--seed", 7)
        assert seeded.exit_code == 8
        assert "got a seed" in seeded.stderr

    def test_a_seeded_run_is_noted_as_not_private(self, invoke: Invoke, job: Path) -> None:
        done = invoke("run", job, "--seed", 7)
        assert done.exit_code == 0
        assert done.stdout.count("Made with a seed, so not private: nothing was charged.") == 3
        shown = invoke("ledger", "show", "north").stdout
        assert "1 run with a seed: not private, and not counted." in shown
        assert "Nothing has been released from it yet." in shown

    def test_its_owner_is_warned_of_another_table(self, invoke: Invoke, job: Path) -> None:
        invoke("run", job)
        lines = Path("north.csv").read_text().splitlines(keepends=True)
        Path("north.csv").write_text("".join(lines[:-1]))
        done = invoke("run", job, "--overwrite")
        assert "This table is not the one that was charged as data set 'patients' before." in done.stdout
        assert done.stdout.count("This table is not") == 1

    def test_an_exact_job_and_the_demo_charge_nobody(
        self, invoke: Invoke, job_file: Path, user_data: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        assert "Ledgers" not in invoke("run", job_file).stdout
        assert "Ledgers" not in invoke("demo").stdout
        assert not list(user_data.iterdir())

    def test_an_interrupt_after_a_charge_says_what_was_spent(self, job: Path) -> None:
        job.write_text(job.read_text().replace("iterations = 2", "iterations = 1000"))
        program = [sys.executable, "-c", "from cloister.cli import main; main()", "run", str(job)]
        with subprocess.Popen(program, stderr=subprocess.PIPE, text=True) as process:
            assert process.stderr is not None
            first = process.stderr.readline()
            process.send_signal(signal.SIGINT)
            rest = process.stderr.read()
            assert process.wait(30) == 130, first + rest
        told = [line for line in rest.splitlines() if "had been charged when the run stopped" in line]
        assert len(told) == 3
        assert "Spent: epsilon 0 before, 1 now, at delta 1e-06 for one record." in told[0]
        assert rest.splitlines()[-1] == "cloister: stopped"

    def test_a_run_that_fails_before_any_charge_says_nothing_of_it(self, invoke: Invoke, job: Path) -> None:
        Path("valley.csv").write_text("age,bmi\nold,22\n")
        failed = invoke("run", job)
        assert failed.exit_code == 8
        assert "charged" not in failed.stderr
