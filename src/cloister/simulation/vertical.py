"""Vertical k-means on the stage: columns of the same records at different parties."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict, replace
from math import ceil, log2

from msgspec.structs import replace as replace_fields

from cloister.errors import ConfigError
from cloister.job import Job
from cloister.job.vertical_roles import VerticalRoles, resolve_vertical
from cloister.privacy.calibration import rho_for
from cloister.privacy.card import PrivacyCard
from cloister.privacy.card_warnings import Circumstances
from cloister.privacy.mechanisms import DiscreteGaussian, Release
from cloister.privacy.placement import Shared
from cloister.privacy.units import Sensitivity
from cloister.privacy.zcdp import epsilon_of_rho
from cloister.protocols.vertical.agreement import VerticalAgreement
from cloister.protocols.vertical.codebook import Codebook
from cloister.protocols.vertical.computing import ComputingParty
from cloister.protocols.vertical.coordinator import coordinate_vertical
from cloister.protocols.vertical.flood import STATISTICAL_BITS, ChargedFlood
from cloister.protocols.vertical.holder import HolderParty
from cloister.protocols.vertical.leakage import describe_leakage
from cloister.protocols.vertical.messages import CODEC
from cloister.protocols.vertical.party import VerticalParty
from cloister.protocols.vertical.pipeline import Finding
from cloister.protocols.vertical.settings import VERTICAL, Settings
from cloister.protocols.vertical_labels.leakage import add_labels, describe_labels
from cloister.report.labels import PartyLabels
from cloister.report.result import CellBook
from cloister.simulation.stage import Played, Stage, find_common_centres
from cloister.simulation.vertical_labels import join_runs, label_records
from cloister.simulation.vertical_tables import VerticalTables
from cloister.simulation_desks import Desks, open_desks

_BITS_LEAST = 4
_EXACT_BITS = 16
_UNITS = 2**26
"""The envelope's sensitivity: any integer will do, its noise follows from it."""


def make_vertical_settings(job: Job, records: int) -> Settings:
    """Translate a vertical job into the algorithm's public settings."""
    if job.protocol.name != VERTICAL:
        raise ConfigError(f"the protocol must be {VERTICAL} to have its settings; got {job.protocol.name}.")
    roles, options = resolve_vertical(job), job.protocol
    return Settings(
        clusters=job.k,
        columns_alice=roles.columns[roles.computing],
        columns_encrypted=tuple(roles.columns[party] for party in roles.encrypted),
        records=records,
        budget=job.budget,
        placement=Shared(parties=1 + roles.threshold, colluding_max=roles.colluding_max),
        start="random" if options.initialisation == "random" else "synopsis",
        rounds=options.iterations,
        cells=options.cells,
        residuals=options.residuals,
        fractional_bits=options.offset_bits,
    )


def find_replacement_epsilon(settings: Settings) -> float | None:
    """Return what changing the values of a record that is known to be there costs; None without a budget."""
    if settings.budget is None:
        return None
    return epsilon_of_rho(settings.replacement_rho + 4 * settings.flood_rho, settings.budget.delta)


def make_vertical_agreement(
    job: Job, directory: tuple[bytes, ...], *, records: int, alignment: str | None
) -> VerticalAgreement:
    """Translate a vertical job into what its roles agree on."""
    roles = resolve_vertical(job)
    context = {"columns": [asdict(column) for column in job.columns], "alignment": alignment}
    settings = make_vertical_settings(job, records)
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
                context=json.dumps(context, sort_keys=True),
            )
        except ConfigError:
            # Joint cells have room for fewer bits; a job that names none gets as many as fit.
            bits = settings.precision_bits - 1
            if job.protocol.offset_bits is not None or len(roles.encrypted) == 1 or bits < _BITS_LEAST:
                raise
            settings = replace(settings, fractional_bits=bits)


def make_envelope(agreement: VerticalAgreement) -> Release:
    """All releases of a session as one payment: they cost no more than the whole budget together."""
    assert agreement.settings.budget is not None
    rho = rho_for(agreement.settings.budget)
    return Release(
        name="vertical: all passes together",
        mechanism=DiscreteGaussian(sigma=_UNITS / (2 * rho) ** 0.5 * (1 + 1e-12)),
        sensitivity=Sensitivity(l1=_UNITS**2, l2_squared=_UNITS**2),
        entries=1,
    )


def play_vertical(stage: Stage) -> Played:
    """Run a vertical job."""
    job, tables = stage.job, stage.vertical
    assert tables is not None
    roles = resolve_vertical(job)
    agreement = make_vertical_agreement(job, stage.directory, records=tables.records, alignment=tables.digest)
    with ExitStack() as stack:
        desks: Desks | None = None
        if job.budget is not None:
            envelope = make_envelope(agreement)
            opened = open_desks(
                job,
                budget=job.budget,
                placement=agreement.settings.placement,
                breaks_if=describe_leakage(agreement).breaks_if,
                tables=tables.parties,
                session=stage.session,
                coordinators_books=None,
                envelope=envelope,
                by_rho=True,
            )
            desks = stack.enter_context(closing(opened))
            desks.pay_ledgers([envelope])
        parties = _seat_parties(stage, agreement, roles, desks)
        for party in parties:
            if isinstance(party, HolderParty):
                stack.callback(party.close)  # also where the session is given up
        run = stage.run(coordinate_vertical(agreement, session=stage.session), parties, CODEC)
        finding = parties[0].finding
        granted = [job.parties[place].name for place in roles.labels]
        card = None if desks is None else _make_card(agreement, desks, finding, granted)
    leakage = describe_leakage(agreement)
    holders = parties[0].codebooks.holders
    labels: tuple[PartyLabels, ...] = ()
    if granted:
        labelled = label_records(stage, reps=[own.reps for own in holders], centres=finding.centres)
        run, labels = join_runs(run, labelled.run), labelled.labels
        leakage = add_labels(leakage, granted)
    return Played(
        run=run,
        centres=find_common_centres(parties),
        rounds=finding.rounds,
        leakage=leakage,
        public="columns and who holds which, bounds, k, the budget, how many records are aligned, the passes and the "
        "lengths of messages",
        breaks_if=leakage.breaks_if,
        ring_bits=None,
        card=card,
        notes=(
            *_write_notes(job, agreement, roles, granted),
            *_list_sizes(agreement, finding),
            *_describe_alignment(tables),
        ),
        middleman="relay",
        cluster_records=() if agreement.settings.is_exact else tuple(finding.weights.tolist()),
        cluster_records_noise=finding.weight_noise or None,
        codebooks=tuple(_write_codebook(job, roles, *held) for held in zip(roles.encrypted, holders, strict=True)),
        labels=labels,
    )


