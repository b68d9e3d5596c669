"""Labels under encryption: what each cell would mean for a record, times whether it is in that cell, plus a pad."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from cloister.crypto import Entropy, Stream, derive_key
from cloister.lattice.encryption import decrypt
from cloister.lattice.keys import PublicKeys, SecretKeys
from cloister.lattice.slots import (
    SLOT_MODULUS,
    RlweCiphertext,
    SlotCodec,
    flood_rlwe,
    multiply_plain,
    rerandomise_rlwe,
)
from cloister.protocols.vertical.evaluation import Block
from cloister.records import IntArray


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
