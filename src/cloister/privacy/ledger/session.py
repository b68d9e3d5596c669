"""What one job holds of a ledger: a charger whose charges outlive the process, and what it says to its owner."""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from cloister.errors import LedgerError
from cloister.privacy.ledger.cost import Cost
from cloister.privacy.ledger.entries import Hold, Note, Settle, check_dataset, make_charge, price_release
from cloister.privacy.ledger.ledger import Ledger, read_clock
from cloister.privacy.mechanisms import Release
from cloister.privacy.units import Budget, Unit

_SEEDED = "made with a seed: not private"


@dataclass(frozen=True, kw_only=True)
class Statement:
    """What a job did to its owner's account; for the owner alone.

    Parameters
    ----------
    path, dataset
        Which ledger, and which data set in it.
    unit, delta
        What the epsilons are for.
    before, after, again
        What all jobs together had spent before this one, have spent now, and would have if it ran once more.
    cap, cap_of_all
        What all jobs may spend on this data set, and on all data sets of the ledger; None without one.
    seeded
        Whether the run was made with a seed, so that it is not private and nothing was charged.
    warnings
        What the owner should know of the table.
    """

    path: Path
    dataset: str
    unit: Unit
    delta: float
    before: float
    after: float
    again: float
    cap: Budget | None
    cap_of_all: Budget | None
    seeded: bool
    warnings: tuple[str, ...]


