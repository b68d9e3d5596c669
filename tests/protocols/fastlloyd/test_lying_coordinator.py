"""A coordinator that tells parties different sums, whose difference would be one party's vector and one share of noise.

Six parties, one may collude. Party 1 is told the sum over all, the others the sum without party 6.
"""

import numpy as np
import pytest

from cloister.aggregation import pack_members
from cloister.aggregation.coordination import introduce
from cloister.aggregation.messages import Attempt, Conclude, OpenTotal, PartyBox, Settle, Total
from cloister.aggregation.statements import digest_body
from cloister.errors import DivergedError, RemoteProtocolError
from cloister.privacy.placement import Shared
from cloister.protocols.multiparty_lloyd.messages import MaskedRound
from tests.protocols.fastlloyd.sessions import FastLloydSession, deal
from tests.sessions import SESSION

KINDS = ["sound", "mna"]
ALL, WITHOUT_SIX = (1, 2, 3, 4, 5, 6), (1, 2, 3, 4, 5)


def make_session(kind, masks, **options):
    placement = Shared(parties=6, colluding_max=1, quorum=5)
    settings = {"iterations": 3, **({"assignment": "unconstrained"} if kind == "mna" else {})}
    return FastLloydSession(
        kind, deal(parties=6), placement=placement, members_min=5, masks=masks, options=settings, **options
    )


class Liar:
    """A coordinator by hand, which pools every frame."""

    def __init__(self, session):
        self.session, self.terms = session, session.agreement.sums
        self.parties = {number: session.party(number) for number in session.numbers}
        generator = introduce(self.terms, session=SESSION, steps=1)
        ask = next(generator)
        try:
            while True:
                ask = generator.send({n: self.parties[n].handle(request) for n, request in ask.requests.items()})
        except StopIteration:
            pass

    def ask(self, attempt, news, numbers):
        """The answers of these parties, by number; ``news`` is each one's."""
        return {n: self.parties[n].handle(MaskedRound(attempt, news(n))) for n in numbers}

    def total(self, round_, answers, members, number=1, openings=()):
        words = sum(np.frombuffer(answers[n].vector, self.terms.ring.dtype) for n in members)
        return Total(Attempt(round_, number, pack_members(members, 6)), words.tobytes(), openings)


def tell_two_sums_under_common_masks(session):
    """Two rounds; returns the liar, and what each party was told of both."""
    liar = Liar(session)
    answers = liar.ask(Attempt(1, 1, b""), lambda n: (), ALL)
    told = {n: liar.total(1, answers, ALL if n == 1 else WITHOUT_SIX) for n in ALL}
    answers = liar.ask(Attempt(2, 1, b""), lambda n: (told[n],), ALL)
    second = liar.total(2, answers, ALL)
    return liar, told, second


@pytest.mark.parametrize("kind", KINDS)
def test_parties_with_common_masks_notice_in_the_next_round(kind):
    liar, told, second = tell_two_sums_under_common_masks(make_session(kind, "common"))
    for number in ALL:
        before = liar.parties[number].state
        with pytest.raises(DivergedError, match="the same sums before"):
            liar.parties[number].handle(MaskedRound(Attempt(3, 1, b""), (told[number], second)))
        assert liar.parties[number].state is before


@pytest.mark.parametrize("kind", KINDS)
def test_without_check_words_nobody_notices(kind, monkeypatch):
    """The mutant: the session goes on, and the difference of what was told is party 6's vector under one share."""
    monkeypatch.setattr("cloister.aggregation.common_masks.state_attempt", lambda *statement: b"")
    liar, told, second = tell_two_sums_under_common_masks(make_session(kind, "common"))
    for number in ALL:
        liar.parties[number].handle(MaskedRound(Attempt(3, 1, b""), (told[number], second)))
    one, other = (liar.parties[n].state.released_totals[0] for n in (1, 2))
    share = liar.session.duties[6].sampler.drawn[0][1].reshape(one.shape)
    exact = liar.session.agreement.rule.contribute(
        liar.session.record_tables[5], np.array(liar.session.start), 1, liar.session.agreed.assignment
    )
    assert np.array_equal(one - other, exact + share)


@pytest.mark.parametrize("kind", KINDS)
def test_a_last_sum_that_differs_leaves_no_result(kind):
    """The votes on the result notice what no later round can."""
    session = make_session(kind, "common")
    liar, sums = Liar(session), ()
    for round_ in (1, 2):
        answers = liar.ask(Attempt(round_, 1, b""), lambda n: sums[-1:], ALL)  # noqa: B023
        sums = (*sums, liar.total(round_, answers, ALL))
    answers = liar.ask(Attempt(3, 1, b""), lambda n: sums[-1:], ALL)
    last = {n: liar.total(3, answers, ALL if n == 1 else WITHOUT_SIX) for n in ALL}
    votes = tuple(PartyBox(n, liar.parties[n].handle(Settle((last[n],))).box) for n in ALL)
    with pytest.raises(DivergedError, match="ours is that of 1 of 6"):
        liar.parties[1].handle(Conclude((), votes))
    for number in (2, 3, 4, 5, 6):
        liar.parties[number].handle(Conclude((), votes))
        assert liar.parties[number].finished
    assert not liar.parties[1].finished


@pytest.mark.parametrize("kind", KINDS)
def test_under_double_masks_one_of_the_two_sums_is_opened_at_most(kind):
    """Party 1 opens the sum over all; then the sum without party 6 lacks party 1's mask, and cannot be restored."""
    session = make_session(kind, "double")
    liar = Liar(session)
    attempts = Attempt(1, 1, pack_members(ALL, 6)), Attempt(1, 2, pack_members(WITHOUT_SIX, 6))
    first = liar.ask(attempts[0], lambda n: (), ALL)
    body = liar.total(1, first, ALL)
    opened = {1: liar.parties[1].handle(OpenTotal(attempts[0], digest_body(body.body)))}
    with pytest.raises(RemoteProtocolError, match="before one of its round was opened"):
        liar.ask(attempts[1], lambda n: (), [1])
    second = liar.ask(attempts[1], lambda n: (), (2, 3, 4, 5))
    second[1] = first[1]  # the frame of party 1 that was meant for the other attempt
    other = liar.total(1, second, WITHOUT_SIX, number=2)
    for number in (2, 3, 4, 5):
        opened[number] = liar.parties[number].handle(OpenTotal(attempts[1], digest_body(other.body)))
    for total, members in ((body, (1,)), (other, (2, 3, 4, 5)), (other, (1, 2, 3, 4, 5))):
        boxes = tuple(PartyBox(n, opened[n].box) for n in members)
        claimed = Total(total.attempt, total.body, boxes)
        for number in ALL:
            with pytest.raises(RemoteProtocolError):
                liar.parties[number].handle(MaskedRound(Attempt(2, 1, pack_members(ALL, 6)), (claimed,)))
    assert all(len(session.duties[n].charger.spent().releases) == 1 for n in ALL)
    assert all(len(session.duties[n].sampler.drawn) == 1 for n in ALL)


@pytest.mark.parametrize("kind", KINDS)
def test_a_session_with_double_masks_finds_what_one_with_common_masks_does(kind):
    """The same noise: masks change nothing of the result."""
    centres = []
    for masks in ("common", "double"):
        session = make_session(kind, masks)
        run, parties = session.run()
        assert run.result.members == (ALL,) * 3
        assert run.steps == session.agreement.steps == (3 + 3 + 2 if masks == "common" else 4 + 6 + 2)
        centres += [party.centres.tobytes() for party in parties]
    assert len(set(centres)) == 1
