"""The encrypted cells in transit: what a holder of columns sends once, and what the computing party keeps of it.

For each block of N records and each cell c there is one ciphertext of the indicators 1_c(p), record p in coefficient p;
where there are residuals, one more for each cell and column. Under its own secret key a holder sends bodies only: masks
are grown from a seed. Under a public key both halves travel.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cloister.crypto import Stream
from cloister.errors import RemoteProtocolError
from cloister.lattice.encryption import encrypt_public, encrypt_seeded
from cloister.lattice.joint_cells import encrypt_indicators, joint_cells
from cloister.lattice.keys import PublicKeys, SecretKeys
from cloister.lattice.packing import pack_residues, unpack_residues
from cloister.lattice.parameters import parameters_at
from cloister.lattice.product_plan import ProductPlan
from cloister.lattice.products import LsbBatch
from cloister.lattice.relinearisation import RelinearisationKey
from cloister.lattice.sampling import expand_masks
from cloister.lattice.slots import encode_slots
from cloister.protocols.vertical.agreement import VerticalAgreement
from cloister.protocols.vertical.codebook import Codebook
from cloister.protocols.vertical.evaluation import Block
from cloister.records import FloatArray, IntArray


class Sender:
    """A holder's side.

    Parameters
    ----------
    agreement
        The public parameters.
    place
        Which of the holders of encrypted columns this is, from 0.
    codebook, columns
        Its codebook, and its columns, (n, d_h): cells and residuals leave encrypted.
    keys
        The holder's secret key where it holds the session's; then masks are seeded.
    public
        The session's public key.
    stream
        Where errors come from.
    in_slots
        Whether records sit in slots, and not in coefficients; those of joint cells always do.
    """

    def __init__(
        self,
        agreement: VerticalAgreement,
        *,
        place: int,
        codebook: Codebook,
        columns: FloatArray,
        keys: SecretKeys | None,
        public: PublicKeys,
        stream: Stream,
        in_slots: bool = False,
    ) -> None:
        self._agreement = agreement
        self._place = place
        self._cells = codebook.cells
        self._exact_cells = codebook.assign(columns)
        residuals = agreement.settings.has_residuals
        self._exact_residuals = codebook.residuals(columns, self._exact_cells) if residuals else None
        self._keys, self._public, self._stream = keys, public, stream
        self._in_slots = in_slots

    def encrypt_upload(self, upload: int) -> bytes:
        """Encrypt one message's blocks."""
        return b"".join(self._encrypt(block) for block in self._agreement.blocks_of(upload))

    def _encrypt(self, block: int) -> bytes:
        agreement, primes = self._agreement, self._agreement.parameters.primes
        if agreement.plan is not None:
            cells = self._exact_cells[agreement.records_of(block)]
            indicators = np.zeros((self._cells, agreement.block_records), dtype=np.int64)
            indicators[cells, np.arange(len(cells))] = 1
            batch = encrypt_indicators(agreement.plan, self._public, self._place, indicators, self._stream)
            return pack_residues(batch.masks, batch.parameters.primes) + pack_residues(
                batch.bodies, batch.parameters.primes
            )
        messages = self._spread(agreement.records_of(block))
        if self._in_slots:
            t = agreement.parameters.plaintext_modulus
            messages = encode_slots(agreement.block_records, t, messages)
        if self._keys is not None and agreement.is_seeded:
            bodies = encrypt_seeded(self._keys, messages, seed=self._public.seed, block=block, stream=self._stream)
            return pack_residues(bodies, primes)
        masks, bodies = encrypt_public(self._public, messages, self._stream)
        return pack_residues(masks, primes) + pack_residues(bodies, primes)

    def _spread(self, rows: slice) -> IntArray:
        """Indicators, then residuals, each at its record's place in its cell's polynomial: (C, 1, N)."""
        cells = self._exact_cells[rows]
        places = np.arange(len(cells))
        out = np.zeros((self._agreement.bodies, 1, self._agreement.block_records), dtype=np.int64)
        out[cells, 0, places] = 1
        if self._exact_residuals is not None:
            left = self._exact_residuals[rows]
            for j in range(left.shape[1]):
                out[self._cells + cells * left.shape[1] + j, 0, places] = left[:, j]
        return out


