"""Alignment: a session of its own, in which parties bring their records into one common order by their IDs.

It runs before a clustering session that needs it, and leaves each party its own `Alignment`; or that is read from the
file that an earlier session left.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cloister.crypto import Identity, make_entropy
from cloister.data.alignment_file import load_alignment
from cloister.data.id_column import read_id_cells
from cloister.errors import ConfigError, LocalProtocolError
from cloister.job import Job, Setup
from cloister.protocols.align import (
    CODEC,
    Alignment,
    AlignmentOutcome,
    AlignParty,
    Mode,
    NormalForm,
    Terms,
    check_alignments,
    check_ids,
    coordinate,
    normalise_ids,
)
from cloister.runtime import LocalRun, run_local
from cloister.runtime.progress import OnProgress
from cloister.sessions.tables import OwnTable, resolve_form


@dataclass(frozen=True, kw_only=True, eq=False)
class Aligned:
    """The parties' alignments, by name; and the session that made them, where one was run."""

    alignments: Mapping[str, Alignment]
    run: LocalRun[AlignmentOutcome] | None = None

    @property
    def digest(self) -> str:
        """Of the alignment, the same at all parties."""
        return next(iter(self.alignments.values())).digest

    @property
    def count(self) -> int:
        """How many records have a place."""
        return next(iter(self.alignments.values())).count


def align_tables(setup: Setup, tables: Mapping[str, OwnTable], on_progress: OnProgress | None = None) -> Aligned | None:
    """Align the records of a job's parties, or read how they were aligned earlier; None where the job names no IDs.

    Raises
    ------
    ConfigError
        If alignments do not fit each other or the tables, or a record that needs one holder has several.
    """
    job = setup.job
    ids = {name: table.ids for name, table in tables.items() if table.ids is not None}
    if not ids:
        return None
    mode = Mode(job.protocol.facts.alignment or Mode.INTERSECTION.value)
    alignments = _load_alignments(setup, ids, {name: table.label for name, table in tables.items()}, mode)
    if alignments is not None:
        return Aligned(alignments=alignments)
    aligned = align_ids(
        ids, mode=mode, form=resolve_form(job), seed=setup.seed, secure=setup.secure, on_progress=on_progress
    )
    if mode is Mode.UNION:
        _require_one_holder(job, ids, aligned)
    return aligned


def align_job(
    setup: Setup,
    id_column: str,
    *,
    mode: Mode = Mode.INTERSECTION,
    form: NormalForm = NormalForm(),  # noqa: B008 (frozen)
    sources: Mapping[str, object] | None = None,
    on_progress: OnProgress | None = None,
) -> Aligned:
    """Align the tables of a job's parties by their ID column, and nothing else; no other column is read.

    Parameters
    ----------
    setup
        Names the parties and their tables; a seed makes the alignment reproducible, and no longer secret.
    id_column
        Its name in every table.
    mode, form
        Which IDs get a place, and what makes two equal.
    sources
        Tables by party name in place of the job's files.
    on_progress
        Told about each step.

    Raises
    ------
    DataError
        If a table cannot be read, or a row has no ID of its own. Nothing has been sent then.
    """
    ids: dict[str, list[bytes]] = {}
    for party in setup.job.parties:
        if not setup.job.find_columns(party):
            continue  # it holds no records
        source = (sources or {}).get(party.name, setup.own_side(party.name).data)
        if source is None:
            raise ConfigError(f"party {party.name!r} must have a table; got none. Give its data in the job.")
        label = f"party {party.name!r} ({source})" if sources is None else f"party {party.name!r}"
        cells = read_id_cells(source, id_column, label=label)
        ids[party.name] = normalise_ids(cells, form, label=label, column=id_column)
    return align_ids(ids, mode=mode, form=form, seed=setup.seed, secure=setup.secure, on_progress=on_progress)


def align_ids(
    ids: Mapping[str, Sequence[bytes]],
    *,
    mode: Mode = Mode.INTERSECTION,
    form: NormalForm = NormalForm(),  # noqa: B008 (frozen)
    seed: int | None = None,
    secure: bool = False,
    on_progress: OnProgress | None = None,
) -> Aligned:
    """Align IDs that are in normal form already; parameters as for :func:`align_job`.

    One thread: the library's group operations hold Python's lock, so that a second thread gains nothing.
    """
    identities = [Identity(make_entropy(f"identity of {name}", seed=seed, secure=secure)) for name in ids]
    terms = Terms(mode=mode, form=form, directory=tuple(identity.public_bytes for identity in identities))
    session = make_entropy("align session", seed=seed, secure=secure).bytes(16)
    parties = [
        AlignParty(
            number=number,
            terms=terms,
            ids=of_party,
            identity=identity,
            entropy=make_entropy(f"align party {name}", seed=seed, secure=secure),
            session=session,
        )
        for number, ((name, of_party), identity) in enumerate(zip(ids.items(), identities, strict=True), start=1)
    ]
    coordinator = coordinate(
        terms, entropy=make_entropy("align coordinator", seed=seed, secure=secure), session=session
    )
    run = run_local(
        coordinator, parties, codec=CODEC, session=session, names=list(ids), on_progress=on_progress, threads=1
    )
    alignments = {name: party.alignment for name, party in zip(ids, parties, strict=True)}
    if len({(alignment.digest, alignment.count) for alignment in alignments.values()}) != 1:
        raise LocalProtocolError("all parties must end with one digest; they do not: this is a bug.")
    return Aligned(alignments=alignments, run=run)


def _load_alignments(
    setup: Setup, ids: Mapping[str, list[bytes]], labels: Mapping[str, str], mode: Mode
) -> Mapping[str, Alignment] | None:
    """Load the files that own sides name and hold them against each other and the tables; None if they name none."""
    files = {name: setup.own_side(name).alignment for name in ids}
    given = {name: path for name, path in files.items() if path is not None}
    if not given:
        return None
    missing = sorted(files.keys() - given.keys())
    if missing:
        raise ConfigError(
            f"an alignment must be given for every party or for none; party {missing[0]!r} has none. "
            "Run: cloister align JOB.TOML --id COLUMN --out FOLDER. It writes one for each."
        )
    alignments = {name: load_alignment(path) for name, path in given.items()}
    check_alignments(alignments, {name: len(of_party) for name, of_party in ids.items()}, mode=mode)
    for name, alignment in alignments.items():
        check_ids(alignment, ids[name], label=labels[name])
    return alignments


def _require_one_holder(job: Job, ids: Mapping[str, list[bytes]], aligned: Aligned) -> None:
    if sum(map(len, ids.values())) != aligned.count:
        raise ConfigError(
            f"every ID in column {job.data.id!r} must be held by one party; some are held by several, and their "
            "records would be added up. Decide who contributes them."
        )
