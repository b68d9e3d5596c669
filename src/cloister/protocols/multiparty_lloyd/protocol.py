"""The protocols of multiparty Lloyd as protocol objects: exact ones, and "Mask, Noise then Average"."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, cast

import numpy as np

from cloister.audit import JobUnderAudit
from cloister.audit.attack import make_identities
from cloister.audit.whole_view import Released
from cloister.crypto import Entropy
from cloister.forecast.model import Forecast, PlanRequest
from cloister.job import MAX_RECORDS, Job
from cloister.kmeans import Assignment, DistanceConstrained, Unconstrained
from cloister.numeric import FixedPoint
from cloister.privacy.accounting import Accountant
from cloister.privacy.books import Charges
from cloister.privacy.card import Circumstances, PrivacyCard
from cloister.privacy.release import NoiseDuty
from cloister.privacy.units import LeakageTable
from cloister.protocol import (
    CardMaker,
    Clustering,
    Explanation,
    Finding,
    OwnInput,
    PublicInput,
    ToldRounds,
    placeholder_directory,
)
from cloister.protocols.multiparty_lloyd import messages
from cloister.protocols.multiparty_lloyd.agreement import (
    AVERAGES,
    LEAKAGE,
    Agreement,
    LloydSession,
    Variant,
    make_terms,
)
from cloister.protocols.multiparty_lloyd.attack import attack_rounds, make_harmless
from cloister.protocols.multiparty_lloyd.coordinator import Outcome, coordinate
from cloister.protocols.multiparty_lloyd.noise import NoisePlan, plan_noise
from cloister.protocols.multiparty_lloyd.options import (
    LIMITS,
    ExactOptions,
    LloydOptions,
    MaskedCentroidOptions,
    MaskedOptions,
    MaskedSumCountOptions,
    MaskNoiseAverageOptions,
    NaiveOptions,
    NoisyOptions,
)
from cloister.protocols.multiparty_lloyd.party import LloydParty, LloydState
from cloister.protocols.multiparty_lloyd.plan import forecast_rounds
from cloister.protocols.serverless.messages import CODEC as RING_CODEC
from cloister.protocols.serverless.party import RingParty
from cloister.protocols.serverless.relay import RelayOutcome, relay
from cloister.report.sizes import fit_sizes
from cloister.roles import Coordinator, Party, Seat
from cloister.wire import Codec


class LloydClustering(Clustering[LloydSession]):
    """Rounds of Lloyd's algorithm on sums over all parties, around a coordinator or in a ring; by default exact."""

    Told = ToldRounds

    def name_variant(self, job: Job) -> Variant:
        """Return which of the papers' protocols a job runs."""
        return cast(Variant, self.name)

    def plan_noise(self, job: Job) -> NoisePlan | None:
        """Plan a job's noise from its public values; None without noise."""
        return None

    def make_assignment(self, job: Job) -> Assignment:
        """Return how each party's records join clusters."""
        return job.protocol.make_assignment() if isinstance(job.protocol, ExactOptions) else Unconstrained()

    def agree(self, job: Job, directory: tuple[bytes, ...], public: PublicInput) -> LloydSession:
        """Translate a job."""
        options = job.protocol
        assert isinstance(options, LloydOptions)
        in_ring = isinstance(options, NoisyOptions) and options.in_ring
        assignment, noise = self.make_assignment(job), self.plan_noise(job)
        if noise is None:
            assert isinstance(options, ExactOptions)
            iterations = options.iterations
        else:
            iterations = len(noise.targets)
        context = {
            "columns": [column.list_agreed() for column in job.columns],
            "assignment": assignment.name,
            "topology": "ring" if in_ring else "star",
            **{name: getattr(options, name, None) for name in LIMITS},
        }
        agreement = Agreement(
            variant=self.name_variant(job),
            parties=len(job.parties),
            clusters=job.k,
            dimensions=job.dimensions,
            iterations=iterations,
            initialisation=options.initialisation,
            start=() if options.start is None else tuple(map(tuple, job.to_unit(np.array(options.start)))),
            start_by=options.starter,
            noise=noise,
            fractional_bits=options.fractional_bits,
            ring_bits=options.ring,
            max_records=bound_records(job),
            members_min=options.resolve_min_parties(len(job.parties)),
            **_choose_masks(options, len(job.parties)),
            tolerance=options.tolerance if isinstance(options, NaiveOptions) else 0.0,
            directory=directory,
            context=json.dumps(context, sort_keys=True),
        )
        return LloydSession(
            agreement=agreement,
            assignment=assignment,
            terms=make_terms(agreement) if in_ring else None,
            records=job.data.records,
        )

    def charges(self, agreed: LloydSession) -> Charges | None:
        """Every round, which is known before the first."""
        plan = agreed.agreement.noise
        if plan is None:
            return None
        return Charges(
            budget=plan.budget,
            placement=plan.placement,
            prepaid=plan.releases,
            coordinator_books=partial(Accountant, plan.budget),
        )

    def digest(self, agreed: LloydSession) -> bytes:
        """That of the agreement: scales of noise are in it, rounded as every party rounds them."""
        return agreed.agreement.digest

    def members_min(self, agreed: LloydSession) -> int:
        """A sum's quorum."""
        return agreed.agreement.members_min

    def leakage(self, agreed: LloydSession) -> LeakageTable:
        """The thesis's table; who can undo it depends on who adds the noise."""
        agreement = agreed.agreement
        table, noise, double = LEAKAGE[agreement.variant], agreement.noise, agreement.masks == "double"
        exact = _EXACT
        if isinstance(agreed.assignment, DistanceConstrained):
            table, exact = replace(table, breaks_if=f"{table.breaks_if} {_RADIUS}"), f"{_EXACT} {_RADIUS}"
        if noise is not None:
            placement, middleman = noise.placement, agreed.middleman
            return replace(
                table,
                withstands=placement.withstands(masked_twice=double, middleman=middleman),
                breaks_if=placement.breaks_if(masked_twice=double, middleman=middleman),
            )
        if not double:
            return table
        most, parties = agreement.colluding_max, agreement.parties
        some = "any one" if most == 1 else f"up to {most}"
        colluding = "Two or more colluding parties" if most == 1 else f"More than {most} colluding parties"
        return replace(
            table,
            withstands=f"An active {agreed.middleman} together with {some} of the {parties} parties learns nothing of "
            f"the others beyond one exact sum a round, over at least {agreement.members_min} parties.",
            breaks_if=f"{colluding}, with the {agreed.middleman} or without. {exact}",
        )

    # --- roles

    def codec(self, agreed: LloydSession) -> Codec:
        """The messages of Lloyd's rounds, or of the ring that sums them up."""
        return messages.CODEC if agreed.terms is None else RING_CODEC

    def seat(
        self, agreed: LloydSession, seat: Seat, own: OwnInput, *, duty: NoiseDuty | None = None
    ) -> LloydParty | RingParty:
        """Seat one party."""
        state = LloydState(agreement=agreed.agreement, records=own.records, assignment=agreed.assignment, duty=duty)
        if agreed.terms is None:
            return LloydParty(seat=seat, agreement=agreed.agreement, state=state)
        return RingParty(seat=seat, terms=agreed.terms, contributor=state)

    def coordinate(
        self, agreed: LloydSession, *, session: bytes, entropy: Entropy, duty: NoiseDuty | None = None
    ) -> Coordinator[Outcome] | Coordinator[RelayOutcome]:
        """Seat the coordinator; in a ring the relay, which adds nothing up."""
        if agreed.terms is None:
            return coordinate(agreed.agreement, entropy=entropy, session=session, duty=duty)
        return relay(agreed.terms, entropy=entropy, session=session)

    # --- results

    def find(self, agreed: LloydSession, party: Party, outcome: Outcome | RelayOutcome) -> Finding | None:
        """Return what a party that stayed to the end has found."""
        assert isinstance(party, LloydParty | RingParty)
        if not party.finished:
            return None
        state = _state_of(party)
        assert state.centres is not None
        noise, counts, sizes, d = agreed.agreement.noise, state.released_counts, None, agreed.agreement.dimensions
        if noise is not None and counts is not None and noise.count_noise is not None:
            declared = agreed.records if state.missing == 0 else None
            sizes = fit_sizes(counts, np.full(len(counts), noise.count_noise**2), total=declared)
        return Finding(
            centres=state.centres,
            rounds=outcome.rounds,
            sizes=sizes,
            centre_noise=None if noise is None else noise.find_centre_noise(state.released_totals, d),
            details=counts if noise is not None else state.confined,
        )

    def explain(
        self,
        job: Job,
        agreed: LloydSession,
        finding: Finding,
        outcome: Outcome | RelayOutcome,
        make_card: CardMaker | None,
    ) -> Explanation:
        """Explain a finding; all of it is public or released."""
        agreement = agreed.agreement
        return Explanation(
            leakage=self.leakage(agreed),
            public="columns, bounds, k, the number of rounds, who takes part and who missed which round",
            notes=_write_notes(job, agreement, confined=0 if agreement.noise is not None else finding.details),
            card=None if make_card is None else _fill_card(make_card, job, agreed, finding, outcome),
            middleman=agreed.middleman,
            ring_bits=agreement.ring.bits if agreement.masked else None,
        )

    # --- planning and audits

    def forecast(self, job: Job, public: PublicInput, request: PlanRequest) -> Forecast:
        """Forecast what a job would do and send, and how much noise a round has."""
        agreed = self.agree(job, placeholder_directory(job), public)
        return forecast_rounds(self, job, agreed, request)

    def find_released(self, agreed: LloydSession, parties: Sequence[Party]) -> Released | None:
        """The noisy sums of each round."""
        plan = agreed.agreement.noise
        if plan is None:
            return None
        if plan.placement.sampled_jointly:
            return Released(drawn_by=None, follows="none")
        vectors = tuple(total.ravel() for total in _state_of(parties[0]).released_totals)
        return Released(
            drawn_by=0 if plan.by_coordinator else 1,
            draws=tuple(range(len(vectors))),
            vectors=vectors,
            follows="to parties" if plan.by_coordinator else "all",
        )

    def attacks(self, job: Job, public: PublicInput) -> JobUnderAudit:
        """Build attacks on a job with noise whose records join their nearest centres."""
        directory = tuple(identity.public_bytes for identity in make_identities(job))
        agreed = self.agree(job, directory, public)
        return attack_rounds(self, job, agreed, *make_harmless(job, agreed.agreement))


