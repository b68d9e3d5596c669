"""Vertical clustering as a protocol object: its parameters, who sits where, and what its reader must know."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import msgspec
import numpy as np

from cloister.audit import JobUnderAudit
from cloister.audit.attack import make_identities
from cloister.audit.whole_view import Released
from cloister.crypto import Entropy
from cloister.errors import ConfigError
from cloister.forecast.model import Forecast, PlanRequest
from cloister.job import Job
from cloister.privacy.books import Charges
from cloister.privacy.calibration import rho_for
from cloister.privacy.card import VALUES_CHANGED, Circumstances, PrivacyCard
from cloister.privacy.mechanisms import DiscreteGaussian, Release
from cloister.privacy.placement import Shared
from cloister.privacy.release import NoiseDuty
from cloister.privacy.units import LeakageTable, Sensitivity
from cloister.protocol import (
    CardMaker,
    Clustering,
    Explanation,
    Finding,
    LabelSession,
    OwnInput,
    PublicInput,
    placeholder_directory,
)
from cloister.protocols.vertical.agreement import VerticalAgreement
from cloister.protocols.vertical.attack import attack_vertical, count_records
from cloister.protocols.vertical.computing import ComputingParty
from cloister.protocols.vertical.coordinator import RelayOutcome, coordinate_vertical
from cloister.protocols.vertical.holder import HolderParty
from cloister.protocols.vertical.labels.session import open_label_session
from cloister.protocols.vertical.leakage import (
    add_labels,
    describe_labels,
    describe_leakage,
    describe_who_adds_noise,
)
from cloister.protocols.vertical.messages import CODEC
from cloister.protocols.vertical.noise import ChargedFlood
from cloister.protocols.vertical.options import VerticalOptions, assign_roles, describe_context, options_of
from cloister.protocols.vertical.party import VerticalParty
from cloister.protocols.vertical.plan import forecast_vertical, require_records
from cloister.protocols.vertical.query import HISTOGRAM
from cloister.protocols.vertical.relayed import gather_columns
from cloister.protocols.vertical.settings import BITS_LEAST, Settings
from cloister.records import IntArray
from cloister.report.result import CellBook
from cloister.roles import Coordinator, Party, Seat
from cloister.wire import Codec

_EXACT_BITS = 16
_UNITS = 2**26
"""The prepayment's sensitivity: any integer works, since its noise follows from it."""


@dataclass(frozen=True, kw_only=True, eq=False)
class VerticalSession:
    """What was agreed for one session.

    Attributes
    ----------
    agreement
        The public parameters.
    encrypted_columns
        The names of each encrypted party's columns.
    """

    agreement: VerticalAgreement
    encrypted_columns: tuple[tuple[str, ...], ...]


