"""What a party and a coordinator of a synopsis refuse, and that a refusal changes nothing."""

import numpy as np
import pytest

from cloister.aggregation import Aggregate
from cloister.aggregation.seed_agreement import OpenSession, Ready
from cloister.crypto import Stream
from cloister.errors import BudgetError, LocalProtocolError, RemoteProtocolError
from cloister.privacy.accounting import Accountant
from cloister.privacy.placement import Aggregator, Local
from cloister.privacy.release import NoiseDuty
from cloister.privacy.units import Budget
from cloister.protocols.guided_sums.messages import Confirm, Finish, MaskedUpdate, Round
from cloister.protocols.synopsis import Knobs, Settings, run_synopsis
from cloister.wire import Array, PartyEndpoint
from tests.protocols.synopsis.sessions import Session, counting
from tests.sessions import SESSION, RecordingSampler, Table, blobs, split

POINTS = {d: blobs(300, d, 3, seed=5) for d in (1, 2, 7)}


def refuse(party, request, match):
    """The request is refused, and the party is as it was."""
    before = (party._answered, party._progress, party._seed_holder.seed)
    with pytest.raises(RemoteProtocolError, match=match):
        party.handle(request)
    assert (party._answered, party._progress, party._seed_holder.seed) == before


def test_requests_out_of_turn_are_refused_and_change_nothing():
    session = counting(3)
    table = Table(session)
    party = table.parties[1]
    refuse(party, Round(1, None), "seed must be agreed")
    refuse(party, Finish(Aggregate(1, b"\x07", Array.of(np.zeros(1, np.uint64)))), "rounds must be answered")
    table.play(3)
    refuse(party, Round(2, None), "round 2 must come after round 1; it came after round 0")
    table.play(1)
    asked = table.request()
    refuse(party, Round(1, None), "round 1 must come after round 0; it came after round 1")
    refuse(party, Round(2, None), "total of round 1 must come")
    refuse(party, Round(3, asked.news), "round 3 must come after round 2")
    refuse(party, Confirm(asked.news), "round 7 must come after round 6; it came after round 1")
    refuse(party, Finish(asked.news), "all 7 rounds must be answered before the end; 1 are")
    refuse(party, OpenSession(session.agreement.digest), "out of turn")
    charged = session.spent()[0].releases
    table.play(5)
    asked = table.request()
    assert isinstance(asked, Confirm)
    refuse(party, Round(7, asked.news), "must be from 1 to 6; got 7")
    refuse(party, Finish(asked.news), "all 7 rounds must be answered before the end; 6 are")
    table.play(1)
    last = table.request()
    assert isinstance(last, Finish)
    refuse(party, Confirm(last.news), "round 7 must come after round 6; it came after round 7")
    refuse(party, Finish(asked.news), "total of round 7 must come")
    assert not party.finished
    table.play(1)
    assert table.coordinator.finished
    refuse(party, last, "finished session")
    assert len(charged) == 1
    assert len(session.spent()[0].releases) == 3


def test_totals_that_are_not_the_last_rounds_are_refused():
    table = Table(counting(3)).play(4)
    party, news = table.parties[1], table.request().news
    words = news.masked_sum.to_numpy(np.uint64, table.session.agreement.length_of(1))
    refuse(party, Round(2, Aggregate(2, news.members, news.masked_sum)), "total of round 1 must come")
    refuse(party, Round(2, Aggregate(1, b"\x01", news.masked_sum)), "at least 2 parties to be unmasked; got 1")
    refuse(party, Round(2, Aggregate(1, b"\xff", news.masked_sum)), "bitmap")
    refuse(party, Round(2, Aggregate(1, news.members, Array.of(words.astype(np.uint32)))), "must be uint64")
    refuse(party, Round(2, Aggregate(1, news.members, Array.of(np.repeat(words, 2)))), "shape")
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
    with pytest.raises(RemoteProtocolError, match="must come after"):
        endpoint.receive(frames[1])


def test_a_party_whose_books_are_full_sends_nothing():
    session = Session(split(POINTS[2], 2))
    small = Accountant(Budget(epsilon=0.5, delta=1e-6))
    session.duties[1] = NoiseDuty(charger=small, sampler=RecordingSampler("p"))
    parties = [session.party(1), session.party(2)]
    with pytest.raises(BudgetError, match="spent"):
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
    table = Table(session).play(3)
    party, request = table.parties[1], table.request()
    before = (party._answered, party._progress, party._secrets)
    for _ in range(2):
        with pytest.raises(BudgetError, match="Nothing was released"):
            party.handle(request)
        assert (party._answered, party._progress, party._secrets) == before
    assert not books.spent().releases
    assert not sampler.drawn


@pytest.mark.parametrize("bad", ["short vector", "long vector", "other words", "no check words", "no vector"])
def test_a_coordinator_drops_a_party_that_answers_with_something_else(bad):
    table = Table(counting(3)).play(3)
    reply = table.parties[1].handle(table.request())
    words = reply.masked.to_numpy(np.uint64, table.session.agreement.length_of(1))
    replies = {
        "short vector": MaskedUpdate(Array.of(words[1:])),
        "long vector": MaskedUpdate(Array.of(np.repeat(words, 2))),
        "other words": MaskedUpdate(Array.of(words.astype(np.uint32))),
        "no check words": MaskedUpdate(Array.of(words[: -table.session.agreement.check_words])),
        "no vector": Ready(),
    }
    with pytest.raises(RemoteProtocolError):
        table.deliver(1, replies[bad])
    assert 1 in table.coordinator.waiting_for()


@pytest.mark.parametrize("settings", [{}, {"records": 50}, {"choose_k": True}], ids=str)
@pytest.mark.parametrize("dimensions", [1, 2, 7])
def test_whatever_a_coordinator_sends_as_totals_every_party_goes_on(dimensions, settings):
    """A lying coordinator can spoil the result; it cannot make one party stop and so learn of its state."""
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
