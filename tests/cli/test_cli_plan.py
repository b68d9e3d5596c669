"""``cloister plan``: prints a plan, or JSON, without any table; and how it fails."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.conftest import JOB, Invoke

from cloister.cli import examine

PRIVATE = JOB.replace('[protocol]\nname = "masked-sum-count"\niterations = 4\n', "[budget]\nepsilon = 0.5\n")
PRIVATE += "[synopsis]\ncells_max = 256\n"


@pytest.fixture
def private_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A job whose tables do not exist."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "job.toml"
    path.write_text(PRIVATE)
    return path


def test_a_plan_needs_no_tables_and_leaves_no_files(invoke: Invoke, private_job: Path) -> None:
    done = invoke("plan", private_job, "--records", 2000, "--epsilon", "0.25,2", "--quick")
    assert done.exit_code == 0, done.output
    for words in (
        "small: a plan for 2 clusters over the records of 3 parties",
        "table was opened",
        "Protocol: synopsis",
        "What to expect of 2,000 records",
        "(job) 0.5",
        "Noise on a centre of average size, in original units",
        "bmi",
        "Traffic",
        "Advice",
    ):
        assert words in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 100
    assert list(private_job.parent.iterdir()) == [private_job]


def test_json_holds_the_whole_plan(invoke: Invoke, private_job: Path) -> None:
    done = invoke("plan", private_job, "--records", 1000, "--epsilon", "1", "--quick", "--json")
    assert done.exit_code == 0, done.output
    made = json.loads(done.stdout)
    assert (made["protocol"], made["records"], made["epsilon"]) == ("synopsis", [1000], 0.5)
    assert [case["epsilon"] for case in made["cases"]] == [0.5, 1.0]
    assert made["traffic"]["other"]["bytes_up"] > 8 * 256
    assert made["advice"]


def test_an_exact_job_is_planned_at_once(invoke: Invoke, private_job: Path) -> None:
    private_job.write_text(JOB)
    done = invoke("plan", private_job)
    assert done.exit_code == 0, done.output
    assert "Protocol: masked-sum-count" in done.stdout
    assert "Rounds: 4." in done.stdout
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--epsilon", "1,x"), "--epsilon must be numbers"),
        (("--epsilon", "0"), "epsilon must lie between"),
        (("--records", "1"), "records must be from"),
    ],
)
def test_wrong_options_are_refused(invoke: Invoke, private_job: Path, options: tuple[str, str], words: str) -> None:
    done = invoke("plan", private_job, *options)
    assert done.exit_code == 2
    assert words in done.stderr
    assert done.stdout == ""


def test_progress_is_shown_only_when_it_takes_a_while(
    invoke: Invoke, private_job: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ("plan", private_job, "--records", 500, "--epsilon", "1", "--quick")
    monkeypatch.setattr(examine, "_SILENT_S", 600.0)
    assert invoke(*command).stderr == ""
    monkeypatch.setattr(examine, "_SILENT_S", 0.0)
    shown = invoke(*command).stderr.splitlines()
    assert 1 <= len(shown) <= 25
    assert "500 records" in shown[0]
