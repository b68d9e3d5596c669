"""Size-constrained assignment as a minimum-cost flow (thesis 4.1.3 and 4.1.4, FastLloyd 2.3 and 7.1).

The network, for n records, k clusters, sizes between ``size_min`` and ``size_max``, at most E memberships a
record::

    record (supply E) ──cost |x - c|^2, capacity 1──▶ cluster (demand size_min) ──capacity size_max - size_min──▶ sink
           └──────── capacity E - 1 ────────▶ escape ──────────────────────────────────────────────────────▶ sink

The thesis puts ``size_max`` on an arc between a cluster and its clone; an arc to the sink with what the
demand leaves over bounds the same flow with k nodes less. Edge costs are SQUARED distances: the texts call
the cost of an edge the Euclidean distance, but the objective J that they minimise (4.1.3) is the sum of
squares, and that is what Lloyd's descent needs.

The solver works on integers. Costs are rounded to ``largest cost / 2^30``, so the assignment found is optimal
for the rounded costs, and its true cost is within ``pairs * largest cost / 2^30`` of the optimum. (The unit
is coarser only where n k exceeds 2^28, so that no sum can overflow.)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.errors import ConfigError, InfeasibleError, MissingExtraError
from cloister.records import FloatArray, IntArray

_COST_BITS = 30
# The solver multiplies costs by the number of nodes; the largest product must stay inside 63 bits.
_SOLVER_BITS = 61


@dataclass(frozen=True, kw_only=True)
class SizeLimits:
    """The numbers of one constrained assignment, for the solver and for the error if there is none."""

    records: int
    clusters: int
    size_min: int
    size_max: int
    memberships_max: int = 1

    def check_feasible(self, *, all_assigned: bool = True) -> None:
        """Raise InfeasibleError where arithmetic alone rules an assignment out.

        Without a radius these conditions are also sufficient (Gale and Ryser).
        """
        n, k, e = self.records, self.clusters, self.memberships_max
        if self.size_min > self.size_max:
            self.refuse("size_min must be at most size_max", "Lower size_min or raise size_max.")
        if not 1 <= e <= k:
            self.refuse(
                "a record must be in between 1 and all of the clusters",
                f"Set memberships_max between 1 and {k}.",
            )
        if self.size_min > n:
            self.refuse("a cluster takes each record at most once", f"Lower size_min to {n} or less.")
        if k * self.size_min > n * e:
            self.refuse(
                f"the clusters need {k * self.size_min} memberships and the records give at most {n * e}",
                f"Lower size_min to {n * e // k} or less, or raise memberships_max.",
            )
        if all_assigned and k * self.size_max < n:
            self.refuse(
                f"every record must fit somewhere and the clusters hold at most {k * self.size_max}",
                f"Raise size_max to {-(-n // k)} or more.",
            )

    def refuse(self, reason: str, remedy: str) -> None:
        """Raise InfeasibleError with all the numbers."""
        raise InfeasibleError(
            f"no assignment meets the cluster sizes: {reason}; got {self.records} records, {self.clusters} "
            f"clusters, size_min={self.size_min}, size_max={self.size_max}, "
            f"memberships_max={self.memberships_max}. {remedy}"
        )


def solve_flow(
    squared_distances: FloatArray, limits: SizeLimits, *, radius: float | None = None
) -> tuple[IntArray, IntArray]:
    """Find the cheapest assignment within the limits.

    Parameters
    ----------
    squared_distances
        (n, k), the cost of each pair.
    limits
        Sizes and memberships.
    radius
        With a radius, pairs further apart have no edge, and a record may stay unassigned; but only where it
        must: as many records as possible are assigned, and among those assignments the cheapest is found.

    Returns
    -------
    rows, clusters
        The pairs, ordered by row.

    Raises
    ------
    InfeasibleError
        If the clusters cannot have their minimum sizes.
    """
    n, k = squared_distances.shape
    limits.check_feasible(all_assigned=radius is None)
    costs, penalty = _round_costs(squared_distances)
    if radius is None:
        rows = np.repeat(np.arange(n), k)
        clusters = np.tile(np.arange(k), n)
    else:
        allowed = squared_distances <= radius * radius
        short = int(np.count_nonzero(np.count_nonzero(allowed, axis=0) < limits.size_min))
        if short:
            limits.refuse(
                f"{short} clusters have fewer than size_min records within the radius {radius:g}",
                "Raise the radius or lower size_min.",
            )
        rows, clusters = np.nonzero(allowed)
    network = _Network()
    sink = n + k
    pairs = network.add_arcs(rows, n + clusters, 1, costs[rows, clusters])
    network.add_arcs(n + np.arange(k), np.full(k, sink), limits.size_max - limits.size_min, np.zeros(k))
    if radius is not None:
        network.add_arcs(np.arange(n), np.full(n, sink), 1, np.full(n, penalty))
    supplies = np.concatenate([np.full(n, limits.memberships_max), np.full(k, -limits.size_min), [0]])
    if limits.memberships_max > 1:
        escape, spare = sink + 1, n * (limits.memberships_max - 1)
        network.add_arcs(np.arange(n), np.full(n, escape), limits.memberships_max - 1, np.zeros(n))
        network.add_arcs(np.array([escape]), np.array([sink]), spare, np.zeros(1))
        supplies = np.append(supplies, 0)
    supplies[sink] = -supplies.sum()
    if not network.solve(supplies):
        limits.refuse(
            "the minimum sizes cannot all be met at once"
            + ("" if radius is None else f" within the radius {radius:g}"),
            "Raise the radius or lower size_min.",
        )
    used = network.flows(pairs) > 0
    return rows[used], clusters[used]


def _round_costs(squared_distances: FloatArray) -> tuple[IntArray, int]:
    """Return integer costs, and a price of staying unassigned that no rearrangement can be worth.

    Giving up one record's place frees one path of reassignments, which visits each cluster at most once and
    so saves at most k + 1 times the largest cost.
    """
    n, k = squared_distances.shape
    headroom = _SOLVER_BITS - math.ceil(math.log2((k + 2) * (n + k + 3)))
    bits = min(_COST_BITS, headroom)
    largest = float(squared_distances.max(initial=0.0))
    scale = 2.0**bits / largest if largest > 0 else 0.0
    return np.rint(squared_distances * scale).astype(np.int64), (k + 2) << bits


class _Network:
    """A thin typed face of OR-Tools' SimpleMinCostFlow."""

    def __init__(self) -> None:
        try:
            from ortools.graph.python import min_cost_flow  # noqa: PLC0415
        except ImportError as error:
            raise MissingExtraError("constrained assignment", "ortools", "papers") from error
        self._solver: Any = min_cost_flow.SimpleMinCostFlow()

    def add_arcs(self, tails: IntArray, heads: IntArray, capacity: int, unit_costs: NDArray[Any]) -> NDArray[np.int32]:
        """Add arcs of one capacity; return their numbers."""
        arcs: NDArray[np.int32] = self._solver.add_arcs_with_capacity_and_unit_cost(
            tails.astype(np.int32),
            heads.astype(np.int32),
            np.full(len(tails), capacity, dtype=np.int64),
            unit_costs.astype(np.int64),
        )
        return arcs

    def solve(self, supplies: IntArray) -> bool:
        """Return whether there is a flow; if so, the cheapest is then available."""
        self._solver.set_nodes_supplies(np.arange(len(supplies), dtype=np.int32), supplies.astype(np.int64))
        status = self._solver.solve()
        if status == self._solver.OPTIMAL:
            return True
        if status == self._solver.INFEASIBLE:
            return False
        raise ConfigError(
            f"the flow solver must end in OPTIMAL or INFEASIBLE; got {status} for {len(supplies)} nodes. "
            "Use fewer records."
        )

    def flows(self, arcs: NDArray[np.int32]) -> IntArray:
        """Return the flow on each arc."""
        flows: IntArray = self._solver.flows(arcs)
        return flows
