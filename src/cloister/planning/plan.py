"""From a job to a plan. Only what is public is read: the job, and the public table if it names one."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from cloister.data import read_public_points
from cloister.errors import ConfigError
from cloister.job import MAX_COUNT, Job, Setup
from cloister.planning.model import Forecast, Plan, PlanRequest, Size
from cloister.privacy.units import EPSILON_LEAST, EPSILON_MOST, Unit
from cloister.protocol import Clustering, LeakageTable, Learns, PublicInput, find_protocol, registered_protocols
from cloister.runtime.progress import OnProgress

RECORDS = (1_000, 10_000, 100_000, 1_000_000)
"""Tried where the job does not say how many records there are, and nobody else does."""
PARTY_FACTORS = (1, 10, 100)
"""Client level: how many times the job's parties are tried. They are the units, and their number is public."""
EPSILONS = (0.1, 0.25, 0.5, 1.0, 2.0)
_RECORDS_EACH = 100  # client level: what a party is taken to hold where nobody says


def plan(
    job: Job | Setup,
    *,
    records: int | None = None,
    epsilons: Sequence[float] | None = None,
    quick: bool = False,
    on_progress: OnProgress | None = None,
) -> Plan:
    """Say what a job would do, cost and find, before anything is spent. No party's table is opened.

    Parameters
    ----------
    job
        What is to be agreed; with a folder where it names a public table.
    records
        About how many records all parties have together, where the job does not declare it. It is a private number:
        guess it from what is public. Where columns are split it is public, and needed: how many records are aligned.
    epsilons
        To compare with the job's own; by default 0.1, 0.25, 0.5, 1 and 2, or none where that would take long.
    quick
        Try less: some seconds instead of half a minute, and coarser.
    on_progress
        Told about each family of made-up records that was tried.

    Raises
    ------
    ConfigError
        If a number is out of range, if the job declares another number of records, or if nobody says how many there
        are where that must be known.
    """
    setup = Setup.of(job)
    job = setup.job
    public = PublicInput(server=read_public_points(setup))
    protocol, why = find_protocol(job), ""
    stand_in = protocol.stand_in(job, public)
    if stand_in is not None:
        job, why = stand_in.job, f"{stand_in.why} "
        protocol = find_protocol(job)
    request = PlanRequest(
        sizes=_choose_sizes(job, records),
        records=job.data.records if records is None else records,
        guessed=records is not None and job.data.records is None,
        epsilons=None if epsilons is None else tuple(epsilons),
        quick=quick,
        on_progress=on_progress,
    )
    why += protocol.explain_choice(job, _list_others(protocol))
    return _describe(job, request, protocol.forecast(job, public, request), why)


def choose_epsilons(own: float, wanted: Sequence[float] | None) -> tuple[float, ...]:
    """Return the epsilons that are asked for, or the usual ones, and the job's own; rising."""
    wanted = EPSILONS if wanted is None else wanted
    for epsilon in wanted:
        if not EPSILON_LEAST <= epsilon <= EPSILON_MOST:
            raise ConfigError(f"epsilon must lie between {EPSILON_LEAST:g} and {EPSILON_MOST:g}; got {epsilon:g}.")
    return tuple(sorted({*wanted, own}))


def refuse_epsilons(job: Job, request: PlanRequest) -> None:
    """Refuse epsilons to compare where losses are not forecast."""
    if request.epsilons:
        raise ConfigError(
            f"epsilons must be left out with the protocol {job.protocol.name}, whose losses are not forecast. Change "
            "budget.epsilon and plan again: the noise goes with 1 / epsilon."
        )


def _describe(job: Job, request: PlanRequest, forecast: Forecast, why: str) -> Plan:
    budget = job.budget
    rounds = f"Rounds: {forecast.rounds_max}{' at most' if forecast.traffic.at_most else ''}."
    return Plan(
        name=job.name,
        protocol=job.protocol.name,
        parties=len(job.parties),
        k=job.k,
        choose_k=job.choose_k,
        columns=job.columns,
        why=why,
        epsilon=None if budget is None else budget.epsilon,
        delta=None if budget is None else budget.delta,
        unit=None if budget is None else budget.unit.value,
        who_adds_noise=forecast.who_adds_noise,
        learned=_sum_up(forecast.leakage, forecast.middleman),
        breaks_if=forecast.leakage.breaks_if,
        declared_records=job.data.records,
        records=request.numbers,
        rounds_max=forecast.rounds_max,
        traffic=forecast.traffic,
        split=job.protocol.facts.split,
        what_runs=forecast.what_runs or (rounds,),
        cases=forecast.cases,
        round_noise=forecast.round_noise,
        exact_losses=forecast.exact_losses,
        links=forecast.links,
        memory_bytes=forecast.memory_bytes,
        notes=forecast.notes,
        advice=forecast.advice,
    )


def _list_others(protocol: Clustering[object]) -> str:
    """Return the other protocols for tables that are split in the same way."""
    split = protocol.Options.facts.split
    others = [one.name for one in registered_protocols().values() if one.Options.facts.split == split]
    return ", ".join(name for name in others if name != protocol.name)


def _sum_up(leakage: LeakageTable, middleman: str) -> str:
    """The leakage table in one line: what each role learns that is not its own."""
    parts = []
    for role, rows in groupby(leakage.rows, key=lambda row: row.role):
        name = {"coordinator": f"the {middleman}", "party": "each party"}[role]
        learned = [row for row in rows if row.learns not in (Learns.NOTHING, Learns.OWN)]
        kinds = [
            f"{'; '.join(row.meaning for row in alike)} ({how.value})"
            for how, alike in groupby(learned, key=lambda row: row.learns)
        ]
        parts.append(f"{name} learns {' and '.join(kinds) or 'nothing'}")
    return "; ".join(parts) + "."


def _choose_sizes(job: Job, guess: int | None) -> tuple[Size, ...]:
    """Which sizes to try: of records, or at client level of parties with as many records each."""
    numbers, parties = _choose_records(job, guess), len(job.parties)
    if job.budget is None or job.budget.unit is not Unit.CLIENT:
        return tuple(Size(records=number, parties=parties) for number in numbers)
    known = job.data.records or guess
    records = max(_RECORDS_EACH * parties, 10 * job.k) if known is None else known
    return tuple(Size(records=factor * records, parties=factor * parties) for factor in PARTY_FACTORS)


def _choose_records(job: Job, guess: int | None) -> tuple[int, ...]:
    """The declared number, or the guess, or a few."""
    declared = job.data.records
    if guess is None:
        return tuple(number for number in RECORDS if number >= 10 * job.k) if declared is None else (declared,)
    if not job.k <= guess <= MAX_COUNT:
        raise ConfigError(f"records must be from clusters.k = {job.k} to {MAX_COUNT}; got {guess}.")
    if declared is not None and guess != declared:
        raise ConfigError(
            f"records must be what the job declares, data.records = {declared}; got {guess}. Leave one of them out."
        )
    return (guess,)
