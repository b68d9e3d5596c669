"""A chain of clusters, all at their least size, in which one record more re-assigns a record of every cluster.

Under size constraints (thesis 4.1.3) records join clusters where they are needed, not where they are near. Let the
centres stand close together along a line u. Each cluster but the last has one record that lies nearer to the next
centre, and is kept back because its cluster would be too small without it. A record that joins the first cluster sets
that one free; it joins the second cluster, whose own is then free, and so on: k clusters change.

Across u, records are where we like. Those that move lie at opposite ends of the domain by turns, so that every cluster
but the last gains a record at one end and loses one at the other: its sum moves by nearly 2B in every column. With one
column there is no "across" and the moves add up to the width of the domain only (docs/proofs/published-fastlloyd.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from cloister.records import FloatArray

_ALONG = 2.0**-6
"""How far the chain reaches along u, in each of u's two columns: what is lost of 2B across it."""


@dataclass(frozen=True, kw_only=True, eq=False)
class AssignmentChain:
    """Made-up records of one party, in unit scaling.

    Attributes
    ----------
    start
        (k, d): the centres that the records are assigned to.
    rows
        (k size, d): all records but one.
    record
        (d,): the one that is there or not.
    """

    start: FloatArray
    rows: FloatArray
    record: FloatArray


def build_chain(clusters: int, dimensions: int, *, size: int, reach: float = math.inf) -> AssignmentChain:
    """Place the records.

    Parameters
    ----------
    clusters, dimensions
        k and d.
    size
        The least size of the party's clusters.
    reach
        No record lies further than this from the centres that it is near to, where the distance is constrained.
    """
    along = np.zeros(dimensions)
    along[:2] = (1.0, -1.0)[:dimensions]
    length = _ALONG if dimensions > 1 else min(1.0, reach / 2)
    step = 2 * length / (clusters + 1)
    places = -length + step * (np.arange(clusters) + 0.5)
    # Orthogonal to u, as long as the domain and the reach allow.
    across = np.full(dimensions, min(1.0 - _ALONG, 0.99 * reach / math.sqrt(dimensions)) if dimensions > 1 else 0.0)
    rows = np.repeat(places[:, None] * along, size, axis=0).reshape(clusters, size, dimensions)
    signs = np.where(np.arange(clusters) % 2 == 0, 1.0, -1.0)
    movers = (places + 0.75 * step)[:, None] * along + signs[:, None] * across
    rows[:-1, -1] = movers[:-1]
    rows[-1] += signs[-1] * across  # opposite to the last mover, so that its arrival is seen most
    return AssignmentChain(
        start=places[:, None] * along,
        rows=rows.reshape(-1, dimensions),
        record=(places[0] - 0.25 * step) * along - across,
    )
