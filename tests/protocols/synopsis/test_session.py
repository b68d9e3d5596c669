"""A synopsis as a protocol: a session finds what a rehearsal finds, whoever drops out on the way."""

import itertools
import re

import numpy as np
import pytest

from cloister.aggregation import least_quorum
from cloister.crypto import Stream
from cloister.errors import TooFewPartiesError
from cloister.privacy.placement import Local, Shared
from cloister.privacy.units import Budget, Unit
from cloister.runtime import Fault, FaultKind
from tests.protocols.guided_sums.sessions import counted_names, counting_rounds
from tests.protocols.synopsis.sessions import Session, counting, rehearse
from tests.sessions import RecordingSampler, ReplayingSampler, blobs, split

POINTS = {d: blobs(300, d, 3, seed=5) for d in (1, 2, 7)}
SHARED = Shared(parties=3, colluding_max=1)


@pytest.mark.parametrize("dimensions", [1, 2, 7])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"records": 300},
        {"placement": SHARED, "members_min": 3},
        {"placement": Local(parties=3)},
        {"budget": Budget(epsilon=1.0, delta=1e-6, unit=Unit.CLIENT)},
        {"budget": Budget(epsilon=1.0, delta=1e-6, unit=Unit.CLIENT), "records": 300},
        {"budget": Budget(epsilon=50.0, delta=1e-6)},
    ],
    ids=["default", "public n", "shared", "local", "client", "client, public n", "little noise"],
)
def test_a_session_finds_what_a_rehearsal_with_the_same_noise_finds(dimensions, options):
    session = Session(split(POINTS[dimensions], 3), **options)
    _, parties = session.run()
    sampler = ReplayingSampler(session.added_noise())
    rehearsal = rehearse(session.settings, session.records, sampler=sampler, stream=session.common)
    for party in parties:
        assert party.finished
        assert np.array_equal(party.centres, rehearsal.finding.centres)
        assert np.array_equal(party.finding.centre_noise, rehearsal.finding.centre_noise)
        assert party.finding.sizes == rehearsal.finding.sizes
    for read, rehearsed in zip(parties[0].released_totals, rehearsal.totals, strict=True):
        assert np.array_equal(read, rehearsed)
    assert not parties[1].released_totals
    assert all(spent.releases == rehearsal.releases for spent in session.spent())


def test_a_rehearsal_draws_the_noise_that_the_coordinator_would():
    session = Session(split(POINTS[2], 3))
    _, parties = session.run()
    again = RecordingSampler("coordinator", seed=session.seed)  # the same seeded sampler, not a recording
    rehearsal = rehearse(session.settings, session.records, sampler=again, stream=session.common)
    assert np.array_equal(parties[0].centres, rehearsal.finding.centres)


@pytest.mark.parametrize("placement", [SHARED, Local(parties=3)])
def test_a_rehearsal_draws_as_much_noise_as_all_shares_have(placement):
    session = Session(split(POINTS[2], 3), placement=placement, members_min=3)
    sampler = RecordingSampler("all")
    rehearse(session.settings, session.records, sampler=sampler, stream=Stream(bytes(32)))
    sigma = sampler.drawn[0][0].sigma
    shares = [placement.mechanism_for_share(session.settings.target).sigma] * 3
    assert sigma == pytest.approx(np.sqrt(np.square(shares).sum()), rel=1e-9)


def test_the_common_stream_and_who_holds_what_decide_nothing_else():
    """Another split of the same records under the same noise: the same totals and centres."""
    first = Session(split(POINTS[2], 3, seed=0))
    second = Session(split(POINTS[2], 3, seed=1))
    (_, one), (_, other) = first.run(), second.run()
    assert np.array_equal(one[0].centres, other[0].centres)
    assert all(np.array_equal(a, b) for a, b in zip(one[0].released_totals, other[0].released_totals, strict=True))


def test_a_party_may_hold_no_record():
    parts = [*split(POINTS[2], 2), np.zeros((0, 2))]
    _, parties = Session(parts).run()
    assert parties[2].finished


