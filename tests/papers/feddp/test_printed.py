"""The transcribed numbers are consistent, and those of the text where it is available."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from papers.feddp import printed


@pytest.fixture(scope="module")
def paper(read_text: Callable[[str], str]) -> str:
    return read_text("002")


@pytest.mark.parametrize("table", [printed.TABLE_2, printed.TABLE_3, printed.TABLE_4, printed.TABLE_5])
def test_shares_add_up_to_one(table: dict[str, tuple[float, ...]]) -> None:
    for row in table.values():
        assert sum(row) == pytest.approx(1.0, abs=0.011)  # of rounded numbers


def test_tables_of_one_level_have_the_same_data() -> None:
    assert list(printed.TABLE_1) == list(printed.TABLE_2) == list(printed.TABLE_4)
    assert list(printed.TABLE_3) == list(printed.TABLE_5)


@pytest.mark.parametrize("split", [printed.RECOMMENDED_RECORD, printed.RECOMMENDED_CLIENT])
def test_a_recommended_split_spends_everything(split: tuple[float, ...]) -> None:
    assert sum(split) == pytest.approx(1.0)


def read_rows(paper: str, caption: str) -> dict[str, tuple[float, ...]]:
    """The rows of the table that stands above a caption; line numbers of the review copy go."""
    rows: dict[str, tuple[float, ...]] = {}
    for line in reversed(paper[: paper.index(caption)].splitlines()[-18:]):
        cells = [cell.strip() for cell in line.split("\t") if cell.strip()]
        if cells and re.fullmatch(r"\d{4}", cells[0]):
            cells = cells[1:]
        if cells and cells[0] == "Dataset":
            return rows
        if len(cells) > 1:
            rows[cells[0]] = tuple(float(cell) for cell in cells[1:])
    raise AssertionError("no table above the caption")


@pytest.mark.parametrize(
    ("caption", "table"),
    [
        ("Table 2: ", printed.TABLE_2),
        ("Table 3: ", printed.TABLE_3),
        ("Table 4: ", printed.TABLE_4),
        ("Table 5: ", printed.TABLE_5),
    ],
)
def test_tables(paper: str, caption: str, table: dict[str, tuple[float, ...]]) -> None:
    assert read_rows(paper, caption) == table


def test_table_1(paper: str) -> None:
    assert {name: row[0] for name, row in read_rows(paper, "Table 1: ").items()} == printed.TABLE_1


def test_the_recommended_splits(paper: str) -> None:
    squeezed = re.sub(r"\s+", " ", paper)
    for split in (printed.RECOMMENDED_RECORD, printed.RECOMMENDED_CLIENT):
        assert f"proportions [{', '.join(f'{share:g}' for share in split)}]" in squeezed


def test_sentences_are_in_the_text(paper: str) -> None:
    squeezed = re.sub(r"\s+", " ", paper.replace("*", ""))
    for sentence in printed.SENTENCES:
        assert sentence in squeezed, sentence
