"""Who could add the noise of a job, and what each choice costs: noise, messages, and who could take it away again.

What privacy needs is the noise that whoever receives a sum does not know. All noise together is more wherever several
parties add some, and what must be added for those who may collude or drop out is noise in every run. A placement says
how much it is (`Placement.total_variance`); nothing here is drawn or tried.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import get_args

import numpy as np
from msgspec.structs import replace as replace_fields

from cloister.aggregation import MaskKind, least_quorum
from cloister.errors import ConfigError, PrecisionError
from cloister.forecast.model import Case, PlacementForecast, QuorumNoise, TrafficForecast
from cloister.job import Job, NoiseOptions
from cloister.job.noise_options import PlacementKind
from cloister.privacy.mechanisms import Mechanism, compute_variance
from cloister.privacy.placement import Placement, Shared


@dataclass(frozen=True, kw_only=True)
class PlacedNoise:
    """What a protocol says of one job: who adds the noise, to protect as the ``target`` does, and what is sent."""

    placement: Placement
    target: Mechanism
    masks: MaskKind
    traffic: TrafficForecast

    @property
    def variance_ratio(self) -> float:
        """The variance of all noise together, over what privacy needs."""
        return self.placement.total_variance(self.target) / compute_variance(self.target)

    def scaled_to(self, parties: int) -> PlacedNoise:
        """Return the same among another number of parties, but for what is sent."""
        return replace(self, placement=self.placement.scaled_to(parties))


@dataclass(frozen=True, kw_only=True, eq=False)
class Sightings:
    """The smallest clusters that trials have shown.

    Attributes
    ----------
    cases
        The cases of a plan.
    noise_per_unit
        Returns the standard deviation of the noise of a case, over the number of its units.
    """

    cases: tuple[Case, ...]
    noise_per_unit: Callable[[Case], float]

    def fit_growth(self) -> float | None:
        """Return the power of the noise with which the smallest cluster grows; None if only one noise was tried.

        Both are taken relative to the number of units: what is found depends on nothing else. More noise does not show
        smaller clusters, so a power below zero is the scatter of the trials.
        """
        seen = [case for case in self.cases if case.smallest_cluster is not None]
        noises = np.log([self.noise_per_unit(case) for case in seen])
        if len(seen) < 2 or np.ptp(noises) == 0.0:
            return None
        shares = np.log([(case.smallest_cluster or 0) / case.records for case in seen])
        return max(0.0, float(np.polyfit(noises, shares, 1)[0]))


def compare_placements(
    job: Job, own: PlacedNoise, place: Callable[[Job], PlacedNoise], *, sightings: Sightings | None = None
) -> tuple[PlacementForecast, ...]:
    """Compare the choices of who adds the noise that this job has.

    Parameters
    ----------
    job
        A job; where its guarantee does not hold as published, nothing is compared.
    own, place
        What the protocol says of this job, and of one that has another placement, which it may refuse.
    sightings
        The plan's trials, where it looks for the smallest cluster.

    Returns
    -------
    tuple of PlacementForecast
        One for each choice; none where there is only one.
    """
    options, parties = job.protocol, len(job.parties)
    if job.budget is None or not isinstance(options, NoiseOptions) or options.flaw:
        return ()
    chosen = options.resolve_placement(parties)
    choices = {kind: own if kind == chosen else _try(job, kind, place) for kind in get_args(PlacementKind)}
    offered = {kind: placed for kind, placed in choices.items() if placed is not None}
    if len(offered) == 1:
        return ()
    return tuple(
        PlacementForecast(
            placement=kind,
            chosen=kind == chosen,
            variance_ratio=placed.variance_ratio,
            noise_ratio=_compare(placed, own),
            removed_by=placed.placement.name_removers(masked_twice=placed.masks == "double"),
            traffic=placed.traffic,
            quorums=tuple(_list_quorums(placed)),
            smallest_clusters=() if sightings is None else tuple(_scale_smallest(job, placed, own, sightings)),
        )
        for kind, placed in offered.items()
    )


def _try(job: Job, kind: PlacementKind, place: Callable[[Job], PlacedNoise]) -> PlacedNoise | None:
    """Place a job's noise differently; None where the job or its protocol refuses that."""
    for other in _vary(job, kind):
        try:
            return place(replace(job, protocol=other))
        except (ConfigError, PrecisionError):
            continue
    return None


def _vary(job: Job, kind: PlacementKind) -> Iterator[NoiseOptions]:
    """Return options with another placement: first with the quorum that was given, then with the default one."""
    options = job.protocol
    assert isinstance(options, NoiseOptions)
    other = replace_fields(options, placement=kind, colluding_max=None, honest_fraction=None)
    yield other
    if options.min_parties is not None:
        yield replace_fields(other, min_parties=None)


def _compare(placed: PlacedNoise, own: PlacedNoise) -> float:
    """Return the standard deviation of one over that of the other; what privacy needs is the same for both."""
    return float((placed.variance_ratio / own.variance_ratio) ** 0.5)


def _list_quorums(placed: PlacedNoise) -> Iterator[QuorumNoise]:
    """Say what shares cost with the agreed quorum; then, for comparison, if all must stay, or one need not."""
    placement = placed.placement
    if not isinstance(placement, Shared):
        return
    agreed, parties, colluding = placement.members_min, placement.parties, placement.colluding_max
    for quorum in (agreed, parties if agreed < parties else parties - 1):
        if quorum >= least_quorum(parties, colluding):
            yield QuorumNoise(
                min_parties=quorum,
                parties=parties,
                colluding_max=colluding,
                variance_ratio=replace(placed, placement=replace(placement, quorum=quorum)).variance_ratio,
            )


def _scale_smallest(job: Job, placed: PlacedNoise, own: PlacedNoise, sightings: Sightings) -> Iterator[int | None]:
    """Scale the smallest cluster of the job's own placement, for each size that was tried at the job's epsilon."""
    assert job.budget is not None
    power = sightings.fit_growth()
    for case in sightings.cases:
        if case.epsilon != job.budget.epsilon:
            continue
        more = _compare(placed.scaled_to(case.parties), own.scaled_to(case.parties))
        smallest: float | None = case.smallest_cluster
        if smallest is not None and more != 1.0:
            smallest = None if power is None else smallest * more**power
        hidden = smallest is None or smallest > case.records / job.k
        yield None if smallest is None or hidden else round(smallest)
