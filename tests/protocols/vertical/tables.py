"""Tables and settings that the tests of the vertical algorithm share."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cloister.crypto import Stream
from cloister.errors import LocalProtocolError
from cloister.numeric import FixedPoint
from cloister.privacy.simulation_sampler import SimulationSampler
from cloister.privacy.units import Budget
from cloister.protocols.vertical.rehearsal import Rehearsal, rehearse_vertical
from cloister.protocols.vertical.settings import Settings


def mixture(n: int, d: int, k: int, *, seed: int, std: float = 0.08) -> np.ndarray:
    """Gaussian clusters in [-1, 1]^d, on the records' grid."""
    rng = np.random.default_rng(seed)
    centres = rng.uniform(-0.8, 0.8, (k, d))
    points = centres[rng.integers(k, size=n)] + std * rng.standard_normal((n, d))
    return FixedPoint().quantise(np.clip(points, -1.0, 1.0))


def make(
    n: int,
    *,
    alice: Sequence[int] = (0,),
    encrypted: Sequence[Sequence[int]] = ((1,),),
    clusters: int = 3,
    epsilon: float | None = 1.0,
    **options: object,
) -> Settings:
    """Settings for tests: two holders of noise, delta 1e-6."""
    return Settings(
        clusters=clusters,
        columns_alice=tuple(alice),
        columns_encrypted=tuple(map(tuple, encrypted)),
        records=n,
        budget=None if epsilon is None else Budget(epsilon=epsilon, delta=1e-6),
        **options,
    )


def rehearse(settings: Settings, table: np.ndarray, *, seed: int = 1, **options: object) -> Rehearsal:
    """A rehearsal with seeded noise."""
    stream = Stream.from_seed(seed, "test vertical")
    samplers = [SimulationSampler(stream.child("noise", holder)) for holder in range(settings.placement.parties)]
    return rehearse_vertical(settings, table, samplers=samplers, stream=stream.child("common"), **options)


class Silent:
    """A sampler that must not be asked."""

    is_simulation = True

    def draw(self, mechanism, entries, on_progress=None):
        raise LocalProtocolError("noise was drawn although nothing was paid")
