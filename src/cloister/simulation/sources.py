"""Where the tables of a job's parties come from: what the caller passed in, or the job's files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from cloister.errors import ConfigError
from cloister.job import Job, JobParty
from cloister.job.feddp_checks import SERVER
from cloister.protocols.feddp.settings import FEDDP


@dataclass(frozen=True, kw_only=True, eq=False)
class TableSource:
    """What a party's table is read from, and what messages call it."""

    source: object
    label: str


def check_source_names(job: Job, sources: Mapping[str, object]) -> None:
    """Refuse tables for parties that the job does not have: a misspelled name would silently read a file."""
    named = {party.name for party in job.parties} | ({SERVER} if job.protocol.name == FEDDP else set())
    unknown = sorted(set(sources) - named)
    if unknown:
        raise ConfigError(f"sources must be named after the job's parties; got {unknown[0]!r}, which is none of them.")


def find_source(job: Job, party: JobParty, sources: Mapping[str, object]) -> TableSource:
    """Return a party's table: the one passed in, or the job's file."""
    source = sources.get(party.name, job.find_data(party))
    if source is None:
        raise ConfigError(
            f"party {party.name!r} must have a table; got none. Give its data in the job, or pass it in sources."
        )
    where = f" ({source})" if isinstance(source, str | Path) else ""
    return TableSource(source=source, label=f"party {party.name!r}{where}")
