"""What all roles agree on before a session: every public parameter, one digest, and what follows from them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal, get_args

import msgspec
import numpy as np

from cloister.aggregation import MaskKind, SumTerms
from cloister.aggregation.seed_agreement import STEPS as SEED_STEPS
from cloister.crypto import Stream
from cloister.errors import ConfigError, PrecisionError
from cloister.job import MAX_RECORDS
from cloister.kmeans.assignment import Assignment
from cloister.kmeans.initialisation import random_in_domain, sphere_packing
from cloister.numeric import FixedPoint, Ring, RingBits, choose_ring
from cloister.privacy.mechanisms import DiscreteLaplace
from cloister.privacy.placement import Aggregator
from cloister.privacy.units import LeakageTable, Learns, Row
from cloister.protocols.multiparty_lloyd.noise import NoisePlan
from cloister.protocols.multiparty_lloyd.rules import ExactCentroids, ExactSums, Rule
from cloister.protocols.serverless.terms import JointNoise, Terms
from cloister.records import FloatArray
from cloister.wire.codec import DEFAULT_LIMIT_BYTES

Variant = Literal[
    "naive", "masked-sum-count", "masked-centroid", "mask-noise-average", "average-mask-noise", "fastlloyd"
]
NOISY: tuple[Variant, ...] = ("mask-noise-average", "average-mask-noise", "fastlloyd")
AVERAGES: tuple[Variant, ...] = ("masked-centroid", "average-mask-noise")
"""Centres are averages of the parties' own, not of all records."""
Initialisation = Literal["sphere-packing", "random", "given"]
StartBy = Literal["parties", "coordinator"]


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """The public parameters of one job; equal on every side or the session does not open.

    Parameters
    ----------
    variant
        Which of the protocols.
    parties
        M, how many take part.
    clusters, dimensions, iterations
        k, d and the number of Lloyd steps.
    initialisation
        Where the first centres come from (thesis 5.1): both random ones look at the domain only.
    start
        The first centres themselves, k rows in [-1, 1]^d, where ``initialisation`` is ``"given"``.
    start_by
        Who draws them: the parties from their common seed (5.1.1), or the coordinator (5.1.2).
    max_records
        Public cap on one party's records; decides the ring.
    members_min
        Fewer answering parties than this abort the run, and a smaller sum is never unmasked.
    tolerance
        ``naive`` only: stop when no centre moved further than this.
    masks
        How sums around a coordinator are masked: from the common seed, or double (`SumTerms`).
    colluding_max
        Double masks: so many parties may collude with the coordinator; ``members_min`` is a quorum for it.
    directory
        The parties' public identities.
    noise
        The ``NOISY`` variants only: what each round releases and how it is protected.
    context
        Whatever else the parties must agree on (columns and bounds, assignment method), as text.
    """

    variant: Variant
    parties: int
    clusters: int
    dimensions: int
    iterations: int
    initialisation: Initialisation = "sphere-packing"
    start: tuple[tuple[float, ...], ...] = ()
    start_by: StartBy = "parties"
    fractional_bits: int = 16
    ring_bits: RingBits | Literal["auto"] = "auto"
    max_records: int = MAX_RECORDS
    members_min: int = 2
    tolerance: float = 0.0
    noise: NoisePlan | None = None
    masks: MaskKind = "common"
    colluding_max: int = 0
    directory: tuple[bytes, ...] = field(default=(), repr=False)
    context: str = ""

    def __post_init__(self) -> None:
        plain = tuple(tuple(float(x) for x in row) for row in self.start)  # NumPy's numbers must not get into a digest
        object.__setattr__(self, "start", plain)
        for name, kind in (("variant", Variant), ("initialisation", Initialisation), ("start_by", StartBy)):
            _require(getattr(self, name) in get_args(kind), name, f"one of {', '.join(get_args(kind))}", self)
        _require(1 <= self.parties < 2**15, "parties", "from 1 to 32767", self)
        _require(len(self.directory) == self.parties, "directory", "one identity for each party", self)
        _require(self.clusters >= 1, "clusters", "at least 1", self)
        _require(self.dimensions >= 1, "dimensions", "at least 1", self)
        _require(1 <= self.iterations < 2**20, "iterations", "from 1 to 2^20 - 1", self)
        _require(1 <= self.members_min <= self.parties, "members_min", f"from 1 to {self.parties} parties", self)
        _require(1 <= self.max_records <= MAX_RECORDS, "max_records", f"from 1 to {MAX_RECORDS}", self)
        _require(0 <= self.tolerance < float("inf"), "tolerance", "finite and at least 0", self)
        if self.masked and self.tolerance:
            raise ConfigError(
                f"tolerance must be 0 for {self.variant}, whose coordinator cannot see the centres move; "
                f"got {self.tolerance}. Set iterations instead, or use naive."
            )
        if not self.masked and self.initialisation != "given" and self.start_by == "parties":
            raise ConfigError(
                "naive must start from the coordinator's centres or given ones, since its coordinator holds the "
                "centres and its parties share no seed; got start_by = 'parties'. Set start_by = 'coordinator'."
            )
        if (self.noise is not None) != (self.variant in NOISY):
            raise ConfigError(
                f"{', '.join(NOISY)} must come with a noise plan, and other variants without one; got {self.variant} "
                f"{'without' if self.noise is None else 'with'} one. Plan the noise with plan_noise()."
            )
        if self.noise is not None and len(self.noise.targets) != self.iterations:
            raise ConfigError(
                f"a noise plan must have the noise of each of {self.iterations} iterations; "
                f"got that of {len(self.noise.targets)}. Plan the noise for the same number."
            )
        if self.noise is not None and self.members_min < self.noise.members_min:
            raise ConfigError(
                f"members_min must be at least {self.noise.members_min}: with fewer, the noise that one of them does "
                f"not know would be less than promised; got {self.members_min}. Raise it, or let more parties collude."
            )
        if self.max_records << self.fractional_bits >= 2**53:
            raise PrecisionError(
                "a party's sums must stay below 2^53 to be exact; max_records * 2^fractional_bits = "
                f"{self.max_records} * 2^{self.fractional_bits} is not. Declare fewer records, or use fewer bits."
            )
        if self.backlog_max < 1:
            raise ConfigError(
                f"one round's sums must fit a message of {DEFAULT_LIMIT_BYTES} bytes; {self.length} numbers do not. "
                "Use fewer clusters or columns."
            )
        self._check_start()
        self.sums  # noqa: B018  refuses what is no quorum
        self.ring  # noqa: B018  raises PrecisionError now rather than in the first round

    def _check_start(self) -> None:
        rows = len(self.start)
        if self.initialisation != "given":
            _require(not rows, "start", "empty unless initialisation is 'given'", self)
            return
        shapes = {len(row) for row in self.start}
        if rows != self.clusters or shapes != {self.dimensions}:
            raise ConfigError(
                f"start must have {self.clusters} rows of {self.dimensions} numbers; "
                f"got {rows} rows of {sorted(shapes)}. Give one centre for each cluster."
            )
        if not (np.abs(np.array(self.start)) <= 1).all():
            raise ConfigError("start must be finite and within the public bounds; it is not. Move the centres inside.")

    def require_star(self) -> None:
        """Refuse noise that nobody in a star would add: its sums would be released without any."""
        if self.noise is not None and self.noise.placement.sampled_jointly:
            raise ConfigError(
                "joint noise must be sampled by the parties in a ring (protocols.serverless); got a session around a "
                "coordinator, where nobody would add it. Use placement aggregator, shared or local."
            )

    def require_ring(self) -> None:
        """Refuse noise that nobody in a ring would add: its sums would be released without any."""
        if self.noise is not None and self.noise.placement.by_coordinator:
            raise ConfigError(
                "noise by the aggregator must have an aggregator; got a ring, where nobody would add it. "
                "Use placement local, shared or joint."
            )

    @property
    def masked(self) -> bool:
        """Whether the coordinator sees only masked values."""
        return self.variant != "naive"

    @property
    def fixed_point(self) -> FixedPoint:
        """The grid that records and sums live on."""
        return FixedPoint(self.fractional_bits)

    @cached_property
    def rule(self) -> Rule:
        """What is sent in a round, and how it moves the centres."""
        if self.noise is not None:
            return self.noise.rule
        if self.variant == "masked-centroid":
            return ExactCentroids(
                dimensions=self.dimensions,
                fixed_point=self.fixed_point,
                max_records=self.max_records,
                parties=self.parties,
            )
        return ExactSums(dimensions=self.dimensions, fixed_point=self.fixed_point, max_records=self.max_records)

    @cached_property
    def ring(self) -> Ring:
        """The ring of the sums, large enough for the largest sum that public bounds allow.

        With noise, overflow has a probability below 1e-37 per entry; a wrap-around would spoil a centre, not
        privacy.
        """
        reach = 0 if self.noise is None else self.noise.reach
        return choose_ring(self.rule.bound_sum(self.parties, self.max_records) + reach, self.ring_bits)

    @property
    def length(self) -> int:
        """Ring elements in one update."""
        return self.clusters * self.rule.width

    @cached_property
    def sums(self) -> SumTerms:
        """The terms of the secure sums around the coordinator."""
        return SumTerms(
            digest=self.digest,
            directory=self.directory,
            ring=self.ring,
            members_min=self.members_min,
            masks=self.masks,
            colluding_max=self.colluding_max,
        )

    @property
    def backlog_max(self) -> int:
        """How many rounds' sums fit one message: a party that missed more cannot come back."""
        left = DEFAULT_LIMIT_BYTES - 4096 - self.sums.vote_bytes
        return left // (self.sums.body_bytes(self.length) + self.sums.opening_bytes)

    @property
    def steps(self) -> int:
        """Expected steps: opening, rounds (with double masks each is opened), vote, finish."""
        if not self.masked:
            return 1 + self.iterations + 1
        return SEED_STEPS + self.sums.double + self.iterations * (1 + self.sums.double) + 2

    @cached_property
    def digest(self) -> bytes:
        """SHA-256 of every field, and of the types of those that have alternatives, whose fields may be the same.

        Why a published guarantee fails is told in words, and words are not agreed on.
        """
        fields = {name: getattr(self, name) for name in self.__dataclass_fields__}
        if self.noise is not None:
            parts = (self.noise.placement, self.noise.rule, *self.noise.targets)
            fields["kinds"] = [type(part).__name__ for part in parts]
            fields["noise"] = replace(self.noise, flaw="")
        return hashlib.sha256(msgspec.msgpack.encode(fields, order="sorted")).digest()

    def draw_start(self, stream: Stream) -> FloatArray:
        """Return the first centres: given, or drawn from the domain (thesis 4.2.2, 5.1)."""
        if self.initialisation == "given":
            return np.array(self.start, dtype=np.float64)
        draw = sphere_packing if self.initialisation == "sphere-packing" else random_in_domain
        return draw(stream, self.clusters, self.dimensions)


