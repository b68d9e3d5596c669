"""One job's releases on one data set: a charger, like the accountant, whose charges outlive the process."""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from cloister.privacy.mechanisms import Release
from cloister.privacy.units import Budget

if TYPE_CHECKING:
    from cloister.privacy.ledger import Ledger


class LedgerSession:
    """Charges releases to a ledger; made by :meth:`~cloister.privacy.ledger.Ledger.open_session`.

    Releases are paid one by one with :meth:`charge`, or for a whole job before its first round with :meth:`charge_all`:
    then :meth:`charge` finds each of them paid for, once, and writes nothing more. What was paid for and never released
    stays spent. A copy, a forked child and a restarted process own no payments and pay again.

    Attributes
    ----------
    ledger, fingerprint, job, session, budget
        Where, on which data set, and for whom; ``session`` in hexadecimal digits.

    Privacy
    -------
    Neighbours: add/remove one ``budget.unit``. Sensitivity: as each release declares. Event: all releases charged to
    the data set, by all jobs, seen together. Guarantee: within the data set's cap, if it has one; the theorems are in
    :mod:`~cloister.privacy.ledger_totals`.
    """

    def __init__(self, *, ledger: Ledger, fingerprint: str, job: str, session: str, budget: Budget) -> None:
        self.ledger = ledger
        self.fingerprint = fingerprint
        self.job = job
        self.session = session
        self.budget = budget
        self._paid: Counter[Release] = Counter()
        self._lock = threading.Lock()
        self._process = os.getpid()

    def __reduce__(self) -> tuple[object, ...]:
        return _reopen_session, (self.ledger, self.fingerprint, self.job, self.session, self.budget)

    def charge(self, release: Release) -> None:
        """Charge one release; it is on the disk when this returns.

        Raises
        ------
        BudgetError
            If the data set's cap would be passed; names spent, asked and cap. Nothing is written.
        LedgerError
            If the ledger cannot be written or trusted. The release must not go out.
        """
        if not self._take_paid(release):
            self.ledger.charge_session(self, (release,))

    def charge_all(self, releases: Iterable[Release]) -> None:
        """Charge all releases of a job before its first round, all or none; raises as :meth:`charge`."""
        planned = tuple(releases)
        self.ledger.charge_session(self, planned)
        self._forget_parents_payments()
        with self._lock:
            self._paid.update(planned)

    def check_all(self, releases: Iterable[Release]) -> None:
        """Raise as :meth:`charge_all` would now, and write nothing. Others may spend in between."""
        self.ledger.charge_session(self, tuple(releases), dry_run=True)

    def spent_epsilon(self) -> float:
        """Return what this session has paid, at its budget's delta, in the file."""
        return self.ledger.spent_by(self).epsilon(self.budget.delta)

    def _take_paid(self, release: Release) -> bool:
        """Use up one payment for exactly this release, if there is one."""
        self._forget_parents_payments()
        with self._lock:
            if not self._paid[release]:
                return False
            self._paid[release] -= 1
            return True

    def _forget_parents_payments(self) -> None:
        """After a fork both processes hold the payments; only the one that paid may use them.

        The child also needs a lock of its own: its parent's may be held by a thread that the child does not have.
        """
        if self._process != os.getpid():
            self._process, self._lock, self._paid = os.getpid(), threading.Lock(), Counter()


def _reopen_session(ledger: Ledger, fingerprint: str, job: str, session: str, budget: Budget) -> LedgerSession:
    """What a copy is: the same session without its payments."""
    return LedgerSession(ledger=ledger, fingerprint=fingerprint, job=job, session=session, budget=budget)
