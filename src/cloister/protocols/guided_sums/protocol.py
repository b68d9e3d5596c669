"""The common part of the protocol objects of guided sums: the synopsis and FedDP-KMeans."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Final

import numpy as np

from cloister.audit import JobUnderAudit
from cloister.audit.attack import make_identities
from cloister.audit.whole_view import Released
from cloister.crypto import Entropy
from cloister.job import MAX_RECORDS, Job, NoiseOptions
from cloister.privacy.books import Charges
from cloister.privacy.card import Circumstances
from cloister.privacy.release import NoiseDuty
from cloister.privacy.units import LeakageTable
from cloister.protocol import CardMaker, Clustering, Explanation, Finding, OwnInput, PublicInput, ToldRounds
from cloister.protocols.guided_sums import alone
from cloister.protocols.guided_sums.agreement import Agreement, Settings, envelope_of, make_leakage
from cloister.protocols.guided_sums.algorithm import GuidedFinding, GuidedSession
from cloister.protocols.guided_sums.alone import LoneParty
from cloister.protocols.guided_sums.attack import attack_sums
from cloister.protocols.guided_sums.coordinator import GuidedOutcome, NoBooks, coordinate
from cloister.protocols.guided_sums.messages import make_codec
from cloister.protocols.guided_sums.party import GuidedParty
from cloister.protocols.guided_sums.settings import GuidedSettings
from cloister.roles import Coordinator, Party, Seat
from cloister.wire import Codec

LEADER: Final = (
    "One party, the leader, chose the questions and stated the result; all others checked what each question may "
    "cost. A leader that lies learns no more than the budget allows, but it can spend the budget on questions of its "
    "own, waste it, or state false centres."
)


class GuidedClustering(Clustering[GuidedSession[Settings]]):
    """A protocol of guided sums."""

    Told = ToldRounds
    source: ClassVar[str]
    """Where it is proved."""
    totals: ClassVar[str]
    """What is added up, in words."""
    public: ClassVar[str]
    """What everyone knows."""
    remedy: ClassVar[str]
    """What lowers the noise of a result."""

    def codec(self, agreed: GuidedSession[Settings]) -> Codec:
        """The messages of guided sums, under the protocol's own name."""
        return make_codec(agreed.agreement.settings.protocol)

    def seat(
        self, agreed: GuidedSession[Settings], seat: Seat, own: OwnInput, *, duty: NoiseDuty | None = None
    ) -> GuidedParty | LoneParty:
        """Seat one party."""
        assert duty is not None  # a job of guided sums has a budget
        kind = LoneParty if agreed.agreement.settings.alone else GuidedParty
        return kind(seat=seat, agreed=agreed, records=own.records, duty=duty)

    def work_alone(self, agreed: GuidedSession[Settings], party: Party) -> GuidedOutcome:
        """Run the algorithm of the only party there is."""
        assert isinstance(party, LoneParty)
        return party.work()

    def coordinate(
        self,
        agreed: GuidedSession[Settings],
        *,
        session: bytes,
        entropy: Entropy,
        duty: NoiseDuty | None = None,
    ) -> Coordinator[GuidedOutcome]:
        """Seat the coordinator."""
        return coordinate(agreed, session=session, duty=duty)

    def charges(self, agreed: GuidedSession[Settings]) -> Charges:
        """One payment for all rounds, or the rounds themselves where they are fixed."""
        settings = agreed.agreement.settings
        payment = envelope_of(settings)
        return Charges(
            budget=settings.budget,
            placement=settings.placement,
            prepaid=agreed.plan or (payment,),
            prepayment=None if agreed.plan else payment,
            plan=agreed.plan,
            coordinator_books=NoBooks,
        )

    def digest(self, agreed: GuidedSession[Settings]) -> bytes:
        """That of the agreement."""
        return agreed.agreement.digest

    def members_min(self, agreed: GuidedSession[Settings]) -> int:
        """A sum's quorum."""
        return 1 if agreed.agreement.settings.alone else agreed.agreement.sums.members_min

    def leakage(self, agreed: GuidedSession[Settings]) -> LeakageTable:
        """Who learns what; whom it withstands depends on who adds the noise."""
        if agreed.agreement.settings.alone:
            return alone.make_leakage(self.source)
        return make_leakage(self.source, self.totals, agreed.agreement)

    def find(self, agreed: GuidedSession[Settings], party: Party, outcome: GuidedOutcome) -> Finding | None:
        """Return what a party that stayed to the end has found."""
        assert isinstance(party, GuidedParty | LoneParty)
        if not party.finished:
            return None
        found = party.finding
        return Finding(
            centres=found.centres,
            rounds=found.rounds,
            sizes=found.sizes,
            centre_noise=found.centre_noise,
            curve=found.curve,
            scale=found.scale,
            details=found,
            votes=party.votes,
        )

    @abstractmethod
    def list_notes(self, settings: Settings, found: Any, *, idle: int) -> tuple[str, ...]:
        """What else the reader must know; ``idle`` rounds were not needed."""

    def explain(
        self,
        job: Job,
        agreed: GuidedSession[Settings],
        finding: Finding,
        outcome: GuidedOutcome,
        make_card: CardMaker | None,
    ) -> Explanation:
        """Explain a finding; all of it is public or released."""
        agreement, settings = agreed.agreement, agreed.agreement.settings
        assert make_card is not None  # a job of guided sums has a budget
        card = make_card(_describe_run(settings, finding.details, outcome, remedy=self.remedy))
        notes = self.list_notes(settings, finding.details, idle=len(settings.slots) - len(card.releases))
        return Explanation(
            leakage=self.leakage(agreed),
            public=alone.PUBLIC if settings.alone else self.public,
            notes=(*notes, *_note_absent(job, settings, outcome)),
            card=card,
            ring_bits=None if settings.alone else agreement.ring.bits,
        )

    def find_released(self, agreed: GuidedSession[Settings], parties: Sequence[Party]) -> Released:
        """The total of each round, which whoever led has read."""
        totals = (party.released_totals for party in parties if isinstance(party, GuidedParty | LoneParty))
        vectors = max(totals, key=len)
        by_coordinator = agreed.agreement.by_coordinator
        return Released(
            drawn_by=0 if by_coordinator else 1,
            draws=tuple(range(len(vectors))),
            vectors=vectors,
            follows="to parties" if by_coordinator else "all",
        )

    def attacks(self, job: Job, public: PublicInput) -> JobUnderAudit:
        """Build the attacks on a job."""
        directory = tuple(identity.public_bytes for identity in make_identities(job))
        return attack_sums(self, job, self.agree(job, directory, public))


