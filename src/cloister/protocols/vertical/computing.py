"""The computing party, Alice: runs the algorithm, states each query, and answers it under encryption with her noise."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from cloister.crypto import Stream, derive_key
from cloister.errors import LocalProtocolError, RemoteProtocolError
from cloister.lattice.decryption import combine_decryptions
from cloister.lattice.keys import PublicKeys, restrict_public_keys
from cloister.lattice.lwe import LweBatch, add_error, add_plain, draw_flood, rerandomise, switch_modulus
from cloister.privacy.release import NoiseDuty
from cloister.protocols.vertical.agreement import VerticalAgreement
from cloister.protocols.vertical.algorithm import VerticalFinding, run_vertical
from cloister.protocols.vertical.codebook import Codebooks
from cloister.protocols.vertical.contents import (
    Asked,
    Prepared,
    encode,
    pack_answer,
    pack_result,
    pack_totals,
    read_product_key,
    read_public_keys,
    unpack_share,
    unpack_totals,
)
from cloister.protocols.vertical.evaluation import evaluate_query
from cloister.protocols.vertical.noise import ChargedFlood, pay_share
from cloister.protocols.vertical.party import VerticalParty
from cloister.protocols.vertical.query import Query
from cloister.protocols.vertical.relayed import Opened, Said
from cloister.protocols.vertical.stated import state_query
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


class Inquiry:
    """The algorithm, as it runs on the totals that are released.

    Parameters
    ----------
    agreement
        The public parameters.
    codebooks
        All parties'.
    stream
        Common to all parties.
    """

    def __init__(self, agreement: VerticalAgreement, codebooks: Codebooks, stream: Stream) -> None:
        settings = agreement.settings
        self._passes = list(zip(agreement.queries, settings.lengths, strict=True))
        self._asking = run_vertical(settings, codebooks, stream)
        self._query: Query | None = next(self._asking)
        self.finding: VerticalFinding | None = None
        self._check_pass()

    @property
    def query(self) -> Query:
        """What is added up next."""
        if self._query is None:
            raise RemoteProtocolError("nothing must be asked after the last pass; something was.")
        return self._query

    def go_on(self, total: IntArray) -> None:
        """Go one step further."""
        self._passes.pop(0)
        try:
            self._query = self._asking.send(total)
        except StopIteration as stop:
            self._query, self.finding = None, stop.value
        self._check_pass()

    def _check_pass(self) -> None:
        """Hold the algorithm to the agreed passes: they are public."""
        expected = self._passes[0] if self._passes else None
        if expected != (None if self._query is None else (self._query.name, self._query.length)):
            raise LocalProtocolError(f"the next pass must be {expected}; it is another: this is a bug.")


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
        self._inquiry: Inquiry | None = None

    @property
    def inquiry(self) -> Inquiry:
        """The algorithm; it starts once all codebooks have come."""
        if self._inquiry is None:
            seed = self._seed_holder.seed
            assert seed is not None
            stream = Stream(derive_key(seed, "vertical stream", self._session))
            self._inquiry = Inquiry(self._agreement, self.codebooks, stream)
        return self._inquiry

    def _do(self, opened: Opened) -> Said:
        if self._public is None:
            self._cells = self.codebooks.alice.assign(self._columns)
            self._public, self._receiver = open_receiver(self._agreement, self._session, self._posts, self._prepared)
        if opened.stage.kind == "upload":
            self._take_uploads(opened)
            return Said()
        totals = self._read_decryptions(opened)
        if opened.stage.kind == "finish":
            self._finished, self._found = True, self.inquiry.finding
            assert totals is not None  # a decryption comes before
            assert self._found is not None  # that was the last pass
            return Said(post=encode(pack_result(totals, self._found)))
        raw = encode(Asked(state_query(self.inquiry.query), self._compute()))
        post = None if totals is None else pack_totals(totals)
        return Said(post=post, letters=dict.fromkeys(self._agreement.key_holders, raw))

    def _take_uploads(self, opened: Opened) -> None:
        """Read the encrypted cells that have come: of the stage before, in which all holders send some."""
        assert self._receiver is not None
        raws, before = opened.list_latest(), self._agreement.schedule[opened.number - 1]
        if before.kind == "upload":
            self._receiver.take([raws[holder] for holder in self._agreement.encrypted if holder in raws], before.index)

    def _read_decryptions(self, opened: Opened) -> IntArray | None:
        """Put the key holders' answers together, and go one step further."""
        agreement, inquiry = self._agreement, self.inquiry
        if opened.stage.kind == "compute" and opened.stage.index == 0:
            self._take_uploads(opened)
            return None
        if self._answer is None:
            raise RemoteProtocolError("decryptions must follow an answer; there was none.")
        letters = opened.list_latest()
        if len(letters) != agreement.decryptors:
            raise RemoteProtocolError(f"{agreement.decryptors} key holders must have decrypted; got {len(letters)}.")
        parameters, length = agreement.parameters, inquiry.query.length
        if agreement.is_collective:
            members = tuple(letters)
            shares = [unpack_share(raw, parameters, length=length, members=members) for raw in letters.values()]
            total = np.array(combine_decryptions(self._answer, shares), dtype=np.int64)
        else:
            (raw,) = letters.values()
            total = unpack_totals(raw, length=length, modulus=parameters.plaintext_modulus)
        self._answer = None
        self._totals = (*self._totals, total)
        inquiry.go_on(total)
        return total

    def _compute(self) -> bytes:
        """Answer the next question under encryption."""
        agreement, query, parameters = self._agreement, self.inquiry.query, self._agreement.parameters
        assert self._public is not None
        assert self._receiver is not None
        assert self._cells is not None
        masks, bodies = evaluate_query(
            query,
            parameters=parameters,
            blocks=self._receiver.blocks,
            alice=self._columns,
            alice_cells=self._cells,
            reps=self.codebooks.reps,
            residuals=agreement.settings.has_residuals,
            in_slots=agreement.plan is not None,
        )
        places, secrets = np.arange(query.length), np.zeros(query.length, dtype=np.int64)
        batch = LweBatch(parameters=parameters, masks=masks, bodies=bodies, mask_of=places, secret_of=secrets)
        batch = rerandomise(batch, self._public, self._private)
        if self._duty is not None:
            batch = add_plain(batch, pay_share(agreement.settings, query.parts, self._duty).tolist())
        if isinstance(agreement.flood, ChargedFlood):
            assert self._duty is not None
            event = agreement.flood.price(query)
            self._duty.charger.charge(event)
            batch = add_error(batch, self._duty.sampler.draw(event.mechanism, query.length).tolist())
        else:
            batch = add_error(batch, draw_flood(self._private, agreement.flood.bits, query.length))
        self._answer = batch
        return pack_answer(batch if agreement.is_collective else switch_modulus(batch, agreement.switch_bits))
