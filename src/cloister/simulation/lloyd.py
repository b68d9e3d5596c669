"""Multiparty Lloyd on the stage: the protocols of the thesis, exact or with noise."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing, nullcontext
from dataclasses import asdict

import numpy as np
from msgspec.structs import replace as replace_fields

from cloister.data import to_unit
from cloister.errors import ConfigError
from cloister.job import Job
from cloister.job.checks import COORDINATOR
from cloister.job.defaults import ASSIGNMENT, INITIALISATION, ITERATIONS
from cloister.job.fastlloyd_checks import FASTLLOYD
from cloister.job.protocol_checks import LIMITS
from cloister.kmeans.assignment import (
    Assignment,
    ConstrainedEExclusive,
    ConstrainedExclusive,
    ConstrainedNonExclusive,
    DistanceConstrained,
    Unconstrained,
)
from cloister.privacy.accounting import Accountant
from cloister.privacy.card import PrivacyCard
from cloister.privacy.card_warnings import Circumstances
from cloister.protocols.multiparty_lloyd import (
    CODEC,
    LEAKAGE,
    Agreement,
    LloydParty,
    coordinate,
)
from cloister.protocols.synopsis.settings import SYNOPSIS
from cloister.simulation.lloyd_plans import bound_records, make_noise_plan, make_published_options, name_variant
from cloister.simulation.ring import make_terms, walk_in_ring
from cloister.simulation.stage import Played, Stage, Walked, find_common_centres
from cloister.simulation_desks import Desks, open_desks

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
    """Run a job of multiparty Lloyd, FastLloyd among it, around a coordinator or in a ring."""
    job = stage.job
    agreement = make_agreement(job, stage.directory)
    in_ring = job.protocol.topology == "ring"
    check_before_paying(job, agreement, in_ring=in_ring)
    opened = _open_desks(stage, agreement, in_ring=in_ring)
    with nullcontext() if opened is None else closing(opened) as desks:
        if desks is not None and agreement.noise is not None:
            desks.pay_ledgers([agreement.noise.release_of(t) for t in range(1, agreement.iterations + 1)])
        walked = (walk_in_ring if in_ring else _walk_in_star)(stage, agreement, make_assignment(job), desks)
        card = _make_card(job, desks, agreement, walked, in_ring=in_ring)
    counts = walked.released_counts
    return Played(
        run=walked.run,
        centres=walked.centres,
        rounds=walked.run.result.rounds,
        leakage=LEAKAGE[agreement.variant],
        public="columns, bounds, k, the number of rounds, who takes part and who missed which round",
        breaks_if=name_break(agreement, in_ring=in_ring),
        ring_bits=agreement.ring.bits if agreement.masked else None,
        card=card,
        notes=_write_notes(job, agreement),
        middleman=_name_middleman(in_ring),
        cluster_records=() if counts is None else tuple(np.maximum(counts, 0.0).tolist()),
        cluster_records_noise=None if agreement.noise is None else agreement.noise.count_noise,
        released_records=None if counts is None else max(0.0, float(counts.sum())),
    )


def check_before_paying(job: Job, agreement: Agreement, *, in_ring: bool) -> None:
    """Refuse now what would be refused later: a ledger pays for all rounds before the first."""
    if in_ring:
        make_terms(agreement)
    else:
        agreement.require_star()
    if job.ledger is not None and agreement.noise is not None and agreement.noise.flaw:
        raise ConfigError(
            "a ledger must be left out where the guarantee as published does not hold; got one. Remove [ledger] and "
            f'use records that need no protection, or set variant = "sound". {agreement.noise.flaw}'
        )


def _walk_in_star(stage: Stage, agreement: Agreement, assignment: Assignment, desks: Desks | None) -> Walked:
    """Run the rounds around a coordinator."""
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
    return Walked(
        run=run,
        centres=find_common_centres(parties),
        released_counts=next((party.released_counts for party in parties if party.finished), None),
    )


def make_agreement(job: Job, directory: tuple[bytes, ...]) -> Agreement:
    """Translate a job of multiparty Lloyd into the protocol's public parameters, records in [-1, 1]."""
    options = job.protocol
    if options.name == SYNOPSIS:
        raise ConfigError("the protocol must be one of multiparty Lloyd to agree on its rounds; got synopsis.")
    context = {
        "columns": [asdict(column) for column in job.columns],
        "assignment": make_assignment(job).name,
        "topology": options.topology or "star",
        **{name: getattr(options, name) for name in LIMITS},
    }
    plan = make_noise_plan(job)
    assert options.initialisation != "synopsis"  # only vertical jobs start so
    return Agreement(
        variant=name_variant(job),
        parties=len(job.parties),
        clusters=job.k,
        dimensions=len(job.columns),
        iterations=options.iterations or ITERATIONS if plan is None else len(plan.targets),
        initialisation=options.initialisation or INITIALISATION,
        start=() if options.start is None else tuple(map(tuple, to_unit(options.start, job.columns))),
        start_by="coordinator" if options.starter == "coordinator" else "parties",
        noise=plan,
        fractional_bits=options.fractional_bits,
        ring_bits=options.ring,
        max_records=bound_records(job),
        members_min=options.resolve_min_parties(len(job.parties)),
        tolerance=options.tolerance or 0.0,
        directory=directory,
        context=json.dumps(context, sort_keys=True),
    )


