"""Parties that do not compute the same, or are not told the same: no two findings, and nothing to see from outside."""

from dataclasses import replace

import msgspec
import numpy as np
import pytest

from cloister.aggregation import pack_members
from cloister.errors import DivergedError
from cloister.privacy.placement import Aggregator, Local
from cloister.privacy.units import Budget, Unit
from cloister.protocols.guided_sums.messages import MaskedUpdate, make_codec
from cloister.protocols.synopsis import run_synopsis
from cloister.wire import Array
from tests.protocols.guided_sums.sessions import COUNTED, count_thrice, counting_rounds
from tests.protocols.synopsis.sessions import Session, counting
from tests.sessions import SESSION, blobs, split

CODEC = make_codec("synopsis")
ADDRESS = {"session": SESSION, "step": 0, "sender": 1}
POINTS = {d: blobs(300, d, 3, seed=5) for d in (2, 7)}
ROUNDS = len(counting(3).settings.slots)
PLACEMENTS = [Aggregator(), Local(parties=3)]


def look(run):
    """All that the coordinator can see without a mask's key: who sent what, when, how long; who took part."""
    entries = [
        (entry.step, entry.sender, type(entry.message).__name__, len(CODEC.encode(entry.message, **ADDRESS)))
        for entry in run.views[0]
    ]
    return entries, run.result, run.steps, run.rejected


def findings_of(parties):
    """What each party found, None where it says that they diverged; all have come to the end."""
    found = []
    for party in parties:
        assert party.finished
        try:
            found.append(party.finding.to_bytes())
        except DivergedError:
            found.append(None)
    return found


def charged_rounds(session):
    """The rounds that each party's books paid for, from 0."""
    return [[int(event.name.split()[1]) for event in spent.releases] for spent in session.spent()]


def rounding_otherwise(wrong_from):
    """The algorithm on a processor that rounds otherwise from some round on; after the last: what is found differs."""

    def other(settings, stream):
        asking = count_thrice(settings, stream)
        query, done = next(asking), 0
        while True:
            total = yield replace(query, state=query.state + (b"\x01" if done >= wrong_from else b""))
            done += 1
            try:
                query = asking.send(total)
            except StopIteration as stop:
                return replace(stop.value, centres=np.nextafter(stop.value.centres, 2.0))

    return other


@pytest.mark.parametrize("placement", PLACEMENTS, ids=lambda placement: type(placement).__name__)
@pytest.mark.parametrize("odd", [1, 2, 3])
@pytest.mark.parametrize("wrong_from", [0, 1, 2, ROUNDS - 1, ROUNDS])
def test_parties_that_derive_different_questions_end_without_a_result(wrong_from, odd, placement):
    session = counting(3, placement=placement)
    other = rounding_otherwise(wrong_from)
    parties = [session.party(n, algorithm=other if n == odd else None) for n in (1, 2, 3)]
    run, _ = session.run(parties, record_views=True)
    assert look(run) == look(counting(3, placement=placement).run(record_views=True)[0])
    assert run.steps == session.agreement.steps
    assert findings_of(parties) == [None] * 3
    with pytest.raises(DivergedError, match=r"paid for; there is no result\. Run the same version"):
        _ = parties[0].centres
    # The round in which they differ is paid for, as its sum was released; it is not read, and no later round is paid.
    paid = [number for number in counting_rounds(session.settings) if number <= wrong_from]
    assert charged_rounds(session) == [paid] * 3
    assert all(len(party.released_totals) == wrong_from for party in parties)
    # Noise goes on to the end, needed or not.
    lengths = [slot.length for slot in session.settings.slots]
    assert [len(noise) for noise in session.added_noise()] == lengths


def test_all_parties_different_is_no_agreement_either():
    session = counting(3)
    parties = [session.party(n, algorithm=rounding_otherwise(n)) for n in (1, 2, 3)]
    session.run(parties)
    assert findings_of(parties) == [None] * 3


def test_a_last_bit_of_a_moment_is_enough_in_the_real_algorithm():
    """Party 2 computes other axes from the same totals, and would measure a histogram of its own."""

    def other(settings, stream):
        asking = run_synopsis(settings, stream)
        query = next(asking)
        while True:
            total = yield query
            if "moments" in query.name:
                total = total + 1
            try:
                query = asking.send(total)
            except StopIteration as stop:
                return stop.value

    session = Session(split(POINTS[7], 3), budget=Budget(epsilon=8.0, delta=1e-6))
    parties = [session.party(1), session.party(2, algorithm=other), session.party(3)]
    run, _ = session.run(parties, record_views=True)
    honest = Session(split(POINTS[7], 3), budget=Budget(epsilon=8.0, delta=1e-6))
    assert look(run) == look(honest.run(record_views=True)[0])
    assert findings_of(parties) == [None] * 3
    names = [[event.name for event in spent.releases] for spent in session.spent()]
    assert names[0] == names[1] == names[2]
    assert any("moments" in name for name in names[0])
    assert len(names[0]) < len(honest.spent()[0].releases)


# --- sums that are changed for one party ---------------------------------------------------------------------------


class Misled:
    """A party that is told another sum of one round than the others."""

    def __init__(self, party, round_, change):
        self.party, self._round, self._change = party, round_, change

    def handle(self, request):
        news = getattr(request, "news", None)
        if news is not None and news.round == self._round:
            request = msgspec.structs.replace(request, news=self._change(news))
        return self.party.handle(request)


