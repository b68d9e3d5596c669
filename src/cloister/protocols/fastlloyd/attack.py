"""Attacks on published variants with constrained cluster sizes: a chain in which one more record moves many.

Under size constraints (thesis 4.1.3), records join clusters where they are needed, not where they are near. Let the
centres be close together along a line u. Each cluster but the last has one record that is nearer to the next centre,
but is kept because its cluster would be too small without it. A record that joins the first cluster frees that one,
which joins the second cluster and frees the next, and so on: k clusters change.

Orthogonally to u, records can be placed freely. Those that move are alternately at opposite ends of the domain, so that
every cluster but the last gains a record at one end and loses one at the other: its sum moves by nearly 2B in every
column. With one column there is no orthogonal direction, and the moves only add up to the width of the domain
(docs/proofs/published-fastlloyd.md).

The chain is at the first party and as short as possible: sizes are in proportion to the number of records, so
fewer records do not make a claim easier to refute.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import msgspec
import numpy as np

from cloister.columns import to_original
from cloister.job import Job
from cloister.protocols.fastlloyd.options import FastLloydOptions
from cloister.protocols.fastlloyd.published import PublishedSettings
from cloister.protocols.multiparty_lloyd.attack import Neighbours
from cloister.records import FloatArray

_CHAIN_SIZE = 10  # records in a cluster of the chain
_ALONG = 2.0**-6
"""How far the chain reaches along u, in each of u's two columns: what is lost of the 2B orthogonal to it."""


@dataclass(frozen=True, kw_only=True, eq=False)
class AssignmentChain:
    """Made-up records of one party, in unit scaling.

    Attributes
    ----------
    start
        (k, d): the centres that the records are assigned to.
    rows
        (k size, d): all records but one.
    record
        (d,): the one that may be there.
    """

    start: FloatArray
    rows: FloatArray
    record: FloatArray


def build_chain(clusters: int, dimensions: int, *, size: int, reach: float = math.inf) -> AssignmentChain:
    """Place the records.

    Parameters
    ----------
    clusters, dimensions
        k and d.
    size
        The least size of the party's clusters.
    reach
        How far a record may be from the centres that it is near to, if the distance is constrained.
    """
    along = np.zeros(dimensions)
    along[:2] = (1.0, -1.0)[:dimensions]
    length = _ALONG if dimensions > 1 else min(1.0, reach / 2)
    step = 2 * length / (clusters + 1)
    places = -length + step * (np.arange(clusters) + 0.5)
    # Orthogonal to u, as long as the domain and the reach allow.
    across = np.full(dimensions, min(1.0 - _ALONG, 0.99 * reach / math.sqrt(dimensions)) if dimensions > 1 else 0.0)
    rows = np.repeat(places[:, None] * along, size, axis=0).reshape(clusters, size, dimensions)
    signs = np.where(np.arange(clusters) % 2 == 0, 1.0, -1.0)
    movers = (places + 0.75 * step)[:, None] * along + signs[:, None] * across
    rows[:-1, -1] = movers[:-1]
    rows[-1] += signs[-1] * across  # opposite to the last mover, so that its arrival is most visible
    return AssignmentChain(
        start=places[:, None] * along,
        rows=rows.reshape(-1, dimensions),
        record=(places[0] - 0.25 * step) * along - across,
    )


def declare_fewer(job: Job, options: FastLloydOptions) -> Job:
    """Return the same published variant, with as few records as a chain needs and an unchanged number of rounds."""
    assert job.budget is not None
    settings = options.make_published_settings(job)
    enough = math.floor(settings.parties * _CHAIN_SIZE * settings.records / settings.size_min)
    records = min(settings.records, max(enough, job.k))
    return replace(
        job,
        data=msgspec.structs.replace(job.data, records=records, max_records=None),
        protocol=msgspec.structs.replace(options, iterations=settings.count_rounds(job.budget.epsilon)),
    )


def make_chain(job: Job, settings: PublishedSettings) -> tuple[FloatArray, list[Neighbours]]:
    """Return first centres and a chain; the other parties hold the remaining records, spread over the clusters."""
    size, most = settings.local_sizes
    reach = settings.make_radii(1)[0] if settings.kind == "distance-constrained" else math.inf
    chain = build_chain(job.k, settings.dimensions, size=size, reach=reach)
    left = math.ceil((settings.records - len(chain.rows)) / (settings.parties - 1))
    held = min(max(left, job.k * size), job.k * most)
    spread = to_original(chain.start[np.arange(held) % job.k], job.coordinates)
    inputs = Neighbours.of_record(
        "one more record, at the end of a chain of clusters of minimal size",
        job,
        rows=to_original(chain.rows, job.coordinates),
        record=to_original(chain.record[None, :], job.coordinates)[0],
        others=(spread,) * (settings.parties - 1),
    )
    return chain.start, [inputs]