class Vertical(Clustering[VerticalSession]):
    """The protocol for columns of the same records at different parties."""

    Options = VerticalOptions

    def codec(self, agreed: VerticalSession) -> Codec:
        """The messages of a vertical session."""
        return CODEC

    def agree(self, job: Job, directory: tuple[bytes, ...], public: PublicInput) -> VerticalSession:
        """Translate a job, once records are aligned."""
        records = count_aligned(job, public, least=job.k)
        names = [[axis.name for axis in job.find_coordinates(party)] for party in job.parties]
        return VerticalSession(
            agreement=make_agreement(job, directory, records=records, alignment=public.alignment),
            encrypted_columns=tuple(tuple(names[place]) for place in assign_roles(job).encrypted),
        )

    def explain_choice(self, job: Job, others: str) -> str:
        """Say why it is used."""
        return "columns of the same records are split across organisations, which no other protocol supports."

    def seat(
        self, agreed: VerticalSession, seat: Seat, own: OwnInput, *, duty: NoiseDuty | None = None
    ) -> VerticalParty:
        """Seat one party: the one that computes, or one that encrypts, decrypts, or both."""
        agreement = agreed.agreement
        kind = ComputingParty if seat.number == agreement.computing else HolderParty
        return kind(seat, agreement, gather_columns(own.records), duty=duty)

    def coordinate(
        self, agreed: VerticalSession, *, session: bytes, entropy: Entropy, duty: NoiseDuty | None = None
    ) -> Coordinator[RelayOutcome]:
        """Seat the relay."""
        return coordinate_vertical(agreed.agreement, session=session)

    def close(self, party: Party) -> None:
        """Overwrite a key holder's keys."""
        if isinstance(party, HolderParty):
            party.close()

    def charges(self, agreed: VerticalSession) -> Charges | None:
        """Return one payment for all passes, whose noise differs."""
        settings = agreed.agreement.settings
        if settings.budget is None:
            return None
        payment = make_prepayment(settings)
        return Charges(
            budget=settings.budget,
            placement=settings.placement,
            prepaid=(payment,),
            prepayment=payment,
            by_rho=True,
        )

    def digest(self, agreed: VerticalSession) -> bytes:
        """That of the agreement; scales of noise are stated in the session."""
        return agreed.agreement.digest

    def members_min(self, agreed: VerticalSession) -> int:
        """All: each has its part."""
        return agreed.agreement.parties

    def leakage(self, agreed: VerticalSession) -> LeakageTable:
        """Return the table of the clustering; labels add to it."""
        return describe_leakage(agreed.agreement)

    def find(self, agreed: VerticalSession, party: Party, outcome: RelayOutcome) -> Finding | None:
        """Return what a party that stayed to the end has found."""
        assert isinstance(party, VerticalParty)
        if not party.finished:
            return None
        found = party.finding
        return Finding(
            centres=found.centres,
            rounds=found.rounds,
            sizes=found.sizes,
            centre_noise=found.centre_noise,
            codebooks=tuple(
                CellBook(columns=columns, cells=tuple(tuple(cell) for cell in codebook.reps.tolist()))
                for columns, codebook in zip(agreed.encrypted_columns, party.codebooks.holders, strict=True)
            ),
            details=found,
        )

    def explain(
        self, job: Job, agreed: VerticalSession, finding: Finding, outcome: RelayOutcome, make_card: CardMaker | None
    ) -> Explanation:
        """Explain a finding; all of it is public or released."""
        agreement, granted = agreed.agreement, options_of(job).labels
        leakage = self.leakage(agreed)
        card = None if make_card is None else _amend_card(agreement, finding, granted, make_card)
        return Explanation(
            leakage=add_labels(leakage, granted) if granted else leakage,
            public="columns and who holds which, bounds, k, the budget, how many records are aligned, the passes and "
            "the lengths of messages",
            notes=_write_notes(job, agreement),
            card=card,
            middleman="relay",
        )

    def label_session(
        self, job: Job, directory: tuple[bytes, ...], public: PublicInput, finding: Finding
    ) -> LabelSession | None:
        """Return the session for the labels of aligned records, whether clustered or new, if anyone is granted them."""
        if not options_of(job).labels:
            return None
        return open_label_session(job, directory, public, finding, records=count_aligned(job, public, least=1))

    def label_relay(self, job: Job, directory: tuple[bytes, ...], public: PublicInput) -> LabelSession | None:
        """Return that session as the relay knows it: with how many centres and cells there are, and zeros for them."""
        agreed = self.agree(job, directory, public)
        settings = agreed.agreement.settings
        books = tuple(
            CellBook(columns=columns, cells=((0.0,) * len(columns),) * settings.cells_of(holder))
            for holder, columns in enumerate(agreed.encrypted_columns)
        )
        unknown = Finding(centres=np.zeros((job.k, job.dimensions)), rounds=0, codebooks=books)
        return self.label_session(job, directory, public, unknown)

    def forecast(self, job: Job, public: PublicInput, request: PlanRequest) -> Forecast:
        """Forecast what a job would do, cost and find."""
        public = replace(public, records=require_records(request))
        return forecast_vertical(job, self.agree(job, placeholder_directory(job), public).agreement, request)

    def find_released(self, agreed: VerticalSession, parties: Sequence[Party]) -> Released | None:
        """The totals of each pass, part by part as the computing party draws its noise; codebooks come before them."""
        agreement, computing = agreed.agreement, parties[agreed.agreement.computing - 1]
        assert isinstance(computing, ComputingParty)
        if agreement.settings.is_exact:
            return None
        codebooks = (computing.codebooks.alice, *computing.codebooks.holders)
        draw, draws, vectors = len(codebooks[0].releases), list[int](), list[IntArray]()
        for name, total in zip(agreement.queries, computing.released_totals, strict=True):
            parts = [total] if name == HISTOGRAM else np.split(total, [-agreement.settings.clusters])
            draws += range(draw, draw + len(parts))
            vectors += parts
            draw += len(parts) + isinstance(agreement.flood, ChargedFlood)
        return Released(
            drawn_by=agreement.computing,
            draws=tuple(draws),
            vectors=tuple(vectors),
            given=tuple(codebook.reps.tolist() for codebook in codebooks),
            follows="none",
        )

    def attacks(self, job: Job, public: PublicInput) -> JobUnderAudit:
        """Build the attacks on a job."""
        directory = tuple(identity.public_bytes for identity in make_identities(job))
        agreement = make_agreement(job, directory, records=count_records(job), alignment=None)
        return attack_vertical(job, agreement, [make_prepayment(agreement.settings)])


