"""What must hold for the section ``[protocol]``: which options a protocol takes, and what multiparty Lloyd needs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, get_args

from cloister.job.defaults import ASSIGNMENT, INITIALISATION
from cloister.job.fastlloyd_checks import FASTLLOYD, check_fastlloyd, refuse_fastlloyd_options
from cloister.job.feddp_checks import check_feddp, refuse_feddp_options
from cloister.job.problems import KeyPath, check_choice, check_integer, check_number, refuse, show_value
from cloister.job.secfc_checks import SECFC, check_secfc, refuse_secfc_options
from cloister.job.vertical_checks import check_vertical, refuse_vertical_options
from cloister.protocols.feddp.settings import FEDDP
from cloister.protocols.multiparty_lloyd.agreement import Initialisation
from cloister.protocols.synopsis.settings import SYNOPSIS
from cloister.protocols.vertical.settings import VERTICAL

if TYPE_CHECKING:
    from cloister.columns import Column
    from cloister.job.model import Job, ProtocolOptions

PROTOCOLS = (
    SYNOPSIS,
    FEDDP,
    FASTLLOYD,
    SECFC,
    VERTICAL,
    "naive",
    "masked-sum-count",
    "masked-centroid",
    "mask-noise-average",
)
INITIALISATIONS: tuple[str, ...] = get_args(Initialisation)

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
LIMITS = ("size_min", "size_max", "alpha_min", "alpha_max", "memberships_max", "radius")

# What only multiparty Lloyd takes, and why the synopsis does not.
_ALWAYS_NEAREST = "Each record joins its nearest centre, or the sensitivity would not hold: remove it."
_OWN_START = "The synopsis finds its own start from the released histogram: remove it."
LLOYD_ONLY: dict[str, str] = {
    "iterations": "Its rounds follow from public values: remove it, or set synopsis.rounds_max.",
    "initialisation": _OWN_START,
    "start": _OWN_START,
    "start_by": _OWN_START,
    "tolerance": "Its rounds follow from public values: remove it.",
    "assignment": _ALWAYS_NEAREST,
    **dict.fromkeys(LIMITS, _ALWAYS_NEAREST),
    "noise": "Its noise is discrete Gaussian: remove it.",
    "norm_bound": "It finds its own bounds on the records' lengths: remove it.",
    "topology": "It runs through a coordinator: remove it.",
}
RING_PROTOCOLS = (FASTLLOYD, "mask-noise-average")

MAX_ITERATIONS = 10_000
MAX_COUNT = 2**53


def check_protocol(job: Job) -> None:
    """Refuse options that are out of range, that the protocol does not take, or that it cannot keep."""
    protocol, parties = job.protocol, len(job.parties)
    check_choice(("protocol", "name"), protocol.name, PROTOCOLS)
    check_integer(("protocol", "fractional_bits"), protocol.fractional_bits, 1, 30)
    if isinstance(protocol.ring, bool) or protocol.ring not in ("auto", 32, 64):
        refuse(("protocol", "ring"), 'be "auto", 32 or 64', show_value(protocol.ring))
    path: KeyPath = ("protocol", "min_parties")
    if protocol.min_parties is not None:
        check_integer(path, protocol.min_parties, 2, MAX_COUNT)
        if protocol.min_parties > parties:
            refuse(path, "be at most the number of parties", f"{protocol.min_parties} of {parties} parties")
    if protocol.name == VERTICAL:
        _refuse_synopsis_options(job)
        check_vertical(job)
        return
    refuse_vertical_options(job)
    if protocol.name == FASTLLOYD:
        check_fastlloyd(job)
    else:
        refuse_fastlloyd_options(protocol)
    if protocol.name != FEDDP:
        refuse_feddp_options(job)
    if protocol.name == SECFC:
        _refuse_synopsis_options(job)
        check_secfc(job)
        return
    refuse_secfc_options(job)
    if protocol.name in (SYNOPSIS, FEDDP):
        _refuse_lloyd_options(protocol)
        if protocol.name == FEDDP:
            _refuse_synopsis_options(job)
            check_feddp(job)
        return
    _refuse_synopsis_options(job)
    _check_rounds(protocol)
    _check_start(protocol, job.k, job.columns)
    if protocol.name != FASTLLOYD:
        _check_assignment(protocol, job.k)
    _check_topology(protocol)


def _check_topology(protocol: ProtocolOptions) -> None:
    """Refuse a ring where nobody could add the noise, or draw the first centres."""
    path: KeyPath = ("protocol", "topology")
    if protocol.topology is not None:
        check_choice(path, protocol.topology, ("star", "ring"))
    if protocol.topology != "ring":
        if protocol.placement == "joint":
            what_to_do = 'Write topology = "ring" and noise = "laplace".'
            refuse(("protocol", "placement"), 'come with topology = "ring"', '"joint" without it', what_to_do)
        return
    if protocol.name not in RING_PROTOCOLS:
        refuse(path, f"come with one of {', '.join(RING_PROTOCOLS)}", protocol.name, "Remove it.")
    if protocol.placement in (None, "aggregator"):
        must = 'be "local", "shared" or "joint" with topology = "ring"'
        got = show_value(protocol.placement or "aggregator")
        refuse(("protocol", "placement"), must, got, "A ring has no server that could add noise.")
    if protocol.start_by == "coordinator":
        what_to_do = "A ring has no coordinator: remove start_by."
        refuse(("protocol", "start_by"), 'be "parties" with topology = "ring"', '"coordinator"', what_to_do)


def _refuse_lloyd_options(protocol: ProtocolOptions) -> None:
    """Refuse what only multiparty Lloyd takes: an option that is ignored would mislead."""
    for key, what_to_do in LLOYD_ONLY.items():
        value = getattr(protocol, key)
        if value is not None:
            default = ", the default" if protocol.name == SYNOPSIS else ""
            must = f"be left out with the protocol {protocol.name}{default}"
            refuse(("protocol", key), must, show_value(value), what_to_do)


def _refuse_synopsis_options(job: Job) -> None:
    """Refuse what only the synopsis takes."""
    given: dict[KeyPath, object] = {
        ("clusters", "choose_k"): job.choose_k or None,
        ("data", "records"): None if job.protocol.name in (FEDDP, FASTLLOYD, SECFC, VERTICAL) else job.data.records,
        ("synopsis",): job.synopsis,
    }
    for path, value in given.items():
        if value is not None:
            refuse(path, f"come with the protocol {SYNOPSIS}", job.protocol.name, "Remove it, or change the protocol.")


def _check_rounds(protocol: ProtocolOptions) -> None:
    """Refuse a number of rounds out of range, and a tolerance that nobody could check."""
    if protocol.iterations is not None:
        check_integer(("protocol", "iterations"), protocol.iterations, 1, MAX_ITERATIONS)
    if protocol.tolerance is None:
        return
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


def _check_start(protocol: ProtocolOptions, k: int, columns: Sequence[Column]) -> None:
    """Refuse a start that nobody can make, or given centres that do not fit the columns."""
    initialisation = INITIALISATION if protocol.initialisation is None else protocol.initialisation
    check_choice(("protocol", "initialisation"), initialisation, INITIALISATIONS)
    given = initialisation == "given"
    path: KeyPath = ("protocol", "start_by")
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
            got = f"initialisation = {show_value(initialisation)}"
            refuse(path, 'come with initialisation = "given"', got, "Change it, or remove start.")
        return
    d = len(columns)
    if not isinstance(protocol.start, (list, tuple)):
        got = "no start" if protocol.start is None else show_value(protocol.start)
        refuse(path, f"be a list of {k} rows of {d} numbers (clusters.k rows, one number a column)", got)
    if len(protocol.start) != k:
        refuse(path, f"have clusters.k = {k} rows", f"{len(protocol.start)}", "Give one centre for each cluster.")
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
    assignment = ASSIGNMENT if protocol.assignment is None else protocol.assignment
    check_choice(("protocol", "assignment"), assignment, ASSIGNMENT_LIMITS)
    groups = ASSIGNMENT_LIMITS[assignment]
    taken = [limit for group in groups for limit in group]
    given = {limit: getattr(protocol, limit) for limit in LIMITS if getattr(protocol, limit) is not None}
    name = show_value(assignment)
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
