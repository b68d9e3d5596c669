"""A small job on disk, and a way to run commands."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from cloister.cli import app

Invoke = Callable[..., Result]

JOB = """\
name = "small"
[protocol]
name = "masked-sum-count"
iterations = 4
[clusters]
k = 2
[columns]
age = { low = 18, high = 95 }
bmi = { low = 14, high = 60 }
[[parties]]
name = "north"
data = "north.csv"
[[parties]]
name = "harbour"
data = "harbour.csv"
[[parties]]
name = "valley"
data = "valley.csv"
"""


@pytest.fixture
def invoke() -> Invoke:
    runner = CliRunner()
    return lambda *arguments: runner.invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def pictures() -> None:
    """Asks for real pictures."""


@pytest.fixture(autouse=True)
def _draw_nothing(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """To draw takes longer than all else that most of these commands do."""
    if "pictures" not in request.fixturenames:
        monkeypatch.setattr("cloister.report.picture.draw_picture", lambda *result, **options: b"no picture")


@pytest.fixture
def job_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three parties with 40 records each, in the working directory."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(11)
    for party in ("north", "harbour", "valley"):
        ages = np.where(rng.random(40) < 0.5, rng.normal(30, 3, 40), rng.normal(70, 3, 40))
        rows = [f"{age:.6f},{bmi:.6f}" for age, bmi in zip(ages, rng.normal(25, 2, 40), strict=True)]
        (tmp_path / f"{party}.csv").write_text("age,bmi\n" + "\n".join(rows) + "\n")
    path = tmp_path / "job.toml"
    path.write_text(JOB)
    return path
