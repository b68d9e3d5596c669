"""``cloister check``, ``join`` and ``verify``: before a session between organisations, and after it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from tests.agreement.test_record import RunOnDisk
from tests.cli.conftest import Invoke

from cloister.agreement import check_consent, read_consent
from cloister.cli.check import Checklist, run_checks
from cloister.credentials import load_keys
from cloister.errors import RefusedError
from cloister.jobfile import load_job
from cloister.privacy.ledger import Ledger
from cloister.privacy.units import Budget
from cloister.report.layout import make_console


@pytest.fixture
def place(invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A job between three clinics, on the disk of one of them."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    keys = tmp_path / "data" / "cloister" / "keys"
    options: list[object] = ["--coordinator", keys / "hub.pub", "--address", "localhost:7400"]
    for name in ("north", "harbour", "valley", "hub"):
        assert invoke("keys", "new", name).exit_code == 0
        options += [] if name == "hub" else ["--pub", keys / f"{name}.pub"]
    (tmp_path / "patients.csv").write_text("age,bmi\n" + "".join(f"{a},{30}\n" for a in (20, 40, 60, 222)))
    assert invoke("init", "patients.csv", "-k", "2", *options).exit_code == 0
    job = tmp_path / "job.toml"
    job.write_text(job.read_text().replace("= {}", "= { low = 0, high = 100 }"))
    (tmp_path / "own.toml").write_text('data = "patients.csv"\ndataset = "patients"\n')
    return tmp_path


def lines_of(output: str) -> dict[str, str]:
    """The outcome of each check, by its name."""
    rows = [line.split(maxsplit=1) for line in output.splitlines() if line.startswith("  ")]
    return {row[1].partition(":")[0]: row[0] for row in rows if len(row) == 2}


def check(invoke: Invoke, *more: object, keys: str = "north"):
    return invoke("check", "job.toml", "--keys", keys, "--own", "own.toml", *more)


def join(invoke: Invoke, *more: object, keys: str = "north"):
    return invoke("join", "job.toml", "--keys", keys, "--own", "own.toml", *more)


class TestJoin:
    def test_shows_everything_and_records_the_consent(self, invoke: Invoke, place: Path) -> None:
        shown = join(invoke, "--yes")
        assert shown.exit_code == 0, shown.output
        job, held = load_job(place / "job.toml"), load_keys(place / "data" / "cloister" / "keys" / "north.key")
        for part in (
            job.digest.hex(),
            *(str(party.identity) for party in job.parties),
            "north (you)",
            "age",
            "Epsilon 1 at delta 1e-06, for any one record",
            "the coordinator   nothing of",
            "Withstands: ",
            "Breaks if: ",
            "Proved in docs/proofs/synopsis.md",
            "Policy: none",
            "data set 'patients' in",
            "which would be made",
            "epsilon 0 before, 1 after this job",
        ):
            assert part in shown.stdout, part
        consent = read_consent(place / "north.consent")
        check_consent(consent, held.public.identity, job, "north")
        assert not (place / "data" / "cloister" / "north.ledger").exists()

    @pytest.mark.parametrize(("answer", "agreed"), [("y\n", True), ("n\n", False), ("\n", False), ("", False)])
    def test_asks(self, invoke: Invoke, place: Path, answer: str, agreed: bool) -> None:
        from typer.testing import CliRunner

        from cloister.cli import app

        asked = CliRunner().invoke(app, ["join", "job.toml", "--keys", "north", "--own", "own.toml"], input=answer)
        assert (asked.exit_code == 0) == agreed
        assert (place / "north.consent").exists() == agreed

    def test_shows_the_ledger_before_and_after_and_changes_nothing(self, invoke: Invoke, place: Path) -> None:
        path = place / "data" / "cloister" / "north.ledger"
        with Ledger(path) as ledger:
            ledger.set_cap("patients", Budget(epsilon=0.5, delta=1e-6), reason="test")
        before = path.read_bytes()
        shown = join(invoke, "--yes")
        assert "Cap on this data set: epsilon 0.5" in shown.stdout
        assert "THE LEDGER WOULD REFUSE THE JOB" in shown.stdout
        assert path.read_bytes() == before

    def test_a_policy_that_does_not_allow_the_job_is_not_asked_about(self, invoke: Invoke, place: Path) -> None:
        (place / "data" / "cloister" / "policy.toml").write_text("epsilon_max = 0.5")
        refused = join(invoke, "--yes")
        assert refused.exit_code == 16
        assert "epsilon_max = 0.5: budget.epsilon must be at most that; got 1" in refused.stderr
        assert not (place / "north.consent").exists()
        (place / "own.toml").write_text('data = "patients.csv"\npolicy = "mine.toml"\n')
        (place / "mine.toml").write_text("epsilon_max = 2")
        assert "mine.toml" in join(invoke, "--yes").stdout

    def test_a_policy_is_kept_by_what_runs_in_the_jobs_place_too(self, invoke: Invoke, place: Path) -> None:
        """Without server data, FedDP-KMeans gives way to the synopsis; allowing one is not allowing the other."""
        job = place / "job.toml"
        job.write_text(job.read_text().replace("# [protocol]", '[protocol]\nname = "feddp"'))
        (place / "data" / "cloister" / "policy.toml").write_text('protocols = ["feddp"]')
        refused = join(invoke, "--yes")
        assert refused.exit_code == 16
        assert 'protocol.name must be one of those; got "synopsis"' in refused.stderr

    def test_who_is_not_in_the_job_and_the_coordinator_have_nothing_to_agree_to(
        self, invoke: Invoke, place: Path
    ) -> None:
        invoke("keys", "new", "mallory")
        for keys in ("mallory", "hub"):
            assert join(invoke, "--yes", keys=keys).exit_code == 2
        assert not list(place.glob("*.consent"))

    def test_a_job_without_identities_is_for_simulations(self, invoke: Invoke, place: Path) -> None:
        text = (place / "job.toml").read_text()
        text = "\n".join(line for line in text.splitlines() if not line.startswith(("identity", "[coord", "address")))
        (place / "job.toml").write_text(text)
        refused = join(invoke, "--yes")
        assert refused.exit_code == 2
        assert "must name the identity" in refused.stderr


class TestCheck:
    @pytest.fixture(autouse=True)
    def _answer(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A coordinator that answers; tests/deployment tries real ones."""
        monkeypatch.setattr("cloister.deployment.reach.reach_coordinator", lambda *_: "answers")

    def test_tries_everything_and_changes_nothing(self, invoke: Invoke, place: Path) -> None:
        before = {path: path.stat().st_mtime_ns for path in place.rglob("*")}
        tried = check(invoke)
        assert tried.exit_code == 0, tried.output
        assert "FAILED" not in tried.stdout
        assert "4 records, for your eyes only; values outside the bounds were moved onto them: age 1" in tried.stdout
        assert "none yet: cloister join" in tried.stdout
        assert {path: path.stat().st_mtime_ns for path in place.rglob("*")} == before

    @pytest.mark.parametrize(
        ("spoil", "failed", "code"),
        [
            ("job.toml:k = 2:k = 0", "job", 2),
            ("own.toml:patients.csv:nobody.csv", "own table", 3),
            ("patients.csv:20,30:20,x", "own table", 3),
            ("own.toml:dataset:datasat", "own side and policy", 2),
            ("data/cloister/keys/hub.pub:cloister_public_key:x", "public files", 15),
            ("data/cloister/keys/north.key:cloister_private_keys:x", "keys", 15),
            ("job.toml:localhost:# localhost", "job", 2),
        ],
    )
    def test_says_what_is_wrong_and_goes_on(
        self, invoke: Invoke, place: Path, spoil: str, failed: str, code: int
    ) -> None:
        name, old, new = spoil.split(":")
        path = place / name
        path.write_text(path.read_text().replace(old, new))
        tried = check(invoke)
        assert tried.exit_code == code, tried.output
        outcomes = lines_of(tried.stdout)
        assert [what for what, outcome in outcomes.items() if outcome == "FAILED"] == [failed]
        assert outcomes["job"] in ("ok", "FAILED")
        assert set(outcomes) >= {"job", "keys", "own table", "ledger", "coordinator"}

    def test_a_ledger_that_would_refuse_is_found(self, invoke: Invoke, place: Path) -> None:
        with Ledger(place / "data" / "cloister" / "north.ledger") as ledger:
            ledger.set_cap(None, Budget(epsilon=0.5, delta=1e-6), reason="test")
        tried = check(invoke)
        assert tried.exit_code == 10
        assert lines_of(tried.stdout)["ledger"] == "FAILED"

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
    def test_a_ledger_that_cannot_be_made_is_found(self, invoke: Invoke, place: Path) -> None:
        (place / "locked").mkdir(mode=0o500)
        (place / "own.toml").write_text('data = "patients.csv"\nledger = "locked/north.ledger"\n')
        assert check(invoke).exit_code == 11

    def test_a_damaged_ledger_is_found(self, invoke: Invoke, place: Path) -> None:
        (place / "data" / "cloister" / "north.ledger").write_bytes(b"no ledger")
        assert check(invoke).exit_code == 11

    def test_a_policy_that_refuses_is_found(self, invoke: Invoke, place: Path) -> None:
        (place / "data" / "cloister" / "policy.toml").write_text("parties_min = 4")
        tried = check(invoke)
        assert tried.exit_code == 16
        assert lines_of(tried.stdout)["own side and policy"] == "FAILED"

    def test_a_consent_that_was_used_up_or_is_for_another_job_is_found(self, invoke: Invoke, place: Path) -> None:
        join(invoke, "--yes")
        assert "is good for one run" in check(invoke).stdout
        (place / "job.toml").write_text((place / "job.toml").read_text().replace("k = 2", "k = 3"))
        assert check(invoke).exit_code == 16

    def test_the_coordinator_checks_what_it_needs(self, invoke: Invoke, place: Path) -> None:
        tried = invoke("check", "job.toml", "--keys", "hub")
        assert tried.exit_code == 0, tried.output
        assert "of north, harbour, valley" in tried.stdout
        (place / "data" / "cloister" / "keys" / "valley.pub").unlink()
        assert invoke("check", "job.toml", "--keys", "hub").exit_code == 15

    def test_reaches_the_coordinator_with_what_it_is_given(self, place: Path) -> None:
        """The transport is passed in: it gets our keys, the coordinator's file and the address, and nothing of ours."""
        console, seen = make_console(), []

        def reach(job, held, hub, address):
            seen.append((job.name, held.public.name, hub.name, address))
            return "version 0.1.0"

        options = ("north", Path("own.toml"), None, None, None)
        assert run_checks(Checklist(console), Path("job.toml"), *options, reach=reach) is None
        assert seen == [(place.name, "north", "hub", "localhost:7400")]

        def refuse(job, held, hub, address):
            raise RefusedError("not today.")

        failure = run_checks(Checklist(console), Path("job.toml"), *options, reach=refuse)
        assert isinstance(failure, RefusedError)


