"""Where the baselines start (5, G.3): from the server's points, or from nothing at all. None of them reads a client."""

from __future__ import annotations

from typing import Literal

import numpy as np
from scipy.spatial.distance import cdist

from cloister.crypto import Stream
from cloister.kmeans.initialisation import kmeans_plus_plus
from cloister.kmeans.lloyd import weighted_kmeans
from cloister.records import FloatArray

Start = Literal["server-kmeans++", "server-lloyds", "sphere-packing"]

_ATTEMPTS = 1000  # for each centre (G.3)
_HALVINGS = 20
_BATCH = 100


def find_start(start: Start, server: FloatArray, clusters: int, stream: Stream) -> FloatArray:
    """Return initial centres in the units of the server's points.

    Parameters
    ----------
    start
        ``server-kmeans++``: k-means++ on the server's points. ``server-lloyds``: a full k-means clustering of them.
        ``sphere-packing``: :func:`pack_cube` with their radius.
    server
        (m, d).
    clusters
        k.
    stream
        The source of randomness.
    """
    if start == "server-kmeans++":
        return kmeans_plus_plus(stream, server, clusters)
    if start == "server-lloyds":
        return weighted_kmeans(server, clusters, stream).centres
    radius = float(np.sqrt((server**2).sum(axis=1).max()))
    return pack_cube(stream, clusters, server.shape[1], radius)


def pack_cube(stream: Stream, clusters: int, dimensions: int, radius: float) -> FloatArray:
    """Place centres apart in [-radius, radius]^d as G.3 describes it.

    A distance a is feasible if k points can be drawn one after another, uniformly in the cube, each at least a from
    the cube's corners and 2 a from those before, with 1000 attempts for each. Binary search finds the largest one. G.3
    says corners where Su et al. (2017) keep clear of the boundary (:func:`~cloister.kmeans.sphere_packing`): in many
    dimensions the centres are then far outside of data of that radius.
    """
    low, high = 0.0, radius * float(np.sqrt(dimensions))
    packed: FloatArray | None = None
    step = 0
    while step < _HALVINGS or packed is None:  # as a falls to 0 every point fits, so the search ends
        apart = (low + high) / 2
        attempt = _try_packing(stream, clusters, dimensions, radius, apart)
        if attempt is None:
            high = apart
        else:
            low, packed = apart, attempt
        step += 1
    return packed


def _try_packing(stream: Stream, clusters: int, dimensions: int, radius: float, apart: float) -> FloatArray | None:
    centres = np.empty((0, dimensions))
    for _ in range(clusters):
        for _ in range(_ATTEMPTS // _BATCH):
            candidates = radius * (2.0 * stream.uniform(_BATCH, dimensions) - 1.0)
            fits = np.linalg.norm(radius - np.abs(candidates), axis=1) >= apart
            fits &= (cdist(candidates, centres) >= 2 * apart).all(axis=1)
            if fits.any():
                centres = np.concatenate([centres, candidates[fits][:1]])
                break
        else:
            return None
    return centres
