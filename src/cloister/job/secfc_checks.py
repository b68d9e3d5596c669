"""What must hold for ``protocol = "secfc"``: how many clients may collude, and what it does not take."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING

from cloister.job.problems import KeyPath, check_integer, check_text, refuse, show_value

if TYPE_CHECKING:
    from cloister.job.model import Job, ProtocolOptions

SECFC = "secfc"
ONLY_SECFC = ("privacy", "segments", "coordinate_bits", "separate_after")
_TAKES = ("name", "iterations", "fractional_bits", "ring", *ONLY_SECFC)
_MOST_ITERATIONS = 10_000
CLUSTERS_MOST = 65_535


def refuse_secfc_options(job: Job) -> None:
    """Refuse, for another protocol, what only SecFC takes."""
    for key in ONLY_SECFC:
        value = getattr(job.protocol, key)
        if value is not None:
            what_to_do = "Remove it, or change the protocol."
            refuse(("protocol", key), f"come with the protocol {SECFC}", job.protocol.name, what_to_do)
    if job.data.id is not None:
        what_to_do = "Only these align records by their IDs: remove it."
        refuse(("data", "id"), f"come with the protocol {SECFC} or vertical", job.protocol.name, what_to_do)


def choose_privacy(parties: int, segments: int) -> int:
    """How many clients may collude where the job does not say: a third, as in the paper (5.1), or what fits.

    One client may then be silent in a round, where there are four or more.
    """
    return max(1, min((parties - 2 * segments) // 2, -(-parties // 3)))


def check_secfc(job: Job) -> None:
    """Refuse options of other protocols, and codes that do not fit the number of parties."""
    protocol, parties = job.protocol, len(job.parties)
    for option in fields(protocol):
        value = getattr(protocol, option.name)
        if option.name not in _TAKES and value is not None:
            what_to_do = f"It takes {', '.join(_TAKES[1:])}."
            refuse(("protocol", option.name), f"be left out with the protocol {SECFC}", show_value(value), what_to_do)
    for key, default in (("fractional_bits", 16), ("ring", "auto")):
        if getattr(protocol, key) != default:
            what_to_do = "Its grid and field follow from coordinate_bits, the columns and the number of records."
            must = f"be left out with the protocol {SECFC}"
            refuse(("protocol", key), must, show_value(getattr(protocol, key)), what_to_do)
    if job.k > CLUSTERS_MOST:
        refuse(("clusters", "k"), f"be at most {CLUSTERS_MOST} with the protocol {SECFC}", str(job.k), "Use fewer.")
    _check_ranges(job)
    _check_code(protocol, parties)
    if job.data.id is not None:
        check_id_column(job)


def check_id_column(job: Job) -> None:
    """Refuse a column of IDs that has no name, or that is clustered."""
    path: KeyPath = ("data", "id")
    check_text(path, job.data.id, longest=200)
    if job.data.id in {column.name for column in job.columns}:
        refuse(path, "not be a column that is clustered", show_value(job.data.id), "Remove it from [columns].")


def _check_ranges(job: Job) -> None:
    """Refuse numbers out of range."""
    protocol, parties = job.protocol, len(job.parties)
    if protocol.iterations is not None:
        check_integer(("protocol", "iterations"), protocol.iterations, 1, _MOST_ITERATIONS)
    if protocol.coordinate_bits is not None:
        check_integer(("protocol", "coordinate_bits"), protocol.coordinate_bits, 2, 31)
    if protocol.separate_after is not None:
        check_integer(("protocol", "separate_after"), protocol.separate_after, 0, (protocol.iterations or 100) - 1)
    if protocol.segments is not None:
        check_integer(("protocol", "segments"), protocol.segments, 1, len(job.columns))
    if protocol.privacy is not None:
        check_integer(("protocol", "privacy"), protocol.privacy, 1, parties)


def _check_code(protocol: ProtocolOptions, parties: int) -> None:
    """Refuse a code that so few parties cannot decode, and say which one they can."""
    segments = protocol.segments or 1
    privacy = choose_privacy(parties, segments) if protocol.privacy is None else protocol.privacy
    if 2 * privacy + 2 * segments - 1 > parties:
        by_default = protocol.privacy is None and protocol.segments is None
        path: KeyPath = ("parties",) if by_default else ("protocol", "privacy")
        most = (parties + 1 - 2 * segments) // 2
        do = f"With {parties} parties and segments = {segments}, privacy is at most {most}"
        if most < 1:
            do = f"With segments = {segments} there must be {1 + 2 * segments} parties at least"
        must = "be so small that 2 privacy + 2 segments - 1 is at most the number of parties"
        if path == ("parties",):
            must = "be at least 3 with the protocol secfc: 2 privacy + 2 segments - 1 of them decode a distance"
        refuse(path, must, f"privacy = {privacy}, segments = {segments}, {parties} parties", f"{do}.")


def resolve_code(protocol: ProtocolOptions, parties: int) -> tuple[int, int]:
    """The privacy t and the segments l of a checked job."""
    segments = protocol.segments or 1
    return protocol.privacy or choose_privacy(parties, segments), segments
