"""Census files of folktables' shape become states as clients and related people at the server (FedDP-KMeans G.1)."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from cloister.crypto import Stream
from cloister.errors import ConfigError, DataError
from papers.data.census import FEATURES, find_state_files, load_census

HEADER = ("RT", "SERIALNO", "AGEP", "COW", "SCHL", "MAR", "OCCP", "POBP", "RELP", "WKHP", "SEX", "RAC1P", "PINCP",
          "PWGTP", "NAICSP")  # fmt: skip
CODES = {"SCHL": 24, "MAR": 5, "OCCP": 40, "POBP": 30, "RELP": 17, "SEX": 2, "RAC1P": 9}


def person(rng: np.random.Generator, **given: object) -> dict[str, object]:
    made: dict[str, object] = {name: int(rng.integers(1, most + 1)) for name, most in CODES.items()}
    made |= {"RT": "P", "SERIALNO": "2018GQ0000001", "NAICSP": "6241", "AGEP": int(rng.integers(17, 90))}
    made |= {"COW": int(rng.integers(1, 9)), "WKHP": 40, "PINCP": 30_000, "PWGTP": 12}
    return made | given


def write_state(folder: Path, code: int, people: list[dict[str, object]]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"psam_p{code:02d}.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, HEADER)
        writer.writeheader()
        writer.writerows(people)


def write_census(folder: Path, states: int = 3, people: int = 120, seed: int = 1) -> Path:
    """Also used by the tests of the reproduction."""
    rng = np.random.default_rng(seed)
    for code in range(1, states + 1):
        write_state(folder, code, [person(rng) for _ in range(people)])
    return folder


def load(folder: Path, employment: str = "federal", **sizes: int):
    sizes = {"server_same": 5, "server_other": 30} | sizes
    return load_census(folder, employment, Stream.from_seed(1, "server"), **sizes)  # type: ignore[arg-type]


def test_every_record_has_one_code_of_each_feature(tmp_path: Path) -> None:
    found = load(write_census(tmp_path))
    assert set(np.unique(found.points)) == {0.0, 1.0}
    for points in (found.points, found.server_points):
        assert points.shape[1] == len(found.names)
        for feature in FEATURES:
            columns = [number for number, name in enumerate(found.names) if name.startswith(f"{feature}=")]
            assert (points[:, columns].sum(axis=1) == 1).all()
    assert np.linalg.norm(found.points, axis=1) == pytest.approx(np.full(len(found.points), 7**0.5))  # Table 1: 2.65


def test_clients_are_states_and_hold_one_employment_type(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    # the schooling tells the state, the marital status the employment type
    for state in (1, 2):
        people = [person(rng, COW=5, SCHL=state, MAR=1) for _ in range(10 * state)]
        people += [person(rng, COW=3, SCHL=9, MAR=2) for _ in range(20)]
        write_state(tmp_path, state, people)
    found = load(tmp_path, server_same=4)
    assert len(found.points) == 30 - 4
    assert len(found.clients) == 2
    np.testing.assert_array_equal(np.sort(np.concatenate(found.clients)), np.arange(26))
    for state, rows in enumerate(found.clients, start=1):
        assert found.points[rows][:, found.names.index(f"SCHL={state}")].all()
    assert found.points[:, found.names.index("MAR=1")].all()
    assert found.server_points[:, found.names.index("MAR=1")].tolist() == [1.0] * 4 + [0.0] * 30


def test_who_does_not_count_for_acsincome_is_left_out(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    people = [person(rng, COW=5) for _ in range(12)]
    out = ({"AGEP": 16}, {"PINCP": 100}, {"PINCP": ""}, {"WKHP": 0}, {"WKHP": ""}, {"PWGTP": 0})
    people += [person(rng, COW=5, **given) for given in out]
    people += [person(rng, COW=1), person(rng, COW="")]  # an unknown type is nobody's
    write_state(tmp_path, 1, people)
    found = load(tmp_path, server_same=2, server_other=1)
    assert len(found.points) == 10
    with pytest.raises(DataError, match="must get 2 records of other employment types; there are 1"):
        load(tmp_path, server_same=2, server_other=2)


def test_a_code_that_does_not_apply_is_a_code(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    write_state(tmp_path, 1, [person(rng, COW=5, OCCP="") for _ in range(8)] + [person(rng, COW=1) for _ in range(5)])
    found = load(tmp_path, server_same=1, server_other=1)
    assert found.points[:, found.names.index("OCCP=0")].all()


def test_the_folder_given_to_folktables_is_found(tmp_path: Path) -> None:
    write_census(tmp_path / "2018" / "1-Year", states=2)
    assert [path.name for path in find_state_files(tmp_path)] == ["psam_p01.csv", "psam_p02.csv"]


def test_the_same_stream_gives_the_same_server(tmp_path: Path) -> None:
    write_census(tmp_path)
    one, two = load(tmp_path), load(tmp_path)
    np.testing.assert_array_equal(one.server_points, two.server_points)
    other = load_census(tmp_path, "federal", Stream.from_seed(2, "server"), server_same=5, server_other=30)
    assert not np.array_equal(one.server_points, other.server_points)


def test_what_is_wrong_is_said_without_a_value(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="must hold folktables' files"):
        load(tmp_path)
    with pytest.raises(ConfigError, match="employment must be one of not-for-profit, federal, self-employed"):
        load(tmp_path, "private")
    rng = np.random.default_rng(6)
    write_state(tmp_path, 1, [person(rng, COW=5, OCCP="secret")])
    with pytest.raises(DataError, match="column 'OCCP': 1 cell is not a number") as caught:
        load(tmp_path)
    assert "secret" not in str(caught.value)
    write_state(tmp_path, 1, [person(rng, COW=5, OCCP=12.5)])
    with pytest.raises(DataError, match="codes must be whole numbers"):
        load(tmp_path)
