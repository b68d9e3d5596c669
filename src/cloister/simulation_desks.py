"""Who keeps which books in a simulated job: each party its accountant and ledger, the coordinator its noise.

In a deployment each desk stands in its own organisation; a simulation sets them all up, from the same job file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from cloister.crypto import Stream
from cloister.data import Table
from cloister.data.aligned_table import AlignedTable
from cloister.errors import BudgetError, ConfigError
from cloister.job import Job, JobParty
from cloister.job.checks import COORDINATOR
from cloister.privacy.accounting import Accountant, Spent
from cloister.privacy.books import Books, Prepayment, RhoPrepayment
from cloister.privacy.card import PrivacyCard, make_card
from cloister.privacy.card_warnings import Circumstances
from cloister.privacy.ledger import Ledger, LedgerSession, fingerprint_label, fingerprint_records
from cloister.privacy.mechanisms import Release
from cloister.privacy.placement import Aggregator, Joint, Local, Placement, Shared
from cloister.privacy.release import Charger, NoiseDuty
from cloister.privacy.samplers import ExactSampler, Sampler
from cloister.privacy.simulation_sampler import SimulationSampler
from cloister.privacy.units import Budget


def make_placement(job: Job) -> Placement:
    """Say who adds a job's noise."""
    match job.protocol.placement:
        case "shared":
            colluding = job.protocol.resolve_colluding_max(len(job.parties))
            return Shared(parties=len(job.parties), colluding_max=colluding or 0)
        case "local":
            return Local(parties=len(job.parties))
        case "joint":
            return Joint(parties=len(job.parties))
        case _:
            return Aggregator()


@dataclass(frozen=True, kw_only=True)
class Desks:
    """The books and samplers of all roles of a differentially private job."""

    budget: Budget
    placement: Placement
    breaks_if: str
    books: tuple[Books, ...]
    samplers: tuple[Sampler, ...]
    coordinator: NoiseDuty | None
    """What the coordinator needs, where it adds the noise."""
    envelope_price: Spent | None = None
    """What all rounds as one payment cost."""
    shared_records: bool = False
    """Whether all parties hold the same records, in different columns: what one releases, all have released."""

    def _join_releases(self) -> tuple[Release, ...]:
        """Every release of any party, once: all of them are about the same records."""
        joined: list[Release] = []
        for book in self.books:
            rest = list(joined)
            for release in book.accountant.spent().releases:
                if release in rest:
                    rest.remove(release)
                else:
                    joined.append(release)
        return tuple(joined)

    def pay_ledgers(self, releases: Sequence[Release]) -> None:
        """Charge every ledger for the whole job before its first round, or refuse the job before anyone has paid.

        Paid in advance, a job cannot be stopped half-way because another one spent the rest of the cap. What a run that
        aborts has not released stays spent.

        Raises
        ------
        BudgetError
            If a data set's cap would be passed; names the party and its file.
        """
        for pay in (LedgerSession.check_all, LedgerSession.charge_all):
            for book in self.books:
                if book.ledger is None:
                    continue
                try:
                    pay(book.ledger, releases)
                except BudgetError as error:
                    raise BudgetError(f"{book.owner}: {error}") from None

    def close(self) -> None:
        """Close every ledger file."""
        for book in self.books:
            if book.ledger is not None:
                book.ledger.ledger.close()

    def of_party(self, number: int) -> NoiseDuty:
        """What party ``number`` needs."""
        return NoiseDuty(charger=self.books[number - 1], sampler=self.samplers[number - 1])

    def make_card(self, circumstances: Circumstances, *, middleman: str = "coordinator") -> PrivacyCard:
        """The card of the party that was charged most: the one that took part in most rounds.

        With an envelope the cost is the envelope's. Which rounds run depends on released values, and then the sum of
        those that ran is no guarantee (`Accountant`); that all of them fit the envelope is.
        """
        spent = max((book.accountant.spent() for book in self.books), key=lambda spent: spent.epsilon)
        if self.envelope_price is not None:
            releases = self._join_releases() if self.shared_records else spent.releases
            spent = replace(self.envelope_price, releases=releases)
        return make_card(
            spent,
            budget=self.budget,
            placement=self.placement,
            breaks_if=self.breaks_if,
            is_simulation=any(sampler.is_simulation for sampler in self.samplers),
            circumstances=circumstances,
            middleman=middleman,
        )