class LedgerSession:
    """Charges one job's releases to one data set.

    Releases are paid one by one with :meth:`charge`, or for a whole job before its first round with :meth:`charge_all`:
    then :meth:`charge` finds each of them paid for, once, and writes nothing more. What was paid for and never released
    stays spent. Work that is priced before it runs is held with :meth:`hold` and settled with :meth:`settle`. A copy, a
    forked child and a restarted process own no payments and pay again.

    Parameters
    ----------
    ledger
        Where.
    dataset
        The data set's name, chosen by its owner.
    job, session
        Who asks.
    budget
        The job's. Its unit is what the charges protect. The job's accountant holds the job to its amount; the ledger
        holds all jobs together to the caps.
    fingerprint
        The table's (:mod:`~cloister.privacy.ledger.fingerprint`), for warnings.
    seeded
        The run takes its noise from a seed. It is never charged as private: with a cap it is refused, otherwise noted.

    Privacy
    -------
    Neighbours: add/remove one ``budget.unit``. Sensitivity: as each release declares. Event: all releases charged to
    the data set, by all jobs, seen together. Guarantee: within the data set's cap and the ledger's, if there are any;
    the theorems are in :mod:`~cloister.privacy.ledger.cost`.
    """

    def __init__(
        self,
        ledger: Ledger,
        *,
        dataset: str,
        job: str,
        session: bytes,
        budget: Budget,
        fingerprint: str | None = None,
        seeded: bool = False,
    ) -> None:
        self.ledger = ledger
        self.dataset = check_dataset(dataset)
        self.job = job
        self.session = session
        self.budget = budget
        self.fingerprint = fingerprint
        self.seeded = seeded
        self.warnings = () if fingerprint is None else ledger.compare_table(dataset, fingerprint)
        self._before = ledger.total(dataset, budget.unit)
        self._is_noted = False
        self._paid: Counter[Release] = Counter()
        self._lock = threading.Lock()
        self._process = os.getpid()

    def __reduce__(self) -> tuple[object, ...]:
        arguments = (self.dataset, self.job, self.session, self.budget, self.fingerprint, self.seeded)
        return _reopen_session, (self.ledger, *arguments)

    def charge(self, release: Release) -> None:
        """Charge one release; it is on the disk when this returns.

        Raises
        ------
        BudgetError
            If a cap would be passed; names spent, asked and cap. Nothing is written.
        LedgerError
            If the ledger cannot be written or trusted. The release must not go out.
        """
        if not self._take_paid(release):
            self._pay((release,))

    def charge_all(self, releases: Iterable[Release]) -> None:
        """Charge all releases of a job before its first round, all or none; raises as :meth:`charge`."""
        planned = tuple(releases)
        self._pay(planned)
        self._forget_parents_payments()
        with self._lock:
            self._paid.update(planned)

    def resume(self, releases: Iterable[Release], *, has_journal: bool) -> bool:
        """Take over what this session paid in a process that was stopped; return whether it had paid.

        Parameters
        ----------
        releases
            What was paid with :meth:`charge_all`.
        has_journal
            Whether the journal of what was released under that payment is at hand: without it, noise would be drawn
            again, and a second release must not go out under the first one's payment.

        Raises
        ------
        LedgerError
            If the session has paid, and there is no journal, or it has paid something else.
        """
        spent, planned = self.spent(), tuple(releases)
        if spent == Cost():
            return False
        cost = Cost()
        for release in planned:
            cost = cost.plus(price_release(release))
        if not has_journal or spent != cost:
            raise LedgerError(
                f"{self.ledger.path}: a session must be paid for once, by a role that still has its journal; this one "
                "was paid for, and its journal is gone or is another's. What was charged stays charged. Run the job "
                "again, in a new run."
            )
        self._forget_parents_payments()
        with self._lock:
            self._paid.update(planned)
        return True

    def check_all(self, releases: Iterable[Release]) -> None:
        """Raise as :meth:`charge_all` would now, and write nothing. Others may spend in between."""
        self._pay(tuple(releases), dry_run=True)

    def hold(self, releases: Iterable[Release], *, what: str) -> int:
        """Set aside what work may cost at most, before it runs; returns the hold's number.

        It counts as spent until it is settled, and for good if it never is. Releases under it are not charged again.

        Parameters
        ----------
        releases
            What the work would make at most.
        what
            The work, in plain words.
        """
        cost = Cost()
        for release in releases:
            cost = cost.plus(price_release(release))
        held = Hold(
            time=read_clock(),
            data=self.dataset,
            unit=self.budget.unit,
            job=self.job,
            session=self.session.hex(),
            what=what,
            **cost.fields(),
        )
        return self.ledger.write([held], check=lambda accounts: accounts.check_charges([held]), seen=self._table)

    def settle(self, hold: int, releases: Iterable[Release]) -> None:
        """Replace a hold by what was released under it; without any release nothing is spent.

        Raises
        ------
        BudgetError
            If that costs more than was held: then the hold stays.
        ConfigError
            If the hold is not open.
        """
        made = tuple(releases)
        cost = Cost()
        for release in made:
            cost = cost.plus(price_release(release))
        settled = Settle(time=read_clock(), data=self.dataset, hold=hold, releases=len(made), **cost.fields())
        self.ledger.write([settled], check=lambda accounts: accounts.check_settlement(settled))

    def spent(self) -> Cost:
        """Return what this session has paid or holds, in the file."""
        return self.ledger.spent_by(self.dataset, self.session.hex(), self.budget.unit)

    def spent_epsilon(self) -> float:
        """Return the same at its budget's delta."""
        return self.spent().epsilon(self.budget.delta)

    def state(self) -> Statement:
        """Return what this session did to the account, for its owner.

        Epsilons are stated for the job's unit, at its delta.
        """
        delta = self.budget.delta
        after = self.ledger.total(self.dataset, self.budget.unit)
        return Statement(
            path=self.ledger.path,
            dataset=self.dataset,
            unit=self.budget.unit,
            delta=delta,
            before=self._before.epsilon(delta),
            after=after.epsilon(delta),
            again=after.plus(self.spent()).epsilon(delta),
            cap=self.ledger.find_cap(self.dataset),
            cap_of_all=self.ledger.find_cap(None),
            seeded=self.seeded,
            warnings=self.warnings,
        )

    @property
    def _table(self) -> tuple[str, str] | None:
        return None if self.fingerprint is None else (self.dataset, self.fingerprint)

    def _pay(self, releases: Sequence[Release], *, dry_run: bool = False) -> None:
        """Charge releases in one transaction: all of them or, where they would pass a cap, none."""
        if not releases:
            return
        now, session = read_clock(), self.session.hex()
        if self.seeded:
            if self._is_noted:
                return
            note = Note(time=now, data=self.dataset, job=self.job, session=session, text=_SEEDED)
            self.ledger.write([note], check=lambda accounts: accounts.check_seeded(self.dataset), dry_run=dry_run)
            self._is_noted = not dry_run
            return
        charges = [
            make_charge(release, time=now, data=self.dataset, unit=self.budget.unit, job=self.job, session=session)
            for release in releases
        ]
        self.ledger.write(
            charges, check=lambda accounts: accounts.check_charges(charges), seen=self._table, dry_run=dry_run
        )

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


def _reopen_session(
    ledger: Ledger, dataset: str, job: str, session: bytes, budget: Budget, fingerprint: str | None, seeded: bool
) -> LedgerSession:
    """What a copy is: the same session without its payments."""
    return LedgerSession(
        ledger, dataset=dataset, job=job, session=session, budget=budget, fingerprint=fingerprint, seeded=seeded
    )
