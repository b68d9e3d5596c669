"""Figure 1: CPU of an iteration of SecFC, and of k-FED as a whole, against n, d and m (5.1)."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from cloister.crypto import Stream
from papers.data.partition import Rows, split_by_label
from papers.lab import drawing
from papers.lab.k_fed import cluster_locally, group_centres
from papers.lab.paper import Artefact
from papers.lab.products import Product, Table
from papers.secfc.datasets import Scope, Study, TimedSize, load_study
from papers.secfc.printed import WORST_ITERATION_S
from papers.secfc.sessions import Code, Job, choose_code, time_session
from papers.secfc.trials import Score, Trial, TrialLab

Axis = Literal["clients", "dimensions", "records"]
_AXES: dict[Axis, str] = {"clients": "clients n", "dimensions": "columns d", "records": "records m"}
_LOCAL_CLUSTERS = 2  # sqrt k


@dataclass(frozen=True, kw_only=True)
class Point:
    """One size: medians over sessions, in milliseconds of CPU on one thread."""

    axis: Axis
    size: TimedSize
    code: Code
    client_ms: float
    server_ms: float
    sharing_ms: float
    upload_bytes: int
    k_fed_ms: float
    """One client's clustering and the server's, once."""

    @property
    def value(self) -> int:
        """Where it is on its axis."""
        return int(getattr(self.size, self.axis))

    @property
    def iteration_ms(self) -> float:
        """One client and the server."""
        return self.client_ms + self.server_ms


@dataclass(frozen=True, kw_only=True)
class TimeFigure(Artefact[Scope, Trial, Score]):
    """Figure 1; it has no trials, everything is timed here."""

    name: str = "fig1"
    title: str = "Figure 1: CPU of an iteration against n, d and m (SecFC 5.1)"

    def count_sessions(self, scope: Scope) -> int:
        """Those of every point."""
        return scope.sessions * len(_list_sizes(scope))

    def make(self, scope: Scope, lab: TrialLab) -> Product:
        """Three panels; the summary has every point."""
        points = [_measure(axis, size, scope.sessions, lab, self.name) for axis, size in _list_sizes(scope)]
        return Product(
            table=Table.of(
                points,
                {
                    "axis": lambda point: point.axis,
                    "clients": lambda point: point.size.clients,
                    "dimensions": lambda point: point.size.dimensions,
                    "records": lambda point: point.size.records,
                    "privacy": lambda point: point.code.privacy,
                    "segments": lambda point: point.code.segments,
                    "client_ms": lambda point: point.client_ms,
                    "server_ms": lambda point: point.server_ms,
                    "iteration_ms": lambda point: point.iteration_ms,
                    "sharing_ms": lambda point: point.sharing_ms,
                    "upload_bytes": lambda point: point.upload_bytes,
                    "k_fed_ms": lambda point: point.k_fed_ms,
                    "printed_below_ms": lambda _: 1e3 * WORST_ITERATION_S,
                },
            ),
            summary=Table.of(
                points,
                {
                    "size": lambda point: f"{point.axis} {point.value:,}",
                    "client ms": lambda point: point.client_ms,
                    "server ms": lambda point: point.server_ms,
                    "iteration ms": lambda point: point.iteration_ms,
                    "k-FED, ms": lambda point: point.k_fed_ms,
                    "sharing, ms": lambda point: point.sharing_ms,
                    "kB up": lambda point: point.upload_bytes / 1e3,
                },
            ),
            notes=(
                f"The text prints no numbers of this figure but that an iteration takes less than "
                f"{WORST_ITERATION_S:g} s in the worst case, with processes on 48 threads; ours are CPU on one.",
                "Where not on the axis: n = 10, d = 20, m = 1,000, k = 4, sigma = 1, t = ceil(n / 3), l = 1. One "
                f"client, and the server, in rounds that measure every centre; medians of {scope.sessions} sessions "
                "and their rounds, with messages and masks. Sharing: one client, once. k-FED: one client and the "
                "server, once, k' = 2.",
            ),
            picture=_draw(points),
        )


def _list_sizes(scope: Scope) -> list[tuple[Axis, TimedSize]]:
    size = TimedSize()
    return [
        *(("clients", replace(size, clients=clients)) for clients in scope.timed_clients),
        *(("dimensions", replace(size, dimensions=dimensions)) for dimensions in scope.timed_dimensions),
        *(("records", replace(size, records=records)) for records in scope.timed_records),
    ]


def _measure(axis: Axis, size: TimedSize, sessions: int, lab: TrialLab, label: str) -> Point:
    """Time this many sessions after a warm-up."""
    study = load_study(size.data)
    parts = split_by_label(study.components, size.clients, _LOCAL_CLUSTERS, Stream.from_seed(0, "split", size.clients))
    # The client's time is printed as independent of n: l is the same for all.
    code = Code(privacy=choose_code(size.clients).privacy, segments=1)
    jobs = [Job(clusters=size.data.clusters, code=code, seed=seed, union=False) for seed in range(sessions + 1)]
    time_session(jobs[-1], study.unit_points, parts)
    _time_k_fed(study, parts, size, jobs[-1].seed)
    costs, k_fed_ms = [], []
    for job in jobs[:-1]:
        costs.append(time_session(job, study.unit_points, parts))
        k_fed_ms.append(_time_k_fed(study, parts, size, job.seed))
        lab.tick(label)
    return Point(
        axis=axis,
        size=size,
        code=code,
        client_ms=float(np.median([ms for cost in costs for ms in cost.client_ms])),
        server_ms=float(np.median([ms for cost in costs for ms in cost.server_ms])),
        sharing_ms=float(np.median([cost.sharing_ms for cost in costs])),
        upload_bytes=costs[0].upload_bytes,
        k_fed_ms=float(np.median(k_fed_ms)),
    )


def _time_k_fed(study: Study, parts: tuple[Rows, ...], size: TimedSize, seed: int) -> float:
    """CPU of a mean client and the server, as :func:`~papers.lab.k_fed.k_fed` runs them."""
    stream = Stream.from_seed(seed, "timed k-fed")
    own = [study.points[rows] for rows in parts]
    started_s = time.process_time()
    found = [
        cluster_locally(points, _LOCAL_CLUSTERS, stream.child("client", number), variant="described")
        for number, points in enumerate(own)
    ]
    clustered_s = time.process_time()
    sent = [each.centres for each in found]
    group_centres(sent, size.data.clusters, stream.child("server"), variant="described")
    return 1e3 * ((clustered_s - started_s) / len(parts) + time.process_time() - clustered_s)


def _draw(points: list[Point]) -> bytes:
    """Three panels side by side, as printed; both axes logarithmic."""
    from matplotlib.ticker import NullLocator  # noqa: PLC0415 (optional)

    figure = drawing.make_figure(11.5, 3.7)
    for axes, (axis, name) in zip(figure.subplots(1, len(_AXES)), _AXES.items(), strict=True):
        chosen = [point for point in points if point.axis == axis]
        x = [point.value for point in chosen]
        axes.plot(
            x, [point.client_ms for point in chosen], "o-", color=drawing.BLUE, label="SecFC, a client, an iteration"
        )
        axes.plot(
            x, [point.server_ms for point in chosen], "s-", color=drawing.GREEN, label="SecFC, server, an iteration"
        )
        axes.plot(
            x, [point.k_fed_ms for point in chosen], "^--", color=drawing.RED, label="k-FED, client and server, whole"
        )
        axes.set_xscale("log")
        axes.set_xticks(x, [f"{value:,}" for value in x])
        axes.xaxis.set_minor_locator(NullLocator())
        drawing.set_loss_ticks(axes)
        drawing.tidy_axes(axes, title=f"against {name}", x=name, y="CPU, ms")
    return drawing.finish_figure(figure, "Figure 1 again: CPU on one thread.", legend_columns=3)
