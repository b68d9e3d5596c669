"""The synopsis, step by step: count, box or axes, histogram, choice of k, clustering of the cells, refinement, swaps.

A generator that every party runs on the same released totals: it yields what is to be measured next. Nothing in it
looks at a record; everything that it decides follows from public values, from totals that have been paid for, and from
a stream that all parties have in common. Why it is private: docs/proofs/synopsis.md. Why these steps, and what else was
tried: docs/study-synopsis.md.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cloister.crypto.stream import Stream
from cloister.protocols.guided_sums.bounding import bound_answers
from cloister.protocols.guided_sums.equal_centres import part_equal_centres
from cloister.protocols.guided_sums.query import Asking
from cloister.protocols.guided_sums.refinement import refine_centres
from cloister.protocols.guided_sums.settings import PURSE
from cloister.protocols.guided_sums.size import release_size, weigh_clients
from cloister.protocols.guided_sums.swaps import Sketch
from cloister.protocols.synopsis.choice_of_k import KChoice, choose_k
from cloister.protocols.synopsis.ground import Route, find_ground, widen_radii
from cloister.protocols.synopsis.settings import Settings
from cloister.protocols.synopsis.start import cluster_cells, release_histogram
from cloister.records import FloatArray


@dataclass(frozen=True, kw_only=True, eq=False)
class Finding:
    """What a synopsis ends with; all of it has been paid for."""

    centres: FloatArray
    """(k, d) in [-1, 1]^d, all different."""
    weights: FloatArray
    """(k,): about how many records each cluster holds, at least 0."""
    weight_noise: float
    """The standard deviation of the noise in each of these."""
    released_records: float
    """The number of records, noisy or declared."""
    centre_noise: float
    """The standard deviation of the noise in a coordinate of a centre of average size in the last round."""
    rounds: int
    """Rounds of Lloyd's algorithm that were made."""
    route: Route
    cells: int
    """Of the histogram."""
    axes: int
    """How many columns, or main directions of the records, the histogram tells apart."""
    curve: tuple[KChoice, ...] = ()

    def to_bytes(self) -> bytes:
        """Everything that the parties must agree on about it."""
        return self.centres.tobytes() + self.weights.tobytes() + np.float64(self.released_records).tobytes()


def run_synopsis(settings: Settings, stream: Stream) -> Asking[Finding]:
    """Find centres.

    Parameters
    ----------
    settings
        Public values.
    stream
        Common to all parties. It decides where clusterings of cells start, the noise of the references that the choice
        of k is held against, the directions in which clusters are split, and what replaces centres that are equal.
        The noise of a release never comes from it.
    """
    asking = _find_centres(settings, stream)
    return (yield from bound_answers(asking) if settings.client_level else asking)


def _find_centres(settings: Settings, stream: Stream) -> Asking[Finding]:
    """The same steps for both units; with clients every answer is scaled as a whole (client.py)."""
    left_l2_squared = PURSE
    if settings.records is None:
        count_l2_squared = int(settings.knobs.count_share * PURSE)
        left_l2_squared -= count_l2_squared
        released_records = yield from release_size(settings, l2_squared=count_l2_squared)
    else:
        released_records = float(settings.records)
    records = weigh_clients(settings, released_records) if settings.client_level else released_records
    ground = yield from find_ground(settings, l2_squared=left_l2_squared, records=records)
    histogram = yield from release_histogram(
        settings, ground.grid, l2_squared=ground.histogram_l2_squared, records=records
    )
    k = settings.clusters
    curve: tuple[KChoice, ...] = ()
    if settings.choose_k:
        choice = choose_k(
            settings,
            ground.grid,
            histogram,
            l2_squared=ground.histogram_l2_squared,
            records=records,
            stream=stream.child("choice of k"),
        )
        k, curve = choice.k, choice.curve
    start = cluster_cells(histogram, k, restarts=settings.knobs.restarts, stream=stream.child("cells"))
    centres, radii = ground.place(start)
    refined = yield from refine_centres(
        settings,
        l2_squared=ground.left_l2_squared,
        records=records,
        centres=centres,
        radii=widen_radii(settings, radii, l2_squared=ground.left_l2_squared, records=records),
        weights=start.weights,
        weight_variances=start.weight_variances,
        sketch=Sketch(points=ground.embed(histogram.points), weights=histogram.weights),
        stream=stream.child("swaps"),
    )
    # With clients the rounds count in other units: parts of the whole are what they tell.
    seen = float(refined.weights.sum())
    scale = released_records / seen if settings.client_level and seen > 0 else 1.0
    return Finding(
        centres=part_equal_centres(refined.centres, stream.child("equal centres")),
        weights=refined.weights * scale,
        weight_noise=refined.weight_noise * scale,
        released_records=released_records,
        centre_noise=refined.centre_noise,
        rounds=refined.rounds,
        route=ground.route,
        cells=ground.grid.cells,
        axes=int((ground.grid.bins > 1).sum()),
        curve=curve,
    )
