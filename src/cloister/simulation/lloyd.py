"""Multiparty Lloyd on the stage: the protocols of the thesis, exact or with noise."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing, nullcontext
from dataclasses import asdict

from cloister.data import to_unit
from cloister.errors import ConfigError
from cloister.job import Job
from cloister.job.checks import COORDINATOR
from cloister.job.defaults import ASSIGNMENT, INITIALISATION, ITERATIONS, NOISE
from cloister.job.protocol_checks import LIMITS
from cloister.kmeans.assignment import (
    Assignment,
    ConstrainedEExclusive,
    ConstrainedExclusive,
    ConstrainedNonExclusive,
    DistanceConstrained,
    Unconstrained,
)
from cloister.numeric import FixedPoint
from cloister.privacy.accounting import Accountant
from cloister.privacy.card import PrivacyCard
from cloister.privacy.card_warnings import Circumstances
from cloister.protocols.multiparty_lloyd import (
    CODEC,
    LEAKAGE,
    Agreement,
    LloydParty,
    NoisePlan,
    coordinate,
    plan_noise,
)
from cloister.protocols.multiparty_lloyd.agreement import MAX_RECORDS
from cloister.protocols.synopsis.settings import SYNOPSIS
from cloister.simulation.stage import Played, Stage, find_common_centres
from cloister.simulation_desks import Desks, make_placement, open_desks

_ASSIGNMENTS: dict[str, Callable[..., Assignment]] = {
    kind.name: kind
    for kind in (
        Unconstrained,
        ConstrainedNonExclusive,
        ConstrainedExclusive,
        ConstrainedEExclusive,
        DistanceConstrained,
    )
}


def play_lloyd(stage: Stage) -> Played:
    """Run a job of multiparty Lloyd."""
    job = stage.job
    agreement = make_agreement(job, stage.directory)
    assignment = make_assignment(job)
    opened = _open_desks(stage, agreement)
    with nullcontext() if opened is None else closing(opened) as desks:
        if desks is not None and agreement.noise is not None:
            desks.pay_ledgers([agreement.noise.release_of(t) for t in range(1, agreement.iterations + 1)])
        parties = [
            LloydParty(
                number=number,
                agreement=agreement,
                records=table,
                identity=identity,
                entropy=stage.make_entropy(f"party {number}"),
                session=stage.session,
                assignment=assignment,
                duty=None if desks is None else desks.of_party(number),
            )
            for number, (table, identity) in enumerate(zip(stage.tables, stage.identities, strict=True), start=1)
        ]
        coordinator = coordinate(
            agreement,
            entropy=stage.make_entropy(COORDINATOR),
            session=stage.session,
            duty=None if desks is None else desks.coordinator,
        )
        run = stage.run(coordinator, parties, CODEC)
        records = next((party.released_records for party in parties if party.finished), None)
        fewest = min(map(len, run.result.members))
        card = _make_card(desks, agreement.noise, records, shares_missing=len(parties) - fewest)
    return Played(
        run=run,
        centres=find_common_centres(parties),
        rounds=run.result.rounds,
        leakage=LEAKAGE[agreement.variant],
        public="columns, bounds, k, the number of rounds, who takes part and who missed which round",
        breaks_if=agreement.breaks_if,
        ring_bits=agreement.ring.bits if agreement.masked else None,
        card=card,
        notes=_write_notes(job),
    )


def make_agreement(job: Job, directory: tuple[bytes, ...]) -> Agreement:
    """Translate a job of multiparty Lloyd into the protocol's public parameters, records in [-1, 1]."""
    options = job.protocol
    if options.name == SYNOPSIS:
        raise ConfigError("the protocol must be one of multiparty Lloyd to agree on its rounds; got synopsis.")
    context = {
        "columns": [asdict(column) for column in job.columns],
        "assignment": options.assignment or ASSIGNMENT,
        **{name: getattr(options, name) for name in LIMITS},
    }
    return Agreement(
        variant=options.name,
        parties=len(job.parties),
        clusters=job.k,
        dimensions=len(job.columns),
        iterations=options.iterations or ITERATIONS,
        initialisation=options.initialisation or INITIALISATION,
        start=() if options.start is None else tuple(map(tuple, to_unit(options.start, job.columns))),
        start_by="coordinator" if options.starter == "coordinator" else "parties",
        noise=make_noise_plan(job),
        fractional_bits=options.fractional_bits,
        ring_bits=options.ring,
        max_records=job.data.max_records or MAX_RECORDS,
        members_min=options.resolve_min_parties(len(job.parties)),
        tolerance=options.tolerance or 0.0,
        directory=directory,
        context=json.dumps(context, sort_keys=True),
    )


def make_assignment(job: Job) -> Assignment:
    """Translate a job's assignment options into the object that assigns records (thesis 4.1, FastLloyd 7.1)."""
    given = {name: getattr(job.protocol, name) for name in LIMITS if getattr(job.protocol, name) is not None}
    return _ASSIGNMENTS[job.protocol.assignment or ASSIGNMENT](**given)


def make_noise_plan(job: Job) -> NoisePlan | None:
    """Plan a job's noise from its public values; None for a protocol without noise."""
    if job.budget is None:
        return None
    options = job.protocol
    fixed_point = FixedPoint(options.fractional_bits)
    bound = options.norm_bound
    return plan_noise(
        job.budget,
        kind=options.noise or NOISE,
        iterations=options.iterations or ITERATIONS,
        clusters=job.k,
        dimensions=len(job.columns),
        fixed_point=fixed_point,
        norm_bound=None if bound is None else max(1, int(bound * fixed_point.scale)),
        placement=make_placement(job),
    )


def _open_desks(stage: Stage, agreement: Agreement) -> Desks | None:
    plan = agreement.noise
    if plan is None:
        return None
    return open_desks(
        stage.job,
        budget=plan.budget,
        placement=plan.placement,
        breaks_if=agreement.breaks_if,
        tables=stage.tables,
        session=stage.session,
        coordinators_books=Accountant(plan.budget),
    )


def _make_card(
    desks: Desks | None, plan: NoisePlan | None, records: float | None, *, shares_missing: int
) -> PrivacyCard | None:
    """The card, with the noise on a centre of average size for its warning."""
    if desks is None or plan is None:
        return None
    deviation = plan.placement.total_variance(plan.target) ** 0.5 * plan.encoder.fixed_point.resolution
    return desks.make_card(
        Circumstances(
            estimated_records=records,
            centre_noise=None if records is None else deviation / max(1.0, records / plan.clusters),
            shares_missing=shares_missing,
        )
    )


def _write_notes(job: Job) -> tuple[str, ...]:
    notes = []
    if job.budget is None:
        notes.append("Sums and centres are exact: nothing here is differentially private.")
    if job.protocol.name == "masked-centroid":
        notes.append(
            "The centres are averages of the parties' local centres, weighted equally whatever their size (thesis 5.4)."
        )
    if len(job.parties) == 2 and job.protocol.name != "naive" and job.budget is None:
        notes.append(
            "Two parties: each can subtract its own part from the sum and has the other's. Three or more hide it."
        )
    return tuple(notes)
