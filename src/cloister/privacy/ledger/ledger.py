"""A handle on one ledger file, and what one job holds of it: a charger whose charges outlive the process."""

from __future__ import annotations

import contextlib
import json
import os
import re
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType

from cloister.errors import ConfigError, LedgerError
from cloister.privacy.ledger.account import Account, Cap, Cost, DataSummary, make_charge
from cloister.privacy.ledger.fingerprint import FINGERPRINT_DIGITS
from cloister.privacy.ledger.store import (
    SCHEMA_VERSION,
    Head,
    LedgerStore,
    StoredEntry,
    Transaction,
    chain_entries,
    create_ledger,
)
from cloister.privacy.mechanisms import Release
from cloister.privacy.units import Budget


class Ledger:
    """A handle on one ledger file. Use from any thread or process; copies share the file.

    Parameters
    ----------
    path
        The file; on a local disk, for SQLite's locks do not work on network file systems.
    create
        Make it if it is not there. Without this, a missing file is an error.

    Raises
    ------
    LedgerError
        If the file is missing, is no ledger, was edited or damaged, or belongs to a newer program.
    """

    def __init__(self, path: str | Path, *, create: bool = True) -> None:
        self._path = Path(path).absolute()
        if create and not self._path.exists():
            create_ledger(self._path, created=_now())
        self._store = LedgerStore(self._path)
        self._head = self._store.start
        self._accounts: dict[str, Account] = {}
        try:
            with self._current(write=False):
                pass  # every entry is checked before the first charge
        except LedgerError:
            self.close()
            raise

    def __reduce__(self) -> tuple[object, ...]:
        return _reopen, (str(self._path),)

    def __enter__(self) -> Ledger:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; a later use opens it again."""
        self._store.close()

    @property
    def path(self) -> Path:
        """Where the file is."""
        return self._path

    @property
    def salt(self) -> bytes:
        """The secret key of this ledger's fingerprints; never exported."""
        return self._store.salt

    def open_session(self, *, fingerprint: str, job: str, session: bytes, budget: Budget) -> LedgerSession:
        """Start charging one job's releases to one data set.

        Parameters
        ----------
        fingerprint
            From :mod:`~cloister.privacy.ledger.fingerprint`, with this ledger's salt.
        job, session
            Who asks.
        budget
            The job's. Its unit is what the charges protect. The job's accountant holds the job to its amount; the
            ledger holds all jobs together to the data set's cap.
        """
        return LedgerSession(
            ledger=self, fingerprint=_check_fingerprint(fingerprint), job=job, session=session.hex(), budget=budget
        )

    def set_cap(self, fingerprint: str, budget: Budget, *, reason: str) -> None:
        """Bound what all jobs together may spend on a data set, from now on; the latest cap counts.

        Parameters
        ----------
        fingerprint
            Which data set; it need not have been charged yet.
        budget
            May lie below what is spent: then nothing more can be spent.
        reason
            Kept with the cap, for whoever asks later why it was raised.
        """
        if not reason.strip():
            raise ConfigError("a cap must come with a reason; got none. Say why in a few words.")
        cap = Cap(
            time=_now(),
            data=_check_fingerprint(fingerprint),
            unit=budget.unit,
            epsilon=budget.epsilon,
            delta=budget.delta,
            reason=reason,
        )
        with self._current(write=True) as transaction:
            transaction.append(chain_entries(self._head, [cap]))

    def charge_session(self, session: LedgerSession, releases: Sequence[Release], *, dry_run: bool = False) -> None:
        """Charge releases in one transaction: all of them or, where they would pass the cap, none.

        Called through :class:`LedgerSession`. Returns after the charges are on the disk.
        """
        now = _now()
        charges = [
            make_charge(
                release,
                time=now,
                data=session.fingerprint,
                unit=session.budget.unit,
                job=session.job,
                session=session.session,
            )
            for release in releases
        ]
        if not charges:
            return
        with self._current(write=not dry_run) as transaction:
            self._accounts.get(session.fingerprint, Account()).check_cap(charges)
            if not dry_run:
                transaction.append(chain_entries(self._head, charges))

    def spent_by(self, session: LedgerSession) -> Cost:
        """Return what one session has paid."""
        with self._current(write=False):
            account = self._accounts.get(session.fingerprint, Account())
            return account.sessions.get((session.session, session.budget.unit), Cost())

    def summarise(self, *, delta: float = 1e-6) -> tuple[DataSummary, ...]:
        """Return what each data set has paid, at its cap's delta, or at ``delta`` where it has no cap."""
        if not 0 <= delta < 1:
            raise ConfigError(f"delta must be at least 0 and less than 1; got {delta}.")
        with self._current(write=False):
            return tuple(account.summarise(data, delta) for data, account in self._accounts.items())

    def find_data(self, prefix: str) -> str:
        """Return the one fingerprint that starts with ``prefix``; a whole fingerprint need not be known yet."""
        prefix = prefix.lower()
        if re.fullmatch(f"[0-9a-f]{{{FINGERPRINT_DIGITS}}}", prefix):
            return prefix
        with self._current(write=False):
            found = [data for data in self._accounts if data.startswith(prefix)]
        if len(found) != 1 or not prefix:
            raise ConfigError(
                f"the start of a fingerprint must fit one data set; {prefix!r} fits {len(found)}. "
                "Give more digits: `cloister ledger show` lists them."
            )
        return found[0]

    def verify(self, *, head: str | None = None) -> Head:
        """Read the whole file again and check every link of its chain.

        Parameters
        ----------
        head
            A chain value that was noted earlier: it must still be there. Without one, entries missing from the end
            cannot be noticed.

        Raises
        ------
        LedgerError
            If an entry was changed, inserted or removed, or the file is damaged.
        """
        last = self._store.start
        seen = last.chain == head
        with self._store.transaction(write=False) as transaction:
            transaction.check_pages()
            for stored in transaction.entries_after(0):
                last = last.follow(stored)
                seen |= last.chain == head
        if head is not None and not seen:
            raise LedgerError(
                f"the head that was noted must be in the ledger; it is not among its {last.number} entries. "
                "Entries are missing, or this is another ledger: restore a copy."
            )
        return last

    def export(self) -> Iterator[str]:
        """Yield the ledger as lines of JSON, without the salt: what it is, then each entry with its chain value.

        The entry's text stands in its line as it was hashed, so a reader can follow the chain from ``start``.
        """
        with self._store.transaction(write=False) as transaction:
            stored = list(transaction.entries_after(0))
        head = stored[-1].chain if stored else self._store.start.chain
        about = {
            "cloister_ledger": SCHEMA_VERSION,
            "created": self._store.created,
            "start": self._store.start.chain,
            "entries": len(stored),
            "head": head,
        }
        yield json.dumps(about)
        for entry in stored:
            yield f'{{"number":{entry.number},"chain":"{entry.chain}","entry":{entry.text}}}'

    @contextlib.contextmanager
    def _current(self, *, write: bool) -> Iterator[Transaction]:
        """Open a transaction after reading what others have written since the last one."""
        with self._store.transaction(write=write) as transaction:
            if self._head.number and transaction.chain_at(self._head.number) != self._head.chain:
                raise LedgerError(
                    f"{self._path} must only grow; entry {self._head.number} is not what it was. "
                    "The file was edited or damaged: restore a copy."
                )
            for stored in transaction.entries_after(self._head.number):
                self._take_in(stored)
            yield transaction

    def _take_in(self, stored: StoredEntry) -> None:
        """Check one entry and add it to its data set's account."""
        head = self._head.follow(stored)
        entry = stored.entry
        self._accounts.setdefault(entry.data, Account()).record(entry)
        self._head = head  # last: an interruption before this counts the entry twice, never not at all


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
    :mod:`~cloister.privacy.ledger.account`.
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


def _check_fingerprint(fingerprint: str) -> str:
    if not re.fullmatch(f"[0-9a-f]{{{FINGERPRINT_DIGITS}}}", fingerprint):
        raise ConfigError(
            f"a fingerprint must be {FINGERPRINT_DIGITS} hexadecimal digits; got {len(fingerprint)} characters. "
            "Use cloister.privacy.ledger.fingerprint."
        )
    return fingerprint


def _reopen(path: str) -> Ledger:
    """What a copy is: the same file, which must be there."""
    return Ledger(path, create=False)


def _reopen_session(ledger: Ledger, fingerprint: str, job: str, session: str, budget: Budget) -> LedgerSession:
    """What a copy is: the same session without its payments."""
    return LedgerSession(ledger=ledger, fingerprint=fingerprint, job=job, session=session, budget=budget)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds")
