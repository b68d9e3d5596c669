"""Tables 1 to 3 and figure 1 are made, with their columns; sessions are exact; what stands in is named."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cloister.crypto import Stream
from papers.data.partition import split_by_label
from papers.secfc import PAPER
from papers.secfc.datasets import Scope, Setting, TimedSize, load_study
from papers.secfc.sessions import Code, Job, time_session
from papers.secfc.time_figure import TimeFigure
from tests.papers.data.test_digits import write_mnist
from tests.papers.reproduction import read_rows, reproduce

TINY = Scope(
    runs=2,
    settings=(
        Setting(clusters=4, clients=5, records=200, local_clusters=(1, 2, 4)),
        Setting(clusters=9, clients=6, records=270, local_clusters=(3,)),
    ),
    digits=(3,),
    digit_clients=5,
    digit_local_clusters=(2,),
    sessions=2,
    timed_clients=(5, 7),
    timed_dimensions=(4,),
    timed_records=(200,),
    note="Tiny.",
)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    reproduce(PAPER, TINY, folder)
    return folder


@pytest.mark.parametrize("name", ["table1", "table2", "table3", "fig1"])
def test_every_artefact_leaves_a_table_and_a_picture(made: Path, name: str) -> None:
    assert read_rows(made, name)
    assert (made / f"{name}.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("name", ["table1", "table2", "table3"])
def test_every_cell_of_secfc_has_a_session_and_it_is_exact(made: Path, name: str) -> None:
    rows = read_rows(made, name)
    assert {row["method"] for row in rows} == {"centralised", "k-fed", "k-fed-repaired", "secfc"}
    for row in rows:
        expected = ("1", "1") if row["method"] == "secfc" else ("0", "0")
        assert (row["sessions"], row["sessions_exact"]) == expected
        assert row["runs"] == "2"
        assert 0 < float(row["accuracy_percent"]) <= 100


def test_secfc_does_not_depend_on_who_holds_what_and_k_fed_does(made: Path) -> None:
    rows = [row for row in read_rows(made, "table2") if row["clusters"] == "4"]
    found = {
        method: {(row["accuracy_percent"], row["rounds"]) for row in rows if row["method"] == method}
        for method in ("centralised", "secfc", "k-fed")
    }
    assert len(found["centralised"]) == len(found["secfc"]) == 1
    assert len(found["k-fed"]) == 3


def test_printed_numbers_stand_beside_ours_where_there_are_any(made: Path) -> None:
    rows = {
        (row["clusters"], row["local_clusters"], row["method"]): row["printed_percent"]
        for row in read_rows(made, "table2")
    }
    assert rows["4", "2", "k-fed"] == "86.6"
    assert rows["4", "2", "k-fed-repaired"] == ""
    assert rows["9", "3", "secfc"] == ""
    digits = read_rows(made, "table3")
    assert [row["printed_percent"] for row in digits if row["method"] == "secfc"] == ["98.1"]


def test_the_stand_in_is_named_as_such_everywhere(made: Path) -> None:
    assert {row["data"] for row in read_rows(made, "table3")} == {"digit 3, stand-in"}
    assert "NOT MNIST" in (made / "summary.txt").read_text(encoding="utf-8")


def test_mnist_is_read_where_it_is_given(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    images = np.zeros((30, 6, 6), dtype=np.uint8)
    images[:, 0] = rng.integers(150, 256, (30, 6))  # a bright upper edge: turns are easy to tell apart
    (tmp_path / "mnist").mkdir()
    write_mnist(tmp_path / "mnist", images, np.repeat([2, 3], 15).astype(np.uint8))
    scope = replace(TINY, data=tmp_path)
    text = reproduce(PAPER, scope, tmp_path / "out", ["table3"])
    rows = read_rows(tmp_path / "out", "table3")
    assert {row["data"] for row in rows} == {"digit 3, MNIST"}
    repaired = next(row for row in rows if row["method"] == "k-fed-repaired")
    assert float(repaired["accuracy_percent"]) == 100.0
    assert "NOT MNIST" not in text
    assert "all four rotations" in text


def test_accuracies_do_not_depend_on_processes(made: Path, tmp_path: Path) -> None:
    reproduce(PAPER, TINY, tmp_path, ["table3"], processes=2)
    for name in ("table3.csv", "table3.png"):
        assert (tmp_path / name).read_bytes() == (made / name).read_bytes()


def test_figure_1_has_every_size_and_times_of_real_sessions(made: Path) -> None:
    rows = read_rows(made, "fig1")
    sizes = [(row["axis"], row["clients"], row["dimensions"], row["records"], row["privacy"]) for row in rows]
    assert sizes == [
        ("clients", "5", "20", "1000", "2"),
        ("clients", "7", "20", "1000", "3"),
        ("dimensions", "10", "4", "1000", "4"),
        ("records", "10", "20", "200", "4"),
    ]
    for row in rows:
        times = [float(row[name]) for name in ("client_ms", "server_ms", "sharing_ms", "k_fed_ms")]
        assert min(times) > 0
        assert float(row["iteration_ms"]) == pytest.approx(times[0] + times[1])
        # k = 4 distances of 8 bytes for each record, and a small envelope
        assert 0 < int(row["upload_bytes"]) - 32 * int(row["records"]) < 100
    assert TimeFigure().count_sessions(TINY) == 8


def test_only_rounds_that_measure_every_centre_are_timed() -> None:
    size = TimedSize(clients=5, records=300, dimensions=4)
    study = load_study(replace(size.data, deviation=8.0))
    parts = split_by_label(study.components, 5, 2, Stream.from_seed(0, "parts"))
    job = Job(clusters=4, code=Code(privacy=2, segments=1), seed=1, union=False, rounds_max=6)
    cost = time_session(job, study.unit_points, parts)
    assert 1 <= len(cost.client_ms) == len(cost.server_ms) <= 6
    once = time_session(replace(job, rounds_max=1, separate_after=None), study.unit_points, parts)
    assert len(once.client_ms) == 1


def test_runs_replace_all_numbers_of_runs() -> None:
    scope = PAPER.choose_scope(None, quick=True, runs=7)
    assert (scope.runs, scope.sessions, scope.protocol_runs) == (7, 7, 1)
    assert "All with 7 runs" in scope.note
    assert PAPER.choose_scope(None).runs == 10
