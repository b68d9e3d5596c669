"""Lead passes on, whatever processor the next leader has; there is one result, or none, and nobody outside can tell."""

from dataclasses import replace

import msgspec
import numpy as np
import pytest
from msgspec import structs

from cloister.aggregation.masked_sum import pack_members
from cloister.aggregation.messages import Answered
from cloister.aggregation.seed_agreement import Ready
from cloister.errors import DivergedError, RemoteProtocolError, TooFewPartiesError
from cloister.privacy.placement import Aggregator, Local
from cloister.privacy.units import Budget, Unit
from cloister.protocols.feddp.options import ExtraSteps
from cloister.protocols.feddp.pipeline import bind_server
from cloister.protocols.guided_sums.agreement import Agreement
from cloister.protocols.guided_sums.leader import is_close
from cloister.protocols.guided_sums.messages import Answer, Finish, Lead, Sign, Signed, make_codec
from cloister.protocols.guided_sums.query import Idle
from cloister.protocols.synopsis.pipeline import run_synopsis
from cloister.runtime import Fault, FaultKind
from cloister.wire import Array
from tests.protocols.feddp import sessions as feddp
from tests.protocols.guided_sums import lies
from tests.protocols.guided_sums.sessions import counted_names
from tests.protocols.synopsis.sessions import Session, counting
from tests.sessions import SESSION, Table, blobs, split

CODEC = make_codec("synopsis")
ADDRESS = {"session": SESSION, "step": 0, "sender": 1}
POINTS = {d: blobs(300, d, 3, seed=5) for d in (2, 7)}
ROUNDS = len(counting(3).settings.slots)
STEPS = counting(3).agreement.steps


def look(run):
    """All that the coordinator can see without a mask's key: who sent what, when, how long; who took part."""
    entries = [
        (entry.step, entry.sender, type(entry.message).__name__, len(CODEC.encode(entry.message, **ADDRESS)))
        for entry in run.views[0]
    ]
    return entries, run.result, run.steps, run.rejected


def findings_of(parties):
    """What each party found, None where it says that there is none."""
    found = []
    for party in parties:
        assert party.finished
        try:
            found.append((party.finding.centres.tobytes(), party.finding.sizes))
        except DivergedError:
            found.append(None)
    return found


def charged(session):
    return [[event.name for event in spent.releases] for spent in session.spent()]


def elsewhere(algorithm):
    """The algorithm on another processor: whatever it makes of a total is rounded otherwise."""

    def run(settings, stream):
        asking = algorithm(settings, stream)
        query = next(asking)
        while True:
            total = yield query
            try:
                query = asking.send(total * (1.0 + 2.0**-51))
            except StopIteration as stop:
                return stop.value

    return run


# --- another processor -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dimensions", [2, 7])
def test_parties_on_other_processors_end_with_the_leaders_result(dimensions):
    _, honest = Session(split(POINTS[dimensions], 3)).run()
    session = Session(split(POINTS[dimensions], 3))
    others = [session.party(n, algorithm=elsewhere(run_synopsis)) for n in (2, 3)]
    _, parties = session.run([session.party(1), *others])
    assert findings_of(parties) == findings_of(honest)


@pytest.mark.parametrize("kind", [FaultKind.CRASH, FaultKind.CRASH_AFTER, FaultKind.DROP_REPLY])
@pytest.mark.parametrize("dimensions", [2, 7])
def test_the_next_leader_follows_on_another_processor_from_wherever_it_must(dimensions, kind):
    steps, changed = Session(split(POINTS[dimensions], 4)).agreement.steps, 0
    for step in range(3, steps - (kind is not FaultKind.DROP_REPLY)):
        session = Session(split(POINTS[dimensions], 4))
        others = [session.party(n, algorithm=elsewhere(run_synopsis)) for n in (2, 3, 4)]
        run, parties = session.run([session.party(1), *others], faults=[Fault(kind, 1, step)])
        left = [party for party in parties if party.finished]
        assert len(left) >= 3
        found = findings_of(left)
        assert None not in found
        assert len(set(found)) == 1
        assert run.steps <= steps + 1
        changed += bool(parties[1].released_totals)
    assert changed >= steps // 2 - 2


