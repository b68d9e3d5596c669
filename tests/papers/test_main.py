"""``python -m papers``: what it prints and writes, and how it fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from papers.data.files import ENVIRONMENT
from papers.fastlloyd.loss_figures import EmptyFigure
from papers.lab import paper
from tests.papers.conftest import Command
from tests.papers.fastlloyd.conftest import write_files


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_files(tmp_path / "shared" / "data")


def test_fastlloyd_leaves_files_and_prints_the_summary(command: Command, data: Path) -> None:
    done = command("fastlloyd", "--quick", "--runs", 2, "--only", "fig8.7, fig4", "--data", data, "--out", "out")
    assert done.exit_code == 0, done.output
    assert {path.name for path in Path("out").iterdir()} == {
        "fig4.csv", "fig4.png", "fig8.7.csv", "fig8.7.png", "summary.txt",
    }  # fmt: skip
    assert "Figure 4: empty clusters of birch2" in done.stdout
    assert "around 15 %" in done.stdout
    assert "left out" not in done.stdout
    assert "5 files in out" in done.stdout
    assert done.stdout.startswith("FastLloyd and the thesis, reproduced.")
    assert "] fig4" in done.stderr


def test_secfc_leaves_files_and_prints_the_summary(command: Command) -> None:
    done = command("secfc", "--quick", "--only", "table3", "--out", "out")
    assert done.exit_code == 0, done.output
    assert {path.name for path in Path("out").iterdir()} == {"table3.csv", "table3.png", "summary.txt"}
    assert done.stdout.startswith("SecFC, reproduced. A quick look")
    assert "Table 3: accuracy on rotated digits" in done.stdout
    assert "99.5 ± 0.1" in done.stdout
    assert "] table3" in done.stderr


def test_feddp_leaves_files_and_prints_the_summary(command: Command) -> None:
    done = command("feddp", "--quick", "--only", "fig3,fig7")
    assert done.exit_code == 0, done.output
    written = {path.name for path in Path("feddp-reproduction").iterdir()}
    assert written == {"fig3.csv", "fig7.csv", "summary.txt"}
    assert done.stdout.startswith("FedDP-KMeans, reproduced. A quick look")
    assert "3 files in feddp-reproduction" in done.stdout


def test_data_is_found_through_the_environment(command: Command, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENVIRONMENT, str(data))
    done = command("fastlloyd", "--quick", "--runs", 2, "--only", "fig8.7")
    assert done.exit_code == 0, done.output
    assert "left out" not in done.stdout


def test_without_data_it_says_where_to_get_it(command: Command) -> None:
    done = command("fastlloyd", "--quick", "--runs", 2, "--only", "fig4")
    words = " ".join(done.stdout.split())
    assert done.exit_code == 0, done.output
    assert "birch2: left out, no data folder was found. Give their folder with --data or CLOISTER_DATA." in words
    assert "birch2 and house from the clustering basic benchmark" in words


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("fastlloyd", "--only", "fig3,fig9"), "got fig9. Known are: fig3, fig4, fig5, fig6, fig7, table3, table8.2"),
        (("secfc", "--only", "table1,fig9"), "got fig9. Known are: table1, table2, table3, fig1"),
        (("feddp", "--only", "table1"), "got table1. Known are: fig1, fig2"),
        (("secfc", "--only", ""), "got none. Known are"),
        (("feddp", "--runs", "1"), "--runs must be at least 2"),
        (("fastlloyd", "--processes", "0", "--only", "serverless"), "--processes must be at least 1"),
        (("secfc", "--data", "nowhere"), "CLOISTER_DATA must be a folder with data sets; nowhere is not one"),
        (("vertical",), "'vertical' is not one of"),
    ],
)
def test_wrong_options_are_refused(command: Command, arguments: tuple[str, ...], words: str) -> None:
    done = command(*arguments)
    assert done.exit_code == 2
    assert words in done.stderr
    assert not Path("fastlloyd-reproduction").joinpath("fig3.csv").exists()


@pytest.mark.parametrize(
    ("name", "folder", "words"),
    [
        ("secfc", "mnist", "must hold train-images-idx3-ubyte"),
        ("feddp", "folktables", "must hold folktables' files"),
    ],
)
def test_a_data_set_that_is_there_but_not_whole_is_refused_before_the_runs(
    command: Command, tmp_path: Path, name: str, folder: str, words: str
) -> None:
    (tmp_path / folder).mkdir()
    done = command(name, "--data", tmp_path)
    assert done.exit_code == 3
    assert words in done.stderr


def test_an_output_folder_that_cannot_be_is_refused_before_the_runs(command: Command, data: Path) -> None:
    Path("file").write_text("")
    done = command("fastlloyd", "--only", "fig3", "--data", data, "--out", "file")
    assert done.exit_code == 2
    assert "--out must be a folder" in done.stderr


@pytest.mark.parametrize(
    ("name", "package", "extra"),
    [
        ("secfc", "matplotlib", "report"),
        ("fastlloyd", "ortools", "papers"),
        ("feddp", "dp_accounting", "papers"),
    ],
)
def test_a_missing_package_is_named_with_its_extra_before_the_runs(
    command: Command, monkeypatch: pytest.MonkeyPatch, name: str, package: str, extra: str
) -> None:
    monkeypatch.setattr(paper, "find_spec", lambda found: None if found == package else object())
    done = command(name)
    assert done.exit_code == 9
    assert f"cloister[{extra}]" in done.stderr


def test_what_is_finished_stays_when_it_is_stopped(
    command: Command, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(self: EmptyFigure, scope: object, lab: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(EmptyFigure, "make", stop)
    done = command("fastlloyd", "--quick", "--runs", 2, "--only", "fig3,fig4", "--data", data, "--out", "out")
    assert done.exit_code == 130
    assert "stopped" in done.stderr
    assert Path("out/fig3.csv").stat().st_size > 1000
    assert not Path("out/fig4.csv").exists()
