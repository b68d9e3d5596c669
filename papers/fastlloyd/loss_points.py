"""Points of figures 3, 4 and 7: the trials behind them, their rows in CSV files, and the authors' code beside them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from papers.fastlloyd.datasets import FileSet, load_points
from papers.fastlloyd.estimates import Cell
from papers.fastlloyd.lab import Lab
from papers.fastlloyd.lines import Line
from papers.fastlloyd.peers import Peers, load_peers
from papers.fastlloyd.products import Value
from papers.fastlloyd.scope import Scope
from papers.fastlloyd.trials import Trial

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLUMNS = (
    "data",
    "records",
    "clusters",
    "dimensions",
    "method",
    "guarantee",
    "epsilon",
    "nicv",
    "nicv_ci95",
    "empty_clusters",
    "empty_clusters_ci95",
    "runs",
    "infeasible",
    "authors_nicv",
    "authors_nicv_with_printed_noise",
    "authors_empty_clusters",
)


def list_trials(scope: Scope, names: tuple[str, ...], lines: tuple[Line, ...]) -> list[Trial]:
    """Every line at every epsilon on every set that is there."""
    return [
        trial
        for data in scope.find_sets(names)
        for line in lines
        for epsilon in scope.epsilons
        for trial in line.make_trials(data, epsilon, scope.runs)
    ]


def collect_rows(
    scope: Scope, lab: Lab, names: tuple[str, ...], lines: tuple[Line, ...]
) -> tuple[tuple[Value, ...], ...]:
    """Write every point with what the authors' code gave."""
    peers = load_peers(scope)
    return tuple(
        _write_row(data, line, epsilon, lab.cell(line.make_trials(data, epsilon, scope.runs)), peers)
        for data in scope.find_sets(names)
        for line in lines
        for epsilon in (scope.epsilons if line.private else scope.epsilons[:1])
    )


def _write_row(data: FileSet, line: Line, epsilon: float, cell: Cell, peers: Peers) -> tuple[Value, ...]:
    peer = peers.find(data.name, line.peer, epsilon if line.private else None)
    printed = peers.find(data.name, line.peer_as_printed, epsilon)
    records, dimensions = load_points(data).shape
    return (
        data.label,
        records,
        data.clusters,
        dimensions,
        line.key,
        line.guarantee,
        epsilon if line.private else None,
        cell.loss.mean,
        cell.loss.half_width,
        cell.empty.mean,
        cell.empty.half_width,
        cell.runs,
        cell.infeasible,
        None if peer is None else peer.loss,
        None if printed is None else printed.loss,
        None if peer is None else peer.empty,
    )


def draw_peers(axes: Axes, scope: Scope, peers: Peers, data: FileSet, line: Line, *, empty: bool = False) -> None:
    """Put hollow marks where the authors' code was measured."""
    for method, marker in ((line.peer, "o"), (line.peer_as_printed, "s")):
        found = [(epsilon, peers.find(data.name, method, epsilon)) for epsilon in scope.epsilons]
        points = [(epsilon, 100 * row.empty / data.clusters if empty else row.loss) for epsilon, row in found if row]
        if points:
            x, y = zip(*points, strict=True)
            axes.scatter(x, y, s=34, marker=marker, facecolors="none", edgecolors=line.colour, linewidths=1.1, zorder=4)
