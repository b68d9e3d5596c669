"""The course of a run between organisations: which sessions it has, who is in each, and what everyone knows before it.

A run aligns records first, if the job names their IDs and nobody has brought an alignment; then it clusters; then it
distributes labels, if the job grants any. Each is a session with an ID of its own, and all use one connection.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from cloister.credentials import derive_session
from cloister.crypto import make_entropy
from cloister.job import Job
from cloister.protocol import PublicInput
from cloister.protocols.align.terms import Mode, Terms
from cloister.runtime.remote.messages import RUN_BYTES, Facts
from cloister.sessions.tables import resolve_form

ALIGNMENT, CLUSTERING, LABELS = "alignment", "clustering", "labels"
_SEEDED = {ALIGNMENT: "align session", CLUSTERING: "session", LABELS: "session for labels"}  # as in a simulation


def is_kind(kind: str) -> bool:
    """Whether this is a kind of session that a run may have."""
    return kind in _SEEDED


def make_session_id(kind: str, *, run: bytes, seed: int | None) -> bytes:
    """Return the ID of one of a run's sessions; from a seed, the same as in a simulation."""
    if seed is not None:
        return make_entropy(_SEEDED[kind], seed=seed).bytes(RUN_BYTES)
    return derive_session(run, kind)


def list_members(job: Job, kind: str) -> tuple[str, ...]:
    """Return who is in a session, in the order of their numbers in it: to align, only those who hold records."""
    return tuple(party.name for party in job.parties if kind != ALIGNMENT or job.find_columns(party))


def needs_alignment(job: Job, facts: Iterable[Facts]) -> bool:
    """Whether records must be aligned first: the job names IDs, and the parties have brought no alignment."""
    return job.data.id is not None and all(one.alignment is None for one in facts)


def make_terms(job: Job, directory: Sequence[bytes]) -> Terms:
    """Return what is agreed on for an alignment."""
    mode = Mode(job.protocol.facts.alignment or Mode.INTERSECTION.value)
    return Terms(mode=mode, form=resolve_form(job), directory=tuple(directory))


def merge_facts(job: Job, facts: Sequence[Facts]) -> Facts | None:
    """Return what all holders of records say; None if they disagree."""
    merged = set(facts)
    if len(merged) > 1:
        return None
    said = merged.pop() if merged else Facts()
    if said.records is None and job.protocol.facts.split == "columns":
        return Facts(records=job.data.records, alignment=said.alignment)
    return said


def add_facts(public: PublicInput, facts: Facts) -> PublicInput:
    """Add what everyone knows of the records."""
    return replace(public, records=facts.records, alignment=facts.alignment)
