"""Alignment: a session of its own, in which parties put their records into one common order by ID.

It runs before a clustering session that needs it and gives each party its own `Alignment`. An `Alignment` can also be
read from the file that an earlier session wrote.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cloister.crypto import Identity, make_entropy
from cloister.data import read_ids
from cloister.errors import ConfigError, LocalProtocolError, told_to_owner
from cloister.job import Job, JobParty, Setup
from cloister.protocols.align.alignment import (
    Alignment,
    check_alignments,
    check_ids,
    decode_alignment,
    encode_alignment,
)
from cloister.protocols.align.coordinator import AlignmentOutcome, coordinate
from cloister.protocols.align.identifiers import normalise_ids
from cloister.protocols.align.party import AlignParty
from cloister.protocols.align.terms import CODEC, Mode, NormalForm, Terms
from cloister.runtime import LocalRun, OnProgress, run_local
from cloister.sessions.instruments import Instruments
from cloister.sessions.tables import OwnTable, find_source, open_source, resolve_form

_MAX_FILE_BYTES = 2**30


@dataclass(frozen=True, kw_only=True, eq=False)
class Aligned:
    """The parties' alignments, by name, and the session that made them, if one was run."""

    alignments: Mapping[str, Alignment]
    run: LocalRun[AlignmentOutcome] | None = None

    @property
    def digest(self) -> str:
        """The digest of the alignment, the same for all parties."""
        return next(iter(self.alignments.values())).digest

    @property
    def count(self) -> int:
        """The number of records that have a place."""
        return next(iter(self.alignments.values())).count


