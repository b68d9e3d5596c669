"""What all parties of a serverless sum agree on."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from math import inf

from cloister.aggregation import SumTerms
from cloister.aggregation.seed_agreement import STEPS as SEED_STEPS
from cloister.crypto.sealing import TAG_BYTES
from cloister.errors import ConfigError
from cloister.joint_noise import JointLaplace
from cloister.numeric import Ring
from cloister.wire.codec import DEFAULT_LIMIT_BYTES

_BOX_BYTES = 8  # party number and MessagePack around a box


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
        A sum is over at least so many parties.
    colluding_max
        So many parties may collude with a relay that lies; ``members_min`` is a quorum for it (`SumTerms`).
    joint
        Noise that the members draw together, if they do. Then no mask is ever restored, since parties that could
        restore masks could see several draws on one vector: a party that leaves while a sum is opened ends the session.
    """

    digest: bytes
    directory: tuple[bytes, ...]
    rounds: int
    length: int
    ring: Ring
    members_min: int
    colluding_max: int = 0
    joint: JointNoise | None = None

    def __post_init__(self) -> None:
        if not 2 <= self.members_min <= self.parties:
            raise ConfigError(
                f"members_min must be from 2 to the number of parties, {self.parties}; got {self.members_min}. "
                "A sum over one party is that party's vector."
            )
        self.sums  # noqa: B018  refuses what is no quorum
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

    @cached_property
    def sums(self) -> SumTerms:
        """The terms of the secure sums behind it."""
        return SumTerms(
            digest=self.digest,
            directory=self.directory,
            ring=self.ring,
            members_min=self.members_min,
            colluding_max=self.colluding_max,
            restores=self.joint is None,
        )

    @property
    def words(self) -> int:
        """The words that go around: a vector and its check words."""
        return self.length + self.sums.check_words

    @property
    def vector_box_bytes(self) -> int:
        """A vector on its way."""
        return self.sums.body_bytes(self.length) + TAG_BYTES

    @property
    def backlog_max(self) -> int:
        """How many rounds' sums fit one message: a party that missed more cannot be told the rest."""
        left = DEFAULT_LIMIT_BYTES - 4096 - self.sums.vote_bytes
        return left // (self.vector_box_bytes + self.sums.opening_bytes)

    @property
    def steps(self) -> int:
        """Expected steps: introduction, rounds (begin, draw noise, once around the ring, open), vote, finish."""
        openings = self.plan_noise(self.parties).steps if self.joint else 0
        return SEED_STEPS + 1 + self.rounds * (2 + openings + self.parties) + 2

    def plan_noise(self, members: int) -> JointLaplace:
        """Return how this many members draw the noise."""
        if self.joint is None:
            raise ConfigError("noise must be joint to be drawn by the members together; these terms have none.")
        return _plan(self.joint.scale, self.length, members, self.ring)


@cache
def _plan(scale: float, entries: int, members: int, ring: Ring) -> JointLaplace:
    """Make a plan only once: its digits and thresholds take high-precision arithmetic."""
    return JointLaplace(scale=scale, entries=entries, parties=members, ring=ring)