# --- what is agreed ---------------------------------------------------------------------------------------------------


def count_aligned(job: Job, public: PublicInput, *, least: int) -> int:
    """Return how many records are aligned; refuse too few, and another number than the job declares."""
    records, declared = public.records or 0, job.data.records
    if records < least:
        hint = (
            " Compare how parties write their IDs: leading zeros (id_form), blanks (id_trim), case (id_ignore_case)."
            if job.data.id is not None
            else " Use fewer clusters, or more records."
        )
        wanted = f"clusters.k = {least} records" if least > 1 else "one record"
        raise ConfigError(f"at least {wanted} must be aligned; {records} are.{hint}")
    if declared is not None and declared != records:
        raise ConfigError(
            "data.records must be the number of aligned records, which is public in a vertical job; it is "
            f"{declared}, and {records} are aligned. Correct it, or leave it out."
        )
    return records


def make_settings(job: Job, records: int) -> Settings:
    """Translate a vertical job into the algorithm's public settings."""
    roles, options = assign_roles(job), options_of(job)
    return Settings(
        clusters=job.k,
        columns_alice=roles.columns[roles.computing],
        columns_encrypted=tuple(roles.columns[party] for party in roles.encrypted),
        records=records,
        budget=job.budget,
        placement=Shared(parties=1 + roles.threshold, colluding_max=roles.colluding_max),
        start=options.initialisation,
        rounds=options.iterations,
        cells=options.cells,
        residuals=options.residuals,
        fractional_bits=options.offset_bits,
    )


def make_agreement(job: Job, directory: tuple[bytes, ...], *, records: int, alignment: str | None) -> VerticalAgreement:
    """Translate a vertical job into what its roles agree on."""
    roles = assign_roles(job)
    settings = make_settings(job, records)
    while True:
        try:
            return VerticalAgreement(
                settings=settings,
                model=roles.model,
                computing=roles.computing + 1,
                encrypted=tuple(party + 1 for party in roles.encrypted),
                key_holders=tuple(party + 1 for party in roles.key_holders),
                threshold=roles.threshold if roles.threshold < len(roles.key_holders) else None,
                directory=directory,
                context=describe_context(job, alignment),
            )
        except ConfigError:
            # Joint cells leave room for fewer bits; a job that names none gets as many as fit.
            bits = settings.precision_bits - 1
            if options_of(job).offset_bits is not None or len(roles.encrypted) == 1 or bits < BITS_LEAST:
                raise
            settings = replace(settings, fractional_bits=bits)


