"""A handle on one ledger file: what its data sets have paid, and the one way to write to it."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType

from cloister.errors import ConfigError, LedgerError
from cloister.privacy.ledger.account import Account, DataSummary
from cloister.privacy.ledger.accounts import Accounts
from cloister.privacy.ledger.chain import Head, StoredEntry, chain_entries
from cloister.privacy.ledger.cost import Cost
from cloister.privacy.ledger.entries import Cap, Charge, Entry, Join, check_dataset, is_old_name, shorten_name
from cloister.privacy.ledger.schema import SCHEMA_VERSION, create_ledger
from cloister.privacy.ledger.store import LedgerStore, Transaction, name_errors
from cloister.privacy.units import Budget, Unit

_LEAST_DIGITS = 8  # of an old fingerprint: fewer may be a name


@dataclass(frozen=True, kw_only=True)
class Trace:
    """What one session left in a ledger.

    Parameters
    ----------
    before, after
        The head before its first charge, and after its last.
    charges
        How many.
    dataset, unit, spent
        Which data set, and what they cost one unit of it together.
    """

    before: Head
    after: Head
    charges: int
    dataset: str
    unit: Unit
    spent: Cost


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
            with name_errors(self._path):
                create_ledger(self._path, created=read_clock())
        self._store = LedgerStore(self._path)
        self._head = self._store.start
        self._accounts = Accounts(self._store.salt)
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
    def identity(self) -> str:
        """Tells this ledger from others: where its chain starts, which is bound to its salt."""
        return self._store.start.chain

    @property
    def salt(self) -> bytes:
        """The secret key of this ledger's fingerprints; never exported."""
        return self._store.salt

    def set_cap(self, dataset: str | None, budget: Budget, *, reason: str) -> None:
        """Bound what all jobs together may spend, from now on; the latest cap counts.

        Parameters
        ----------
        dataset
            Which data set, by its name; it need not have been charged yet. None: all data sets of this ledger together.
        budget
            May lie below what is spent: then nothing more can be spent.
        reason
            Kept with the cap, for whoever asks later why it was raised.
        """
        name = None if dataset is None else self.find_dataset(dataset)
        cap = Cap(
            time=read_clock(),
            data=name,
            unit=budget.unit,
            epsilon=budget.epsilon,
            delta=budget.delta,
            reason=_check_reason(reason),
        )
        self.write([cap])

    def join(self, dataset: str, into: str, *, reason: str) -> None:
        """Say that two names are one data set: what the first has paid, and will pay, counts for the second.

        The second keeps its cap, or takes that of the first if it has none. This cannot be undone.
        """
        old, new = self.find_dataset(dataset), self.find_dataset(into)
        entry = Join(time=read_clock(), data=old, into=new, reason=_check_reason(reason))
        self.write([entry], check=lambda accounts: accounts.check_join(old, new))

    def write(
        self,
        entries: Sequence[Entry],
        *,
        check: Callable[[Accounts], None] = lambda accounts: None,
        seen: tuple[str, str] | None = None,
        dry_run: bool = False,
    ) -> int:
        """Add entries in one transaction, or none where ``check`` raises; the only way into the file.

        Returns after the entries are on the disk, with the number of the last.

        Parameters
        ----------
        entries
            At least one.
        check
            Sees all that is written so far, by anyone, and what is added is what it saw.
        seen
            A data set and the fingerprint of a table that was charged under its name.
        dry_run
            Only check.
        """
        with self._current(write=not dry_run) as transaction:
            check(self._accounts)
            if not dry_run:
                transaction.append(list(chain_entries(self._head, entries)))
                if seen is not None:
                    transaction.see(*seen)
            return self._head.number + len(entries)

    def total(self, dataset: str, unit: Unit) -> Cost:
        """Return what all jobs together have spent of a data set."""
        with self._current(write=False):
            account = self._accounts.find(dataset)
            return Cost() if account is None else account.total(unit)

    def spent_by(self, dataset: str, session: str, unit: Unit) -> Cost:
        """Return what one session has paid or holds."""
        with self._current(write=False):
            account = self._accounts.find(dataset)
            return Cost() if account is None else account.spent_by(session, unit)

    def is_held(self, dataset: str, hold: int) -> bool:
        """Whether a hold is open: taken, and not settled."""
        with self._current(write=False):
            account = self._accounts.find(dataset)
            return account is not None and hold in account.open

    def find_cap(self, dataset: str | None) -> Budget | None:
        """Return the cap of a data set, or of all together."""
        with self._current(write=False):
            account = self._accounts.everything if dataset is None else self._accounts.find(dataset)
            return None if account is None or account.cap is None else account.cap.budget

    def compare_table(self, dataset: str, fingerprint: str) -> tuple[str, ...]:
        """Return what its owner should know of a table, by what was charged before; it decides nothing."""
        with self._current(write=False) as transaction:
            seen = transaction.list_seen()
            if self._accounts.find(fingerprint) is not None:
                seen.append((fingerprint, fingerprint))  # as schema 1 knew it
            own = {known for name, known in seen if self._accounts.are_same(name, dataset)}
            equal = {name for name, known in seen if known == fingerprint}
            others = sorted(name for name in equal if not self._accounts.are_same(name, dataset))
        told = [
            f"This table was charged before as data set {shorten_name(name)!r}. If both names mean the same records, "
            "say so: cloister ledger join."
            for name in others
        ]
        if own and fingerprint not in own:
            told.append(f"This table is not the one that was charged as data set {dataset!r} before.")
        return tuple(told)

    def summarise(self, *, delta: float = 1e-6) -> tuple[DataSummary, ...]:
        """Return what each data set has paid, at its cap's delta, or at ``delta`` where it has no cap."""
        with self._current(write=False):
            return tuple(account.summarise(_check_delta(delta)) for account in self._accounts)

    def summarise_one(self, dataset: str | None, *, delta: float = 1e-6) -> DataSummary:
        """Return the same of one data set, by any of its names.

        With None, of all together: they are not taken to hold different people, so all that they have paid adds up.
        """
        with self._current(write=False):
            account = self._accounts.everything if dataset is None else self._accounts.find(dataset)
            return (account or Account(name=dataset)).summarise(_check_delta(delta))

    def find_dataset(self, name: str) -> str:
        """Return a data set's name: as it is, or an old fingerprint in full if it is the start of one."""
        if not is_old_name(name):
            check_dataset(name)
        with self._current(write=False):
            if self._accounts.find(name) is not None:
                return name
            known = [account.name or "" for account in self._accounts]
        if len(name) >= _LEAST_DIGITS:
            found = [one for one in known if is_old_name(one) and one.startswith(name.lower())]
            if len(found) == 1:
                return found[0]
        return check_dataset(name)

    def verify(self, *, head: str | None = None) -> Head:
        """Read the whole file again and check every page, and every link of its chain.

        Parameters
        ----------
        head
            A chain value that was noted earlier: it must still be there. Without one, a file that was put back to an
            earlier state cannot be noticed.

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
            self._check_end(transaction, last)
        if head is not None and not seen:
            raise LedgerError(
                f"the head that was noted must be in the ledger; it is not among its {last.number} entries. "
                "Entries are missing, or this is another ledger: restore a copy."
            )
        return last

    def trace(self, session: str) -> Trace | None:
        """Return where one session's charges stand in the chain, and what they cost; None if it has none.

        All of it follows from the entries: it is the same after a kill, and whoever else charged in between.
        """
        before, last, charges = None, self._store.start, list[Charge]()
        with self._store.transaction(write=False) as transaction:
            for stored in transaction.entries_after(0):
                entry, following = stored.entry, last.follow(stored)
                if isinstance(entry, Charge) and entry.session == session:
                    before, after = before or last, following
                    charges.append(entry)
                last = following
            self._check_end(transaction, last)
        if before is None:
            return None
        spent = Cost()
        for charge in charges:
            spent = spent.plus(charge.cost)
        first = charges[0]
        return Trace(before=before, after=after, charges=len(charges), dataset=first.data, unit=first.unit, spent=spent)

    def export(self) -> Iterator[str]:
        """Yield the ledger as lines of JSON, without salt and fingerprints: what it is, then each entry and its chain.

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
            self._check_end(transaction, self._head)
            yield transaction

    def _check_end(self, transaction: Transaction, last: Head) -> None:
        """Refuse a file whose entries and whose own count of them differ: one of the two was lost."""
        stated = transaction.read_head()
        if stated != last:
            raise LedgerError(
                f"{self._path} must hold the {stated.number} entries that it says it has; it holds {last.number}. "
                "The file was edited or damaged: restore a copy."
            )

    def _take_in(self, stored: StoredEntry) -> None:
        """Check one entry and add it to its data set's account."""
        head = self._head.follow(stored)
        self._accounts.take_in(stored.number, stored.entry)
        self._head = head  # last: an interruption before this counts the entry twice, never not at all


def _check_reason(reason: str) -> str:
    if not reason.strip():
        raise ConfigError("a cap or a join must come with a reason; got none. Say why in a few words.")
    return reason


def _check_delta(delta: float) -> float:
    if not 0 <= delta < 1:
        raise ConfigError(f"delta must be at least 0 and less than 1; got {delta}.")
    return delta


def _reopen(path: str) -> Ledger:
    """What a copy is: the same file, which must be there."""
    return Ledger(path, create=False)


def read_clock() -> str:
    """Return the time, as entries hold it."""
    return datetime.now(UTC).isoformat(timespec="microseconds")
