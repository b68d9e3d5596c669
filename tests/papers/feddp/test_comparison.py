"""The front is what no other point beats; measurements of the authors' code stand beside mixtures of their own size."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloister.errors import DataError
from cloister.privacy.units import Unit
from papers.feddp.comparison import PEERS_FILE, find_front, load_peers
from papers.feddp.datasets import MixtureSet

POINTS = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=12)


def front(points: list[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    return find_front(points, epsilon=lambda point: point[0], cost=lambda point: point[1])


def beats(one: tuple[int, int], other: tuple[int, int]) -> bool:
    return one != other and one[0] <= other[0] and one[1] <= other[1]


@given(POINTS)
def test_a_point_is_in_the_front_exactly_if_none_beats_it(points: list[tuple[int, int]]) -> None:
    expected = {point for point in points if not any(beats(other, point) for other in points)}
    found = front(points)
    assert set(found) == expected
    assert len(found) == len(expected)
    assert list(found) == sorted(found)


def test_of_equal_points_the_first_is_kept() -> None:
    points = [(1, 2, "first"), (1, 2, "second")]
    assert find_front(points, epsilon=lambda p: p[0], cost=lambda p: p[1]) == ((1, 2, "first"),)


HEAD = "source,mode,method,eps_total,lloyd_steps,data_seed,seed,cost_per_point,excess_over_optimal,accuracy,time_s\n"
SILO = MixtureSet(clients=100, records_each=1000, unit=Unit.RECORD)


def write(folder: Path, *rows: str) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / PEERS_FILE).write_text(HEAD + "".join(f"{row}\n" for row in rows), encoding="utf-8")
    return folder


def test_the_best_number_of_steps_counts_by_its_mean(tmp_path: Path) -> None:
    peers = load_peers(
        write(
            tmp_path,
            "official,data,A,0.1,0,0,0,52,2.0,,",
            "official,data,A,0.1,0,0,1,54,4.0,,",
            "official,data,A,0.1,1,0,0,51,1.0,,",
            "official,data,A,0.1,1,0,1,59,9.0,,",
            "official,client,A,0.1,0,0,0,60,10.0,,",
            "official,data,B,inf,0,0,0,50,0.5,0.9,1.0",
        )
    )
    assert peers.find(SILO, "A", 0.1) == 3.0
    assert peers.find(SILO, "B", None) == 0.5
    assert peers.find(MixtureSet(clients=2000, records_each=50, unit=Unit.CLIENT), "A", 0.1) == 10.0


def test_nothing_stands_beside_what_was_not_measured(tmp_path: Path) -> None:
    peers = load_peers(write(tmp_path, "official,data,A,0.1,0,0,0,52,2.0,,"))
    assert peers.find(SILO, "A", 0.2) is None
    assert peers.find(SILO, "B", 0.1) is None
    assert peers.find(replace(SILO, records_each=200), "A", 0.1) is None
    assert load_peers(None).find(SILO, "A", 0.1) is None
    assert load_peers(tmp_path / "nowhere").find(SILO, "A", 0.1) is None


def test_a_broken_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / PEERS_FILE).write_text("mode,method\ndata,A\n", encoding="utf-8")
    with pytest.raises(DataError, match="must have the columns mode, method"):
        load_peers(tmp_path)
