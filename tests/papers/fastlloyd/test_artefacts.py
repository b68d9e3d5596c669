"""Every artefact is made, with its columns; the same scope gives the same files; what is missing is said."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from papers.fastlloyd import PAPER
from papers.fastlloyd.datasets import Scope
from tests.papers.fastlloyd.conftest import make_tiny_scope
from tests.papers.reproduction import read_rows, reproduce

PICTURES = {"fig3", "fig4", "fig5", "fig6", "fig7", "fig8.5", "fig8.6", "fig8.7", "serverless"}
NAMES = [artefact.name for artefact in PAPER.artefacts]
LOSS_COLUMNS = ("data", "method", "guarantee", "epsilon", "nicv", "nicv_ci95", "runs", "infeasible", "authors_nicv")
COLUMNS = {
    "fig3": LOSS_COLUMNS,
    "fig4": ("empty_clusters", "authors_empty_clusters", *LOSS_COLUMNS),
    "fig7": LOSS_COLUMNS,
    "fig5": ("clusters", "dimensions", "method", "guarantee", "nicv"),
    "fig6": ("clusters", "dimensions", "method", "guarantee", "nicv"),
    "table3": ("cpu_ms", "noise_sampling_ms", "lan_ms", "total_ms", "bytes_all", "printed_ms", "printed_bytes"),
    **{f"table8.{n}": ("choice", "tnw", "best_count", "printed_image", "printed_best_count") for n in (2, 3, 4, 5)},
    **{f"table8.{n}": ("data", "lan_ms", "wan_ms", "printed_lan_ms", "printed_wan_ms") for n in (6, 7)},
    **{
        f"fig8.{n}": ("protocol", "setting", "guarantee", "epsilon", "silhouette", "silhouette_records")
        for n in (5, 6, 7)
    },
    "serverless": ("placement", "parties", "laplace_count_sd", "gaussian_count_sd", "laplace_nicv_s1"),
}


@pytest.fixture(scope="module")
def made(tiny: Scope, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("out") / "all"
    reproduce(PAPER, tiny, folder)
    return folder


def test_the_catalogue_has_everything_that_was_asked_for() -> None:
    assert set(NAMES) == set(COLUMNS)
    assert len(PAPER.artefacts) == 16


@pytest.mark.parametrize("name", NAMES)
def test_an_artefact_leaves_its_table_and_its_picture(made: Path, name: str) -> None:
    rows = read_rows(made, name)
    assert rows
    assert set(COLUMNS[name]) <= set(rows[0])
    picture = made / f"{name}.png"
    assert picture.exists() == (name in PICTURES)
    if picture.exists():
        assert picture.read_bytes().startswith(b"\x89PNG")
        assert picture.stat().st_size > 10_000


def test_the_summary_has_every_title(made: Path) -> None:
    text = (made / "summary.txt").read_text(encoding="utf-8")
    assert text.startswith("FastLloyd and the thesis, reproduced. Tiny.")
    for artefact in PAPER.artefacts:
        assert artefact.title in text
    assert max(map(len, text.splitlines())) <= 100


def test_figure_3_has_every_method_at_every_epsilon_and_says_which_guarantee_fails(made: Path) -> None:
    rows = read_rows(made, "fig3")
    guarantees = {(row["method"], row["guarantee"]) for row in rows}
    assert guarantees == {
        ("fastlloyd-published", "fails"),
        ("csulloyd", "fails"),
        ("sulloyd", "holds, n public"),
        ("sulloyd-folded", "holds, n public"),
        ("cloister-fastlloyd", "holds"),
        ("lloyd", "no privacy"),
        ("constrained-lloyd", "no privacy"),
    }
    assert {row["data"] for row in rows} == {"iris", "s1", "birch2", "lsun", "house", "adult"}
    assert len(rows) == 6 * (5 * 2 + 2)
    assert all(float(row["nicv"]) > 0 for row in rows)


def test_figure_4_is_made_of_figure_3s_runs(made: Path) -> None:
    of_birch2 = [row for row in read_rows(made, "fig3") if row["data"] == "birch2"]
    assert read_rows(made, "fig4") == of_birch2


def test_a_flow_without_a_solution_is_counted(made: Path) -> None:
    constrained = [row for row in read_rows(made, "fig7") if row["method"].endswith("-distance")]
    assert any(int(row["infeasible"]) > 0 for row in constrained)
    for row in constrained:
        assert (row["nicv"] == "") == (row["infeasible"] == row["runs"])


def test_table_8_2_has_27_rows_and_its_best_counts_share_three_places_a_set(made: Path) -> None:
    rows = read_rows(made, "table8.2")
    assert len({row["choice"] for row in rows}) == 27
    assert sum(int(row["best_count"]) for row in rows) == 3 * 5
    assert sum(row["printed_s1"] != "" for row in rows) == 13


def test_tnw_is_the_average_loss_a_record(made: Path) -> None:
    sizes = {"s1": 240, "house": 120, "iris": 90, "adult": 200, "birch2": 500}
    for row in read_rows(made, "table8.4"):
        mean = sum(float(row[f"wcss_{name}"]) / size for name, size in sizes.items()) / 5
        assert float(row["tnw"]) == pytest.approx(mean, rel=1e-6)


def test_the_set_image_is_named_and_left_empty(made: Path) -> None:
    image = next(row for row in read_rows(made, "table8.6") if row["data"] == "image")
    assert image["lan_ms"] == ""
    assert image["printed_lan_ms"] == "75"
    assert "image (not available)" in (made / "summary.txt").read_text(encoding="utf-8")


def test_a_wide_network_adds_its_round_trip(made: Path) -> None:
    for row in read_rows(made, "table8.7"):
        if row["lan_ms"]:
            assert float(row["wan_ms"]) - float(row["lan_ms"]) == pytest.approx(99.0, abs=1e-4)
            assert float(row["lan_ms"]) == pytest.approx(float(row["cpu_ms"]) + 1.0, abs=1e-4)


def test_noise_without_a_server_grows_as_the_formula_says(made: Path) -> None:
    sd = {
        (row["placement"], int(row["parties"])): float(row["laplace_count_sd"]) for row in read_rows(made, "serverless")
    }
    for parties in (2, 3, 5, 10, 30, 100):
        assert sd["aggregator", parties] == pytest.approx(sd["aggregator", 2])
        assert sd["joint", parties] == pytest.approx(sd["aggregator", 2], rel=1e-6)  # a scale is rounded up
        assert sd["local", parties] == pytest.approx(math.sqrt(parties) * sd["aggregator", parties])
        # Shares of n - t honest parties are the noise: all n together have n / (n - t) of its variance.
        all_but_one = math.sqrt(parties / (parties - 1)) * sd["aggregator", parties]
        assert sd["shared-all-but-1", parties] == pytest.approx(all_but_one, rel=1e-6)
        assert (
            sd["shared-all-but-1", parties]
            <= sd["shared-2/3", parties]
            <= sd["shared-1/2", parties]
            <= sd["local", parties]
        )


def test_files_do_not_depend_on_processes_or_on_the_time(tiny: Scope, made: Path, tmp_path: Path) -> None:
    reproduce(PAPER, tiny, tmp_path / "again", ["fig4"], processes=2)
    for name in ("fig4.csv", "fig4.png"):
        assert (tmp_path / "again" / name).read_bytes() == (made / name).read_bytes()


def test_a_missing_file_is_named_and_the_rest_is_made(tiny: Scope, tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    for name in ("iris", "s1"):
        (folder / f"{name}.txt").write_bytes((tiny.data / f"{name}.txt").read_bytes())  # type: ignore[operator]
    text = reproduce(PAPER, make_tiny_scope(folder), tmp_path / "out", ["fig3", "fig4"])
    assert "adult: left out" in text
    assert f"{folder / 'birch2.txt'}"[-12:] in text.replace("\n  ", " ")
    assert {row["data"] for row in read_rows(tmp_path / "out", "fig3")} == {"iris", "s1"}
    assert read_rows(tmp_path / "out", "fig4") == []
    assert not (tmp_path / "out" / "fig4.png").exists()


def test_without_any_data_folder_what_is_drawn_is_still_made(tmp_path: Path) -> None:
    text = reproduce(PAPER, make_tiny_scope(None), tmp_path, ["serverless"])
    assert "no data folder was found" in text
    assert all(row["laplace_nicv_s1"] == "" for row in read_rows(tmp_path, "serverless"))


def test_peers_are_put_beside_ours_where_the_whole_set_is_used(tiny: Scope, tmp_path: Path) -> None:
    root = tmp_path / "shared"
    (root / "peers").mkdir(parents=True)
    (root / "data").mkdir()
    (root / "data" / "birch2.txt").write_bytes((tiny.data / "birch2.txt").read_bytes())  # type: ignore[operator]
    (root / "peers" / "fastlloyd_and_dp_peers.csv").write_text(
        "dataset,method,eps,mean_nicv,ci95,empty,ms_per_iter,runs,T,median_nicv\n"
        "birch2,sulloyd_old,0.5,0.125,0.1,7.00,,20,2,0.1\n"
        "birch2,lloyd_old,0.0,0.5,0.1,3.00,,20,7,0.1\n"
    )
    scope = make_tiny_scope(root / "data")
    reproduce(PAPER, scope, tmp_path / "out", ["fig4"])
    found = {(row["method"], row["epsilon"]): row["authors_nicv"] for row in read_rows(tmp_path / "out", "fig4")}
    assert found["sulloyd", "0.5"] == "0.125"
    assert found["lloyd", ""] == "0.5"
    assert found["sulloyd", "1"] == ""
