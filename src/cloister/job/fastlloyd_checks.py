"""What must hold for ``protocol = "fastlloyd"``: its options, and what the sound and the published variants take."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

from cloister.job.problems import KeyPath, check_choice, check_integer, check_number, refuse, show_value
from cloister.protocols.fastlloyd import Correction, Preset
from cloister.protocols.feddp.settings import FEDDP

if TYPE_CHECKING:
    from cloister.job.model import Job, ProtocolOptions

FASTLLOYD = "fastlloyd"
RADIUS_LEAST = 1e-6
VARIANTS: tuple[str, ...] = ("sound", *get_args(Preset))
CORRECTIONS: tuple[str, ...] = get_args(Correction)
ONLY_FASTLLOYD = ("variant", "postprocess", "rho")
_NOT_SOUND = (
    "Under size constraints one record can move others, so the sensitivity would not hold: remove it, or reproduce a "
    'text with variant = "published", "csulloyd", "sulloyd", "mna" or "amn".'
)
_PUBLISHED_ONLY = 'Only the published variants take it: remove it, or set variant = "mna".'
# What the sound variant does not take, and why.
_REFUSED_BY_SOUND: dict[str, str] = {
    "assignment": _NOT_SOUND,
    "alpha_min": _NOT_SOUND,
    "alpha_max": _NOT_SOUND,
    "memberships_max": _NOT_SOUND,
    "postprocess": _PUBLISHED_ONLY,
    "rho": _PUBLISHED_ONLY,
}
# Which limits an assignment of a published variant takes.
_LIMITS: dict[str, tuple[str, ...]] = {
    "unconstrained": (),
    "constrained-non-exclusive": ("alpha_min",),
    "constrained-exclusive": ("alpha_min", "alpha_max"),
    "constrained-e-exclusive": ("alpha_min", "alpha_max", "memberships_max"),
    "distance-constrained": ("alpha_min", "alpha_max", "radius"),
}


def refuse_fastlloyd_options(protocol: ProtocolOptions) -> None:
    """Refuse, for another protocol, what only FastLloyd takes."""
    for key in ONLY_FASTLLOYD:
        value = getattr(protocol, key)
        if value is not None and not (key == "variant" and protocol.name == FEDDP):
            what_to_do = "Remove it, or change the protocol."
            refuse(("protocol", key), f"come with the protocol {FASTLLOYD}", protocol.name, what_to_do)


def check_fastlloyd(job: Job) -> None:
    """Refuse options that the chosen variant does not take, lacks, or cannot keep."""
    protocol = job.protocol
    if protocol.variant is not None:
        check_choice(("protocol", "variant"), protocol.variant, VARIANTS)
    for key, what_to_do in (
        ("size_min", "Sizes follow from alpha_min and data.records."),
        ("size_max", "Sizes follow from alpha_max and data.records."),
        ("norm_bound", "Offsets are bounded by radius; only mask-noise-average takes norm_bound."),
    ):
        if getattr(protocol, key) is not None:
            must = f"be left out with the protocol {FASTLLOYD}"
            refuse(("protocol", key), must, show_value(getattr(protocol, key)), what_to_do)
    if protocol.radius is not None and check_number(("protocol", "radius"), protocol.radius) < RADIUS_LEAST:
        what_to_do = "It is in unit scaling, where a column runs from -1 to 1: take a length as large as a cluster."
        refuse(("protocol", "radius"), f"be at least {RADIUS_LEAST:g}", show_value(protocol.radius), what_to_do)
    if protocol.is_published:
        _check_published(job)
        return
    for key, what_to_do in _REFUSED_BY_SOUND.items():
        value = getattr(protocol, key)
        if value is not None and value != "unconstrained":
            refuse(("protocol", key), "be left out with the sound variant", show_value(value), what_to_do)


def _check_published(job: Job) -> None:
    protocol = job.protocol
    path: KeyPath = ("data", "records")
    if job.data.records is None:
        what_to_do = (
            "Its cluster sizes and its number of rounds follow from N, which the texts take as known (thesis 7.1.1). "
            "Declare it only where it is public anyway."
        )
        refuse(path, f'be declared with variant = "{protocol.variant}"', "none", what_to_do)
    if job.data.records < job.k:
        got = f"{job.data.records} records, {job.k} clusters"
        refuse(path, "be at least clusters.k", got, "Use fewer clusters, or declare the number that there is.")
    if protocol.noise not in (None, "laplace"):
        must = f'be left out with variant = "{protocol.variant}"'
        refuse(("protocol", "noise"), must, show_value(protocol.noise), "Its noise is Laplace, as printed.")
    if protocol.rho is not None and protocol.variant in ("published", "amn"):
        must = f'be left out with variant = "{protocol.variant}"'
        refuse(("protocol", "rho"), must, show_value(protocol.rho), "It releases centres: there is no budget to split.")
    if protocol.rho is not None and not 0 < check_number(("protocol", "rho"), protocol.rho) <= 1:
        what_to_do = "The papers' value is 0.225; leave it out."
        refuse(("protocol", "rho"), "be greater than 0 and at most 1", show_value(protocol.rho), what_to_do)
    _check_postprocess(protocol)
    kind = _check_assignment(protocol, job.k)
    far_centres = protocol.postprocess is not None and protocol.postprocess[2] == "none"
    if kind == "unconstrained" and not (far_centres and protocol.variant in ("published", "amn")):
        return
    if kind == "distance-constrained" and protocol.placement == "joint":
        what_to_do = "Its noise shrinks with the radius, and joint noise is the same in all rounds: place it otherwise."
        refuse(("protocol", "placement"), "not be joint with distance-constrained", '"joint"', what_to_do)
    if job.ledger is not None:
        what_to_do = (
            "A ledger keeps guarantees, and this variant's does not hold: remove [ledger] and use records that need no "
            'protection, or set variant = "sound".'
        )
        refuse(("ledger",), f'be left out with variant = "{protocol.variant}"', "a ledger", what_to_do)


def _check_assignment(protocol: ProtocolOptions, k: int) -> str:
    """Refuse limits that the assignment does not take or lacks; returns the assignment."""
    kind = protocol.assignment
    if kind is None:
        kind = "unconstrained" if protocol.variant == "sulloyd" else "constrained-exclusive"
    check_choice(("protocol", "assignment"), kind, _LIMITS)
    for limit in ("alpha_min", "alpha_max", "memberships_max", "radius"):
        value = getattr(protocol, limit)
        if value is not None and limit not in _LIMITS[kind]:
            what_to_do = f"assignment = {show_value(kind)} takes {', '.join(_LIMITS[kind]) or 'no limits'}."
            refuse(("protocol", limit), "come with an assignment that takes it", show_value(kind), what_to_do)
    for limit in ("alpha_min", "alpha_max"):
        value = getattr(protocol, limit)
        if value is not None and check_number(("protocol", limit), value) < 1:
            refuse(("protocol", limit), "be at least 1", show_value(value), "The papers' values are 1.25, 1.5 and 3.")
    if kind == "constrained-e-exclusive":
        if protocol.memberships_max is None:
            must = "be given with constrained-e-exclusive"
            refuse(("protocol", "memberships_max"), must, "none", "It is the thesis's E.")
        check_integer(("protocol", "memberships_max"), protocol.memberships_max, 1, k)
    return kind


def _check_postprocess(protocol: ProtocolOptions) -> None:
    path: KeyPath = ("protocol", "postprocess")
    words: object = protocol.postprocess
    if words is None:
        return
    if not isinstance(words, (list, tuple)) or len(words) != 3:
        example = 'Write: postprocess = ["none", "none", "fold"]'
        refuse(path, "be three words, for sums, counts and centres", show_value(words), example)
    for i, word in enumerate(words):
        check_choice((*path, i), word, CORRECTIONS)
    if protocol.variant in ("published", "amn") and tuple(words[:2]) != ("none", "none"):
        what_to_do = "It releases centres, no sums and counts: only the third word can differ."
        refuse(path, 'begin with "none", "none"', ", ".join(map(show_value, words)), what_to_do)