def change_word(place, dtype=np.uint64):
    def change(news):
        words = np.frombuffer(news.masked_sum.data, dtype).copy()
        words[place] += dtype(1)
        return msgspec.structs.replace(news, masked_sum=Array.of(words))

    return change


def leave_out(news):
    return msgspec.structs.replace(news, members=pack_members((1, 2), 3))


def mislead(session, victim, round_, change):
    """Run a session in which one party is misled; it looks honest from outside."""
    parties = [session.party(n) for n in (1, 2, 3)]
    roles = [Misled(party, round_, change) if n == victim else party for n, party in enumerate(parties, start=1)]
    run, _ = session.run(roles, record_views=True)
    assert run.steps == session.agreement.steps
    assert not run.rejected
    return run, parties


PLACES = {"first number": 0, "last number": -3, "check word": -2, "last check word": -1}


CHANGES = [
    (round_, what)
    for round_ in range(1, ROUNDS + 2)
    for what in (*PLACES, "other members")
    if round_ <= ROUNDS or "number" not in what  # the last sum holds check words only
]


@pytest.mark.parametrize(("round_", "what"), CHANGES)
def test_a_sum_that_is_changed_for_one_party_never_leads_to_two_findings(round_, what):
    """Count_thrice uses at most the first number of a slot: the others are unused, and changed all the same."""
    honest_run, honest = counting(3).run(record_views=True)
    for victim in (1, 3):
        session = counting(3)
        change = leave_out if what == "other members" else change_word(PLACES[what])
        run, parties = mislead(session, victim, round_, change)
        assert look(run) == look(honest_run)
        found = findings_of(parties)
        if round_ <= ROUNDS:
            assert found == [None] * 3
        else:  # nothing comes after it in which the others could be told
            expected = [honest[0].finding.to_bytes()] * 3
            expected[victim - 1] = None
            assert found == expected
        # Who is misled notices wrong check words at once, and a wrong number as the others do: a round later.
        for number, paid in enumerate(charged_rounds(session), start=1):
            seen = round_ if number == victim and "number" not in what else round_ + 1
            assert paid == [t for t in counting_rounds(session.settings) if t < seen]


@pytest.mark.parametrize("dimensions", [2, 7])
def test_a_changed_sum_never_leads_to_two_findings_of_the_real_algorithm(dimensions):
    _, honest = Session(split(POINTS[dimensions], 3)).run()
    rng = np.random.default_rng(4)
    agreement = Session(split(POINTS[dimensions], 3)).agreement
    for round_ in range(1, len(agreement.slots) + 2):
        session = Session(split(POINTS[dimensions], 3))
        place = int(rng.integers(agreement.length_of(round_)))
        _, parties = mislead(session, 2, round_, change_word(place))
        found = findings_of(parties)
        last = round_ > len(agreement.slots)
        assert found == ([honest[0].finding.to_bytes(), None, honest[0].finding.to_bytes()] if last else [None] * 3)
        assert all(spent.epsilon <= session.settings.budget.epsilon for spent in session.spent())


def test_check_words_of_32_bits_are_compared_as_well():
    budget = Budget(epsilon=1000.0, delta=1e-6, unit=Unit.CLIENT)
    options = {"budget": budget, "algorithm": count_thrice}
    _, parties = Session(COUNTED[:3], **options).run()
    assert None not in findings_of(parties)
    for place in (0, -5, -4, -1):
        session = Session(COUNTED[:3], **options)
        assert session.agreement.ring.bits == 32
        _, parties = mislead(session, 2, 3, change_word(place, np.uint32))
        assert findings_of(parties) == [None] * 3


# --- answers that are changed on their way -------------------------------------------------------------------------


class Garbled:
    """A party one of whose answers is changed on its way."""

    def __init__(self, party, round_, place):
        self.party, self._left, self._place = party, round_, place

    def handle(self, request):
        reply = self.party.handle(request)
        if isinstance(reply, MaskedUpdate):
            self._left -= 1
            if self._left == 0:
                words = np.frombuffer(reply.masked.data, np.uint64).copy()
                words[self._place] += np.uint64(1000)
                reply = MaskedUpdate(Array.of(words))
        return reply


@pytest.mark.parametrize("round_", [1, 3, ROUNDS, ROUNDS + 1])
def test_an_answer_whose_check_words_are_changed_leaves_all_without_a_result(round_):
    session = counting(3)
    parties = [session.party(n) for n in (1, 2, 3)]
    run, _ = session.run([parties[0], Garbled(parties[1], round_, -1), parties[2]], record_views=True)
    assert look(run) == look(counting(3).run(record_views=True)[0])
    assert findings_of(parties) == [None] * 3
    assert charged_rounds(session) == [[t for t in counting_rounds(session.settings) if t < round_]] * 3


def test_an_answer_whose_numbers_are_changed_spoils_the_total_for_all_alike():
    """A coordinator may add what it likes, noise or not; but nobody finds another result than the others."""
    session = counting(3)
    parties = [session.party(n) for n in (1, 2, 3)]
    session.run([parties[0], Garbled(parties[1], 3, 0), parties[2]])
    assert [party.finding.weights.tolist() for party in parties] == [[111.0, 1111.0, 111.0]] * 3
