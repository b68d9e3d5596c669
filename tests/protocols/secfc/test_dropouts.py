"""Whoever is silent, and whenever, the labels are Lloyd's on the records that are in, or a typed abort."""

import itertools

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cloister.errors import RemoteProtocolError, TooFewPartiesError
from cloister.protocols.secfc.messages import Measure
from cloister.runtime import Fault, FaultKind
from cloister.wire import Array
from tests.protocols.secfc.sessions import OPENING, SecfcSession, check_against_clear, spread
from tests.sessions import split

LOST = [FaultKind.DROP_REQUEST, FaultKind.DROP_REPLY, FaultKind.DELAY_REPLY, FaultKind.CRASH, FaultKind.CRASH_AFTER]
DAMAGED = [FaultKind.CORRUPT_REQUEST, FaultKind.CORRUPT_REPLY]
UNDAMAGED = [kind for kind in FaultKind if kind not in DAMAGED]
SHARING = 2  # steps: one chunk, and what hands it on
FIRST_ROUND = OPENING + SHARING + 1


def subsets(clients, sizes):
    return [set_ for size in sizes for set_ in itertools.combinations(range(1, clients + 1), size)]


def make(clients, privacy=1, segments=1, **options):
    return SecfcSession(
        split(spread(14, 2, seed=clients), clients), clusters=2, privacy=privacy, segments=segments, **options
    )


@pytest.mark.parametrize("kind", LOST)
def test_every_set_of_five_clients_in_every_round(kind):
    """Three of five are decoded: any two may be missing, and with more it ends with an error."""
    session = make(5)
    clean, _ = session.run()
    steps = clean.steps - 2  # without revealing and finishing
    assert steps - FIRST_ROUND >= 2
    for silent in subsets(5, [1, 2, 3, 4]):
        for step in range(FIRST_ROUND, steps):
            faults = [Fault(kind, party, later) for party in silent for later in range(step, step + 4)]
            if len(silent) > 2:
                with pytest.raises(TooFewPartiesError, match="at least 3 of 5"):
                    session.run(faults=faults)
                break
            run, parties = session.run(faults=faults)
            check_against_clear(session, run, parties)
            assert len(run.result.owners) == 5
            assert all(party.finished for n, party in enumerate(parties, 1) if n not in silent)


@pytest.mark.parametrize(("clients", "privacy", "segments", "spare"), [(6, 1, 1, 3), (6, 1, 2, 1), (7, 2, 1, 2)])
def test_every_set_of_six_and_seven_clients(clients, privacy, segments, spare):
    session = make(clients, privacy, segments)
    for silent in subsets(clients, range(1, spare + 1)):
        run, parties = session.run(faults=[Fault(FaultKind.CRASH, party, FIRST_ROUND + 1) for party in silent])
        check_against_clear(session, run, parties)
        assert not set(silent) & set(run.result.responders[-1])


def test_one_more_than_the_spare_clients_is_an_error():
    for silent in subsets(6, [2]):
        with pytest.raises(TooFewPartiesError, match="at least 5 of 6"):
            make(6, 1, 2).run(faults=[Fault(FaultKind.CRASH, party, FIRST_ROUND) for party in silent])


def test_other_clients_may_be_missing_in_each_round():
    """Who was silent is asked after the others, and is welcome when others are missing."""
    session = make(4)
    run, parties = session.run(
        faults=[
            Fault(FaultKind.DROP_REPLY, 1, FIRST_ROUND),
            Fault(FaultKind.DROP_REPLY, 2, FIRST_ROUND + 2),
            Fault(FaultKind.DROP_REPLY, 3, FIRST_ROUND + 4),
        ],
        record_views=True,
    )
    check_against_clear(session, run, parties)
    assert run.result.responders[:3] == ((2, 3, 4), (1, 3, 4), (1, 2, 4))
    assert run.result.attempts[:3] == (2, 2, 2)


def test_a_client_whose_reply_was_lost_is_told_the_labels_anew():
    """It has labels that the coordinator does not know it has: changes since older ones would be wrong."""
    session = SecfcSession(split(spread(300, 2, seed=2), 4), clusters=3)
    clean, _ = session.run(record_views=True)
    news = [entry.message.news for entry in clean.views[1] if isinstance(entry.message, Measure)]
    lost = next(n for n, one in enumerate(news) if one.base and news[n + 1].base)  # both would be changes
    run, parties = session.run(
        faults=[
            Fault(FaultKind.DROP_REPLY, 1, FIRST_ROUND + lost),
            Fault(FaultKind.DROP_REPLY, 2, FIRST_ROUND + lost + 2),
        ]
    )
    check_against_clear(session, run, parties)
    assert run.result.attempts[lost : lost + 2] == (2, 2)
    assert run.result.responders[lost : lost + 2] == ((2, 3, 4), (1, 3, 4))


@settings(max_examples=30, deadline=None)
@given(faults=st.lists(st.builds(Fault, st.sampled_from(UNDAMAGED), st.integers(1, 5), st.integers(0, 14)), max_size=8))
def test_any_faults_end_in_lloyd_or_too_few(faults):
    session = make(5)
    try:
        run, parties = session.run(faults=faults)
    except TooFewPartiesError:
        return
    check_against_clear(session, run, parties)