class Receiver:
    """The computing party's side: blocks as they come, kept for all rounds; cells of several holders are multiplied.

    Parameters
    ----------
    agreement
        The public parameters.
    public
        The session's public key, whose seed gives the masks where they are seeded.
    key
        For products of ciphertexts, where there are any.
    """

    def __init__(self, agreement: VerticalAgreement, public: PublicKeys, key: RelinearisationKey | None) -> None:
        self._agreement = agreement
        self._public = public
        self._key = key
        self.blocks: list[Block] = []
        self._taken = 0

    def release(self) -> list[Block]:
        """Return the blocks that have come, and keep none of them."""
        blocks, self.blocks = self.blocks, []
        return blocks

    def take(self, raws: Sequence[bytes], upload: int) -> None:
        """Read one message of each holder, in the order of the agreement.

        Raises
        ------
        RemoteProtocolError
            If one is missing or does not have the agreed size, or if a residue is out of range; nothing is kept then.
        """
        if len(raws) != len(self._agreement.encrypted) or self._taken != self._agreement.blocks_of(upload).start:
            raise RemoteProtocolError(f"upload {upload + 1} must come from every holder, and in order; it does not.")
        if self._agreement.plan is None:
            self._take_single(raws[0], upload)
        else:
            self._take_joint(raws, upload, self._agreement.plan)
        self._taken = self._agreement.blocks_of(upload).stop

    def _take_joint(self, raws: Sequence[bytes], upload: int, plan: ProductPlan) -> None:
        """Multiply the holders' indicators, block by block."""
        assert self._key is not None
        numbers = self._agreement.blocks_of(upload)
        batches = [self._read_indicators(plan, holder, raw, upload) for holder, raw in enumerate(raws)]
        fresh = []
        for place in range(len(numbers)):
            joint = joint_cells(plan, self._key, [of_holder[place] for of_holder in batches])
            fresh.append(Block(masks=joint.masks, bodies=joint.bodies[:, 0]))
        self.blocks += fresh

    def _read_indicators(self, plan: ProductPlan, holder: int, raw: bytes, upload: int) -> list[LsbBatch]:
        """Read one holder's message, block by block."""
        self._check_size(raw, holder, upload)
        level = parameters_at(plan.parameters, plan.holder_level(holder))
        shape = (plan.load.cells[holder], len(level.primes), level.degree)
        half = self._agreement.half_bytes(holder)
        pieces = [raw[first : first + half] for first in range(0, len(raw), half)]
        return [
            LsbBatch(
                parameters=level,
                masks=unpack_residues(masks, level, shape),
                bodies=unpack_residues(bodies, level, shape),
                factor=plan.holder_factor(holder),
            )
            for masks, bodies in zip(pieces[::2], pieces[1::2], strict=True)
        ]

    def _take_single(self, raw: bytes, upload: int) -> None:
        """Read one message's blocks."""
        agreement, parameters = self._agreement, self._agreement.parameters
        self._check_size(raw, 0, upload)
        shape = (agreement.bodies, len(parameters.primes), parameters.degree)
        half = agreement.half_bytes(0)
        pieces = iter([raw[first : first + half] for first in range(0, len(raw), half)])
        fresh = []
        for number in agreement.blocks_of(upload):
            if agreement.is_seeded:
                masks = expand_masks(parameters, self._public.seed, number, agreement.bodies)
            else:
                masks = unpack_residues(next(pieces), parameters, shape)
            fresh.append(Block(masks=masks, bodies=unpack_residues(next(pieces), parameters, shape)))
        self.blocks += fresh

    def _check_size(self, raw: bytes, holder: int, upload: int) -> None:
        size = self._agreement.upload_bytes(holder, upload)
        if len(raw) != size:
            raise RemoteProtocolError(f"upload {upload + 1} must have {size} bytes; got {len(raw)}.")