@pytest.mark.parametrize(
    "options",
    [{}, {"options": ExtraSteps.algorithm_5(weight_min=0.1, sigma_max=1e-3)}, {"variant": "published"}, {"sample": 3}],
    ids=lambda options: ", ".join(options) or "tight",
)
def test_the_next_leader_follows_in_feddp(options):
    parts, server, _ = feddp.make_mixture()
    steps = feddp.Session(parts, server, **options).agreement.steps
    for step in range(3, steps - 2, 2):
        session = feddp.Session(parts, server, **options)
        others = [session.party(n, algorithm=elsewhere(bind_server(server))) for n in range(2, 7)]
        _, parties = session.run([session.party(1), *others], faults=[Fault(FaultKind.CRASH, 1, step)])
        found = findings_of([party for party in parties if party.finished])
        assert len(found) == 5
        assert len(set(found)) == 1
        assert None not in found


def other_algorithm(settings, stream):
    """Asks something else from the fourth round on."""
    asking = run_synopsis(settings, stream)
    query, done = next(asking), 0
    while True:
        total = yield query
        done += 1
        try:
            query = asking.send(total[::-1] if done == 3 else total)
        except StopIteration as stop:
            return stop.value


def test_who_computes_other_questions_is_passed_over():
    session = Session(split(POINTS[2], 4), budget=Budget(epsilon=50.0, delta=1e-6))
    parties = [session.party(1), session.party(2, algorithm=other_algorithm), session.party(3), session.party(4)]
    run, _ = session.run(parties, faults=[Fault(FaultKind.CRASH, 1, 11)])
    found = findings_of(parties[1:])
    assert found[0] is not None
    assert len(set(found)) == 1
    assert not parties[3].released_totals
    assert len(parties[2].released_totals) == len(session.settings.slots)
    assert run.steps == session.agreement.steps + 2


def test_if_nobody_can_follow_a_typed_error_says_so():
    session = Session(split(POINTS[2], 4), budget=Budget(epsilon=50.0, delta=1e-6))
    others = [session.party(n, algorithm=other_algorithm) for n in (2, 3, 4)]
    with pytest.raises(DivergedError, match="some party must be able to go on"):
        session.run([session.party(1), *others], faults=[Fault(FaultKind.CRASH, 1, 11)])
    assert all(spent.epsilon <= 50.0 for spent in session.spent())


def test_if_nobody_answers_there_are_too_few():
    with pytest.raises(TooFewPartiesError):
        counting(3).run(faults=[Fault(FaultKind.CRASH, n, 3) for n in (1, 2, 3)])


class Answering:
    """A party that answers one kind of request with something else."""

    def __init__(self, party, kind, change):
        self.party, self._kind, self._change = party, kind, change

    def handle(self, request):
        reply = self.party.handle(request)
        return self._change(reply) if isinstance(request, self._kind) else reply


OTHER_STATEMENTS = {
    "nothing": lambda stated: Ready(),
    "in another's name": lambda stated: structs.replace(stated, leader=2),
    "unsigned": lambda stated: structs.replace(stated, signature=bytes(64)),
    "of another length": lambda stated: structs.replace(stated, box=stated.box[1:]),
}


@pytest.mark.parametrize("stated", OTHER_STATEMENTS)
def test_a_leader_that_states_what_nobody_would_take_is_passed_over(stated):
    """Else all would refuse it, and the session would end."""
    session = counting(4)
    parties = [session.party(n) for n in (1, 2, 3, 4)]
    run, _ = session.run([Answering(parties[0], Lead, OTHER_STATEMENTS[stated]), *parties[1:]])
    assert all(len(members) == 4 for members in run.result.members)
    assert len(set(findings_of(parties))) == 1
    assert parties[1].released_totals
    assert not parties[0].released_totals


