"""From a job to a plan. Only public values are read: the job, and the public table if it names one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

import numpy as np

from cloister.columns import Column, Coordinate, list_coordinates
from cloister.errors import ConfigError, require_kind
from cloister.forecast.model import (
    Case,
    FamilyLoss,
    Forecast,
    PartyLink,
    PlacementForecast,
    PlanRequest,
    RoundNoise,
    Size,
    TrafficForecast,
)
from cloister.job import MAX_COUNT, Job, Setup
from cloister.job.options import known_options
from cloister.privacy.card import UNPROVED, explain_weakness
from cloister.privacy.units import EPSILON_CLAIMED_MOST, Counted, LeakageTable, Learns, Noisy, Unit, name_role
from cloister.protocol import Clustering, read_public_input, resolve_protocol
from cloister.runtime import OnProgress

RECORDS = (1_000, 10_000, 100_000, 1_000_000)
"""Tried if neither the job nor the user says how many records there are."""
PARTY_FACTORS = (1, 10, 100)
"""Client level: the multiples of the job's parties that are tried. Parties are the units; their number is public."""
_RECORDS_EACH = 100  # client level: what each party is assumed to hold if nobody says


@dataclass(frozen=True, kw_only=True, repr=False)
class Plan:
    """What a job would do, cost and find, before anything is spent. No party's table is opened for it.

    Attributes
    ----------
    name, protocol, parties, k, choose_k, columns
        As in the job; with ``choose_k``, ``k`` is the maximum.
    not_private
        Why nobody is protected by a result of this job, in a sentence; empty if it is differentially private.
    noisy
        What its noise is worth.
    why
        Why this protocol is used, and which others there are.
    epsilon, delta, unit
        The budget; None if the job is not differentially private.
    counted
        What sums count: records, or persons where each counts once at a party.
    who_adds_noise
        In words; None without noise.
    warnings
        What everybody must heed who has the result.
    learned, withstands, breaks_if
        Who learns what, who may collude and learns no more, and which coalition breaks it.
    declared_records
        The number of records that the job declares public.
    records
        The numbers of records that the plan is for, ascending; at client level, one per number of parties.
    rounds_max
        Rounds on the wire, needed or not.
    traffic
        Messages and bytes.
    what_runs
        How the job runs, in sentences.
    cases
        If losses are forecast: each epsilon and number of records that was tried.
    round_noise
        If each round of Lloyd's algorithm has noise: one for each number of records.
    placements
        If the job has a choice of who adds the noise: one for each, the job's own among them.
    exact_losses
        If there is no noise but an approximation: losses relative to k-means on whole records.
    links
        If parties do different things: one for each.
    memory_bytes
        What the busiest party needs for ciphertexts and sums; None if that is little.
    notes, advice
        What else the reader must know, and what follows from the plan.
    split
        Whether parties hold different rows, or different columns of the same rows.
    """

    name: str
    protocol: str
    parties: int
    k: int
    choose_k: bool
    columns: tuple[Column, ...]
    not_private: str
    noisy: Noisy
    why: str
    epsilon: float | None
    delta: float | None
    unit: str | None
    who_adds_noise: str | None
    learned: str
    withstands: str
    breaks_if: str
    declared_records: int | None
    records: tuple[int, ...]
    rounds_max: int
    traffic: TrafficForecast
    split: Literal["rows", "columns"] = "rows"
    counted: Counted = "records"
    warnings: tuple[str, ...] = ()
    what_runs: tuple[str, ...] = ()
    cases: tuple[Case, ...] = ()
    round_noise: tuple[RoundNoise, ...] = ()
    placements: tuple[PlacementForecast, ...] = ()
    exact_losses: tuple[FamilyLoss, ...] = ()
    links: tuple[PartyLink, ...] = ()
    memory_bytes: int | None = None
    notes: tuple[str, ...] = ()
    advice: str = ""

    def __repr__(self) -> str:
        """Say what it is in one line; `print_plan` says all."""
        return (
            f"<Plan of {self.name!r}: k = {self.k}, parties: {self.parties}, {self.protocol}, cases: {len(self.cases)}>"
        )

    @property
    def coordinates(self) -> tuple[Coordinate, ...]:
        """What would be clustered."""
        return list_coordinates(self.columns)

    @property
    def by_parties(self) -> bool:
        """Whether cases differ by the number of parties, which are then the units, rather than of records."""
        return self.unit == "client"

    def find_case(self, *, epsilon: float, records: int) -> Case:
        """Return the case of one epsilon and number of records."""
        return next(case for case in self.cases if (case.epsilon, case.records) == (epsilon, records))


