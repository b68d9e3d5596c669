"""SecFC on the stage: align IDs if membership is to be private, share, cluster, reveal the centres to the clients."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, replace

from msgspec.structs import replace as replace_fields

from cloister.errors import ConfigError, LocalProtocolError, TooFewPartiesError
from cloister.job import Job
from cloister.job.checks import COORDINATOR
from cloister.job.secfc_checks import resolve_code
from cloister.privacy.accounting import Accountant
from cloister.privacy.calibration import calibrate_gaussian
from cloister.privacy.card import PrivacyCard, make_card
from cloister.privacy.card_warnings import Circumstances
from cloister.privacy.mechanisms import DiscreteGaussian
from cloister.privacy.placement import Aggregator
from cloister.privacy.release import NoiseDuty
from cloister.protocols.align import Mode
from cloister.protocol import LeakageTable, Learns
from cloister.protocols.secfc import (
    BREAKS_IF,
    CODEC,
    HOLDERS_BREAK,
    NOISE_PROTECTS,
    Outcome,
    SecfcAgreement,
    SecfcParty,
    coordinate_secfc,
)
from cloister.records import FloatArray, IntArray, Records
from cloister.simulation.alignment import Aligned, align_job
from cloister.simulation.stage import Played, Stage, find_common_centres
from cloister.simulation_desks import make_sampler

ROUNDS = 100
_MOST_SIZES = 40


class _Finisher:
    """A client and the centres that it got."""

    def __init__(self, party: SecfcParty) -> None:
        self._party = party

    @property
    def finished(self) -> bool:
        """Whether it has the result."""
        return self._party.finished

    @property
    def centres(self) -> FloatArray:
        """The revealed centres."""
        centres = self._party.finding.centres
        if centres is None:
            raise LocalProtocolError("the centres must have been revealed to be read; they were not")
        return centres


def make_secfc_agreement(
    job: Job, directory: tuple[bytes, ...], *, records: int, alignment: str | None = None
) -> SecfcAgreement:
    """Translate a job of SecFC into the protocol's public parameters."""
    options = job.protocol
    privacy, segments = resolve_code(options, len(job.parties))
    context = {"columns": [asdict(column) for column in job.columns], "alignment": alignment}
    agreement = SecfcAgreement(
        clusters=job.k,
        dimensions=len(job.columns),
        privacy=privacy,
        segments=segments,
        records_max=records,
        rounds_max=options.iterations or ROUNDS,
        coordinate_bits="auto" if options.coordinate_bits is None else options.coordinate_bits,
        separate_after=options.separate_after,
        reveal_centres=True,
        union=alignment is not None,
        directory=directory,
        context=json.dumps(context, sort_keys=True),
    )
    if job.budget is None:
        return agreement
    unit = replace(agreement, centre_noise=DiscreteGaussian(sigma=1.0)).noise_event
    assert unit is not None
    sigma = calibrate_gaussian(job.budget, unit.sensitivity.l2_squared, 1)
    return replace(agreement, centre_noise=DiscreteGaussian(sigma=sigma))


def find_leakage(agreement: SecfcAgreement) -> LeakageTable:
    """Who learns what in a job: where IDs are aligned first, everyone learns how many each client has."""
    table = agreement.leakage
    if not agreement.union:
        return table
    rows = tuple(replace(row, learns=Learns.EXACT) if row.value == "sizes" else row for row in table.rows)
    return replace(table, rows=rows, breaks_if=f"{table.breaks_if} {HOLDERS_BREAK}")


