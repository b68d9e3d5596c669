"""Data is found where it is said to be; what is not as it should be is refused without a word of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from cloister.errors import ConfigError, DataError
from papers.data import files
from papers.data.files import ENVIRONMENT, find_data, read_measurements


@pytest.fixture
def beside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the default is."""
    monkeypatch.delenv(ENVIRONMENT, raising=False)
    monkeypatch.setattr(files, "_BESIDE", tmp_path / "beside")
    return tmp_path / "beside"


def test_what_is_given_comes_before_the_environment_and_that_before_the_default(
    beside: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert find_data() is None
    beside.mkdir()
    assert find_data() == beside
    for name in ("named", "given"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv(ENVIRONMENT, str(tmp_path / "named"))
    assert find_data() == tmp_path / "named"
    assert find_data(tmp_path / "given") == tmp_path / "given"


def test_a_folder_that_is_not_there_is_refused_with_where_to_get_the_data(beside: Path, tmp_path: Path) -> None:
    beside.mkdir()
    with pytest.raises(ConfigError, match="is not one") as caught:
        find_data(tmp_path / "other")
    assert "UCI" in str(caught.value)


def test_measurements_are_read_by_their_columns(tmp_path: Path) -> None:
    path = tmp_path / "peers.csv"
    assert read_measurements(path, "a and b", lambda row: float(row["a"])) == ()
    path.write_text("a,b\n1,2\n3,4\n")
    assert read_measurements(path, "a and b", lambda row: float(row["a"])) == (1.0, 3.0)
    for text in ("b\n2\n", "a\nsecret\n"):
        path.write_text(text)
        with pytest.raises(DataError, match="must have the columns a and b, with numbers") as caught:
            read_measurements(path, "a and b", lambda row: float(row["a"]))
        assert "secret" not in str(caught.value)
