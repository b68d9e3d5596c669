"""A coordinator that colludes with a party, in real sessions of guided sums: what it can read of another party.

The coordinator splits the first round's sum: party 2 answers, is called silent, and the others are asked again without
it. The coalition pools all frames, and the seed and the pair secrets of party 4.
"""

import itertools
from functools import partial

import numpy as np
import pytest
from msgspec import structs

from cloister.aggregation import double_masks, least_quorum
from cloister.aggregation.messages import Answered, OpenTotal
from cloister.aggregation.statements import state_attempt
from cloister.errors import RemoteProtocolError, TooFewPartiesError
from cloister.privacy.placement import Shared
from cloister.protocols.guided_sums.messages import Lead
from cloister.protocols.guided_sums.statements import next_link, place_of
from cloister.runtime import Fault, FaultKind
from tests.protocols.synopsis.sessions import counting
from tests.sessions import SESSION, Table

HELD = 10  # party 2 holds so many records, party l holds 10^(l - 1)
SHARED = Shared(parties=4, colluding_max=1, quorum=3)


def play_split(masks):
    """Party 2's first answer, and what party 4 knows; noise is left out, so that what is read can be recognised."""
    session = counting(4, placement=SHARED, members_min=3, masks=masks)
    table = Table(session).play(4 if masks == "common" else 5)  # up to the first question
    requests = table.coordinator.ask.requests
    answers = {number: table.parties[number].handle(request) for number, request in requests.items()}
    for number in (1, 3, 4):
        table.deliver(number, answers[number])
    table.coordinator.close_step()
    return session, table, requests[2], answers


def as_party_4(party, request, answer):
    """What the coalition has of party 2's first number after taking off all that party 4 can compute."""
    masks = party._introduction.masks
    words = np.frombuffer(answer.vector, np.uint64).copy()
    if hasattr(masks, "_schedule"):
        return (words - masks._schedule.mask_of(1, 2, len(words)))[:1]
    place = place_of(next_link(request.link, 1, request.stated))
    statement = state_attempt(SESSION, place, request.attempt)
    return (words - masks._pads._keystream(2, len(words), statement))[:1]


def test_with_common_masks_it_reads_a_party_under_its_own_share_of_the_noise():
    _, table, request, answers = play_split("common")
    assert table.session.agreement.ring.bits == 64
    read = int(as_party_4(table.parties[4], request, answers[2])[0])
    assert read % HELD == 0  # the count times the size of a vote: exact
    assert 0 < read < 2**40


def test_with_double_masks_it_reads_nothing_of_a_party_that_was_called_silent():
    session, table, request, answers = play_split("double")
    first = as_party_4(table.parties[4], request, answers[2])
    assert int(first[0]) >= 2**40  # a uniform word is smaller with a chance of 2^-24; seeded
    # It gets no opening of the attempt that was given up: neither from party 2 nor from those who answered again.
    again = table.coordinator.ask.requests
    assert sorted(again) == [1, 3, 4]
    for number, later in again.items():
        assert isinstance(table.parties[number].handle(later), Answered)
    given_up = OpenTotal(request.attempt, bytes(32))
    for number in (1, 3):
        with pytest.raises(RemoteProtocolError, match="out of turn"):
            table.parties[number].handle(given_up)
    # Party 2 may open it: its own mask alone leaves the pads with parties 1 and 3.
    opened = table.parties[2].handle(given_up)
    masks = table.parties[4]._introduction.masks
    key = double_masks.open_keyed(opened.box, masks.seed, *masks.context("opening", request.attempt, 2, bytes(32)))
    ring = session.agreement.ring
    length = len(answers[2].vector) // 8
    unmasked = first - double_masks.expand_mask(key, length, ring)[:1]
    assert int(unmasked[0]) >= 2**40


def test_without_own_masks_and_pads_the_same_frames_would_give_it_away(monkeypatch):
    """The mutant: what is left of an answer under pads with the coalition only is the vector itself."""
    monkeypatch.setattr(double_masks, "expand_mask", lambda key, length, ring: np.zeros(length, ring.dtype))
    real = double_masks.PairwisePads.pad

    def pad_with_party_4(self, members, length, statement):
        return real(self, [n for n in members if n in (self._number, 4)], length, statement)

    monkeypatch.setattr(double_masks.PairwisePads, "pad", pad_with_party_4)
    _, table, request, answers = play_split("double")
    read = int(as_party_4(table.parties[4], request, answers[2])[0])
    assert read % HELD == 0
    assert 0 < read < 2**40


# --- two leaders at once ----------------------------------------------------------------------------------------------


