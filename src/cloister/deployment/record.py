"""The coordinator's record of a run: who took part, when, what passed. It has no result, and nothing of anyone's table.

Consents and confirmations are the parties' signatures, so that the coordinator can show who agreed to what; what each
party can prove is in its own result.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import msgspec
from msgspec import Struct

from cloister.crypto import write_fingerprint
from cloister.deployment.coordinator_run import CoordinatorRun
from cloister.errors import ConfigError
from cloister.privacy.ledger.schema import sync_folder
from cloister.runtime.remote.tls import TRANSPORT

VERSION = 1


class LinkTraffic(Struct, frozen=True, kw_only=True):
    """What one party's connection carried in one session: frames, since the coordinator was last started."""

    party: str
    bytes_sent: int
    bytes_received: int
    rounds_missed: int


class SessionPart(Struct, frozen=True, kw_only=True):
    """One session of the run; ``seconds`` since the coordinator was last started, whole ones, as in its log."""

    kind: str
    session: str
    steps: int
    seconds: int
    traffic: tuple[LinkTraffic, ...]


class PartyPart(Struct, frozen=True, kw_only=True):
    """One party: its version of Cloister, the signature of its consent, and whether it had left by the end."""

    name: str
    identity: str
    cloister_version: str
    consent: str
    left: bool


class RunRecord(Struct, frozen=True, kw_only=True):
    """A run that ended well."""

    cloister_run: int = VERSION
    job: str
    digest: str
    run: str
    transport: str
    began: str
    ended: str
    parties: tuple[PartyPart, ...]
    sessions: tuple[SessionPart, ...]


def describe_run(course: CoordinatorRun) -> RunRecord:
    """Return the record of a run."""
    left = course.hub.left
    return RunRecord(
        job=course.setup.job.name,
        digest=course.agreed.job.hex(),
        run=course.run.hex(),
        transport=TRANSPORT,
        began=course.began,
        ended=course.ended,
        parties=tuple(
            PartyPart(
                name=one.party,
                identity=write_fingerprint(course.agreed.parties[one.party]),
                cloister_version=one.program,
                consent=one.signature.hex(),
                left=one.party in left,
            )
            for one in course.consents
        ),
        sessions=tuple(
            SessionPart(
                kind=one.kind,
                session=one.session.hex(),
                steps=one.run.steps,
                seconds=int(one.seconds),
                traffic=tuple(
                    LinkTraffic(
                        party=one.members[number - 1],
                        bytes_sent=passed.bytes_sent,
                        bytes_received=passed.bytes_received,
                        rounds_missed=passed.steps_missed,
                    )
                    for number, passed in one.run.traffic.items()
                ),
            )
            for one in course.sessions
        ),
    )


def check_record_place(path: Path, *, goes_on: bool) -> None:
    """Refuse a place where a record cannot be written; called before the run.

    Parameters
    ----------
    path
        The file.
    goes_on
        Whether a run goes on that had begun: the record there may be its own. A new run replaces no record: it holds
        what the parties of an earlier run agreed to, and may be of the run that was just to be gone on with.
    """
    try:
        with tempfile.TemporaryFile(dir=path.parent or Path()):
            pass
    except OSError as error:
        raise _describe(path, error) from None
    if path.is_dir():
        raise ConfigError(f"the record must go to a file; {path} is a folder. Choose another place with --record.")
    if path.exists() and not goes_on:
        raise ConfigError(
            f"the record of a run must go to a new file; {path} is there, so an earlier run is over. To run the job "
            "again, move it, or choose another place with --record."
        )


def write_record(record: RunRecord, path: Path) -> None:
    """Write a record, whole or not at all, in place of an earlier one; it is on the disk when this returns."""
    try:
        handle, fresh = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(msgspec.json.format(msgspec.json.encode(record), indent=2) + b"\n")
                file.flush()
                os.fsync(file.fileno())
            Path(fresh).replace(path)
            sync_folder(path.parent)
        finally:
            Path(fresh).unlink(missing_ok=True)
    except OSError as error:
        raise _describe(path, error) from None


def _describe(path: Path, error: OSError) -> ConfigError:
    reason = error.strerror or type(error).__name__
    return ConfigError(f"the record must go to a writable place; got {path}: {reason}. Choose another with --record.")
