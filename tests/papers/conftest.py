"""The command line of ``python -m papers`` in a folder of its own, and the papers' texts where they are available."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from papers.__main__ import app
from papers.data.files import ENVIRONMENT

Command = Callable[..., Result]
TEXTS = Path(__file__).parents[3] / "shared" / "seeds"


@pytest.fixture(scope="session")
def read_text() -> Callable[[str], str]:
    """Read the text whose file begins with a number; tests of transcriptions against it are skipped without."""

    def read(number: str) -> str:
        found = sorted(TEXTS.glob(f"{number}_*.txt"))
        if not found:
            pytest.skip(f"the papers' texts are not beside the checkout: {TEXTS}")
        return found[0].read_text(encoding="utf-8")

    return read


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """Run it where no data is found unless the test names some."""
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.delenv(ENVIRONMENT, raising=False)
    monkeypatch.setattr("papers.data.files._BESIDE", tmp_path / "nowhere")

    def invoke(paper: str, *arguments: object) -> Result:
        return CliRunner().invoke(app, [paper, "--processes", "1", *map(str, arguments)])

    return invoke
