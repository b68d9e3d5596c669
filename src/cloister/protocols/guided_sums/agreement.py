"""What all roles agree on before a session: the settings, who takes part, one digest, and what follows from them.

A round may ask a public sample of the parties. The sample follows from what was agreed and from the session's ID
alone: no party can choose it, and it reveals nothing about any record. Since everyone knows it, privacy does not gain
from it ("amplification by sampling" needs a secret sample): a party that is in every round's sample is charged as
without sampling, the others for fewer rounds.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from math import isqrt
from typing import Any, Generic, Literal, TypeVar

import msgspec
import numpy as np

from cloister.aggregation import MaskKind, SumTerms, least_quorum
from cloister.aggregation.seed_agreement import STEPS as SEED_STEPS
from cloister.crypto import Stream, derive_key
from cloister.errors import ConfigError
from cloister.job import MAX_RECORDS
from cloister.numeric import RING64, Ring, RingBits, choose_ring
from cloister.privacy.mechanisms import Mechanism, Release
from cloister.privacy.samplers import check_draw
from cloister.privacy.units import LeakageTable, Learns, Row, Sensitivity
from cloister.protocols.guided_sums.query import Query
from cloister.protocols.guided_sums.settings import BUDGET_UNITS, GuidedSettings, Slot, require


def sample_key(digest: bytes, session: bytes) -> bytes:
    """The public key of a session's samples."""
    return derive_key(digest, "public sample", session)


@lru_cache(maxsize=64)
def sample_parties(key: bytes, round_: int, *, parties: int, size: int) -> tuple[int, ...]:
    """Return ``size`` of the numbers 1..parties, every set equally likely, in order."""
    ranks = Stream(key).child(round_).uniform(parties)
    chosen = np.argsort(ranks, kind="stable")[:size] + 1
    return tuple(np.sort(chosen).tolist())


PARTIES_MOST = 2**15 - 1

Settings = TypeVar("Settings", bound=GuidedSettings)


@dataclass(frozen=True, kw_only=True)
class Agreement(Generic[Settings]):
    """The public parameters of one job; equal on every side or the session does not open.

    Parameters
    ----------
    settings
        The algorithm's own, with its budget and its noise.
    directory
        The parties' public identities.
    members_min
        Fewer answering parties than this abort the run, and a smaller sum is never unmasked; see `quorum_of`.
    max_records
        Public cap on one party's records; decides the ring and nothing else.
    ring_bits
        The ring that the job asks for, if it does.
    masks
        How sums are masked (`SumTerms`). Shares of the noise need double masks.
    colluding_max
        So many parties may collude: with the coordinator, where masks are double.
    context
        Whatever else the parties must agree on (columns and bounds), as text.
    """

    settings: Settings
    directory: tuple[bytes, ...] = field(repr=False)
    members_min: int = 2
    max_records: int = MAX_RECORDS
    ring_bits: RingBits | Literal["auto"] = "auto"
    masks: MaskKind = "common"
    colluding_max: int = 0
    context: str = ""

    def __post_init__(self) -> None:
        parties, placement = self.settings.parties, self.settings.placement
        require(parties <= PARTIES_MOST, "parties", f"from 1 to {PARTIES_MOST}", parties)
        what_to_do = "Give every party's public identity, in the order of their numbers."
        require(
            len(self.directory) == parties,
            "directory",
            "one identity for each party",
            len(self.directory),
            what_to_do,
        )
        require(1 <= self.members_min <= parties, "members_min", f"from 1 to {parties} parties", self.members_min)
        what_to_do = "Leave it out for the largest."
        require(
            1 <= self.max_records <= MAX_RECORDS,
            "max_records",
            f"from 1 to {MAX_RECORDS}",
            self.max_records,
            what_to_do,
        )
        placement.check_parties(parties)
        if self.members_min < placement.members_min:
            raise ConfigError(
                f"members_min must be at least {placement.members_min}: with fewer, the noise that one of them "
                f"does not know would be less than promised; got {self.members_min}. Raise it, or let more parties "
                "collude."
            )
        for slot in self.settings.slots:  # refused here, not after a charge
            check_draw(placement.mechanism_for_share(self.settings.noise_in(slot)), slot.length)
        self.ring  # noqa: B018 (raises PrecisionError now rather than in the first round)
        if self.settings.sample_size < min(self.members_min, self.settings.parties):
            raise ConfigError(
                f"a round must ask at least members_min = {self.members_min} parties; got a sample of "
                f"{self.settings.sample_size}. Ask more of them."
            )

    def list_asked(self, round_: int, *, session: bytes) -> tuple[int, ...]:
        """Return who is asked in a round: all, or a sample that everyone can compute; in the end, all."""
        size = self.settings.sample_size
        if size >= self.settings.parties or round_ > len(self.slots):
            return tuple(range(1, self.settings.parties + 1))
        return sample_parties(sample_key(self.digest, session), round_, parties=self.settings.parties, size=size)

    def is_asked(self, party: int, round_: int, *, session: bytes) -> bool:
        """Whether a party is asked in a round."""
        everyone = self.settings.sample_size >= self.settings.parties
        return everyone or party in self.list_asked(round_, session=session)

    @property
    def by_coordinator(self) -> bool:
        """Whether the coordinator adds the noise, rather than the parties."""
        return self.settings.placement.by_coordinator

    @cached_property
    def slots(self) -> tuple[Slot, ...]:
        """The rounds, in order; round t fills slot t - 1."""
        return self.settings.slots

    @property
    def steps(self) -> int:
        """Expected steps: opening; question, answer and (double masks) opening of each round; result; signatures."""
        double = self.sums.double
        return SEED_STEPS + double + (2 + double) * len(self.slots) + 3

    def quorum_of(self, round_: int) -> int:
        """How many parties a sum must be over, or sign the result in the round after the last.

        With q of the n that are asked and t that may collude, 2 q > n + t: two quorums have an honest party in common,
        and an honest party answers one question a round. So no two parties end with different results.
        """
        asked = self.settings.sample_size if round_ <= len(self.slots) else self.settings.parties
        return max(self.members_min, least_quorum(asked, self.colluding_max))

    @cached_property
    def sums(self) -> SumTerms:
        """The terms of the secure sums."""
        return SumTerms(
            digest=self.digest,
            directory=self.directory,
            ring=self.ring,
            members_min=self.quorum_of(1),
            masks=self.masks,
            colluding_max=self.colluding_max,
        )

    @cached_property
    def ring(self) -> Ring:
        """The ring of the sums: 64 bits, unless records and noise are very few.

        Nothing prevents more records than fit 64 bits beside the noise: a wrap-around spoils a centre, but
        nobody's privacy.
        """
        settings = self.settings
        noise = max(settings.placement.bound_noise(settings.noise_in(slot)) for slot in settings.slots)
        units = settings.parties * (1 if settings.client_level else self.max_records)
        return choose_ring(min(settings.contribution_most * units, RING64.largest - noise) + noise, self.ring_bits)

    @cached_property
    def digest(self) -> bytes:
        """SHA-256 of every field, and of the fields of those."""
        fields = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return hashlib.sha256(msgspec.msgpack.encode(fields, order="sorted")).digest()


