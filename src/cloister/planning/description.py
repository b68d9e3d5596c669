"""A plan from its parts: what every protocol's plan says in the same words."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby

from cloister.job import Job
from cloister.job.protocol_checks import PROTOCOLS
from cloister.planning.model import Case, Plan, RoundNoise, Traffic, VerticalOutline
from cloister.protocols.feddp.settings import FEDDP
from cloister.protocol import LeakageTable, Learns
from cloister.protocols.vertical.settings import VERTICAL


@dataclass(frozen=True, kw_only=True)
class Found:
    """The part of a plan that differs from protocol to protocol."""

    cases: tuple[Case, ...] = ()
    round_noise: tuple[RoundNoise, ...] = ()
    notes: tuple[str, ...] = ()
    advice: str = ""
    vertical: VerticalOutline | None = None


def describe(
    job: Job,
    numbers: tuple[int, ...],
    *,
    placement: str | None,
    leakage: LeakageTable,
    breaks_if: str,
    rounds_max: int,
    traffic: Traffic,
    found: Found,
) -> Plan:
    """Put a plan together.

    Parameters
    ----------
    job
        What is to be agreed.
    numbers
        For which numbers of records.
    placement
        Who adds noise, in words; None without noise.
    leakage, breaks_if
        Who learns what, and which coalition breaks it.
    rounds_max, traffic
        Rounds on the wire, messages and bytes.
    found
        What was found out about this protocol.
    """
    budget = job.budget
    in_boxes = job.protocol.topology == "ring" or found.vertical is not None
    return Plan(
        name=job.name,
        protocol=job.protocol.name,
        parties=len(job.parties),
        k=job.k,
        choose_k=job.choose_k,
        columns=job.columns,
        why=_explain_choice(job.protocol.name, job.protocol.full_variant),
        epsilon=None if budget is None else budget.epsilon,
        delta=None if budget is None else budget.delta,
        unit=None if budget is None else budget.unit.value,
        who_adds_noise=placement,
        learned=_sum_up(leakage, "relay" if in_boxes else "coordinator"),
        breaks_if=breaks_if,
        declared_records=job.data.records,
        records=numbers,
        rounds_max=rounds_max,
        traffic=traffic,
        cases=found.cases,
        round_noise=found.round_noise,
        notes=found.notes,
        advice=found.advice,
        vertical=found.vertical,
    )


def _explain_choice(name: str, variant: str) -> str:
    others = ", ".join(other for other in PROTOCOLS if other not in (name, VERTICAL))
    if name == "synopsis":
        return f"rows are split across organisations, so the default, synopsis, is used; also: {others}."
    if name == VERTICAL:
        return "columns of the same records are split across organisations, which no other protocol is for."
    named = f"{name}, {variant}" if variant else name
    if name == FEDDP:
        return (
            f"the job names {named} and gives server data: public points say where clusters may be, so that more "
            f"of the budget is left for their centres. Without them it would be synopsis; also: {others}."
        )
    return f"the job names {named}; the default for rows split across organisations is synopsis; also: {others}."


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
