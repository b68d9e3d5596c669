"""The synopsis on the stage: the product's default, differentially private from the first number to the last."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import asdict
from threading import Lock

from cloister.errors import ConfigError
from cloister.job import Job
from cloister.numeric import FixedPoint
from cloister.privacy.card_warnings import Circumstances
from cloister.protocols.multiparty_lloyd.agreement import MAX_RECORDS
from cloister.protocols.synopsis import (
    CODEC,
    LEAKAGE,
    Agreement,
    Finding,
    Knobs,
    NoBooks,
    Settings,
    SharedThinking,
    SynopsisParty,
    coordinate,
    envelope_of,
)
from cloister.protocols.synopsis.pipeline import run_synopsis
from cloister.protocols.synopsis.settings import SYNOPSIS
from cloister.simulation.stage import Played, Stage, find_common_centres
from cloister.simulation_desks import make_placement, open_desks


def play_synopsis(stage: Stage) -> Played:
    """Run a job of the synopsis."""
    agreement = make_synopsis_agreement(stage.job, stage.directory)
    settings = agreement.settings
    envelope = envelope_of(settings)
    opened = open_desks(
        stage.job,
        budget=settings.budget,
        placement=settings.placement,
        breaks_if=agreement.breaks_if,
        tables=stage.tables,
        session=stage.session,
        coordinators_books=NoBooks(),
        envelope=envelope,
    )
    with closing(opened) as desks:
        desks.pay_ledgers([envelope])
        thinking = SharedThinking(guard=Lock(), pipeline=run_synopsis)  # all parties read the same totals: think once
        parties = [
            SynopsisParty(
                number=number,
                agreement=agreement,
                records=table,
                identity=identity,
                entropy=stage.make_entropy(f"party {number}"),
                session=stage.session,
                duty=desks.of_party(number),
                thinking=thinking,
            )
            for number, (table, identity) in enumerate(zip(stage.tables, stage.identities, strict=True), start=1)
        ]
        run = stage.run(coordinate(agreement, session=stage.session, duty=desks.coordinator), parties, CODEC)
        centres = find_common_centres(parties)
        finding = next(party.finding for party in parties if party.finished)
        fewest = min(map(len, run.result.members))
        card = desks.make_card(
            Circumstances(
                estimated_records=None if settings.client_level else finding.released_records,
                declared_records=settings.records,
                parties=settings.parties if settings.client_level else None,
                centre_noise=finding.centre_noise,
                remedy="Raise epsilon, or use fewer clusters or columns or narrower bounds"
                + (", or bring in more parties." if settings.client_level else "."),
                shares_missing=len(parties) - fewest,
                parties_in_sum=fewest,
            )
        )
    return Played(
        run=run,
        centres=centres,
        rounds=finding.rounds,
        leakage=LEAKAGE,
        public="columns, bounds, k or the most it may be, the budget, the rounds and their lengths, who takes part and "
        "who missed which round",
        breaks_if=agreement.breaks_if,
        ring_bits=agreement.ring.bits,
        card=card,
        notes=_write_notes(settings, finding, idle=len(settings.slots) - len(card.releases)),
        cluster_records=tuple(finding.weights.tolist()),
        cluster_records_noise=finding.weight_noise,
        released_records=finding.released_records,
        curve=finding.curve,
    )


def make_settings(job: Job) -> Settings:
    """Translate a job of the synopsis into its public settings."""
    if job.protocol.name != SYNOPSIS or job.budget is None:
        raise ConfigError(f"the protocol must be {SYNOPSIS} to have its settings; got {job.protocol.name}.")
    return Settings(
        clusters=job.k,
        dimensions=len(job.columns),
        budget=job.budget,
        parties=len(job.parties),
        records=job.data.records,
        choose_k=job.choose_k,
        placement=make_placement(job),
        fixed_point=FixedPoint(job.protocol.fractional_bits),
        knobs=job.synopsis or Knobs(),
    )


def make_synopsis_agreement(job: Job, directory: tuple[bytes, ...]) -> Agreement[Settings]:
    """Translate a job of the synopsis into what its roles agree on."""
    return Agreement(
        settings=make_settings(job),
        directory=directory,
        members_min=job.protocol.resolve_min_parties(len(job.parties)),
        max_records=job.data.max_records or MAX_RECORDS,
        ring_bits=job.protocol.ring,
        context=json.dumps([asdict(column) for column in job.columns]),
    )


def _write_notes(settings: Settings, finding: Finding, *, idle: int) -> tuple[str, ...]:
    """What the reader must know besides; all of it public or released."""
    notes = []
    if settings.choose_k:
        notes.append(f"k = {len(finding.centres)} was chosen by the synopsis, from at most {settings.clusters}.")
    if settings.records is not None:
        notes.append(f"The number of records, {settings.records:,}, was declared public by the job: it is not hidden.")
    if finding.route == "projected":
        notes.append(
            f"The histogram was laid along {finding.axes} main directions of the records, which were found in noisy "
            "second moments: there are too many columns to lay it along each of them."
        )
    elif finding.axes < settings.dimensions:
        notes.append(
            f"The histogram tells only {finding.axes} of {settings.dimensions} columns apart: there are too few "
            "records, or too little budget, for more. Clusters that differ in other columns may be missed."
        )
    if idle:
        were, they = ("was", "It was") if idle == 1 else ("were", "They were")
        notes.append(
            f"{idle} of {len(settings.slots)} rounds {were} not needed. {they} sent as zeros, so that the coordinator "
            "cannot tell."
        )
    return tuple(notes)
