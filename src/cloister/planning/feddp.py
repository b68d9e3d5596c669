"""What a plan says of FedDP-KMeans: the noise of its steps, and what server data are good for."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

from cloister.planning.model import RoundNoise
from cloister.protocols.feddp import AUTHORS_CODE, FeddpSettings
from cloister.protocols.feddp.server import ServerData
from cloister.protocols.guided_sums.settings import PURSE
from cloister.records import FloatArray


def estimate_round_noise(settings: FeddpSettings, server: FloatArray, numbers: Sequence[int]) -> tuple[RoundNoise, ...]:
    """The noise of the last step on a centre of average size, before any of it is shrunk away.

    An offset as long as the radius counts as the square root of the step's share of the budget; the radius of a cluster
    is at most that of all the server's points.
    """
    radius = ServerData(points=server).radius
    knobs, options = settings.knobs, settings.options
    spent = knobs.moment_share + knobs.weight_share + (0.0 if settings.records else knobs.count_share)
    spent += options.simplify_share * options.simplify + options.separation_share * (options.separation is not None)
    if settings.variant == "published":
        mu = settings.bounds.sums_l2 / settings.noise.sums.sigma
        radius = ServerData(points=server).longest
    else:
        mu = sqrt((1 - spent) / settings.rounds * PURSE) / settings.noise_std
    return tuple(
        RoundNoise(records=number, centre_noise=radius / (mu * settings.sampled * max(number / settings.clusters, 1.0)))
        for number in numbers
    )


def list_feddp_notes(settings: FeddpSettings) -> tuple[str, ...]:
    """What the reader must know."""
    notes = [
        f"The server's {settings.stamp.points:,} points were read: they are public. They decide where to look, from "
        "where offsets are taken and how long these may be; none of that is learned from the records, so none of it "
        "costs budget."
    ]
    if settings.variant == "published":
        notes.append(AUTHORS_CODE)
    if settings.sample is not None:
        notes.append(
            f"Each round asks {settings.sample_size} of {settings.parties} parties. Bytes are for a party that is "
            "asked in all rounds. The sample is public, so it makes nothing more private."
        )
    if settings.client_level:
        notes.append(
            "A unit is a party: noise hides its whole table, so what counts is how many parties there are. With few "
            "of them the result is little more than what the server's data tell."
        )
    return tuple(notes)


def advise_feddp(settings: FeddpSettings) -> str:
    """Say when the other protocol is the better choice."""
    if settings.variant == "published":
        return "To reproduce the paper; leave variant out for less noise at the same budget."
    return (
        "Server data help most with many columns and a small budget. With five columns or fewer, or where the server's "
        'points miss some clusters, compare with name = "synopsis", which needs none.'
    )
