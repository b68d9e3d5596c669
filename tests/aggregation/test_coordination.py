"""Rounds around a coordinator: what it refuses, what a party refuses to read, and how many steps a round takes."""

import numpy as np
import pytest

from cloister.aggregation.coordination import open_round, settle, sum_round
from cloister.aggregation.messages import Answered, Attempt, Opened, PartyBox, Restored, RestoreMasks, Voted
from cloister.aggregation.statements import Place, extend_link
from cloister.errors import DivergedError, RemoteProtocolError, TooFewPartiesError
from cloister.roles import Dropped
from tests.aggregation.sums import PLACE, make_masks, make_terms, vector_of

ASKED, OPENING, RESTORING, NEVER = range(4)


def play(terms, leaves, masks=None, place=None):
    """One round in which each party leaves when it is asked so; returns what came out, and the parties."""
    masks = masks or {number: make_masks(terms, number) for number in range(1, terms.parties + 1)}
    generator = sum_round(
        terms,
        round_=1,
        asked=tuple(masks),
        length=1,
        request=lambda party, attempt: Question(attempt),
        label="",
        steps=1,
    )
    ask = next(generator)
    while True:
        replies = {party: answer(masks, leaves, party, request, place) for party, request in ask.requests.items()}
        for party, reply in replies.items():
            if not isinstance(reply, Dropped):
                ask.check(party, reply)
        try:
            ask = generator.send(replies)
        except StopIteration as stop:
            return stop.value, masks


class Question:
    def __init__(self, attempt):
        self.attempt = attempt


def answer(masks, leaves, party, request, place):
    kinds = {Question: ASKED, RestoreMasks: RESTORING}
    if leaves.get(party, NEVER) <= kinds.get(type(request), OPENING):
        return Dropped()
    if isinstance(request, Question):
        own = place or {}
        return masks[party].answer(request.attempt, own.get(party, PLACE), lambda: vector_of(party))
    return masks[party].handle(request)


@pytest.mark.parametrize("masks", ["double", "common"])
def test_a_party_that_was_asked_something_else_is_noticed_by_all(masks):
    terms = make_terms(4, 3, masks=masks)
    for place in (Place(link=b"other", subject=PLACE.subject), Place(link=PLACE.link, subject=b"other")):
        summed, parties = play(terms, {}, place={2: place})
        for party in parties:
            with pytest.raises(DivergedError, match="the same sums before"):
                parties[party].read(summed.total, place if party == 2 else PLACE, 1)


def test_without_check_words_common_masks_notice_nothing(monkeypatch):
    """The mutant: the same words behind every vector."""
    terms = make_terms(4, 3, masks="common")
    monkeypatch.setattr("cloister.aggregation.common_masks.state_attempt", lambda *statement: b"")
    summed, parties = play(terms, {}, place={2: Place(link=b"other", subject=b"")})
    assert parties[1].read(summed.total, PLACE, 1).elements == [1111]


def test_the_next_link_follows_from_every_entry_of_the_total():
    total = np.array([1, 2, 3], dtype=np.uint32)
    links = {extend_link(b"statement", np.array([1 + a, 2 + b, 3 + c], np.uint32)) for a, b, c in np.eye(3, dtype=int)}
    assert len({*links, extend_link(b"statement", total), extend_link(b"other", total)}) == 5


def test_a_changed_total_is_refused_by_whoever_opened_it_and_whoever_did_not():
    terms = make_terms(5, 4, 1)
    summed, masks = play(terms, {5: ASKED})
    total = summed.total
    body = bytes([total.body[0] ^ 1]) + total.body[1:]
    attempt = Attempt(1, 3, total.attempt.members)
    for changed in (
        type(total)(total.attempt, body, total.openings),
        type(total)(attempt, total.body, total.openings),
        type(total)(total.attempt, total.body, total.openings[:-1]),
        type(total)(total.attempt, total.body, total.openings[::-1]),
    ):
        for party in (1, 5):
            with pytest.raises(RemoteProtocolError):
                masks[party].read(changed, PLACE, 1)
    assert masks[5].read(total, PLACE, 1).elements == [1111]


