"""The client as the unit: every party sends a vector of one length, whatever it holds; only the direction tells.

With the unit "client" all records of a party are hidden at once, so the whole vector of a party must be bounded.
Each party scales its exact vector to the largest length that the round allows. No clipping threshold is needed, so none
has to be guessed, released or tuned: what the lengths would tell is read from ratios in the release (sums over counts,
cells over their total) or from a vote. Records in different directions gain by it: the histogram of n records in
different cells has length sqrt(n), so the party counts as sqrt(n) records and not as one. The price: a party with ten
times the records of another weighs one to three times as much, not ten times.
"""

from __future__ import annotations

from dataclasses import replace
from math import isqrt, sqrt

import numpy as np

from cloister.numeric import find_reach
from cloister.protocols.guided_sums.query import Answer, Asking, Query, relay
from cloister.records import FloatArray, IntArray


def bound_client(exact: IntArray | FloatArray, l2_squared: int) -> IntArray:
    """Scale a party's exact vector to the length that a round allows, in integers; zeros stay zeros.

    Privacy
    -------
    Returns v = rint(y), y = exact * reach / |exact|: |v| <= floor(sqrt(l2_squared)) by the lemma of `find_reach`, for
    every input, so |v|^2 <= l2_squared. v depends on this party's records and on public values only, so adding or
    removing the party changes the sum by v.
    """
    reach = find_reach(isqrt(l2_squared), len(exact))
    direction = exact.astype(np.float64)
    largest = float(np.abs(direction).max(initial=0.0))
    if largest == 0:
        return np.zeros(len(exact), dtype=np.int64)
    direction /= largest  # no overflow in the squares
    return np.rint(direction * (reach / sqrt(float((direction**2).sum())))).astype(np.int64)


def clip_client(exact: IntArray, longest: int) -> IntArray:
    """Shorten a party's exact vector to a length, in integers, if it is longer (FedDP-KMeans, appendix G.5).

    Privacy
    -------
    |v| <= ``longest`` for every input: what is within it, computed exactly in integers, stays; the rest is scaled by
    the lemma of `find_reach`.
    """
    rough = float((exact.astype(np.float64) ** 2).sum())
    if rough < 2.0**52 and int(exact @ exact) <= longest**2:
        return exact
    return bound_client(exact, longest**2) if rough > 0.999 * float(longest) ** 2 else exact


def bound_answers(asking: Asking[Answer]) -> Asking[Answer]:
    """Ask the same questions of whole parties: each answer is scaled by `bound_client` to the squared length agreed."""
    return relay(asking, _bound_query)


def _bound_query(query: Query) -> Query:
    if query.length == 0:
        return query
    return replace(query, measure=lambda records: bound_client(query.measure(records), query.l2_squared))
