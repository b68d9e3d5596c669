"""``cloister run`` and ``cloister demo``: the folder, the report, and how they fail."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.conftest import JOB, Invoke

from cloister import sessions
from cloister.errors import CloisterError, ConfigError
from cloister.report import folder as folder_module
from cloister.report import read_result

PROGRAM = [sys.executable, "-c", "from cloister.cli import main; main()"]


def test_a_run_leaves_a_report_and_a_folder(invoke: Invoke, job_file: Path) -> None:
    done = invoke("run", job_file, "--seed", 7)
    assert done.exit_code == 0, done.output
    result = read_result("result-small")
    assert sorted(path.name for path in Path("result-small").iterdir()) == [
        "centres.csv",
        "centres.npz",
        "job.toml",
        "picture.png",
        "result.json",
    ]
    assert (result.name, result.protocol, result.rounds) == ("small", "masked-sum-count", 4)
    assert sorted(round(age, -1) for age in result.centres[:, 0]) == [30, 70]
    assert result.evaluation is not None
    assert result.evaluation.ratio == pytest.approx(1, abs=1e-3)
    for words in (
        "Centres, in original units",
        "Who learned what",
        "What breaks it",
        "Traffic",
        "harbour",
        "picture.png",
    ):
        assert words in done.stdout
    assert 1 <= len(done.stderr.splitlines()) <= 25, "progress, as plain lines"


def test_a_job_without_a_protocol_is_private(invoke: Invoke, job_file: Path) -> None:
    job_file.write_text(
        JOB.replace('[protocol]\nname = "masked-sum-count"\niterations = 4\n', "[budget]\nepsilon = 4.0\n")
        + "[synopsis]\ncells_max = 64\n"
    )
    done = invoke("run", job_file)
    assert done.exit_code == 0, done.output
    result = read_result("result-small")
    assert result.protocol == "synopsis"
    assert result.card is not None
    assert result.card.private
    assert (result.card.budget_epsilon, result.card.budget_delta) == (4.0, 1e-6)
    assert len(result.sizes.clusters) == 2
    text = " ".join(done.stdout.split())
    for words in (
        "Privacy card",
        "Who could remove it",
        "± is one standard deviation",
        "protocol synopsis",
        "adds a share",
    ):
        assert words in text
    assert "WARNING" not in text, "the parties add the noise"
    assert "unit scaling, where a column runs" not in done.stdout, "rounds of a synopsis have scales of their own"


def test_a_seed_repeats_the_run_and_options_beat_the_file(invoke: Invoke, job_file: Path) -> None:
    for out in ("a", "b"):
        done = invoke("run", job_file, "--out", out, "--seed", 7, "--network", "thesis-WAN", "--quiet")
        assert done.exit_code == 0, done.output
        assert done.stdout.splitlines() == [str(Path(out).resolve())]
        assert done.stderr == ""
    first, second = read_result("a"), read_result("b")
    assert first.seeded
    assert any("seed" in note for note in first.notes)
    assert first.transcript_sha256 == second.transcript_sha256
    assert first.network is not None
    assert first.network.model == "thesis-WAN"
    assert (Path("a") / "centres.npz").read_bytes() == (Path("b") / "centres.npz").read_bytes()


def test_long_runs_print_about_twenty_lines_of_progress(invoke: Invoke, job_file: Path) -> None:
    job_file.write_text(JOB.replace("iterations = 4", "iterations = 150"))
    done = invoke("run", job_file)
    assert done.exit_code == 0, done.output
    assert 10 <= len(done.stderr.splitlines()) <= 25


def test_an_occupied_folder_is_refused_before_the_run(
    invoke: Invoke, job_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert invoke("run", job_file, "--quiet").exit_code == 0
    assert not read_result("result-small").seeded
    with monkeypatch.context() as patch:
        patch.setattr(sessions, "simulate", lambda *_, **__: pytest.fail("the run was started"))
        refused = invoke("run", job_file)
    assert refused.exit_code == 2
    assert "--overwrite" in refused.stderr
    assert invoke("run", job_file, "--overwrite", "--quiet").exit_code == 0


@pytest.mark.usefixtures("pictures")
def test_records_are_drawn_only_on_request(invoke: Invoke, job_file: Path) -> None:
    plain = invoke("run", job_file, "--out", "plain", "--seed", 1)
    drawn = invoke("run", job_file, "--out", "drawn", "--seed", 1, "--draw-records")
    assert "as private as their tables" in drawn.stderr
    assert "as private as their tables" not in plain.stderr
    assert Path("plain/picture.png").read_bytes() != Path("drawn/picture.png").read_bytes()


@pytest.mark.usefixtures("pictures")
def test_without_matplotlib_there_is_a_result_and_a_line_about_the_picture(
    invoke: Invoke, job_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    done = invoke("run", job_file)
    assert done.exit_code == 0
    assert "no picture" in done.stderr
    assert not Path("result-small/picture.png").exists()


@pytest.mark.parametrize(
    ("old", "new", "exit_code", "words"),
    [
        ("high = 95", "high = 9", 2, "job.toml:8: columns.age.high"),
        ('"valley.csv"', '"nowhere.csv"', 8, "'valley' is not"),
        ("[clusters]", '[network]\nmodel = "LAN501"\n[clusters]', 2, "LAN500"),
        ('name = "masked-sum-count"\n', "", 2, "job.toml:3: protocol.iterations must come with the protocol"),
        (
            "iterations = 4",
            "iterations = 4\nassignment = 'constrained-exclusive'\nsize_min = 30\nsize_max = 40",
            8,
            "is not. Its owner alone is told why",
        ),
    ],
)
def test_failures_have_their_exit_code_and_leave_nothing(
    old: str, new: str, exit_code: int, words: str, invoke: Invoke, job_file: Path
) -> None:
    job_file.write_text(JOB.replace(old, new))
    before = sorted(job_file.parent.iterdir())
    done = invoke("run", job_file)
    assert done.exit_code == exit_code, done.output
    message = done.stderr.splitlines()[-1]
    assert message.startswith("cloister: ")
    assert words in message
    assert "Traceback" not in done.output
    assert sorted(job_file.parent.iterdir()) == before


@pytest.mark.parametrize(
    ("error", "exit_code", "words"),
    [
        (ValueError("CANARY 4711.25"), 70, "ValueError: this is a bug"),
        (KeyboardInterrupt(), 130, "stopped"),
        (MemoryError(), 70, "memory"),
        (CloisterError("as it is"), 1, "as it is"),
    ],
)
def test_unexpected_errors_show_their_type_and_no_text(
    error: BaseException,
    exit_code: int,
    words: str,
    invoke: Invoke,
    job_file: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(sessions, "simulate", fail)
    done = invoke("run", job_file)
    assert done.exit_code == exit_code
    assert words in done.stderr
    assert "CANARY" not in done.output
    assert not Path("result-small").exists()
    monkeypatch.setenv("CLOISTER_TRACEBACK", "1")
    assert "Traceback" in invoke("run", job_file).stderr


def test_an_interrupt_stops_the_program_and_leaves_nothing(job_file: Path) -> None:
    job_file.write_text(JOB.replace("iterations = 4", "iterations = 10000"))
    before = sorted(job_file.parent.iterdir())
    with subprocess.Popen([*PROGRAM, "run", str(job_file)], stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        first = process.stderr.readline()
        process.send_signal(signal.SIGINT)
        rest = process.stderr.read()
        assert process.wait(30) == 130, first + rest
    assert rest.splitlines()[-1] == "cloister: stopped"
    assert sorted(job_file.parent.iterdir()) == before


def test_a_closed_pipe_ends_quietly() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run([*PROGRAM, "networks"], stdout=writing, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writing)
    assert done.returncode == 1
    assert done.stderr == ""


def test_help_names_the_commands_and_the_exit_codes(invoke: Invoke) -> None:
    shown = invoke("--help").stdout
    for words in ("run", "init", "predict", "demo", "networks", "130  stopped", "3  a party's table is wrong"):
        assert words in shown
    for error in CloisterError.__subclasses__():
        assert f"  {error.exit_code}  " in shown


def test_the_version_and_the_networks_are_listed(invoke: Invoke) -> None:
    assert invoke("--version").stdout.startswith("cloister 0.")
    listed = invoke("networks").stdout
    for name in ("LAN500", "regWAN100", "crpWAN500", "fastlloyd-LAN", "thesis-WAN"):
        assert name in listed


def test_the_demo_runs_twice_and_its_next_command_works(
    invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        done = invoke("demo")
        assert done.exit_code == 0, done.output
    document = json.loads(Path("cloister-demo/result.json").read_text())
    assert [party["name"] for party in document["parties"]] == ["north", "harbour", "valley"]
    assert (document["protocol"], document["card"]["private"]) == ("synopsis", True)
    assert len(re.findall(r"^  cluster \d +[\d,]+ ± [\d,]+ ", done.stdout, re.MULTILINE)) == 4
    command = done.stdout.splitlines()[-1].split()
    assert command[:2] == ["cloister", "predict"]
    assert invoke(*command[1:]).exit_code == 0
    assert len(Path("labels.csv").read_text().splitlines()) == 5001


def test_a_folder_that_cannot_be_written_is_refused_before_the_run(
    invoke: Invoke, job_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "simulate", lambda *_, **__: pytest.fail("the run was started"))
    (job_file.parent / "file").write_text("")
    refused = invoke("run", job_file, "--out", "file/result")
    assert refused.exit_code == 2
    assert "must be writable" in refused.stderr


def test_a_result_is_printed_even_if_it_can_no_longer_be_written(
    invoke: Invoke, job_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full_disk(*_: object, **__: object) -> Path:
        raise ConfigError("the result folder must be writable; the disk is full.")

    monkeypatch.setattr(folder_module, "write_result", full_disk)
    done = invoke("run", job_file)
    assert done.exit_code == 2
    assert "Centres, in original units" in done.stdout


def test_parties_may_keep_their_own_sides_in_files_of_their_own(invoke: Invoke, job_file: Path) -> None:
    assert invoke("run", job_file, "--seed", 7, "--out", "whole", "--quiet").exit_code == 0
    own = []
    for party in ("north", "harbour", "valley"):
        Path(f"{party}.toml").write_text(f'data = "{party}.csv"\n')
        own += ["--own", f"{party}={party}.toml"]
    job_file.write_text("".join(line for line in JOB.splitlines(keepends=True) if not line.startswith("data = ")))
    done = invoke("run", job_file, "--seed", 7, "--out", "parted", "--quiet", *own)
    assert done.exit_code == 0, done.output
    assert read_result("parted").transcript_sha256 == read_result("whole").transcript_sha256
    assert invoke("plan", job_file).exit_code == 0
    for options, words in (
        ((), "party 'north' must have a table"),
        (own[:4], "parties[2] must have the key data"),
        (("--own", "north"), "--own must be NAME=FILE"),
        (("--own", "nroth=north.toml"), 'got "nroth"'),
        (("--own", "north=none.toml"), "none.toml: No such file"),
    ):
        refused = invoke("run", job_file, "--out", "refused", *options)
        assert (refused.exit_code, words in refused.stderr) == (2, True), refused.output
