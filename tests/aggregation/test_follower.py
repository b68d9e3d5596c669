"""A party between rounds: it takes every sum once, in order, and a result that a quorum has signed alike."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest

from cloister.aggregation import Follower
from cloister.aggregation.coordination import settle, sum_round
from cloister.aggregation.messages import Conclude, PartyBox, Settle
from cloister.aggregation.seed_agreement import Ready
from cloister.aggregation.statements import start_link
from cloister.crypto.sealing import seal_keyed
from cloister.errors import DivergedError, RemoteProtocolError
from cloister.roles import Dropped
from tests.aggregation.sums import SEED, SESSION, make_masks, make_seat, make_terms, vector_of
from tests.aggregation.test_dropouts import Question

TERMS = make_terms(4, 3, 1)
OTHER_SESSION = bytes(16)


@dataclass
class Sums:
    """Keeps the sums that it takes."""

    subject: bytes = b"job"
    taken: tuple = ()
    begun: list = field(default_factory=list)

    def begin(self, seed, session):
        self.begun.append((seed, session))

    def contribute(self, round_):
        return vector_of(round_)

    def take(self, round_, total, members):
        self.taken = (*self.taken, (round_, *total.tolist(), members))

    def branch(self):
        return replace(self)


class Member:
    def __init__(self, number, terms=TERMS, session=SESSION):
        seat = make_seat(number, session)
        self.masks = make_masks(terms, number, seat)
        self.follower = Follower(seat=seat, terms=terms, contributor=Sums(), length=1)

    def follow(self, *news, upto=None):
        """Take sums on a branch, as parties do."""
        branch = self.follower.branch()
        branch.take(news, upto=len(news) if upto is None else upto, masks=self.masks)
        return branch


def meet(session=SESSION, terms=TERMS):
    return {number: Member(number, terms, session) for number in range(1, 5)}


def run_round(parties, round_, silent=()):
    generator = sum_round(
        TERMS,
        round_=round_,
        asked=tuple(parties),
        length=1,
        request=lambda party, attempt: Question(attempt),
        label="",
        steps=1,
    )
    ask = next(generator)
    while True:
        try:
            ask = generator.send(
                {
                    party: Dropped() if party in silent else reply(parties[party], request, round_)
                    for party, request in ask.requests.items()
                }
            )
        except StopIteration as stop:
            return stop.value.total


def reply(party, request, round_):
    if isinstance(request, Question):
        return party.masks.answer(request.attempt, party.follower.place, lambda: vector_of(round_))
    return party.masks.handle(request)


def run_rounds(parties, count=3):
    totals = []
    for round_ in range(1, count + 1):
        totals.append(run_round(parties, round_, silent={4} if round_ == 2 else ()))
        for party in parties.values():
            party.follower = party.follow(*totals)
    return totals


def test_every_sum_is_taken_once_and_in_order():
    parties = meet()
    totals = run_rounds(parties)
    taken = ((1, 4, 4), (2, 30, 3), (3, 400, 4))
    assert all(party.follower.contributor.taken == taken for party in parties.values())
    assert len({party.follower.place.link for party in parties.values()}) == 1
    late = Member(4)
    for news, upto in [
        (totals[1:], 3),
        (totals[:2], 3),
        (totals, 2),
        ((totals[0], totals[2]), 3),
        ((totals[1], totals[0], totals[2]), 3),
        ((*totals, totals[2]), 3),
        ((), 3),
    ]:
        with pytest.raises(RemoteProtocolError, match="must all come, in order"):
            late.follow(*news, upto=upto)
    assert (late.follower.taken, late.follower.contributor.taken) == (0, ())
    assert late.follow(*totals).contributor.taken == taken
    follower = late.follow(*totals[:1])
    assert follower.branch().place == follower.place
    assert (late.follower.taken, late.follower.contributor.taken) == (0, ())
    with pytest.raises(RemoteProtocolError, match="must all come, in order"):
        follower.take((totals[2],), upto=3, masks=late.masks)
    follower.take(tuple(totals[1:]), upto=3, masks=late.masks)
    assert follower.contributor.taken == taken


def test_the_next_place_follows_from_every_sum_and_from_the_agreement():
    one, other = meet(), meet()
    first, second = run_round(one, 1), run_round(other, 1, silent={4})
    other[1].follower = other[1].follow(second)
    for number in (2, 3, 4):
        other[number].follower = one[number].follow(first)
    third = run_round(other, 2)
    with pytest.raises(DivergedError):  # who read another first sum reads nothing of the second round
        other[1].follower.take((third,), upto=2, masks=other[1].masks)
    agreed = meet(terms=make_terms(4, 3, 1, digest=b"another job"))
    mixed = {**meet(), 2: agreed[2]}
    with pytest.raises(DivergedError):
        mixed[1].follow(run_round(mixed, 1))
    links = {start_link(session, digest) for session in (SESSION, OTHER_SESSION) for digest in (b"job", b"another job")}
    assert len(links) == 4


# --- the result -------------------------------------------------------------------------------------------------------


def conclude(parties, replies):
    """Hand out the votes of these parties; returns what each party is sent."""
    generator = settle(TERMS, lambda party: (), tuple(parties), steps=1)
    ask = next(generator)
    assert {*ask.requests.values()} == {Settle(())}
    for party, vote in replies.items():
        ask.check(party, vote)
    ask = generator.send({party: replies.get(party, Dropped()) for party in parties})
    for party in parties:
        ask.check(party, Ready())
    return ask.requests


def votes_of(parties, numbers):
    return tuple(PartyBox(n, parties[n].follower.vote(parties[n].masks).box) for n in numbers)


def test_a_result_is_one_that_a_quorum_has_signed():
    parties = meet()
    run_rounds(parties)
    replies = {n: parties[n].follower.vote(parties[n].masks) for n in (1, 2, 4)}
    for party, request in conclude(parties, replies).items():
        assert isinstance(request, Conclude)
        parties[party].follower.check_votes(request.votes, parties[party].masks)


def test_votes_that_are_too_few_or_twice_or_of_another_are_refused():
    parties, others = meet(), meet(OTHER_SESSION)
    run_rounds(parties)
    run_rounds(others)
    votes, foreign = votes_of(parties, (1, 2, 3)), votes_of(others, (1, 2, 3))
    follower, masks = parties[4].follower, parties[4].masks
    for wrong in (
        votes[:2],
        (votes[0], *votes),
        votes[::-1],
        (*votes[:2], PartyBox(5, seal_keyed(bytes(64), SEED, SESSION, "result", 5))),
        (*votes[:2], PartyBox(3, votes[1].box)),
        (*votes[:2], PartyBox(4, votes[2].box)),
        (*votes[:2], foreign[2]),
        (*votes[:2], PartyBox(3, b"")),
    ):
        with pytest.raises(RemoteProtocolError):
            follower.check_votes(wrong, masks)
    follower.check_votes(votes, masks)


@pytest.mark.parametrize("differs", ["link", "subject", "signer", "purpose"])
def test_votes_for_something_else_do_not_count(differs):
    """Two of three have found the same: too few for a quorum."""
    parties = meet()
    run_rounds(parties)
    third = parties[3]
    if differs == "link":
        third.follower._link = b"another"
    elif differs == "subject":
        third.follower.contributor.subject = b"another"
    elif differs == "signer":
        third.follower._seat = replace(third.follower._seat, identity=make_seat(2).identity)
    else:
        third.follower._seat = replace(third.follower._seat, identity=Signer(third.follower._seat.identity))
    votes = votes_of(parties, (1, 2, 3))
    for number in (1, 4):
        with pytest.raises(DivergedError, match="ours is that of 2 of 3"):
            parties[number].follower.check_votes(votes, parties[number].masks)


class Signer:
    """Signs the same without its purpose."""

    def __init__(self, identity):
        self._identity = identity

    def sign(self, *context):
        return self._identity.sign(*context[-2:])
