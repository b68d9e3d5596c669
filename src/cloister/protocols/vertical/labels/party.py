"""The parties of a session for labels: Alice, who masks them, and the others, who encrypt cells or decrypt."""

from __future__ import annotations

import numpy as np

from cloister.errors import LocalProtocolError, RemoteProtocolError
from cloister.lattice.keys import PublicKeys, SecretKeys, restrict_secret_keys
from cloister.protocols.vertical.computing import open_receiver
from cloister.protocols.vertical.contents import encode, read_public_keys
from cloister.protocols.vertical.holder import publish_keys
from cloister.protocols.vertical.labels.agreement import LabelsAgreement
from cloister.protocols.vertical.labels.masking import (
    SEED_BYTES,
    decrypt_masked,
    draw_pads,
    mask_labels,
    pack_masked,
    pack_values,
    unmask_labels,
    unpack_blocks,
    unpack_masked,
    unpack_values,
)
from cloister.protocols.vertical.relayed import Opened, RelayedParty, Said
from cloister.protocols.vertical.statistics import decide_labels
from cloister.protocols.vertical.uploads import Receiver, Sender
from cloister.records import FloatArray, IntArray
from cloister.roles import Seat


class LabelsParty(RelayedParty):
    """What all parties have in common; parameters as :class:`~cloister.protocols.vertical.relayed.RelayedParty`."""

    def __init__(self, seat: Seat, agreement: LabelsAgreement, columns: FloatArray) -> None:
        super().__init__(seat, agreement, columns)
        self._terms = agreement
        self._exact_labels: IntArray | None = None

    @property
    def is_granted(self) -> bool:
        """Whether this party gets labels."""
        return self.number in self._terms.granted

    @property
    def exact_labels(self) -> IntArray:
        """(n,): the cluster of each record, for this party's eyes, once the session has finished."""
        if not self._finished or self._exact_labels is None:
            raise LocalProtocolError("labels must be read at the end, by parties that are granted them; got none.")
        return self._exact_labels

    def _act(self, opened: Opened) -> Said:
        return self._do(opened)

    def _do(self, opened: Opened) -> Said:
        raise NotImplementedError

    def _read_labels(self, values: IntArray, pad_seed: bytes | None) -> None:
        """Take the pads off."""
        if pad_seed is None:
            raise RemoteProtocolError("a party that is granted labels must get the seed of their pads; it did not.")
        labels = unmask_labels(values, pad_seed, self._terms.block_records)
        if (labels >= self._terms.settings.clusters).any():
            raise RemoteProtocolError("every label must be one of the clusters; some are not.")
        self._exact_labels = labels

    def _close(self, opened: Opened, pad_seed: bytes | None) -> Said:
        """Read the masked labels from the key holder's letter, if we are granted them."""
        if self.is_granted:
            stage = opened.number - 1  # the schedule's last but one, in which the key holder decrypts
            raws = [raw for (at, _), raw in opened.letters.items() if at == stage]
            if len(raws) != 1:
                raise RemoteProtocolError(f"the key holder must write one letter of masked labels; got {len(raws)}.")
            self._read_labels(unpack_values(raws[0], self._terms.settings.records), pad_seed)
        self._finished = True
        return Said()