def agree_on_sums(job: Job, settings: Settings, directory: tuple[bytes, ...]) -> Agreement[Settings]:
    """Translate a job of guided sums into what its roles agree on."""
    options, parties = job.protocol, len(job.parties)
    assert isinstance(options, NoiseOptions)
    return Agreement(
        settings=settings,
        directory=directory,
        members_min=options.resolve_min_parties(parties),
        masks=options.resolve_masks(parties),
        colluding_max=options.resolve_colluding_max(parties),
        max_records=job.data.max_records or MAX_RECORDS,
        ring_bits=options.ring,
        context=json.dumps([column.list_agreed() for column in job.columns]),
    )


def note_declared(settings: GuidedSettings) -> tuple[str, ...]:
    """Say that the number of records is not hidden, where the job declares it."""
    if settings.records is None:
        return ()
    return (f"The number of records, {settings.records:,}, was declared public by the job: it is not hidden.",)


def _note_absent(job: Job, settings: GuidedSettings, outcome: GuidedOutcome) -> tuple[str, ...]:
    """Say who was in some sums and not in others; with a sample of the parties nobody is in all."""
    sums = outcome.members[: outcome.rounds]
    if settings.sample_size < settings.parties or len(set(sums)) < 2:
        return ()
    counts = {party.name: sum(number in members for members in sums) for number, party in enumerate(job.parties, 1)}
    absent = ", ".join(f"{name} {len(sums) - count}" for name, count in counts.items() if count < len(sums))
    return (
        f"Sizes and centres are not of the same records, as parties missed some of {len(sums)} rounds ({absent}): each "
        "round's sums are of those who were there.",
    )


def _describe_run(
    settings: GuidedSettings, found: GuidedFinding, outcome: GuidedOutcome, *, remedy: str
) -> Circumstances:
    fewest = min(map(len, outcome.members))
    asked = settings.sample_size
    return Circumstances(
        estimated_records=None if settings.client_level or found.sizes is None else found.sizes.total,
        declared_records=settings.records,
        parties=settings.parties if settings.client_level else None,
        centre_noise=float(np.median(found.centre_noise)),
        remedy=remedy + (", or bring in more parties." if settings.client_level else "."),
        shares_missing=asked - min(fewest, asked),
        parties_in_sum=fewest,
        liars=() if settings.alone else (LEADER,),
    )
