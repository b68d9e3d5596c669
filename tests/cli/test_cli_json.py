"""``--json``, ``-h`` and shell completion: what programs and shells are told."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from tests.cli.conftest import Invoke

from cloister.cli import app
from cloister.data import sample_folder
from cloister.jobfile import load_job, parse_job
from cloister.report import read_result

JOB = sample_folder("clinics") / "job.toml"
TELLS_NOTHING = {"init", "export"}
"""``init`` writes a file for people; ``ledger export`` is lines of JSON already."""


def list_commands(group: Any, *names: str) -> Iterator[tuple[str, ...]]:
    """Yield every command's words."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from list_commands(command, *names, name)
        else:
            yield (*names, name)


COMMANDS = list(list_commands(typer.main.get_command(app)))


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_every_command_has_short_help_and_prints_json(words: tuple[str, ...], invoke: Invoke) -> None:
    short = invoke(*words, "-h")
    assert short.exit_code == 0
    assert short.stdout == invoke(*words, "--help").stdout
    assert ("--json" in short.stdout) is (words[-1] not in TELLS_NOTHING)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_complete_commands_and_options(shell: str) -> None:
    def complete(text: str) -> str:
        environment = {**os.environ, "_CLOISTER_COMPLETE": f"complete_{shell}"}
        environment |= {"COMP_WORDS": text, "COMP_CWORD": str(text.count(" ")), "_TYPER_COMPLETE_ARGS": text}
        environment |= {"_TYPER_COMPLETE_FISH_ACTION": "get-args"}
        line = [sys.executable, "-c", "import sys; sys.argv[0] = 'cloister'; from cloister.cli import main; main()"]
        return subprocess.run(line, env=environment, capture_output=True, text=True, check=False).stdout

    assert "ledger" in complete("cloister le")
    assert "--overwrite" in complete("cloister run --ov")


def test_a_run_says_its_result_its_folder_and_its_ledgers(invoke: Invoke, tmp_path: Path) -> None:
    done = invoke("run", JOB, "--out", tmp_path / "r", "--json", "--quiet")
    assert done.exit_code == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["folder"] == str(tmp_path / "r")
    assert told["result"] == json.loads((tmp_path / "r" / "result.json").read_text())
    assert told["loss"] is None
    assert told["ledgers"]["north"]["after"] == pytest.approx(1, rel=1e-6)
    assert invoke("ledger", "show", "north").exit_code == 0  # it was closed
    # What was agreed and what was found can be read without Cloister, and are those of the job.
    assert load_job(tmp_path / "r" / "job.toml").digest == load_job(JOB).digest
    assert ".csv" not in (tmp_path / "r" / "job.toml").read_text()
    lines = (tmp_path / "r" / "centres.csv").read_text().splitlines()
    assert len(lines) == 1 + read_result(tmp_path / "r").k


def test_a_loss_is_told_only_where_it_was_asked_for_or_nothing_is_private(invoke: Invoke, tmp_path: Path) -> None:
    asked = json.loads(invoke("run", JOB, "--out", tmp_path / "a", "--json", "--loss", "--quiet").stdout)
    assert asked["loss"]["loss"] > 0
    assert asked["result"]["evaluation"] is None
    exact = JOB.read_text().replace("[budget]\nepsilon = 1.0", '[protocol]\nname = "masked-sum-count"')
    assert parse_job(exact).budget is None
    path = tmp_path / "job.toml"
    path.write_text(exact.replace('data = "', f'data = "{JOB.parent}/'))
    plain = json.loads(invoke("run", path, "--out", tmp_path / "b", "--json", "--quiet").stdout)
    assert plain["loss"]["loss"] > 0


def test_ledgers_and_keys_as_json(invoke: Invoke) -> None:
    cap = ("--epsilon", 2, "--delta", 1e-6, "--reason", "x", "--new", "--json")
    assert json.loads(invoke("ledger", "cap", "north", *cap).stdout)["cap"]["epsilon"] == 2
    shown = json.loads(invoke("ledger", "show", "north", "--json").stdout)
    assert (shown["entries"], shown["data_sets"], shown["together"]["cap"]["epsilon"]) == (1, [], 2)
    made = json.loads(invoke("keys", "new", "north", "--json").stdout)
    assert json.loads(invoke("keys", "show", "north", "--json").stdout) == made
    public = json.loads(invoke("keys", "show", made["public"], "--json").stdout)
    assert public == {**made, "private": None, "public": None}


def test_the_command_that_sets_a_cap_can_be_pasted(invoke: Invoke, tmp_path: Path) -> None:
    assert invoke("run", JOB, "--out", tmp_path / "r", "--quiet").exit_code == 0
    shown = invoke("ledger", "show", "north").stdout
    (line,) = [line.strip() for line in shown.splitlines() if line.strip().startswith("cloister ledger cap")]
    program, *words = shlex.split(line)
    assert program == "cloister"
    done = invoke(*words)
    assert done.exit_code == 0, done.stderr
    assert "Cap: epsilon 2 at delta 1e-06 for one record." in done.stdout
    (again,) = [line.strip() for line in shown.splitlines() if "--head" in line]
    assert invoke(*shlex.split(again)[1:]).exit_code == 0
