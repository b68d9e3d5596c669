"""The methods that figures compare, as lines of points; the authors' own code beside them, where it was measured.

The measurements are a CSV file in the folder ``peers`` beside the data.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cloister.kmeans import AssignmentKind
from cloister.protocols.fastlloyd.published_rules import PostProcessing
from papers.data.files import read_measurements
from papers.fastlloyd.datasets import DataSet, FileSet, Scope, load_points
from papers.fastlloyd.trials import Cell, Method, Trial, TrialLab
from papers.lab import drawing
from papers.lab.products import Estimate, Value

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PEERS_FILE = "fastlloyd_and_dp_peers.csv"

FAILS = "fails"
"""What tables say of a guarantee that does not hold."""
WARNING = "guarantee fails"
"""What legends say of it."""


@dataclass(frozen=True, kw_only=True)
class Line:
    """One line of a figure.

    Parameters
    ----------
    key, short, label
        Its name in CSV files, in printed tables, and in legends.
    method, private, assignment, post
        What is run.
    peer
        The method of the peers' file that it is compared with; empty for none.
    peer_as_printed
        That method with the noise that the text asks for, where the authors' code adds another.
    guarantee
        Whether its epsilon can be relied on, in words.
    colour, dash
        How it is drawn.
    """

    key: str
    short: str
    label: str
    method: Method
    guarantee: str
    colour: str
    peer: str = ""
    peer_as_printed: str = ""
    private: bool = True
    assignment: AssignmentKind | None = None
    post: PostProcessing = field(default_factory=PostProcessing)
    dash: str = "-"

    def make_trials(self, data: DataSet, epsilon: float | None, runs: int) -> list[Trial]:
        """The runs of one point; without privacy they are the same at each epsilon."""
        return [
            Trial(
                data=data,
                method=self.method,
                run=run,
                epsilon=epsilon if self.private else None,
                assignment=self.assignment,
                post=self.post,
            )
            for run in range(runs)
        ]

    @property
    def style(self) -> dict[str, Any]:
        """How matplotlib draws it."""
        width = 2.2 if self.method == "sound" else 1.5
        return {"color": self.colour, "linestyle": self.dash, "linewidth": width, "marker": "o" if self.private else ""}


PUBLISHED = Line(
    key="fastlloyd-published",
    short="FastLloyd",
    label=f"FastLloyd, algorithm 1 ({WARNING})",
    method="published",
    guarantee=FAILS,
    colour=drawing.RED,
    peer="fastlloyd_old",
    peer_as_printed="fastlloyd_old_noise_x_d_indep",
)
CSULLOYD = Line(
    key="csulloyd",
    short="CSuLloyd",
    label=f"CSuLloyd ({WARNING})",
    method="csulloyd",
    guarantee=FAILS,
    colour=drawing.ORANGE,
    peer="csulloyd_old",
)
SULLOYD = Line(
    key="sulloyd",
    short="SuLloyd",
    label="SuLloyd (holds, n public)",
    method="sulloyd",
    guarantee="holds, n public",
    colour=drawing.SKY,
    peer="sulloyd_old",
    post=PostProcessing(centres="none"),
)
"""As the authors ran it: by its losses and empty clusters, with centres left where the noise put them."""
FOLDED_SULLOYD = Line(
    key="sulloyd-folded",
    short="SuLloyd, folded",
    label="SuLloyd, centres folded (holds, n public)",
    method="sulloyd",
    guarantee="holds, n public",
    colour=drawing.SKY,
    peer="sulloyd_new_fold_indep",
    dash="-.",
)
"""With the folding that FastLloyd has: the fairer comparison."""
SOUND = Line(
    key="cloister-fastlloyd",
    short="Cloister",
    label="Cloister fastlloyd (holds, n private)",
    method="sound",
    guarantee="holds",
    colour=drawing.BLUE,
    peer="fastlloyd_new_indep",
)
LLOYD = Line(
    key="lloyd",
    short="Lloyd",
    label="Lloyd, 7 steps (no privacy)",
    method="sulloyd",
    guarantee="no privacy",
    colour=drawing.GREY,
    peer="lloyd_old",
    private=False,
    dash="--",
)
CONSTRAINED_LLOYD = Line(
    key="constrained-lloyd",
    short="constr. Lloyd",
    label="constrained Lloyd, 7 steps (no privacy)",
    method="csulloyd",
    guarantee="no privacy",
    colour=drawing.BLACK,
    peer="clloyd_old",
    private=False,
    dash=":",
)
ALL_LINES = (PUBLISHED, CSULLOYD, SULLOYD, FOLDED_SULLOYD, SOUND, LLOYD, CONSTRAINED_LLOYD)


@dataclass(frozen=True, kw_only=True)
class Measured:
    """Mean loss and empty clusters of some runs of the authors' code; nan where they were not measured."""

    loss: float = math.nan
    empty: float = math.nan


