"""Builds sessions of the synopsis, and rehearses it."""

from __future__ import annotations

from functools import partial

from cloister.privacy.units import Budget
from cloister.protocols.guided_sums.algorithm import rehearse as rehearse_sums
from cloister.protocols.synopsis.pipeline import run_synopsis
from cloister.protocols.synopsis.protocol import Synopsis
from cloister.protocols.synopsis.settings import Knobs, Settings
from tests.protocols.guided_sums.sessions import COUNTED, GuidedSums, count_thrice

BUDGET = Budget(epsilon=1.0, delta=1e-6)
SMALL = Knobs(cells_max=64, rounds_max=3, rounds_min=2, restarts=2)
SYNOPSIS = Synopsis()

rehearse = partial(rehearse_sums, pipeline=run_synopsis)
OF_SESSION = ("seed", "silent", "members_min", "max_records", "masks")


class Session(GuidedSums):
    """A session of the synopsis; options are its settings'."""

    def __init__(self, parts, *, clusters=3, budget=BUDGET, algorithm=run_synopsis, **options):
        of_session = {name: options.pop(name) for name in OF_SESSION if name in options}
        options.setdefault("knobs", SMALL)
        settings = Settings(
            clusters=clusters, dimensions=parts[0].shape[1], budget=budget, parties=len(parts), **options
        )
        super().__init__(SYNOPSIS, settings, algorithm, parts, **of_session)


def counting(parties=4, **options):
    """A session of the small algorithm without noise."""
    return Session(COUNTED[:parties], algorithm=count_thrice, silent=True, **options)
