"""Where the keys and the noise of a simulation come from, and whether its frames are kept: what an audit replaces."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Self

from cloister.privacy.books import make_sampler
from cloister.privacy.samplers import Sampler


@dataclass(frozen=True, kw_only=True)
class Instruments:
    """What a simulation draws from.

    Attributes
    ----------
    keys
        The seed of all keys: a run's own, an audit's secret bytes, or None for the operating system's entropy.
    make_sampler
        Makes the source of a role's noise, from the role's name.
    record_frames
        Whether every frame that is delivered is kept.
    """

    keys: int | bytes | None
    make_sampler: Callable[[str], Sampler]
    record_frames: bool = False

    @classmethod
    def of_seed(cls, seed: int | None) -> Self:
        """Return what a run draws from: its seed, or the operating system."""
        return cls(keys=seed, make_sampler=partial(make_sampler, seed=seed))
