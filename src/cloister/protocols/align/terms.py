"""What all parties of an alignment agree on, what they send, and who learns what.

The leakage arguments are in docs/proofs/align.md; test_leakage.py tests them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Annotated, Literal, get_args

from msgspec import Meta, Struct

from cloister.aggregation.seed_agreement import OpenSession, Ready, SealedSeeds, SessionOpened, ShareSeed, TakeSeed
from cloister.crypto import SignedSessionKey, encode_context
from cloister.errors import ConfigError
from cloister.privacy.units import LeakageTable, Learns, Row
from cloister.protocols.align.group import POINT_BYTES
from cloister.wire import Array, Codec

IdKind = Literal["text", "integer", "raw"]
_ID_KINDS: tuple[IdKind, ...] = get_args(IdKind)

_PART_ELEMENTS = 8192  # 256 KiB per message: about 0.4 s of a party's work between two progress updates
_PART_ELEMENTS_MOST = 2**20


class Mode(Enum):
    """Which IDs get a place in the common order."""

    INTERSECTION = "intersection"
    """Those that every party holds: what a vertical job needs."""
    UNION = "union"
    """Those that any party holds: what SecFC needs to hide who holds which record (SecFC 6)."""


@dataclass(frozen=True, kw_only=True)
class NormalForm:
    """When two IDs are equal.

    Parameters
    ----------
    kind
        ``"text"``: equal as Unicode text (NFC); the integer 7 equals the text 7, but 007 is another ID. ``"integer"``:
        equal as whole numbers, so that 007 is 7. ``"raw"``: equal byte for byte; text counts as its UTF-8 bytes.
    trim
        Blanks at either end are ignored. Otherwise they are refused, except in ``"raw"``.
    ignore_case
        Case is ignored; for ``"text"`` only.
    """

    kind: IdKind = "text"
    trim: bool = False
    ignore_case: bool = False

    def __post_init__(self) -> None:
        if self.kind not in _ID_KINDS:
            raise ConfigError(f"the form of IDs must be one of {', '.join(_ID_KINDS)}; got {self.kind!r}.")
        if (self.trim and self.kind == "raw") or (self.ignore_case and self.kind != "text"):
            raise ConfigError(
                "trim must come with text or integer IDs, and ignore_case with text; "
                f"got kind {self.kind!r}, trim {self.trim}, ignore_case {self.ignore_case}. Remove one."
            )


@dataclass(frozen=True, kw_only=True)
class Terms:
    """The public side of a session.

    Parameters
    ----------
    mode, form
        Which IDs get a place, and when two are equal.
    directory
        The identity of each party, in order.
    part_elements
        How many blinded IDs travel in one message.
    """

    mode: Mode
    directory: tuple[bytes, ...]
    form: NormalForm = field(default_factory=NormalForm)
    part_elements: int = _PART_ELEMENTS

    def __post_init__(self) -> None:
        if self.parties < 2:
            raise ConfigError(f"at least two parties must align their IDs; got {self.parties}.")
        if not 1 <= self.part_elements <= _PART_ELEMENTS_MOST:
            raise ConfigError(f"part_elements must be from 1 to {_PART_ELEMENTS_MOST}; got {self.part_elements}.")

    @property
    def parties(self) -> int:
        """The number of parties."""
        return len(self.directory)

    @property
    def digest(self) -> bytes:
        """The digest of all fields; parties with another digest refuse the session."""
        form = (self.form.kind, int(self.form.trim), int(self.form.ignore_case))
        return hashlib.sha256(
            encode_context("cloister align", 1, self.mode.value, *form, self.part_elements, *self.directory)
        ).digest()

    def owner_at(self, party: int, hop: int) -> int:
        """Return whose list a party blinds at a hop: its own at hop 0, then its predecessor's, and so on."""
        return (party - 1 - hop) % self.parties + 1

    def carrier_at(self, owner: int, hop: int) -> int:
        """Return who blinds an owner's list at a hop; the inverse of :meth:`owner_at`."""
        return (owner - 1 + hop) % self.parties + 1

    def count_parts(self, elements: int) -> int:
        """Return how many messages a list of this many IDs takes."""
        return -(-elements // self.part_elements)

    def slice_part(self, part: int, elements: int) -> slice:
        """Return which IDs of a list travel in one part."""
        return slice(part * self.part_elements, min((part + 1) * self.part_elements, elements))

    def count_part_bytes(self, part: int, elements: int) -> int:
        """Return the size of the points of one part."""
        return (min((part + 1) * self.part_elements, elements) - part * self.part_elements) * POINT_BYTES


# --- messages; tags 1-3 belong to the seed agreement ------------------------------------------------------------------

Elements = Annotated[int, Meta(ge=0, lt=2**40)]
Part = Annotated[int, Meta(ge=0, lt=2**31)]
Hop = Annotated[int, Meta(ge=0, lt=2**16)]
DIGEST_BYTES = 32


class MeetRing(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=4):
    """The signed session keys of all parties; asks for the length of our list."""

    keys: tuple[SignedSessionKey, ...]


class BlindPart(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=5):
    """One part of a list, sealed to us by our predecessor in the ring (empty at hop 0: our own), for us to blind."""

    hop: Hop
    part: Part
    box: bytes | None


class TakePlaces(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=6):
    """The places of one part of our own list in the common order; -1 for IDs without a place."""

    part: Part
    places: Array


class Finish(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=7):
    """How many places there are, and the digest of the blinded IDs in their order."""

    count: Elements
    digest: Annotated[bytes, Meta(min_length=DIGEST_BYTES, max_length=DIGEST_BYTES)]


class RingMet(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=4):
    """How many IDs are in our list, and for each list our key for it divided by our key for the first list."""

    elements: Elements
    ratios: tuple[bytes, ...]


class Passed(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=5):
    """A part blinded by us, sealed to our successor in the ring."""

    box: bytes


class Delivered(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=6):
    """A part blinded by every party, last by us; for the coordinator."""

    points: bytes


Request = OpenSession | ShareSeed | TakeSeed | MeetRing | BlindPart | TakePlaces | Finish
Reply = SessionOpened | SealedSeeds | Ready | RingMet | Passed | Delivered
CODEC = Codec("align", requests=Request, replies=Reply)


# --- who learns what --------------------------------------------------------------------------------------------------

_WITHSTANDS = "The semi-honest coordinator alone, and semi-honest parties without it, learn no more than stands above."
_BREAKS_IF = (
    "The coordinator and any one party together: they know which parties hold the record at each place, and with that "
    "party's IDs which of these other parties hold. IDs that the party does not hold stay hidden even then. Parties "
    "alone, all but one of them, learn what sizes, count and their own places imply about the last one, and no more."
)


def _row(role: str, value: str, meaning: str, learns: Learns) -> Row:
    return Row(role=role, value=value, meaning=meaning, learns=learns)


_COORDINATOR = (
    _row("coordinator", "sizes", "how many IDs each party brought", Learns.EXACT),
    _row("coordinator", "overlaps", "how many IDs each group of parties has in common", Learns.EXACT),
    _row("coordinator", "ids", "the IDs, and the rows that they are in", Learns.NOTHING),
    _row("coordinator", "holders", "which single party holds the record at a place of the final order", Learns.NOTHING),
)
_SIZES = _row("party", "sizes", "how many IDs each party brought", Learns.EXACT)

LEAKAGE: Mapping[Mode, LeakageTable] = {
    Mode.INTERSECTION: LeakageTable(
        source="SecFC 6; Meadows 1986; docs/proofs/align.md",
        rows=(
            *_COORDINATOR,
            _SIZES,
            _row("party", "count", "how many IDs all parties have in common", Learns.EXACT),
            _row("party", "places", "which of its IDs all parties hold, and their places", Learns.OWN),
            _row("party", "ids", "IDs that it does not hold, and which parties hold the rest", Learns.NOTHING),
        ),
        withstands=_WITHSTANDS,
        breaks_if=_BREAKS_IF,
    ),
    Mode.UNION: LeakageTable(
        source="SecFC 6 and appendix B; docs/proofs/align.md",
        rows=(
            *_COORDINATOR,
            _SIZES,
            _row("party", "count", "how many different IDs there are in total", Learns.EXACT),
            _row("party", "places", "the places of its IDs in a common random order", Learns.OWN),
            _row("party", "ids", "IDs that it does not hold, and who else holds those that it does", Learns.NOTHING),
        ),
        withstands=_WITHSTANDS,
        breaks_if=_BREAKS_IF + " With two parties, sizes and count tell both how many IDs they share.",
    ),
}
