"""The ledger's file: SQLite that only grows, and whose commits are on the disk before they return.

Write-ahead logging with ``synchronous = FULL``: a commit waits for fsync, so what was acknowledged survives a kill and
a power cut. ``BEGIN IMMEDIATE`` takes the one write lock before anything is read, so what a charge reads is what it is
added to. Triggers refuse UPDATE, DELETE and an INSERT anywhere but at the end. They stop mistakes, not someone who
means to edit the file; the chain shows such edits.

The stored form of an entry is its JSON text. Its chain value is SHA-256 of the chain value before it (64 hexadecimal
digits) followed by that text, so whoever knows the last chain value, the head, notices any change to any entry.

One connection serves all threads of a process, under a lock. A forked child never touches its parent's connection
(SQLite forbids it) and opens its own.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sqlite3
import stat
import tempfile
import threading
import time
import weakref
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from cloister.crypto import SystemEntropy
from cloister.errors import LedgerError
from cloister.privacy.ledger.account import Cap, Charge, Entry

SCHEMA_VERSION = 1
_APPLICATION_ID = 0x434C4C47  # "CLLG": the file says what it is
_SALT_BYTES = 32
_BUSY_TIMEOUT_S = 30.0
_CREATION_WAITS, _CREATION_WAIT_S = 100, 0.02
_SCHEMA = f"""
CREATE TABLE ledger (only_row INTEGER PRIMARY KEY CHECK (only_row = 1), created TEXT NOT NULL, salt BLOB NOT NULL);
CREATE TABLE entry (number INTEGER PRIMARY KEY, text TEXT NOT NULL, chain TEXT NOT NULL);
CREATE TRIGGER entry_grows BEFORE INSERT ON entry
  WHEN NEW.number <> (SELECT coalesce(max(number), 0) + 1 FROM entry)
  BEGIN SELECT RAISE(ABORT, 'a ledger entry goes to the end'); END;
