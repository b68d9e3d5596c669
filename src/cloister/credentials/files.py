"""Key files on disk: written whole or not at all, and a private one for its owner's eyes only."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from pathlib import Path

from cloister.errors import CredentialsError
from cloister.privacy.ledger.schema import sync_folder

MAX_FILE_BYTES = 2**20
_OF_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def write_new(path: Path, content: bytes, *, mode: int) -> None:
    """Write a file that is not there yet; an existing one is never replaced."""
    _write(path, content, mode=mode, replace=False)


def replace_file(path: Path, content: bytes, *, mode: int) -> None:
    """Write a file in place of what may be there; whoever is killed leaves the old one or the new one."""
    _write(path, content, mode=mode, replace=True)


def read_private(path: Path) -> bytes:
    """Read a file that nobody but its owner can read or write.

    Raises
    ------
    CredentialsError
        If it cannot be read, or others can.
    """
    return _read(path, private=True)


def read_public(path: Path) -> bytes:
    """Read a file that everyone may see; raises `CredentialsError` if it cannot be read."""
    return _read(path, private=False)


def _write(path: Path, content: bytes, *, mode: int, replace: bool) -> None:
    try:
        descriptor, name = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)  # 0600 from the start
        temporary = Path(name)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
                file.flush()
                os.fchmod(file.fileno(), mode)
                os.fsync(file.fileno())
            if replace:
                temporary.replace(path)
            else:
                path.hardlink_to(temporary)
        finally:
            with contextlib.suppress(FileNotFoundError):
                temporary.unlink()
        sync_folder(path.parent)
    except FileExistsError:
        raise CredentialsError(
            f"a key file must be new; got {path}, which exists. Choose another name, or move the old file away: "
            "without it nobody can act for its identity any more."
        ) from None
    except OSError as error:
        raise _describe(path, error, "written") from None


def _read(path: Path, *, private: bool) -> bytes:
    try:
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            if private and (status.st_mode & _OF_OTHERS or status.st_uid not in (os.geteuid(), 0)):
                raise CredentialsError(
                    f"{path} must belong to you, and nobody else may read or write it; its mode is "
                    f"{stat.S_IMODE(status.st_mode):04o}. If others have read it, make new keys; else: chmod 600 {path}"
                )
            content = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise _describe(path, error, "read") from None
    if len(content) > MAX_FILE_BYTES:
        raise CredentialsError(f"a key file must have at most {MAX_FILE_BYTES} bytes; {path} has more. Check the path.")
    return content


def _describe(path: Path, error: OSError, what: str) -> CredentialsError:
    reason = error.strerror or type(error).__name__
    return CredentialsError(f"a key file must be one that can be {what}; got {path}: {reason}. Check the path.")