def test_more_records_than_the_cap_are_no_reason_to_stop():
    """An abort would tell records apart."""
    _, parties = Session(split(POINTS[2], 3), max_records=1).run()
    assert parties[0].finished


@pytest.mark.parametrize("parties", [3, 4])
@pytest.mark.parametrize("kind", [FaultKind.DROP_REQUEST, FaultKind.DROP_REPLY])
@pytest.mark.parametrize("masks", ["common", "double"])
def test_every_dropout_set_at_every_step(parties, kind, masks):
    """The exact counts of who was in each round's sum, or a typed abort; charges stay."""
    steps = counting(parties, masks=masks).agreement.steps
    outcomes = set()
    for step, size in itertools.product(range(steps), range(parties + 1)):
        for gone in itertools.combinations(range(1, parties + 1), size):
            outcomes.add(play_dropout(parties, masks, [Fault(kind, party, step) for party in gone]))
    assert outcomes == {"found", "aborted"}


def play_dropout(parties, masks, faults):
    session = counting(parties, masks=masks)
    rounds = counting_rounds(session.settings)
    roles = [session.party(number) for number in range(1, parties + 1)]
    try:
        run, _ = session.run(roles, faults=faults)
    except TooFewPartiesError as error:
        assert re.match(
            rf"at least ((2|{parties // 2 + 1}) of {parties}|{parties // 2 + 1}|{parties}) parties", str(error)
        )
        outcome = "aborted"
    else:
        history = run.result.members
        assert run.result.rounds == len(history) - 1 == len(session.settings.slots)
        assert all(len(present) > parties / 2 for present in history)
        expected = [float(sum(10 ** (member - 1) for member in history[number])) for number in rounds]
        lost = {fault.party for fault in faults}
        for number, party in enumerate(roles, start=1):
            assert party.finished or number in lost
            assert party.finished == (number in history[-1]) or number in lost
            if party.finished:
                assert list(party.finding.sizes.clusters) == expected
        outcome = "found"
    for spent in session.spent():
        names = [event.name for event in spent.releases]
        assert set(names) <= set(counted_names(session.settings))
        assert len(set(names)) == len(names)
    return outcome


def test_a_party_that_misses_a_round_is_asked_again_in_the_next():
    session = counting()
    run, parties = session.run(faults=[Fault(FaultKind.DROP_REQUEST, 2, 6)])  # the second round's question
    rounds = len(session.settings.slots)
    assert run.result.members == ((1, 2, 3, 4), (1, 3, 4), *[(1, 2, 3, 4)] * (rounds - 1))
    assert all(party.finished for party in parties)
    assert parties[1].finding.sizes == parties[0].finding.sizes
    assert run.traffic[2].steps_missed == 1


def test_the_real_algorithm_survives_dropouts_in_any_round():
    agreement = Session(split(POINTS[2], 4)).agreement
    for step, gone in itertools.product(range(3, agreement.steps), (1, 3)):
        run, parties = Session(split(POINTS[2], 4)).run(faults=[Fault(FaultKind.CRASH, gone, step)])
        finished = [party for party in parties if party.finished]
        assert len(finished) >= 3
        assert all(np.array_equal(party.centres, finished[0].centres) for party in finished)
        assert (gone in run.result.members[-1]) == (step == agreement.steps - 1)


@pytest.mark.parametrize("colluding_max", [1, 2, 3])
@pytest.mark.parametrize("gone", [0, 1, 2])
def test_a_dropout_never_leaves_less_unknown_noise_than_was_charged(colluding_max, gone):
    """Against each party that reads a sum, count the shares in it that it does not know."""
    quorum = max(3, least_quorum(4, colluding_max))
    placement = Shared(parties=4, colluding_max=colluding_max, quorum=quorum)
    session = counting(placement=placement, members_min=quorum)
    faults = [Fault(FaultKind.DROP_REQUEST, 4 - number, 4) for number in range(gone)]
    try:
        run, _ = session.run(faults=faults)
    except TooFewPartiesError:
        assert gone > 4 - quorum
        return
    assert all(len(members) - colluding_max >= placement.honest_min for members in run.result.members)
