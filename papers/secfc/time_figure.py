"""Figure 1: CPU of an iteration of SecFC, and of k-FED as a whole, against n, d and m (5.1)."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np

from cloister.crypto import Stream
from papers.data.partition import Rows, split_by_label
from papers.fastlloyd.drawing import BLUE, GREEN, RED, make_figure, save_figure, set_loss_ticks, tidy_axes
from papers.fastlloyd.products import Product, Table, Value
from papers.lab.k_fed import cluster_locally, group_centres
from papers.secfc.datasets import Study, load_study
from papers.secfc.lab import SecfcLab
from papers.secfc.printed import WORST_ITERATION_S
from papers.secfc.scope import SecfcScope, TimedSize
from papers.secfc.sessions import Code, Job, choose_code, time_session
from papers.secfc.trials import Trial

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


@dataclass(frozen=True, kw_only=True)
class TimeFigure:
    """Figure 1."""

    name: ClassVar[str] = "fig1"
    title: ClassVar[str] = "Figure 1: CPU of an iteration against n, d and m (SecFC 5.1)"

    def list_trials(self, scope: SecfcScope) -> list[Trial]:
        """None: these are timed here."""
        return []

    def count_sessions(self, scope: SecfcScope) -> int:
        """Those of every point."""
        return scope.sessions * len(_list_sizes(scope))

    def make(self, scope: SecfcScope, lab: SecfcLab) -> Product:
        """Three panels; the summary has every point."""
        points = [_measure(axis, size, scope.sessions, lab, self.name) for axis, size in _list_sizes(scope)]
        columns = (
            "axis", "clients", "dimensions", "records", "privacy", "segments", "client_ms", "server_ms",
            "iteration_ms", "sharing_ms", "upload_bytes", "k_fed_ms", "printed_below_ms",
        )  # fmt: skip
        rows: list[tuple[Value, ...]] = [
            (
                point.axis, point.size.clients, point.size.dimensions, point.size.records, point.code.privacy,
                point.code.segments, point.client_ms, point.server_ms, point.client_ms + point.server_ms,
                point.sharing_ms, point.upload_bytes, point.k_fed_ms, 1e3 * WORST_ITERATION_S,
            )
            for point in points
        ]  # fmt: skip
        summary: list[tuple[Value, ...]] = [
            (
                f"{point.axis} {getattr(point.size, point.axis):,}",
                point.client_ms,
                point.server_ms,
                point.client_ms + point.server_ms,
                point.k_fed_ms,
                point.sharing_ms,
                point.upload_bytes / 1e3,
            )
            for point in points
        ]
        shown = ("size", "client ms", "server ms", "iteration ms", "k-FED, ms", "sharing, ms", "kB up")
        return Product(
            table=Table(columns=columns, rows=tuple(rows)),
            summary=Table(columns=shown, rows=tuple(summary)),
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


def _list_sizes(scope: SecfcScope) -> list[tuple[Axis, TimedSize]]:
    size = TimedSize()
    return [
        *(("clients", replace(size, clients=clients)) for clients in scope.timed_clients),
        *(("dimensions", replace(size, dimensions=dimensions)) for dimensions in scope.timed_dimensions),
        *(("records", replace(size, records=records)) for records in scope.timed_records),
    ]


def _measure(axis: Axis, size: TimedSize, sessions: int, lab: SecfcLab, label: str) -> Point:
    """Time so many sessions after one that warms up."""
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

    figure = make_figure(11.5, 3.7)
    for axes, (axis, name) in zip(figure.subplots(1, len(_AXES)), _AXES.items(), strict=True):
        chosen = [point for point in points if point.axis == axis]
        x = [getattr(point.size, axis) for point in chosen]
        axes.plot(x, [point.client_ms for point in chosen], "o-", color=BLUE, label="SecFC, a client, an iteration")
        axes.plot(x, [point.server_ms for point in chosen], "s-", color=GREEN, label="SecFC, server, an iteration")
        axes.plot(x, [point.k_fed_ms for point in chosen], "^--", color=RED, label="k-FED, client and server, whole")
        axes.set_xscale("log")
        axes.set_xticks(x, [f"{value:,}" for value in x])
        axes.xaxis.set_minor_locator(NullLocator())
        set_loss_ticks(axes)
        tidy_axes(axes, title=f"against {name}", x=name, y="CPU, ms")
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), fontsize=9, frameon=False)
    figure.suptitle("Figure 1 again: CPU on one thread.", fontsize=9, x=0.01, ha="left")
    return save_figure(figure)