Peers = dict[tuple[str, str, float], Measured]
"""By data set, method of the file and epsilon (0: without privacy)."""


def load_peers(scope: Scope) -> Peers:
    """Read the file; a set of which only a sample is used has no peer."""
    if scope.peers is None:
        return {}
    return {key: row for key, row in _read_peers(scope.peers / PEERS_FILE).items() if key[0] not in scope.samples}


@lru_cache(maxsize=2)
def _read_peers(path: Path) -> Peers:
    def convert(row: dict[str, str]) -> tuple[tuple[str, str, float], Measured]:
        measured = Measured(loss=float(row["mean_nicv"]), empty=float(row["empty"] or "nan"))
        return (row["dataset"], row["method"], float(row["eps"])), measured

    return dict(read_measurements(path, "dataset, method, eps, mean_nicv and empty", convert))


@dataclass(frozen=True, kw_only=True)
class Point:
    """All runs of one line on one data set at one epsilon, which is None without privacy."""

    data: FileSet
    line: Line
    epsilon: float | None
    cell: Cell
    peer: Measured
    peer_as_printed: Measured

    @property
    def loss(self) -> Estimate:
        """NICV."""
        return self.cell.loss

    @property
    def empty_percent(self) -> Estimate:
        """Empty clusters, in percent of k."""
        return self.cell.empty.times(100 / self.data.clusters)

    @property
    def peer_empty_percent(self) -> float:
        """Those of the authors' code."""
        return 100 * self.peer.empty / self.data.clusters


COLUMNS: dict[str, Callable[[Point], Value]] = {
    "data": lambda point: point.data.label,
    "records": lambda point: len(load_points(point.data)),
    "clusters": lambda point: point.data.clusters,
    "dimensions": lambda point: load_points(point.data).shape[1],
    "method": lambda point: point.line.key,
    "guarantee": lambda point: point.line.guarantee,
    "epsilon": lambda point: point.epsilon,
    "nicv": lambda point: point.loss.mean,
    "nicv_ci95": lambda point: point.loss.half_width,
    "empty_clusters": lambda point: point.cell.empty.mean,
    "empty_clusters_ci95": lambda point: point.cell.empty.half_width,
    "runs": lambda point: point.cell.runs,
    "infeasible": lambda point: point.cell.infeasible,
    "authors_nicv": lambda point: point.peer.loss,
    "authors_nicv_with_printed_noise": lambda point: point.peer_as_printed.loss,
    "authors_empty_clusters": lambda point: point.peer.empty,
}
"""Of CSV files."""


def collect_points(scope: Scope, lab: TrialLab, sets: Sequence[FileSet], lines: Sequence[Line]) -> list[Point]:
    """Summarise runs that are done: every line at every epsilon on every set."""
    peers = load_peers(scope)
    return [
        Point(
            data=data,
            line=line,
            epsilon=epsilon,
            cell=Cell.of(lab.scores(line.make_trials(data, epsilon, scope.runs))),
            peer=peers.get((data.name, line.peer, epsilon or 0.0), Measured()),
            peer_as_printed=peers.get((data.name, line.peer_as_printed, epsilon or 0.0), Measured()),
        )
        for data in sets
        for line in lines
        for epsilon in (scope.epsilons if line.private else (None,))
    ]


def draw_points(
    axes: Axes, points: Sequence[Point], epsilons: Sequence[float], measure: Callable[[Point], Estimate]
) -> None:
    """Draw the lines of one data set; what has no epsilon is a level."""
    for line in dict.fromkeys(point.line for point in points):
        drawn = [measure(point) for point in points if point.line == line]
        drawn = drawn if line.private else drawn * len(epsilons)
        means, widths = [each.mean for each in drawn], [each.half_width for each in drawn]
        drawing.draw_line(axes, epsilons, means, widths, label=line.label, **line.style)
    drawing.set_epsilon_ticks(axes, epsilons)


def draw_rings(axes: Axes, points: Sequence[Point], marker: str, measure: Callable[[Point], float]) -> None:
    """Put hollow marks where the authors' code was measured at an epsilon."""
    for point in points:
        if point.epsilon is not None:
            axes.plot(
                point.epsilon,
                measure(point),
                marker,
                markersize=6,
                markerfacecolor="none",
                markeredgecolor=point.line.colour,
                zorder=4,
            )
