"""What must hold for a job, whether it came from a file or from Python."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, get_args

from cloister.job.problems import (
    KeyPath,
    check_choice,
    check_integer,
    check_number,
    check_text,
    refuse,
    show_value,
)
from cloister.privacy.units import Budget, Unit
from cloister.protocols.multiparty_lloyd.agreement import MAX_RECORDS, Initialisation, Variant
from cloister.runtime.network import NETWORKS

if TYPE_CHECKING:
    from cloister.data.columns import Column
    from cloister.job.model import Job, JobParty, ProtocolOptions

PROTOCOLS: tuple[str, ...] = get_args(Variant)
PRIVATE_PROTOCOLS = ("mask-noise-average",)
NOISES = ("gaussian", "laplace")
PLACEMENTS = ("aggregator", "shared", "local")
INITIALISATIONS: tuple[str, ...] = get_args(Initialisation)
MATCHES = ("order", "name")

# Which limits each assignment takes: one of each group must be given. Sizes are counts, or FastLloyd's ratios
# alpha of the average local cluster (5.2.2).
_LOWER, _UPPER = ("size_min", "alpha_min"), ("size_max", "alpha_max")
ASSIGNMENT_LIMITS: dict[str, tuple[tuple[str, ...], ...]] = {
    "unconstrained": (),
    "constrained-non-exclusive": (("size_min",),),
    "constrained-exclusive": (_LOWER, _UPPER),
    "constrained-e-exclusive": (_LOWER, _UPPER, ("memberships_max",)),
    "distance-constrained": (_LOWER, _UPPER, ("radius",)),
}
_LIMITS = ("size_min", "size_max", "alpha_min", "alpha_max", "memberships_max", "radius")

MAX_ITERATIONS = 10_000
MAX_CLUSTERS = 100_000
MAX_COUNT = 2**53
MAX_SEED = 2**63 - 1
COORDINATOR = "coordinator"
_JOB_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


def check_job(job: Job) -> None:
    """Refuse a job in which a rule does not hold; the first broken one is told."""
    if not isinstance(job.name, str) or not _JOB_NAME.fullmatch(job.name):
        must = "be 1 to 64 letters, digits, - and _"
        refuse(("name",), must, show_value(job.name), "The result folder is named after it.")
    check_integer(("clusters", "k"), job.k, 1, MAX_CLUSTERS)
    _check_columns(job.columns)
    _check_parties(job.parties)
    _check_protocol(job.protocol, len(job.parties))
    _check_start(job.protocol, job.k, job.columns)
    _check_assignment(job.protocol, job.k)
    check_choice(("data", "match"), job.data.match, MATCHES)
    if job.data.max_records is not None:
        check_integer(("data", "max_records"), job.data.max_records, 1, MAX_RECORDS)
    if job.network is not None:
        check_choice(("network", "model"), job.network, NETWORKS)
    if job.seed is not None:
        check_integer(("run", "seed"), job.seed, 0, MAX_SEED)
    if not isinstance(job.secure, bool):
        refuse(("run", "secure"), "be true or false", show_value(job.secure))
    if job.secure and job.seed is not None:
        what_to_do = "Whoever knows the seed can remove every mask and all noise: remove it, or secure = true."
        refuse(("run", "seed"), "be left out in secure mode", show_value(job.seed), what_to_do)
    _check_budget(job.budget, job.ledger, job.protocol, len(job.parties))


def check_bounds(path: KeyPath, low: object, high: object) -> None:
    """Refuse public bounds of one column that are not two finite numbers with low < high."""
    low_number, high_number = check_number((*path, "low"), low), check_number((*path, "high"), high)
    if low_number == high_number:
        refuse((*path, "high"), "be greater than low", f"low = high = {show_value(low)}", "Widen the bounds.")
    if low_number > high_number:
        got = f"low = {show_value(low)}, high = {show_value(high)}"
        refuse((*path, "high"), "be greater than low", got, "Swap them.")
    if not math.isfinite(high_number - low_number):
        refuse(path, "have bounds whose difference is a finite double", "bounds too far apart", "Narrow them.")


def _check_columns(columns: Sequence[Column]) -> None:
    """Refuse no columns, odd names and names that occur twice."""
    if not columns:
        refuse(("columns",), "have at least one column", "none", "Write: age = { low = 18, high = 95 }")
    names = [column.name for column in columns]
    for column in columns:
        check_text(("columns", column.name), column.name, longest=200)
        check_bounds(("columns", column.name), column.low, column.high)
        if names.count(column.name) > 1:
            refuse(("columns", column.name), "be named once", f"it {names.count(column.name)} times")


def _check_parties(parties: Sequence[JobParty]) -> None:
    """Refuse fewer than two parties, and names that two roles share."""
    if len(parties) < 2:
        what_to_do = "Add another [[parties]] section; one organisation alone can use scikit-learn."
        refuse(("parties",), "be at least 2", str(len(parties)), what_to_do)
    seen: dict[str, int] = {}
    for i, party in enumerate(parties):
        path: KeyPath = ("parties", i)
        check_text((*path, "name"), party.name)
        if party.name == COORDINATOR:
            refuse((*path, "name"), "not be the coordinator's", show_value(party.name), "Choose another name.")
        if set(party.name) & set("/\\"):
            what_to_do = "A party's ledger file is named after it."
            refuse((*path, "name"), "be a name without / and \\", show_value(party.name), what_to_do)
        if party.name in seen:
            got = f"{show_value(party.name)}, which parties[{seen[party.name]}] has already"
            refuse((*path, "name"), "be unique", got, "Give each party its own name.")
        seen[party.name] = i
        if party.dataset is not None:
            check_text((*path, "dataset"), party.dataset, longest=200)
        if party.data is not None and (not isinstance(party.data, str) or not party.data.strip()):
            refuse((*path, "data"), "be the path of a table", show_value(party.data))


def _check_protocol(protocol: ProtocolOptions, parties: int) -> None:
    """Refuse options that are out of range, or that the protocol cannot keep."""
    check_choice(("protocol", "name"), protocol.name, PROTOCOLS)
    check_integer(("protocol", "iterations"), protocol.iterations, 1, MAX_ITERATIONS)
    check_integer(("protocol", "fractional_bits"), protocol.fractional_bits, 1, 30)
    if isinstance(protocol.ring, bool) or protocol.ring not in ("auto", 32, 64):
        refuse(("protocol", "ring"), 'be "auto", 32 or 64', show_value(protocol.ring))
    path: KeyPath = ("protocol", "tolerance")
    tolerance = check_number(path, protocol.tolerance)
    if tolerance < 0:
        refuse(path, "be at least 0", show_value(protocol.tolerance))
    if tolerance > 0 and protocol.name != "naive":
        got = f"{show_value(protocol.tolerance)} with protocol {protocol.name}"
        what_to_do = (
            "The coordinator of a masked protocol cannot see whether the centres still move: "
            "remove tolerance and choose iterations."
        )
        refuse(path, "be 0 unless the protocol is naive", got, what_to_do)
    path = ("protocol", "min_parties")
    if protocol.min_parties is not None:
        check_integer(path, protocol.min_parties, 2, MAX_COUNT)
        if protocol.min_parties > parties:
            refuse(path, "be at most the number of parties", f"{protocol.min_parties} of {parties} parties")


def _check_start(protocol: ProtocolOptions, k: int, columns: Sequence[Column]) -> None:
    """Refuse a start that nobody can make, or given centres that do not fit the columns."""
    path: KeyPath = ("protocol", "initialisation")
    check_choice(path, protocol.initialisation, INITIALISATIONS)
    given = protocol.initialisation == "given"
    path = ("protocol", "start_by")
    if protocol.start_by is not None:
        check_choice(path, protocol.start_by, ("parties", "coordinator"))
        if given:
            what_to_do = "The start stands in the job, so nobody draws it: remove start_by."
            refuse(path, 'be left out with initialisation = "given"', show_value(protocol.start_by), what_to_do)
        if protocol.name == "naive" and protocol.start_by == "parties":
            what_to_do = "The parties of the naive protocol share no seed: remove start_by."
            refuse(path, 'be "coordinator" for the naive protocol', '"parties"', what_to_do)
    path = ("protocol", "start")
    if not given:
        if protocol.start is not None:
            got = f"initialisation = {show_value(protocol.initialisation)}"
            refuse(path, 'come with initialisation = "given"', got, "Change it, or remove start.")
        return
    d = len(columns)
    if not isinstance(protocol.start, (list, tuple)):
        got = "no start" if protocol.start is None else show_value(protocol.start)
        refuse(path, f"be a list of {k} rows of {d} numbers (clusters.k rows, one number a column)", got)
    if len(protocol.start) != k:
        refuse(path, f"have clusters.k = {k} rows", f"{len(protocol.start)}")
    for i, row in enumerate(protocol.start):
        if not isinstance(row, (list, tuple)) or len(row) != d:
            got = f"{len(row)} numbers" if isinstance(row, (list, tuple)) else show_value(row)
            refuse((*path, i), f"be a list of {d} numbers, one a column", got)
        for j, (value, column) in enumerate(zip(row, columns, strict=True)):
            number = check_number((*path, i, j), value)
            if not column.low <= number <= column.high:
                must = f"lie within the bounds of column {column.name}, {column.low:g} to {column.high:g}"
                refuse((*path, i, j), must, show_value(value), "The start is in original units.")


def _check_assignment(protocol: ProtocolOptions, k: int) -> None:
    """Refuse limits that the assignment does not take, lacks, or that contradict each other."""
    check_choice(("protocol", "assignment"), protocol.assignment, ASSIGNMENT_LIMITS)
    groups = ASSIGNMENT_LIMITS[protocol.assignment]
    taken = [limit for group in groups for limit in group]
    given = {limit: getattr(protocol, limit) for limit in _LIMITS if getattr(protocol, limit) is not None}
    name = show_value(protocol.assignment)
    for limit in given:
        if limit not in taken:
            takes = ", ".join(taken) if taken else "no limits"
            what_to_do = f"assignment = {name} takes {takes}."
            refuse(("protocol", limit), "come with an assignment that takes it", name, what_to_do)
    for group in groups:
        if sum(limit in given for limit in group) != 1:
            got = "both" if all(limit in given for limit in group) and len(group) > 1 else "none"
            must = f"come with {'one of ' if len(group) > 1 else ''}{' and '.join(group)}"
            refuse(("protocol", "assignment"), must, got, f"assignment = {name} needs it.")
    for limit in ("size_min", "size_max"):
        if limit in given:
            check_integer(("protocol", limit), given[limit], 0, MAX_COUNT)
    if "memberships_max" in given:
        check_integer(("protocol", "memberships_max"), given["memberships_max"], 1, k)
    for limit in ("alpha_min", "alpha_max", "radius"):
        if limit in given:
            number = check_number(("protocol", limit), given[limit])
            if number <= 0 or (limit != "radius" and number < 1):
                must = "be greater than 0" if limit == "radius" else "be at least 1"
                refuse(("protocol", limit), must, show_value(given[limit]))
    if "size_min" in given and "size_max" in given and given["size_min"] > given["size_max"]:
        got = f"size_min = {given['size_min']}, size_max = {given['size_max']}"
        refuse(("protocol", "size_min"), "be at most size_max", got, "Swap them.")


def _check_budget(budget: Budget | None, ledger: str | None, protocol: ProtocolOptions, parties: int) -> None:
    """Refuse a budget that is none, any budget with a protocol that adds no noise, and noise without a budget."""
    private = protocol.name in PRIVATE_PROTOCOLS
    for key in ("noise", "norm_bound", "placement", "colluding_max"):
        if getattr(protocol, key) is not None and not private:
            what_to_do = f"The protocol {protocol.name} adds no noise: remove it."
            refuse(("protocol", key), f"come with one of {', '.join(PRIVATE_PROTOCOLS)}", protocol.name, what_to_do)
    if ledger is not None:
        if not isinstance(ledger, str) or not ledger.strip():
            refuse(("ledger", "path"), "be the path of a folder", show_value(ledger))
        if budget is None:
            what_to_do = "A ledger records what a budget spends: remove [ledger]."
            refuse(("ledger",), "come with a [budget]", "none", what_to_do)
    if budget is None:
        if private:
            what_to_do = "Write: [budget], epsilon = 1.0, delta = 1e-6. It is what all releases together may cost."
            refuse(("protocol", "name"), "come with a [budget]", f"{protocol.name} without one", what_to_do)
        return
    if not private:
        what_to_do = (
            f"The protocol {protocol.name} releases exact aggregates, so a budget would promise what it does not "
            "keep: remove [budget], or use mask-noise-average."
        )
        refuse(("budget",), "be left out", f"epsilon = {show_value(budget.epsilon)}", what_to_do)
    _check_noise(budget, protocol)
    _check_placement(protocol, parties)


def _check_placement(protocol: ProtocolOptions, parties: int) -> None:
    """Refuse shares of noise that dropouts or colluding parties would leave too small."""
    if protocol.placement is not None:
        check_choice(("protocol", "placement"), protocol.placement, PLACEMENTS)
    path: KeyPath = ("protocol", "colluding_max")
    if protocol.placement != "shared":
        if protocol.colluding_max is not None:
            refuse(path, 'come with placement = "shared"', show_value(protocol.placement), "Remove it.")
        return
    if protocol.colluding_max is None:
        refuse(path, 'be given with placement = "shared"', "none", "Each party knows its own share: write at least 1.")
    check_integer(path, protocol.colluding_max, 1, parties - 1)
    least = parties - protocol.colluding_max + 1  # a party knows its own share: so many leave enough that it does not
    if protocol.resolve_min_parties(parties) < least:
        must = f"be at least {least}: with fewer, one party's own share would leave less noise than promised"
        refuse(("protocol", "min_parties"), must, f"{protocol.min_parties} of {parties} parties")


def _check_noise(budget: Budget, protocol: ProtocolOptions) -> None:
    """Refuse noise that the budget does not fit, and a unit or an assignment whose sensitivity is not bounded."""
    if protocol.noise is not None:
        check_choice(("protocol", "noise"), protocol.noise, NOISES)
    if budget.delta == 0 and protocol.noise != "laplace":
        what_to_do = 'Gaussian noise cannot give pure epsilon: write delta = 1e-6, or noise = "laplace" in [protocol].'
        refuse(("budget", "delta"), "be greater than 0 with Gaussian noise", show_value(budget.delta), what_to_do)
    if budget.unit is not Unit.RECORD:
        what_to_do = "One client's sums are not bounded in this protocol: a whole client cannot be hidden."
        refuse(("budget", "unit"), f'be "record" for {protocol.name}', show_value(budget.unit.value), what_to_do)
    if protocol.assignment != "unconstrained":
        what_to_do = "Under size constraints one record can move others, so the sensitivity would not hold."
        got = show_value(protocol.assignment)
        refuse(("protocol", "assignment"), f'be "unconstrained" for {protocol.name}', got, what_to_do)
    if protocol.norm_bound is not None and check_number(("protocol", "norm_bound"), protocol.norm_bound) <= 0:
        refuse(("protocol", "norm_bound"), "be greater than 0", show_value(protocol.norm_bound))
