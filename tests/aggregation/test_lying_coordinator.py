"""A coordinator that lies: typed errors, nothing changed, and the true request answered afterwards.

A session of six parties, of which four are a quorum and one may collude: a first attempt that the sixth misses, a
second one whose opening the fifth misses, and a second round. Before every true request come all lies about it: other
attempts, rounds, members and parties, boxes of other steps and of another session, more and fewer of them.
"""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from cloister.aggregation import pack_members
from cloister.aggregation.messages import Attempt, OpenTotal, PartyBox, RestoreMasks, Settle, Total
from cloister.aggregation.statements import Place, digest_body, write_words
from cloister.errors import DivergedError, RemoteProtocolError
from cloister.numeric import RING32
from tests.aggregation.sums import ELSEWHERE, PLACE, State, make_masks, make_seat, make_terms

TERMS = make_terms(6, 4, 1)
EVERYONE = (1, 2, 3, 4, 5, 6)
OTHER_SESSION = bytes(16)


class Told:
    """All frames of one session so far."""

    def __init__(self, session=None):
        seats = {number: make_seat(number, *([session] if session else [])) for number in EVERYONE}
        self.states = {number: State(make_masks(TERMS, number, seats[number])) for number in EVERYONE}
        self.vectors: dict[Attempt, dict[int, np.ndarray]] = {}
        self.shares: dict[tuple[Attempt, int, int], bytes] = {}  # of attempt, owner and holder
        self.openings: dict[tuple[Attempt, int], bytes] = {}
        self.votes: dict[tuple[Attempt, int], bytes] = {}
        self.restored: dict[tuple[Attempt, int], bytes] = {}
        self.lies = 0

    def tell(self, party, request, place=PLACE, lies=()):
        """Send all lies, which are refused and change nothing, then the true request."""
        for lie in lies:
            lied_at = lie if isinstance(lie, tuple) else (lie, place)
            if lied_at != (request, place):
                assert self.states[party].after(*lied_at) is None, f"{lied_at} instead of {request}"
                self.lies += 1
        self.states[party] = self.states[party].after(request, place)
        return self.states[party].reply

    def answer(self, party, attempt, place=PLACE, lies=()):
        reply = self.tell(party, attempt, place, lies)
        self.vectors.setdefault(attempt, {})[party] = np.frombuffer(reply.vector, np.uint32)
        self.shares |= {(attempt, party, share.party): share.box for share in reply.shares}

    def open(self, party, attempt, lies=()):
        reply = self.tell(party, OpenTotal(attempt, digest_body(self.body(attempt))), lies=lies)
        self.openings[attempt, party], self.votes[attempt, party] = reply.box, reply.vote

    def restore(self, party, attempt, silent, lies=()):
        reply = self.tell(party, self.make_restore(party, attempt, silent), lies=lies)
        self.restored[attempt, party] = reply.box

    def body(self, attempt):
        return write_words(RING32.sum([*self.vectors[attempt].values()]))

    def make_restore(self, party, attempt, silent):
        votes = tuple(
            PartyBox(voter, box) for (of, voter), box in sorted(self.votes.items(), key=by_party) if of == attempt
        )
        shares = tuple(PartyBox(owner, self.shares[attempt, owner, party]) for owner in silent)
        return RestoreMasks(attempt, pack_members(silent, 6), votes, shares)

    def make_total(self, attempt):
        openings = [PartyBox(p, box) for (of, p), box in sorted(self.openings.items(), key=by_party) if of == attempt]
        restored = [PartyBox(p, box) for (of, p), box in sorted(self.restored.items(), key=by_party) if of == attempt]
        return Total(attempt, self.body(attempt), tuple(openings), tuple(restored[:2]))


def by_party(item):
    return item[0][1]


FIRST, SECOND = Attempt(1, 1, pack_members(EVERYONE, 6)), Attempt(1, 2, pack_members(EVERYONE[:5], 6))
NEXT = Attempt(2, 1, pack_members(EVERYONE, 6))


def play(told, lie=False):
    """The session, with or without the lies."""
    other = play(Told(OTHER_SESSION)) if lie else None
    for party in EVERYONE:
        told.answer(party, FIRST, lies=lies_about_attempts(FIRST, party) if lie else ())
    for party in EVERYONE[:5]:
        told.answer(party, SECOND, lies=lies_about_attempts(SECOND, party) if lie else ())
    for party in EVERYONE[:4]:
        told.open(party, SECOND, lies=lies_about_opening(told, SECOND) if lie else ())
    for party in EVERYONE[:4]:
        told.restore(party, SECOND, [5], lies=lies_about_restoring(told, other, party, SECOND, [5]) if lie else ())
        if lie:
            assert told.states[party].after(told.make_restore(party, SECOND, [5])) is None  # once
            assert told.states[party].after(replace(SECOND, number=3)) is None
    for party in EVERYONE:
        told.answer(party, NEXT, lies=lies_about_attempts(NEXT, party) if lie else ())
    for party in EVERYONE[:4]:
        told.open(party, NEXT, lies=lies_about_opening(told, NEXT) if lie else ())
    for party in EVERYONE[:4]:
        told.restore(party, NEXT, [5, 6], lies=lies_about_restoring(told, other, party, NEXT, [5, 6]) if lie else ())
    return told


