"""What the protocols of guided sums have in common as protocol objects: the synopsis, and FedDP-KMeans."""

from __future__ import annotations

import json
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, replace
from typing import Any, Generic

from cloister.crypto import Entropy
from cloister.job import MAX_RECORDS, Job, NoiseOptions
from cloister.privacy.card import Circumstances
from cloister.privacy.mechanisms import Release
from cloister.privacy.release import NoiseDuty
from cloister.protocol import Charges, Clustering, Finding, LeakageTable, OwnInput
from cloister.protocols.guided_sums.agreement import Agreement, Settings, envelope_of
from cloister.protocols.guided_sums.coordinator import NoBooks, Outcome, coordinate
from cloister.protocols.guided_sums.messages import make_codec
from cloister.protocols.guided_sums.party import GuidedParty
from cloister.protocols.guided_sums.thinking import Pipeline, SharedThinking
from cloister.roles import Coordinator, Party, Seat
from cloister.wire import Codec


@dataclass(frozen=True, kw_only=True, eq=False)
class GuidedSession(Generic[Settings]):
    """What was agreed for one session of guided sums.

    Attributes
    ----------
    agreement
        The public parameters.
    algorithm
        What every party runs on the released totals.
    plan
        All releases, where they are fixed in advance; otherwise one prepayment covers them.
    """

    agreement: Agreement[Settings]
    algorithm: Pipeline[Any]
    plan: tuple[Release, ...] | None = None


class GuidedClustering(Clustering[GuidedSession[Settings]]):
    """A protocol of guided sums."""

    table: LeakageTable
    """Who learns what, whoever adds the noise."""

    def codec(self, agreed: GuidedSession[Settings]) -> Codec:
        """The messages of guided sums, under the protocol's own name."""
        return make_codec(agreed.agreement.settings.protocol)

    def make_cache(
        self,
        agreed: GuidedSession[Settings],
        guard: AbstractContextManager[object] = nullcontext(),  # noqa: B008
    ) -> SharedThinking[Any]:
        """Let parties of one process that read the same totals run the algorithm once."""
        return SharedThinking(guard=guard, pipeline=agreed.algorithm)

    def seat(
        self,
        agreed: GuidedSession[Settings],
        seat: Seat,
        own: OwnInput,
        *,
        duty: NoiseDuty | None = None,
        cache: SharedThinking[Any] | None = None,
    ) -> GuidedParty[Any]:
        """Seat one party."""
        assert duty is not None  # a job of guided sums has a budget
        return GuidedParty(
            number=seat.number,
            agreement=agreed.agreement,
            records=own.records,
            identity=seat.identity,
            entropy=seat.entropy,
            session=seat.session,
            duty=duty,
            thinking=cache or self.make_cache(agreed),
        )

    def coordinate(
        self,
        agreed: GuidedSession[Settings],
        *,
        session: bytes,
        entropy: Entropy,
        duty: NoiseDuty | None = None,
    ) -> Coordinator[Outcome]:
        """Seat the coordinator."""
        return coordinate(agreed.agreement, session=session, duty=duty)

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

    def leakage(self, agreed: GuidedSession[Settings]) -> LeakageTable:
        """The protocol's table; who can undo it depends on who adds the noise."""
        return replace(self.table, breaks_if=agreed.agreement.breaks_if)

    def find(self, agreed: GuidedSession[Settings], party: Party, outcome: Outcome) -> Finding | None:
        """Return what a party that stayed to the end has found."""
        assert isinstance(party, GuidedParty)
        if not party.finished:
            return None
        found = party.finding
        return Finding(
            centres=found.centres,
            rounds=found.rounds,
            cluster_records=tuple(found.weights.tolist()),
            cluster_records_noise=found.weight_noise,
            released_records=found.released_records,
            curve=getattr(found, "curve", ()),
            details=found,
        )


def agree_on_sums(job: Job, settings: Settings, directory: tuple[bytes, ...]) -> Agreement[Settings]:
    """Translate a job of guided sums into what its roles agree on."""
    options = job.protocol
    assert isinstance(options, NoiseOptions)
    return Agreement(
        settings=settings,
        directory=directory,
        members_min=options.resolve_min_parties(len(job.parties)),
        max_records=job.data.max_records or MAX_RECORDS,
        ring_bits=options.ring,
        context=json.dumps([asdict(column) for column in job.columns]),
    )


def describe_run(agreement: Agreement[Any], found: Any, outcome: Outcome, *, remedy: str) -> Circumstances:
    """What a card is told of a session of guided sums."""
    settings = agreement.settings
    fewest = min(map(len, outcome.members))
    asked = settings.sample_size
    return Circumstances(
        estimated_records=None if settings.client_level else found.released_records,
        declared_records=settings.records,
        parties=settings.parties if settings.client_level else None,
        centre_noise=found.centre_noise,
        remedy=remedy + (", or bring in more parties." if settings.client_level else "."),
        shares_missing=asked - min(fewest, asked),
        parties_in_sum=fewest,
    )
