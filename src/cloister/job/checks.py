"""What must hold for a job, whether it came from a file or from Python."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from cloister.job.budget_checks import check_budget
from cloister.job.problems import (
    KeyPath,
    check_choice,
    check_integer,
    check_number,
    check_text,
    refuse,
    show_value,
)
from cloister.job.protocol_checks import check_protocol
from cloister.protocols.feddp.settings import FEDDP
from cloister.protocols.guided_sums.settings import CLUSTERS_MOST, DIMENSIONS_MOST
from cloister.protocols.multiparty_lloyd.agreement import MAX_RECORDS
from cloister.protocols.synopsis.settings import SYNOPSIS
from cloister.runtime.network import NETWORKS

if TYPE_CHECKING:
    from cloister.columns import Column
    from cloister.job.model import DataOptions, Job, JobParty

MATCHES = ("order", "name")
MAX_CLUSTERS = 100_000
MAX_TOTAL_RECORDS = 2**53
MAX_SEED = 2**63 - 1
COORDINATOR = "coordinator"
_JOB_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


def check_job(job: Job) -> None:
    """Refuse a job in which a rule does not hold; the first broken one is told."""
    if not isinstance(job.name, str) or not _JOB_NAME.fullmatch(job.name):
        must = "be 1 to 64 letters, digits, - and _"
        refuse(("name",), must, show_value(job.name), "The result folder is named after it.")
    _check_clusters(job)
    _check_columns(job.columns)
    _check_parties(job.parties)
    check_protocol(job)
    if job.protocol.name in (SYNOPSIS, FEDDP) and len(job.columns) > DIMENSIONS_MOST:
        refuse(
            ("columns",), f"be at most {DIMENSIONS_MOST} with the protocol {job.protocol.name}", str(len(job.columns))
        )
    _check_data(job.data)
    if job.network is not None:
        check_choice(("network", "model"), job.network, NETWORKS)
    if job.seed is not None:
        check_integer(("run", "seed"), job.seed, 0, MAX_SEED)
    if not isinstance(job.secure, bool):
        refuse(("run", "secure"), "be true or false", show_value(job.secure))
    if job.secure and job.seed is not None:
        what_to_do = "Whoever knows the seed can remove every mask and all noise: remove it, or secure = true."
        refuse(("run", "seed"), "be left out in secure mode", show_value(job.seed), what_to_do)
    check_budget(job)


def _check_clusters(job: Job) -> None:
    """Refuse a number of clusters out of range; one that is to be chosen leaves a choice."""
    if not isinstance(job.choose_k, bool):
        refuse(("clusters", "choose_k"), "be true or false", show_value(job.choose_k))
    key, least = ("k_max", 2) if job.choose_k else ("k", 1)
    check_integer(
        ("clusters", key), job.k, least, CLUSTERS_MOST if job.protocol.name in (SYNOPSIS, FEDDP) else MAX_CLUSTERS
    )


def _check_data(data: DataOptions) -> None:
    """Refuse an unknown way to match columns, and public counts out of range."""
    check_choice(("data", "match"), data.match, MATCHES)
    if data.max_records is not None:
        check_integer(("data", "max_records"), data.max_records, 1, MAX_RECORDS)
    if data.records is not None:
        check_integer(("data", "records"), data.records, 1, MAX_TOTAL_RECORDS)


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