def release_of(query: Query, slot: Slot, settings: GuidedSettings) -> Release:
    """The event of one round, as every party is charged for it.

    Privacy
    -------
    Neighbours: one unit added or removed. Sensitivity: the query's, times the records of a unit
    (docs/proofs/persons.md). Event: the whole slot, since the numbers after the query's are noise on zeros. Theorem:
    docs/proofs/synopsis.md; all rounds together cost what `GuidedSettings.target` says.
    """
    return Release(
        name=query.name,
        mechanism=settings.placement.released_mechanism(settings.noise_in(slot)),
        sensitivity=query.sensitivity.times(settings.budget.most_records),
        entries=slot.length,
    )


def envelope_of(settings: GuidedSettings) -> Release:
    """All rounds together as one event: what a ledger is asked to pay before the first of them.

    Privacy
    -------
    As `release_of`. Over all rounds a unit's vectors, one behind the other, are one integer vector of squared L2 norm
    BUDGET_UNITS at most, times the square of its records that count; the rounds are charged no more than this together.
    """
    return _capped(
        f"{settings.protocol}: all rounds together", settings, settings.target, sum(s.length for s in settings.slots)
    )


def slot_event(slot: Slot, settings: GuidedSettings) -> Release:
    """Return a round's event as the coordinator knows it: a unit's contribution is within the budget."""
    return _capped(slot.name, settings, settings.noise_in(slot), slot.length)


def _capped(name: str, settings: GuidedSettings, noise: Mechanism, entries: int) -> Release:
    one = Sensitivity(l1=min(isqrt(entries * BUDGET_UNITS), BUDGET_UNITS), l2_squared=BUDGET_UNITS)
    return Release(
        name=name,
        mechanism=settings.placement.released_mechanism(noise),
        sensitivity=one.times(settings.budget.most_records),
        entries=entries,
    )


def make_leakage(source: str, totals: str, agreement: Agreement[Any]) -> LeakageTable:
    """Who learns what in a session of guided sums; ``totals`` says what is added up."""
    placement, twice = agreement.settings.placement, agreement.sums.double
    found = "the centres after each round and at the end, and how many records each has"
    if agreement.settings.scaled:
        found += "; the centre and spread of each column"
    values = (
        ("statistics", "what is counted and summed over each single party's records", Learns.OWN),
        ("totals", f"{totals} (read by the party that leads)", Learns.NOISY),
        ("centres", found, Learns.NOISY),
    )
    return LeakageTable(
        source=source,
        rows=tuple(
            Row(role=role, value=value, meaning=meaning, learns=learns if role == "party" else Learns.NOTHING)
            for role in ("coordinator", "party")
            for value, meaning, learns in values
        ),
        withstands=placement.withstands(masked_twice=twice),
        breaks_if=placement.breaks_if(masked_twice=twice),
    )
