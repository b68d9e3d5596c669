"""``cloister run`` with labels and ``cloister predict --job``, on the customers sample."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from tests.cli.conftest import Invoke

from cloister.data.samples.customers import write_customers


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sample's tables, and a job that grants the bank labels."""
    folder = tmp_path_factory.mktemp("customers")
    job = write_customers(folder)
    text = job.read_text().replace('name = "vertical"', 'name = "vertical"\nlabels = ["bank"]')
    job.write_text(text)
    (folder / "both.toml").write_text(text.replace('["bank"]', '["telco", "bank"]'))
    (folder / "nobody.toml").write_text(text.replace('["bank"]', "[]"))
    return folder


def read(path: Path) -> dict[str, str]:
    with path.open(newline="") as file:
        rows = list(csv.reader(file))
    assert rows[0] == ["customer", "label"]
    return dict(rows[1:])


def test_labels_of_a_run_and_of_a_prediction(invoke: Invoke, sample: Path, tmp_path: Path) -> None:
    result, out = tmp_path / "r", tmp_path / "labels"
    ran = invoke("run", sample / "job.toml", "--out", result)
    assert ran.exit_code == 0, ran.output
    assert sorted(path.name for path in result.glob("labels*")) == ["labels-bank.csv"]
    labels = read(result / "labels-bank.csv")
    assert len(labels) == 1200
    assert set(labels.values()) == {"0", "1", "2", "3"}
    # No customer's number is anywhere else: not in the result, not in what was printed.
    shown = ran.output + (result / "result.json").read_text()
    assert not any(customer in shown for customer in labels)
    assert "labels-bank.csv is for bank only" in ran.stderr
    assert "Labels are not" in " ".join(ran.stdout.split())

    done = invoke("predict", result, "--job", sample / "both.toml", "--out", out)
    assert done.exit_code == 0, done.output
    assert "not differentially private" in done.stderr
    assert read(out / "labels-bank.csv") == read(out / "labels-telco.csv") == labels
    assert all(path.stat().st_mode & 0o777 == 0o600 for path in out.iterdir())
    assert not any(customer in done.output for customer in labels)

    again = invoke("predict", result, "--job", sample / "both.toml", "--out", out)
    assert (again.exit_code, "which exists" in again.stderr) == (2, True)
    for arguments in ([], [sample / "bank.csv", "--job", sample / "both.toml"]):
        refused = invoke("predict", result, *arguments)
        assert refused.exit_code == 2
        assert "either TABLE or --job" in refused.stderr
    nobody = invoke("predict", result, "--job", sample / "nobody.toml", "--out", tmp_path / "none")
    assert nobody.exit_code == 2
    assert "who gets labels" in nobody.stderr
    assert not (tmp_path / "none").exists()
