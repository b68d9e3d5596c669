"""Vertical k-means, step by step: joint histogram, clustering of its cells, a few rounds of Lloyd's algorithm.

A generator that every role runs on the same released totals: it yields what is to be added up next. Nothing in it looks
at a record; everything follows from public values, the codebooks, totals that have been paid for, and a stream that
all roles have in common. Why it is private: docs/proofs/vertical.md. Why these steps: docs/study-vertical.md.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cloister.crypto.stream import Stream
from cloister.kmeans.initialisation import sphere_packing
from cloister.protocols.guided_sums.equal_centres import part_equal_centres
from cloister.protocols.vertical.codebooks import Codebooks
from cloister.protocols.vertical.query import Asking
from cloister.protocols.vertical.rounds import refine_centres
from cloister.protocols.vertical.settings import Settings
from cloister.protocols.vertical.start import StartingPoint, find_start
from cloister.records import FloatArray


@dataclass(frozen=True, kw_only=True, eq=False)
class Finding:
    """What a vertical clustering ends with; all of it has been paid for."""

    centres: FloatArray
    """(k, d) in [-1, 1]^d, in the job's column order, all different."""
    weights: FloatArray
    """(k,): about how many records each cluster holds, at least 0."""
    weight_noise: float
    """The standard deviation of the noise in each of these."""
    centre_noise: float
    """The standard deviation of the noise in a coordinate of a centre of average size in the last round."""
    rounds: int
    """Rounds of Lloyd's algorithm that were made."""

    def to_bytes(self) -> bytes:
        """Everything that the roles must agree on about it."""
        return self.centres.tobytes() + self.weights.tobytes()


def run_vertical(settings: Settings, codebooks: Codebooks, stream: Stream) -> Asking[Finding]:
    """Find centres.

    Parameters
    ----------
    settings
        Public values.
    codebooks
        Public by now.
    stream
        Common to all roles. It decides where clusterings of cells start, random centres, and what replaces centres
        that are equal. The noise of a release never comes from it.
    """
    if settings.start == "synopsis":
        start = yield from find_start(settings, codebooks, stream.child("start"))
    else:
        start = _place_centres(settings, stream.child("random centres"))
    refined = yield from refine_centres(settings, codebooks, start)
    return Finding(
        centres=part_equal_centres(settings.layout.to_job(refined.centres), stream.child("equal centres")),
        weights=refined.weights,
        weight_noise=refined.weight_noise,
        centre_noise=refined.centre_noise,
        rounds=settings.rounds_made,
    )


def _place_centres(settings: Settings, stream: Stream) -> StartingPoint:
    """Centres far apart that depend on no record."""
    return StartingPoint(
        centres=np.ascontiguousarray(sphere_packing(stream, settings.clusters, settings.dimensions)),
        weights=None,
        weight_variances=None,
        variance_alice=0.0,
        variance_encrypted=0.0,
    )
