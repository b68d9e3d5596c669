"""FedDP-KMeans on the stage: with the server's data where there are some, and as the synopsis where there are none."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import asdict, replace
from pathlib import Path
from threading import Lock

import numpy as np

from cloister.data import open_table
from cloister.errors import ConfigError
from cloister.job import Job
from cloister.job.feddp_checks import SERVER
from cloister.job.feddp_section import FeddpSection
from cloister.numeric import FixedPoint
from cloister.privacy.card_warnings import Circumstances
from cloister.protocols.feddp import (
    AUTHORS_CODE,
    CODEC,
    FEDDP,
    LEAKAGE,
    FeddpFinding,
    FeddpSettings,
    bind_server,
    list_plan,
)
from cloister.protocols.guided_sums import Agreement, GuidedParty, NoBooks, SharedThinking, coordinate, envelope_of
from cloister.protocols.multiparty_lloyd.agreement import MAX_RECORDS
from cloister.protocols.synopsis.settings import SYNOPSIS
from cloister.records import FloatArray
from cloister.simulation.stage import Played, Stage, find_common_centres
from cloister.simulation.synopsis import play_synopsis
from cloister.simulation_desks import make_placement, open_desks

NO_SERVER = (
    "The job names feddp and gives no server data (data.server): the synopsis is used, which needs none and adds the "
    "same kind of noise."
)


def play_feddp(stage: Stage) -> Played:
    """Run a job of FedDP-KMeans; without server data, of the synopsis."""
    server = read_server(stage.job, stage.sources.get(SERVER))
    if server is None:
        played = play_synopsis(replace(stage, job=as_synopsis(stage.job)))
        return replace(played, notes=(NO_SERVER, *played.notes))
    agreement = make_feddp_agreement(stage.job, stage.directory, server)
    settings = agreement.settings
    published = settings.variant == "published"
    opened = open_desks(
        stage.job,
        budget=settings.budget,
        placement=settings.placement,
        breaks_if=agreement.breaks_if,
        tables=stage.tables,
        session=stage.session,
        coordinators_books=NoBooks(),
        envelope=None if published else envelope_of(settings),
        plan=list_plan(settings) if published else None,
    )
    with closing(opened) as desks:
        desks.pay_ledgers(list_plan(settings) if published else [envelope_of(settings)])
        thinking = SharedThinking(guard=Lock(), pipeline=bind_server(server))
        parties: list[GuidedParty[FeddpFinding]] = [
            GuidedParty(
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
        asked = settings.sample_size
        card = desks.make_card(
            Circumstances(
                estimated_records=None if settings.client_level else finding.released_records,
                declared_records=settings.records,
                parties=settings.parties if settings.client_level else None,
                centre_noise=finding.centre_noise,
                remedy="Raise epsilon, or use fewer clusters or columns"
                + (", or bring in more parties." if settings.client_level else "."),
                shares_missing=asked - min(fewest, asked),
                parties_in_sum=fewest,
            )
        )
    return Played(
        run=run,
        centres=centres,
        rounds=finding.rounds,
        leakage=LEAKAGE,
        public="columns, bounds, k, the server's data, the budget, the rounds and their lengths, who takes part, who "
        "is asked in a round and who missed it",
        breaks_if=agreement.breaks_if,
        ring_bits=agreement.ring.bits,
        card=card,
        notes=_write_notes(
            settings, idle=len(settings.slots) - len(card.releases), ledger=stage.job.ledger is not None
        ),
        cluster_records=tuple(finding.weights.tolist()),
        cluster_records_noise=finding.weight_noise,
        released_records=finding.released_records,
    )


def read_server(job: Job, source: object = None) -> FloatArray | None:
    """Return the server's points in unit scaling, or None where there are none; ``source`` is in place of the file."""
    if source is None and job.data.server is not None:
        source = job.folder / job.data.server
    if source is None:
        if job.protocol.variant == "published":
            raise ConfigError(
                'data.server must be given with variant = "published"; got none. Name the table of the server\'s data.'
            )
        return None
    table = open_table(
        source,
        job.columns,
        fixed_point=FixedPoint(job.protocol.fractional_bits),
        match=job.data.match,
        label="the server's data" + (f" ({source})" if isinstance(source, str | Path) else ""),
    )
    return np.concatenate(list(table.batches()))


def as_synopsis(job: Job) -> Job:
    """Return the job without server data, and so without FedDP-KMeans."""
    if job.protocol.name != FEDDP:
        raise ConfigError(f"only a job of {FEDDP} can do without its server data; got {job.protocol.name}.")
    if job.feddp is not None:
        raise ConfigError(
            "[feddp] must come with server data; got none, and the synopsis takes none of it. Name data.server, or "
            "remove the section."
        )
    return replace(job, protocol=replace(job.protocol, name=SYNOPSIS, variant=None), feddp=None)


def make_feddp_settings(job: Job, server: FloatArray) -> FeddpSettings:
    """Translate a job of FedDP-KMeans into its public settings."""
    if job.protocol.name != FEDDP or job.budget is None:
        raise ConfigError(f"the protocol must be {FEDDP} to have its settings; got {job.protocol.name}.")
    section = job.feddp or FeddpSection()
    return FeddpSettings(
        clusters=job.k,
        dimensions=len(job.columns),
        budget=job.budget,
        parties=len(job.parties),
        records=job.data.records,
        placement=make_placement(job),
        fixed_point=FixedPoint(job.protocol.fractional_bits),
        variant="published" if job.protocol.variant == "published" else "tight",
        lloyd_steps=section.lloyd_steps,
        options=section.options,
        sample=section.sample,
        knobs=section.knobs,
    ).for_server(server)


def make_feddp_agreement(job: Job, directory: tuple[bytes, ...], server: FloatArray) -> Agreement[FeddpSettings]:
    """Translate a job of FedDP-KMeans into what its roles agree on."""
    return Agreement(
        settings=make_feddp_settings(job, server),
        directory=directory,
        members_min=job.protocol.resolve_min_parties(len(job.parties)),
        max_records=job.data.max_records or MAX_RECORDS,
        ring_bits=job.protocol.ring,
        context=json.dumps([asdict(column) for column in job.columns]),
    )


def _write_notes(settings: FeddpSettings, *, idle: int, ledger: bool) -> tuple[str, ...]:
    """What the reader must know besides; all of it public or released."""
    points = settings.stamp.points
    notes = [
        f"The server's {points:,} points are public and are not protected; they guided where to look for clusters."
    ]
    if settings.variant == "published":
        notes.append(AUTHORS_CODE)
        if ledger:
            notes.append(
                "Ledgers add up in zCDP: they were charged more than this card says, whose rule is privacy loss "
                "distributions."
            )
    if settings.records is not None:
        notes.append(f"The number of records, {settings.records:,}, was declared public by the job: it is not hidden.")
    if settings.sample is not None:
        notes.append(
            f"Each round asked {settings.sample_size} of {settings.parties} parties, a public sample: it saves "
            "traffic, and no privacy is claimed for it."
        )
    elif idle > 0:
        notes.append(f"{idle} of {len(settings.slots)} rounds were not needed and were sent as zeros.")
    return tuple(notes)
