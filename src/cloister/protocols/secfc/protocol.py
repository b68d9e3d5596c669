"""SecFC as a protocol object: the agreement, the charges, who learns what, and the result."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Annotated

import msgspec
import numpy as np
from msgspec import Meta
from msgspec.structs import replace as replace_fields

from cloister.crypto import Entropy
from cloister.errors import ConfigError, RemoteProtocolError, TooFewPartiesError
from cloister.forecast.model import Forecast, PlanRequest
from cloister.forecast.trials import refuse_epsilons
from cloister.job import Job
from cloister.privacy.accounting import Accountant
from cloister.privacy.books import Charges
from cloister.privacy.card import Circumstances, PrivacyCard
from cloister.privacy.mechanisms import Release
from cloister.privacy.placement import Aggregator
from cloister.privacy.release import NoiseDuty
from cloister.privacy.units import LeakageTable
from cloister.protocol import (
    CardMaker,
    Clustering,
    Explanation,
    Finding,
    OwnInput,
    PublicInput,
    ToldOutcome,
    placeholder_directory,
)
from cloister.protocols.secfc.agreement import Coding, SecfcAgreement, check_declared
from cloister.protocols.secfc.coordinator import Outcome, coordinate_secfc
from cloister.protocols.secfc.leakage import describe_leakage, describe_scope, describe_who_adds_noise
from cloister.protocols.secfc.messages import CODEC
from cloister.protocols.secfc.options import SecfcOptions
from cloister.protocols.secfc.party import SecfcParty
from cloister.protocols.secfc.plan import describe_code, forecast_secfc
from cloister.records import IntArray
from cloister.roles import Coordinator, Party, Seat
from cloister.wire import Codec

_SIZES_SHOWN = 40


class SecfcTold(ToldOutcome, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the clients know as well, or may: how the rounds ended, and the sizes of the clusters."""

    revealed: bool
    converged: bool
    rounds: Annotated[int, Meta(ge=0)]
    records_max: Annotated[int, Meta(ge=0, lt=2**53)]
    counts: tuple[Annotated[int, Meta(ge=0, lt=2**53)], ...]


@dataclass(frozen=True, kw_only=True)
class HeardOutcome:
    """The public part of an outcome, as a client reads it; `Outcome` is the coordinator's."""

    revealed: bool
    converged: bool
    rounds: int
    counts: IntArray
    coding: Coding