class TestVerify:
    @pytest.fixture
    def run(self, tmp_path: Path) -> RunOnDisk:
        return RunOnDisk(tmp_path)

    def test_a_true_record_is_proved(self, invoke: Invoke, run: RunOnDisk, tmp_path: Path) -> None:
        (tmp_path / "job.toml").write_text(run.text)
        told = invoke("verify", run.folder, "--job", tmp_path / "job.toml", "--ledger", run.ledger)
        assert told.exit_code == 0, told.output
        assert "refuted" not in told.stdout
        assert "not shown" not in told.stdout
        assert "north says that it took part in run" in told.stdout

    def test_what_is_not_shown_is_said(self, invoke: Invoke, run: RunOnDisk) -> None:
        told = invoke("verify", run.folder)
        assert told.exit_code == 0
        assert "not shown the job is the one that you know: compare its identities" in told.stdout
        assert "no ledger was given: --ledger" in told.stdout

    def test_a_lie_ends_with_an_exit_code_of_its_own(self, invoke: Invoke, run: RunOnDisk) -> None:
        path = run.folder / "session.json"
        changed = json.loads(path.read_text())
        changed["record"]["outcome"] = "withdrew"
        path.write_text(json.dumps(changed))
        told = invoke("verify", run.folder)
        assert told.exit_code == 18
        assert "refuted   the record is signed by the identity of north in the job" in told.stdout

    def test_a_simulation_has_nothing_to_verify(self, invoke: Invoke, tmp_path: Path) -> None:
        told = invoke("verify", tmp_path)
        assert told.exit_code == 2
        assert "Simulations leave none" in told.stderr