def make_assignment(job: Job) -> Assignment:
    """Translate a job's assignment options into the object that assigns records (thesis 4.1, FastLloyd 7.1)."""
    if job.protocol.name == FASTLLOYD:
        return make_published_options(job).make_assignment() if job.protocol.is_published else Unconstrained()
    given = {name: getattr(job.protocol, name) for name in LIMITS if getattr(job.protocol, name) is not None}
    return _ASSIGNMENTS[job.protocol.assignment or ASSIGNMENT](**given)


def _open_desks(stage: Stage, agreement: Agreement, *, in_ring: bool) -> Desks | None:
    plan = agreement.noise
    if plan is None:
        return None
    return open_desks(
        stage.job,
        budget=plan.budget,
        placement=plan.placement,
        breaks_if=name_break(agreement, in_ring=in_ring),
        tables=stage.tables,
        session=stage.session,
        coordinators_books=Accountant(plan.budget),
    )


def _name_middleman(in_ring: bool) -> str:
    return "relay" if in_ring else "coordinator"


def name_break(agreement: Agreement, *, in_ring: bool) -> str:
    """Say which coalition undoes the protection."""
    if in_ring and agreement.noise is not None:
        return agreement.noise.placement.breaks_if_in_ring
    return agreement.breaks_if


def _make_card(
    job: Job, desks: Desks | None, agreement: Agreement, walked: Walked, *, in_ring: bool
) -> PrivacyCard | None:
    """The card, with the noise on a centre of average size for its warning."""
    plan = agreement.noise
    if desks is None or plan is None:
        return None
    declared_records, counts = job.data.records, walked.released_counts
    records = declared_records if counts is None else float(counts.sum())
    card = desks.make_card(
        Circumstances(
            estimated_records=records,
            records_noise=None if counts is None else len(counts) ** 0.5 * (plan.count_noise or 0.0),
            declared_records=declared_records,
            centre_noise=None if records is None else plan.blur_centre(max(1.0, records / plan.clusters)),
            shares_missing=agreement.parties - min(map(len, walked.run.result.members)),
            parties_in_sum=min(map(len, walked.run.result.members)),
            flaw=plan.flaw,
        ),
        middleman=_name_middleman(in_ring),
    )
    # What was kept back for the law of joint noise is allowed, and spent on it.
    allowed = card.budget_delta if job.budget is None else job.budget.delta
    return replace_fields(card, delta=card.delta + allowed - card.budget_delta, budget_delta=allowed)


def _write_notes(job: Job, agreement: Agreement) -> tuple[str, ...]:
    notes = []
    if agreement.noise is not None and agreement.noise.flaw:
        notes.append(f"This reproduces a published text whose guarantee does not hold. {agreement.noise.flaw}")
    if agreement.noise is not None and job.data.records is not None:
        notes.append(f"The number of records, {job.data.records:,}, was declared public by the job: it is not hidden.")
    if job.budget is None:
        notes.append("Sums and centres are exact: nothing here is differentially private.")
    if agreement.variant in ("masked-centroid", "average-mask-noise"):
        notes.append(
            "The centres are averages of the parties' local centres, weighted equally whatever their size (thesis 5.4)."
        )
    if len(job.parties) == 2 and job.protocol.name != "naive" and job.budget is None:
        notes.append(
            "Two parties: each can subtract its own part from the sum and has the other's. Three or more hide it."
        )
    return tuple(notes)
