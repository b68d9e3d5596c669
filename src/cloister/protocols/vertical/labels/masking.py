"""Labels under encryption: each cell's label for a record, times whether the record is in that cell, plus a pad."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from cloister.crypto import Entropy, Stream, derive_key
from cloister.errors import RemoteProtocolError
from cloister.lattice.encryption import decrypt
from cloister.lattice.keys import PublicKeys, SecretKeys
from cloister.lattice.packing import count_bytes, pack_residues, pack_words, unpack_residues, unpack_words
from cloister.lattice.parameters import Parameters
from cloister.lattice.ring import PRIME_BITS
from cloister.lattice.slots import SLOT_MODULUS, RlweCiphertext, SlotCodec, flood_rlwe, multiply_plain, rerandomise_rlwe
from cloister.protocols.vertical.contents import decode
from cloister.protocols.vertical.evaluation import Block
from cloister.records import IntArray

SEED_BYTES = 32
_VALUE_BITS = SLOT_MODULUS.bit_length()


def mask_labels(
    block: Block,
    labels: NDArray[np.int16],
    pads: IntArray,
    *,
    public: PublicKeys,
    flood_bits: int,
    stream: Entropy,
) -> RlweCiphertext:
    """Encrypt the label of each record of a block, plus its pad.

    Parameters
    ----------
    block
        The encrypted indicators of the records' cells, records in slots.
    labels
        (m, n_b): each record's label if it is in cell c.
    pads
        (N,): uniform modulo 65537, also in the slots of a last block that hold no record.
    public
        The key that the block is encrypted under.
    flood_bits
        How wide the flood is.
    stream
        Where re-randomisation and flood come from.
    """
    parameters, ring = public.parameters, public.parameters.ring
    codec = SlotCodec(parameters.degree)
    slots = np.zeros((len(labels), parameters.degree), dtype=np.int64)
    slots[:, : labels.shape[1]] = labels
    chosen = multiply_plain(ring, block.masks, block.bodies[:, None], codec.encode(slots))
    scaled_pads = ring.scale(ring.reduce(codec.encode(pads)), ring.residues_of(parameters.delta))
    padded = replace(chosen, bodies=ring.add(chosen.bodies, scaled_pads[None]))
    return flood_rlwe(ring, rerandomise_rlwe(padded, public, stream), flood_bits, stream)


def decrypt_masked(keys: SecretKeys, masked: RlweCiphertext) -> IntArray:
    """Return label plus pad of each slot, (N,), in 0..65536: to the key holder, uniform numbers."""
    coefficients = decrypt(keys, masked.mask[None], masked.bodies[None])[0, 0]
    values: IntArray = SlotCodec(keys.parameters.degree).decode(coefficients) % SLOT_MODULUS
    return values


def draw_pads(seed: bytes, block: int, degree: int) -> IntArray:
    """Return a block's pads, (N,), from the seed that Alice drew for this session."""
    return Stream(derive_key(seed, "label pads", block)).integers(SLOT_MODULUS, degree)


def unmask_labels(values: IntArray, seed: bytes, degree: int) -> IntArray:
    """Take the pads off masked labels (n,) of consecutive records."""
    blocks = range(-(-len(values) // degree))
    pads = np.concatenate([draw_pads(seed, block, degree) for block in blocks])
    labels: IntArray = (values - pads[: len(values)]) % SLOT_MODULUS
    return labels


# --- letters ----------------------------------------------------------------------------------------------------------


class MaskedLabels(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """From Alice: some blocks of masked labels to the key holder, and the pads' seed to whoever is granted labels."""

    blocks: bytes | None
    pad_seed: bytes | None


def pack_masked(blocks: list[RlweCiphertext] | None, pad_seed: bytes | None, parameters: Parameters) -> bytes:
    """Write what Alice sends one party."""
    raw = None
    if blocks is not None:
        primes = parameters.primes
        raw = b"".join(pack_residues(one.mask, primes) + pack_residues(one.bodies, primes) for one in blocks)
    return msgspec.msgpack.encode(MaskedLabels(raw, pad_seed))


def unpack_masked(raw: bytes) -> MaskedLabels:
    """Read what Alice sent; the seed's length is checked here."""
    masked = decode(raw, MaskedLabels)
    if masked.pad_seed is not None and len(masked.pad_seed) != SEED_BYTES:
        raise RemoteProtocolError(f"the seed of pads must have {SEED_BYTES} bytes; got {len(masked.pad_seed)}.")
    return masked


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
