"""All accounts of one ledger: which data set an entry belongs to, and what all of them may cost together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cloister.errors import BudgetError, ConfigError, LedgerError
from cloister.privacy.ledger.account import Account
from cloister.privacy.ledger.entries import Cap, Charge, Entry, Hold, Join, Settle, is_old_name
from cloister.privacy.ledger.fingerprint import fingerprint_label


class Accounts:
    """What the entries so far add up to, data set by data set and for all together.

    Parameters
    ----------
    salt
        The ledger's, by which names of schema 1 are recognised.
    """

    def __init__(self, salt: bytes) -> None:
        self.everything = Account(name=None)
        self._salt = salt
        self._accounts: dict[str, Account] = {}
        self._others: dict[str, str] = {}  # names that were joined to another
        self._knows_old = False

    def __iter__(self) -> Iterator[Account]:
        return iter(self._accounts.values())

    def find(self, name: str) -> Account | None:
        """Return the account of a data set by any of its names; None if nothing was written about it."""
        return self._accounts.get(self._resolve(name))

    def are_same(self, name: str, other: str) -> bool:
        """Whether two names mean one data set."""
        return self._resolve(name) == self._resolve(other)

    def take_in(self, number: int, entry: Entry) -> None:
        """Add one entry to the account that it belongs to, and to the sum of all."""
        if isinstance(entry, Cap):
            account = self.everything if entry.data is None else self._open(entry.data)
            account.cap = entry
        elif isinstance(entry, Join):
            self._join(number, entry)
        else:
            self._open(entry.data).record(number, entry)
            self.everything.record(number, entry)

    def check_charges(self, asked: Sequence[Charge | Hold]) -> None:
        """Raise if these, all on one data set, do not fit its cap or that of all."""
        account = self.find(asked[0].data)
        if account is not None:
            account.check_cap(asked)
        self.everything.check_cap(asked)

    def check_seeded(self, name: str) -> None:
        """Raise if a run whose noise comes from a seed must not read this data set."""
        account = self.find(name)
        caps = (self.everything.cap, None if account is None else account.cap)
        if any(cap is not None for cap in caps):
            raise BudgetError(
                f"a run on data set {name!r}, which has a cap, must take its noise from the operating system; got a "
                "seed, with which anyone can take the noise away. Nothing was charged or released. Remove the seed, or "
                "use another table."
            )

    def check_settlement(self, entry: Settle) -> None:
        """Raise if there is no such open hold, or it held less."""
        account = self.find(entry.data)
        hold = None if account is None else account.open.get(entry.hold)
        if hold is None:
            raise ConfigError(f"a hold must be open to be settled; number {entry.hold} is not. Hold before the work.")
        if not entry.cost.is_within(hold.cost):
            raise BudgetError(
                f"work must cost at most what was held for it, rho = {hold.rho:.6g}; got rho = {entry.rho:.6g}. "
                "Nothing was settled: the whole hold stays spent. Hold enough before the work."
            )

    def check_join(self, data: str, into: str) -> None:
        """Raise if two names cannot become one."""
        if self.find(data) is None:
            raise ConfigError(f"a name that is joined must be in the ledger; {data!r} is not. Check `ledger show`.")
        if self.are_same(data, into):
            raise ConfigError(f"two names must be joined at most once; {data!r} and {into!r} are one data set already.")

    def _open(self, name: str) -> Account:
        self._knows_old |= is_old_name(name)
        key = self._resolve(name)
        account = self._accounts.setdefault(key, Account(name=name))
        if is_old_name(account.name or "") and not is_old_name(name):
            account.name = name  # said by its owner since
        return account

    def _join(self, number: int, entry: Join) -> None:
        source, target = self._resolve(entry.data), self._resolve(entry.into)
        if source == target or source not in self._accounts:
            raise LedgerError(f"ledger entry {number} must join two data sets; it does not.")
        self._open(entry.into).absorb(self._accounts.pop(source))
        self._others[source] = target

    def _resolve(self, name: str) -> str:
        """Return the key of a name: where it was joined to, or the fingerprint by which schema 1 knew it."""
        if self._knows_old and not is_old_name(name):
            old = fingerprint_label(name, salt=self._salt)
            if old in self._accounts or old in self._others:
                name = old
        while name in self._others:
            name = self._others[name]
        return name
