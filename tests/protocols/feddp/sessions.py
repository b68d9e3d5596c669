"""Builds sessions of FedDP-KMeans, and made-up records for them."""

from __future__ import annotations

import numpy as np

from cloister.numeric import FixedPoint
from cloister.privacy.units import Budget
from cloister.protocols.feddp.options import FeddpKnobs
from cloister.protocols.feddp.pipeline import bind_server
from cloister.protocols.feddp.protocol import Feddp
from cloister.protocols.feddp.published import list_plan
from cloister.protocols.feddp.settings import FeddpSettings
from tests.protocols.guided_sums.sessions import GuidedSums

BUDGET = Budget(epsilon=1.0, delta=1e-6)
SMALL = FeddpKnobs(restarts=2)
FEDDP = Feddp()


def make_mixture(*, clients=6, each=60, d=7, k=3, spread=0.05, seed=3):
    """Return the parties' points, and the server's: two thirds from the mixture, a third uniform (appendix G.1)."""
    rng = np.random.default_rng(seed)
    centres = rng.uniform(-0.7, 0.7, size=(k, d))
    points = centres[rng.integers(k, size=clients * each)] + rng.normal(scale=spread, size=(clients * each, d))
    server = np.concatenate(
        [np.repeat(centres, 8, axis=0) + rng.normal(scale=spread, size=(8 * k, d)), rng.uniform(-0.7, 0.7, (4 * k, d))]
    )
    quantise = FixedPoint(16).quantise
    return np.split(quantise(np.clip(points, -1, 1)), clients), quantise(np.clip(server, -1, 1)), centres


class Session(GuidedSums):
    """A session of FedDP-KMeans; options are its settings'."""

    def __init__(self, parts, server, *, clusters=3, budget=BUDGET, members_min=2, **options):
        options.setdefault("knobs", SMALL)
        settings = FeddpSettings(
            clusters=clusters, dimensions=parts[0].shape[1], budget=budget, parties=len(parts), **options
        ).for_server(server)
        plan = list_plan(settings) if settings.variant == "published" else None
        algorithm = bind_server(server)
        super().__init__(FEDDP, settings, algorithm, parts, plan=plan, points=server, members_min=members_min)
