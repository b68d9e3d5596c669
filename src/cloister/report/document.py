"""result.json, schema 1: the versioned form of a result, strict in both directions."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

import msgspec

from cloister.columns import Column
from cloister.errors import ConfigError
from cloister.privacy.card import PrivacyCard
from cloister.report.result import CellBook, Evaluation, KChoice, Learned, NetworkTime, PartyTraffic, Result

SCHEMA = 1
Struct = TypeVar("Struct", bound=msgspec.Struct)


class _Version(msgspec.Struct):
    """The part of every schema that never changes."""

    schema: int


class _Document(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """result.json, schema 1: a ``Result`` with its centres as rows of numbers."""

    schema: int
    name: str
    protocol: str
    k: int
    columns: tuple[Column, ...]
    centres: tuple[tuple[float, ...], ...]
    rounds: int
    parties: tuple[PartyTraffic, ...]
    leakage: tuple[Learned, ...]
    breaks_if: str
    transcript_sha256: str | None = None
    created: str
    cloister_version: str
    fractional_bits: int
    ring_bits: int | None
    seeded: bool
    evaluation: Evaluation | None
    network: NetworkTime | None
    notes: tuple[str, ...]
    card: PrivacyCard | None = None
    cluster_records: tuple[float, ...] = ()
    cluster_records_noise: float | None = None
    released_records: float | None = None
    curve: tuple[KChoice, ...] = ()
    variant: str = ""
    codebooks: tuple[CellBook, ...] = ()


def encode_document(result: Result) -> bytes:
    """Return result.json."""
    document = _Document(
        schema=SCHEMA,
        k=result.k,
        centres=tuple(tuple(row) for row in result.centres.tolist()),
        # A loss is an exact statistic of all records: beside a promise of differential privacy it would break it.
        evaluation=result.evaluation if result.card is None else None,
        **{
            name: getattr(result, name)
            for name in _Document.__struct_fields__
            if name not in ("schema", "k", "centres", "evaluation")
        },
    )
    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"


def decode_document(raw: bytes, path: Path) -> Result:
    """Read result.json back.

    Parameters
    ----------
    raw
        The bytes of the file.
    path
        What messages call it.

    Raises
    ------
    ConfigError
        If it is damaged, incomplete, or of another schema.
    """
    schema = _decode(raw, _Version, path).schema
    if schema != SCHEMA:
        what_to_do = "Update Cloister." if schema > SCHEMA else "It was not written by Cloister."
        raise ConfigError(f"{path} must have schema {SCHEMA}; got {schema}. {what_to_do}")
    document = _decode(raw, _Document, path)
    if len({len(row) for row in document.centres}) != 1:
        raise _describe_damage(path, "centres whose rows are not of equal length")
    values = msgspec.structs.asdict(document)
    del values["schema"], values["k"]
    try:
        result = Result(**values)
    except ConfigError as error:
        raise _describe_damage(path, str(error)) from None
    if document.k != result.k:
        raise _describe_damage(path, f"k = {document.k} with {result.k} centres")
    return result


def _decode(raw: bytes, kind: type[Struct], path: Path) -> Struct:
    """Decode JSON into a struct; every way in which it can fail is the file's fault."""
    try:
        return msgspec.json.decode(raw, type=kind)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise _describe_damage(path, str(error)) from None


def _describe_damage(path: Path, got: str) -> ConfigError:
    """Return the error for a file that Cloister did not write like this."""
    return ConfigError(f"{path} must be a complete Cloister result; got: {got.rstrip('.')}. Use an unchanged copy.")