def _seat_parties(
    stage: Stage, agreement: VerticalAgreement, roles: VerticalRoles, desks: Desks | None
) -> list[VerticalParty]:
    assert stage.vertical is not None
    parties: list[VerticalParty] = []
    for place, (table, identity) in enumerate(zip(stage.vertical.parties, stage.identities, strict=True)):
        kind = ComputingParty if place == roles.computing else HolderParty
        parties.append(
            kind(
                number=place + 1,
                agreement=agreement,
                columns=table.points,
                identity=identity,
                entropy=stage.make_entropy(f"party {place + 1}"),
                session=stage.session,
                duty=None if desks is None else desks.of_party(place + 1),
            )
        )
    return parties


def _write_codebook(job: Job, roles: VerticalRoles, party: int, codebook: Codebook) -> CellBook:
    """The cells of one party, for labels of other records."""
    return CellBook(
        columns=tuple(job.columns[column].name for column in roles.columns[party]),
        cells=tuple(tuple(cell) for cell in codebook.reps.tolist()),
    )


def _make_card(agreement: VerticalAgreement, desks: Desks, finding: Finding, granted: Sequence[str]) -> PrivacyCard:
    """The card: what it costs that a record is there at all, and that a record that is there has other values."""
    settings = agreement.settings
    assert settings.budget is not None
    card = desks.make_card(
        Circumstances(
            estimated_records=float(settings.records),
            centre_noise=finding.centre_noise,
            remedy="Raise epsilon, or use fewer clusters or columns or narrower bounds.",
        ),
        middleman="relay",
    )
    replaced = find_replacement_epsilon(settings)
    shares = settings.placement.parties
    return replace_fields(
        card,
        who_adds_noise=f"The computing party under encryption, and each of the {shares - 1} that decrypt."
        if shares > 2
        else "The computing party under encryption, and the key holder after decryption; each adds all of it.",
        not_promised=(
            "All parties know which records take part, from the alignment. For the values of a record that they know "
            f"to be there the promise is weaker: epsilon {replaced:.4g}.",
            *([describe_labels(granted)] if granted else ()),
            *card.not_promised,
        ),
    )


def _list_sizes(agreement: VerticalAgreement, finding: Finding) -> tuple[str, ...]:
    """The clusters' sizes where they are exact; noisy ones stand beside the centres."""
    if not agreement.settings.is_exact:
        return ()
    return (f"Records in each cluster: {', '.join(f'{size:.0f}' for size in finding.weights)}.",)


def _describe_alignment(tables: VerticalTables) -> tuple[str, ...]:
    """Where the common order of records comes from."""
    if tables.aligned is not None:
        return (
            "IDs were aligned privately first: what that told whom is in docs/align.md, and its messages are not in "
            "the traffic.",
        )
    if tables.digest is None:
        return ("Rows were taken to be in the same order at all parties, as the job says; nothing can check that.",)
    return ()


def _write_notes(
    job: Job, agreement: VerticalAgreement, roles: VerticalRoles, granted: Sequence[str]
) -> tuple[str, ...]:
    """What the reader must know besides; all of it public."""
    settings, parameters = agreement.settings, agreement.parameters
    names = [party.name for party in job.parties]
    holders = ", ".join(names[place] for place in roles.key_holders)
    flood = (
        "what its errors tell is in the budget"
        if isinstance(agreement.flood, ChargedFlood)
        else f"its errors are hidden to 2^-{STATISTICAL_BITS} a number, "
        f"2^-{STATISTICAL_BITS - ceil(log2(agreement.answers))} in all"
    )
    notes = [
        f"{names[roles.computing]} computed on ciphertexts; {holders}"
        + (
            " decrypted."
            if agreement.threshold is None
            else f" hold the key, and {agreement.threshold} of them decrypt."
        )
        + f" The number of aligned records, {settings.records:,}, is public; all who hold any know which they are.",
        f"Encrypted columns decide through {settings.joint_cells} cells. Ring {parameters.degree}, modulus of "
        f"{parameters.modulus_bits} bits (128-bit security by the standard's table), plaintexts of "
        f"{parameters.plaintext_modulus.bit_length() - 1} bits; {flood}.",
    ]
    if settings.is_exact:
        notes.append("There is no budget: sums are released as they are, and nothing here is differentially private.")
        rounded = [f"values were rounded to multiples of 2^-{settings.precision_bits} before they were added up"]
        if len(roles.encrypted) > 1:
            rounded.append("encrypted columns counted as the middles of their cells")
        if settings.precision_bits < _EXACT_BITS or len(rounded) > 1:
            notes.append(f"Centres are means of rounded records: {'; '.join(rounded)}.")
        if granted:
            notes.append(describe_labels(granted))
    return tuple(notes)
