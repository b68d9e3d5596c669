"""Who keeps which books in a simulated job: each party its accountant and ledger, the coordinator its noise.

In a deployment each desk stands in its own organisation; a simulation sets them all up, from the same job file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cloister.crypto import Stream
from cloister.data import Table
from cloister.errors import ConfigError
from cloister.job import Job, JobParty
from cloister.numeric import FixedPoint
from cloister.privacy.accounting import Accountant
from cloister.privacy.card import PrivacyCard, make_card
from cloister.privacy.fingerprint import fingerprint_label, fingerprint_records
from cloister.privacy.ledger import Ledger, LedgerSession
from cloister.privacy.mechanisms import Release
from cloister.privacy.placement import Aggregator, Local, Placement, Shared
from cloister.privacy.release import NoiseDuty
from cloister.privacy.samplers import ExactSampler, Sampler
from cloister.privacy.simulation_sampler import SimulationSampler
from cloister.privacy.units import Budget
from cloister.protocols.multiparty_lloyd import Agreement, LloydParty, NoisePlan, plan_noise

COORDINATOR = "coordinator"


def make_noise_plan(job: Job) -> NoisePlan | None:
    """Plan a job's noise from its public values; None for a protocol without noise."""
    if job.budget is None:
        return None
    options = job.protocol
    fixed_point = FixedPoint(options.fractional_bits)
    bound = options.norm_bound
    return plan_noise(
        job.budget,
        kind=options.noise or "gaussian",
        iterations=options.iterations,
        clusters=job.k,
        dimensions=len(job.columns),
        fixed_point=fixed_point,
        norm_bound=None if bound is None else max(1, int(bound * fixed_point.scale)),
        placement=_make_placement(job),
    )


def _make_placement(job: Job) -> Placement:
    match job.protocol.placement:
        case "shared":
            return Shared(parties=len(job.parties), colluding_max=job.protocol.colluding_max or 0)
        case "local":
            return Local(parties=len(job.parties))
        case _:
            return Aggregator()


@dataclass(frozen=True)
class Books:
    """One party's charger: its accountant for this job and, if it keeps one, its ledger for good."""

    accountant: Accountant
    ledger: LedgerSession | None = None

    def charge(self, release: Release) -> None:
        """Charge both, the accountant first: it has nothing to undo if the ledger refuses, since the run then stops."""
        self.accountant.charge(release)
        if self.ledger is not None:
            self.ledger.charge(release)


@dataclass(frozen=True, kw_only=True)
class Desks:
    """The books and samplers of all roles; empty for a protocol without noise."""

    plan: NoisePlan | None
    books: tuple[Books, ...] = ()
    samplers: tuple[Sampler, ...] = ()
    coordinator: NoiseDuty | None = None
    breaks_if: str = ""

    def pay_ledgers(self, iterations: int) -> None:
        """Charge every ledger for the whole job before its first round, or refuse the job before anyone has paid.

        Paid in advance, a job cannot be stopped half-way because another one spent the rest of the cap. What a run that
        aborts has not released stays spent.
        """
        if self.plan is None:
            return
        releases = [self.plan.release_of(round_) for round_ in range(1, iterations + 1)]
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

    def of_party(self, number: int) -> NoiseDuty | None:
        """What party ``number`` needs."""
        if self.plan is None:
            return None
        return NoiseDuty(charger=self.books[number - 1], sampler=self.samplers[number - 1])

    def of_coordinator(self) -> NoiseDuty | None:
        """What the coordinator needs, where it adds the noise."""
        return self.coordinator

    def card(self, parties: Sequence[LloydParty], *, fewest_members: int) -> PrivacyCard | None:
        """The card of the party that was charged most: the one that took part in most rounds.

        ``fewest_members`` is the smallest number of parties in a round's sum: a missing share of the noise is one that
        colluding parties need not know.
        """
        if self.plan is None:
            return None
        spent = max((book.accountant.spent() for book in self.books), key=lambda spent: spent.epsilon)
        released = [party.released_records for party in parties if party.released_records is not None]
        records = released[0] if released else None
        deviation = (
            self.plan.placement.total_variance(self.plan.target) ** 0.5 * self.plan.encoder.fixed_point.resolution
        )
        return make_card(
            spent,
            budget=self.plan.budget,
            placement=self.plan.placement,
            breaks_if=self.breaks_if,
            is_simulation=any(sampler.is_simulation for sampler in self.samplers),
            estimated_records=records,
            centre_noise=None if records is None else deviation / max(1.0, records / self.plan.clusters),
            shares_missing=len(parties) - fewest_members,
        )


def open_desks(job: Job, agreement: Agreement, tables: Sequence[Table], session: bytes) -> Desks:
    """Set up everybody's books."""
    plan = agreement.noise
    if plan is None:
        return Desks(plan=None)
    books = tuple(
        Books(Accountant(plan.budget), _open_ledger(job, party, table, session, plan.budget))
        for party, table in zip(job.parties, tables, strict=True)
    )
    samplers = tuple(_make_sampler(job, party.name) for party in job.parties)
    duty = None
    if plan.by_coordinator:
        duty = NoiseDuty(charger=Accountant(plan.budget), sampler=_make_sampler(job, COORDINATOR))
    return Desks(plan=plan, books=books, samplers=samplers, coordinator=duty, breaks_if=agreement.breaks_if)


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
