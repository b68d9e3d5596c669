"""The transcribed numbers of FedDP-KMeans are those of the text, read again from the text."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from papers.feddp import printed

SEEDS = Path(__file__).parents[4] / "shared" / "seeds"
pytestmark = pytest.mark.skipif(not SEEDS.is_dir(), reason=f"the papers' texts are not here: {SEEDS}")


@pytest.fixture(scope="module")
def paper() -> str:
    return (SEEDS / "002_baaed074ce95c6f8.txt").read_text(encoding="utf-8")


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
        assert sum(split) == pytest.approx(1.0)


def test_sentences_are_in_the_text(paper: str) -> None:
    squeezed = re.sub(r"\s+", " ", paper.replace("*", ""))
    for sentence in printed.SENTENCES:
        assert sentence in squeezed, sentence
