"""What all parties of an alignment agree on: intersection or union, what makes two IDs equal, who takes part."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from enum import Enum
from typing import Literal

from cloister.crypto.stream import encode_context
from cloister.errors import ConfigError
from cloister.protocols.align.blinding import POINT_BYTES

IdKind = Literal["text", "integer", "raw"]
ID_KINDS: tuple[IdKind, ...] = ("text", "integer", "raw")

_PART_ELEMENTS = 8192  # 256 KiB a message: some 0.4 s of a party's work between two signs of progress
_PART_ELEMENTS_MOST = 2**20


class Mode(Enum):
    """Which IDs get a place in the common order."""

    INTERSECTION = "intersection"
    """Those that every party holds: what a vertical job needs."""
    UNION = "union"
    """Those that any party holds: what SecFC needs to hide who holds which record (SecFC 6)."""


@dataclass(frozen=True, kw_only=True)
class NormalForm:
    """What makes two IDs equal.

    Parameters
    ----------
    kind
        ``"text"``: equal as Unicode text (NFC); the integer 7 is the text 7, and 007 is another ID. ``"integer"``:
        equal as whole numbers, so that 007 is 7. ``"raw"``: equal byte for byte; text counts as its UTF-8 bytes.
    trim
        Blanks at either end do not count. Otherwise they are refused, except in ``"raw"``.
    ignore_case
        Upper and lower case are the same; for ``"text"`` only.
    """

    kind: IdKind = "text"
    trim: bool = False
    ignore_case: bool = False

    def __post_init__(self) -> None:
        if self.kind not in ID_KINDS:
            raise ConfigError(f"the form of IDs must be one of {', '.join(ID_KINDS)}; got {self.kind!r}.")
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
        Which IDs are placed, and when two are equal.
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
        """How many there are."""
        return len(self.directory)

    @property
    def digest(self) -> bytes:
        """Of everything above; parties with another digest refuse the session."""
        form = (self.form.kind, int(self.form.trim), int(self.form.ignore_case))
        return hashlib.sha256(
            encode_context("cloister align", 1, self.mode.value, *form, self.part_elements, *self.directory)
        ).digest()

    def owner_at(self, party: int, hop: int) -> int:
        """Whose list a party blinds at a hop: its own at hop 0, then its predecessor's, and so on around the ring."""
        return (party - 1 - hop) % self.parties + 1

    def carrier_at(self, owner: int, hop: int) -> int:
        """Who blinds an owner's list at a hop; undoes :meth:`owner_at`."""
        return (owner - 1 + hop) % self.parties + 1

    def count_parts(self, elements: int) -> int:
        """How many messages a list of so many IDs takes."""
        return -(-elements // self.part_elements)

    def slice_part(self, part: int, elements: int) -> slice:
        """Which IDs of a list travel in one part."""
        return slice(part * self.part_elements, min((part + 1) * self.part_elements, elements))

    def count_part_bytes(self, part: int, elements: int) -> int:
        """The points of one part."""
        return (min((part + 1) * self.part_elements, elements) - part * self.part_elements) * POINT_BYTES
