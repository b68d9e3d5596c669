"""What a ledger's file looks like, how one is made, and how one of schema 1 becomes one of today's.

Two places say how far the ledger goes: the entries themselves, and ``head``, which is written with them in one
transaction. So entries that are missing from the end are noticed, too, unless ``head`` was set back with them.

The file keeps no write-ahead log: what was committed must not depend on a second file, whose damage SQLite takes for
its end. While a transaction is written a rollback journal stands beside the file; its deletion is the commit, and
``synchronous = EXTRA`` puts that deletion on the disk before the commit returns.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import tempfile
from functools import cache
from pathlib import Path

from cloister.crypto import SystemEntropy
from cloister.errors import ConfigError, LedgerError
from cloister.privacy.ledger.chain import read_bytes, read_entry, start_of

SCHEMA_VERSION = 2
APPLICATION_ID = 0x434C4C47  # "CLLG": the file says what it is
BUSY_TIMEOUT_S = 30.0
_SALT_BYTES = 32
_SYNC_EVERYTHING = "PRAGMA synchronous = EXTRA"
_SCHEMA_1 = """
CREATE TABLE ledger (only_row INTEGER PRIMARY KEY CHECK (only_row = 1), created TEXT NOT NULL, salt BLOB NOT NULL);
CREATE TABLE entry (number INTEGER PRIMARY KEY, text TEXT NOT NULL, chain TEXT NOT NULL);
CREATE TRIGGER entry_grows BEFORE INSERT ON entry
  WHEN NEW.number <> (SELECT coalesce(max(number), 0) + 1 FROM entry)
  BEGIN SELECT RAISE(ABORT, 'a ledger entry goes to the end'); END;
CREATE TRIGGER entry_stays BEFORE UPDATE ON entry BEGIN SELECT RAISE(ABORT, 'a ledger entry never changes'); END;
CREATE TRIGGER entry_remains BEFORE DELETE ON entry BEGIN SELECT RAISE(ABORT, 'a ledger entry is never deleted'); END;
CREATE TRIGGER ledger_stays BEFORE UPDATE ON ledger BEGIN SELECT RAISE(ABORT, 'a ledger never changes'); END;
CREATE TRIGGER ledger_remains BEFORE DELETE ON ledger BEGIN SELECT RAISE(ABORT, 'a ledger is never deleted'); END;
"""
_SCHEMA_2 = """
CREATE TABLE head (only_row INTEGER PRIMARY KEY CHECK (only_row = 1), number INTEGER NOT NULL, chain TEXT NOT NULL);
CREATE TABLE seen (dataset TEXT NOT NULL, fingerprint TEXT NOT NULL, PRIMARY KEY (dataset, fingerprint)) WITHOUT ROWID;
CREATE TRIGGER head_grows BEFORE UPDATE ON head WHEN NEW.number <= OLD.number
  BEGIN SELECT RAISE(ABORT, 'a ledger only grows'); END;
