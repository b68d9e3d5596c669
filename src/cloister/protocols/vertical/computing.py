"""The computing party, Alice: sums over everyone's encrypted cells with weights from her own columns, and her noise."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from cloister.errors import RemoteProtocolError
from cloister.lattice.decryption import combine_decryptions
from cloister.lattice.keys import PublicKeys, restrict_public_keys
from cloister.lattice.lwe import LweBatch, add_error, add_plain, draw_flood, rerandomise, switch_modulus
from cloister.privacy.release import NoiseDuty
from cloister.protocols.vertical.agreement import VerticalAgreement
from cloister.protocols.vertical.contents import (
    Prepared,
    pack_answer,
    pack_totals,
    read_product_key,
    read_public_keys,
    unpack_share,
    unpack_totals,
)
from cloister.protocols.vertical.evaluation import evaluate_query
from cloister.protocols.vertical.noise import ChargedFlood, draw_share
from cloister.protocols.vertical.party import VerticalParty
from cloister.protocols.vertical.relayed import Opened, Said
from cloister.protocols.vertical.uploads import Receiver
from cloister.records import FloatArray, IntArray
from cloister.roles import Seat


def open_receiver(
    agreement: VerticalAgreement,
    session: bytes,
    posts: Mapping[tuple[int, int], bytes],
    prepared: Mapping[int, Prepared],
) -> tuple[PublicKeys, Receiver]:
    """Return the public key of what is computed, and where encrypted cells are received, from what was posted."""
    public = read_public_keys(agreement, session, posts, prepared)
    receiver = Receiver(agreement, public, read_product_key(agreement, posts))
    if agreement.plan is not None:
        public = restrict_public_keys(public, len(agreement.parameters.primes))
    return public, receiver


class ComputingParty(VerticalParty):
    """Alice; parameters as :class:`~.party.VerticalParty`.

    Privacy
    -------
    What leaves her is encrypted and re-randomised. Whoever can decrypt it sees the query's total with her share of the
    noise, and errors under the flood: both are charged to her books before a number leaves (docs/proofs/vertical.md).
    """

    def __init__(
        self, seat: Seat, agreement: VerticalAgreement, columns: FloatArray, *, duty: NoiseDuty | None = None
    ) -> None:
        super().__init__(seat, agreement, columns, duty=duty)
        self._public: PublicKeys | None = None
        self._receiver: Receiver | None = None
        self._cells: NDArray[np.int32] | None = None
        self._answer: LweBatch | None = None

    def _do(self, opened: Opened) -> Said:
        if self._public is None:
            self._public, self._receiver = open_receiver(self._agreement, self._session, self._posts, self._prepared)
            self._cells = self.codebooks.alice.assign(self._columns)
        self._take_uploads(opened)
        if opened.stage.kind == "upload":
            return Said()
        totals = self._read_decryptions(opened)
        post = None if totals is None else pack_totals(totals)
        if opened.stage.kind == "finish":
            self._finished = True
            return Said(post=post)
        raw = self._compute()
        return Said(post=post, letters=dict.fromkeys(self._agreement.key_holders, raw))

    def _take_uploads(self, opened: Opened) -> None:
        """Read the encrypted cells that have come."""
        assert self._receiver is not None
        schedule = self._agreement.schedule
        for stage in sorted({stage for stage, _ in opened.letters if schedule[stage].kind == "upload"}):
            raws = [
                opened.letters[stage, holder]
                for holder in self._agreement.encrypted
                if (stage, holder) in opened.letters
            ]
            self._receiver.take(raws, schedule[stage].index)

    def _read_decryptions(self, opened: Opened) -> IntArray | None:
        """Combine the key holders' answers, and take the next totals."""
        agreement, follower = self._agreement, self._require_follower()
        if opened.stage.kind == "compute" and opened.stage.index == 0:
            return None
        if self._answer is None:
            raise RemoteProtocolError("decryptions must follow an answer; there was none.")
        senders = sorted(sender for _, sender in opened.letters)
        if len(senders) != agreement.decryptors or not set(senders) <= set(agreement.key_holders):
            raise RemoteProtocolError(f"{agreement.decryptors} key holders must have decrypted; got {len(senders)}.")
        raws = [raw for (_, sender), raw in sorted(opened.letters.items(), key=lambda item: item[0][1])]
        parameters, length = agreement.parameters, follower.query.length
        if agreement.is_collective:
            shares = [unpack_share(raw, parameters, length=length, members=tuple(senders)) for raw in raws]
            total = np.array(combine_decryptions(self._answer, shares), dtype=np.int64)
        else:
            total = unpack_totals(raws[0], length=length, most=parameters.plaintext_modulus)
        self._answer = None
        follower.follow(total)
        return total

    def _compute(self) -> bytes:
        """Answer the next query under encryption."""
        agreement, follower = self._agreement, self._require_follower()
        query, parameters = follower.query, agreement.parameters
        assert self._public is not None
        assert self._receiver is not None
        assert self._cells is not None
        masks, bodies = evaluate_query(
            query,
            parameters=parameters,
            blocks=self._receiver.blocks,
            alice=self._columns,
            alice_cells=self._cells,
            reps=follower.codebooks.reps,
            residuals=agreement.settings.has_residuals,
            in_slots=agreement.plan is not None,
        )
        places, secrets = np.arange(query.length), np.zeros(query.length, dtype=np.int64)
        batch = LweBatch(parameters=parameters, masks=masks, bodies=bodies, mask_of=places, secret_of=secrets)
        batch = rerandomise(batch, self._public, self._private)
        if self._duty is not None:
            for part in query.parts:
                self._duty.charger.charge(part.release(agreement.settings))
            batch = add_plain(batch, draw_share(agreement.settings, query, self._duty.sampler).tolist())
        if isinstance(agreement.flood, ChargedFlood):
            assert self._duty is not None
            event = agreement.flood.price(query)
            self._duty.charger.charge(event)
            batch = add_error(batch, self._duty.sampler.draw(event.mechanism, query.length).tolist())
        else:
            batch = add_error(batch, draw_flood(self._private, agreement.flood.bits, query.length))
        self._answer = batch
        if agreement.is_collective:
            return pack_answer(batch, follower.digest)
        return pack_answer(switch_modulus(batch, agreement.switch_bits), follower.digest)
