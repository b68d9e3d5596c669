"""A party: it shuffles and blinds its own list, blinds each other list once, and receives its places.

It blinds a part only if its predecessor sealed it for this session, list, hop and part, and each part only once. So a
coordinator that lies cannot have IDs of its choice blinded to test whether a party holds them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

from cloister.aggregation import SeedHolder
from cloister.aggregation.seed_agreement import Ready
from cloister.crypto import Context, Entropy, Identity, Stream, derive_key, open_keyed, seal_keyed
from cloister.errors import LocalProtocolError, RemoteProtocolError
from cloister.protocols.align.alignment import Alignment, digest_ids
from cloister.protocols.align.group import (
    ORDER,
    POINT_BYTES,
    BlindingKey,
    check_points,
    encode_exponent,
    hash_to_points,
)
from cloister.protocols.align.terms import (
    BlindPart,
    Delivered,
    Finish,
    MeetRing,
    Mode,
    Passed,
    RingMet,
    TakePlaces,
    Terms,
)
from cloister.records import IntArray
from cloister.roles import Message


class AlignParty:
    """One party of one alignment.

    Parameters
    ----------
    number
        From 1.
    terms
        What was agreed.
    ids
        The normal form of each row's ID (:func:`~cloister.protocols.align.identifiers.normalise_ids`), all different.
    identity, entropy, session
        This party's keys, the source of its secrets, and the session's ID.
    """

    def __init__(
        self, *, number: int, terms: Terms, ids: Sequence[bytes], identity: Identity, entropy: Entropy, session: bytes
    ) -> None:
        if len(set(ids)) < len(ids):
            raise LocalProtocolError(
                "the IDs of a party must differ; some repeat. Use normalise_ids, which says which."
            )
        self._number = number
        self._terms = terms
        self._exact_ids = ids
        self._entropy = entropy
        self._session = session
        self._seed_holder = SeedHolder(
            number=number,
            identity=identity,
            directory=terms.directory,
            agreement=terms.digest,
            session=session,
            entropy=entropy,
        )
        self._pair_secrets: dict[int, bytes] = {}
        self._keys: tuple[BlindingKey, ...] = ()
        self._order = np.empty(0, dtype=np.int64)
        self._parts_blinded = [0] * terms.parties  # by hop
        self._elements_seen = 0
        self._places: list[IntArray] = []
        self._alignment: Alignment | None = None

    @property
    def alignment(self) -> Alignment:
        """The result, once the session has finished."""
        if self._alignment is None:
            raise LocalProtocolError("an alignment must be finished before it can be read; this one is not.")
        return self._alignment

    def handle(self, request: Message) -> Message:
        """Answer one request; see :mod:`.coordinator` for their order."""
        if self._alignment is None and self._keys:
            if isinstance(request, BlindPart) and not self._places:
                return self._blind(request)
            if isinstance(request, TakePlaces):
                return self._take_places(request)
            if isinstance(request, Finish) and self._seed_holder.seed is not None:
                return self._finish(request, self._seed_holder.seed)
        elif isinstance(request, MeetRing) and self._seed_holder.seed is not None and not self._keys:
            return self._meet(request)
        return self._seed_holder.handle(request)  # refuses what is out of turn

    def _meet(self, request: MeetRing) -> RingMet:
        if len(request.keys) != self._terms.parties:
            raise RemoteProtocolError(
                f"all {self._terms.parties} parties must take part in an alignment; got {len(request.keys)} keys."
            )
        self._pair_secrets = self._seed_holder.exchange_with_peers(request.keys)
        self._order = Stream(self._entropy.bytes(32)).permutation(len(self._exact_ids))
        # One key per list: parties that see two lists under one key can match them. The coordinator gets the ratios.
        self._keys = tuple(BlindingKey.draw(self._entropy) for _ in range(self._terms.parties))
        first = pow(self._keys[0].exponent, -1, ORDER)
        ratios = tuple(encode_exponent(key.exponent * first) for key in self._keys)
        return RingMet(len(self._exact_ids), ratios)

    def _blind(self, request: BlindPart) -> Passed | Delivered:
        hop, part = request.hop, request.part
        if hop >= self._terms.parties or part != self._parts_blinded[hop] or (request.box is None) != (hop == 0):
            raise RemoteProtocolError(
                f"a list must be blinded once at each of {self._terms.parties} hops, part by part, "
                "sealed by its previous blinder; this part is out of turn."
            )
        owner = self._terms.owner_at(self._number, hop)
        points = self._own_points(part) if request.box is None else self._open(request.box, owner, hop, part)
        blinded = self._keys[owner - 1].blind(points)
        reply = self._pass_on(blinded, owner, hop, part)
        self._parts_blinded[hop] += 1
        self._elements_seen += len(points) // POINT_BYTES
        return reply

    def _own_points(self, part: int) -> bytes:
        where = self._terms.slice_part(part, len(self._exact_ids))
        if where.start >= where.stop:
            raise RemoteProtocolError("a part must be within our list; this one is beyond its end.")
        return hash_to_points([self._exact_ids[row] for row in self._order[where]])

    def _open(self, box: bytes, owner: int, hop: int, part: int) -> bytes:
        sender = self._terms.owner_at(self._number, 1)
        points = open_keyed(box, self._pair_secrets[sender], *self._context(owner, hop, part))
        if not 0 < len(points) <= self._terms.part_elements * POINT_BYTES:
            raise RemoteProtocolError(f"a part must have 1 to {self._terms.part_elements} points; this one does not.")
        check_points(points)
        return points

    def _pass_on(self, blinded: bytes, owner: int, hop: int, part: int) -> Passed | Delivered:
        if hop + 1 == self._terms.parties:
            return Delivered(blinded)
        successor = self._terms.carrier_at(self._number, 1)
        return Passed(seal_keyed(blinded, self._pair_secrets[successor], *self._context(owner, hop + 1, part)))

    def _context(self, owner: int, hop: int, part: int) -> tuple[Context, ...]:
        return (self._session, "align list", owner, hop, part)

    def _take_places(self, request: TakePlaces) -> Ready:
        elements = len(self._exact_ids)
        parts = self._terms.count_parts(elements)
        if request.part != len(self._places) or request.part >= parts or self._parts_blinded[0] < parts:
            raise RemoteProtocolError("places must come part by part, after our whole list was blinded; these do not.")
        where = self._terms.slice_part(request.part, elements)
        self._places.append(request.places.to_numpy(np.int64, where.stop - where.start))
        return Ready()

    def _finish(self, request: Finish, seed: bytes) -> Ready:
        if len(self._places) != self._terms.count_parts(len(self._exact_ids)):
            raise RemoteProtocolError("all our IDs must be placed before the end; some are not.")
        places = np.concatenate([np.empty(0, dtype=np.int64), *self._places])
        _check_places(places, request.count, self._elements_seen, self._terms.mode)
        # The coordinator knows which lists hold the ID at each place of its order. All parties permute the places in a
        # way that only they know, so the coordinator does not know who holds the record at a place of the final order.
        moved = Stream(derive_key(seed, self._session, "align order")).permutation(request.count)
        has_place = places >= 0
        rows = np.full(request.count, -1, dtype=np.int64)
        rows[moved[places[has_place]]] = self._order[has_place]
        secret = derive_key(seed, self._session, "align digest")
        digest = hashlib.sha256(self._terms.digest + secret + request.digest).hexdigest()
        self._alignment = Alignment(
            mode=self._terms.mode,
            digest=digest,
            records=len(self._exact_ids),
            rows=rows,
            ids_sha256=digest_ids(self._exact_ids, digest),
        )
        return Ready()


def _check_places(places: IntArray, count: int, elements_seen: int, mode: Mode) -> None:
    """Refuse places that no matching of the lists could produce."""
    held = places[places >= 0]
    fits = count <= elements_seen and held.size == np.unique(held).size and held.max(initial=-1) < count
    if mode is Mode.UNION:
        fits &= held.size == places.size  # every ID has a place
    else:
        fits &= held.size == count  # every place is held
    if not fits or places.min(initial=0) < -1:
        raise RemoteProtocolError(
            f"places must be different, from 0 to below {count}, and as many as the {mode.value} needs; they are not."
        )
