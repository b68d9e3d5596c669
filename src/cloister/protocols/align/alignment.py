"""An alignment: for one party, which of its rows is at each place of the order that all parties share.

The file is for its party only: it says which of the party's rows others hold, too. It is JSON::

    {"format": "cloister alignment", "version": 1,
     "mode": "intersection",          or "union"
     "digest": "5f0c...",             64 hex digits: the same at all parties of this alignment, and nowhere else
     "records": 1200,                 rows of the table that was aligned
     "ids_sha256": "91ab...",         of its IDs in order: shows whether the table is still the same
     "rows": [17, 4, -1, ...]}        the row, from 0, at each place; -1 (union only): another party's
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import msgspec
import numpy as np
from msgspec import Meta, Struct

from cloister.crypto import encode_context
from cloister.errors import ConfigError, DataError, told_to_owner
from cloister.protocols.align.terms import Mode
from cloister.records import IntArray

_Hex = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
_HOW = "Run: cloister align JOB.TOML --id COLUMN --out FOLDER"


@dataclass(frozen=True, kw_only=True, eq=False)
class Alignment:
    """One party's share of an alignment.

    Attributes
    ----------
    mode
        Intersection or union.
    digest
        Identifies the alignment; the same at all its parties.
    records
        Rows of the party's table.
    rows
        The row, from 0, at each place; -1 where the party holds none.
    ids_sha256
        The digest of the table's IDs in order; see :func:`check_ids`.
    """

    mode: Mode
    digest: str
    records: int
    rows: IntArray
    ids_sha256: str

    def __post_init__(self) -> None:
        held = self.rows[self.rows >= 0]
        wanted = self.rows.size if self.mode is Mode.INTERSECTION else self.records
        if held.size != wanted or np.unique(held).size != held.size or held.max(initial=-1) >= self.records:
            raise ConfigError(
                "an alignment must name each of the party's rows at most once, in a union exactly once, and in an "
                f"intersection no other; this one does not. {_HOW}"
            )

    @property
    def count(self) -> int:
        """The number of places, the same at all parties: of records in common, or m of SecFC, section 6."""
        return int(self.rows.size)

    @property
    def places(self) -> IntArray:
        """The place of each row; -1 if it has none. The inverse of ``rows``."""
        places = np.full(self.records, -1, dtype=np.int64)
        held = self.rows >= 0
        places[self.rows[held]] = np.flatnonzero(held)
        return places


class _Document(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The file, field by field."""

    format: Literal["cloister alignment"] = "cloister alignment"
    version: Literal[1] = 1
    mode: Mode
    digest: _Hex
    records: Annotated[int, Meta(ge=0, lt=2**40)]
    ids_sha256: _Hex
    rows: list[Annotated[int, Meta(ge=-1, lt=2**40)]]


def encode_alignment(alignment: Alignment) -> bytes:
    """Return the file's bytes."""
    return msgspec.json.encode(
        _Document(
            mode=alignment.mode,
            digest=alignment.digest,
            records=alignment.records,
            ids_sha256=alignment.ids_sha256,
            rows=alignment.rows.tolist(),
        )
    )


def decode_alignment(raw: bytes, label: str = "the file") -> Alignment:
    """Undo :func:`encode_alignment`; anything else raises :class:`ConfigError`, which quotes nothing of it."""
    try:
        document = msgspec.json.decode(raw, type=_Document)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        raise ConfigError(f"{label} must be an alignment of version 1; it is not. {_HOW}") from None
    return Alignment(
        mode=document.mode,
        digest=document.digest,
        records=document.records,
        rows=np.array(document.rows, dtype=np.int64),
        ids_sha256=document.ids_sha256,
    )


def check_alignments(alignments: Mapping[str, Alignment], records: Mapping[str, int], *, mode: Mode) -> int:
    """Refuse a job whose parties were not aligned together, or whose tables have changed since.

    Parameters
    ----------
    alignments
        By party.
    records
        The number of rows that the table of each party of the job has now.
    mode
        The mode that the job needs.

    Returns
    -------
    int
        The number of places, the same at all parties.

    Raises
    ------
    ConfigError
        If a party has no alignment or one of another mode, or if they are not all from one session.
    AbsentError
        If a table does not have as many rows as were aligned; its owner alone is told.
    """
    for party in records:
        if party not in alignments:
            raise ConfigError(f"every party must have an alignment; party {party!r} has none. {_HOW}")
        if alignments[party].mode is not mode:
            raise ConfigError(
                f"this job needs an alignment by {mode.value}; that of party {party!r} is by "
                f"{alignments[party].mode.value}. {_HOW} --mode {mode.value}"
            )
    of_job = {party: alignments[party] for party in records}
    digests = {(alignment.digest, alignment.count) for alignment in of_job.values()}
    if len(digests) != 1:
        raise ConfigError(
            "all files must come from one alignment, with one digest; the digests start with "
            + ", ".join(f"{party} {alignment.digest[:8]}" for party, alignment in of_job.items())
            + f". Align all parties again, together. {_HOW}"
        )
    for party, alignment in of_job.items():
        with told_to_owner(party):
            if alignment.records != records[party]:
                raise DataError(
                    f"the table of party {party!r} must have the {alignment.records} rows that were aligned; it has "
                    f"{records[party]}. Use the table that was aligned, or align again. {_HOW}"
                )
    return next(iter(digests))[1]


def digest_ids(ids: Sequence[bytes], digest: str) -> str:
    """Digest a table's IDs in their order, for one alignment."""
    state = hashlib.sha256(encode_context("cloister aligned ids", digest))
    for exact_id in ids:
        state.update(len(exact_id).to_bytes(4, "little") + exact_id)
    return state.hexdigest()


def check_ids(alignment: Alignment, ids: Sequence[bytes], *, label: str) -> None:
    """Refuse a table whose IDs, in normal form, are not row by row those that were aligned.

    Otherwise, the same number of rows in another order would join the records of different people.
    """
    if digest_ids(ids, alignment.digest) != alignment.ids_sha256:
        raise DataError(
            f"{label}: the table must hold the IDs that were aligned, in the same order; it does not. "
            "Use the table that was aligned, with the same rule for equal IDs (--form, --trim, --ignore-case; "
            f"in a job id_form, id_trim, id_ignore_case); or align again. {_HOW}"
        )
