"""Parties vanish, frames are lost, repeated, reordered or damaged: a session ends rightly or not at all."""

import numpy as np
import pytest

from cloister.errors import RemoteProtocolError, TooFewPartiesError
from cloister.protocols.vertical import computing, coordinator, holder
from cloister.protocols.vertical.messages import Done, Letter, Post, Turn
from cloister.runtime import Fault, FaultKind
from tests.protocols.vertical.sessions import TINY, Session, list_steps, same_finding
from tests.protocols.vertical.tables import mixture
from tests.sessions import Table as Play

TABLE = mixture(60, 2, 2, seed=5)
MODELS = {
    "two-party": {},
    "server-aided": {"columns": ((0,), (), (1,)), "model": "server-aided", "key_holder": 2},
    "collective": {"columns": ((0,), (1,), ()), "model": "collective"},
    "threshold": {"columns": ((0,), (1,), (), ()), "model": "collective", "threshold": 2},
}


def make(model, **options):
    return Session(TABLE, **{**MODELS[model], **TINY, **options})


def total_steps(session, party):
    """Every step in which a party has a turn, the opening ones included."""
    return [0, 1 if party == 1 else 2, 3, *list_steps(session.agreement, party)]


@pytest.mark.parametrize("kind", [FaultKind.DROP_REQUEST, FaultKind.DROP_REPLY, FaultKind.CRASH], ids=lambda k: k.name)
@pytest.mark.parametrize("model", ["two-party", "server-aided", "collective"])
def test_a_party_that_is_missed_in_any_step_ends_the_session(model, kind):
    for party in make(model).numbers:
        for step in total_steps(make(model), party):
            with pytest.raises(TooFewPartiesError):
                make(model).run(faults=[Fault(kind, party, step)])


@pytest.mark.parametrize("model", ["two-party", "server-aided", "collective"])
def test_a_relay_must_not_leave_out_a_turn_of_ours(model):
    """What a party would have checked and paid for there, it must not be made to skip."""
    for number in make(model).numbers:
        session = make(model)
        table = Play(session)
        first = list_steps(session.agreement, number)[0]
        due = table.play(first).request(number)
        schedule = session.agreement.schedule
        own = [stage for stage, what in enumerate(schedule) if number in what.members]
        later = own[own.index(due.stage) + 1]
        party = table.parties[number]
        with pytest.raises(RemoteProtocolError, match="none of ours left out"):
            party.handle(Turn(later, tuple(schedule[later].members), (), ()))
        assert party.handle(due)


def test_with_a_threshold_only_absent_key_holders_are_missed_without_harm():
    expected = make("threshold", budget=None).run().alice.centres
    for party in (1, 2, 3):
        session = make("threshold")
        may_miss = list_steps(session.agreement, party, "attend", "close")
        for step in total_steps(session, party):
            exact = make("threshold", budget=None)
            if step in may_miss:
                completed = exact.run(faults=[Fault(FaultKind.DROP_REQUEST, party, step)])
                assert np.array_equal(completed.alice.centres, expected)
            else:
                with pytest.raises(TooFewPartiesError):
                    exact.run(faults=[Fault(FaultKind.DROP_REQUEST, party, step)])


@pytest.mark.parametrize("kind", [FaultKind.DROP_REQUEST, FaultKind.DROP_REPLY], ids=lambda kind: kind.name)
@pytest.mark.parametrize("party", [2, 3, 4])
@pytest.mark.parametrize("exact", [True, False])
def test_a_key_holder_may_be_absent_in_any_round_and_come_back(party, kind, exact):
    """Others decrypt; what it missed it is given later, its key shares among it; in the end it has the same result."""
    options = {"budget": None} if exact else {}
    attend = list_steps(make("threshold").agreement, party, "attend")
    for missed in ([attend[0]], [attend[1]]):
        session = make("threshold", **options)
        completed = session.run(faults=[Fault(kind, party, step) for step in missed])
        decryptors = completed.run.result.decryptors
        absent = [attend.index(step) for step in missed]
        for i, members in enumerate(decryptors):
            assert len(members) == 2
            assert not (i in absent and party in members)
        rehearsal = completed.rehearse()
        for member in completed.parties:
            assert member.finished
            assert same_finding(member.finding, rehearsal.finding)
        if not exact:
            for number in (2, 3, 4):
                names = [release.name for release in session.releases(number) if release.name.startswith("Lloyd")]
                assert len(names) == 2 * sum(number in members for members in decryptors)


def test_a_holder_that_was_absent_first_decrypts_later():
    """Party 3 misses the first round, party 4 the second: each must have its point of the key when it is needed."""
    session = make("threshold", budget=None)
    first, second = list_steps(session.agreement, 3, "attend")
    faults = [Fault(FaultKind.DROP_REQUEST, 3, first), Fault(FaultKind.DROP_REQUEST, 4, second)]
    completed = session.run(faults=faults)
    assert completed.run.result.decryptors == ((2, 4), (2, 3))
    assert np.array_equal(completed.alice.centres, make("threshold", budget=None).run().alice.centres)


