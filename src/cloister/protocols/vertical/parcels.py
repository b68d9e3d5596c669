"""What is inside the boxes: contents of posts and letters as bytes, and back with every check.

A box comes from a party that holds its key, so whatever is wrong inside was put there by it: still nothing is trusted.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Annotated, TypeVar

import msgspec
import numpy as np
from msgspec import Meta, Struct

from cloister.errors import RemoteProtocolError
from cloister.lattice.lwe import LweBatch, SmallLweBatch
from cloister.lattice.ntt import Residues
from cloister.lattice.packing import count_bytes, pack_residues, pack_words, unpack_residues, unpack_words
from cloister.lattice.parameters import Parameters
from cloister.protocols.vertical.codebook import Codebook
from cloister.protocols.vertical.layout import cut_axes
from cloister.protocols.vertical.settings import ALICE, Settings
from cloister.records import IntArray
from cloister.wire import Array

_WORD_BITS = 64
Content = TypeVar("Content", bound=Struct)


class CodebookParcel(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A codebook; where records were read for it, that has been paid for."""

    reps: Array
    weights: Array
    variance: float
    residual_radius: Annotated[float, Meta(ge=0, lt=2**25)] | None  # every float is as long: lengths tell nothing
    bins: tuple[Annotated[int, Meta(ge=1, lt=2**16)], ...]


