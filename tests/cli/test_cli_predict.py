"""``cloister predict``: labels as CSV, whole files only, and a word about their privacy."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.conftest import Invoke
from tests.report.examples import make_result

from cloister.report.folder import write_result

HEADER = "hba1c,bmi,age,systolic_bp\n"


@pytest.fixture
def result_folder(tmp_path: Path) -> Path:
    return write_result(make_result(), tmp_path / "r")


def test_labels_go_to_standard_output_and_the_warning_does_not(
    invoke: Invoke, result_folder: Path, tmp_path: Path
) -> None:
    table = tmp_path / "new.csv"
    table.write_text(HEADER + "5.3,23,30,117\n10,24,28,121\n10,24,2,121\n")
    done = invoke("predict", result_folder, table)
    assert done.exit_code == 0, done.stderr
    assert done.stdout == "row,label\n1,0\n2,3\n3,3\n"
    assert "labels of private rows are as private as the rows" in done.stderr
    assert "age 1" in done.stderr


def test_a_file_is_written_whole_and_not_replaced_unasked(invoke: Invoke, result_folder: Path, tmp_path: Path) -> None:
    table, out = tmp_path / "new.csv", tmp_path / "labels.csv"
    table.write_text(HEADER + "5.3,23,30,117\n" * 70_000)
    assert invoke("predict", result_folder, table, "--out", out).exit_code == 0
    lines = out.read_text().splitlines()
    assert (len(lines), lines[-1]) == (70_001, "70000,0")
    out.write_text("mine")
    refused = invoke("predict", result_folder, table, "--out", out)
    assert (refused.exit_code, out.read_text()) == (2, "mine")
    assert invoke("predict", result_folder, table, "--out", out, "--overwrite").exit_code == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["labels.csv", "new.csv", "r"]


@pytest.mark.parametrize(
    ("rows", "exit_code"), [("CANARY,23,30,117\n", 3), ("4711.25,23,30\n", 3), ("4711.25,x,30,1\n", 3), ("", 3)]
)
def test_bad_tables_leave_nothing_and_show_nothing(
    rows: str, exit_code: int, invoke: Invoke, result_folder: Path, tmp_path: Path
) -> None:
    table, out = tmp_path / "new.csv", tmp_path / "labels.csv"
    table.write_text(HEADER + rows)
    done = invoke("predict", result_folder, table, "--out", out)
    assert done.exit_code == exit_code, done.output
    assert done.stderr.startswith("cloister: ")
    assert "CANARY" not in done.output
    assert "4711" not in done.output
    assert not out.exists()


def test_a_folder_that_is_no_result_is_refused(invoke: Invoke, tmp_path: Path) -> None:
    done = invoke("predict", tmp_path, tmp_path / "new.csv")
    assert done.exit_code == 2
    assert "result.json" in done.stderr


class TestWhatIsKeptBesideLabels:
    @pytest.fixture
    def table(self, tmp_path: Path) -> Path:
        path = tmp_path / "new.csv"
        path.write_text('patient,note,hba1c,bmi,age,systolic_bp\n007,"a, b",5.3,23,30,117\n\nx-1,,10,24,28,121\n')
        return path

    def test_an_id_is_kept_as_it_is_written(self, invoke: Invoke, result_folder: Path, table: Path) -> None:
        done = invoke("predict", result_folder, table, "--id", "patient")
        assert done.stdout == "patient,label\n007,0\nx-1,3\n", done.stderr
        missing = invoke("predict", result_folder, table, "--id", "person")
        assert missing.exit_code == 3

    def test_a_label_becomes_the_last_column_of_the_table(
        self, invoke: Invoke, result_folder: Path, table: Path
    ) -> None:
        done = invoke("predict", result_folder, table, "--append")
        header, first, second = done.stdout.splitlines()
        assert header == "patient,note,hba1c,bmi,age,systolic_bp,label"
        assert (first, second) == ('007,"a, b",5.3,23,30,117,0', "x-1,,10,24,28,121,3")
        tabs = table.with_suffix(".tsv")
        tabs.write_text("hba1c\tbmi\tage\tsystolic_bp\n5.3\t23\t30\t117\n")
        assert invoke("predict", result_folder, tabs, "--append").stdout.splitlines()[1] == "5.3\t23\t30\t117\t0"

    def test_a_column_of_labels_is_not_written_twice_nor_another_file_than_text(
        self, invoke: Invoke, result_folder: Path, table: Path, tmp_path: Path
    ) -> None:
        out = tmp_path / "out.csv"
        table.write_text("label,hba1c,bmi,age,systolic_bp\n9,5.3,23,30,117\n")
        refused = invoke("predict", result_folder, table, "--append", "--out", out)
        assert (refused.exit_code, out.exists()) == (2, False)
        assert "has one" in refused.stderr
        both = invoke("predict", result_folder, table, "--append", "--id", "label")
        assert both.exit_code == 2
        assert "got more than one" in both.stderr

    def test_as_json_it_says_what_was_written(
        self, invoke: Invoke, result_folder: Path, table: Path, tmp_path: Path
    ) -> None:
        table.write_text("hba1c,bmi,age,systolic_bp\n5.3,23,2,117\n")
        done = invoke("predict", result_folder, table, "--out", tmp_path / "out.csv", "--json")
        assert json.loads(done.stdout) == {"file": str(tmp_path / "out.csv"), "rows": 1, "clipped": {"age": 1}}
        assert "--out" in invoke("predict", result_folder, table, "--json").stderr
