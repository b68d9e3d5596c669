"""Who learns what in a session for labels, as rows for a clustering's table; tests hold the code to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cloister.protocol import LeakageTable, Learns, Row

SOURCE = "docs/proofs/vertical-labels.md"


def add_labels(table: LeakageTable, granted: Sequence[str]) -> LeakageTable:
    """Return a clustering's table with the labels that were handed to some parties, by name."""
    names = ", ".join(granted)
    rows: list[Row] = []
    for role in dict.fromkeys(row.role for row in table.rows):
        rows += [row for row in table.rows if row.role == role]
        if role == "party":
            meaning, learns = f"which cluster each of its own records is in ({names} only)", Learns.EXACT
        else:
            meaning, learns = "which cluster a record is in", Learns.NOTHING
        rows.append(Row(role=role, value="labels", meaning=meaning, learns=learns))
    return replace(table, rows=tuple(rows), source=f"{table.source}, {SOURCE}")


def describe_labels(granted: Sequence[str]) -> str:
    """Return what a card must say: labels are outside of any budget."""
    return (
        f"The labels of the records were handed to {', '.join(granted)}. Labels are not differentially private: each "
        "follows from all parties' columns of its record, without noise but for that in centres and cells. "
        "No budget covers them."
    )
