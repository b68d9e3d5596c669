"""Who keeps which books in a simulated job: each party its accountant and ledger, the coordinator its noise.

In a deployment each desk stands in its own organisation; a simulation sets them all up, from the same job file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cloister.crypto import Stream
from cloister.data import Table
from cloister.errors import BudgetError, ConfigError
from cloister.job import Job, JobParty
from cloister.privacy.accounting import Accountant
from cloister.privacy.card import PrivacyCard, make_card
from cloister.privacy.fingerprint import fingerprint_label, fingerprint_records
from cloister.privacy.ledger import Ledger, LedgerSession
from cloister.privacy.mechanisms import Release
from cloister.privacy.placement import Aggregator, Local, Placement, Shared
from cloister.privacy.release import Charger, NoiseDuty
from cloister.privacy.samplers import ExactSampler, Sampler
from cloister.privacy.simulation_sampler import SimulationSampler
from cloister.privacy.units import Budget

COORDINATOR = "coordinator"


def make_placement(job: Job) -> Placement:
    """Say who adds a job's noise."""
    match job.protocol.placement:
        case "shared":
            return Shared(parties=len(job.parties), colluding_max=job.protocol.colluding_max or 0)
        case "local":
            return Local(parties=len(job.parties))
        case _:
            return Aggregator()


class Envelope:
    """One payment for all rounds of a job, drawn down round by round.

    A ledger is paid before the first round, when later rounds are not yet known: they depend on what earlier ones
    release. So it pays for the most that all of them may be, and each round must fit what is left of it.

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
            If it has other noise, or is more than what is left; nothing is taken.
        """
        l1, l2_squared = self._l1 - release.sensitivity.l1, self._l2_squared - release.sensitivity.l2_squared
        entries = self._entries - release.entries
        if release.mechanism != self._mechanism or min(l1, l2_squared, entries) < 0:
            raise BudgetError(
                f"every round must fit the payment made before the first; {release.name!r} has other noise than was "
                "paid for, or more sensitivity than is left of it. Nothing was released: this is a bug in a protocol."
            )
        self._l1, self._l2_squared, self._entries = l1, l2_squared, entries


@dataclass(frozen=True, kw_only=True)
class Books:
    """One party's charger: its accountant for this job and, if it keeps one, its ledger for good.

    Attributes
    ----------
    accountant
        Charged for each round.
    ledger
        Charged for each round too, unless there is an envelope.
    envelope
        What the ledger has paid, or would have, for all rounds at once.
    """

    accountant: Accountant
    ledger: LedgerSession | None = None
    envelope: Envelope | None = None

    def charge(self, release: Release) -> None:
        """Charge all, the accountant first: it has nothing to undo if another refuses, since the run then stops."""
        self.accountant.charge(release)
        if self.envelope is not None:
            self.envelope.charge(release)
        elif self.ledger is not None:
            self.ledger.charge(release)


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

    def pay_ledgers(self, releases: Sequence[Release]) -> None:
        """Charge every ledger for the whole job before its first round, or refuse the job before anyone has paid.

        Paid in advance, a job cannot be stopped half-way because another one spent the rest of the cap. What a run that
        aborts has not released stays spent.
        """
        ledgers = [book.ledger for book in self.books if book.ledger is not None]
        for ledger in ledgers:
            ledger.check_all(releases)
        for ledger in ledgers:
            ledger.charge_all(releases)

    def close(self) -> None:
        """Close every ledger file."""
        for book in self.books:
            if book.ledger is not None:
                book.ledger.ledger.close()

    def of_party(self, number: int) -> NoiseDuty:
        """What party ``number`` needs."""
        return NoiseDuty(charger=self.books[number - 1], sampler=self.samplers[number - 1])

    def make_card(
        self, *, estimated_records: float | None, centre_noise: float | None, shares_missing: int
    ) -> PrivacyCard:
        """The card of the party that was charged most: the one that took part in most rounds.

        ``shares_missing`` is of the round in which most parties were missing: a missing share of the noise is one that
        colluding parties need not know.
        """
        spent = max((book.accountant.spent() for book in self.books), key=lambda spent: spent.epsilon)
        return make_card(
            spent,
            budget=self.budget,
            placement=self.placement,
            breaks_if=self.breaks_if,
            is_simulation=any(sampler.is_simulation for sampler in self.samplers),
            estimated_records=estimated_records,
            centre_noise=centre_noise,
            shares_missing=shares_missing,
        )


def open_desks(
    job: Job,
    *,
    budget: Budget,
    placement: Placement,
    breaks_if: str,
    tables: Sequence[Table],
    session: bytes,
    coordinators_books: Charger,
    envelope: Release | None = None,
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
    """
    books = tuple(
        Books(
            accountant=Accountant(budget),
            ledger=_open_ledger(job, party, table, session, budget),
            envelope=None if envelope is None else Envelope(envelope),
        )
        for party, table in zip(job.parties, tables, strict=True)
    )
    samplers = tuple(_make_sampler(job, party.name) for party in job.parties)
    duty = None
    if isinstance(placement, Aggregator):
        duty = NoiseDuty(charger=coordinators_books, sampler=_make_sampler(job, COORDINATOR))
    return Desks(
        budget=budget, placement=placement, breaks_if=breaks_if, books=books, samplers=samplers, coordinator=duty
    )


def _make_sampler(job: Job, role: str) -> Sampler:
    """Exact noise, or reproducible noise where the job has a seed; each role has its own stream."""
    return ExactSampler() if job.seed is None else SimulationSampler(Stream.from_seed(job.seed, "noise", role))


def _open_ledger(job: Job, party: JobParty, table: Table, session: bytes, budget: Budget) -> LedgerSession | None:
    """A party's ledger: one file a party in the job's ledger folder."""
    if job.ledger is None:
        return None
    folder = job.folder / job.ledger
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"ledger.path must be a folder, which holds one file a party; got the file {folder}.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise ConfigError(f"ledger.path must be a folder that can be made; got {folder}: {reason}.") from None
    ledger = Ledger(folder / f"{party.name}.ledger")
    if party.dataset is None:
        fingerprint = fingerprint_records(table.raw_batches(), salt=ledger.salt)
    else:
        fingerprint = fingerprint_label(party.dataset, salt=ledger.salt)
    return ledger.open_session(fingerprint=fingerprint, job=job.name, session=session, budget=budget)