def strip(table, party, request, answer):
    """An answer to this request without all that the coalition knows: the opened mask, and pads with party 4."""
    masks = table.parties[4]._introduction.masks
    opened = table.parties[party].handle(OpenTotal(request.attempt, bytes(32)))
    key = double_masks.open_keyed(opened.box, masks.seed, *masks.context("opening", request.attempt, party, bytes(32)))
    place = place_of(next_link(request.link, 1, request.stated))
    words = np.frombuffer(answer.vector, np.uint64)
    statement = state_attempt(SESSION, place, request.attempt)
    mask = double_masks.expand_mask(key, len(words), table.session.agreement.ring)
    return int((words - mask - masks._pads._keystream(party, len(words), statement))[0])


def answer_two_leaders():
    """Party 1 has stated a question and is called silent; party 2 states another; some are asked one, some the other.

    Party 4 colludes. All that answered open what they answered.
    """
    session = counting(4, placement=SHARED, members_min=3)
    table = Table(session).play(4)
    lead = table.request(1)
    second = table.parties[2].handle(lead)
    table.play(1)
    first = table.request(1)
    assert (first.stated.leader, second.leader) == (1, 2)
    told = {1: first, 2: first, 3: structs.replace(first, stated=second), 4: first}
    answers = {number: table.parties[number].handle(request) for number, request in told.items()}
    for number, other in ((1, second), (3, first.stated)):  # who has answered one refuses the other, in any attempt
        for attempt in (first.attempt, structs.replace(first.attempt, number=2)):
            with pytest.raises(RemoteProtocolError, match=r"must be later than|must ask the same question"):
                table.parties[number].handle(structs.replace(told[number], stated=other, attempt=attempt))
    return session, table, {n: strip(table, n, told[n], answers[n]) for n in (1, 2, 3)}


def test_two_leaders_in_one_round_get_two_questions_paid_for_once_and_no_sum():
    session, _, left = answer_two_leaders()
    for taken in itertools.product((-1, 0, 1), repeat=3):
        if any(taken):
            read = sum(sign * left[number] for number, sign in zip((1, 2, 3), taken, strict=True)) % 2**64
            assert min(read, 2**64 - read) >= 2**40  # pads with who was asked the other question are left
    for spent in session.spent():
        assert [event.name for event in spent.releases] == ["number of records"]


def test_were_questions_not_in_statements_the_two_halves_would_add_up(monkeypatch):
    """The mutant: one sum of answers to two questions."""
    real = state_attempt

    def forget(session, place, attempt):
        return real(session, place_of(b""), attempt)

    monkeypatch.setattr(double_masks, "state_attempt", forget)
    monkeypatch.setattr("tests.protocols.guided_sums.test_coalition.state_attempt", forget)
    _, _, left = answer_two_leaders()
    read = sum(left.values()) % 2**64
    assert min(read, 2**64 - read) < 2**40


# --- a leader that is told another sum --------------------------------------------------------------------------------


def test_a_leader_reads_no_total_but_the_one_that_was_opened():
    """Whatever is changed in it: the leader refuses, and asks nothing more of anybody."""
    session = counting(4, placement=SHARED, members_min=3)
    table = Table(session).play(7)
    request = table.request(1)
    assert isinstance(request, Lead)
    (past,) = request.news
    body = bytes([past.total.body[0] ^ 1]) + past.total.body[1:]
    changes = {"body": body, "openings": past.total.openings[:-1], "restored": past.total.openings[:1]}
    leader = table.parties[1]
    for field, value in changes.items():
        changed = structs.replace(past.total, **{field: value})
        with pytest.raises(RemoteProtocolError):
            leader.handle(Lead(2, (structs.replace(past, total=changed),)))
        assert leader.released_totals == ()
    leader.handle(request)
    assert len(leader.released_totals) == 1


# --- leaving ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [FaultKind.CRASH, FaultKind.CRASH_AFTER, FaultKind.DROP_REPLY])
def test_one_party_may_leave_at_any_step_the_leader_too(kind):
    """Q = 3 of 4: its mask is restored, or the others answer without it; counts are of those in each sum."""
    make = partial(counting, 4, placement=SHARED, members_min=3)
    steps = make().agreement.steps
    for gone in (1, 3):
        for step in range(4, steps):
            session = make()
            run, parties = session.run(faults=[Fault(kind, gone, step)])
            history = run.result.members
            expected = [float(sum(10 ** (m - 1) for m in history[number])) for number in (0, 2, len(history) - 2)]
            found = [party for number, party in enumerate(parties, start=1) if number != gone]
            assert all(party.finished and list(party.finding.sizes.clusters) == expected for party in found)
            names = [[event.name for event in spent.releases] for spent in session.spent()]
            assert all(len(set(own)) == len(own) for own in names)


def test_with_too_few_to_open_nothing_is_read_and_everything_stays_paid():
    assert least_quorum(4, 1) == 3
    session = counting(4, placement=SHARED, members_min=3)
    faults = [Fault(FaultKind.CRASH, gone, 6) for gone in (2, 3)]
    with pytest.raises(TooFewPartiesError, match="to open a sum that another has left"):
        session.run(faults=faults)
    assert all(len(spent.releases) == 1 for spent in session.spent())