class LabelsComputing(LabelsParty):
    """Alice.

    Privacy
    -------
    What she sends the key holder are labels plus pads that are uniform to it, re-randomised and flooded; what she sends
    those who are granted labels is the pads' seed (docs/proofs/vertical-labels.md).
    """

    def __init__(self, seat: Seat, agreement: LabelsAgreement, columns: FloatArray) -> None:
        super().__init__(seat, agreement, columns)
        self._public: PublicKeys | None = None
        self._receiver: Receiver | None = None
        self._pad_seed = self._private.child("label pads").bytes(SEED_BYTES)

    def _do(self, opened: Opened) -> Said:
        if opened.stage.kind == "close":
            return self._close(opened, self._pad_seed)
        if self._receiver is None:
            self._public, self._receiver = open_receiver(self._terms, self._session, self._posts, {})
        return self._mask(opened)

    def _mask(self, opened: Opened) -> Said:
        """Mask the labels of the records that have just come."""
        terms, upload = self._terms, opened.stage.index
        assert self._receiver is not None
        assert self._public is not None
        letters = opened.list_latest()
        self._receiver.take([letters[holder] for holder in terms.encrypted if holder in letters], upload)
        masked = []
        for number, block in zip(terms.blocks_of(upload), self._receiver.release(), strict=True):
            labels = decide_labels(self._columns[terms.records_of(number)], terms.joint_reps, terms.session_centres)
            masked.append(
                mask_labels(
                    block,
                    labels,
                    draw_pads(self._pad_seed, number, terms.block_records),
                    public=self._public,
                    flood_bits=terms.smudge_bits,
                    stream=self._private,
                )
            )
        (key_holder,) = terms.key_holders
        granted = set(terms.granted) - {self.number} if upload == terms.uploads - 1 else set()
        return Said(
            letters={
                party: pack_masked(
                    masked if party == key_holder else None,
                    self._pad_seed if party in granted else None,
                    terms.parameters,
                )
                for party in {key_holder, *granted}
            }
        )


class LabelsHolder(LabelsParty):
    """A holder of encrypted columns, of the key, or of both; or a party that is only granted labels."""

    def __init__(self, seat: Seat, agreement: LabelsAgreement, columns: FloatArray) -> None:
        super().__init__(seat, agreement, columns)
        self._keys: SecretKeys | None = None
        self._sender: Sender | None = None
        self._masked: dict[int, bytes] = {}  # Alice's letters, by stage; they come with any of our turns

    def close(self) -> None:
        """Overwrite the key with zeros."""
        if self._keys is not None:
            self._keys.close()

    def _do(self, opened: Opened) -> Said:
        kind = opened.stage.kind
        self._masked = self._masked | {
            stage: raw for (stage, sender), raw in opened.letters.items() if sender == self._terms.computing
        }
        if kind == "keys":
            self._keys = SecretKeys.generate(self._terms.key_parameters, 1, self._private)
            return Said(post=encode(publish_keys(self._keys, self._private, products=self._terms.is_joint)))
        if kind == "upload":
            return self._upload(opened)
        if kind == "decrypt":
            return self._decrypt()
        if kind == "close":
            return self._close(opened, self._find_pad_seed())
        raise RemoteProtocolError(f"a holder has no part in the stage {kind!r}; it was given one.")

    def _upload(self, opened: Opened) -> Said:
        """Encrypt which cells our records are in."""
        terms = self._terms
        if self._sender is None:
            place = terms.encrypted.index(self.number)
            self._sender = Sender(
                terms,
                place=place,
                codebook=terms.codebook_of(place),
                columns=self._columns,
                keys=self._keys,
                public=read_public_keys(terms, self._session, self._posts, {}),
                stream=self._private,
                in_slots=True,
            )
        return Said(letters={terms.computing: self._sender.encrypt_upload(opened.stage.index)})

    def _decrypt(self) -> Said:
        """Decrypt what are uniform numbers to us, and send them to those who are granted labels."""
        terms = self._terms
        stages = [number for number, stage in enumerate(terms.schedule) if stage.kind == "mask"]
        if sorted(self._masked) != stages or self._keys is None:
            raise RemoteProtocolError(f"masked labels must come in {terms.uploads} letters; they do not.")
        values = []
        with restrict_secret_keys(self._keys, len(terms.parameters.primes)) as keys:
            for upload, stage in enumerate(stages):
                raw = unpack_masked(self._masked[stage]).blocks or b""
                blocks = unpack_blocks(raw, terms.parameters, len(terms.blocks_of(upload)))
                values += [decrypt_masked(keys, block) for block in blocks]
        joined = np.concatenate(values)[: terms.settings.records]
        if self.is_granted:
            self._read_labels(joined, self._find_pad_seed())
        self.close()
        self._finished = True
        packed = pack_values(joined)
        return Said(letters={party: packed for party in terms.granted if party != self.number})

    def _find_pad_seed(self) -> bytes | None:
        """Return the seed of the pads, from Alice's last letter."""
        return unpack_masked(self._masked[max(self._masked)]).pad_seed if self._masked else None
