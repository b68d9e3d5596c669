"""``cloister init``: a job file from a header, and not one byte of a record."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path

import pytest
from tests.cli.conftest import Invoke

from cloister.data.looking import read_header
from cloister.errors import ConfigError
from cloister.jobfile import parse_job, parse_setup


def write_table(folder: Path, header: str = 'age,"body, mass","a ""b"" = c"', name: str = "north.csv") -> Path:
    path = folder / name
    path.write_text(header + "\n" + "4711.25,60.5,1.5\n" * 40 + "4711.25,CANARY,1.5\n")
    return path


def test_the_job_stops_at_the_first_blank_and_runs_once_they_are_filled(invoke: Invoke, tmp_path: Path) -> None:
    out = tmp_path / "jobs" / "job.toml"
    out.parent.mkdir()
    done = invoke("init", write_table(tmp_path), "--out", out, "-k", 5, "--party", f"harbour={tmp_path / 'h.csv'}")
    assert done.exit_code == 0, done.output
    assert "Only the header" in done.stdout
    last = done.stdout.splitlines()[-1]
    assert last == f"Then: cloister plan {out}, which spends nothing; cloister run {out}"
    text = out.read_text()
    assert "4711" not in text + done.output
    assert "CANARY" not in text + done.output
    line = next(i for i, row in enumerate(text.splitlines(), 1) if row.startswith("age "))
    with pytest.raises(ConfigError, match=rf"^job\.toml:{line}: columns\.age .*Fill in low and high for column age"):
        parse_job(text, source_name="job.toml")
    setup = parse_setup(text.replace("= {}", "= { low = 0, high = 1 }"), folder=out.parent)
    job = setup.job
    assert [column.name for column in job.columns] == ["age", "body, mass", 'a "b" = c']
    assert {name: side.data for name, side in setup.own.items()} == {
        "north": out.parent / "../north.csv",
        "harbour": out.parent / "../h.csv",
    }
    assert job.k == 5
    assert job.protocol.name == "synopsis"
    assert job.budget is not None
    assert (job.budget.epsilon, job.budget.delta) == (1.0, 1e-6)


def test_one_party_gets_a_marked_second_one(invoke: Invoke, tmp_path: Path) -> None:
    out = tmp_path / "job.toml"
    done = invoke("init", write_table(tmp_path), "--out", out)
    assert "second party" in done.stdout
    assert [party["name"] for party in tomllib.loads(out.read_text())["parties"]] == ["north", "second"]
    assert "FILL IN the other party" in out.read_text()


def test_a_named_first_table_is_not_added_twice(invoke: Invoke, tmp_path: Path) -> None:
    table, out = write_table(tmp_path), tmp_path / "job.toml"
    invoke("init", table, "--out", out, "--party", f"N={table}", "--party", "H=h.csv")
    assert [party["name"] for party in tomllib.loads(out.read_text())["parties"]] == ["N", "H"]


def test_a_job_file_is_not_replaced_without_force(invoke: Invoke, tmp_path: Path) -> None:
    table, out = write_table(tmp_path), tmp_path / "job.toml"
    out.write_text("mine")
    refused = invoke("init", table, "--out", out)
    assert (refused.exit_code, out.read_text()) == (2, "mine")
    assert "--force" in refused.stderr
    assert invoke("init", table, "--out", out, "--force").exit_code == 0
    assert "mine" not in out.read_text().splitlines()


def test_nothing_behind_the_header_is_read(tmp_path: Path) -> None:
    """Read from a pipe: what was not taken is still in it."""
    reading, writing = os.pipe()
    os.write(writing, b"age,bmi\n4711,1\n")
    os.close(writing)
    table = tmp_path / "pipe.csv"
    table.symlink_to(f"/proc/self/fd/{reading}")
    assert read_header(table).names == ("age", "bmi")
    assert os.read(reading, 100) == b"4711,1\n"
    os.close(reading)


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ("4711.25,CANARY", "1 of its 2 cells are numbers"),
        ("age,,CANARY", "1 of 3 names are empty"),
        ("CANARY,age,CANARY", "1 repeat"),
        ('CANARY,"age', "closed quotes"),
        ("", "the file is empty"),
    ],
)
def test_a_first_line_that_is_no_header_is_refused_without_showing_it(
    header: str, message: str, invoke: Invoke, tmp_path: Path
) -> None:
    done = invoke("init", write_table(tmp_path, header), "--out", tmp_path / "job.toml")
    assert done.exit_code == 2
    assert message in done.stderr
    assert "CANARY" not in done.output
    assert "4711" not in done.output
    assert not (tmp_path / "job.toml").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing.csv"], "No such file"),
        (["table.xlsx"], "must be a .csv or .tsv file"),
        (["north.csv", "--party", "nofile"], "NAME=FILE"),
        (["north.csv", "--out", "no/such/folder/job.toml"], "No such file"),
    ],
)
def test_wrong_arguments_are_told(
    arguments: list[str], message: str, invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_table(tmp_path)
    done = invoke("init", *arguments)
    assert done.exit_code == 2
    assert message in done.stderr
    assert done.stderr.startswith("cloister: ")


def test_a_byte_order_mark_and_tabs_are_read(tmp_path: Path) -> None:
    table = tmp_path / "t.tsv"
    table.write_bytes(b"\xef\xbb\xbfage\tbody mass\r\n1\t2\r\n")
    assert read_header(table).names == ("age", "body mass")
