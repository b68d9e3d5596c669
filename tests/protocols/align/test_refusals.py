"""Hostile and broken messages are refused by a party without a trace, or end the session."""

import copy

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cloister.aggregation.seed_agreement import OpenSession
from cloister.crypto import SessionKey, Stream, SystemEntropy, seal_keyed
from cloister.errors import RemoteProtocolError, TooFewPartiesError
from cloister.protocols.align.coordinator import match_lists
from cloister.protocols.align.group import SMALL_ORDER, hash_to_points
from cloister.protocols.align.terms import (
    CODEC,
    BlindPart,
    Delivered,
    Finish,
    MeetRing,
    Mode,
    Passed,
    RingMet,
    TakePlaces,
)
from cloister.wire import Array
from tests.protocols.align.sessions import AlignSession, Watched, merge_orders, name_ids
from tests.sessions import SESSION

SETS = [name_ids(range(6)), name_ids(range(3, 9)), name_ids([4, 5, 20])]


def state_of(party):
    """All that a refused request must leave as it was."""
    return copy.deepcopy(
        (
            party._pair_secrets,
            [key.exponent for key in party._keys],
            party._order.tolist(),
            party._parts_blinded,
            party._elements_seen,
            [places.tolist() for places in party._places],
            None if party._alignment is None else party._alignment.rows.tolist(),
            party._seed_holder.seed,
        )
    )


def wrong_versions(request, history):
    """Requests that break the protocol in place of this one."""
    yield from history[:-1]  # everything older again: the endpoint answers only the last frame twice
    if isinstance(request, MeetRing):
        yield MeetRing(request.keys[:-1])
        yield MeetRing(request.keys[::-1])
        yield MeetRing((request.keys[0],) * 3)
        forged = SessionKey(SystemEntropy()).public_bytes
        yield MeetRing((*request.keys[:-1], msgspec.structs.replace(request.keys[-1], public_key=forged)))
    if isinstance(request, BlindPart) and request.hop == 0:
        for elements in (3, 4):  # places before the list is blinded
            yield TakePlaces(0, Array.of(np.arange(elements)))
    if isinstance(request, BlindPart):
        yield BlindPart(request.hop, request.part + 1, request.box)
        yield BlindPart((request.hop + 1) % 3, request.part, request.box)
        yield BlindPart(7, request.part, request.box)
        yield BlindPart(request.hop, request.part, b"" if request.box is None else None)
        points = hash_to_points(name_ids([1, 2, 3, 4]))
        yield BlindPart(max(request.hop, 1), request.part, points)  # a coordinator's own IDs, in the clear
        yield BlindPart(
            max(request.hop, 1), request.part, seal_keyed(points, bytes(32), SESSION, "align list", 1, 1, 0)
        )
        if request.box is not None:
            yield BlindPart(request.hop, request.part, request.box[:-1])
            yield BlindPart(request.hop, request.part, bytes([request.box[0] ^ 1]) + request.box[1:])
    if isinstance(request, TakePlaces):
        places = np.frombuffer(request.places.data, dtype="<i8")
        yield TakePlaces(request.part + 1, request.places)
        yield TakePlaces(request.part, Array.of(places[:-1]))
        yield TakePlaces(request.part, Array.of(places.astype(np.float64)))
        yield Finish(2, bytes(32))
    if isinstance(request, Finish):
        yield Finish(sum(map(len, SETS)) + 1, request.digest)
        yield Finish(2**39, request.digest)
        yield Finish(request.count - 1, request.digest)
        yield TakePlaces(0, Array.of(np.zeros(1, dtype=np.int64)))
        yield BlindPart(0, 0, None)
    yield OpenSession(bytes(32))


class Probed(Watched):
    """Is shown every wrong version of a request before the request itself."""

    probes = 0

    def handle(self, request):
        history = [asked for asked, _ in self.log]
        before = state_of(self)
        for wrong in wrong_versions(request, [*history, request]):
            if wrong == request:
                continue
            with pytest.raises(RemoteProtocolError):
                super().handle(wrong)
            assert state_of(self) == before, type(wrong).__name__
            type(self).probes += 1
        return super().handle(request)


