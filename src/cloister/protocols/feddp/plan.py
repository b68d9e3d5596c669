"""The forecast of FedDP-KMeans: the noise of its steps, and what server data are good for."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

from cloister.forecast.model import Forecast, PlanRequest, RoundNoise
from cloister.job import Job
from cloister.privacy.units import LeakageTable
from cloister.protocols.feddp.published import AUTHORS_CODE
from cloister.protocols.feddp.server import ServerData
from cloister.protocols.feddp.settings import FeddpSettings
from cloister.protocols.guided_sums.algorithm import GuidedSession
from cloister.protocols.guided_sums.plan import compare_sums, place_sums
from cloister.protocols.guided_sums.settings import BUDGET_UNITS
from cloister.records import FloatArray


def forecast_feddp(
    job: Job, agreed: GuidedSession[FeddpSettings], server: FloatArray, request: PlanRequest, leakage: LeakageTable
) -> Forecast:
    """Say what a job of FedDP-KMeans would do, cost and find."""
    settings, placed = agreed.agreement.settings, place_sums(agreed)
    return Forecast(
        leakage=leakage,
        who_adds_noise=settings.placement.who_adds,
        warnings=settings.placement.warnings,
        rounds_max=len(settings.slots),
        traffic=placed.traffic,
        round_noise=() if settings.client_level else estimate_noise(settings, server, request.numbers),
        placements=compare_sums(job, agreed, placed),
        notes=_list_notes(settings),
        advice=_advise(settings),
    )


def estimate_noise(settings: FeddpSettings, server: FloatArray, numbers: Sequence[int]) -> tuple[RoundNoise, ...]:
    """Estimate the noise of the last step on a centre of average size, before any shrinking.

    An offset as long as the radius counts as the square root of the step's share of the budget; the radius of a cluster
    is at most that of all the server's points.
    """
    points = ServerData(points=server)
    if settings.variant == "published":
        radius, mu = points.longest, settings.bounds.sums_l2 / settings.noise.sums.sigma
    else:
        knobs = settings.knobs
        spent = knobs.moment_share + knobs.weight_share + (0.0 if settings.records else knobs.count_share)
        spent += settings.options.share
        radius, mu = points.radius, sqrt((1 - spent) / settings.rounds * BUDGET_UNITS) / settings.noise_std
    return tuple(
        RoundNoise(records=number, centre_noise=radius / (mu * settings.sampled * max(number / settings.clusters, 1.0)))
        for number in numbers
    )


def _list_notes(settings: FeddpSettings) -> tuple[str, ...]:
    notes = [
        f"The server's {settings.stamp.points:,} points were read: they are public. They determine where to look, from "
        "where offsets are measured and how long these may be. None of that is learned from the records, so none of it "
        "costs budget."
    ]
    if settings.variant == "published":
        notes.append(AUTHORS_CODE)
    elif not settings.client_level:
        notes.append(
            "The noise on a centre is stated for a cluster as wide as all the server's points; a compact cluster's "
            "offsets are clipped to its own radius, and its noise is less in proportion."
        )
    if settings.sample is not None:
        notes.append(
            f"Each round asks {settings.sample_size} of {settings.parties} parties. Bytes are for a party that is "
            "asked in all rounds. The sample is public, so it adds no privacy."
        )
    if settings.client_level:
        notes.append(
            "A unit is a party: noise hides its whole table, so the number of parties is what counts. With few "
            "of them, the result is little more than what the server's data show."
        )
    return tuple(notes)


def _advise(settings: FeddpSettings) -> str:
    """Say when another protocol is the better choice."""
    if settings.variant == "published":
        return "This reproduces the paper; leave variant out for less noise at the same budget."
    return (
        "Server data help most with many columns and a small budget. With five columns or fewer, or where the server's "
        'points miss some clusters, compare with name = "synopsis", which needs none.'
    )