def open_desks(
    job: Job,
    *,
    budget: Budget,
    placement: Placement,
    breaks_if: str,
    tables: Sequence[Table | AlignedTable],
    session: bytes,
    coordinators_books: Charger | None,
    envelope: Release | None = None,
    by_rho: bool = False,
    plan: Sequence[Release] | None = None,
) -> Desks:
    """Set up everybody's books.

    Parameters
    ----------
    job, budget, placement, breaks_if
        What was agreed.
    tables, session
        What is released from, and when.
    coordinators_books
        Charged by the coordinator, where it adds the noise.
    envelope
        All rounds as one payment, where they are not known before the first.
    by_rho
        Whether rounds have noise of different scales, so that only their rho can be compared with the payment's.
    plan
        All rounds, where they are: tighter rules then apply (`Accountant`).

    Raises
    ------
    BudgetError
        If the envelope, or the plan, does not fit the budget.
    """
    price = None if envelope is None else _price_envelope(envelope, budget)
    books = tuple(
        Books(
            owner=f"party {party.name!r}" + ("" if job.ledger is None else f" ({_name_ledger(job.ledger, party)})"),
            accountant=Accountant(budget, plan=plan),
            ledger=_open_ledger(job, party, table, session, budget),
            prepayment=None if envelope is None else (RhoPrepayment if by_rho else Prepayment)(envelope),
        )
        for party, table in zip(job.parties, tables, strict=True)
    )
    samplers = tuple(make_sampler(job, party.name) for party in job.parties)
    duty = None
    if placement.by_coordinator and coordinators_books is not None:
        duty = NoiseDuty(charger=coordinators_books, sampler=make_sampler(job, COORDINATOR))
    return Desks(
        budget=budget,
        placement=placement,
        breaks_if=breaks_if,
        books=books,
        samplers=samplers,
        coordinator=duty,
        envelope_price=price,
        shared_records=by_rho,
    )


def _price_envelope(envelope: Release, budget: Budget) -> Spent:
    """What all rounds cost as one payment, which must fit the budget."""
    payer = Accountant(budget)
    payer.charge(envelope)
    return replace(payer.spent(), how="zCDP: all rounds as one payment, which those that ran did not exceed")


def _name_ledger(folder: str, party: JobParty) -> Path:
    return Path(folder) / f"{party.name}.ledger"


def make_sampler(job: Job, role: str) -> Sampler:
    """Exact noise, or reproducible noise where the job has a seed; each role has its own stream."""
    return ExactSampler() if job.seed is None else SimulationSampler(Stream.from_seed(job.seed, "noise", role))


def _open_ledger(
    job: Job, party: JobParty, table: Table | AlignedTable, session: bytes, budget: Budget
) -> LedgerSession | None:
    """A party's ledger: one file a party in the job's ledger folder; none for a party that holds no records."""
    if job.ledger is None or not table.dimensions:
        return None
    folder = job.folder / job.ledger
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"ledger.path must be a folder, which holds one file a party; got the file {folder}.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise ConfigError(f"ledger.path must be a folder that can be made; got {folder}: {reason}.") from None
    ledger = Ledger(job.folder / _name_ledger(job.ledger, party))
    if party.dataset is None:
        fingerprint = fingerprint_records(table.raw_batches(), columns=table.dimensions, salt=ledger.salt)
    else:
        fingerprint = fingerprint_label(party.dataset, salt=ledger.salt)
    return ledger.open_session(fingerprint=fingerprint, job=job.name, session=session, budget=budget)
