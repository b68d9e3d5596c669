"""The tables of the golden jobs: made here alone, so that no generator of NumPy or Cloister has a part in them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

COLUMNS = 7
PARTY_ROWS = {"north": 55, "harbour": 50, "valley": 45}
CLIENTS = 40
ALIGNED_ROWS = 80
HELD = {"bank": ("income", "savings"), "telco": ("gigabytes",), "shop": ("spent",)}


def _draw(seed: int) -> Iterator[float]:
    """Numbers in [0, 1) from Knuth's linear congruential generator, exact in double precision."""
    state = seed
    while True:
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        yield (state >> 44) / 2**20


def _make_rows(seed: int, rows: int, columns: int) -> list[list[float]]:
    """Records in three heaps on [0, 100], rounded to sixteenths so that they are exact as text."""
    draw = _draw(seed)

    def middle(heap: int, column: int) -> float:
        return 15 + 70 * ((3 * heap + 2 * column + heap * column) % 7) / 6

    return [
        [round(16 * (middle(row % 3, column) + 8 * sum(islice(draw, 4)) - 16)) / 16 for column in range(columns)]
        for row in range(rows)
    ]


def _write_table(path: Path, names: tuple[str, ...], ids: list[int], rows: list[list[float]]) -> None:
    lines = [",".join(("id", *names))]
    lines += [",".join((f"p{number}", *map(str, row))) for number, row in zip(ids, rows, strict=True)]
    path.write_text("\n".join(lines) + "\n")


def _write_mixed(path: Path, rows: list[list[float]]) -> None:
    """Write numbers, of which every eleventh is missing, a category and a boolean."""
    lines = ["x0,x1,ward,smokes"]
    for number, row in enumerate(rows):
        cells = ["" if (2 * number + place) % 11 == 0 else str(cell) for place, cell in enumerate(row)]
        lines.append(",".join((*cells, "abc"[number % 3], ("no", "yes")[number % 5 == 0])))
    path.write_text("\n".join(lines) + "\n")


def write_tables(folder: Path) -> None:
    """Write every table that a golden job reads."""
    names = tuple(f"x{column}" for column in range(COLUMNS))
    first = 0
    for seed, (party, rows) in enumerate(PARTY_ROWS.items(), start=1):
        _write_table(folder / f"{party}.csv", names, list(range(first, first + rows)), _make_rows(seed, rows, COLUMNS))
        first += rows
    for client in range(CLIENTS):
        _write_table(folder / f"client{client}.csv", names, list(range(6)), _make_rows(100 + client, 6, COLUMNS))
    _write_table(folder / "server.csv", names, list(range(90)), _make_rows(50, 90, COLUMNS))
    for number in range(2):
        _write_mixed(folder / f"mixed{number}.csv", _make_rows(200 + number, 90, 2))
    people = _make_rows(60, 110, 4)
    held = {"bank": slice(0, 2), "telco": slice(2, 3), "shop": slice(3, 4)}
    for step, (party, columns) in enumerate(held.items(), start=7):
        rows = [row[columns] for row in people]
        _write_table(folder / f"aligned-{party}.csv", HELD[party], list(range(ALIGNED_ROWS)), rows[:ALIGNED_ROWS])
        ids = [step * place % 101 for place in range(101) if step * place % 101 >= step]  # shuffled, some missing
        _write_table(folder / f"{party}.csv", HELD[party], ids, [rows[number] for number in ids])
