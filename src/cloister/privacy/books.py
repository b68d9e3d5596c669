"""One party's books: what it charges before a value leaves.

A job's rounds are often not known before the first: later ones depend on what earlier ones release. The party's ledger
then pays once, in advance, for the most that all rounds may cost, and each round must fit what is left of that
prepayment.
"""

from __future__ import annotations

from dataclasses import dataclass

from cloister.errors import BudgetError
from cloister.privacy.accounting import Accountant
from cloister.privacy.calibration import SLACK
from cloister.privacy.costs import rho_of
from cloister.privacy.ledger import LedgerSession
from cloister.privacy.mechanisms import Release


class Prepayment:
    """One payment for all rounds of a job, drawn down round by round. All rounds have the payment's noise.

    Privacy
    -------
    Rounds with the payment's noise whose squared L2 norms, L1 norms and entries add up to no more than the payment's
    cost no more than it: a discrete Gaussian's rho is linear in the squared L2 norm, that of a sum of them in both
    norms (docs/proofs/accounting.md).
    """

    def __init__(self, paid: Release) -> None:
        self._mechanism = paid.mechanism
        self._l1, self._l2_squared, self._entries = paid.sensitivity.l1, paid.sensitivity.l2_squared, paid.entries

    def charge(self, release: Release) -> None:
        """Take a round out of the payment.

        Raises
        ------
        BudgetError
            If its noise differs, or it is more than what is left; nothing is taken.
        """
        l1, l2_squared = self._l1 - release.sensitivity.l1, self._l2_squared - release.sensitivity.l2_squared
        entries = self._entries - release.entries
        if release.mechanism != self._mechanism or min(l1, l2_squared, entries) < 0:
            raise BudgetError(
                f"every round must fit the payment made before the first; {release.name!r} has other noise than was "
                "paid for, or more sensitivity than is left of it. Nothing was released: this is a bug in a protocol."
            )
        self._l1, self._l2_squared, self._entries = l1, l2_squared, entries


class RhoPrepayment:
    """One payment for all rounds of a job whose noise differs from round to round: each takes its rho out of it.

    Privacy
    -------
    zCDP adds up, even where later releases are chosen after seeing earlier ones: rounds whose rho add up to no more
    than the payment's cost no more than it (docs/proofs/accounting.md).
    """

    def __init__(self, paid: Release) -> None:
        self._left = rho_of(paid) * SLACK

    def charge(self, release: Release) -> None:
        """Take a round out of the payment.

        Raises
        ------
        BudgetError
            If it is more than what is left; nothing is taken.
        """
        left = self._left - rho_of(release)
        if left < 0:
            raise BudgetError(
                f"every round must fit the payment made before the first; {release.name!r} costs more than is left of "
                "it. Nothing was released: this is a bug in a protocol."
            )
        self._left = left


@dataclass(frozen=True, kw_only=True)
class Books:
    """One party's charger: its accountant for this job and, if it keeps one, its ledger for good.

    Attributes
    ----------
    owner
        The party and its file, as messages call them.
    accountant
        Charged for each round.
    ledger
        Charged for each round too, unless there is a prepayment.
    prepayment
        What the ledger has paid, or would have, for all rounds at once.
    """

    owner: str
    accountant: Accountant
    ledger: LedgerSession | None = None
    prepayment: Prepayment | RhoPrepayment | None = None

    def charge(self, release: Release) -> None:
        """Charge all, the accountant first: it has nothing to undo if another refuses, since the run then stops."""
        self.accountant.charge(release)
        if self.prepayment is not None:
            self.prepayment.charge(release)
        elif self.ledger is not None:
            self.ledger.charge(release)