CREATE TRIGGER head_remains BEFORE DELETE ON head BEGIN SELECT RAISE(ABORT, 'a ledger is never deleted'); END;
"""


def connect(path: Path) -> sqlite3.Connection:
    """Open an existing ledger of today's schema, after migrating an older one; SQLite must not create one.

    Raises
    ------
    LedgerError
        If it is no ledger, of a newer program, or its tables are not a ledger's.
    """
    connection = sqlite3.connect(
        f"{path.as_uri()}?mode=rw", uri=True, timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False
    )
    connection.text_factory = bytes  # damaged text must be read before it can be refused
    try:
        connection.execute(_SYNC_EVERYTHING)
        if _pragma(connection, "application_id") != APPLICATION_ID:
            raise LedgerError(f"{path} must be a ledger; got another SQLite file, or an empty one. Check the path.")
        version = _pragma(connection, "user_version")
        if version == 1:
            _migrate(connection)
        elif version != SCHEMA_VERSION:
            raise LedgerError(f"{path} must have schema {SCHEMA_VERSION}; got {version}. Use a newer Cloister.")
        mode = connection.execute("PRAGMA journal_mode").fetchone()[0]
        if mode != b"delete" or _list_tables(connection) != _expected_tables(SCHEMA_VERSION):
            raise LedgerError(f"{path} must have a ledger's tables; they were changed or damaged: restore a copy.")
    except BaseException:
        connection.close()
        raise
    return connection


def create_ledger(path: Path, *, created: str) -> None:
    """Make an empty ledger at ``path``, unless another process was first; a half-made one is never seen there.

    Its name is on the disk when this returns. Where its maker is killed before, SQLite sees to it with the first
    charge, for it syncs the folder of a journal.
    """
    if not path.parent.is_dir():
        raise LedgerError(f"a ledger's folder must exist; there is no {path.parent}. Make it, or check the path.")
    workshop = Path(tempfile.mkdtemp(prefix=f".{path.name}-", dir=path.parent))
    try:
        fresh = workshop / "fresh"
        fresh.touch(mode=0o600)  # it holds the salt
        with contextlib.closing(sqlite3.connect(fresh, isolation_level=None)) as connection:
            connection.execute(_SYNC_EVERYTHING)
            connection.execute("BEGIN EXCLUSIVE")
            _run(connection, _SCHEMA_1 + _SCHEMA_2)
            salt = SystemEntropy().bytes(_SALT_BYTES)
            connection.execute("INSERT INTO ledger VALUES (1, ?, ?)", (created, salt))
            connection.execute("INSERT INTO head VALUES (1, 0, ?)", (start_of(salt).chain,))
            _label(connection)
            connection.execute("COMMIT")
        with contextlib.suppress(FileExistsError):
            os.link(fresh, path)
    finally:
        shutil.rmtree(workshop, ignore_errors=True)
    sync_folder(path.parent)


def drop_second_name(path: Path) -> None:
    """Remove the name under which a ledger was made, where its maker was killed before it could."""
    for workshop in path.parent.iterdir():
        if not workshop.name.startswith(f".{path.name}-"):
            continue
        with contextlib.suppress(FileNotFoundError):  # its maker lives, and was faster
            if (workshop / "fresh").samefile(path):
                (workshop / "fresh").unlink()
                workshop.rmdir()


def make_folder(folder: Path) -> None:
    """Make a folder for ledgers, with its parents, and put their names on the disk.

    Raises
    ------
    ConfigError
        If it is a file, or cannot be made.
    """
    missing = [one for one in (folder, *folder.parents) if not one.exists()]
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"ledgers must be kept in a folder; got the file {folder}. Name another place.")
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for one in reversed(missing):
            sync_folder(one.parent)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise ConfigError(
            f"ledgers must be kept in a folder that can be made; got {folder}: {reason}. Name another place."
        ) from None


def sync_folder(folder: Path) -> None:
    """Put new names in a folder on the disk, where the system can."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _migrate(connection: sqlite3.Connection) -> None:
    """Bring a ledger of schema 1 to today's, whole or not at all. Its entries and its chain stay as they are."""
    if _list_tables(connection) != _expected_tables(1):
        raise LedgerError("a ledger of schema 1 must have its tables; they were changed or damaged: restore a copy.")
    connection.execute("PRAGMA journal_mode = DELETE")  # fails while another program has the file open
    connection.execute("BEGIN EXCLUSIVE")
    try:
        if _pragma(connection, "user_version") == 1:
            check_pages(connection)
            row = connection.execute("SELECT salt FROM ledger").fetchone() or (None,)
            head = start_of(read_bytes(row[0]))
            for row in connection.execute("SELECT number, text, chain FROM entry ORDER BY number"):
                head = head.follow(read_entry(row))
            _run(connection, _SCHEMA_2)
            connection.execute("INSERT INTO head VALUES (1, ?, ?)", (head.number, head.chain))
            _label(connection)
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def check_pages(connection: sqlite3.Connection) -> None:
    """Let SQLite check its own structure, for damage that a read of the entries would not meet."""
    (verdict,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if verdict != b"ok":
        raise LedgerError("a ledger's pages must hold together; they do not. The file is damaged: restore a copy.")


def _label(connection: sqlite3.Connection) -> None:
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])


def _run(connection: sqlite3.Connection, script: str) -> None:
    """Run statements within the transaction that is open, which executescript would commit."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            connection.execute(statement)
            statement = ""


def _list_tables(connection: sqlite3.Connection) -> list[tuple[bytes, ...]]:
    return connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY name").fetchall()


@cache
def _expected_tables(version: int) -> list[tuple[bytes, ...]]:
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.text_factory = bytes
        _run(connection, _SCHEMA_1 if version == 1 else _SCHEMA_1 + _SCHEMA_2)
        return _list_tables(connection)