def plan(
    job: Job | Setup,
    *,
    records: int | None = None,
    epsilons: Sequence[float] | None = None,
    quick: bool = False,
    on_progress: OnProgress | None = None,
) -> Plan:
    """Forecast what a job would do, cost and find, before anything is spent. No party's table is opened.

    Parameters
    ----------
    job
        What is to be agreed; a `Setup` with its folder if it names a public table.
    records
        About how many records all parties have together, if the job does not declare it. This number is private: guess
        it from what is public. If columns are split, it is the number of aligned records, which is public and required.
    epsilons
        To compare with the job's own; by default 0.1, 0.25, 0.5, 1 and 2, or none if that would take long.
    quick
        Try less: coarser, but ready in a few seconds instead of half a minute.
    on_progress
        Called after each family of made-up records.

    Raises
    ------
    ConfigError
        If a number is out of range, if the job declares another number of records, or if the number is required and
        missing.
    """
    setup = Setup.of(job)
    require_kind("records", records, int, np.integer, type(None))
    require_kind("epsilons", epsilons, tuple, list, np.ndarray, type(None))
    for epsilon in () if epsilons is None else epsilons:
        require_kind("each of epsilons", epsilon, float, int, np.floating)
    job = setup.job
    public = read_public_input(setup)
    job, protocol, because = resolve_protocol(job, public)
    request = PlanRequest(
        sizes=_choose_sizes(job, records),
        records=job.data.records if records is None else records,
        guessed=records is not None and job.data.records is None,
        epsilons=None if epsilons is None else tuple(epsilons),
        quick=quick,
        on_progress=on_progress,
    )
    why = " ".join([*because, protocol.explain_choice(job, _list_others(protocol))])
    return _describe(job, request, protocol.forecast(job, public, request), why, seeded=setup.seed is not None)


def _describe(job: Job, request: PlanRequest, forecast: Forecast, why: str, *, seeded: bool) -> Plan:
    budget, leakage = job.budget, forecast.leakage
    epsilon = leakage.limit if budget is None or leakage.limit is not None else budget.epsilon
    noisy = value_noise(job, epsilon, seeded=seeded)
    rounds = f"Rounds: {forecast.rounds_max}{' at most' if forecast.traffic.at_most else ''}."
    return Plan(
        name=job.name,
        protocol=job.protocol.name,
        parties=len(job.parties),
        k=job.k,
        choose_k=job.choose_k,
        columns=job.columns,
        not_private=explain_not_private(noisy, epsilon),
        noisy=noisy,
        why=why,
        epsilon=None if budget is None else budget.epsilon,
        delta=None if budget is None else budget.delta,
        unit=None if budget is None else budget.unit.value,
        counted="records" if budget is None else budget.counted,
        who_adds_noise=forecast.who_adds_noise,
        warnings=forecast.warnings,
        learned=_sum_up(leakage, forecast.middleman, noisy),
        withstands=UNPROVED if job.protocol.flaw else leakage.claim(epsilon),
        breaks_if=leakage.breaks_if,
        declared_records=job.data.records,
        records=request.numbers,
        rounds_max=forecast.rounds_max,
        traffic=forecast.traffic,
        split=job.protocol.facts.split,
        what_runs=forecast.what_runs or (rounds,),
        cases=forecast.cases,
        round_noise=forecast.round_noise,
        placements=forecast.placements,
        exact_losses=forecast.exact_losses,
        links=forecast.links,
        memory_bytes=forecast.memory_bytes,
        notes=forecast.notes,
        advice=forecast.advice,
    )


