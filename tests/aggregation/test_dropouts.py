"""Whoever leaves an honest coordinator, and when: the exact sum, or a typed error and nothing readable.

Every number of parties up to five, every quorum with 2q > n + t, every set of parties leaving at every step: at the
first attempt, at a later one, when the sum is opened, when masks are restored. All return in the next round. What is
readable is asked of the coordinator together with t parties: of all frames, those that came too late included.
"""

import itertools

import pytest

from cloister.aggregation.coordination import sum_round
from cloister.aggregation.messages import RestoreMasks
from cloister.aggregation.statements import Place
from cloister.errors import TooFewPartiesError
from cloister.roles import Dropped
from tests.aggregation.sums import PLACE, Coalition, Parties, make_terms, members_of
from tests.aggregation.test_collusion import QUORUMS, colluders_of


class Question:
    """What a protocol asks for an answer with."""

    def __init__(self, attempt):
        self.attempt = attempt


class Session:
    """Rounds of one session: parties leave as they are told to, and the coalition sees every frame.

    Parameters
    ----------
    late
        Whether a party that leaves does what it was asked, too late for the coordinator; else it was not reached.
    """

    def __init__(self, terms, parties, late):
        self.terms, self.late = terms, late
        self.coalition = Coalition(terms, colluders_of(terms), parties)
        self.last = None  # the attempt that was tried last
        self.restoring: set[int] = set()  # who gave shares, in time or not

    def run(self, round_, leaves):
        """One round, in which each party leaves at its step; returns what came out, or None if it was given up."""
        self.restoring = set()
        generator = sum_round(
            self.terms,
            round_=round_,
            asked=tuple(range(1, self.terms.parties + 1)),
            length=1,
            request=lambda party, attempt: Question(attempt),
            label="",
            steps=1,
        )
        ask = next(generator)
        while True:
            replies = {party: self._reply(party, request, leaves[party]) for party, request in ask.requests.items()}
            for party, reply in replies.items():
                if not isinstance(reply, Dropped):
                    ask.check(party, reply)
            try:
                ask = generator.send(replies)
            except StopIteration as stop:
                return stop.value
            except TooFewPartiesError:
                return None

    def _reply(self, party, request, leaves):
        if isinstance(request, Question):
            self.last = request.attempt
        left = leaves <= step_of(request, self.terms)
        if left and not self.late:
            return Dropped()
        reply = self.coalition.tell(party, request.attempt if isinstance(request, Question) else request)
        assert reply is not None  # an honest coordinator is never refused
        if isinstance(request, RestoreMasks):
            self.restoring.add(party)
        return Dropped() if left else reply

    def is_open(self):
        """Whether each honest member's mask was given, or can be restored from shares that somebody gave or holds."""
        attempt, coalition = self.last, self.coalition
        answered = [party for party, of in coalition.frames if of == attempt]
        held = len(self.restoring | coalition.colluders.intersection(answered))
        closed = [party for party in answered if (party, attempt) not in coalition.opened]
        whole = {*answered} == {*members_of(attempt, self.terms)}
        return whole and (coalition.colluders.issuperset(closed) or held >= self.terms.restorers)


def attempts_of(terms):
    """How many attempts a round can have: each that fails has lost a member."""
    return terms.parties - terms.members_min + 1


def step_of(request, terms):
    attempts = attempts_of(terms)
    return request.attempt.number if isinstance(request, Question) else attempts + 1 + isinstance(request, RestoreMasks)


def expected(terms, leaves):
    """The members of the sum, or None where too few stay."""
    steps = attempts_of(terms)
    asked = set(leaves)
    for number in itertools.count(1):
        answered = {party for party in asked if leaves[party] > min(number, steps)}
        if len(answered) < terms.members_min:
            return None
        if answered == asked:
            break
        asked = answered
    opened = {party for party in asked if leaves[party] > steps + 1}
    restored = {party for party in opened if leaves[party] > steps + 2}
    helped = terms.shares_masks and len(opened) >= terms.members_min and len(restored) >= terms.restorers
    return asked if opened == asked or helped else None


