"""A rehearsal: the same algorithm, noise and charges in one place, without masks and messages; for plans and studies.

Whoever runs it holds every record, so it protects nobody; what it finds is what a session with the same noise finds,
bit for bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic

import numpy as np

from cloister.crypto import Stream
from cloister.errors import LocalProtocolError
from cloister.privacy.mechanisms import DiscreteGaussian, DiscreteLaplace, Mechanism, Release
from cloister.privacy.samplers import Sampler
from cloister.protocols.guided_sums.agreement import release_of
from cloister.protocols.guided_sums.sampling import sample_parties
from cloister.protocols.guided_sums.settings import GuidedSettings, Slot
from cloister.protocols.guided_sums.thinking import Finding, Pipeline
from cloister.records import IntArray, Records


@dataclass(frozen=True, kw_only=True, eq=False)
class Rehearsal(Generic[Finding]):
    """What a session would have ended with."""

    finding: Finding
    releases: tuple[Release, ...]
    """What each party would have been charged for."""
    totals: tuple[IntArray, ...]
    """The released numbers of each round, whole slots."""


def rehearse(
    settings: GuidedSettings,
    parts: Sequence[Records],
    *,
    pipeline: Pipeline[Finding],
    sampler: Sampler,
    stream: Stream,
    key: bytes = bytes(32),
) -> Rehearsal[Finding]:
    """Run the algorithm on all parties' records at once.

    Parameters
    ----------
    settings
        Public values.
    parts
        Each party's records; who holds which matters for client-level privacy only.
    pipeline
        The algorithm.
    sampler
        Asked once a round for the noise of a whole slot: what all holders of noise add together.
    stream
        The parties' common stream.
    key
        Decides who is asked in which round, where that are not all (`sampling`).
    """
    asking = pipeline(settings, stream)
    query = next(asking)
    releases: list[Release] = []
    totals: list[IntArray] = []
    for round_, slot in enumerate(settings.slots, start=1):
        exact = np.zeros(slot.length, dtype=np.int64)
        for part in _choose_parts(settings, parts, round_, key):
            exact[: query.length] += query.measure(part)
        total = exact + sampler.draw(_total_noise(settings, slot), slot.length)
        if query.l2_squared > 0:
            releases.append(release_of(query, slot, settings))
        totals.append(total)
        try:
            query = asking.send(total[: query.length])
        except StopIteration as stop:
            return Rehearsal(finding=stop.value, releases=tuple(releases), totals=tuple(totals))
    raise LocalProtocolError(f"the algorithm must end after {len(settings.slots)} rounds; it did not: this is a bug.")


def _choose_parts(settings: GuidedSettings, parts: Sequence[Records], round_: int, key: bytes) -> Sequence[Records]:
    """All, or those of the parties that are asked."""
    if settings.sample_size >= settings.parties:
        return parts
    asked = sample_parties(key, round_, parties=settings.parties, size=settings.sample_size)
    return [parts[number - 1] for number in asked]


def _total_noise(settings: GuidedSettings, slot: Slot) -> Mechanism:
    """All noise on one number as one draw.

    A sum of Gaussian shares is one Gaussian up to a relative exp(-2 pi^2 sigma^2) (privacy.costs.ripple_of_sum): with
    the sigmas here, which are above 1000 for any budget, that is nothing.
    """
    noise = settings.noise_in(slot)
    if settings.placement.by_coordinator:
        return noise
    if isinstance(noise, DiscreteLaplace):
        raise LocalProtocolError(
            "Laplace noise can be rehearsed only where the coordinator adds it; parties add it here."
        )
    return DiscreteGaussian(sigma=settings.placement.total_variance(noise) ** 0.5)
