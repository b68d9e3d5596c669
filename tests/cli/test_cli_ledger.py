"""``cloister ledger``: what was paid, in words and numbers; caps with a reason; an export without the salt."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest
from tests.cli.conftest import Invoke
from tests.privacy.ledger.helpers import CUSTOMERS, PATIENTS, gaussian, open_session

from cloister.privacy.costs import epsilon_of_rho
from cloister.privacy.ledger import Ledger
from cloister.privacy.units import Budget, Unit


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Two data sets whose fingerprints begin with the same digit."""
    path = tmp_path / "ledger.db"
    with Ledger(path) as ledger:
        open_session(ledger, PATIENTS, job="blood", session=b"1").charge_all([gaussian(0.01), gaussian(0.02)])
        open_session(ledger, PATIENTS, job="age", session=b"2").charge(gaussian(0.01))
        open_session(ledger, CUSTOMERS, job="baskets").charge(gaussian(0.01))
    return path


def set_cap(invoke: Invoke, path: Path, *, data: str = "a1", epsilon: object = 2, delta: object = "1e-5", **more: str):
    arguments = [f"--{name}={value}" for name, value in {"reason": "the board agreed", **more}.items()]
    return invoke("ledger", "cap", path, "--data", data, "--epsilon", epsilon, "--delta", delta, *arguments)


class TestShow:
    def test_says_what_each_data_set_has_paid(self, invoke: Invoke, path: Path) -> None:
        shown = invoke("ledger", "show", path)
        assert shown.exit_code == 0
        assert "2 data sets; 4 entries, none changed." in shown.stdout
        patients, customers = shown.stdout.split("data set a")[1:3]
        assert patients.startswith(PATIENTS[1:16])
        assert "3 releases in 2 sessions of blood, age, 20" in patients
        assert f"epsilon {epsilon_of_rho(0.04, 1e-6):.4g}"[:-1] in patients
        assert "at delta 1e-06" in patients
        assert "No cap" in patients
        assert "1 release in 1 session of baskets" in customers

    def test_states_epsilon_at_the_caps_delta_or_at_the_one_asked_for(self, invoke: Invoke, path: Path) -> None:
        set_cap(invoke, path)
        shown = invoke("ledger", "show", path, "--delta", "1e-3").stdout
        assert f"epsilon {epsilon_of_rho(0.04, 1e-5):.4g}"[:-1] in shown
        assert f"epsilon {epsilon_of_rho(0.01, 1e-3):.4g}"[:-1] in shown
        assert "Cap: epsilon 2 at delta 1e-05 for one record." in shown

    def test_checks_a_noted_head(self, invoke: Invoke, path: Path) -> None:
        head = invoke("ledger", "show", path).stdout.split("head ")[1].split()[0]
        set_cap(invoke, path)
        assert invoke("ledger", "show", path, "--head", head.upper()).exit_code == 0
        missing = invoke("ledger", "show", path, "--head", "0" * 64)
        assert missing.exit_code == 11
        assert "not among its 5 entries" in missing.stderr

    def test_a_missing_ledger_is_not_created(self, invoke: Invoke, tmp_path: Path) -> None:
        for command in (("show",), ("export",), ("cap", "--data=a", "--epsilon=1", "--delta=0", "--reason=x")):
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
        connection.execute("DROP TRIGGER entry_stays")
        connection.execute("UPDATE entry SET text = replace(text, 'blood', 'sweat')")
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
        assert "must have schema 1; got 9" in failed.stderr

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
            (summary,) = (one for one in ledger.summarise() if one.fingerprint == PATIENTS)
            assert summary.cap == Budget(epsilon=2, delta=1e-5, unit=Unit.RECORD)
            assert "the board agreed" in list(ledger.export())[-1]

    def test_below_what_is_spent_says_what_follows(self, invoke: Invoke, path: Path) -> None:
        done = set_cap(invoke, path, epsilon="0.1")
        assert done.exit_code == 0
        assert "every further release is refused" in done.stdout

    def test_a_data_set_can_be_capped_before_its_first_job(self, invoke: Invoke, path: Path) -> None:
        done = set_cap(invoke, path, data="C7" * 32)
        assert done.exit_code == 0
        assert "Nothing has been released from it yet" in done.stdout

    @pytest.mark.parametrize(
        ("wrong", "message"),
        [
            ({"data": "a"}, "'a' fits 2"),
            ({"data": "ff"}, "'ff' fits 0"),
            ({"data": ""}, "must fit one data set"),
            ({"epsilon": 0}, "epsilon must lie between 1e-06 and 1e+06; got 0"),
            ({"epsilon": "nan"}, "epsilon must lie between"),
            ({"delta": 1}, "delta must be at least 0 and less than 1; got 1"),
            ({"reason": " "}, "must come with a reason"),
            ({"unit": "family"}, "must be record or client; got 'family'"),
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
