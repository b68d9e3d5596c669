"""The synopsis, step by step: count, box or axes, histogram, choice of k, clustering of the cells, refinement, swaps.

`run_synopsis` is a generator that the leader runs on the released totals: it yields what is to be measured next.
Nothing in it looks at a record; everything that it decides follows from public values, from totals that have been paid
for, and from a stream that all parties have in common. Why it is private: docs/proofs/synopsis.md. Why these steps, and
what else was tried: docs/study-synopsis.md.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from cloister.crypto import Stream
from cloister.protocols.guided_sums.algorithm import GuidedFinding, Layout, conclude, find_nothing
from cloister.protocols.guided_sums.postprocessing import Sketch
from cloister.protocols.guided_sums.query import IDLE, Asking, PublicValues, Query, pose, relay
from cloister.protocols.guided_sums.refinement import estimate_sizes, refine_centres
from cloister.protocols.guided_sums.scaling import StatedScale
from cloister.protocols.guided_sums.settings import BUDGET_UNITS
from cloister.protocols.guided_sums.statistics import NumberOfRecords, find_number, list_size_slots, weigh_clients
from cloister.protocols.synopsis.choice_of_k import choose_k
from cloister.protocols.synopsis.extent import Box
from cloister.protocols.synopsis.grid_plan import Found, plan_grid, widen_radii
from cloister.protocols.synopsis.histogram import cluster_cells, release_histogram
from cloister.protocols.synopsis.settings import SIGNAL_LEAST, Settings, SpreadSettings
from cloister.protocols.synopsis.zoom import find_scale
from cloister.protocols.synopsis.zoom_questions import SCALED
from cloister.report.result import KChoice

_REACH_LEAST = 1e-6  # of the longest record: where no column counts, all are 0


def run_synopsis(settings: Settings, stream: Stream) -> Asking[GuidedFinding]:
    """Find centres.

    Parameters
    ----------
    settings
        Public values.
    stream
        Common to all parties. It determines where clusterings of cells start, the noise of the references for the
        choice of k, the directions in which clusters are split, and what replaces equal centres.
        The noise of a release never comes from it.
    """
    count_l2_squared = 0 if settings.records is not None else int(settings.knobs.count_share * BUDGET_UNITS)
    number = yield from find_number(settings, l2_squared=count_l2_squared)
    records = weigh_clients(settings, number.estimate) if settings.client_level else number.estimate
    left_l2_squared = BUDGET_UNITS - count_l2_squared
    if isinstance(settings, SpreadSettings):
        return (yield from _run_scaled(settings, stream, l2_squared=left_l2_squared, number=number))
    return (yield from _run_steps(settings, stream, l2_squared=left_l2_squared, number=number, records=records))


def _run_scaled(
    settings: SpreadSettings, stream: Stream, *, l2_squared: int, number: NumberOfRecords
) -> Asking[GuidedFinding]:
    """Find a scale first; then ask everything of scaled records."""
    records = number.estimate
    if settings.any_private and settings.measure_signal(records) < SIGNAL_LEAST:
        for _ in range(len(settings.slots) - len(list_size_slots(settings))):
            yield IDLE
        return find_nothing(settings)
    found = yield from find_scale(settings, records=records)
    steps = _run_steps(
        settings,
        stream,
        l2_squared=l2_squared - found.l2_squared,
        number=number,
        records=records,
        found=Found(box=Box(low=found.low, high=found.high), reach=max(found.scale.reach, _REACH_LEAST)),
    )
    finding = yield from relay(steps, partial(_ask_scaled, settings, StatedScale.of(found.scale)))
    return replace(finding, scale=found.scale)


def _ask_scaled(settings: SpreadSettings, scale: StatedScale, query: Query) -> Query:
    """Ask the same of scaled records."""
    if query.length == 0:
        return query
    scaled = SCALED[type(query.question)](scale=scale, question=query.question)  # type: ignore[call-arg]
    return pose(PublicValues(settings=settings), query.name, scaled)


def _run_steps(
    settings: Settings,
    stream: Stream,
    *,
    l2_squared: int,
    number: NumberOfRecords,
    records: float,
    found: Found | None = None,
) -> Asking[GuidedFinding]:
    """Lay a grid, cluster its cells, and refine."""
    plan = yield from plan_grid(settings, l2_squared=l2_squared, records=records, found=found)
    histogram = yield from release_histogram(settings, plan.grid, l2_squared=plan.histogram_l2_squared, records=records)
    k = settings.clusters
    curve: tuple[KChoice, ...] = ()
    if settings.choose_k:
        choice = choose_k(
            settings,
            plan.grid,
            histogram,
            l2_squared=plan.histogram_l2_squared,
            records=records,
            stream=stream.child("choice of k"),
        )
        k, curve = choice.k, choice.curve
    start = cluster_cells(histogram, k, restarts=settings.knobs.restarts, stream=stream.child("cells"))
    centres, radii = plan.place(start)
    refined = yield from refine_centres(
        settings,
        l2_squared=plan.left_l2_squared,
        records=records,
        centres=centres,
        centre_variances=plan.spread_noise(start.centre_variances),
        radii=widen_radii(settings, radii, l2_squared=plan.left_l2_squared, records=records),
        weights=start.weights,
        weight_variances=start.weight_variances,
        sketch=Sketch(points=plan.embed(histogram.points), weights=histogram.weights),
        stream=stream.child("swaps"),
    )
    return conclude(
        refined,
        estimate_sizes(refined, number, counted_all=not settings.client_level),
        stream=stream.child("equal centres"),
        curve=curve,
        layout=Layout(route=plan.route, cells=plan.grid.cells, axes=int((plan.grid.bins > 1).sum())),
    )