def _list_others(protocol: Clustering[object]) -> str:
    """Name the other protocols for tables that are split in the same way."""
    split = protocol.Options.facts.split
    others = [name for name, options in known_options().items() if options.facts.split == split]
    return ", ".join(name for name in others if name != protocol.name)


def value_noise(job: Job, epsilon: float | None, *, seeded: bool) -> Noisy:
    """Say what a job's noise would be worth, as its privacy card will."""
    if job.protocol.flaw:
        return Noisy.UNPROVED
    if not job.protocol.facts.private:
        return Noisy.PARTLY
    if epsilon is not None and epsilon > EPSILON_CLAIMED_MOST:
        return Noisy.TOO_LITTLE
    return Noisy.SEEDED if seeded else Noisy.PRIVATE


def name_any(unit: str) -> str:
    """Name whom a budget is for, by its unit."""
    return {"client": "any one party's whole table", "person": "any one person"}.get(unit, "any one record")


def explain_not_private(noisy: Noisy, epsilon: float | None) -> str:
    """Say why nobody is protected; nothing for a private job."""
    if epsilon is None:
        return "NOT DIFFERENTIALLY PRIVATE: nothing carries noise, and what is learned is learned exactly."
    return {
        Noisy.PRIVATE: "",
        Noisy.PARTLY: "NOT DIFFERENTIALLY PRIVATE as a whole: noise is on the revealed centres alone; see the advice.",
        Noisy.UNPROVED: "NOT PRIVATE: the guarantee as published does not hold; see the advice.",
        Noisy.TOO_LITTLE: f"NOT PRIVATE: {explain_weakness(epsilon)}",
        Noisy.SEEDED: "NOT PRIVATE: the job has a seed, and whoever knows it can take masks and noise away.",
    }[noisy]


def _sum_up(leakage: LeakageTable, middleman: str, noisy: Noisy) -> str:
    """Put the leakage table into one line: what each role learns that is not its own."""
    parts = []
    for role, rows in groupby(leakage.rows, key=lambda row: row.role):
        name = name_role(role, middleman)
        learned = [row for row in rows if row.learns not in (Learns.NOTHING, Learns.OWN)]
        kinds = [
            f"{'; '.join(row.meaning for row in alike)} ({how.in_words(noisy)})"
            for how, alike in groupby(learned, key=lambda row: row.learns)
        ]
        parts.append(f"{name} learns {' and '.join(kinds) or 'nothing'}")
    return "; ".join(parts) + "."


def _choose_sizes(job: Job, guess: int | None) -> tuple[Size, ...]:
    """Choose the sizes to try: numbers of records or, at client level, of parties with equally many records each."""
    numbers, parties = _choose_records(job, guess), len(job.parties)
    if job.budget is None or job.budget.unit is not Unit.CLIENT:
        return tuple(Size(records=number, parties=parties) for number in numbers)
    known = job.data.records or guess
    records = max(_RECORDS_EACH * parties, 10 * job.k) if known is None else known
    return tuple(Size(records=factor * records, parties=factor * parties) for factor in PARTY_FACTORS)


def _choose_records(job: Job, guess: int | None) -> tuple[int, ...]:
    """Return the declared number, or the guess, or a few typical ones."""
    declared = job.data.records
    if guess is None:
        return tuple(number for number in RECORDS if number >= 10 * job.k) if declared is None else (declared,)
    if not job.k <= guess <= MAX_COUNT:
        raise ConfigError(f"records must be from clusters.k = {job.k} to {MAX_COUNT}; got {guess}.")
    if declared is not None and guess != declared:
        raise ConfigError(
            f"records must be what the job declares, data.records = {declared}; got {guess}. Leave one of the two out."
        )
    return (guess,)
