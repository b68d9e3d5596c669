"""A journal: a file to which one role of one session appends what it must not lose, sealed under a key of its owner.

::

    entry     length, salt, mark, box        box = ChaCha20-Poly1305 under HKDF(key, session, entry's number, salt)
                                             mark = 16 bytes of HKDF(key, session, entry's number, salt, length)

An entry counts once `Journal.append` has returned: it is on the disk then. One that was cut off by a kill is dropped
when the journal is opened; nothing was sent on its account. A journal that was being wiped is empty. Every other damage
is a :class:`JournalError`, except that whole entries at the end can be taken away: a disk that was set back shows only
in a ledger. The salt is fresh, so that the entry which takes the place of one that was cut off is sealed under another
key.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from cloister.crypto import SystemEntropy, derive_key
from cloister.crypto.sealing import open_keyed, seal_keyed
from cloister.crypto.stream import Context
from cloister.errors import JournalError, RemoteProtocolError

_LENGTH_BYTES, _SALT_BYTES, _MARK_BYTES = 8, 16, 16
_HEADER_BYTES = _LENGTH_BYTES + _SALT_BYTES + _MARK_BYTES


class Journal:
    """One role's journal of one session.

    Parameters
    ----------
    path
        The file; made if it is not there.
    key
        Known to the role's owner only.
    session
        Which session; a journal of another one is refused.
    anew
        Give up what is there, unread: it may be damaged, or of another version.

    Attributes
    ----------
    recovered
        The entries that were there when it was opened.

    Raises
    ------
    JournalError
        If the file is damaged, of another session or key, or cannot be read or written.
    """

    def __init__(self, path: Path, *, key: bytes, session: bytes, anew: bool = False) -> None:
        self.path = path
        self._key, self._session = key, session
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # a role has one process at a time
                if anew:
                    os.ftruncate(self._file, 0)
                self.recovered, whole_bytes = self._read(path.read_bytes())
                self._count = len(self.recovered)
                os.ftruncate(self._file, whole_bytes)
                os.lseek(self._file, whole_bytes, os.SEEK_SET)
                os.fsync(self._file)
                _sync_folder(path.parent)
            except BaseException:
                os.close(self._file)
                raise
        except BlockingIOError:
            raise JournalError(
                f"{path}: a journal must be used by one process at a time; another has it open."
            ) from None
        except OSError as error:
            raise _describe(path, error) from None

    def append(self, *entries: bytes) -> None:
        """Write entries to the disk, together; a failure leaves a journal that must be opened anew."""
        parts: list[bytes] = []
        for number, entry in enumerate(entries, start=self._count):
            salt = SystemEntropy().bytes(_SALT_BYTES)
            box = seal_keyed(entry, self._key, *self._context(number, salt))
            parts += self._make_header(len(box), salt, number), box
        unwritten = memoryview(b"".join(parts))
        try:
            while unwritten:
                unwritten = unwritten[os.write(self._file, unwritten) :]
            os.fsync(self._file)
        except OSError as error:
            raise _describe(self.path, error) from None
        self._count += len(entries)

    def close(self) -> None:
        """Close the file and leave it where it is."""
        os.close(self._file)

    def wipe(self) -> None:
        """Overwrite the file with zeros and delete it: the session is over.

        The first entry goes first, so that whatever a power cut leaves is a whole journal or none.
        """
        try:
            length_bytes = os.fstat(self._file).st_size
            first_bytes = min(length_bytes, _HEADER_BYTES)
            for start, end in ((0, first_bytes), (first_bytes, length_bytes)):
                os.pwrite(self._file, bytes(end - start), start)
                os.fsync(self._file)
            self.path.unlink(missing_ok=True)
            _sync_folder(self.path.parent)
        except OSError as error:
            raise _describe(self.path, error) from None
        finally:
            self.close()

    def _read(self, raw: bytes) -> tuple[list[bytes], int]:
        """Return the entries, and where the last whole one ends."""
        entries: list[bytes] = []
        at = 0
        while len(raw) - at >= _HEADER_BYTES:
            header, number = raw[at : at + _HEADER_BYTES], len(entries)
            if not any(header) and number == 0:
                break  # it was being wiped
            length = int.from_bytes(header[:_LENGTH_BYTES], "little")
            salt = header[_LENGTH_BYTES : _LENGTH_BYTES + _SALT_BYTES]
            if header != self._make_header(length, salt, number):
                raise self._refuse(number)
            end = at + _HEADER_BYTES + length
            if end > len(raw):
                break  # cut off by a kill
            try:
                entries.append(open_keyed(raw[at + _HEADER_BYTES : end], self._key, *self._context(number, salt)))
            except RemoteProtocolError:
                raise self._refuse(number) from None
            at = end
        return entries, at

    def _make_header(self, length: int, salt: bytes, number: int) -> bytes:
        mark = derive_key(self._key, "journal header", *self._context(number, salt), length)[:_MARK_BYTES]
        return length.to_bytes(_LENGTH_BYTES, "little") + salt + mark

    def _context(self, number: int, salt: bytes) -> tuple[Context, ...]:
        return ("journal", self._session, number, salt)

    def _refuse(self, number: int) -> JournalError:
        return JournalError(
            f"{self.path}: every entry of a journal must be as its role wrote it, in this session and under its "
            f"owner's key; entry {number} is not. This role cannot go on in this session, and what was charged stays "
            "charged. Run the job again."
        )


def _sync_folder(folder: Path) -> None:
    """Make the file's name in its folder last."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _describe(path: Path, error: OSError) -> JournalError:
    reason = error.strerror or type(error).__name__
    return JournalError(f"{path}: a journal must be a file that can be read and written; got: {reason}.")
