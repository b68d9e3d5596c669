"""The open file: transactions that read one state of a ledger and add to its end; knows nothing of costs.

``BEGIN IMMEDIATE`` takes the one write lock before anything is read, so what a charge reads is what it is added to. A
commit returns when the entries are on the disk: what was acknowledged survives a kill and a power cut
(:mod:`~cloister.privacy.ledger.schema`). Triggers refuse UPDATE, DELETE and an INSERT anywhere but at the end. They
stop mistakes, not someone who means to edit the file; the chain shows such edits.

One connection serves all threads of a process, under a lock. A forked child never touches its parent's connection
(SQLite forbids it) and opens its own.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import stat
import threading
import weakref
from collections.abc import Iterator, Sequence
from pathlib import Path

from cloister.errors import LedgerError
from cloister.privacy.ledger.chain import Head, StoredEntry, read_bytes, read_entry, read_number, read_text, start_of
from cloister.privacy.ledger.schema import BUSY_TIMEOUT_S, check_pages, connect, drop_second_name

_open_stores: weakref.WeakSet[LedgerStore] = weakref.WeakSet()
_parents_connections: list[sqlite3.Connection] = []  # kept so that a child does not close them


class LedgerStore:
    """A ledger's file, checked page by page when it is opened."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._file_id: tuple[int, int] | None = None
        _open_stores.add(self)
        try:
            with self.transaction(write=False) as transaction:
                transaction.check_pages()
                self.created, self.salt, self.start = transaction.read_origin()
        except BaseException:
            self.close()
            raise

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
            self._disconnect()

    @contextlib.contextmanager
    def transaction(self, *, write: bool) -> Iterator[Transaction]:
        """Read one state of the file and, with ``write``, hold the one write lock; commit unless an error is raised."""
        with self._lock, name_errors(self._path):
            connection = self._connect()
            try:
                connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")
                yield Transaction(connection)
                connection.execute("COMMIT")
            finally:
                if connection.in_transaction:
                    self._roll_back(connection)

    def _connect(self) -> sqlite3.Connection:
        """Return the connection to the file that is at the path now."""
        status = self._path.stat()
        if stat.S_ISREG(status.st_mode) and status.st_nlink > 1:
            drop_second_name(self._path)
            status = self._path.stat()
            if status.st_nlink > 1:  # each name would have a journal of its own, and charges would be lost
                raise LedgerError(
                    f"{self._path} must have one name; it has hard links. Remove the others, and use one path."
                )
        file_id = (status.st_dev, status.st_ino)
        if self._file_id not in (None, file_id):
            raise LedgerError(f"{self._path} must stay the same file while it is in use; it was replaced. Start again.")
        if self._connection is None:
            self._connection = connect(self._path)
            self._file_id = file_id
        return self._connection

    def _roll_back(self, connection: sqlite3.Connection) -> None:
        try:
            connection.execute("ROLLBACK")
        except sqlite3.Error:
            self._disconnect()  # the next connection rolls back what is half-written

    def _disconnect(self) -> None:
        if self._connection is not None:
            connection, self._connection = self._connection, None
            connection.close()


class Transaction:
    """Reads and appends inside one transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def read_origin(self) -> tuple[str, bytes, Head]:
        """Return when the ledger was made, its salt, and where its chain starts."""
        row = self._connection.execute("SELECT created, salt FROM ledger").fetchone()
        created, salt = row or (None, None)
        return read_text(created), read_bytes(salt), start_of(read_bytes(salt))

    def read_head(self) -> Head:
        """Return how far the ledger goes, by its own word."""
        row = self._connection.execute("SELECT number, chain FROM head").fetchone()
        number, chain = row or (None, None)
        return Head(number=read_number(number), chain=read_text(chain))

    def chain_at(self, number: int) -> str | None:
        """Return the chain value of an entry, None if there is no such entry."""
        row = self._connection.execute("SELECT chain FROM entry WHERE number = ?", (number,)).fetchone()
        return None if row is None else read_text(row[0])

    def entries_after(self, number: int) -> Iterator[StoredEntry]:
        """Yield the entries behind ``number``, in order."""
        rows = self._connection.execute(
            "SELECT number, text, chain FROM entry WHERE number > ? ORDER BY number", (number,)
        )
        return (read_entry(row) for row in rows)

    def append(self, entries: Sequence[StoredEntry]) -> None:
        """Add entries at the end."""
        rows = ((entry.number, entry.text, entry.chain) for entry in entries)
        self._connection.executemany("INSERT INTO entry VALUES (?, ?, ?)", rows)
        last = entries[-1]
        self._connection.execute("UPDATE head SET number = ?, chain = ?", (last.number, last.chain))

    def see(self, dataset: str, fingerprint: str) -> None:
        """Remember under which name a table was charged."""
        self._connection.execute("INSERT OR IGNORE INTO seen VALUES (?, ?)", (dataset, fingerprint))

    def list_seen(self) -> list[tuple[str, str]]:
        """Return each name with the fingerprint of each table that was charged under it."""
        rows = self._connection.execute("SELECT dataset, fingerprint FROM seen ORDER BY dataset, fingerprint")
        return [(read_text(dataset), read_text(fingerprint)) for dataset, fingerprint in rows]

    def check_pages(self) -> None:
        """Let SQLite check its own structure."""
        check_pages(self._connection)


@contextlib.contextmanager
def name_errors(path: Path) -> Iterator[None]:
    """Say in our words why a file cannot serve; SQLite's messages name no values."""
    try:
        yield
    except FileNotFoundError:
        raise LedgerError(f"a ledger must exist at {path}; there is none. Check the path.") from None
    except (OSError, sqlite3.OperationalError) as error:
        if "locked" in str(error):
            raise LedgerError(
                f"{path} must come free within {BUSY_TIMEOUT_S:g} s; another process holds it. Try again."
            ) from None
        raise LedgerError(f"the ledger {path} and its folder must be readable and writable; got: {error}.") from None
    except (sqlite3.Error, UnicodeDecodeError, MemoryError) as error:  # of a damaged file, as SQLite reads it
        reason = str(error) if isinstance(error, sqlite3.Error) else type(error).__name__
        raise LedgerError(f"{path} must be a whole ledger; got: {reason}. Check the path, or restore a copy.") from None


def _leave_connections_to_parent() -> None:
    """What every forked child does first."""
    for store in list(_open_stores):
        store.leave_to_parent()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_connections_to_parent)