def neighbours(attempt):
    """The attempt with another round, number or set of members."""
    sets = [(1, 2, 3, 4), (1, 2, 3, 5), (2, 3, 4, 5), EVERYONE[:5], EVERYONE]
    yield from (replace(attempt, round=attempt.round + step) for step in (-1, 1) if attempt.round + step > 0)
    yield from (replace(attempt, number=attempt.number + step) for step in (-1, 1) if attempt.number + step > 0)
    yield from (replace(attempt, members=pack_members(members, 6)) for members in sets)


# --- lies about what is asked -----------------------------------------------------------------------------------------


def lies_about_attempts(attempt, party):
    """Too few members, strangers, none of us; what was answered before; and another question in the same round."""
    others = pack_members([member for member in EVERYONE if member != party], 6)
    for members in (others, pack_members((1, 2, 3), 6), b"", b"\x7f", b"\x3f\x00"):
        yield replace(attempt, members=members)
    if attempt == SECOND:
        yield from (FIRST, replace(FIRST, members=SECOND.members))
        for place in (ELSEWHERE, Place(link=PLACE.link, subject=b"another")):
            yield attempt, place
    if attempt == NEXT:
        yield from (FIRST, SECOND)
    if attempt == NEXT and party < 5:  # who has opened
        yield from (replace(SECOND, number=3), OpenTotal(SECOND, bytes(32)))
    yield Settle(())


def lies_about_opening(told, attempt):
    digest = digest_body(told.body(attempt))
    yield from (OpenTotal(other, digest) for other in neighbours(attempt) if other != attempt)
    yield from (OpenTotal(attempt, wrong) for wrong in (b"", digest[:-1], digest + b"\x00"))
    yield told.make_restore(1, attempt, [5])
    yield from (replace(attempt, round=1, number=9),) if attempt == NEXT else ()


def lies_about_restoring(told, other, party, attempt, silent):
    true = told.make_restore(party, attempt, silent)
    one = next(member for member in EVERYONE[:4] if member != party)
    yield from (replace(true, attempt=wrong) for wrong in neighbours(attempt) if wrong != attempt)
    yield from (OpenTotal(attempt, bytes(32)), OpenTotal(attempt, digest_body(told.body(attempt))))
    for claimed in ([], [party], [*silent, party], [one, *silent]):
        listed = sorted(claimed)
        if listed != silent:
            yield replace(true, silent=pack_members(listed, 6))
        shares = tuple(PartyBox(owner, true.shares[0].box) for owner in listed)
        yield replace(true, silent=pack_members(listed, 6), shares=shares)
    yield replace(true, silent=b"")
    yield replace(true, silent=b"\x7f")
    if attempt == SECOND:  # the sixth is no member
        yield replace(true, silent=pack_members([6], 6), shares=(PartyBox(6, told.shares[FIRST, 6, party]),))
    yield from (replace(true, votes=votes) for votes in other_boxes(true.votes))
    first = true.votes[0]
    forged = [told.openings[attempt, 1], told.votes[attempt, 2], other.votes[attempt, 1], true.shares[0].box, b""]
    forged += [told.votes[SECOND, 1]] if attempt == NEXT else []
    yield from (replace(true, votes=(PartyBox(first.party, box), *true.votes[1:])) for box in forged)
    yield from (replace(true, shares=shares) for shares in other_boxes(true.shares))
    owner = true.shares[0].party
    wrong = [told.shares[attempt, owner, one], told.shares[attempt, one, party], other.shares[attempt, owner, party]]
    wrong += [
        told.shares[of, owner, party]
        for of in (FIRST, SECOND, NEXT)
        if of != attempt and (of, owner, party) in told.shares
    ]
    yield from (replace(true, shares=(PartyBox(owner, box), *true.shares[1:])) for box in (*wrong, first.box, b""))


def other_boxes(boxes):
    """One box missing, twice, or out of order."""
    yield boxes[1:]
    yield (boxes[0], *boxes)
    if len(boxes) > 1:
        yield boxes[::-1]


def test_every_lie_about_a_request_is_refused_and_the_true_request_answered():
    told = play(Told(), lie=True)
    assert told.lies > 500
    honest = play(Told())
    for attempt in (SECOND, NEXT):
        assert told.make_total(attempt) == honest.make_total(attempt)  # to the last bit


# --- lies about totals ------------------------------------------------------------------------------------------------