class Readers:
    """What the parties read of totals: once for each total and state of a reader."""

    def __init__(self):
        self._known = {}

    def read(self, masks, total, place):
        last = masks._entered
        key = (total, place, last and (last.attempt, last.opened_digest))
        if key not in self._known:
            self._known[key] = masks.read(total, place, 1)
        return self._known[key]


def check_round(session, readers, round_, leaves, place):
    """Play a round and hold it against what must come out; returns the link to the next round."""
    terms, coalition = session.terms, session.coalition
    summed, wanted = session.run(round_, leaves), expected(terms, leaves)
    assert (summed is not None) == (wanted is not None)
    link = place.link
    if summed is not None:
        assert summed.members == tuple(sorted(wanted))
        for masks in coalition.masks.values():  # also of those that were away
            reading = readers.read(masks, summed.total, place)
            assert reading.members == summed.members
            assert reading.elements == [sum(10 ** (member - 1) for member in wanted)]
        link = reading.link
    readable = [{*c} for c in coalition.find_readable() if any(attempt.round == round_ for _, attempt in c)]
    honest = {(party, session.last) for party in members_of(session.last, terms) if party in coalition.honest}
    assert readable == ([honest] if session.is_open() else [])
    if summed is not None:
        assert readable
    elif not session.late and all(leaves[party] > attempts_of(terms) + 2 for party in coalition.colluders):
        assert not readable  # it was given up because honest parties left
    return link


def every_leave(terms):
    steps, numbers = range(1, attempts_of(terms) + 4), range(1, terms.parties + 1)
    return [dict(zip(numbers, when, strict=True)) for when in itertools.product(steps, repeat=terms.parties)]


def check_session(terms, firsts, late, seconds):
    """All first rounds; after each that left another state, all second ones."""
    parties, readers, seen = Parties(terms), Readers(), set()
    for leaves in firsts:
        session = Session(terms, parties, late)
        link = check_round(session, readers, 1, leaves, PLACE)
        states = (*(id(state) for state in session.coalition.states.values()), link)
        if states in seen:
            continue
        seen.add(states)
        given_up = link == PLACE.link and not session.is_open()
        started = copy_of(session)
        for again in seconds:
            session = copy_of(started)
            place = Place(link=link, subject=PLACE.subject)
            session.coalition.stand_at(place)
            check_round(session, readers, 2, again, place)
            if given_up:  # whatever is opened or restored later
                assert all(attempt.round == 2 for c in session.coalition.find_readable() for _, attempt in c)


def copy_of(session):
    other = Session(session.terms, None, session.late)
    other.coalition = session.coalition.copy()
    other.last = session.last
    return other


def everyone_returns(terms):
    return [dict.fromkeys(range(1, terms.parties + 1), attempts_of(terms) + 3)]


@pytest.mark.parametrize(("parties", "quorum", "colluding"), QUORUMS)
def test_whoever_leaves_at_whatever_step_the_sum_is_exact_or_nothing_is_read(parties, quorum, colluding):
    terms = make_terms(parties, quorum, colluding)
    check_session(terms, every_leave(terms), late=False, seconds=everyone_returns(terms))


@pytest.mark.parametrize(("parties", "quorum", "colluding"), QUORUMS)
def test_replies_that_come_too_late_show_the_sum_of_the_round_at_most(parties, quorum, colluding):
    terms = make_terms(parties, quorum, colluding)
    check_session(terms, every_leave(terms), late=True, seconds=everyone_returns(terms))


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize(("parties", "quorum", "colluding"), [terms for terms in QUORUMS if terms[0] <= 3])
def test_parties_may_leave_in_two_rounds(parties, quorum, colluding, late):
    terms = make_terms(parties, quorum, colluding)
    check_session(terms, every_leave(terms), late=late, seconds=every_leave(terms))


@pytest.mark.parametrize(("parties", "quorum", "colluding"), [(3, 2, 0), (4, 3, 1)])
def test_where_masks_are_not_restored_whoever_leaves_an_opening_ends_the_round(parties, quorum, colluding):
    """As in a ring with joint noise."""
    terms = make_terms(parties, quorum, colluding, restores=False)
    check_session(terms, every_leave(terms), late=False, seconds=everyone_returns(terms))
