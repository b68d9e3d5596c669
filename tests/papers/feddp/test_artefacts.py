"""Figures and Tables 2 to 5 are made, with their columns; real data where it is given; what is missing is said."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from papers.feddp import PAPER
from papers.feddp.scope import Scope
from papers.feddp.trials import Score, Trial, TrialLab, score_trial
from tests.papers.data.test_census import write_census
from tests.papers.data.test_questions import write_questions
from tests.papers.feddp.test_comparison import write as write_peers
from tests.papers.reproduction import read_rows, reproduce

_USUAL = Scope()
TINY = Scope(
    runs=2,
    epsilons=(0.5, 4.0),
    steps=(0, 1),
    baseline_steps=(1,),
    record_splits=_USUAL.record_splits[:2],
    client_splits=_USUAL.client_splits[:2],
    silo_clients=4,
    silo_records=60,
    device_clients=(12, 14, 16),
    device_records=15,
    dimensions=12,
    server_other=30,
    note="Tiny.",
)
MIXTURES = {
    "fig1": "Gaussian Mixture (4 clients of 60)",
    "fig2": "Gaussian Mixture (14 clients of 15)",
    "fig5": "Gaussian Mixture (12 clients of 15)",
    "fig6": "Gaussian Mixture (16 clients of 15)",
}
REAL_ONLY = ("fig3", "fig4", "fig7", "fig8", "fig9")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    reproduce(PAPER, TINY, folder)
    return folder


def test_the_catalogue_has_all_figures_and_tables() -> None:
    assert [artefact.name for artefact in PAPER.artefacts] == [
        *(f"fig{number}" for number in range(1, 10)),
        *(f"table{number}" for number in range(2, 6)),
    ]


@pytest.mark.parametrize("name", list(MIXTURES))
def test_a_figure_has_every_method_at_every_epsilon(made: Path, name: str) -> None:
    rows = read_rows(made, name)
    assert {row["data"] for row in rows} == {MIXTURES[name]}
    assert {row["level"] for row in rows} == {"record" if name == "fig1" else "client"}
    settings = {
        "cloister": 1, "synopsis": 1, "published": 2 * 2, "server-lloyds": 1, "server-kmeans++": 1, "sphere-packing": 1
    }  # fmt: skip
    for method, count in settings.items():
        own = [row for row in rows if row["method"] == method]
        assert [row["epsilon"] for row in own] == ["0.5"] * count + ["4"] * count
        assert {row["guarantee"] for row in own} == {"holds"}
        assert {row["runs"] for row in own} == {"2"}
        assert 1 <= sum(int(row["pareto"]) for row in own) <= 2
    for method, runs in (("k-fed", "2"), ("optimal", "1")):
        (row,) = (row for row in rows if row["method"] == method)
        assert (row["guarantee"], row["epsilon"], row["runs"]) == ("no privacy", "", runs)
    assert (made / f"{name}.png").read_bytes().startswith(b"\x89PNG")


def test_excess_is_over_the_optimum_and_costs_are_positive(made: Path) -> None:
    rows = read_rows(made, "fig1")
    (optimum,) = (float(row["cost"]) for row in rows if row["method"] == "optimal")
    for row in rows:
        assert float(row["excess"]) == pytest.approx(float(row["cost"]) - optimum, abs=1e-5)
        assert float(row["cpu_s"]) >= 0
        assert 0 <= float(row["accuracy"]) <= 1


def test_published_settings_are_the_splits_and_steps_that_were_asked_for(made: Path) -> None:
    rows = [row for row in read_rows(made, "fig1") if row["method"] == "published" and row["epsilon"] == "4"]
    found = {(row["lloyd_steps"], row["split_projection"], row["split_counts"]) for row in rows}
    assert found == {(steps, *split) for steps in "01" for split in (("0.2", "0.15"), ("0.1", "0.1"))}


@pytest.mark.parametrize("name", REAL_ONLY)
def test_a_figure_of_real_data_is_left_out_with_a_word(made: Path, name: str) -> None:
    assert read_rows(made, name) == []
    assert not (made / f"{name}.png").exists()
    words = " ".join((made / "summary.txt").read_text(encoding="utf-8").split())
    assert "into the folder folktables" in words
    assert "into the folder stackoverflow" in words


@pytest.mark.parametrize(("name", "printed"), [("table2", 4), ("table3", 7), ("table4", 4), ("table5", 7)])
def test_a_table_has_our_rows_and_the_printed_ones(made: Path, name: str, printed: int) -> None:
    rows = read_rows(made, name)
    columns = [column for column in rows[0] if column != "data" and not column.startswith("printed_")]
    ours = [row for row in rows if row[columns[0]]]
    assert len(ours) == (1 if name in ("table2", "table4") else 3)
    for row in ours:
        assert sum(float(row[column]) for column in columns) == pytest.approx(1.0)
    assert sum(bool(row[f"printed_{columns[0]}"]) for row in rows) == printed
    assert len(rows) == len(ours) + printed


def test_tables_are_the_means_of_the_front(made: Path) -> None:
    front = [row for row in read_rows(made, "fig1") if row["method"] == "published" and row["pareto"] == "1"]
    shares = [sum(float(row[f"split_{name}"]) for row in front) / len(front) for name in ("projection", "counts")]
    (row,) = (row for row in read_rows(made, "table2") if row["data"] == MIXTURES["fig1"])
    assert [float(row["eps_1"]), float(row["eps_3L"])] == pytest.approx(shares)
    steps = sum(row["lloyd_steps"] == "1" for row in front) / len(front)
    (row,) = (row for row in read_rows(made, "table4") if row["data"] == MIXTURES["fig1"])
    assert float(row["steps_1"]) == pytest.approx(steps)


def test_the_summary_says_that_k_fed_has_no_privacy_and_fits_the_page(made: Path) -> None:
    text = (made / "summary.txt").read_text(encoding="utf-8")
    assert text.startswith("FedDP-KMeans, reproduced. Tiny.")
    assert "k-FED: This result as a whole is not differentially private" in " ".join(text.split())
    assert max(map(len, text.splitlines())) <= 100
    for artefact in PAPER.artefacts:
        assert artefact.title in " ".join(text.split())


def test_results_do_not_depend_on_processes(made: Path, tmp_path: Path) -> None:
    reproduce(PAPER, TINY, tmp_path, ["fig5"], processes=2)
    for one, two in zip(read_rows(tmp_path, "fig5"), read_rows(made, "fig5"), strict=True):
        assert one | {"cpu_s": ""} == two | {"cpu_s": ""}


def test_real_data_is_run_where_it_is_given(tmp_path: Path) -> None:
    write_census(tmp_path / "folktables", people=250)
    write_questions(tmp_path / "stackoverflow")
    scope = replace(
        TINY,
        data=tmp_path,
        epsilons=(2.0,),
        steps=(0,),
        record_splits=TINY.record_splits[:1],
        client_splits=TINY.client_splits[:1],
    )
    text = reproduce(PAPER, scope, tmp_path / "out", ["fig1", "fig4", "table4"])
    assert {row["data"] for row in read_rows(tmp_path / "out", "fig1")} == {
        MIXTURES["fig1"],
        "US Census (Federal Employees)",
    }
    census = read_rows(tmp_path / "out", "fig4")
    assert {row["data"] for row in census} == {"US Census (Self-Employed)"}
    assert {row["accuracy"] for row in census} == {""}
    assert sum(bool(row["steps_0"]) for row in read_rows(tmp_path / "out", "table4")) == 4
    assert "left out" not in text
    reproduce(PAPER, scope, tmp_path / "more", ["fig2"])
    assert "Stack Overflow (github, pdf)" in {row["data"] for row in read_rows(tmp_path / "more", "fig2")}


class Pretended(TrialLab):
    """A lab that has run everything: the optimum costs 50, all else 51."""

    def __init__(self) -> None:
        super().__init__(score_trial, order=str, together=1, steps=0, executor=None, on_progress=lambda progress: None)

    def score(self, trial: Trial) -> Score:
        return Score(cost=50.0 if trial.method == "optimal" else 51.0 + trial.run, accuracy=0.5, cpu_s=1.0)


def test_the_authors_numbers_stand_beside_ours_of_the_same_size(tmp_path: Path) -> None:
    row = "official,data,{},1.0,0,0,0,50.5,{},,"
    write_peers(tmp_path / "peers", row.format("FedDP-KMeans-fixedsens", 0.51), row.format("FedDP-KMeans", 0.23))
    scope = replace(_USUAL, data=tmp_path / "data")
    figure = next(artefact for artefact in PAPER.artefacts if artefact.name == "fig1")
    product = figure.make(scope, Pretended())
    place = product.table.columns.index
    published = [
        row for row in product.table.rows if row[place("method")] == "published" and row[place("epsilon")] == 1
    ]
    assert {(row[place("authors_excess")], row[place("as_shipped_excess")]) for row in published} == {(0.51, 0.23)}
    shown = {row[0]: row for row in product.summary.rows}
    at = product.summary.columns.index("1")
    assert shown["  authors' code, corrected"][at] == "0.51"
    assert shown["  authors' code, as shipped"][at] == "0.23"
    assert shown["FedDP-KMeans, as published"][at] == "2"  # the mean of 51, 52 and 53, above 50
    assert shown["Optimal (no privacy)"][1] == "50.00"
    other = figure.make(replace(scope, silo_records=200), Pretended())
    assert {row[place("authors_excess")] for row in other.table.rows} == {None}


def test_runs_replace_the_number_of_runs() -> None:
    scope = PAPER.choose_scope(None, quick=True, runs=7)
    assert scope.runs == 7
    assert "All with 7 runs" in scope.note
    assert PAPER.choose_scope(None).runs == 3
