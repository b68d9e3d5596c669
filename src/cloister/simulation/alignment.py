"""An alignment in one process: every party's role on its own ID column, the coordinator's role, real messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cloister.crypto import Identity, make_entropy
from cloister.data.id_column import read_id_cells
from cloister.errors import LocalProtocolError
from cloister.job import Job
from cloister.protocols.align import (
    CODEC,
    Alignment,
    AlignmentOutcome,
    AlignParty,
    Mode,
    NormalForm,
    Terms,
    coordinate,
    normalise_ids,
)
from cloister.runtime import LocalRun, run_local
from cloister.runtime.local import OnProgress
from cloister.simulation.sources import find_source


@dataclass(frozen=True, kw_only=True, eq=False)
class Aligned:
    """A simulated alignment: what each party has, by name, and what the session took."""

    alignments: Mapping[str, Alignment]
    run: LocalRun[AlignmentOutcome]


def align_job(
    job: Job,
    id_column: str,
    *,
    mode: Mode = Mode.INTERSECTION,
    form: NormalForm = NormalForm(),  # noqa: B008 (frozen)
    sources: Mapping[str, object] | None = None,
    on_progress: OnProgress | None = None,
) -> Aligned:
    """Align the tables of a job's parties by their ID column.

    Parameters
    ----------
    job
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
    for party in job.parties:
        if party.columns == ():
            continue  # of a vertical job: it holds no records
        found = find_source(job, party, sources or {})
        cells = read_id_cells(found.source, id_column, label=found.label)
        ids[party.name] = normalise_ids(cells, form, label=found.label, column=id_column)
    return align_ids(ids, mode=mode, form=form, seed=job.seed, secure=job.secure, on_progress=on_progress)


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