@dataclass(frozen=True, kw_only=True, eq=False)
class LloydSession:
    """What was agreed for one session.

    Attributes
    ----------
    agreement
        The public parameters.
    assignment
        How each party's records join clusters.
    terms
        The terms of the serverless sums, if the parties add up in a ring.
    records
        How many records all parties have together, if the job declares it public.
    """

    agreement: Agreement
    assignment: Assignment
    terms: Terms | None = None
    records: int | None = None

    @property
    def middleman(self) -> str:
        """The role between the parties."""
        return "coordinator" if self.terms is None else "relay"


def make_terms(agreement: Agreement) -> Terms:
    """Translate an agreement on Lloyd's rounds into the terms of serverless sums."""
    agreement.require_ring()
    plan, joint = agreement.noise, None
    if plan is not None and plan.placement.sampled_jointly:
        (target,) = set(plan.targets)
        assert isinstance(target, DiscreteLaplace)  # the options were checked
        joint = JointNoise(scale=target.scale)
    return Terms(
        digest=agreement.digest,
        directory=agreement.directory,
        rounds=agreement.iterations,
        length=agreement.length,
        ring=agreement.ring,
        members_min=max(2, agreement.members_min),
        colluding_max=agreement.colluding_max,
        joint=joint,
    )


def _require(holds: bool, name: str, must: str, agreement: Agreement) -> None:
    if not holds:
        value = getattr(agreement, name)
        got = f"{len(value)}" if isinstance(value, tuple) else repr(value)
        raise ConfigError(f"{name} must be {must}; got {got}.")