def align_tables(
    setup: Setup, tables: Mapping[str, OwnTable], instruments: Instruments, on_progress: OnProgress | None = None
) -> Aligned | None:
    """Align the records of a job's parties, or read how they were aligned earlier; None if the job names no IDs.

    Raises
    ------
    ConfigError
        If alignments fit neither each other nor the tables, or if a record that needs one holder has several.
    """
    job = setup.job
    ids = {name: table.ids for name, table in tables.items() if table.ids is not None}
    if not ids:
        return None
    mode = Mode(job.protocol.facts.alignment or Mode.INTERSECTION.value)
    aligned = _load_alignments(setup, ids, {name: table.label for name, table in tables.items()}, mode)
    if aligned is None:
        aligned = align_ids(
            ids,
            mode=mode,
            form=resolve_form(job),
            seed=instruments.keys,
            secure=setup.secure,
            record_frames=instruments.record_frames,
            on_progress=on_progress,
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
    """Align the tables of a job's parties by their ID column. No other is read, unless missing = "drop".

    Parameters
    ----------
    setup
        Names the parties and their tables. A seed makes the alignment reproducible, but no longer secret.
    id_column
        The name of the ID column in every table.
    mode, form
        Which IDs get a place, and when two IDs are equal.
    sources
        Tables by party name, in place of the job's files.
    on_progress
        Told about each step.

    Raises
    ------
    AbsentError
        If a table cannot be read, or a row has no ID of its own; its owner alone is told why. Nothing has been sent by
        then.
    """
    ids: dict[str, list[bytes]] = {}
    for party in setup.job.parties:
        if not setup.job.find_columns(party):
            continue  # it holds no records
        _, label = find_source(setup, party, sources or {})
        with told_to_owner(party.name):
            cells = _read_ids(setup, party, sources or {}, id_column)
            ids[party.name] = normalise_ids(cells, form, label=label, column=id_column)
    return align_ids(ids, mode=mode, form=form, seed=setup.seed, secure=setup.secure, on_progress=on_progress)


def _read_ids(setup: Setup, party: JobParty, sources: Mapping[str, object], id_column: str) -> list[object]:
    """Return the IDs of one party's records, but for those that the job leaves out because cells are missing."""
    if setup.job.data.missing == "drop":
        return open_source(setup, party, sources, id_column=id_column)[0].id_cells or []
    source, label = find_source(setup, party, sources)
    separator = None if party.name in sources else setup.own_side(party.name).separator
    return read_ids(source, id_column, separator=separator, label=label)


def align_ids(
    ids: Mapping[str, Sequence[bytes]],
    *,
    mode: Mode = Mode.INTERSECTION,
    form: NormalForm = NormalForm(),  # noqa: B008 (frozen)
    seed: int | bytes | None = None,
    secure: bool = False,
    record_frames: bool = False,
    on_progress: OnProgress | None = None,
) -> Aligned:
    """Align IDs that are already in normal form; parameters as for :func:`align_job`.

    It runs in one thread: the library's group operations hold Python's lock, so a second thread gains nothing.
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
        coordinator,
        parties,
        codec=CODEC,
        session=session,
        names=list(ids),
        record_frames=record_frames,
        on_progress=on_progress,
        threads=1,
    )
    alignments = {name: party.alignment for name, party in zip(ids, parties, strict=True)}
    if len({(alignment.digest, alignment.count) for alignment in alignments.values()}) != 1:
        raise LocalProtocolError("all parties must end with the same digest; they do not: this is a bug.")
    return Aligned(alignments=alignments, run=run)


def _load_alignments(
    setup: Setup, ids: Mapping[str, list[bytes]], labels: Mapping[str, str], mode: Mode
) -> Aligned | None:
    """Load the alignments that own sides name and check them against each other and the tables; None without any."""
    files = {name: path for name in ids if (path := setup.own_side(name).alignment) is not None}
    if not files:
        return None
    alignments = {}
    for name, path in files.items():
        with told_to_owner(name):
            alignments[name] = load_alignment(path)
    check_alignments(alignments, {name: len(of_party) for name, of_party in ids.items()}, mode=mode)
    for name, alignment in alignments.items():
        with told_to_owner(name):
            check_ids(alignment, ids[name], label=labels[name])
    return Aligned(alignments=alignments)


def _require_one_holder(job: Job, ids: Mapping[str, list[bytes]], aligned: Aligned) -> None:
    if sum(map(len, ids.values())) != aligned.count:
        raise ConfigError(
            f"every ID in column {job.data.id!r} must be held by exactly one party; some are held by several, so their "
            "records would be counted repeatedly. Decide who contributes them."
        )


def load_alignment(path: str | Path) -> Alignment:
    """Read one party's alignment.

    Raises
    ------
    ConfigError
        If the file cannot be read or is not an alignment.
    """
    path = Path(path)
    try:
        with path.open("rb") as file:
            raw = file.read(_MAX_FILE_BYTES + 1)
    except OSError as error:
        raise ConfigError(
            f"the alignment must be a readable file; got {path}: {error.strerror or type(error).__name__}. "
            "'cloister align' writes one for each party."
        ) from None
    if len(raw) > _MAX_FILE_BYTES:
        raise ConfigError(f"an alignment must have at most {_MAX_FILE_BYTES} bytes; {path} has more. Is it a table?")
    return decode_alignment(raw, str(path))


def save_alignment(alignment: Alignment, path: str | Path, *, overwrite: bool = False) -> None:
    """Write one party's alignment to a file that only its owner may read.

    Raises
    ------
    ConfigError
        If the file exists and may not be replaced, or if it cannot be written.
    """
    path = Path(path)
    if path.exists() and not overwrite:
        raise ConfigError(f"an alignment must go to a new file; {path} exists. Choose another place, or --overwrite.")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, fresh = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)  # readable by its owner only
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(encode_alignment(alignment))
            Path(fresh).replace(path)
        finally:
            Path(fresh).unlink(missing_ok=True)
    except OSError as error:
        raise ConfigError(
            f"the alignment must go to a writable place; got {path}: "
            f"{error.strerror or type(error).__name__}. Choose another place."
        ) from None
