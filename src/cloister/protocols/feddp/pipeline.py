"""FedDP-KMeans with server data, our form: projection, weights of the server's points, steps of Lloyd's algorithm.

The three steps of FedDP-Init and the steps of FedDP-Lloyds (Algorithms 1 and 2) as one algorithm on guided sums. A
generator that the leader runs on the released totals. What differs from the paper, and why:
docs/study-feddp.md; why it is private: docs/proofs/feddp.md.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from cloister.crypto import Stream
from cloister.errors import LocalProtocolError
from cloister.privacy.centre_noise import UNKNOWN
from cloister.protocols.feddp.initialisation import (
    Kept,
    Proxy,
    Start,
    cluster_proxy,
    find_projection,
    release_weights,
)
from cloister.protocols.feddp.published import run_published
from cloister.protocols.feddp.reduction import ask_moved, find_relocation, simplify_server
from cloister.protocols.feddp.server import ServerData, ServerStamp
from cloister.protocols.feddp.settings import FeddpSettings
from cloister.protocols.guided_sums.algorithm import GuidedFinding, Pipeline, conclude
from cloister.protocols.guided_sums.postprocessing import Sketch
from cloister.protocols.guided_sums.query import Asking, relay
from cloister.protocols.guided_sums.refinement import Guide, Refined, estimate_sizes, refine_centres
from cloister.protocols.guided_sums.settings import BUDGET_UNITS
from cloister.protocols.guided_sums.statistics import find_number, weigh_clients
from cloister.records import FloatArray

_RADIUS_LEAST = 1e-6
_WIDTH = 1.6  # squared lengths in the subspace are clipped at this many times the typical length
_CLIENT_RADIUS = 1.15  # a party's vector is bounded as a whole: longer offsets cost it little


def bind_server(points: FloatArray) -> Pipeline:
    """Return the algorithm for a server that has these points."""

    def run(settings: FeddpSettings, stream: Stream) -> Asking[GuidedFinding]:
        stamp = ServerStamp.of(points, dimensions=settings.dimensions, clusters=settings.clusters)
        if stamp != settings.server:
            raise LocalProtocolError("the server's data must be those that were agreed on; they are not.")
        server = ServerData(points=np.ascontiguousarray(points, dtype=np.float64))
        if settings.variant == "published":
            return (yield from run_published(settings, server, stream))
        return (yield from _find_centres(settings, server, stream))

    return run


def _find_centres(settings: FeddpSettings, server: ServerData, stream: Stream) -> Asking[GuidedFinding]:
    count_l2_squared = 0 if settings.records is not None else int(settings.knobs.count_share * BUDGET_UNITS)
    left_l2_squared = BUDGET_UNITS - count_l2_squared
    number = yield from find_number(settings, l2_squared=count_l2_squared)
    if count_l2_squared and not settings.client_level:
        number = number.scaled(1 / settings.sampled)
    # About how many records a round adds up, with a sample of the parties.
    records = settings.sampled * (
        weigh_clients(settings, number.estimate) if settings.client_level else number.estimate
    )
    separation = settings.options.separation
    if separation is None:
        refined = yield from _run_steps(settings, server, stream, l2_squared=left_l2_squared, records=records)
    else:
        near_l2_squared = int(settings.options.separation_share * BUDGET_UNITS)
        left_l2_squared -= near_l2_squared
        relocation = yield from find_relocation(
            settings, server.points, separation, l2_squared=near_l2_squared, records=records
        )
        moved = ServerData(points=relocation.moved_points)
        steps = _run_steps(settings, moved, stream, l2_squared=left_l2_squared, records=records)
        moved_back = yield from relay(steps, partial(ask_moved, settings, relocation))
        refined = replace(
            moved_back,
            centres=relocation.move_back(moved_back.centres),
            centre_variances=np.minimum(moved_back.centre_variances / relocation.scale**2, UNKNOWN),
        )
    all_clear = settings.clear == 1 or refined.rounds > 1
    sizes = estimate_sizes(
        refined, number, counted_all=not settings.client_level and settings.sampled == 1 and all_clear
    )
    return conclude(refined, sizes, stream=stream.child("equal centres"))


def _run_steps(
    settings: FeddpSettings, server: ServerData, stream: Stream, *, l2_squared: int, records: float
) -> Asking[Refined]:
    knobs, options = settings.knobs, settings.options
    moment_l2_squared = int(knobs.moment_share * BUDGET_UNITS)
    weight_l2_squared = int(knobs.weight_share * BUDGET_UNITS)
    l2_squared -= moment_l2_squared + weight_l2_squared
    subspace = yield from find_projection(settings, server, l2_squared=moment_l2_squared, records=records)
    kept: Kept = None
    if options.simplify:
        simplify_l2_squared = int(options.simplify_share * BUDGET_UNITS)
        l2_squared -= simplify_l2_squared
        kept = yield from simplify_server(
            settings, server.points, subspace, l2_squared=simplify_l2_squared, stream=stream.child("simplification")
        )
    proxy = yield from release_weights(
        settings, server.points, kept, subspace, l2_squared=weight_l2_squared, records=records
    )
    points = server.points if kept is None else np.ascontiguousarray(server.points[kept])
    start = cluster_proxy(proxy, settings.clusters, restarts=knobs.restarts, stream=stream.child("server's points"))
    centres = np.clip(subspace.embed(start.places), -1.0, 1.0)
    radius = _find_radius(points, centres, start, proxy.weights) * (_CLIENT_RADIUS if settings.client_level else 1.0)
    return (
        yield from refine_centres(
            settings,
            l2_squared=l2_squared,
            records=records,
            centres=centres,
            centre_variances=np.minimum(start.place_variances @ subspace.axes.T**2, UNKNOWN),
            radii=np.full(len(centres), radius),
            weights=start.weights,
            weight_variances=start.weight_variances,
            sketch=Sketch(points=np.clip(subspace.embed(proxy.places), -1.0, 1.0), weights=proxy.weights),
            stream=stream.child("swaps"),
            guide=Guide(
                subspace=subspace,
                places=start.places,
                radius=_find_width(proxy, start),
                clear=settings.clear,
            ),
        )
    )


def _find_radius(points: FloatArray, centres: FloatArray, start: Start, weights: FloatArray) -> float:
    """Return the typical distance of a record from its centre, estimated from the weighted server points.

    It never comes from the records themselves: such a radius would be one more release.
    """
    squares = ((points - centres[start.labels]) ** 2).sum(axis=1)
    return max(float(np.sqrt(weights @ squares / weights.sum())), _RADIUS_LEAST)


def _find_width(proxy: Proxy, start: Start) -> float:
    """Return a length in the subspace beyond which few records are from their centre."""
    squares = ((proxy.places - start.places[start.labels]) ** 2).sum(axis=1)
    return max(_WIDTH * float(np.sqrt(proxy.weights @ squares / proxy.weights.sum())), _RADIUS_LEAST)