def test_a_leader_that_hands_over_what_another_has_stated_is_passed_over():
    """The second party's key and name, as it would be asked next."""
    session = counting(4)
    parties = [session.party(n) for n in (1, 2, 3, 4)]

    def hand_over(stated):
        round_, seed = parties[0]._led, parties[0]._introduction.masks.seed
        room = session.agreed.forms.lengths[round_ - 1]
        return lies.seal(round_, lies.encode(Idle()), room, seed=seed, leader=2, signer=2)

    session.run([Answering(parties[0], Lead, hand_over), *parties[1:]])
    assert findings_of(parties) != [None] * 4
    assert not parties[0].released_totals
    assert parties[1].released_totals


@pytest.mark.parametrize("signed", [lambda signed: Ready(), lambda signed: Signed(signed.signature[1:])])
def test_whoever_signs_with_something_else_is_not_in_the_result(signed):
    """Else nobody could read the list of signatures."""
    session = counting(3)
    parties = [session.party(n) for n in (1, 2, 3)]
    run, _ = session.run([*parties[:2], Answering(parties[2], Sign, signed)])
    assert run.result.members[-1] == (1, 2)
    assert None not in findings_of(parties[:2])
    assert not parties[2].finished
    parties = [session.party(n) for n in (1, 2, 3)]
    with pytest.raises(TooFewPartiesError):
        session.run([parties[0], *(Answering(party, Sign, signed) for party in parties[1:])])


def test_a_party_that_was_away_takes_links_of_the_right_length_only():
    """It cannot know which; what it answers then counts only with others at the same link."""
    table = Table(counting(3)).play(5)
    party, request = table.parties[3], None
    while not isinstance(request, Answer) or request.attempt.round < 3:  # it misses the second round
        for number, asked in table.coordinator.ask.requests.items():
            if number != 3:
                table.deliver(number, table.parties[number].handle(asked))
        table.coordinator.close_step()
        request = table.coordinator.ask.requests.get(3)
    for link in (b"", request.link[1:], request.link + b"\0"):
        with pytest.raises(RemoteProtocolError, match="must be those that party 3 answered"):
            party.handle(structs.replace(request, link=link))
    party.handle(request)
    assert party._answered == 3


def test_a_leader_that_was_thought_silent_can_still_answer_and_lead_again():
    """Its question was lost; the next one's stands, and it reads that as any other."""
    session = counting(4)
    faults = [Fault(FaultKind.DROP_REPLY, 1, 5), *(Fault(FaultKind.DROP_REPLY, n, 6 + n) for n in (2, 3, 4))]
    run, parties = session.run(faults=faults)
    assert all(party.finished for party in parties)
    assert all(len(members) == 4 for members in run.result.members)
    assert len(set(findings_of(parties))) == 1
    assert len(parties[0].released_totals) > 2


