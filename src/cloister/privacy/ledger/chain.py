"""The chain: each entry carries the hash of those before it, so that no entry can change, move or vanish unnoticed.

The stored form of an entry is its JSON text. Its chain value is SHA-256 of the chain value before it (64 hexadecimal
digits) followed by that text, so whoever knows the last chain value, the head, notices any change to any entry.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import msgspec

from cloister.errors import LedgerError
from cloister.privacy.ledger.entries import Entry, decode_entry, encode_entry


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
            return decode_entry(self.text)
        except msgspec.DecodeError as error:
            raise LedgerError(f"ledger entry {self.number} must be of a known kind; got {error}.") from None


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


def start_of(salt: bytes) -> Head:
    """Return where a ledger's chain starts: bound to its salt, so that entries of another ledger do not fit."""
    return Head(number=0, chain=hashlib.sha256(b"cloister ledger 1" + salt).hexdigest())


def chain_entries(head: Head, entries: Sequence[Entry]) -> Iterator[StoredEntry]:
    """Put new entries behind a head."""
    for entry in entries:
        text = encode_entry(entry)
        head = Head(number=head.number + 1, chain=link(head.chain, text))
        yield StoredEntry(number=head.number, text=text, chain=head.chain)


def read_entry(row: Sequence[object]) -> StoredEntry:
    """Read an entry from its row, which may be damaged."""
    number, text, chain = row
    return StoredEntry(number=read_number(number), text=read_text(text), chain=read_text(chain))


def read_number(value: object) -> int:
    """Read a whole number, which may be damaged."""
    if not isinstance(value, int):
        raise _damaged()
    return value


def read_bytes(value: object) -> bytes:
    """Read bytes, which may be damaged."""
    if not isinstance(value, bytes):
        raise _damaged()
    return value


def read_text(value: object) -> str:
    """Read text, which may be damaged."""
    try:
        return read_bytes(value).decode()
    except UnicodeDecodeError:
        raise _damaged() from None


def _damaged() -> LedgerError:
    return LedgerError(
        "a ledger's rows must hold numbers and text; one does not. The file was edited or damaged: restore a copy."
    )
