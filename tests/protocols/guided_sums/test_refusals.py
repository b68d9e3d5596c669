"""What a party and a coordinator of a synopsis refuse, and that a refusal changes nothing."""

import numpy as np
import pytest
from msgspec import structs

from cloister.aggregation.messages import Answered, Attempt, PartyBox
from cloister.aggregation.seed_agreement import OpenSession, Ready
from cloister.crypto import Stream
from cloister.errors import BudgetError, LocalProtocolError, RemoteProtocolError
from cloister.privacy.accounting import Accountant
from cloister.privacy.placement import Aggregator, Local
from cloister.privacy.release import NoiseDuty
from cloister.privacy.units import Budget
from cloister.protocols.guided_sums.messages import Answer, Finish, Lead, Past, Sign, Signed
from cloister.protocols.guided_sums.statements import Stated
from cloister.protocols.synopsis.pipeline import run_synopsis
from cloister.protocols.synopsis.settings import Knobs, Settings
from cloister.wire import PartyEndpoint
from tests.owners import told_to_owner
from tests.protocols.synopsis.sessions import Session, counting
from tests.sessions import SESSION, RecordingSampler, Table, blobs, split

POINTS = {d: blobs(300, d, 3, seed=5) for d in (1, 2, 7)}


def state_of(party):
    """All that an answer may change."""
    return (
        (party._answered, party._link, party._left, party._led, party._result, party._finished),
        getattr(party._introduction.masks, "seed", None),
        None if party._leader is None else (party._leader._read, party._leader._link, len(party._leader.totals)),
    )


def refuse(party, request, match):
    """The request is refused, and the party is as it was."""
    before = state_of(party)
    with pytest.raises(RemoteProtocolError, match=match):
        party.handle(request)
    assert state_of(party) == before


def first_try(round_):
    return Attempt(round_, 1, b"")


def test_requests_out_of_turn_are_refused_and_change_nothing():
    session = counting(3)
    table = Table(session)
    party = table.parties[1]
    nothing = Stated(1, bytes(16), bytes(40), bytes(64))
    link = party._link
    early = (Lead(1, ()), Answer(first_try(1), link, nothing), Sign(link, nothing), Finish(b"\x07", bytes(192)))
    for request in early:
        refuse(party, request, "a session opens with OpenSession")
    table.play(3)
    refuse(party, Lead(2, ()), "all rounds before round 2 must come")
    refuse(party, Lead(len(session.settings.slots) + 2, ()), "from 1 to 7; got 8")
    table.play(1)
    first = table.request()
    assert isinstance(first, Answer)
    refuse(party, Lead(1, ()), "from 2 to 7; got 1. What was stated stands")
    refuse(party, Answer(first_try(7), first.link, first.stated), "from 0 to 6")
    refuse(party, Answer(first_try(1), bytes(32), first.stated), "must be those that party 1 answered")
    refuse(party, Answer(first_try(1), b"", first.stated), "must be those that party 1 answered")
    refuse(
        party,
        Answer(first_try(2), bytes(32), first.stated),
        "must be signed by its identity, for this session and round|bytes long",
    )
    table.play(1)
    refuse(party, first, "of a round after 1, in one attempt")
    table.play(1)
    second = table.request()
    refuse(party, Answer(first_try(2), first.link, second.stated), "must be those that party 1 answered")
    refuse(party, OpenSession(session.agreement.digest), "must be agreed on once")
    table.play(10)
    sign = table.request()
    assert isinstance(sign, Sign)
    refuse(party, Sign(first.link, sign.stated), "must be those that party 1 answered")
    refuse(party, Finish(b"\x07", bytes(192)), "must be signed before the end")
    table.play(1)
    refuse(party, sign, "signed once")
    last = table.request()
    assert isinstance(last, Finish)
    refuse(party, Finish(last.members, last.signatures[1:]), "a signature of 64 bytes for each of 3 members")
    refuse(party, Finish(b"\xff", last.signatures), "bitmap")
    assert not party.finished
    table.play(1)
    assert table.coordinator.finished
    refuse(party, last, "finished session")
    assert len(session.spent()[0].releases) == 3


def test_totals_that_are_not_the_last_rounds_are_refused():
    table = Table(counting(3)).play(5)
    leader, (past,) = table.parties[1], table.request().news
    total, attempt = past.total, past.total.attempt

    def changed(**fields):
        return Lead(2, (Past(past.stated, structs.replace(total, **fields)),))

    refuse(leader, Lead(2, ()), "all rounds before round 2 must come")
    refuse(leader, changed(attempt=structs.replace(attempt, round=2)), "all rounds before round 2 must come")
    refuse(leader, Lead(2, (past, past)), "all rounds before round 2 must come")
    refuse(leader, changed(attempt=structs.replace(attempt, members=b"\x01")), "at least 2 parties")
    refuse(leader, changed(attempt=structs.replace(attempt, members=b"\xff")), "bitmap")
    refuse(leader, changed(attempt=structs.replace(attempt, number=2)), "in one attempt")
    refuse(leader, changed(openings=(PartyBox(1, bytes(48)),)), "nothing to open")
    refuse(leader, changed(body=total.body[4:]), "a vector must have")
    refuse(leader, changed(body=total.body * 2), "a vector must have")
    forged = structs.replace(past.stated, signature=bytes(64))
    refuse(leader, Lead(2, (Past(forged, total),)), "must be signed")
    table.play(1)


