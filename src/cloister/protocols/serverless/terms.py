"""What all parties of a serverless sum agree on, and the interface of a party's own computation."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import inf
from typing import Protocol

from cloister.aggregation.pairwise_pads import MASK_KEY_BYTES
from cloister.aggregation.seed_agreement import STEPS as SEED_STEPS
from cloister.crypto import SHARE_BYTES, TAG_BYTES
from cloister.errors import ConfigError
from cloister.joint_noise import JointLaplace
from cloister.numeric import Ring
from cloister.records import IntArray
from cloister.wire.codec import DEFAULT_LIMIT_BYTES

_BOX_BYTES = 8  # party number and MessagePack around a box


class Contributor(Protocol):
    """A party's own computation: it makes a vector each round and takes the rounds' sums."""

    def begin(self, seed: bytes, session: bytes) -> None:
        """Take the seed that all parties know and the relay does not; called once, before anything else."""

    def contribute(self, round_: int) -> IntArray:
        """Charge this party's books and return its vector with its own noise; called once per round, in order."""

    def take(self, round_: int, total: IntArray, members: int) -> None:
        """Take the sum of a round over ``members`` parties; called once per round, in order, without gaps.

        An impossible sum raises :class:`~cloister.errors.RemoteProtocolError` and changes nothing.
        """


@dataclass(frozen=True, kw_only=True)
class JointNoise:
    """Discrete Laplace noise, P[x] ~ exp(-|x| / scale), on every entry of a sum, that the members draw together."""

    scale: float

    def __post_init__(self) -> None:
        if not 0 < self.scale < inf:
            raise ConfigError(f"the scale of joint noise must be positive and finite; got {self.scale}.")


@dataclass(frozen=True, kw_only=True)
class Terms:
    """The public side of a session.

    Parameters
    ----------
    digest
        Of everything that was agreed, including these terms; parties with another digest refuse.
    directory
        The identity of each party, in order.
    rounds, length
        The number of sums, and of integers in each.
    ring
        Where the sums live; wide enough for them, noise included.
    members_min
        The fewest parties in a sum.
    restorers_min
        The threshold of the shares that restore the mask of a party that leaves while a sum is opened. More than the
        number of introduced parties counts as all of them, and 0 as ``members_min``. This many parties together can
        also open aborted sums, so choose it above the largest coalition to protect against. With all of them nobody
        can, but a party that leaves then ends the session.
    joint
        The noise that the members draw jointly, if they do.
    """

    digest: bytes
    directory: tuple[bytes, ...]
    rounds: int
    length: int
    ring: Ring
    members_min: int
    restorers_min: int = 0
    joint: JointNoise | None = None

    def __post_init__(self) -> None:
        if not 2 <= self.members_min <= self.parties:
            raise ConfigError(
                f"members_min must be from 2 to the number of parties, {self.parties}; got {self.members_min}. "
                "A sum over one party is that party's vector."
            )
        if not 1 <= self.rounds < 2**20 or self.length < 1:
            raise ConfigError(
                f"there must be 1 to 2^20 - 1 rounds of at least one number; got {self.rounds} of {self.length}."
            )
        if self.backlog_max < 1:
            raise ConfigError(
                f"one round's sum must fit a message of {DEFAULT_LIMIT_BYTES} bytes; {self.length} numbers of "
                f"{self.parties} parties do not. Use fewer clusters or columns."
            )
        if self.joint is not None:
            self._check_noise(self.plan_noise(self.parties))

    def _check_noise(self, plan: JointLaplace) -> None:
        """Refuse now, rather than in the first round, what would not fit a message."""
        openings = (self.parties - 1) * (max(plan.opening_bytes) + TAG_BYTES + _BOX_BYTES)
        needed = max(plan.dealt_bytes, openings + self.vector_box_bytes) + 4096
        if needed > DEFAULT_LIMIT_BYTES:
            raise ConfigError(
                f"what is dealt and opened for joint noise must fit messages of {DEFAULT_LIMIT_BYTES} bytes; "
                f"{self.length} numbers of {self.parties} parties need {needed}. Use fewer clusters or columns, or "
                "noise shares."
            )

    @property
    def parties(self) -> int:
        """The number of parties."""
        return len(self.directory)

    def count_restorers(self, introduced: int) -> int:
        """Return how many restore a mask if this many parties were introduced to each other."""
        return min(max(self.members_min, self.restorers_min), introduced)

    @property
    def vector_box_bytes(self) -> int:
        """The size of the box around a vector."""
        return self.length * self.ring.bits // 8 + TAG_BYTES

    @property
    def backlog_max(self) -> int:
        """How many rounds' sums fit one message: a party that missed more cannot get the rest."""
        reveals = self.parties * (MASK_KEY_BYTES + TAG_BYTES + _BOX_BYTES)
        recoveries = self.count_restorers(self.parties) * (self.parties * SHARE_BYTES + TAG_BYTES + _BOX_BYTES)
        return (DEFAULT_LIMIT_BYTES - 4096) // (self.vector_box_bytes + reveals + recoveries + self.parties // 8 + 64)

    @property
    def steps(self) -> int:
        """Expected steps: introduction, rounds (begin, draw noise, once around the ring, reveal), finish."""
        openings = self.plan_noise(self.parties).steps if self.joint else 0
        return SEED_STEPS + 2 + self.rounds * (2 + openings + self.parties) + 1

    def plan_noise(self, members: int) -> JointLaplace:
        """Return how this many members draw the noise."""
        if self.joint is None:
            raise ConfigError("noise must be joint to be drawn by the members together; these terms have none.")
        return _plan(self.joint.scale, self.length, members, self.ring)


@cache
def _plan(scale: float, entries: int, members: int, ring: Ring) -> JointLaplace:
    """Make a plan only once: its digits and thresholds take high-precision arithmetic."""
    return JointLaplace(scale=scale, entries=entries, parties=members, ring=ring)