class Naive(LloydClustering):
    """Sums in the clear (thesis 5.2)."""

    Options = NaiveOptions


class MaskedSumCount(LloydClustering):
    """Masked sums and counts (thesis 5.3)."""

    Options = MaskedSumCountOptions


class MaskedCentroid(LloydClustering):
    """Masked averages of local centres (thesis 5.4)."""

    Options = MaskedCentroidOptions


class MaskNoiseAverage(LloydClustering):
    """Masked sums and counts with noise (thesis 7.2.4)."""

    Options = MaskNoiseAverageOptions

    def plan_noise(self, job: Job) -> NoisePlan:
        """Spend the budget evenly on the rounds."""
        options = job.protocol
        assert isinstance(options, MaskNoiseAverageOptions)
        assert job.budget is not None
        fixed_point = FixedPoint(options.fractional_bits)
        bound = options.norm_bound
        return plan_noise(
            job.budget,
            kind=options.noise_kind,
            iterations=options.iterations,
            clusters=job.k,
            dimensions=job.dimensions,
            fixed_point=fixed_point,
            norm_bound=None if bound is None else max(1, int(bound * fixed_point.scale)),
            placement=options.make_placement(len(job.parties)),
        )


_EXACT = "Also all parties but one in a sum: what they leave of it is the last one's."
_RADIUS = (
    "With a radius also the coordinator alone, in part: a party whose records cannot meet the sizes within the radius "
    "drops out, which shows."
)