def test_too_few_key_holders_end_the_session():
    session = make("threshold")
    step = list_steps(session.agreement, 3, "attend")[0]
    with pytest.raises(TooFewPartiesError, match="at least 2 of 3 key holders must be present to decrypt; got 1"):
        session.run(faults=[Fault(FaultKind.CRASH, party, step) for party in (3, 4)])


def test_a_key_holder_that_is_gone_for_good_does_not_have_the_result_and_the_others_do():
    session = make("threshold", budget=None)
    step = list_steps(session.agreement, 4, "attend")[0]
    completed = session.run(faults=[Fault(FaultKind.CRASH, 4, step)])
    assert [party.finished for party in completed.parties] == [True, True, True, False]


@pytest.mark.parametrize("model", ["two-party", "threshold"])
@pytest.mark.parametrize(
    "kind", [FaultKind.DUPLICATE_REQUEST, FaultKind.DUPLICATE_REPLY, FaultKind.REORDER], ids=lambda kind: kind.name
)
def test_repeated_and_reordered_frames_change_nothing(model, kind):
    expected = make(model).run()
    session = make(model)
    faults = [Fault(kind, party, step) for party in session.numbers for step in total_steps(session, party)]
    completed = session.run(faults=faults)
    assert np.array_equal(completed.alice.centres, expected.alice.centres)
    for number in session.numbers:
        assert session.releases(number) == expected.session.releases(number)


@pytest.mark.parametrize("model", ["two-party", "threshold"])
@pytest.mark.parametrize("kind", [FaultKind.CORRUPT_REQUEST, FaultKind.CORRUPT_REPLY], ids=lambda kind: kind.name)
def test_a_flipped_bit_is_noticed(model, kind):
    """The session ends, or goes on without a holder that may be absent: never with another result."""
    expected = make(model, budget=None).run().alice.centres
    ended = 0
    for party in make(model).numbers:
        for step in total_steps(make(model), party):
            try:
                completed = make(model, budget=None).run(faults=[Fault(kind, party, step)])
            except TooFewPartiesError:
                ended += 1
            else:
                assert np.array_equal(completed.alice.centres, expected)
    assert ended > 10


class Changed:
    """A party whose requests pass through a function first: a relay that leaves the protocol."""

    def __init__(self, party, change):
        self._party, self._change = party, change
        self.refusals = []

    def __getattr__(self, name):
        return getattr(self._party, name)

    def handle(self, request):
        try:
            return self._party.handle(self._change(request) if isinstance(request, Turn) else request)
        except RemoteProtocolError as error:
            self.refusals.append(str(error))
            raise


def run_changed(model, number, change, **options):
    session = make(model, **options)
    real = session.party
    session.party = lambda n: Changed(real(n), change) if n == number else real(n)
    return session.run()


def refused_by(model, number, change):
    """Why a party refused what a relay made of its turns; the session has ended then."""
    session = make(model)
    real, party = session.party, Changed(session.party(number), change)
    session.party = lambda n: party if n == number else real(n)
    with pytest.raises(TooFewPartiesError):
        session.run()
    return party.refusals


def test_shares_made_for_other_members_are_refused():
    """The relay tells one holder of another set: its share would not fit, and the sum be anything."""

    def other_members(turn):
        return Turn(turn.stage, (2, 4), turn.posts, turn.letters) if turn.members == (2, 3) else turn

    with pytest.raises(TooFewPartiesError):
        run_changed("threshold", 2, other_members, budget=None)


def test_posts_of_the_past_are_passed_over_and_of_the_future_refused():
    kept = []

    def again(turn):
        kept.extend(turn.posts)
        return Turn(turn.stage, turn.members, tuple(kept), turn.letters)

    expected = make("two-party", budget=None).run().alice.centres
    assert np.array_equal(run_changed("two-party", 2, again, budget=None).parties[1].centres, expected)

    def later(turn):
        posts = tuple(Post(post.author, turn.stage, post.box) for post in turn.posts)
        return Turn(turn.stage, turn.members, posts, turn.letters)

    (reason,) = refused_by("two-party", 2, later)
    assert "boxes must come from stages before" in reason


@pytest.mark.parametrize(("number", "what"), [(1, "posts"), (1, "letters"), (2, "posts"), (2, "letters")])
def test_a_relay_that_keeps_boxes_back_ends_the_session(number, what):
    def keep_back(turn):
        return Turn(turn.stage, turn.members, *((), turn.letters) if what == "posts" else (turn.posts, ()))

    assert refused_by("two-party", number, keep_back)


@pytest.mark.parametrize("what", ["posts", "letters"])
def test_a_box_that_comes_twice_in_a_turn_is_refused(what):
    def twice(turn):
        posts, letters = turn.posts, turn.letters
        return Turn(turn.stage, turn.members, *((posts * 2, letters) if what == "posts" else (posts, letters * 2)))

    for number in (1, 2):
        assert "once each in a turn" in refused_by("two-party", number, twice)[0]


