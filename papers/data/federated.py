"""Records of many clients with the related, public records of a server: what FedDP-KMeans is about."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from cloister.crypto import Stream
from cloister.errors import DataError
from cloister.records import FloatArray, IntArray


@dataclass(frozen=True, kw_only=True, eq=False)
class FederatedPoints:
    """A data set dealt out to clients, without ground truth.

    Attributes
    ----------
    points
        (n, d): the records of all clients.
    clients
        For each client, its rows of ``points``; every row has one client.
    server_points
        (m, d): public; none of them is in ``points``.
    names
        What each column says.
    """

    points: FloatArray = field(repr=False)
    clients: tuple[IntArray, ...] = field(repr=False)
    server_points: FloatArray = field(repr=False)
    names: tuple[str, ...] = field(repr=False)


def draw_rows(stream: Stream, rows: IntArray, count: int, what: str) -> IntArray:
    """Draw different rows for the server, in ascending order.

    Raises
    ------
    DataError
        If there are fewer.
    """
    if len(rows) < count:
        raise DataError(
            f"the server must get {count} records {what}; there are {len(rows)}. Use the whole data set, or ask for "
            "fewer."
        )
    return np.sort(rows[stream.permutation(len(rows))[:count]])


def split_by_owner(owners: IntArray) -> tuple[IntArray, ...]:
    """Return the rows of each owner that has any, owners in ascending order."""
    order = np.argsort(owners, kind="stable").astype(np.int64)
    _, first = np.unique(owners[order], return_index=True)
    return tuple(np.split(order, first[1:])) if len(order) else ()
