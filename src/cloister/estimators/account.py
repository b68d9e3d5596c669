"""The account that fits are charged to: a ledger file and the data set's name, whatever becomes of the object.

scikit-learn copies an estimator's parameters: `clone` before every fit, pickles on the way to worker processes. A
counter in memory is copied with them and loses count. An account holds no count: every charge is read from and written
to the ledger file under its lock. It belongs to the data by name, so a fold with fewer rows is charged to the same one.
"""

from __future__ import annotations

from pathlib import Path

from cloister.errors import LedgerError
from cloister.job import Budget, OwnSide
from cloister.privacy.ledger import DataSummary, Ledger, default_ledger
from cloister.privacy.ledger.entries import check_dataset
from cloister.privacy.ledger.schema import make_folder


class Account:
    """One data set's account in a ledger file. Clones, copies and pickles are the same account.

    Parameters
    ----------
    path
        The ledger; made if it is not there. None: a file of the data set's own in the user's data folder.
    dataset
        What its owner calls the data. All fits under one name add up, however the rows change.

    Raises
    ------
    LedgerError
        If the file is no ledger, or was edited.
    """

    def __init__(self, path: str | Path | None, dataset: str) -> None:
        self.dataset = check_dataset(dataset)
        self.path = (default_ledger(dataset) if path is None else Path(path)).absolute()
        make_folder(self.path.parent)
        with Ledger(self.path) as ledger:
            self._identity = ledger.identity

    def __sklearn_clone__(self) -> Account:
        return self

    def __copy__(self) -> Account:
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> Account:
        return self

    def __reduce__(self) -> tuple[object, ...]:
        return _reopen, (str(self.path), self.dataset, self._identity)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Account) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __repr__(self) -> str:
        return f"Account({str(self.path)!r}, {self.dataset!r})"

    @property
    def _key(self) -> tuple[Path, str, str]:
        return self.path, self.dataset, self._identity

    def open(self) -> Ledger:
        """Open the ledger, which must be the one that the account was made with.

        Raises
        ------
        LedgerError
            If the file is gone, or another: on another host, say. A new one would forget what was spent.
        """
        ledger = Ledger(self.path, create=False)
        if ledger.identity != self._identity:
            ledger.close()
            raise LedgerError(
                f"{self.path} must be the ledger that this account was made with; it is another. Restore it, or make a "
                "new Account if it is meant to start afresh."
            )
        return ledger

    def open_side(self) -> OwnSide:
        """Return where a fit finds the ledger and the data set's name."""
        self.open().close()
        return OwnSide(ledger=self.path, dataset=self.dataset)

    def set_cap(self, budget: Budget, *, reason: str) -> None:
        """Bound what all fits, searches and jobs on this data set may cost together, from now on."""
        with self.open() as ledger:
            ledger.set_cap(self.dataset, budget, reason=reason)

    def summarise(self) -> DataSummary:
        """Return what the data set has paid, and its cap."""
        with self.open() as ledger:
            return ledger.summarise_one(self.dataset)


def _reopen(path: str, dataset: str, identity: str) -> Account:
    """What a pickle is: the same account. A model that is passed on can predict; to fit, the file must be there."""
    account = Account.__new__(Account)
    account.path, account.dataset, account._identity = Path(path), dataset, identity
    return account