def _table(source: str, coordinator: str, party: str, withstands: str, breaks_if: str) -> LeakageTable:
    """Build a table from the thesis's rows: y = exactly, d = with DP noise, o = only its own (l = l'), n = not."""
    marks = {"y": Learns.EXACT, "d": Learns.NOISY, "o": Learns.OWN, "n": Learns.NOTHING}
    values = (
        ("C_li", "how many records of each single party are in each cluster"),
        ("S_li", "the sum of each single party's records in each cluster"),
        ("C_i", "how many records of all parties together are in each cluster"),
        ("S_i", "the sum of all parties' records in each cluster"),
        ("mu_i", "the centres after each round"),
    )
    rows = tuple(
        Row(role=role, value=value, meaning=meaning, learns=marks[mark])
        for role, row in (("coordinator", coordinator), ("party", party))
        for (value, meaning), mark in zip(values, row, strict=True)
    )
    return LeakageTable(source=source, rows=rows, withstands=withstands, breaks_if=breaks_if)


_MASKS_FALL = (
    "The coordinator and any one party together: every party knows the seed of all masks, so they can read each "
    "party's sums. With two parties, each alone: it subtracts its own part from the sum."
)
_MASKS_HIDE = (
    "The coordinator alone, active or not, learns nothing of the parties' records. Semi-honest parties, each alone, "
    "learn nothing of the others beyond what is exact above, as long as the coordinator follows the protocol."
)
_ANY_NOISE = (Aggregator().withstands(masked_twice=False), Aggregator().breaks_if(masked_twice=False))
LEAKAGE: dict[Variant, LeakageTable] = {
    "naive": _table(
        "thesis table 5.1",
        "yyyyy",
        "oonny",
        "Semi-honest parties, each alone, learn nothing of the others beyond the centres after each round.",
        "Using it for private data at all: the coordinator sees each party's sums.",
    ),
    "masked-sum-count": _table("thesis table 5.2", "nnnnn", "ooyyy", _MASKS_HIDE, _MASKS_FALL),
    "masked-centroid": _table("thesis table 5.3", "nnnnn", "oonny", _MASKS_HIDE, _MASKS_FALL),
    "mask-noise-average": _table("thesis table 7.2", "nnnnn", "ooddd", *_ANY_NOISE),
    "average-mask-noise": _table("thesis table 7.3", "nnnnn", "oonnd", *_ANY_NOISE),
    "fastlloyd": _table("thesis table 7.2", "nnnnn", "ooddd", *_ANY_NOISE),
}
"""The thesis's tables; `leakage` of the protocol object says whom a session withstands."""
