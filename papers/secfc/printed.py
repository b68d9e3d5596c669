"""What SecFC prints, transcribed: tables 1 to 3, and sentences on figure 1 and on the tables.

Songze Li, Sizai Hou, Baturalp Buyukates and Salman Avestimehr, "Secure Federated Clustering", 2022.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from papers.secfc.trials import Method


@dataclass(frozen=True, kw_only=True)
class Printed:
    """An accuracy in percent, as printed; the text does not say what its plus-minus means."""

    mean: float
    spread: float

    def __str__(self) -> str:
        return f"{self.mean:.1f} ± {self.spread:.1f}"


@dataclass(frozen=True, kw_only=True)
class Column:
    """A column of a table: k and k' of tables 1 and 2, the digit and k' of table 3, whose k is 4."""

    group: int
    local_clusters: int


def _row(*pairs: tuple[float, float]) -> tuple[Printed, ...]:
    return tuple(Printed(mean=mean, spread=spread) for mean, spread in pairs)


def _columns(*pairs: tuple[int, int]) -> tuple[Column, ...]:
    return tuple(Column(group=group, local_clusters=local) for group, local in pairs)


MIXTURE_COLUMNS = _columns((4, 1), (4, 2), (4, 4), (16, 2), (16, 4), (16, 16))
"""Of tables 1 and 2 (5.1)."""
DIGIT_COLUMNS = _columns((2, 1), (2, 2), (2, 4), (3, 1), (3, 2), (3, 4))
"""Of table 3 (5.2)."""

TABLE_1: dict[Method, tuple[Printed, ...]] = {
    "centralised": _row((100.0, 0.0), (100.0, 0.0), (100.0, 0.0), (88.2, 5.5), (88.2, 5.5), (88.2, 5.5)),
    "k-fed": _row((75.0, 0.1), (99.7, 2.1), (25.8, 0.6), (80.3, 5.3), (78.7, 3.7), (7.6, 0.1)),
    "secfc": _row((100.0, 0.0), (100.0, 0.0), (100.0, 0.0), (86.0, 1.5), (86.0, 1.5), (86.0, 1.5)),
}
"""Gaussian mixture, sigma = 1 (5.1)."""

TABLE_2: dict[Method, tuple[Printed, ...]] = {
    "centralised": _row((96.3, 0.1), (96.3, 0.1), (96.3, 0.1), (84.0, 0.2), (84.0, 0.2), (84.0, 0.2)),
    "k-fed": _row((46.7, 0.0), (86.6, 5.5), (25.6, 0.1), (42.0, 2.2), (41.7, 1.2), (8.4, 0.1)),
    "secfc": _row((96.3, 0.0), (96.3, 0.0), (96.3, 0.0), (84.0, 0.1), (84.0, 0.1), (84.0, 0.1)),
}
"""Gaussian mixture, sigma = 20 (5.1)."""

TABLE_3: dict[Method, tuple[Printed, ...]] = {
    "centralised": _row((99.5, 0.1), (99.5, 0.1), (99.5, 0.1), (98.1, 0.0), (98.1, 0.0), (98.1, 0.0)),
    "k-fed": _row((50.5, 0.0), (90.3, 10.4), (25.8, 0.1), (97.7, 0.0), (98.1, 0.0), (68.2, 9.4)),
    "secfc": _row((99.5, 0.1), (99.5, 0.1), (99.5, 0.1), (98.1, 0.0), (98.1, 0.0), (98.1, 0.0)),
}
"""Rotated MNIST, digits 2 and 3 (5.2)."""

WORST_ITERATION_S = 16.0
"""Of figure 1, whose numbers are not in the text (5.1)."""

SENTENCES = (
    "The ground truth label of each data point is given by the index of the closest center to that particular point.",
    "one iteration of SecFC is already slower than the entire execution of",
    "rather short ( $< 16s$ in the worst case)",
    "The client run time is independent of  $n$",
    "Server complexity increases slightly with  $n$",
    "the server run time remains almost unchanged as it only decodes the distance",
)
"""What section 5.1 says of the ground truth and of figure 1; docs/reproduction-secfc.md answers each."""


def find_printed(
    table: Mapping[Method, tuple[Printed, ...]], columns: tuple[Column, ...], method: Method, column: Column
) -> Printed | None:
    """Return a cell; None where the paper has none."""
    if method not in table or column not in columns:
        return None
    return table[method][columns.index(column)]
