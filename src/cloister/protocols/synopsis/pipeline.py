"""The synopsis, step by step: count, box or axes, histogram, choice of k, clustering of the cells, refinement, swaps.

`run_synopsis` is a generator that the leader runs on the released totals: it yields what is to be measured next.
Nothing in it looks at a record; everything that it decides follows from public values, from totals that have been paid
for, and from a stream that all parties have in common. Why it is private: docs/proofs/synopsis.md. Why these steps, and
what else was tried: docs/study-synopsis.md.
"""

from __future__ import annotations

from cloister.crypto import Stream
from cloister.protocols.guided_sums.algorithm import GuidedFinding, Layout
from cloister.protocols.guided_sums.postprocessing import Sketch, part_equal_centres
from cloister.protocols.guided_sums.query import Asking
from cloister.protocols.guided_sums.refinement import refine_centres
from cloister.protocols.guided_sums.settings import BUDGET_UNITS
from cloister.protocols.guided_sums.statistics import release_size, weigh_clients
from cloister.protocols.synopsis.choice_of_k import choose_k
from cloister.protocols.synopsis.grid_plan import plan_grid, widen_radii
from cloister.protocols.synopsis.histogram import cluster_cells, release_histogram
from cloister.protocols.synopsis.settings import Settings
from cloister.report.result import KChoice


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
    left_l2_squared = BUDGET_UNITS
    if settings.records is None:
        count_l2_squared = int(settings.knobs.count_share * BUDGET_UNITS)
        left_l2_squared -= count_l2_squared
        released_records = yield from release_size(settings, l2_squared=count_l2_squared)
    else:
        released_records = float(settings.records)
    records = weigh_clients(settings, released_records) if settings.client_level else released_records
    plan = yield from plan_grid(settings, l2_squared=left_l2_squared, records=records)
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
        radii=widen_radii(settings, radii, l2_squared=plan.left_l2_squared, records=records),
        weights=start.weights,
        weight_variances=start.weight_variances,
        sketch=Sketch(points=plan.embed(histogram.points), weights=histogram.weights),
        stream=stream.child("swaps"),
    )
    # With clients, the rounds count in other units and only give proportions.
    seen = float(refined.weights.sum())
    scale = released_records / seen if settings.client_level and seen > 0 else 1.0
    return GuidedFinding(
        centres=part_equal_centres(refined.centres, stream.child("equal centres")),
        weights=refined.weights * scale,
        weight_noise=refined.weight_noise * scale,
        released_records=released_records,
        centre_noise=refined.centre_noise,
        rounds=refined.rounds,
        curve=curve,
        layout=Layout(route=plan.route, cells=plan.grid.cells, axes=int((plan.grid.bins > 1).sum())),
    )
