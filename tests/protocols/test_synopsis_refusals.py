"""What a party and a coordinator of a synopsis refuse, and that a refusal changes nothing."""

from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest

from cloister.aggregation import Aggregate
from cloister.aggregation.seed_agreement import OpenSession, Ready
from cloister.crypto import Stream
from cloister.errors import (
    BudgetError,
    DivergedError,
    LocalProtocolError,
    RemoteProtocolError,
)
from cloister.privacy.accounting import Accountant
from cloister.privacy.placement import Aggregator, Local
from cloister.privacy.release import NoiseDuty
from cloister.privacy.units import Budget
from cloister.protocols.synopsis import (
    CODEC,
    Knobs,
    Settings,
    SharedThinking,
)
from cloister.protocols.synopsis.messages import Finish, MaskedUpdate, Round
from cloister.protocols.synopsis.pipeline import run_synopsis
from cloister.wire import Array, CoordinatorEndpoint, PartyEndpoint
from tests.harness import SESSION, blobs, split
from tests.protocols.synopsis_session import (
    RecordingSampler,
    Session,
    count_thrice,
    counting,
)

POINTS = {d: blobs(300, d, 3, seed=5) for d in (1, 2, 7)}


class Table:
    """A coordinator and its parties with every message in the tester's hands."""

    def __init__(self, session):
        self.session = session
        self.coordinator = CoordinatorEndpoint(session.coordinator(), codec=CODEC, session=SESSION)
        self.parties = {n: session.party(n) for n in range(1, session.settings.parties + 1)}

    def play(self, steps):
        for _ in range(steps):
            for number, request in self.coordinator.ask.requests.items():
                self.deliver(number, self.parties[number].handle(request))
            self.coordinator.close_step()
        return self

    def deliver(self, number, reply):
        frame = CODEC.encode(reply, session=SESSION, step=self.coordinator.step, sender=number)
        self.coordinator.receive(number, frame)

    def request(self, number=1):
        return self.coordinator.ask.requests[number]


def refuse(party, request, match):
    """The request is refused, and the party is as it was."""
    before = (party._answered, party._thought, party._seed_holder.seed)
    with pytest.raises(RemoteProtocolError, match=match):
        party.handle(request)
    assert (party._answered, party._thought, party._seed_holder.seed) == before


def test_requests_out_of_turn_are_refused_and_change_nothing():
    session = counting(3)
    table = Table(session)
    party = table.parties[1]
    refuse(party, Round(1, None), "seed must be agreed")
    refuse(party, Finish(Aggregate(1, b"\x07", Array.of(np.zeros(1, np.uint64)))), "rounds must be answered")
    table.play(3)
    refuse(party, Round(2, None), "round 1 of 6 must come next; got 2")
    table.play(1)
    asked = table.request()
    refuse(party, Round(1, None), "round 2 of 6 must come next; got 1")
    refuse(party, Round(2, None), "total of round 1 must come")
    refuse(party, Round(3, asked.news), "round 2 of 6 must come next")
    refuse(party, Finish(asked.news), "all 6 rounds must be answered before the end; 1 are")
    refuse(party, OpenSession(session.agreement.digest), "out of turn")
    charged = session.spent()[0].releases
    table.play(5)
    last = table.request()
    assert isinstance(last, Finish)
    refuse(party, Round(7, last.news), "round 7 of 6 must come next")
    table.play(1)
    assert table.coordinator.finished
    refuse(party, last, "finished session")
    assert len(charged) == 1
    assert len(session.spent()[0].releases) == 3


def test_totals_that_are_not_the_last_rounds_are_refused():
    table = Table(counting(3)).play(4)
    party, news = table.parties[1], table.request().news
    words = news.masked_sum.to_numpy(np.uint64, 1)
    refuse(party, Round(2, Aggregate(2, news.members, news.masked_sum)), "total of round 1 must come")
    refuse(party, Round(2, Aggregate(1, b"\x01", news.masked_sum)), "at least 2 parties to be unmasked; got 1")
    refuse(party, Round(2, Aggregate(1, b"\xff", news.masked_sum)), "bitmap")
    refuse(party, Round(2, Aggregate(1, news.members, Array.of(words.astype(np.uint32)))), "must be uint64")
    refuse(party, Round(2, Aggregate(1, news.members, Array.of(np.repeat(words, 2)))), "shape")
    table.play(1)


def test_a_round_is_answered_once_however_often_it_is_asked():
    session = counting(3)
    table = Table(session).play(4)
    endpoint = PartyEndpoint(table.parties[1], number=1, codec=CODEC, session=SESSION)
    frames = [
        CODEC.encode(table.request(), session=SESSION, step=step, sender=0) for step in (4, 5)
    ]  # the same request as a retry and as a new step
    first = endpoint.receive(frames[0])
    assert endpoint.receive(frames[0]) == first
    with pytest.raises(RemoteProtocolError, match="must come next"):
        endpoint.receive(frames[1])


def test_a_party_whose_books_are_full_sends_nothing():
    session = Session(split(POINTS[2], 2))
    small = Accountant(Budget(epsilon=0.5, delta=1e-6))
    session.duties[0] = NoiseDuty(charger=small, sampler=RecordingSampler("p"))
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
    session.duties[0] = NoiseDuty(charger=books, sampler=sampler)
    table = Table(session).play(3)
    party, request = table.parties[1], table.request()
    before = (party._answered, party._thought, party._secrets)
    for _ in range(2):
        with pytest.raises(BudgetError, match="Nothing was released"):
            party.handle(request)
        assert (party._answered, party._thought, party._secrets) == before
    assert not books.spent().releases
    assert not sampler.drawn


@pytest.mark.parametrize("wrong_from", [0, 2, 5])
def test_parties_that_derive_different_questions_are_stopped_before_their_sum(wrong_from):
    """As on a processor that rounds otherwise: party 2's state differs in its last bit from some round on."""

    def other(settings, stream):
        asking = count_thrice(settings, stream)
        query, done = next(asking), 0
        while True:
            state = query.state + (b"\x01" if done >= wrong_from else b"")
            total = yield replace(query, state=state)
            done += 1
            try:
                query = asking.send(total)
            except StopIteration as stop:
                return stop.value

    session = counting(3)
    thinking = SharedThinking(guard=nullcontext(), pipeline=other)
    parties = [session.party(1), session.party(2, thinking=thinking), session.party(3)]
    with pytest.raises(DivergedError, match=r"3 parties derived 2, or .* Nothing of this round was added up"):
        session.run(parties)
    assert len(session.noise.drawn) == wrong_from
    assert all(len(party.released_totals) == wrong_from for party in parties)


@pytest.mark.parametrize("bad", ["short vector", "long vector", "other words", "short tag", "no vector"])
def test_a_coordinator_drops_a_party_that_answers_with_something_else(bad):
    table = Table(counting(3)).play(3)
    reply = table.parties[1].handle(table.request())
    words = reply.masked.to_numpy(np.uint64, 1)
    replies = {
        "short vector": MaskedUpdate(Array.of(words[:0]), reply.tag),
        "long vector": MaskedUpdate(Array.of(np.repeat(words, 2)), reply.tag),
        "other words": MaskedUpdate(Array.of(words.astype(np.uint32)), reply.tag),
        "short tag": MaskedUpdate(reply.masked, reply.tag[1:]),
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
