"""What it means for a masked protocol who adds the noise: the coordinator once, or the parties in shares or in full.

The masks are common to all parties (aggregation.masked_sum): the coordinator and any one party together can remove
them. Who is still protected then is decided by the placement of the noise.
"""

from __future__ import annotations

import math

from cloister.errors import ConfigError
from cloister.privacy.mechanisms import Mechanism
from cloister.privacy.placement import Aggregator, Joint, Local, Placement, Shared
from cloister.privacy.units import Budget

_RESERVED = 2.0**-10  # of delta, for what is only nearly as stated
_REACH = 90  # standard deviations that all noise together exceeds with probability below 1e-37, Laplace tails included

COORDINATOR_SUBTRACTS = (
    "The coordinator, once it sees the centres or any one party helps it: it knows the noise and can take it away. "
    "Keep the result from it, or let the parties add the noise (placement shared or local)."
)


def is_by_coordinator(placement: Placement) -> bool:
    """Whether the coordinator adds the noise, rather than the parties."""
    return isinstance(placement, Aggregator)


def count_members_min(placement: Placement) -> int:
    """The fewest parties in a sum that leave the promised noise against one of them, who knows its own share."""
    return placement.honest_min + 1 if isinstance(placement, Shared) else 1


def bound_noise(placement: Placement, target: Mechanism) -> int:
    """A magnitude that all noise on one number exceeds with probability below 1e-37."""
    return int(_REACH * placement.total_variance(target) ** 0.5) + 1


def describe_break(placement: Placement) -> str:
    """Which coalition undoes the protection."""
    if isinstance(placement, Local):
        return "No coalition of the others: each party's sums carry the whole noise."
    if isinstance(placement, Shared):
        return (
            "The coordinator and any one party together: they can unmask each party's sums, which carry one share "
            "of the noise, too little alone. Or more colluding parties than was agreed."
        )
    if isinstance(placement, Joint):
        return "Whoever dealt the randomness for sampling the noise, together with any one party."
    return COORDINATOR_SUBTRACTS


def reserve_delta(budget: Budget, placement: Placement, rounds: int) -> Budget:
    """Return the budget that is left for the noise as stated.

    Joint noise is within 2^-80 of it in total variation, a round: events' probabilities change by so much on either
    input, so delta grows by at most rounds (1 + e^epsilon) 2^-80 (docs/proofs/joint-noise.md). A part of delta is
    kept back for it.
    """
    if not isinstance(placement, Joint):
        return budget
    reserve = budget.delta * _RESERVED
    needed = rounds * (1.0 + math.exp(min(budget.epsilon, 700.0))) * 2.0**-80
    if reserve < needed:
        raise ConfigError(
            f"delta must be at least {needed / _RESERVED:.2g} with joint noise, whose law is within 2^-80 of the "
            f"stated one in each of {rounds} rounds; got {budget.delta:g}. Write delta = 1e-6."
        )
    return Budget(epsilon=budget.epsilon, delta=budget.delta - reserve, unit=budget.unit)


def describe_break_in_ring(placement: Placement) -> str:
    """Which coalition undoes the protection where parties add up among themselves, and a relay carries messages."""
    if isinstance(placement, Shared):
        return "More colluding parties than was agreed: their own shares of the noise are known to them."
    return describe_break(placement)
