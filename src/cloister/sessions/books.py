"""Books: what one party pays before its values leave, and the card that follows from what was paid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from cloister.crypto import Stream
from cloister.errors import BudgetError, ConfigError
from cloister.job import COORDINATOR, Job, OwnSide
from cloister.privacy.accounting import Accountant, Spent
from cloister.privacy.books import Books, Prepayment, RhoPrepayment
from cloister.privacy.card import Circumstances, PrivacyCard, make_card
from cloister.privacy.fingerprint import fingerprint_label, fingerprint_records
from cloister.privacy.ledger import Ledger, LedgerSession
from cloister.privacy.mechanisms import Release
from cloister.privacy.placement import Aggregator
from cloister.privacy.release import NoiseDuty
from cloister.privacy.samplers import ExactSampler, Sampler
from cloister.privacy.simulation_sampler import SimulationSampler
from cloister.protocol import Charges
from cloister.records import FloatArray


class Fingerprinted(Protocol):
    """A table whose whole content a ledger can recognise."""

    @property
    def dimensions(self) -> int: ...

    def raw_batches(self) -> Sequence[FloatArray]: ...


def make_sampler(role: str, seed: int | None) -> Sampler:
    """Return exact noise, or reproducible noise where there is a seed; each role has its own stream."""
    return ExactSampler() if seed is None else SimulationSampler(Stream.from_seed(seed, "noise", role))


def open_books(
    job: Job, party: str, own: OwnSide, table: Fingerprinted, *, charges: Charges, session: bytes
) -> Books:
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
        owner=f"party {party!r}" + ("" if own.ledger is None else f" ({own.ledger})"),
        accountant=Accountant(charges.budget, plan=charges.plan),
        ledger=_open_ledger(job, own, table, session, charges),
        prepayment=prepayment,
    )


def prepay(books: Sequence[Books], releases: Sequence[Release]) -> None:
    """Charge ledgers for the whole job before its first round, or refuse the job before anyone has paid.

    Paid in advance, a job cannot be stopped half-way because another one spent the rest of the cap. What a run that
    aborts has not released stays spent.

    Raises
    ------
    BudgetError
        If a data set's cap would be passed; names the party and its file.
    """
    for pay in (LedgerSession.check_all, LedgerSession.charge_all):
        for book in books:
            if book.ledger is None:
                continue
            try:
                pay(book.ledger, releases)
            except BudgetError as error:
                raise BudgetError(f"{book.owner}: {error}") from None


def price_prepayment(charges: Charges) -> Spent | None:
    """Return what all rounds cost as one payment, which must fit the budget; None where rounds are paid one by one."""
    if charges.prepayment is None:
        return None
    payer = Accountant(charges.budget)
    payer.charge(charges.prepayment)
    return replace(payer.spent(), how="zCDP: all rounds as one payment, which those that ran did not exceed")


@dataclass(frozen=True, kw_only=True)
class JobBooks:
    """The books that a card is made from: one party's in a deployment, everybody's in a simulation.

    Attributes
    ----------
    charges
        What was agreed about payment.
    breaks_if
        Which coalition breaks the promise.
    parties
        The parties' books that are at hand.
    coordinator
        The coordinator's, where it adds the noise.
    seeded
        Whether noise came from a seed.
    """

    charges: Charges
    breaks_if: str
    parties: tuple[Books, ...] = ()
    coordinator: NoiseDuty | None = None
    seeded: bool = False

    def make_card(self, circumstances: Circumstances, *, middleman: str = "coordinator") -> PrivacyCard:
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
            breaks_if=self.breaks_if,
            is_simulation=self.seeded,
            circumstances=circumstances,
            middleman=middleman,
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

    def close(self) -> None:
        """Close every ledger file."""
        for book in self.parties:
            if book.ledger is not None:
                book.ledger.ledger.close()


def open_coordinator_duty(charges: Charges, seed: int | None) -> NoiseDuty | None:
    """Return what the coordinator needs where it adds the noise."""
    if charges.coordinator_books is None or not isinstance(charges.placement, Aggregator):
        return None
    return NoiseDuty(charger=charges.coordinator_books(), sampler=make_sampler(COORDINATOR, seed))


def _open_ledger(
    job: Job, own: OwnSide, table: Fingerprinted, session: bytes, charges: Charges
) -> LedgerSession | None:
    """Open one party's ledger; none for a party that holds no records."""
    if own.ledger is None or not table.dimensions:
        return None
    _make_folder(own.ledger.parent)
    ledger = Ledger(own.ledger)
    if own.dataset is None:
        fingerprint = fingerprint_records(table.raw_batches(), columns=table.dimensions, salt=ledger.salt)
    else:
        fingerprint = fingerprint_label(own.dataset, salt=ledger.salt)
    return ledger.open_session(fingerprint=fingerprint, job=job.name, session=session, budget=charges.budget)


def _make_folder(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"ledger.path must be a folder, which holds one file per party; got the file {folder}.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise ConfigError(f"ledger.path must be a folder that can be made; got {folder}: {reason}.") from None