CREATE TRIGGER entry_stays BEFORE UPDATE ON entry BEGIN SELECT RAISE(ABORT, 'a ledger entry never changes'); END;
CREATE TRIGGER entry_remains BEFORE DELETE ON entry BEGIN SELECT RAISE(ABORT, 'a ledger entry is never deleted'); END;
CREATE TRIGGER ledger_stays BEFORE UPDATE ON ledger BEGIN SELECT RAISE(ABORT, 'a ledger never changes'); END;
CREATE TRIGGER ledger_remains BEFORE DELETE ON ledger BEGIN SELECT RAISE(ABORT, 'a ledger is never deleted'); END;
PRAGMA application_id = {_APPLICATION_ID};
PRAGMA user_version = {SCHEMA_VERSION};
"""

_open_stores: weakref.WeakSet[LedgerStore] = weakref.WeakSet()
_parents_connections: list[sqlite3.Connection] = []  # kept so that a child does not close them
_DECODER: msgspec.json.Decoder[Entry] = msgspec.json.Decoder(Charge | Cap)
_ENCODER = msgspec.json.Encoder()


@dataclass(frozen=True, kw_only=True)
class StoredEntry:
    """An entry where it stands: its number from 1, its exact text, and its chain value."""

    number: int
    text: str
    chain: str

    @property
    def entry(self) -> Entry:
        """The entry that the text says."""
        try:
            return _DECODER.decode(self.text)
        except msgspec.DecodeError as error:
            raise LedgerError(f"ledger entry {self.number} must be a charge or a cap; got {error}.") from None


@dataclass(frozen=True, kw_only=True)
class Head:
    """The end of a chain: how many entries there are, and the last chain value."""

    number: int
    chain: str

    def follow(self, stored: StoredEntry) -> Head:
        """Return the head after an entry, or raise if the entry does not continue the chain."""
        if stored.number != self.number + 1 or stored.chain != link(self.chain, stored.text):
            raise LedgerError(
                f"each ledger entry must carry the hash of those before it; entry {stored.number} does not follow "
                f"entry {self.number}. The file was edited or damaged: restore a copy."
            )
        return Head(number=stored.number, chain=stored.chain)


def link(chain: str, text: str) -> str:
    """Return the chain value of an entry that follows ``chain``."""
    return hashlib.sha256(f"{chain}{text}".encode()).hexdigest()


def chain_entries(head: Head, entries: list[Charge] | list[Cap]) -> Iterator[StoredEntry]:
    """Put new entries behind a head."""
    for entry in entries:
        text = _ENCODER.encode(entry).decode()
        head = Head(number=head.number + 1, chain=link(head.chain, text))
        yield StoredEntry(number=head.number, text=text, chain=head.chain)


def create_ledger(path: Path, *, created: str) -> None:
    """Make an empty ledger at ``path``, unless another process was first; a half-made one is never seen there."""
    if not path.parent.is_dir():
        raise LedgerError(f"a ledger's folder must exist; there is no {path.parent}. Make it, or check the path.")
    try:
        with tempfile.TemporaryDirectory(prefix=f".{path.name}-", dir=path.parent) as workshop:
            fresh = Path(workshop, "fresh")
            fresh.touch(mode=0o600)  # it holds the salt
            with contextlib.closing(sqlite3.connect(fresh, isolation_level=None)) as connection:
                connection.execute("PRAGMA journal_mode = WAL")  # stays with the file
                connection.executescript(_SCHEMA)
                salt = SystemEntropy().bytes(_SALT_BYTES)
                connection.execute("INSERT INTO ledger VALUES (1, ?, ?)", (created, salt))
            with contextlib.suppress(FileExistsError):
                os.link(fresh, path)
        _sync_folder(path.parent)
    except (OSError, sqlite3.Error) as error:
        raise _unusable(path, error) from None


class LedgerStore:
    """The open file; knows rows and hashes, and nothing of costs."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._file_id: tuple[int, int] | None = None
        _open_stores.add(self)
        with self.transaction(write=False) as transaction:
            self.created, self.salt = transaction.read_origin()
        # Bound to the salt, so entries of another ledger do not fit; and says nothing about it.
        self.start = Head(number=0, chain=hashlib.sha256(b"cloister ledger 1" + self.salt).hexdigest())

    def __del__(self) -> None:
        if self._connection is not None:
            self._connection.close()

    def leave_to_parent(self) -> None:
        """In a forked child: a connection belongs to the process that opened it, and its lock may be held for ever."""
        if self._connection is not None:
            _parents_connections.append(self._connection)
            self._connection = None
        self._lock = threading.Lock()

    def close(self) -> None:
        """Close the connection; the next use opens another."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    @contextlib.contextmanager
    def transaction(self, *, write: bool) -> Iterator[Transaction]:
        """Read one state of the file and, with ``write``, hold the one write lock; commit unless an error is raised."""
        with self._lock:
            try:
                connection = self._connect()
                connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")
                try:
                    yield Transaction(connection)
                    connection.execute("COMMIT")
                finally:
                    if connection.in_transaction:
                        connection.execute("ROLLBACK")
            except sqlite3.Error as error:
                raise _unusable(self._path, error) from None

    def _connect(self) -> sqlite3.Connection:
        """Return the connection to the file that is at the path now."""
        try:
            status = self._path.stat()
        except OSError as error:
            raise _unusable(self._path, error) from None
        if stat.S_ISREG(status.st_mode) and status.st_nlink > 1:
            status = self._await_single_name()
        file_id = (status.st_dev, status.st_ino)
        if self._file_id not in (None, file_id):
            raise LedgerError(f"{self._path} must stay the same file while it is in use; it was replaced. Start again.")
        if self._connection is None:
            self._connection = _open_connection(self._path)
            self._file_id = file_id
        return self._connection

    def _await_single_name(self) -> os.stat_result:
        """Refuse a file with two names: each would have a log of its own, and charges would be lost.

        While another process makes the ledger the file has two names for a moment.
        """
        for _ in range(_CREATION_WAITS):
            status = self._path.stat()
            if status.st_nlink <= 1:
                return status
            time.sleep(_CREATION_WAIT_S)
        raise LedgerError(f"{self._path} must have one name; it has hard links. Remove the others, and use one path.")


class Transaction:
    """Reads and appends inside one transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def read_origin(self) -> tuple[str, bytes]:
        """Return when the ledger was made, and its salt."""
        row = self._connection.execute("SELECT created, salt FROM ledger").fetchone()
        if row is None:
            raise sqlite3.DatabaseError("no salt")
        return str(row[0]), bytes(row[1])

    def chain_at(self, number: int) -> str | None:
        """Return the chain value of an entry, None if there is no such entry."""
        row = self._connection.execute("SELECT chain FROM entry WHERE number = ?", (number,)).fetchone()
        return None if row is None else str(row[0])

    def entries_after(self, number: int) -> Iterator[StoredEntry]:
        """Yield the entries behind ``number``, in order."""
        rows = self._connection.execute(
            "SELECT number, text, chain FROM entry WHERE number > ? ORDER BY number", (number,)
        )
        return (StoredEntry(number=row[0], text=row[1], chain=row[2]) for row in rows)

    def append(self, entries: Iterable[StoredEntry]) -> None:
        """Add entries at the end."""
        rows = ((entry.number, entry.text, entry.chain) for entry in entries)
        self._connection.executemany("INSERT INTO entry VALUES (?, ?, ?)", rows)

    def check_pages(self) -> None:
        """Let SQLite check its own structure, for damage that a read of the entries would not meet."""
        (verdict,) = self._connection.execute("PRAGMA quick_check(1)").fetchone()
        if verdict != "ok":
            raise sqlite3.DatabaseError(verdict)