def test_a_round_of_double_masks_takes_two_steps_and_one_of_common_masks_one():
    for kind, steps in (("double", 2), ("common", 1)):
        terms = make_terms(3, 3, masks=kind)
        asked = []
        masks = {number: make_masks(terms, number) for number in (1, 2, 3)}
        generator = sum_round(
            terms, round_=1, asked=(1, 2, 3), length=1, request=lambda p, a: Question(a), label="", steps=1
        )
        ask = next(generator)
        while ask is not None:
            asked.append(ask)
            try:
                ask = generator.send({p: answer(masks, {}, p, r, None) for p, r in ask.requests.items()})
            except StopIteration:
                ask = None
        assert len(asked) == steps


def test_replies_of_a_wrong_kind_or_length_do_not_count():
    terms = make_terms(4, 3, 1)
    generator = sum_round(
        terms, round_=1, asked=(1, 2, 3, 4), length=1, request=lambda p, a: Question(a), label="", steps=1
    )
    ask = next(generator)
    shares = tuple(PartyBox(other, bytes(49)) for other in (2, 3, 4))
    ask.check(1, Answered(bytes(20), shares))
    for reply in (
        Opened(b""),
        Answered(bytes(19), shares),
        Answered(bytes(20)),
        Answered(bytes(20), shares[:2]),
        Answered(bytes(20), (*shares[:2], PartyBox(4, bytes(48)))),
    ):
        with pytest.raises(RemoteProtocolError, match=r"party 1 must|a vector must"):
            ask.check(1, reply)
    opening = next(open_round(terms, Attempt(1, 1, b"\x0f"), bytes(20), (1, 2, 3, 4), {}, steps=1))
    opening.check(1, Opened(bytes(48), bytes(80)))
    for reply in (Opened(bytes(48)), Opened(bytes(47), bytes(80)), Answered(b"")):
        with pytest.raises(RemoteProtocolError, match="party 1 must"):
            opening.check(1, reply)
    voting = next(settle(terms, lambda party: (), (1, 2, 3), steps=1))
    voting.check(1, Voted(bytes(80)))
    for reply in (Voted(bytes(79)), Restored(bytes(80))):
        with pytest.raises(RemoteProtocolError, match="party 1 must vote"):
            voting.check(1, reply)


def test_shares_of_a_wrong_kind_or_number_do_not_count():
    dealt = {owner: tuple(PartyBox(other, bytes(49)) for other in range(1, 5)) for owner in range(1, 5)}
    opening = open_round(make_terms(4, 3, 1), Attempt(1, 1, b"\x0f"), bytes(20), (1, 2, 3, 4), dealt, steps=1)
    next(opening)
    restoring = opening.send({1: Opened(bytes(48)), 2: Opened(bytes(48)), 3: Opened(bytes(48)), 4: Dropped()})
    restoring.check(1, Restored(bytes(33 + 16)))
    for reply in (Restored(bytes(16)), Restored(bytes(2 * 33 + 16)), Voted(bytes(33 + 16))):
        with pytest.raises(RemoteProtocolError, match="party 1 must"):
            restoring.check(1, reply)


def test_too_few_parties_end_a_session_wherever_they_leave():
    terms = make_terms(4, 3, masks="common")
    asking = sum_round(
        terms, round_=1, asked=(1, 2, 3, 4), length=1, request=lambda p, a: Question(a), label="", steps=1
    )
    next(asking)
    answered = Answered(bytes(20))
    with pytest.raises(TooFewPartiesError):
        asking.send({1: answered, 2: answered, 3: Dropped(), 4: Dropped()})
    voting = settle(terms, lambda party: (), (1, 2, 3, 4), steps=1)
    next(voting)
    with pytest.raises(TooFewPartiesError):
        voting.send({1: Voted(bytes(80)), 2: Voted(bytes(80)), 3: Dropped(), 4: Dropped()})


def test_the_bytes_that_travel_with_a_total_are_counted():
    """Five openings of 48 bytes, two boxes of five shares of 33, 8 bytes around each, a digest, and 64 for the rest."""
    terms = make_terms(5, 4, colluding_max=1)
    assert terms.opening_bytes == 5 * (48 + 8) + 2 * (5 * 33 + 16 + 8) + 32 + 64
    assert make_terms(5, 4, masks="common").opening_bytes == 64
