"""The transcribed numbers are consistent, and those of the texts where these are available."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from papers.fastlloyd.printed import (
    RECORDS,
    SENTENCES,
    SETS,
    TABLE_3,
    TABLE_8_2,
    TABLE_8_3,
    TABLE_8_4,
    TABLE_8_5,
    TABLE_8_6,
    TABLE_8_7,
)

NAMES = {"none": "none", "trunc": "truncate", "fold": "fold"}


@pytest.fixture(scope="module")
def paper(read_text: Callable[[str], str]) -> str:
    return read_text("000")


@pytest.fixture(scope="module")
def thesis(read_text: Callable[[str], str]) -> str:
    return read_text("001")


@pytest.mark.parametrize(
    "row", TABLE_3, ids=lambda row: f"{row.data} {row.records} k={row.clusters} d={row.dimensions}"
)
def test_printed_bytes_are_the_numbers_of_two_clients_both_ways(row) -> None:
    assert row.bytes_sent == 2 * 2 * 8 * row.clusters * row.dimensions


@pytest.mark.parametrize(("table", "top"), [(TABLE_8_2, 3), (TABLE_8_3, 1), (TABLE_8_4, 1), (TABLE_8_5, 1)])
def test_every_set_has_its_best_rows(table, top: int) -> None:
    assert sum(row.best_count for row in table.values()) == top * len(SETS)


@pytest.mark.parametrize("table", [TABLE_8_4, TABLE_8_5], ids=["8.4", "8.5"])
def test_what_is_printed_as_tnw_is_an_average_over_the_six_sets(table) -> None:
    for row in table.values():
        mean = sum(loss / RECORDS[name] for name, loss in zip(SETS, row.losses, strict=True)) / 6
        assert row.total == pytest.approx(mean, abs=3e-5)


@pytest.mark.parametrize("table", [TABLE_8_6, TABLE_8_7], ids=["8.6", "8.7"])
def test_the_wide_network_takes_about_a_tenth_of_a_second_more(table) -> None:
    assert set(table) == {*SETS, "synth"}
    for row in table.values():
        assert 70 <= row.wan_ms - row.lan_ms <= 130


def cut_table(text: str, caption: str) -> list[list[str]]:
    """The cells of the rows above a caption, up to the first line that is none."""
    rows = []
    for line in reversed(text[: text.index(caption)].rstrip().splitlines()):
        if "\t" not in line:
            break
        rows.append([cell.strip() for cell in line.split("\t")])
    return rows[::-1]


def read_number(cell: str) -> float | None:
    found = re.search(r"\d[\d.]*(e\d+)?", cell)
    return float(found[0]) if found else None


def test_table_3(paper: str) -> None:
    rows = [row for row in cut_table(paper, "Table 3: Overhead") if "pm" in row[4]]
    assert len(rows) == len(TABLE_3)
    name = records = ""
    for row, printed in zip(rows, TABLE_3, strict=True):
        name, records = (row[0] if row[0].strip("-") else name), row[1] or records
        time_ms, interval_ms = re.findall(r"[\d.]+", row[4])
        assert (printed.data, printed.records) == (name, int(records.replace("K", "000")))
        assert (printed.clusters, printed.dimensions) == (int(row[2]), int(row[3]))
        assert (printed.time_ms, printed.interval_ms) == (float(time_ms), float(interval_ms))
        assert printed.mohassel_ms == read_number(row[5])
        assert printed.bytes_sent == int(row[7])


def test_sentences_are_in_the_text(paper: str) -> None:
    squeezed = re.sub(r"\s+", " ", paper)
    for sentence in SENTENCES:
        assert sentence.quote in squeezed, sentence.quote
    assert re.search(r"30\s*\$\\sim\$\s*40%\s*reduction in NICV in small", squeezed)


def test_table_8_1(thesis: str) -> None:
    for name, records in RECORDS.items():
        assert re.search(rf"^{name} \[\d+\]\t{records}\t", thesis, re.IGNORECASE | re.MULTILINE)


def read_losses(thesis: str, caption: str) -> dict[str, list[float]]:
    head, *rows = cut_table(thesis, caption)
    assert tuple(head[1:7]) == SETS
    return {row[0]: [float(cell) for cell in row[1:]] for row in rows}


def test_table_8_2(thesis: str) -> None:
    rows = read_losses(thesis, "Table 8.2: ")
    found = {tuple(NAMES[word] for word in re.findall(r"\w+", label)): cells for label, cells in rows.items()}
    assert found == {key: [*row.losses, row.best_count] for key, row in TABLE_8_2.items()}


def test_table_8_3(thesis: str) -> None:
    found = {NAMES[label]: cells for label, cells in read_losses(thesis, "Table 8.3: ").items()}
    assert found == {key: [*row.losses, row.best_count] for key, row in TABLE_8_3.items()}


@pytest.mark.parametrize(("caption", "table"), [("Table 8.4: ", TABLE_8_4), ("Table 8.5: ", TABLE_8_5)])
def test_tables_8_4_and_8_5(thesis: str, caption: str, table) -> None:
    assert read_losses(thesis, caption) == {key: [*row.losses, row.total, row.best_count] for key, row in table.items()}


@pytest.mark.parametrize(("caption", "table"), [("Table 8.6: Time", TABLE_8_6), ("Table 8.7: Time", TABLE_8_7)])
def test_tables_8_6_and_8_7(thesis: str, caption: str, table) -> None:
    _, *rows = cut_table(thesis, caption)
    found = {row[0]: [float(number) for cell in row[1:] for number in re.findall(r"\d+", cell)] for row in rows}
    assert found == {
        name: [row.lan_ms, row.lan_interval_ms, row.wan_ms, row.wan_interval_ms] for name, row in table.items()
    }
