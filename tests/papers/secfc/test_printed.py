"""The transcribed numbers are consistent, and those of the text where it is available."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from papers.secfc.printed import (
    DIGIT_COLUMNS,
    MIXTURE_COLUMNS,
    SENTENCES,
    TABLE_1,
    TABLE_2,
    TABLE_3,
    Column,
    find_printed,
)


@pytest.fixture(scope="module")
def paper(read_text: Callable[[str], str]) -> str:
    return read_text("004")


@pytest.mark.parametrize(
    ("table", "columns"), [(TABLE_1, MIXTURE_COLUMNS), (TABLE_2, MIXTURE_COLUMNS), (TABLE_3, DIGIT_COLUMNS)]
)
def test_only_k_fed_depends_on_who_holds_what(table, columns: tuple[Column, ...]) -> None:
    for method, row in table.items():
        cells = {(column.group, str(cell)) for column, cell in zip(columns, row, strict=True)}
        assert len(cells) == (len(columns) if method == "k-fed" else 2)


def read_table(paper: str, caption: str) -> tuple[list[str], list[str], dict[str, list[tuple[float, float]]]]:
    """The two lines of headings and the rows below a caption."""
    lines = [line for line in paper[paper.index(caption) :].splitlines()[1:7] if line.strip()]
    heads = [re.findall(r"k = \d+|Digit \d|k' = \d+", line) for line in lines[:2]]
    rows = {}
    for line in lines[2:5]:
        name, *cells = line.split("\t")
        rows[name.replace("$", "").strip()] = [
            tuple(float(number) for number in re.findall(r"[\d.]+", cell)) for cell in cells
        ]
    return heads[0], heads[1], rows


@pytest.mark.parametrize(
    ("caption", "table", "columns"),
    [
        ("Table 1: ", TABLE_1, MIXTURE_COLUMNS),
        ("Table 2: ", TABLE_2, MIXTURE_COLUMNS),
        ("Table 3: ", TABLE_3, DIGIT_COLUMNS),
    ],
)
def test_tables(paper: str, caption: str, table, columns) -> None:
    groups, local, rows = read_table(paper, caption)
    numbers = [int(group.split()[-1]) for group in groups][-2:]
    found = [(group, int(each.split()[-1])) for group, each in zip(sorted(numbers * 3), local, strict=True)]
    assert found == [(column.group, column.local_clusters) for column in columns]
    names = {"centralised": "Centralized Lloyd", "k-fed": "k -FED", "secfc": "SecFC"}
    for method, name in names.items():
        assert [(cell.mean, cell.spread) for cell in table[method]] == rows[name]


def test_sentences_are_in_the_text(paper: str) -> None:
    squeezed = re.sub(r"\s+", " ", paper)
    for sentence in SENTENCES:
        assert re.sub(r"\s+", " ", sentence) in squeezed, sentence


def test_a_cell_that_is_not_printed_is_none() -> None:
    assert str(find_printed(TABLE_2, MIXTURE_COLUMNS, "k-fed", Column(group=16, local_clusters=4))) == "41.7 ± 1.2"
    assert find_printed(TABLE_2, MIXTURE_COLUMNS, "k-fed", Column(group=16, local_clusters=1)) is None
    assert find_printed(TABLE_2, MIXTURE_COLUMNS, "k-fed-repaired", Column(group=4, local_clusters=1)) is None