class Secfc(Clustering[SecfcAgreement]):
    """SecFC: Li, Hou, Buyukates and Avestimehr, "Secure Federated Clustering" (2022)."""

    Options = SecfcOptions
    Told = SecfcTold

    def codec(self, agreed: SecfcAgreement) -> Codec:
        """The messages of SecFC."""
        return CODEC

    def agree(self, job: Job, directory: tuple[bytes, ...], public: PublicInput) -> SecfcAgreement:
        """Translate a job; the number of records is only known if their IDs were aligned."""
        options, union = job.protocol, public.alignment is not None
        assert isinstance(options, SecfcOptions)
        context = {"columns": [column.list_agreed() for column in job.columns], "alignment": public.alignment}
        if union and public.records is not None:
            check_declared(public.records, job.data.records)
        return SecfcAgreement(
            clusters=job.k,
            dimensions=job.dimensions,
            privacy=options.resolve_privacy(len(job.parties)),
            segments=options.segments,
            records_max=public.records if union else job.data.records,
            rounds_max=options.iterations,
            coordinate_bits="auto" if options.coordinate_bits is None else options.coordinate_bits,
            separate_after=options.separate_after,
            reveal_centres=True,
            budget=job.budget,
            union=union,
            directory=directory,
            context=json.dumps(context, sort_keys=True),
        )

    def charges(self, agreed: SecfcAgreement) -> Charges | None:
        """Return a charge at the coordinator, which pays for the revealed centres when it draws their noise."""
        budget = agreed.budget
        if budget is None:
            return None
        return Charges(
            budget=budget,
            placement=Aggregator(),
            coordinator_books=lambda: Accountant(budget),
            parties_pay=False,
        )

    def digest(self, agreed: SecfcAgreement) -> bytes:
        """That of the agreement."""
        return agreed.digest

    def leakage(self, agreed: SecfcAgreement) -> LeakageTable:
        """Who learns what."""
        return describe_leakage(agreed)

    def seat(
        self,
        agreed: SecfcAgreement,
        seat: Seat,
        own: OwnInput,
        *,
        duty: NoiseDuty | None = None,
    ) -> SecfcParty:
        """Seat one client."""
        return SecfcParty(
            number=seat.number,
            agreement=agreed,
            records=own.records,
            identity=seat.identity,
            entropy=seat.entropy,
            session=seat.session,
            positions=own.places,
        )

    def coordinate(
        self, agreed: SecfcAgreement, *, session: bytes, entropy: Entropy, duty: NoiseDuty | None = None
    ) -> Coordinator[Outcome]:
        """Seat the coordinator."""
        return coordinate_secfc(agreed, entropy=entropy, session=session, duty=duty)

    def find(self, agreed: SecfcAgreement, party: Party, outcome: Outcome | HeardOutcome) -> Finding | None:
        """Return the centres that were revealed to a client; refuse a session that could reveal none."""
        assert isinstance(party, SecfcParty)
        if not outcome.revealed:
            raise TooFewPartiesError(
                f"at least {agreed.holders} clients must be left to reveal the centres; fewer were. Run the job again."
            )
        if not party.finished:
            return None
        centres = party.finding.centres
        assert centres is not None  # they were revealed
        return Finding(centres=centres, rounds=outcome.rounds)

    def explain(
        self,
        job: Job,
        agreed: SecfcAgreement,
        finding: Finding,
        outcome: Outcome | HeardOutcome,
        make_card: CardMaker | None,
    ) -> Explanation:
        """Explain what is exact, what is hidden, and how little the noise protects."""
        card = None if make_card is None else make_card(Circumstances(parties_in_sum=len(job.parties)))
        return Explanation(
            leakage=describe_leakage(agreed),
            public="columns, bounds, k, how many records there are, who takes part and who missed which round; the "
            "number of rounds and the lengths of messages, which follow from the labels",
            notes=_write_notes(agreed, outcome),
            card=None if card is None else _limit_card(card, agreed),
            fractional_bits=outcome.coding.bits - 1,
        )

    def tell(self, outcome: Outcome) -> bytes:
        """Encode what the clients may know."""
        return msgspec.msgpack.encode(
            SecfcTold(
                revealed=outcome.revealed,
                converged=outcome.converged,
                rounds=outcome.rounds,
                records_max=outcome.coding.records_max,
                counts=tuple(outcome.counts.tolist()),
            )
        )

    def hear(self, agreed: SecfcAgreement, told: bytes) -> HeardOutcome:
        """Read what the coordinator told."""
        heard = super().hear(agreed, told)
        if len(heard.counts) != agreed.clusters:
            raise RemoteProtocolError("the coordinator must tell the size of every cluster; it did not.")
        try:
            coding = Coding(agreement=agreed, records_max=heard.records_max)
        except ConfigError:
            raise RemoteProtocolError(
                "the coordinator must tell of as many records as the session could have; it did not."
            ) from None
        return HeardOutcome(
            revealed=heard.revealed,
            converged=heard.converged,
            rounds=heard.rounds,
            counts=np.array(heard.counts, dtype=np.int64),
            coding=coding,
        )

    def list_coordinator_charges(self, agreed: SecfcAgreement, outcome: Outcome | HeardOutcome) -> tuple[Release, ...]:
        """The noise on the revealed centres, which the coordinator draws once."""
        event = outcome.coding.noise_event
        return () if event is None else (event,)

    def forecast(self, job: Job, public: PublicInput, request: PlanRequest) -> Forecast:
        """Forecast how records are coded and what is sent, for the largest number of records."""
        refuse_epsilons(job, request)
        records = max(request.numbers)
        assumed = replace(public, records=records, alignment=job.data.id)
        agreement = self.agree(job, placeholder_directory(job), assumed)
        return forecast_secfc(agreement, records, guessed=len(request.numbers) > 1)


def _limit_card(card: PrivacyCard, agreement: SecfcAgreement) -> PrivacyCard:
    """Limit the card to what noise on the centres protects, which is less than a differentially private result."""
    return replace_fields(
        card,
        private=False,
        neighbours="one record's value replaced by another that leaves the labels of all rounds as they are",
        protects_against="Nobody is protected beyond what is said above.",
        who_adds_noise=describe_who_adds_noise(agreement),
        scope=describe_scope(agreement),
    )


def _write_notes(agreement: SecfcAgreement, outcome: Outcome | HeardOutcome) -> tuple[str, ...]:
    sizes = ", ".join(f"{count:,}" for count in outcome.counts[:_SIZES_SHOWN])
    exact, whole = "Labels and centres are", "nothing here is"
    if agreement.budget is not None:
        exact, whole = "Labels are", "the result as a whole is not"
    notes = [
        f"{exact} exact for records rounded to {outcome.coding.bits} bits per coordinate: {whole} differentially "
        "private.",
        f"Records in each cluster: {sizes}{' ...' if len(outcome.counts) > _SIZES_SHOWN else ''}.",
        describe_code(agreement),
    ]
    if (outcome.counts == 1).any():
        notes.append("One cluster has a single record: its centre is that record, and all clients have learned it.")
    if not outcome.converged:
        notes.append(f"Assignments still changed after {outcome.rounds} rounds: raise iterations.")
    if agreement.union:
        notes.append("Who holds which record is hidden.")
    return tuple(notes)