class Misled:
    """A client that is told another cluster for the first record."""

    def __init__(self, party):
        self.party = party

    def __getattr__(self, name):
        return getattr(self.party, name)

    def handle(self, request):
        if isinstance(request, Measure) and request.news.base == 0:
            codes = bytearray(request.news.codes.data)
            codes[0] = 3 - codes[0]
            news = msgspec.structs.replace(request.news, codes=Array(0, (len(codes),), bytes(codes)))
            request = msgspec.structs.replace(request, news=news)
        return self.party.handle(request)


def test_clients_that_are_told_different_labels_are_noticed():
    """Their pads differ, so that what is decoded is uniform, and no distance."""
    session = make(5)
    for misled in (1, 2, 3):
        with pytest.raises(RemoteProtocolError, match="decoded distances must be at most"):
            session.run(wrap=lambda number, party, misled=misled: Misled(party) if number == misled else party)


# --- before rounds begin ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [FaultKind.DROP_REQUEST, FaultKind.DELAY_REPLY, FaultKind.CRASH, FaultKind.RESTART])
def test_a_client_silent_before_rounds_is_out_and_its_records_stay_once_shared(kind, monkeypatch):
    monkeypatch.setattr("cloister.protocols.secfc.agreement.Coding.chunk_rows", 2)
    session = make(5)
    chunks = -(-max(len(part) for part in session.records) // 2)
    assert chunks > 1
    begins = OPENING + chunks + 1
    for party, step in itertools.product(range(1, 6), range(begins + 1)):
        run, parties = session.run(faults=[Fault(kind, party, step)])
        check_against_clear(session, run, parties)
        own_chunks = -(-len(session.records[party - 1]) // 2)
        gave_all = step >= OPENING + own_chunks  # later steps hand on what it has given
        not_asked = (step == 1 and party != 1) or (step == 2 and party == 1)  # the leader seals, the others are handed
        unhurt = (not_asked and kind is not FaultKind.CRASH) or (kind is FaultKind.RESTART and step == 0)
        stays = gave_all or unhurt
        kept = {owner.party for owner in run.result.owners}
        assert kept == ({1, 2, 3, 4, 5} if stays else {1, 2, 3, 4, 5} - {party}), (party, step)
        if not stays:
            assert all(party not in responders for responders in run.result.responders)


def test_a_client_that_missed_the_beginning_still_gets_its_labels():
    session = make(5)
    run, parties = session.run(faults=[Fault(FaultKind.DROP_REQUEST, 4, OPENING + SHARING)])
    assert parties[3].finished
    assert all(4 not in responders for responders in run.result.responders)
    assert np.array_equal(parties[3].finding.own_labels, run.result.labels[parties[3].finding.own_rows])
    assert len(parties[3].finding.own_rows) == len(session.records[3])
    check_against_clear(session, run, parties)


def test_a_client_whose_records_were_left_out_learns_so():
    session = make(5)
    run, parties = session.run(faults=[Fault(FaultKind.DROP_REPLY, 4, OPENING)])
    assert [owner.party for owner in run.result.owners] == [1, 2, 3, 5]
    assert parties[3].finished
    assert len(parties[3].finding.own_rows) == 0
    assert len(parties[3].finding.labels) == 14 - len(session.records[3])


def test_too_few_that_share_is_an_error():
    for step in range(FIRST_ROUND):
        with pytest.raises(TooFewPartiesError):
            make(4).run(faults=[Fault(FaultKind.CRASH, party, step) for party in (2, 3)])


@pytest.mark.parametrize("step", range(OPENING + 1))
def test_with_membership_private_every_client_must_share(step):
    """Nobody knows which rows would be zero without it."""
    points = spread(12, 2, seed=1)
    session = SecfcSession(list(np.split(points, 4)), positions=list(np.split(np.arange(12), 4)))
    party = 1 if step == 1 else 2
    with pytest.raises(TooFewPartiesError, match="at least 4 of 4"):
        session.run(faults=[Fault(FaultKind.CRASH, party, step)])


@pytest.mark.parametrize("step", range(OPENING + 1, FIRST_ROUND + 2))
def test_with_membership_private_clients_may_leave_once_all_have_shared(step):
    points = spread(12, 2, seed=1)
    session = SecfcSession(list(np.split(points, 4)), positions=list(np.split(np.arange(12), 4)))
    run, parties = session.run(faults=[Fault(FaultKind.CRASH, 2, step)])
    check_against_clear(session, run, parties)


# --- the end ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [FaultKind.CRASH, FaultKind.DROP_REPLY, FaultKind.DELAY_REPLY])
def test_any_holders_reveal_and_labels_stay_where_too_few_are_left(kind):
    session = make(5)  # l + t = 2
    clean, _ = session.run()
    reveal = clean.steps - 2
    for silent in subsets(5, [1, 2, 3, 4]):
        faults = [Fault(kind, party, later) for party in silent for later in range(reveal, reveal + 5)]
        run, parties = session.run(faults=faults)
        assert np.array_equal(run.result.labels, clean.result.labels)
        assert run.result.revealed == (len(silent) <= 3)
        if run.result.revealed:
            check_against_clear(session, run, parties)
        else:
            assert all(party.finding.centres is None for party in parties if party.finished)


@pytest.mark.parametrize("kind", [FaultKind.DUPLICATE_REQUEST, FaultKind.DUPLICATE_REPLY, FaultKind.REORDER])
def test_repeated_and_reordered_frames_change_nothing(kind):
    session = make(4)
    clean, _ = session.run()
    for step in range(1, clean.steps):
        run, parties = session.run(faults=[Fault(kind, party, step) for party in (1, 2, 3, 4)])
        assert run.result.attempts == clean.result.attempts
        check_against_clear(session, run, parties)