def make_prepayment(settings: Settings) -> Release:
    """All releases of a session as one payment: they cost no more than the budget for noise together."""
    rho = rho_for(settings.noise_budget)
    return Release(
        name="vertical: all passes together",
        mechanism=DiscreteGaussian(sigma=_UNITS / (2 * rho) ** 0.5 * (1 + 1e-12)),
        sensitivity=Sensitivity(l1=_UNITS**2, l2_squared=_UNITS**2),
        entries=1,
    )


# --- what its reader must know ----------------------------------------------------------------------------------------


_COMPUTING = (
    "The computing party states the queries and the result. If it lies it can learn more, as any party can that "
    "deviates, and state false centres; it cannot have less noise added than was agreed."
)


def _amend_card(
    agreement: VerticalAgreement, finding: Finding, granted: Sequence[str], make_card: CardMaker
) -> PrivacyCard:
    """Return the card, for records added or removed, with the cost of other values for a record that is there."""
    settings = agreement.settings
    card = make_card(
        Circumstances(
            estimated_records=float(settings.records),
            centre_noise=float(np.median(finding.details.centre_noise)),
            remedy="Raise epsilon, or use fewer clusters or columns or narrower bounds.",
            liars=(_COMPUTING,),
        )
    )
    budget = settings.noise_budget
    return msgspec.structs.replace(
        card,
        neighbours=f"{VALUES_CHANGED}; all parties know from the alignment that it is there. For one record added or "
        f"removed epsilon is {budget.epsilon:.4g}, as the job's budget says",
        how_composed=f"{card.how_composed}. Of delta, {agreement.rare_delta:.2g} is for what no noise covers: floods "
        "that show something of an error, and bounds on errors that fail",
        who_adds_noise=describe_who_adds_noise(settings.placement),
        not_promised=(
            *([describe_labels(granted)] if granted else ()),
            *card.not_promised,
        ),
    )


def _write_notes(job: Job, agreement: VerticalAgreement) -> tuple[str, ...]:
    """What the reader must know besides; all of it public."""
    settings, parameters = agreement.settings, agreement.parameters
    names = [party.name for party in job.parties]
    holders = ", ".join(names[number - 1] for number in agreement.key_holders)
    some = f" hold the key, and {agreement.threshold} of them decrypt."
    flood = (
        "what its errors reveal is paid from the budget"
        if isinstance(agreement.flood, ChargedFlood)
        else f"its errors are hidden to 2^-{agreement.distance_bits} per number and flood"
    )
    notes = [
        f"{names[agreement.computing - 1]} computed on ciphertexts; {holders}"
        + (" decrypted." if agreement.threshold is None else some)
        + f" The number of aligned records, {settings.records:,}, is public; every party that holds any knows which.",
        f"Decisions see encrypted columns through {settings.joint_cells} cells. Ring {parameters.degree}, modulus of "
        f"{parameters.modulus_bits} bits (128-bit security by the standard's table), plaintexts of "
        f"{parameters.plaintext_modulus.bit_length() - 1} bits; {flood}.",
    ]
    if settings.is_exact:
        notes += _write_exact_notes(settings, options_of(job).labels)
    else:
        notes.append(
            "The ± of the centres leaves out what noise did to the cells into which encrypted columns were sorted."
        )
    return tuple(notes)


def _write_exact_notes(settings: Settings, granted: Sequence[str]) -> list[str]:
    """Write what the reader must know about sums without noise."""
    notes = ["There is no budget: sums are released as they are, and nothing here is differentially private."]
    rounded = [f"values were rounded to multiples of 2^-{settings.precision_bits} before they were added up"]
    if len(settings.columns_encrypted) > 1:
        rounded.append("encrypted columns counted as the middles of their cells")
    if settings.precision_bits < _EXACT_BITS or len(rounded) > 1:
        notes.append(f"Centres are means of rounded records: {'; '.join(rounded)}.")
    if granted:
        notes.append(describe_labels(granted))
    return notes
