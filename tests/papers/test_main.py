"""``cloister bench fastlloyd``: what it prints and writes, and how it fails."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from papers.__main__ import app as papers_app
from papers.fastlloyd import Scope
from papers.fastlloyd.empty_figure import EmptyFigure
from tests.papers.fastlloyd.conftest import write_files


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Run the command in a folder of its own, in one process."""
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    app = typer.Typer()
    app.add_typer(papers_app, name="bench")

    def invoke(*arguments: object) -> Result:
        every = ["bench", "fastlloyd", "--processes", "1", *map(str, arguments)]
        return CliRunner().invoke(app, every)

    return invoke


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_files(tmp_path / "shared" / "data")


def test_it_finds_the_data_beside_the_working_directory_and_leaves_files(bench, data: Path) -> None:
    done = bench("--quick", "--runs", 2, "--only", "fig8.7, fig4", "--out", "out")
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


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--only", "fig3,fig9"), "got fig9. Known are: fig3, fig4, fig5, fig6, fig7, table3, table8.2"),
        (("--only", ""), "got none. Known are"),
        (("--runs", "1"), "--runs must be at least 2"),
        (("--processes", "0", "--only", "serverless"), "--processes must be at least 1"),
        (("--data", "nowhere"), "--data must be a folder"),
    ],
)
def test_wrong_options_are_refused(bench, options: tuple[str, ...], words: str) -> None:
    done = bench(*options)
    assert done.exit_code == 2
    assert words in done.stderr
    assert not Path("fastlloyd-reproduction").joinpath("fig3.csv").exists()


def test_an_output_folder_that_cannot_be_is_refused_before_the_runs(bench, data: Path) -> None:
    Path("file").write_text("")
    done = bench("--only", "fig3", "--out", "file")
    assert done.exit_code == 2
    assert "--out must be a folder" in done.stderr


@pytest.mark.parametrize(
    ("package", "module", "extra"),
    [("matplotlib", "drawing", "report"), ("ortools", "production", "papers")],
)
def test_a_missing_package_is_named_with_its_extra_before_the_runs(
    bench, monkeypatch: pytest.MonkeyPatch, package: str, module: str, extra: str
) -> None:
    monkeypatch.setattr(f"papers.fastlloyd.{module}.find_spec", lambda name: None if name == package else object())
    done = bench("--only", "fig3")
    assert done.exit_code == 9
    assert f"cloister[{extra}]" in done.stderr


def test_what_is_finished_stays_when_it_is_stopped(bench, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(self: EmptyFigure, scope: Scope, lab: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(EmptyFigure, "make", stop)
    done = bench("--quick", "--runs", 2, "--only", "fig3,fig4", "--out", "out")
    assert done.exit_code == 130
    assert "stopped" in done.stderr
    assert Path("out/fig3.csv").stat().st_size > 1000
    assert not Path("out/fig4.csv").exists()
