"""Which epsilons a plan compares."""

from __future__ import annotations

from collections.abc import Sequence

from cloister.errors import ConfigError
from cloister.privacy.units import EPSILON_LEAST, EPSILON_MOST

EPSILONS = (0.1, 0.25, 0.5, 1.0, 2.0)


def choose_epsilons(own: float, wanted: Sequence[float] | None) -> tuple[float, ...]:
    """Return the ones asked for, or the usual ones, and the job's own; rising."""
    wanted = EPSILONS if wanted is None else wanted
    for epsilon in wanted:
        if not EPSILON_LEAST <= epsilon <= EPSILON_MOST:
            raise ConfigError(f"epsilon must lie between {EPSILON_LEAST:g} and {EPSILON_MOST:g}; got {epsilon:g}.")
    return tuple(sorted({*wanted, own}))
