"""How ONE party's ledger pays for a clustering between organisations: once, whoever is killed when."""

from __future__ import annotations

from typing import Any

from cloister.errors import LedgerError
from cloister.privacy.books import Books, prepay
from cloister.runtime.resuming import Memory
from cloister.sessions.assembly import Session


class Payment:
    """A party's ledger pays for the whole clustering, once: at the first request, when all have their seats.

    A session that goes on after a kill has paid, or had released nothing.
    """

    def __init__(self, session: Session, books: Books | None, *, resumed: bool, memory: Memory | None) -> None:
        self._books = books if session.charges is not None else None
        self._releases: Any = () if session.charges is None else session.charges.prepaid
        self._is_made = self._books is None or self._books.ledger is None
        if self._is_made:
            return
        assert self._books is not None
        ledger = self._books.ledger
        assert ledger is not None
        has_journal = resumed and memory is not None and memory.was_there
        self._is_made = ledger.resume(self._releases, has_journal=has_journal)
        if not self._is_made and memory is not None and memory.recovered and not ledger.seeded:
            raise LedgerError(
                f"{ledger.ledger.path}: a ledger must hold what this run was charged before its first release; it does "
                "not. It may have been set back to an earlier copy: restore the newest one."
            )
        if not self._is_made:
            ledger.check_all(self._releases)

    def make(self) -> None:
        """Pay, if that has not been done."""
        if not self._is_made:
            assert self._books is not None
            prepay([self._books], self._releases)
            self._is_made = True