def test_a_relay_cannot_pass_boxes_off_as_others():
    """Contents of one stage, author or recipient do not open as another's."""

    def other_stage(turn):
        posts = tuple(Post(post.author, 1 - post.stage, post.box) for post in turn.posts)
        return Turn(turn.stage, turn.members, posts, turn.letters)

    def other_author(turn):
        posts = tuple(Post(3 - post.author, post.stage, post.box) for post in turn.posts if not post.stage)
        return Turn(turn.stage, turn.members, posts, turn.letters)

    def other_recipient(turn):
        letters = tuple(Letter(x.sender, x.sender, x.stage, x.box) for x in turn.letters)
        return Turn(turn.stage, turn.members, turn.posts, letters)

    def post_as_letter(turn):
        letters = tuple(Letter(post.author, 1, post.stage, post.box) for post in turn.posts)
        return Turn(turn.stage, turn.members, turn.posts, letters)

    for change, reason in [
        (other_stage, "must be sealed under the secret"),
        (other_author, "must be sealed under the secret"),
        (other_recipient, "be addressed to us"),
        (post_as_letter, "must be those of the schedule"),
    ]:
        assert reason in refused_by("two-party", 1, change)[0]


# --- a second answer ---------------------------------------------------------------------------------------------


def run_with_old_answer(monkeypatch, model):
    """Alice sends the first round's masks again, as an answer to the second round's question."""
    session, packed = make(model), []
    real = computing.pack_answer

    def pack_first(batch):
        packed.append(batch)
        return real(packed[0])

    monkeypatch.setattr(computing, "pack_answer", pack_first)
    with pytest.raises(TooFewPartiesError, match="Lloyd round 2: decrypting"):
        session.run()
    assert len(packed) == 2
    return session


def second_round_was_charged(session):
    charged = [release.name for release in session.releases(2)]
    assert "Lloyd round 1: counts" in charged
    assert len(session.duties[2].sampler.drawn) == len(charged)
    return "Lloyd round 2: counts" in charged


@pytest.mark.parametrize("model", ["two-party", "collective", "threshold"])
def test_an_answer_is_decrypted_once_and_a_second_request_costs_nothing(monkeypatch, model):
    assert not second_round_was_charged(run_with_old_answer(monkeypatch, model))


@pytest.mark.parametrize("model", ["collective", "threshold"])
def test_the_mutant_that_charges_before_it_checks_is_noticed(monkeypatch, model):
    real = holder.HolderParty._share

    def pay_first(self, batch, opened, noise):
        paid = noise()
        return real(self, batch, opened, lambda: paid)

    monkeypatch.setattr(holder.HolderParty, "_share", pay_first)
    assert second_round_was_charged(run_with_old_answer(monkeypatch, model))


def test_a_turn_is_taken_once_and_only_after_keys_were_exchanged():
    session = make("two-party")
    completed = session.run(record_views=True)
    turns = [entry.message for entry in completed.run.views[1] if isinstance(entry.message, Turn)]
    for turn in turns:
        with pytest.raises(RemoteProtocolError, match="never back"):
            completed.alice.handle(turn)
    with pytest.raises(RemoteProtocolError, match="after keys were exchanged"):
        session.party(1).handle(turns[0])


# --- what the relay checks ---------------------------------------------------------------------------------------


def test_the_relay_refuses_what_the_schedule_does_not_provide_for():
    schedule = make("two-party").agreement.schedule
    number, stage = next((i, stage) for i, stage in enumerate(schedule) if stage.kind == "decrypt")
    check = coordinator._check_done(number, stage)
    letter = Letter(2, 1, number, b"box")
    check(2, Done(None, (letter,)))
    wrong = [
        Done(None, ()),
        Done(b"post", (letter,)),
        Done(None, (letter, letter)),
        Done(None, (Letter(1, 2, number, b"box"),)),
        Done(None, (Letter(2, 1, number - 1, b"box"),)),
        Done(None, (Letter(2, 3, number, b"box"),)),
        Done(None, (Letter(2, 2, number, b"box"),)),
    ]
    for reply in wrong:
        with pytest.raises(RemoteProtocolError, match="must write its own letters"):
            check(2, reply)
    with pytest.raises(RemoteProtocolError, match="must answer with Done"):
        check(2, letter)
    with pytest.raises(RemoteProtocolError, match="must write its own letters"):
        coordinator._check_done(0, schedule[0])(2, Done(None, ()))


def test_a_box_that_the_schedule_does_not_provide_for_is_refused():
    """A key holder writes to another where no threshold was agreed on; this was an AssertionError once."""

    def add_share(turn):
        letter = Letter(3, 2, next(at for at, stage in enumerate(schedule) if stage.kind == "keys"), b"box")
        return Turn(turn.stage, turn.members, turn.posts, (*turn.letters, letter) if turn.stage > letter.stage else ())

    schedule = make("collective").agreement.schedule
    (reason,) = refused_by("collective", 2, add_share)
    assert "must be those of the schedule" in reason


def test_keys_without_what_was_prepared_are_refused():
    """The relay keeps one party's first post back; this was a KeyError once."""

    def keep_back(turn):
        posts = tuple(post for post in turn.posts if (post.author, post.stage) != (3, 0))
        return Turn(turn.stage, turn.members, posts, turn.letters)

    (reason,) = refused_by("collective", 2, keep_back)
    assert "what all parties prepared must come" in reason