def test_a_round_is_answered_once_however_often_it_is_asked():
    session = counting(3)
    table = Table(session).play(4)
    endpoint = PartyEndpoint(table.parties[1], number=1, codec=table.codec, session=SESSION)
    frames = [
        table.codec.encode(table.request(), session=SESSION, step=step, sender=0) for step in (4, 5)
    ]  # the same request as a retry and as a new step
    first = endpoint.receive(frames[0])
    assert endpoint.receive(frames[0]) == first
    with pytest.raises(RemoteProtocolError, match="of a round after 1"):
        endpoint.receive(frames[1])


def test_a_party_whose_books_are_full_sends_nothing():
    session = Session(split(POINTS[2], 2))
    small = Accountant(Budget(epsilon=0.5, delta=1e-6))
    session.duties[1] = NoiseDuty(charger=small, sampler=RecordingSampler("p"))
    parties = [session.party(1), session.party(2)]
    with told_to_owner(BudgetError, "spent"):
        session.run(parties)
    assert small.spent().epsilon <= 0.5
    assert not parties[0].finished
    with pytest.raises(LocalProtocolError, match="must be finished"):
        _ = parties[0].finding


@pytest.mark.parametrize("placement", [Aggregator(), Local(parties=2)], ids=lambda placement: type(placement).__name__)
def test_a_refused_charge_leaves_the_party_as_it_was_and_draws_nothing(placement):
    """Asked again, it is refused again: no second charge, no noise, no vector."""
    session = Session(split(POINTS[2], 2), placement=placement)
    sampler = RecordingSampler("p")
    books = Accountant(Budget(epsilon=1e-3, delta=1e-6))
    session.duties[1] = NoiseDuty(charger=books, sampler=sampler)
    table = Table(session).play(4)
    party, request = table.parties[1], table.request()
    before = state_of(party)
    for _ in range(2):
        with pytest.raises(BudgetError, match="Nothing was released"):
            party.handle(request)
        assert state_of(party) == before
    assert not books.spent().releases
    assert not sampler.drawn


@pytest.mark.parametrize("bad", ["short vector", "long vector", "no check words", "shares", "no vector"])
def test_a_coordinator_drops_a_party_that_answers_with_something_else(bad):
    table = Table(counting(3)).play(4)
    reply = table.parties[1].handle(table.request())
    replies = {
        "short vector": Answered(reply.vector[1:]),
        "long vector": Answered(reply.vector * 2),
        "no check words": Answered(reply.vector[:-16]),
        "shares": Answered(reply.vector, (PartyBox(2, bytes(49)),)),
        "no vector": Ready(),
    }
    with pytest.raises(RemoteProtocolError):
        table.deliver(1, replies[bad])
    assert 1 in table.coordinator.waiting_for()


@pytest.mark.parametrize("settings", [{}, {"records": 50}, {"choose_k": True}], ids=str)
@pytest.mark.parametrize("dimensions", [1, 2, 7])
def test_whatever_a_coordinator_sends_as_totals_the_leader_goes_on(dimensions, settings):
    """A lying coordinator can spoil the result; it cannot make the leader stop and so learn of its state."""
    options = {"clusters": 3, "budget": Budget(epsilon=1.0, delta=1e-6), "parties": 2, "knobs": Knobs(cells_max=64)}
    public = Settings(dimensions=dimensions, **options, **settings)
    rng = np.random.default_rng(3)
    extremes = [np.int64(-(2**63)), np.int64(2**63 - 1), np.int64(0), np.int64(1)]
    for case in range(8):
        asking = run_synopsis(public, Stream.from_seed(case, "hostile"))
        query = next(asking)
        for slot in public.slots:
            total = rng.integers(-(2**63), 2**63, slot.length, dtype=np.int64)
            if case < 4:
                total = np.full(slot.length, extremes[case])
            try:
                query = asking.send(total[: query.length])
            except StopIteration as stop:
                centres = stop.value.centres
        assert (np.abs(centres) <= 1).all()
        assert len(np.unique(centres, axis=0)) == len(centres)


@pytest.mark.parametrize("length", [0, 63, 65, 128])
def test_a_coordinator_drops_a_party_whose_signature_has_another_length(length):
    """All signatures travel as one: a byte more or less would spoil those of the others."""
    table = Table(counting(3))
    while not table.coordinator.ask.label.startswith("signing"):
        table.play(1)
    table.deliver(2, table.parties[2].handle(table.request(2)))
    with pytest.raises(RemoteProtocolError, match="must sign with"):
        table.deliver(1, Signed(bytes(length)))
    assert 1 in table.coordinator.waiting_for()
    assert 2 not in table.coordinator.waiting_for()
