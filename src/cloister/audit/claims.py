"""What is claimed, and which of two neighbouring inputs a run was given."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

from cloister.audit.bounds import epsilon_of_rates, rho_of_rates
from cloister.errors import ConfigError
from cloister.records import FloatArray


class Neighbour(Enum):
    """The two inputs: they differ by one unit, added or removed."""

    WITHOUT = "without"
    WITH = "with"


@dataclass(frozen=True, kw_only=True)
class Claim:
    """The guarantee that an audit tries to refute.

    Parameters
    ----------
    epsilon, delta
        What the privacy card says.
    rho
        The zero-concentrated guarantee behind it, where the accountant composed in zCDP. It says more than the pair
        converted from it, so it is far easier to refute when it is false: give it if there is one.
    """

    epsilon: float
    delta: float
    rho: float | None = None

    def __post_init__(self) -> None:
        if not 0 < self.epsilon < math.inf:
            raise ConfigError(f"a claimed epsilon must be finite and greater than 0; got {self.epsilon}.")
        if not 0 <= self.delta < 1:
            raise ConfigError(f"a claimed delta must be at least 0 and less than 1; got {self.delta}.")
        if self.rho is not None and not 0 < self.rho < math.inf:
            raise ConfigError(f"a claimed rho must be finite and greater than 0; got {self.rho}.")

    def excess_of_rates(self, likelier_low: Any, other_high: Any) -> FloatArray:
        """Return the largest ratio of a lower bound to what is claimed; above 1 refutes the claim."""
        excess = epsilon_of_rates(likelier_low, other_high, self.delta) / self.epsilon
        if self.rho is not None:
            excess = np.maximum(excess, rho_of_rates(likelier_low, other_high) / self.rho)
        return excess
