"""How a party gets its masks: the common seed and, for double masks, a secret with each other party.

::

    steps 1-3  the common seed and signed session keys (:mod:`~cloister.aggregation.seed_agreement`)
    step 4     coordinator → all   MeetPeers(all signed keys)       ← Ready            double masks only

Secrets of two parties rest on keys that are signed by identities in the directory: no party can be invented.
"""

from __future__ import annotations

from cloister.aggregation.common_masks import CommonMasks
from cloister.aggregation.double_masks import DoubleMasks
from cloister.aggregation.messages import MeetPeers
from cloister.aggregation.seed_agreement import Ready, SeedHolder
from cloister.aggregation.terms import SumTerms
from cloister.errors import RemoteProtocolError
from cloister.roles import Message, Seat

Masks = DoubleMasks | CommonMasks
"""What a protocol's party needs: ``check`` and ``answer`` an attempt, ``handle`` what opens it, ``read`` a total."""


class Introduction:
    """Answers the first steps; ``masks`` is None until they are done.

    Parameters
    ----------
    seat, terms
        Its place in the session, and what was agreed.
    double
        The kind of double masks, where the terms ask for some.
    """

    def __init__(self, *, seat: Seat, terms: SumTerms, double: type[DoubleMasks] = DoubleMasks) -> None:
        self._seat = seat
        self._terms = terms
        self._double = double
        self._seed_holder = SeedHolder(
            number=seat.number,
            identity=seat.identity,
            directory=terms.directory,
            agreement=terms.digest,
            session=seat.session,
            entropy=seat.entropy,
        )
        self.masks: Masks | None = None

    def handle(self, request: Message) -> Message:
        """Answer one request; each comes once."""
        seed = self._seed_holder.seed
        if isinstance(request, MeetPeers):
            if seed is None or self.masks is not None:
                raise RemoteProtocolError("parties must meet once, after the common seed; they do not.")
            return self._meet(request, seed)
        reply = self._seed_holder.handle(request)
        seed = self._seed_holder.seed
        if seed is not None and not self._terms.double:
            self.masks = CommonMasks(seat=self._seat, terms=self._terms, seed=seed)
        return reply

    def _meet(self, request: MeetPeers, seed: bytes) -> Ready:
        if len(request.keys) < self._terms.members_min:
            raise RemoteProtocolError(
                f"at least {self._terms.members_min} parties must be introduced; got {len(request.keys)} keys."
            )
        secrets = self._seed_holder.exchange_with_peers(request.keys)
        self.masks = self._double(seat=self._seat, terms=self._terms, seed=seed, pair_secrets=secrets)
        return Ready()