def test_close_is_a_billionth():
    session = Session(split(POINTS[2], 3), budget=Budget(epsilon=50.0, delta=1e-6))
    queries = []

    def kept(settings, stream):
        asking = run_synopsis(settings, stream)
        query = next(asking)
        while True:
            queries.append(query)
            try:
                query = asking.send((yield query))
            except StopIteration as stop:
                return stop.value

    session.run([session.party(1, algorithm=kept), session.party(2), session.party(3)])
    question = queries[-2].question
    moved = {step: structs.replace(question, centres=nudge(question.centres, step)) for step in (1e-13, 1e-7)}
    assert is_close(question, moved[1e-13])
    assert not is_close(question, moved[1e-7])
    assert is_close(question, structs.replace(question, share=question.share + 1))  # shares are computed from doubles
    assert not is_close(question, structs.replace(question, share=question.share + question.share // 10**6))
    histogram = next(query.question for query in queries if query.name == "histogram")
    assert not is_close(histogram, structs.replace(histogram, bins=nudge_bins(histogram.bins)))
    assert not is_close(question, queries[0].question)
    assert not is_close(question, structs.replace(question, centres=Array.of(np.zeros((1, 2)))))


def nudge(array, step):
    return Array.of(np.frombuffer(array.data).reshape(array.shape) + step)


def nudge_bins(array):
    return Array.of(np.frombuffer(array.data, np.int64) + 1)


def test_the_next_leader_follows_where_shares_follow_from_what_was_released():
    """With many records the split of the budget depends on their noisy number: its last digits on the processor."""
    points = blobs(4000, 7, 3, seed=5)
    for step in (5, 9, 13):
        session = Session(split(points, 4), budget=Budget(epsilon=8.0, delta=1e-6))
        others = [session.party(n, algorithm=elsewhere(run_synopsis)) for n in (2, 3, 4)]
        _, parties = session.run([session.party(1), *others], faults=[Fault(FaultKind.CRASH, 1, step)])
        found = findings_of(parties[1:])
        assert None not in found
        assert len(set(found)) == 1
        assert parties[1].released_totals


# --- who is lied to --------------------------------------------------------------------------------------------------


class Misled:
    """A party that is told something else than the coordinator says."""

    def __init__(self, party, change):
        self.party, self._change = party, change

    def handle(self, request):
        return self.party.handle(self._change(request))


def mislead_leader(round_, change):
    def mislead(request):
        if not isinstance(request, Lead) or request.round != round_ + 1:
            return request
        past = request.news[-1]
        return structs.replace(request, news=(*request.news[:-1], structs.replace(past, total=change(past.total))))

    return mislead


def change_word(place, dtype=np.uint64):
    def change(total):
        words = np.frombuffer(total.body, dtype).copy()
        words[place] += dtype(1)
        return structs.replace(total, body=words.tobytes())

    return change


def leave_out(total):
    return structs.replace(total, attempt=structs.replace(total.attempt, members=pack_members((1, 2), 3)))


@pytest.mark.parametrize("placement", [Aggregator(), Local(parties=3)], ids=lambda p: type(p).__name__)
@pytest.mark.parametrize("change", [change_word(-1), change_word(-2), leave_out], ids=["word", "words", "members"])
@pytest.mark.parametrize("round_", [1, 3, ROUNDS])
def test_a_sum_of_other_answers_ends_without_a_result_and_looks_like_any_session(round_, change, placement):
    session = counting(3, placement=placement)
    parties = [session.party(n) for n in (1, 2, 3)]
    roles = [Misled(parties[0], mislead_leader(round_, change)), *parties[1:]]
    run, _ = session.run(roles, record_views=True)
    assert look(run) == look(counting(3, placement=placement).run(record_views=True)[0])
    assert findings_of(parties) == [None] * 3
    with pytest.raises(DivergedError, match="paid for, and there is no result"):
        _ = parties[1].centres
    names = [slot.name for slot in session.settings.slots[:round_]]
    assert charged(session) == [[name for name in counted_names(session.settings) if name in names]] * 3
    lengths = [slot.length for slot in session.settings.slots]
    assert [len(noise) for noise in session.added_noise()] == lengths  # noise goes on to the end


def test_check_words_of_32_bits_are_compared_as_well():
    budget = Budget(epsilon=1000.0, delta=1e-6, unit=Unit.CLIENT)
    _, parties = Session(split(POINTS[2], 3), budget=budget).run()
    assert None not in findings_of(parties)
    for place in (-4, -1):
        session = Session(split(POINTS[2], 3), budget=budget)
        assert session.agreement.ring.bits == 32
        parties = [session.party(n) for n in (1, 2, 3)]
        session.run([Misled(parties[0], mislead_leader(3, change_word(place, np.uint32))), *parties[1:]])
        assert findings_of(parties) == [None] * 3


def test_two_questions_in_one_round_leave_all_without_a_result():
    """Each is proper by itself; the check words differ, and the leader sees it."""
    session = counting(3)
    table = Table(session).play(3)
    second = table.parties[2].handle(table.request())  # a lying coordinator has another party lead, too
    table.play(1)
    for number, request in table.coordinator.ask.requests.items():
        told = structs.replace(request, stated=second) if number == 3 else request
        table.deliver(number, table.parties[number].handle(told))
    table.coordinator.close_step()
    while not table.coordinator.finished:  # and goes on telling each what it wants to hear
        for number, request in table.coordinator.ask.requests.items():
            party = table.parties[number]
            told = structs.replace(request, link=party._link) if hasattr(request, "link") else request
            table.deliver(number, party.handle(told))
        table.coordinator.close_step()
    assert findings_of(table.parties.values()) == [None] * 3
    assert charged(session) == [["number of records"]] * 3


def test_a_result_needs_a_quorum_of_signatures_on_it(monkeypatch):
    def finish_with(keep, change=None):
        session = counting(3)
        table = Table(session).play(STEPS - 1)
        (request,) = {id(request): request for request in table.coordinator.ask.requests.values()}.values()
        assert isinstance(request, Finish)
        signatures = [request.signatures[64 * place : 64 * place + 64] for place in range(3)]
        if change is not None:
            signatures = change(signatures)
        kept = [number for number in (1, 2, 3) if number in keep]
        finish = Finish(pack_members(kept, 3), b"".join(signatures[number - 1] for number in kept))
        for party in table.parties.values():
            party.handle(finish)
        return findings_of(table.parties.values())

    assert None not in finish_with((1, 2, 3))
    assert None not in finish_with((2, 3))
    assert finish_with((1,)) == [None] * 3
    assert finish_with((1, 2, 3), lambda s: [s[0], s[0], s[0]]) == [None] * 3
    assert finish_with((1, 2, 3), lambda s: [s[0], bytes(64), bytes([s[2][0] ^ 1]) + s[2][1:]]) == [None] * 3
    monkeypatch.setattr(Agreement, "quorum_of", lambda self, round_: 1)  # mutant: a minority's result
    assert None not in finish_with((1,))


# --- answers that are changed on their way -------------------------------------------------------------------------


class Garbled:
    """A party one of whose answers is changed on its way."""

    def __init__(self, party, round_, place):
        self.party, self._left, self._place = party, round_, place

    def handle(self, request):
        reply = self.party.handle(request)
        if isinstance(reply, Answered):
            self._left -= 1
            if self._left == 0:
                words = np.frombuffer(reply.vector, np.uint64).copy()
                words[self._place] += np.uint64(1000)
                reply = Answered(words.tobytes())
        return reply


@pytest.mark.parametrize("round_", [1, 3, ROUNDS])
def test_an_answer_whose_check_words_are_changed_leaves_all_without_a_result(round_):
    session = counting(3)
    parties = [session.party(n) for n in (1, 2, 3)]
    run, _ = session.run([parties[0], Garbled(parties[1], round_, -1), parties[2]], record_views=True)
    assert look(run) == look(counting(3).run(record_views=True)[0])
    assert findings_of(parties) == [None] * 3


def test_an_answer_whose_numbers_are_changed_spoils_the_total_for_all_alike():
    """A coordinator may add what it likes, noise or not; but nobody finds another result than the others."""
    session = counting(3)
    parties = [session.party(n) for n in (1, 2, 3)]
    session.run([parties[0], Garbled(parties[1], 3, 0), parties[2]])
    assert [party.finding.sizes.clusters for party in parties] == [(111.0, 1111.0, 111.0)] * 3


def test_a_message_is_what_it_was_before():
    """Every message survives the wire."""
    table = Table(counting(3)).play(5)
    lead = table.request()
    assert isinstance(lead, Lead)
    assert table.codec.request(msgspec.Raw(msgspec.msgpack.encode(lead))) == lead
    assert replace(table.session.agreement, members_min=3).quorum_of(1) == 3