def lies_about_total(told, other, attempt):
    """What a coordinator can make of a total and of all that it has seen."""
    true = told.make_total(attempt)
    for at in range(0, len(true.body), 4):
        yield replace(true, body=true.body[:at] + bytes([true.body[at] ^ 1]) + true.body[at + 1 :])
    yield from (replace(true, body=body) for body in (b"", true.body[:-4], true.body + bytes(4)))
    yield from (replace(true, body=told.body(of)) for of in (FIRST, SECOND, NEXT) if of != attempt)
    yield from (replace(true, attempt=wrong) for wrong in neighbours(attempt) if wrong != attempt)
    yield replace(true, attempt=replace(attempt, members=b"\x7f"))
    for field in ("openings", "restored"):
        boxes = getattr(true, field)
        yield from (replace(true, **{field: changed}) for changed in other_boxes(boxes))
        yield replace(true, **{field: ()})
        yield replace(true, **{field: (*boxes, PartyBox(6, boxes[0].box))})
        seen = {"openings": told.openings, "restored": told.restored}[field]
        elsewhere = {"openings": other.openings, "restored": other.restored}[field]
        wrong = [box for (of, party), box in seen.items() if (of, party) != (attempt, 1)]
        for box in (*wrong, elsewhere[attempt, 1], told.votes[attempt, 1], true.restored[0].box[:-1], b""):
            if box != boxes[0].box:
                yield replace(true, **{field: (PartyBox(boxes[0].party, box), *boxes[1:])})
    third = PartyBox(3, told.restored[attempt, 3])
    yield replace(true, restored=(*true.restored, third))


@pytest.mark.parametrize("attempt", [SECOND, NEXT])
def test_every_lie_about_a_total_is_refused_and_the_true_total_read(attempt):
    told, other = play(Told()), play(Told(OTHER_SESSION))
    true = told.make_total(attempt)
    wanted = 11111 if attempt == SECOND else 111111
    for party in EVERYONE:  # those that opened, and those that were away
        masks = told.states[party].masks
        before = dict(vars(masks))
        for lie in lies_about_total(told, other, attempt):
            with pytest.raises((RemoteProtocolError, DivergedError)):
                masks.read(lie, PLACE, 1)
        with pytest.raises(RemoteProtocolError, match="a vector must"):
            masks.read(true, PLACE, 2)
        assert vars(masks) == before
        assert masks.read(true, PLACE, 1).elements == [wanted]


def test_a_total_for_other_openings_is_refused_by_name():
    """What was opened for one total opens no other, also for a party that was away."""
    told = play(Told())
    for attempt in (SECOND, NEXT):
        true = told.make_total(attempt)
        body = bytes([true.body[0] ^ 1]) + true.body[1:]
        for lie in (replace(true, body=body), replace(true, attempt=replace(attempt, number=3))):
            with pytest.raises(RemoteProtocolError, match="must be sealed under"):
                told.states[6].masks.read(lie, PLACE, 1)
            if attempt == NEXT:
                with pytest.raises(RemoteProtocolError, match="must be the one that we opened"):
                    told.states[1].masks.read(lie, PLACE, 1)


@pytest.mark.parametrize("told_other", [{1}, {2, 3}, {1, 2, 3, 4}])
def test_members_that_were_told_different_digests_open_no_total_for_anybody(told_other):
    told = Told()
    for party in EVERYONE:
        told.answer(party, FIRST)
    body = told.body(FIRST)
    changed = bytes([body[0] ^ 1]) + body[1:]
    for party in EVERYONE:
        digest = digest_body(changed if party in told_other else body)
        reply = told.tell(party, OpenTotal(FIRST, digest))
        told.openings[FIRST, party] = reply.box
    for party in EVERYONE:
        before = dict(vars(told.states[party].masks))
        for words in (body, changed):
            with pytest.raises(RemoteProtocolError, match=r"must be sealed under|must be the one that we opened"):
                told.states[party].masks.read(replace(told.make_total(FIRST), body=words), PLACE, 1)
        assert vars(told.states[party].masks) == before
        told.tell(party, replace(NEXT, round=2))  # and the next round is answered


def test_readers_that_are_told_different_totals_both_refuse_the_other_one():
    """The same words, once opened by five of six and restored, once opened by all: one sum; and no third."""
    told = Told()
    for party in EVERYONE:
        told.answer(party, FIRST)
    for party in EVERYONE:
        told.open(party, FIRST)
    everyone = told.make_total(FIRST)
    for party in (1, 2):  # the sixth opened, and is claimed to be silent
        told.restore(party, FIRST, [6])
    without = replace(told.make_total(FIRST), openings=everyone.openings[:5])
    for party in EVERYONE:
        for total in (everyone, without):
            assert told.states[party].masks.read(total, PLACE, 1).elements == [111111]
        with pytest.raises(RemoteProtocolError):
            told.states[party].masks.read(replace(everyone, restored=without.restored), PLACE, 1)
