"""Books: what one party charges before a value leaves, and the card that follows from what was charged.

A job's rounds are often not known before the first: later ones depend on what earlier ones release. The party's ledger
then pays once, in advance, for the most that all rounds may cost, and each round must fit what is left of that
prepayment.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from cloister.crypto import Stream
from cloister.errors import BudgetError, told_to_owner
from cloister.privacy.accounting import BY_LOSS_DISTRIBUTIONS, Accountant, Spent
from cloister.privacy.calibration import SLACK
from cloister.privacy.card import Circumstances, PrivacyCard, make_card
from cloister.privacy.costs import rho_of
from cloister.privacy.ledger import LedgerSession
from cloister.privacy.mechanisms import Release
from cloister.privacy.placement import Aggregator, Placement
from cloister.privacy.release import Charger, NoiseDuty
from cloister.privacy.samplers import ExactSampler, Sampler
from cloister.privacy.simulation_sampler import SimulationSampler
from cloister.privacy.units import Budget, LeakageTable


@dataclass(frozen=True, kw_only=True)
class Charges:
    """What a job's releases may cost, and who pays when.

    Attributes
    ----------
    budget, placement
        What is allowed, and who adds the noise.
    prepaid
        What each ledger is charged before the first round.
    prepayment
        All rounds as one payment, where they are not known before the first; each round is then taken out of it.
    by_rho
        Whether rounds have noise of different scales, so that only their rho can be compared with the payment's.
    plan
        All rounds, where they are known and the accountant's tighter rules apply.
    coordinator_books
        Makes the books of a coordinator that adds noise; None where it never does.
    parties_pay
        Whether the parties charge their books; otherwise only the coordinator's are.
    """

    budget: Budget
    placement: Placement
    prepaid: tuple[Release, ...] = ()
    prepayment: Release | None = None
    by_rho: bool = False
    plan: tuple[Release, ...] | None = None
    coordinator_books: Callable[[], Charger] | None = None
    parties_pay: bool = True


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
    party
        Whose books they are.
    accountant
        Charged for each round.
    ledger
        Charged for each round too, unless there is a prepayment.
    prepayment
        What the ledger has paid, or would have, for all rounds at once.
    """

    party: str
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


def make_sampler(role: str, seed: int | None) -> Sampler:
    """Return exact noise, or reproducible noise where there is a seed; each role has its own stream."""
    return ExactSampler() if seed is None else SimulationSampler(Stream.from_seed(seed, "noise", role))


def open_books(party: str, *, charges: Charges, ledger: LedgerSession | None) -> Books:
    """Open ONE party's books: its accountant for this job and, if it keeps one, its ledger.

    Raises
    ------
    BudgetError
        If all rounds together do not fit the budget.
    """
    prepayment = None
    if charges.prepayment is not None:
        price_prepayment(charges)
        prepayment = (RhoPrepayment if charges.by_rho else Prepayment)(charges.prepayment)
    return Books(
        party=party,
        accountant=Accountant(charges.budget, plan=charges.plan),
        ledger=ledger,
        prepayment=prepayment,
    )


def prepay(books: Sequence[Books], releases: Sequence[Release], *, resumed: bool = False) -> None:
    """Charge ledgers for the whole job before its first round, or refuse the job before anyone has paid.

    Paid in advance, a job cannot be stopped half-way because another one spent the rest of the cap. What a run that
    aborts has not released stays spent. A session that was ``resumed`` from its journal has paid, or pays now.

    Raises
    ------
    AbsentError
        If a party's ledger refuses. Its owner alone is told why: what else was spent is nobody else's business.
    """
    for pay in (_go_on,) if resumed else (LedgerSession.check_all, LedgerSession.charge_all):
        for book in books:
            if book.ledger is None:
                continue
            with told_to_owner(book.party):
                try:
                    pay(book.ledger, releases)
                except BudgetError as error:
                    raise BudgetError(f"party {book.party!r} ({book.ledger.ledger.path}): {error}") from None


def _go_on(ledger: LedgerSession, releases: Sequence[Release]) -> None:
    if not ledger.resume(releases, has_journal=True):
        ledger.charge_all(releases)


def price_prepayment(charges: Charges) -> Spent | None:
    """Return what all rounds cost as one payment, which must fit the budget; None where rounds are paid one by one."""
    if charges.prepayment is None:
        return None
    payer = Accountant(charges.budget)
    payer.charge(charges.prepayment)
    return replace(payer.spent(), how="zCDP: all rounds were paid for at once, and those that ran cost no more")


@dataclass(frozen=True, kw_only=True)
class JobBooks:
    """The books that a card is made from: one party's in a deployment, everybody's in a simulation.

    Attributes
    ----------
    charges
        What was agreed about payment.
    leakage
        Whom the promise withstands, and which coalition breaks it.
    parties
        The parties' books that are at hand.
    coordinator
        The coordinator's, where it adds the noise.
    seeded
        Whether noise came from a seed.
    """

    charges: Charges
    leakage: LeakageTable
    parties: tuple[Books, ...] = ()
    coordinator: NoiseDuty | None = None
    seeded: bool = False

    def make_card(self, circumstances: Circumstances) -> PrivacyCard:
        """Return the card of the party that was charged most: the one that took part in most rounds.

        With a prepayment the cost is the prepayment's. Which rounds run depends on released values, and then the sum
        of those that ran is no guarantee (`Accountant`); that all of them fit the payment is.
        """
        spent = max(self._list_spent(), key=lambda spent: spent.epsilon)
        price = price_prepayment(self.charges)
        if price is not None:
            spent = replace(price, releases=self._join_releases() if self.charges.by_rho else spent.releases)
        return make_card(
            spent,
            budget=self.charges.budget,
            placement=self.charges.placement,
            leakage=self.leakage,
            seeded=self.seeded,
            circumstances=circumstances,
        )

    def _list_spent(self) -> list[Spent]:
        if self.charges.parties_pay:
            return [book.accountant.spent() for book in self.parties]
        assert self.coordinator is not None
        assert isinstance(self.coordinator.charger, Accountant)
        return [self.coordinator.charger.spent()]

    def _join_releases(self) -> tuple[Release, ...]:
        """Every release of any party, once: where parties hold columns of the same records, all are about these."""
        joined: list[Release] = []
        for spent in self._list_spent():
            rest = list(joined)
            for release in spent.releases:
                if release in rest:
                    rest.remove(release)
                else:
                    joined.append(release)
        return tuple(joined)

    def describe_ledgers(self, card: PrivacyCard) -> tuple[str, ...]:
        """Say where ledgers were charged more than the card says: they add up in zCDP, whatever the card's rule is."""
        charged = any(book.ledger is not None and not book.ledger.seeded for book in self.parties)
        if card.how_composed != BY_LOSS_DISTRIBUTIONS or not charged:
            return ()
        return (
            "Ledgers add up in zCDP: they were charged more than this card says, whose rule is privacy loss "
            "distributions.",
        )

    def close(self) -> None:
        """Close every ledger file."""
        for book in self.parties:
            if book.ledger is not None:
                book.ledger.ledger.close()


def open_coordinator_duty(charges: Charges, sampler: Sampler) -> NoiseDuty | None:
    """Return what the coordinator needs where it adds the noise."""
    if charges.coordinator_books is None or not isinstance(charges.placement, Aggregator):
        return None
    return NoiseDuty(charger=charges.coordinator_books(), sampler=sampler)