@pytest.mark.parametrize("mode", Mode)
def test_wrong_requests_are_refused_and_leave_no_trace(mode):
    Probed.probes = 0
    _, parties = AlignSession(SETS, mode=mode, party_class=Probed).run()
    assert Probed.probes > 200
    wanted = 2 if mode is Mode.INTERSECTION else 10
    assert len(merge_orders(SETS, parties)) == wanted


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize(
    "change",
    [
        lambda places: np.where(places == places.max(), places.min(initial=99, where=places >= 0), places),  # twice
        lambda places: np.where(places == places.max(), 10**6, places),
        lambda places: np.where(places == places.max(), -2, places),
        lambda places: np.where(places == places.max(), -1, places),
    ],
)
def test_places_that_no_matching_gives_are_refused_at_the_end(mode, change):
    class Misled(Watched):
        def handle(self, request):
            if isinstance(request, TakePlaces):
                places = np.frombuffer(request.places.data, dtype="<i8")
                request = TakePlaces(request.part, Array.of(change(places)))
            return super().handle(request)

    session = AlignSession(SETS, mode=mode, part_elements=10)
    parties = [session.party(1, of=Misled), session.party(2), session.party(3)]
    with pytest.raises(TooFewPartiesError, match="finishing"):
        session.run(parties)


class Lying(Watched):
    """Changes one kind of reply."""

    kind = Delivered
    change = staticmethod(lambda reply: reply)

    def handle(self, request):
        reply = super().handle(request)
        return self.change(reply) if isinstance(reply, self.kind) else reply


def lie(kind, change, session=None):
    session = session or AlignSession(SETS)
    liar = type("Liar", (Lying,), {"kind": kind, "change": staticmethod(change)})
    return session.run([session.party(1), session.party(2, of=liar), session.party(3)])


@pytest.mark.parametrize(
    ("kind", "change", "blamed"),
    [
        (Delivered, lambda reply: Delivered(reply.points[:-32]), 2),
        (Delivered, lambda reply: Delivered(reply.points[:-1]), 2),
        (Delivered, lambda reply: Delivered(reply.points + bytes(32)), 2),
        (Delivered, lambda reply: Delivered(b"\xff" * len(reply.points)), 2),
        (Delivered, lambda reply: Delivered(SMALL_ORDER[3] + reply.points[32:]), 2),
        (Delivered, lambda reply: Passed(reply.points + bytes(16)), 2),
        (Passed, lambda reply: Passed(reply.box[:-32]), 2),
        (Passed, lambda reply: Passed(bytes(len(reply.box))), 3),  # what it sealed is for its successor to open
        (Passed, lambda reply: Delivered(reply.box[:-16]), 2),
        (RingMet, lambda reply: RingMet(reply.elements + 1, reply.ratios), 2),
        (RingMet, lambda reply: RingMet(reply.elements - 1, reply.ratios), 2),
        (RingMet, lambda reply: RingMet(reply.elements, reply.ratios[:-1]), 2),
        (RingMet, lambda reply: RingMet(reply.elements, reply.ratios[::-1]), 2),
        (RingMet, lambda reply: RingMet(reply.elements, (reply.ratios[0], bytes(32), reply.ratios[2])), 2),
        (RingMet, lambda reply: RingMet(reply.elements, (reply.ratios[0], b"\xff" * 32, reply.ratios[2])), 2),
    ],
)
def test_wrong_replies_end_the_session(kind, change, blamed):
    with pytest.raises(TooFewPartiesError, match=f"must answer every step.*party {blamed} did not answer validly"):
        lie(kind, change)


def test_a_repeated_point_is_refused_whoever_repeats_it():
    """Party 2 delivers the list of party 3, whose three IDs are one part."""
    with pytest.raises(RemoteProtocolError, match="party 3 repeat"):
        lie(Delivered, lambda reply: Delivered(reply.points[:32] * (len(reply.points) // 32)))


def test_a_list_with_a_repeated_id_is_refused():
    with pytest.raises(RemoteProtocolError, match="party 2 repeat"):
        match_lists([b"a" * 32, b"b" * 64], Mode.UNION, Stream(bytes(32)))


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=300), st.booleans())
def test_bytes_decode_to_a_message_or_are_refused(raw, request):
    try:
        message = (CODEC.request if request else CODEC.reply)(msgspec.Raw(raw))
    except RemoteProtocolError:
        return
    assert isinstance(message, msgspec.Struct)


@settings(max_examples=80, deadline=None)
@given(hop=st.integers(0, 4), part=st.integers(0, 3), box=st.none() | st.binary(max_size=200))
def test_a_party_never_blinds_what_its_predecessor_did_not_seal(hop, part, box):
    party = AlignSession(SETS).run()[1][0]
    party._alignment, party._places = None, []  # as if the parts were still to come
    party._parts_blinded = [0, 0, 0]
    if (hop, part, box) == (0, 0, None):
        return
    with pytest.raises(RemoteProtocolError):
        party.handle(BlindPart(hop, part, box))
