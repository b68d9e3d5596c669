"""What is inside the letters of a session for labels, as bytes, and back with every check."""

from __future__ import annotations

import msgspec
import numpy as np
from msgspec import Struct

from cloister.errors import RemoteProtocolError
from cloister.lattice.packing import count_bytes, pack_residues, pack_words, unpack_residues, unpack_words
from cloister.lattice.parameters import Parameters
from cloister.lattice.primes import PRIME_BITS
from cloister.lattice.slots import SLOT_MODULUS, RlweCiphertext
from cloister.records import IntArray

SEED_BYTES = 32
_VALUE_BITS = SLOT_MODULUS.bit_length()


class MaskedParcel(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """From Alice: some blocks of masked labels to the key holder, and the pads' seed to whoever is granted labels."""

    blocks: bytes | None
    pad_seed: bytes | None


def pack_masked(blocks: list[RlweCiphertext] | None, pad_seed: bytes | None, parameters: Parameters) -> bytes:
    """Write what Alice sends one party."""
    raw = None
    if blocks is not None:
        primes = parameters.primes
        raw = b"".join(pack_residues(one.mask, primes) + pack_residues(one.bodies, primes) for one in blocks)
    return msgspec.msgpack.encode(MaskedParcel(raw, pad_seed))


def unpack_masked(raw: bytes) -> MaskedParcel:
    """Read what Alice sent; the seed's length is checked here."""
    try:
        parcel = msgspec.msgpack.decode(raw, type=MaskedParcel)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        raise RemoteProtocolError("masked labels must be a MaskedParcel; they are not.") from None
    if parcel.pad_seed is not None and len(parcel.pad_seed) != SEED_BYTES:
        raise RemoteProtocolError(f"the seed of pads must have {SEED_BYTES} bytes; got {len(parcel.pad_seed)}.")
    return parcel


def unpack_blocks(raw: bytes, parameters: Parameters, count: int) -> list[RlweCiphertext]:
    """Read so many blocks of masked labels."""
    shape = (len(parameters.primes), parameters.degree)
    half = count_bytes(shape[0] * shape[1], PRIME_BITS)
    if len(raw) != 2 * half * count:
        raise RemoteProtocolError(
            f"{count} blocks of masked labels must have {2 * half * count} bytes; got {len(raw)}."
        )
    return [
        RlweCiphertext(
            mask=unpack_residues(raw[first : first + half], parameters, shape),
            bodies=unpack_residues(raw[first + half : first + 2 * half], parameters, (1, *shape)),
        )
        for first in range(0, len(raw), 2 * half)
    ]


def pack_values(values: IntArray) -> bytes:
    """Write masked labels, 17 bits each."""
    return pack_words(values.astype(np.uint64), _VALUE_BITS)


def unpack_values(raw: bytes, records: int) -> IntArray:
    """Read as many masked labels as there are records."""
    values: IntArray = unpack_words(raw, _VALUE_BITS, (records,)).astype(np.int64)
    if (values >= SLOT_MODULUS).any():
        raise RemoteProtocolError("masked labels must be below the plaintext modulus; some are not.")
    return values
