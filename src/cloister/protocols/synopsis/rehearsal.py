"""A rehearsal: the same algorithm, noise and charges in one place, without masks and messages; for plans and studies.

Whoever runs it holds every record, so it protects nobody; what it finds is what a session with the same noise finds,
bit for bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cloister.crypto import Stream
from cloister.errors import LocalProtocolError
from cloister.kmeans.records import Records
from cloister.privacy.mechanisms import DiscreteGaussian, Release
from cloister.privacy.samplers import Sampler
from cloister.protocols.noise_holders import is_by_coordinator
from cloister.protocols.synopsis.agreement import release_of
from cloister.protocols.synopsis.pipeline import Finding, run_synopsis
from cloister.protocols.synopsis.query import IntArray
from cloister.protocols.synopsis.settings import Settings


@dataclass(frozen=True, kw_only=True, eq=False)
class Rehearsal:
    """What a session would have ended with."""

    finding: Finding
    releases: tuple[Release, ...]
    """What each party would have been charged for."""
    totals: tuple[IntArray, ...]
    """The released numbers of each round, whole slots."""


def rehearse(settings: Settings, parts: Sequence[Records], *, sampler: Sampler, stream: Stream) -> Rehearsal:
    """Run the algorithm on all parties' records at once.

    Parameters
    ----------
    settings
        Public values.
    parts
        Each party's records; who holds which matters for client-level privacy only.
    sampler
        Asked once a round for the noise of a whole slot: what all holders of noise add together.
    stream
        The parties' common stream.
    """
    noise = _total_noise(settings)
    asking = run_synopsis(settings, stream)
    query = next(asking)
    releases: list[Release] = []
    totals: list[IntArray] = []
    for slot in settings.slots:
        exact = np.zeros(slot.length, dtype=np.int64)
        for part in parts:
            exact[: query.length] += query.measure(part)
        total = exact + sampler.draw(noise, slot.length)
        if query.l2_squared > 0:
            releases.append(release_of(query, slot, settings))
        totals.append(total)
        try:
            query = asking.send(total[: query.length])
        except StopIteration as stop:
            return Rehearsal(finding=stop.value, releases=tuple(releases), totals=tuple(totals))
    raise LocalProtocolError(f"the algorithm must end after {len(settings.slots)} rounds; it did not: this is a bug.")


def _total_noise(settings: Settings) -> DiscreteGaussian:
    """All noise on one number as one discrete Gaussian.

    A sum of shares is one up to a relative exp(-2 pi^2 sigma^2) (privacy.costs.ripple_of_sum): with the sigmas here,
    which are above 1000 for any budget, that is nothing.
    """
    if is_by_coordinator(settings.placement):
        return settings.target
    return DiscreteGaussian(sigma=settings.noise_std)