def _state_of(party: Party) -> LloydState:
    state = party.state if isinstance(party, LloydParty) else getattr(party, "contributor", None)
    assert isinstance(state, LloydState)
    return state


def _choose_masks(options: LloydOptions, parties: int) -> dict[str, Any]:
    """Say how a session's sums are masked, and against how many; nothing of a protocol in the clear."""
    if isinstance(options, NoisyOptions):
        return {"masks": options.resolve_masks(parties), "colluding_max": options.resolve_colluding_max(parties)}
    if isinstance(options, MaskedOptions):
        return {"masks": options.masks, "colluding_max": options.resolve_colluding_max(parties)}
    return {}


def bound_records(job: Job) -> int:
    """Return a public cap on one party's records; times the number of parties, it bounds all records together."""
    caps = [MAX_RECORDS if job.data.max_records is None else job.data.max_records]
    if job.data.records is not None:
        caps.append(min(MAX_RECORDS, -(-job.data.records // len(job.parties))))
    return min(caps)


def _fill_card(
    make_card: CardMaker, job: Job, agreed: LloydSession, finding: Finding, outcome: Outcome | RelayOutcome
) -> PrivacyCard:
    """Make the card, with the noise on a centre of average size for its warning."""
    plan, counts = agreed.agreement.noise, finding.details
    assert plan is not None
    assert job.budget is not None
    declared_records = job.data.records
    records = declared_records if counts is None else float(counts.sum())
    blur = None if finding.centre_noise is None else float(np.median(finding.centre_noise))
    if blur is None and records is not None:  # as the text claims, for a cluster of average size
        blur = plan.blur_centre(max(1.0, records / plan.clusters))
    fewest = min(map(len, outcome.members))
    return make_card(
        Circumstances(
            estimated_records=records,
            records_noise=None if counts is None else len(counts) ** 0.5 * (plan.count_noise or 0.0),
            declared_records=declared_records,
            centre_noise=blur,
            parties_in_sum=fewest,
            flaw=plan.flaw,
            reserved_delta=job.budget.delta - plan.budget.delta,
        )
    )


def _write_notes(job: Job, agreement: Agreement, *, confined: int) -> tuple[str, ...]:
    notes, noise = [], agreement.noise
    if noise is not None and job.data.records is not None:
        notes.append(f"The number of records, {job.data.records:,}, was declared public by the job: it is not hidden.")
    if noise is None:
        notes.append("Sums and centres are exact: nothing here is differentially private.")
    if confined:
        notes.append(
            f"WARNING: do not use these centres. In {confined} of {agreement.iterations} rounds the sums were such as "
            "no records give: a party or the coordinator changed them."
        )
    if agreement.variant in AVERAGES:
        notes.append(
            "The centres are averages of the parties' local centres, weighted equally whatever their size (thesis 5.4)."
        )
    if noise is None and agreement.parties == 2 and agreement.masked:
        notes.append(
            "With two parties, each can subtract its own part from the sum and get the other's. Three or more hide it."
        )
    return tuple(notes)