def play_secfc(stage: Stage) -> Played:
    """Run a job of SecFC."""
    job = stage.job
    aligned = _align(stage)
    counts = [_count_records(table) for table in stage.tables]
    records = sum(counts) if aligned is None else aligned.run.result.count
    if records < job.k:
        raise ConfigError(f"all parties together must hold at least clusters.k = {job.k} records; they hold fewer.")
    if job.data.records is not None and job.data.records < records:
        raise ConfigError(
            f"data.records = {job.data.records} must be at least the number of records, which SecFC makes public; "
            "there are more. Leave it out."
        )
    digest = None if aligned is None else next(iter(aligned.alignments.values())).digest
    cap = records if aligned is not None else max(records, job.data.records or 0)  # a union has its size, exactly
    agreement = make_secfc_agreement(job, stage.directory, records=cap, alignment=digest)
    parties = [
        SecfcParty(
            number=number,
            agreement=agreement,
            records=table,
            identity=identity,
            entropy=stage.make_entropy(f"party {number}"),
            session=stage.session,
            positions=positions,
        )
        for number, (table, identity, positions) in enumerate(
            zip(stage.tables, stage.identities, _list_positions(job, aligned), strict=True), start=1
        )
    ]
    accountant = None if job.budget is None else Accountant(job.budget)
    sampler = make_sampler(job, COORDINATOR)
    coordinator = coordinate_secfc(
        agreement,
        entropy=stage.make_entropy(COORDINATOR),
        session=stage.session,
        duty=None if accountant is None else NoiseDuty(charger=accountant, sampler=sampler),
    )
    run = stage.run(coordinator, parties, CODEC)
    outcome: Outcome = run.result
    if not outcome.revealed:
        raise TooFewPartiesError(
            f"at least {agreement.code.holders} clients must be left to reveal the centres; fewer were. "
            "Run the job again."
        )
    leakage = find_leakage(agreement)
    return Played(
        run=run,
        centres=find_common_centres([_Finisher(party) for party in parties]),
        rounds=outcome.rounds,
        leakage=leakage,
        public="columns, bounds, k, how many records there are, who takes part and who missed which round",
        breaks_if=leakage.breaks_if,
        ring_bits=None,
        fractional_bits=agreement.bits - 1,
        card=None if accountant is None else _make_card(job, accountant, seeded=sampler.is_simulation),
        notes=_write_notes(agreement, outcome, aligned),
    )


def _make_card(job: Job, accountant: Accountant, *, seeded: bool) -> PrivacyCard:
    """What noise on the centres protects, which is less than a differentially private result does."""
    assert job.budget is not None
    card = make_card(
        accountant.spent(),
        budget=job.budget,
        placement=Aggregator(),
        breaks_if=BREAKS_IF,
        is_simulation=seeded,
        circumstances=Circumstances(parties_in_sum=len(job.parties)),
    )
    return replace_fields(
        card,
        private=False,
        neighbours="one record's value replaced by another that leaves the labels of all rounds as they are",
        protects_against="Nobody is protected beyond what is said above.",
        who_adds_noise="The coordinator codes the noise as records are coded; up to t clients learn nothing of it.",
        scope=NOISE_PROTECTS,
    )


def _align(stage: Stage) -> Aligned | None:
    """Align by the job's ID column, if it has one; every record must have one holder."""
    if stage.job.data.id is None:
        return None
    aligned = align_job(
        stage.job, stage.job.data.id, mode=Mode.UNION, sources=stage.sources, on_progress=stage.on_progress
    )
    outcome = aligned.run.result
    if sum(outcome.sizes) != outcome.count:
        raise ConfigError(
            f"every ID in column {stage.job.data.id!r} must be held by one party; some are held by several, and their "
            "records would be added up. Decide who contributes them."
        )
    return aligned


def _list_positions(job: Job, aligned: Aligned | None) -> Sequence[IntArray | None]:
    if aligned is None:
        return [None] * len(job.parties)
    return [aligned.alignments[party.name].places for party in job.parties]


def _count_records(table: Records) -> int:
    return sum(len(batch) for batch in table.batches())


def _write_notes(agreement: SecfcAgreement, outcome: Outcome, aligned: Aligned | None) -> tuple[str, ...]:
    spare = agreement.parties - agreement.code.replies
    sizes = ", ".join(f"{count:,}" for count in outcome.counts[:_MOST_SIZES])
    exact = "Labels and centres are" if agreement.centre_noise is None else "Labels are"
    notes = [
        f"{exact} exact for records rounded to {agreement.bits} bits a coordinate: nothing here is differentially "
        "private as a whole.",
        f"Records in each cluster: {sizes}{' ...' if len(outcome.counts) > _MOST_SIZES else ''}.",
        f"Up to {agreement.privacy} of {agreement.parties} clients together learn nothing of the others' records from "
        f"their shares; {spare} may be silent in a round.",
    ]
    if (outcome.counts == 1).any():
        notes.append("A cluster has one record: its centre is that record, and all clients have learned it.")
    if not outcome.converged:
        notes.append(f"Assignments still changed after {outcome.rounds} rounds: raise iterations.")
    if aligned is not None:
        notes.append(
            "Who holds which record is hidden: IDs were aligned privately first. Its messages are not in the traffic."
        )
    return tuple(notes)
