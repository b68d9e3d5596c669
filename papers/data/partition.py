"""Who holds which records or columns, for studies: ways to deal one data set out to several parties.

The row splitters return one array of row numbers for each party; every row is dealt exactly once and no party
is left empty. Within a party the rows are in ascending order, so that a split is a set and not an order.

With data at the server, as FedDP-KMeans has it, rows are drawn for the server first and the others stay with those
who own them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from cloister.crypto import Stream
from cloister.errors import ConfigError, DataError
from cloister.records import FloatArray, IntArray

Rows = IntArray


def split_even(count: int, parties: int, stream: Stream) -> tuple[Rows, ...]:
    """Deal shuffled rows out in parts whose sizes differ by at most one.

    Parameters
    ----------
    count, parties
        The number of rows and of parties; at least one row for each party.
    stream
        Source of the shuffle.

    Returns
    -------
    tuple of arrays of row numbers
    """
    _require_rows(count, parties)
    return _deal(stream.permutation(count), [len(part) for part in np.array_split(np.arange(count), parties)])


def split_uneven(count: int, parties: int, stream: Stream, *, ratio: float = 2.0) -> tuple[Rows, ...]:
    """Deal shuffled rows out in parts of geometrically falling size.

    Each party gets one row; the others are shared in proportion to 1, 1/ratio, 1/ratio^2, ..., rounded to
    whole rows by largest remainder.

    Parameters
    ----------
    count, parties
        The number of rows and of parties; at least one row for each party.
    stream
        Source of the shuffle.
    ratio
        How many times larger a party is than the next; 1 or more.

    Returns
    -------
    tuple of arrays of row numbers, largest first
    """
    _require_rows(count, parties)
    if not 1.0 <= ratio < np.inf:
        raise ConfigError(f"ratio must be a finite number of at least 1; got {ratio}. Use 2.")
    weights = ratio ** -np.arange(parties, dtype=np.float64)
    shares = (count - parties) * weights / weights.sum()
    sizes = np.floor(shares).astype(np.int64)
    short = count - parties - int(sizes.sum())
    sizes[np.argsort(sizes - shares, kind="stable")[:short]] += 1  # largest remainders first
    return _deal(stream.permutation(count), (sizes + 1).tolist())


def split_by_label(labels: ArrayLike, parties: int, clusters_per_party: int, stream: Stream) -> tuple[Rows, ...]:
    """Deal rows out so that each party holds records of at most k' clusters (SecFC 5.1).

    The k clusters are put in a random circle, and party p takes the k' clusters from place p k' on. So every
    cluster has a holder, and the numbers of holders differ by at most one. The rows of a cluster are shuffled
    and shared evenly among its holders. With k' = k every party holds all clusters in equal shares, which is
    the paper's i.i.d. case.

    Parameters
    ----------
    labels
        The cluster of each row.
    parties
        The number of parties.
    clusters_per_party
        k', the most clusters that a party has records of.
    stream
        Source of the shuffles.

    Returns
    -------
    tuple of arrays of row numbers

    Raises
    ------
    ConfigError
        If parties * k' < k, so that some cluster would have no holder; or a party would be left without a
        record.
    """
    _, numbers = np.unique(np.asarray(labels), return_inverse=True)
    _require_rows(numbers.size, parties)
    k = int(numbers.max()) + 1
    if clusters_per_party < 1 or parties * clusters_per_party < k:
        raise ConfigError(
            f"parties * clusters_per_party must be at least the number of clusters; got "
            f"{parties} * {clusters_per_party} < {k}. "
            f"Use more parties, or at least {-(-k // parties)} clusters per party."
        )
    held = min(clusters_per_party, k)
    circle = stream.permutation(k)
    holders: list[list[int]] = [[] for _ in range(k)]
    for party in range(parties):
        for place in range(party * held, (party + 1) * held):
            holders[circle[place % k]].append(party)
    owner = np.empty(numbers.size, dtype=np.int64)
    for cluster in range(k):
        rows = np.flatnonzero(numbers == cluster)
        order = np.array(holders[cluster])[stream.permutation(len(holders[cluster]))]
        owner[rows[stream.permutation(rows.size)]] = order[np.arange(rows.size) % order.size]
    parts = tuple(np.flatnonzero(owner == party) for party in range(parties))
    empty = sum(not part.size for part in parts)
    if empty:
        raise ConfigError(
            f"every party must get a record; {empty} of {parties} got none, as clusters have fewer records "
            f"than holders. Use fewer parties, or more clusters per party."
        )
    return parts


def split_by_column(dimensions: int, parties: int) -> tuple[tuple[int, ...], ...]:
    """Deal columns out in neighbouring blocks whose sizes differ by at most one, the larger ones first."""
    if not 1 <= parties <= dimensions:
        raise ConfigError(
            f"parties must be between 1 and the number of columns, {dimensions}; got {parties}. Use fewer."
        )
    return tuple(tuple(part.tolist()) for part in np.array_split(np.arange(dimensions), parties))


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


def _require_rows(count: int, parties: int) -> None:
    """Refuse a split that leaves a party empty."""
    if not 1 <= parties <= count:
        raise ConfigError(
            f"parties must be between 1 and the number of records, {count}; got {parties}. Use fewer parties."
        )


def _deal(order: Rows, sizes: Sequence[int]) -> tuple[Rows, ...]:
    """Cut an order into parts of the given sizes."""
    return tuple(np.sort(part) for part in np.split(order, np.cumsum(sizes)[:-1]))