class Prepared(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """What a party says first: its codebook where it has columns, its commitment where coins are tossed."""

    codebook: CodebookParcel | None
    commitment: bytes | None


class KeysParcel(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A public key, or a holder's share of one; the seed of its mask unless coins were tossed for it."""

    seed: bytes | None
    bodies: bytes
    relinearisation: bytes | None = None


def encode(content: Struct) -> bytes:
    """Return a structured content as bytes."""
    return msgspec.msgpack.encode(content)


def decode_prepared(raw: bytes) -> Prepared:
    """Read what a party says first."""
    return _decode(raw, Prepared)


def decode_keys(raw: bytes) -> KeysParcel:
    """Read a public key or a share of one."""
    return _decode(raw, KeysParcel)


def pack_codebook(codebook: Codebook) -> CodebookParcel:
    """Write a codebook."""
    return CodebookParcel(
        Array.of(codebook.reps),
        Array.of(codebook.weights),
        codebook.variance,
        None if codebook.residual_radius is None else float(codebook.residual_radius),
        codebook.bins,
    )


def unpack_codebook(parcel: CodebookParcel, settings: Settings, party: int) -> Codebook:
    """Read the codebook of a holder, from 0, or of ``ALICE``: only one that the settings allow."""
    cells, columns, bins = _expect_cells(settings, party)
    units, radius = settings.units, parcel.residual_radius
    reps = np.ascontiguousarray(parcel.reps.to_numpy(np.float64, cells, columns))
    weights = parcel.weights.to_numpy(np.float64, cells)
    on_grid = bool((np.abs(reps) <= 1.0).all()) and np.array_equal(reps * units, np.rint(reps * units))
    if not on_grid or not (weights > 0).all() or not 0 <= parcel.variance < np.inf or parcel.bins != bins:
        raise RemoteProtocolError(
            "a codebook must have the agreed cells, representatives on the agreed grid within the bounds, positive "
            "weights and a finite variance; it does not."
        )
    most = settings.residual_most if party != ALICE else 0
    allowed = settings.is_exact and most > 0 if radius is None else radius <= most and radius.is_integer()
    if not allowed:
        raise RemoteProtocolError(f"residuals of a codebook must be at most {most} units long; they are not.")
    return Codebook(
        reps=reps,
        units=units,
        residual_radius=None if radius is None else int(radius),
        variance=parcel.variance,
        weights=np.ascontiguousarray(weights),
        bins=parcel.bins,
    )


def _expect_cells(settings: Settings, party: int) -> tuple[int, int, tuple[int, ...]]:
    """How many cells and columns a party's codebook has, and its bins where it is a grid."""
    if party != ALICE:
        columns, cells = len(settings.columns_encrypted[party]), settings.cells_of(party)
    elif ALICE in settings.codebook_makers:
        columns, cells = len(settings.columns_alice), settings.alice_cells
    else:
        return 1, 0, ()
    if not settings.is_grid(party):
        return cells, columns, ()
    bins = cut_axes(columns, cells)
    return prod(bins), columns, bins


def pack_answer(batch: LweBatch | SmallLweBatch, digest: bytes) -> bytes:
    """Write an answer: a digest of its question, its masks, its bodies."""
    if isinstance(batch, SmallLweBatch):
        return digest + pack_words(batch.masks, batch.bits) + pack_words(batch.bodies, batch.bits)
    primes = batch.parameters.primes
    return digest + pack_residues(batch.masks, primes) + pack_residues(batch.bodies, primes)


def unpack_answer(
    raw: bytes, digest: bytes, *, parameters: Parameters, length: int, bits: int | None
) -> LweBatch | SmallLweBatch | None:
    """Read an answer of so many numbers, modulo 2^bits or, where that is None, modulo q; None: to another question."""
    if raw[: len(digest)] != digest:
        return None
    raw = raw[len(digest) :]
    places = np.arange(length)
    secrets = np.zeros(length, dtype=np.int64)
    if bits is None:
        shape = (length, len(parameters.primes), parameters.degree)
        cut = count_bytes(length * parameters.degree * len(parameters.primes), 27)
        masks = unpack_residues(raw[:cut], parameters, shape)
        bodies = unpack_residues(raw[cut:], parameters, shape[:2])
        return LweBatch(parameters=parameters, masks=masks, bodies=bodies, mask_of=places, secret_of=secrets)
    cut = count_bytes(length * parameters.degree, bits)
    return SmallLweBatch(
        parameters=parameters,
        bits=bits,
        masks=unpack_words(raw[:cut], bits, (length, parameters.degree)),
        bodies=unpack_words(raw[cut:], bits, (length,)),
        mask_of=places,
        secret_of=secrets,
    )


def pack_share(share: Residues, parameters: Parameters, members: Sequence[int]) -> bytes:
    """Write a share of a decryption: who else it is for, two bytes each, and one number modulo q for each body."""
    return _list_members(members) + pack_residues(share, parameters.primes)


def unpack_share(raw: bytes, parameters: Parameters, *, length: int, members: Sequence[int]) -> Residues:
    """Read a share of so many numbers; it must be for exactly these members.

    Shares fit together only if all were made for the same ones, and the relay says for whom.
    """
    expected = _list_members(members)
    if raw[: len(expected)] != expected:
        raise RemoteProtocolError("a share of a decryption must be made for those who sent theirs; one is not.")
    return unpack_residues(raw[len(expected) :], parameters, (length, len(parameters.primes)))


def _list_members(members: Sequence[int]) -> bytes:
    return b"".join(member.to_bytes(2, "little") for member in sorted(members))


def pack_totals(totals: IntArray) -> bytes:
    """Write integers."""
    return pack_words(totals.astype(np.int64).view(np.uint64), _WORD_BITS)


def unpack_totals(raw: bytes, *, length: int, most: int) -> IntArray:
    """Read so many integers, none larger than ``most`` in magnitude."""
    totals = unpack_words(raw, _WORD_BITS, (length,)).view(np.int64)
    if (totals > most).any() or (totals < -most).any():
        raise RemoteProtocolError("totals must lie within the plaintext modulus; some do not.")
    return totals


def _decode(raw: bytes, kind: type[Content]) -> Content:
    try:
        return msgspec.msgpack.decode(raw, type=kind)
    except (msgspec.MsgspecError, ValueError, OverflowError, RecursionError, MemoryError):
        raise RemoteProtocolError(f"the content of a box must be a {kind.__name__}; it is not.") from None