def _open_connection(path: Path) -> sqlite3.Connection:
    """Open an existing ledger; SQLite must not create one."""
    try:
        connection = sqlite3.connect(
            f"{path.as_uri()}?mode=rw", uri=True, timeout=_BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False
        )
    except sqlite3.Error as error:
        raise _unusable(path, error) from None
    try:
        application_id = connection.execute("PRAGMA application_id").fetchone()[0]
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if application_id != _APPLICATION_ID:
            raise LedgerError(f"{path} must be a ledger; got another SQLite file, or an empty one. Check the path.")
        if version != SCHEMA_VERSION:
            raise LedgerError(f"{path} must have schema {SCHEMA_VERSION}; got {version}. Use a newer Cloister.")
        connection.execute("PRAGMA synchronous = FULL")
    except (sqlite3.Error, LedgerError) as error:
        connection.close()
        raise _unusable(path, error) from None
    return connection


def _unusable(path: Path, error: Exception) -> LedgerError:
    """Say in our words why a file cannot serve; SQLite's messages name no values."""
    if isinstance(error, LedgerError):
        return error
    if isinstance(error, FileNotFoundError):
        return LedgerError(f"a ledger must exist at {path}; there is none. Check the path.")
    if isinstance(error, sqlite3.OperationalError) and "locked" in str(error):
        return LedgerError(f"{path} must come free within {_BUSY_TIMEOUT_S:g} s; another process holds it. Try again.")
    if isinstance(error, sqlite3.OperationalError | OSError):
        return LedgerError(f"the ledger {path} and its folder must be readable and writable; got: {error}.")
    return LedgerError(f"{path} must be a whole ledger; got: {error}. Check the path, or restore a copy.")


def _sync_folder(folder: Path) -> None:
    """Put a new file's name on the disk too, where the system can."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _leave_connections_to_parent() -> None:
    """What every forked child does first."""
    for store in list(_open_stores):
        store.leave_to_parent()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_connections_to_parent)
