"""What ONE party is about to agree to: all of it from public values and from its own ledger. No table is opened."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from cloister.columns import Column
from cloister.errors import BudgetError, ConfigError
from cloister.job import Job, JobParty, OwnSide, Setup
from cloister.jobfile import check_own_policy
from cloister.privacy.books import Charges
from cloister.privacy.ledger import UNDECLARED, Ledger, LedgerSession
from cloister.privacy.ledger.cost import Cost
from cloister.privacy.ledger.entries import price_release
from cloister.privacy.units import Budget, LeakageTable, Unit
from cloister.protocol import PublicInput, resolve_protocol

_NO_SESSION = bytes(16)


@dataclass(frozen=True, kw_only=True)
class LedgerOutlook:
    """What a job would do to its owner's ledger; for the owner alone.

    Attributes
    ----------
    path, dataset, exists
        Which ledger, and which data set in it; whether there is one yet.
    unit, delta
        What the epsilons are for.
    before, after
        What all jobs have spent, and would have spent after this one.
    cap, cap_of_all
        On this data set, and on all of the ledger.
    head
        Of the ledger now.
    refusal
        Why the ledger would refuse the job; empty if it would not.
    """

    path: Path
    dataset: str
    exists: bool
    unit: Unit
    delta: float
    before: float
    after: float
    cap: Budget | None = None
    cap_of_all: Budget | None = None
    head: str = ""
    refusal: str = ""


@dataclass(frozen=True, kw_only=True)
class Terms:
    """What ONE party is about to agree to.

    Attributes
    ----------
    job, party
        The contract, and who this party is in it.
    runs, why
        The job that runs, which may be a stand-in, and why it is another.
    columns
        The columns of this party's table.
    leakage
        Who learns what, and which coalition breaks it.
    charges
        What is charged; None without noise.
    policy
        This party's policy, which allows the job; None if it has none.
    ledger
        This party's; None where none is charged.
    """

    job: Job
    party: JobParty
    runs: Job
    why: tuple[str, ...]
    columns: tuple[Column, ...]
    leakage: LeakageTable
    charges: Charges | None
    policy: Path | None
    ledger: LedgerOutlook | None


def describe_terms(setup: Setup, party: str, public: PublicInput, *, records: int | None = None) -> Terms:
    """Work out what a job asks of one of its parties.

    Parameters
    ----------
    setup
        The job, with this party's own side.
    party
        Its name.
    public
        What everyone knows besides the job.
    records
        Where columns are split: about how many records will be aligned, if the job does not say.

    Raises
    ------
    ConfigError
        If the job does not name everyone's identity, or the number of records is needed and missing.
    PolicyError
        If this party's policy does not allow the job, or the one that would run in its place.
    """
    job = setup.job
    own = next(one for one in job.parties if one.name == party)
    directory = tuple(one.public_key for one in job.parties)
    runs, protocol, why = resolve_protocol(job, _know_records(job, public, records))
    side = setup.own_side(party)
    policy = check_own_policy(setup, party, runs)
    agreed = protocol.agree(runs, directory, _know_records(job, public, records))
    charges = protocol.charges(agreed)
    return Terms(
        job=job,
        party=own,
        runs=runs,
        why=why,
        columns=job.find_columns(own),
        leakage=protocol.leakage(agreed),
        charges=charges,
        policy=policy,
        ledger=_look_at_ledger(job, side, charges) if job.find_columns(own) else None,
    )


def _know_records(job: Job, public: PublicInput, records: int | None) -> PublicInput:
    if job.protocol.facts.split == "rows" or public.records is not None:
        return public
    known = job.data.records if records is None else records
    if known is None:
        raise ConfigError(
            "what columns of the same records cost depends on how many there are, which is public in such a job; got "
            "no number. Give it: --records N"
        )
    return replace(public, records=known)


def _look_at_ledger(job: Job, side: OwnSide, charges: Charges | None) -> LedgerOutlook | None:
    """Look at a ledger, and change nothing in it; one that is not there is not made."""
    if charges is None or not charges.parties_pay or side.ledger is None:
        return None
    budget, price = charges.budget, Cost()
    for release in charges.prepaid:
        price = price.plus(price_release(release))
    outlook = LedgerOutlook(
        path=side.ledger,
        dataset=side.dataset or UNDECLARED,
        exists=side.ledger.exists(),
        unit=budget.unit,
        delta=budget.delta,
        before=0.0,
        after=price.epsilon(budget.delta),
    )
    if not outlook.exists:
        return outlook
    with Ledger(side.ledger, create=False) as ledger:
        before = ledger.total(outlook.dataset, budget.unit)
        asked = LedgerSession(ledger, dataset=outlook.dataset, job=job.name, session=_NO_SESSION, budget=budget)
        refusal = ""
        try:
            asked.check_all(charges.prepaid)
        except BudgetError as error:
            refusal = str(error)
        return replace(
            outlook,
            before=before.epsilon(budget.delta),
            after=before.plus(price).epsilon(budget.delta),
            cap=ledger.find_cap(outlook.dataset),
            cap_of_all=ledger.find_cap(None),
            head=ledger.verify().chain,
            refusal=refusal,
        )
