"""What one participant keeps on disk during a run, so that it goes on after a kill: a folder of journals.

::

    JOB-ROLE/run           the run's ID; then what began, who confirmed, what ended, in order
    JOB-ROLE/alignment     the journal of the role in each session (`cloister.runtime.resuming`)
    JOB-ROLE/clustering
    JOB-ROLE/labels

All are sealed under a key of their owner, and wiped at the end of the run. One process has them at a time.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from cloister.crypto import derive_key
from cloister.errors import JournalError
from cloister.privacy.ledger.schema import make_folder
from cloister.runtime.journal import Journal
from cloister.runtime.remote.messages import RUN_BYTES, Done, Finish, RunId, Start
from cloister.runtime.resuming import Memory

_RUN = "run"


class Begun(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=0):
    """A run began; entries of another version are refused."""

    version: Literal[1]
    run: RunId
    created: Annotated[str, Meta(max_length=40)]


class Started(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=1):
    """A session of it began."""

    start: Start


class Confirmed(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=2):
    """At the coordinator: a party confirmed the end of a session."""

    party: str
    done: Done


class Finished(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=3):
    """At a party: a session ended."""

    finish: Finish


Entry = Begun | Started | Confirmed | Finished


class RunFiles:
    """The journals of one participant in one run.

    Parameters
    ----------
    folder
        Where journals are.
    key
        Known to their owner only.
    job
        The job's digest.
    role
        The party's name, or the coordinator's.
    anew
        Give up an earlier run, unread.

    Attributes
    ----------
    recovered
        What an earlier process wrote down; empty if there was none.

    Raises
    ------
    JournalError
        If they are damaged, of another owner, or in use by another process.
    """

    def __init__(self, folder: Path, *, key: bytes, job: bytes, role: str, anew: bool = False) -> None:
        self.folder = _find_folder(folder, job, role)
        self._key, self._memories = key, dict[str, Memory]()
        make_folder(self.folder)
        session = derive_key(job, "run of a role", role)[:RUN_BYTES]
        self._journal = Journal(self.folder / _RUN, key=key, session=session, anew=anew)
        self.recovered = [self._read(entry) for entry in self._journal.recovered]
        if not self.recovered:
            self._clear()  # what is left of a run that was being wiped
        if self.recovered and not isinstance(self.recovered[0], Begun):
            raise self._refuse()

    @staticmethod
    def exist(folder: Path, *, job: bytes, role: str) -> bool:
        """Whether there are journals of a run; nothing is opened."""
        return (_find_folder(folder, job, role) / _RUN).exists()

    @property
    def run(self) -> Begun | None:
        """The run that these are of."""
        first = self.recovered[0] if self.recovered else None
        return first if isinstance(first, Begun) else None

    def write(self, *entries: Entry) -> None:
        """Write down what happened; it is on the disk when this returns."""
        self._journal.append(*map(msgspec.msgpack.encode, entries))

    def open_memory(self, kind: str, session: bytes) -> Memory:
        """Open the journal of the role in one session."""
        self._memories[kind] = Memory(self.folder / kind, key=self._key, session=session)
        return self._memories[kind]

    def close(self) -> None:
        """Keep all: the participant may come back."""
        for memory in self._memories.values():
            memory.close()
        self._memories.clear()
        self._journal.close()

    def wipe(self) -> None:
        """Delete all: the run is over for this participant. Its own journal goes first: without it, there is no run."""
        self._journal.wipe()
        for memory in self._memories.values():
            memory.wipe()
        self._memories.clear()
        self._clear()
        with suppress(OSError):
            self.folder.rmdir()

    def _clear(self) -> None:
        for rest in self.folder.iterdir():
            if rest.name != _RUN:
                rest.unlink()

    def _read(self, entry: bytes) -> Any:
        try:
            return msgspec.msgpack.decode(entry, type=Entry)
        except msgspec.MsgspecError:
            raise self._refuse() from None

    def _refuse(self) -> JournalError:
        return JournalError(
            f"{self.folder}: journals of a run must be of version 1; these are not. Finish the run with the version of "
            "Cloister that began it, or give it up with --anew."
        )


def _find_folder(folder: Path, job: bytes, role: str) -> Path:
    return folder / f"{job.hex()[:16]}-{role}"
