"""Each role receives what the synopsis's leakage table allows, and the tests that say so can fail."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from cloister.aggregation import MaskSchedule
from cloister.aggregation.messages import Answered, MeetPeers, Opened, OpenTotal
from cloister.aggregation.seed_agreement import (
    OpenSession,
    Ready,
    SealedSeeds,
    SessionOpened,
    ShareSeed,
    TakeSeed,
)
from cloister.privacy.placement import Aggregator, Local, Shared
from cloister.privacy.units import Budget, Learns, Unit
from cloister.protocols import synopsis
from cloister.protocols.guided_sums.messages import Answer, Finish, Lead, Sign, Signed
from cloister.protocols.guided_sums.party import GuidedParty
from cloister.protocols.guided_sums.statements import Stated
from cloister.protocols.synopsis.settings import Knobs
from tests.protocols.guided_sums.sessions import count_thrice, counting_rounds
from tests.protocols.synopsis.sessions import SMALL, SYNOPSIS, Session
from tests.sessions import SESSION, blobs, split

ALPHA = 1e-6
FRAME_BYTES = 40  # what a message has besides its content
ADDRESS = {"session": SESSION, "step": 0, "sender": 1}
POINTS = blobs(300, 2, 3, seed=3)
PLACEMENTS = [Aggregator(), Shared(parties=3, colluding_max=1), Local(parties=3)]


def updates_of(run, sender=None):
    """The vectors that the coordinator received, in order."""
    entries = [entry for entry in run.views[0] if isinstance(entry.message, Answered)]
    return [entry.message for entry in entries if sender in (None, entry.sender)]


def words_of(update):
    return np.frombuffer(update.vector, np.uint64)


def test_the_table_says_what_the_module_says():
    """The docstring's table, typed in again."""
    written = {
        "coordinator": (Learns.NOTHING, Learns.NOTHING, Learns.NOTHING),
        "party": (Learns.OWN, Learns.NOISY, Learns.NOISY),
    }
    table = SYNOPSIS.leakage(Session(split(POINTS, 3)).agreed)
    for role, row in written.items():
        assert tuple(table.learns(role, value) for value in ("statistics", "totals", "centres")) == row
    assert "coordinator  no                    no                  no" in synopsis.__doc__
    assert "party        own                   DP                  DP" in synopsis.__doc__


@pytest.mark.parametrize("placement", PLACEMENTS, ids=lambda placement: type(placement).__name__)
def test_roles_receive_only_the_messages_of_the_protocol(placement):
    session = Session(split(POINTS, 3), placement=placement, members_min=3)
    run, _ = session.run(record_views=True)
    double = session.agreement.sums.double
    assert double == isinstance(placement, Shared)
    of_parties = {SessionOpened, SealedSeeds, Ready, Answered, Stated, Signed} | ({Opened} if double else set())
    assert {type(entry.message) for entry in run.views[0]} == of_parties
    to_all = {OpenSession, Answer, Sign, Finish} | ({MeetPeers, OpenTotal} if double else set())
    for party in (1, 2, 3):
        kinds = {type(entry.message) for entry in run.views[party]}
        assert kinds == to_all | ({ShareSeed, Lead} if party == 1 else {TakeSeed})


@pytest.mark.parametrize("placement", PLACEMENTS, ids=lambda placement: type(placement).__name__)
def test_a_party_that_does_not_lead_is_told_no_total(placement):
    """It receives questions, the result and signatures: nothing that is masked, and few bytes."""
    points = blobs(2000, 4, 5, seed=3)
    options = {"placement": placement, "knobs": Knobs()}  # the default session of four columns
    session = Session(split(points, 3), clusters=5, **options)
    run, parties = session.run(record_views=True)
    assert [len(party.released_totals) for party in parties] == [len(session.settings.slots), 0, 0]
    assert all(run.traffic[party].bytes_received <= 8_000 for party in (2, 3))
    when_all_parties_thought = 51_313  # what each sent when every party ran the algorithm
    assert all(run.traffic[party].bytes_sent <= 1.03 * when_all_parties_thought for party in (2, 3))


@pytest.mark.parametrize("placement", PLACEMENTS, ids=lambda placement: type(placement).__name__)
def test_the_leader_learns_exact_sums_plus_exactly_the_noise_that_was_charged(placement):
    """Row party, column totals; and its queries follow from the totals alone."""
    session = Session(split(POINTS, 3), placement=placement, members_min=3)
    _, parties = session.run()
    asking = session.algorithm(session.settings, session.common)
    query = next(asking)
    for total, noise in zip(parties[0].released_totals, session.added_noise(), strict=True):
        exact = np.zeros(len(total), dtype=np.int64)
        for part in session.records:
            exact[: query.length] += query.measure(part)
        assert np.array_equal(total, exact + noise)
        assert noise.any()
        try:
            query = asking.send(total[: query.length])
        except StopIteration as stop:
            assert np.array_equal(stop.value.centres, parties[1].centres)


def no_potential(self, round_, index, length):
    """Masks of zeros, put on and taken off."""
    return np.zeros(length, np.uint64)


def exact_vectors(session, parties):
    """Every party's exact statistics and their sum in every round that was needed."""
    asking = session.algorithm(session.settings, session.common)
    query, found = next(asking), []
    for total in parties[0].released_totals:
        if query.length:
            locals_ = [query.measure(part) for part in session.records]
            found += [*locals_, np.sum(locals_, axis=0)]
        try:
            query = asking.send(total[: query.length])
        except StopIteration:
            break
    return [vector.view(np.uint64).tobytes() for vector in found]


def received_bytes(run, role):
    """All that a role received, array by array."""
    arrays = []
    for entry in run.views[role]:
        message = entry.message
        if isinstance(message, Answered):
            arrays.append(message.vector)
        elif isinstance(message, Lead):
            arrays += [past.total.body for past in message.news]
    return arrays


def count_hits(session):
    """How many exact vectors, of one party or of all, stand in something that a role received."""
    run, parties = session.run(record_views=True)
    secrets = exact_vectors(session, parties)
    received = [data for role in run.views for data in received_bytes(run, role)]
    assert len(secrets) >= 12
    assert received
    return sum(any(data.startswith(secret) for data in received) for secret in secrets)


def test_no_exact_statistic_reaches_anyone(monkeypatch):
    assert count_hits(Session(split(POINTS, 3))) == 0
    monkeypatch.setattr(MaskSchedule, "_potential", no_potential)
    assert count_hits(Session(split(POINTS, 3))) >= 9  # the search finds what is there


def test_a_party_receives_no_other_partys_vector():
    run, _ = Session(split(POINTS, 3)).run(record_views=True)
    sent = set(received_bytes(run, 0))
    for party in (1, 2, 3):
        assert not sent & set(received_bytes(run, party))


# --- the coordinator's view --------------------------------------------------------------------------------------


def received_from_first(parts, seeds):
    """How often each byte occurs in what the coordinator receives from party 1 in the rounds, over fresh sessions."""
    counts = np.zeros(256, dtype=np.int64)
    for seed in seeds:
        run, _ = Session(parts, seed=seed, algorithm=count_thrice).run(record_views=True)
        data = b"".join(update.vector for update in updates_of(run, 1))
        counts += np.bincount(np.frombuffer(data, np.uint8), minlength=256)
    return counts


def same_distribution():
    """P-value of "the coordinator's view does not depend on who holds what"; the two inputs have equal sums."""
    one = [np.zeros((4000, 1)), np.zeros((10, 1))]
    table = np.array([received_from_first(one, range(30)), received_from_first(one[::-1], range(30, 60))])
    return stats.chi2_contingency(table[:, table.sum(axis=0) > 0]).pvalue


def uniform_view():
    """P-value of "every byte of the coordinator's view is uniform", by which it depends on nothing at all."""
    return stats.chisquare(received_from_first([np.zeros((40, 1)), np.zeros((10, 1))], range(30))).pvalue


def test_inputs_with_equal_sums_look_the_same_to_the_coordinator():
    assert same_distribution() > ALPHA
    assert uniform_view() > ALPHA


REAL = MaskSchedule._potential  # masks are differences of these; whoever puts a mutant on takes it off again
MUTANTS = {
    "no mask": (same_distribution, no_potential),
    "constant mask": (same_distribution, lambda self, round_, index, length: np.full(length, index * 12345, np.uint64)),
    "mask of half the word": (
        uniform_view,
        lambda self, round_, index, length: REAL(self, round_, index, length) >> np.uint64(32),
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_weak_masks_are_caught(name, monkeypatch):
    test, potential = MUTANTS[name]
    monkeypatch.setattr(MaskSchedule, "_potential", potential)
    assert test() < ALPHA


def test_masks_are_fresh_in_every_round(monkeypatch):
    def repeats():
        run, _ = Session([np.zeros((5, 1))] * 2, algorithm=count_thrice).run(record_views=True)
        heads = [[int(words_of(update)[0]) for update in updates_of(run, sender)] for sender in (1, 2)]
        return sum(abs(a - b) < 2**20 for row in heads for a, b in itertools.combinations(row, 2))

    assert repeats() == 0
    monkeypatch.setattr(MaskSchedule, "_potential", lambda self, round_, index, length: REAL(self, 1, index, length))
    assert repeats() > 0


# --- rounds that are not needed ----------------------------------------------------------------------------------


def shape_of(session, run):
    """What can be seen without reading a word: who sent what, when, and how long; to the coordinator and from it."""
    codec = session.roles.codec(session.agreed)
    return [
        (role, entry.step, entry.sender, type(entry.message).__name__, len(codec.encode(entry.message, **ADDRESS)))
        for role, entries in run.views.items()
        for entry in entries
    ]


@pytest.mark.parametrize("placement", PLACEMENTS, ids=lambda placement: type(placement).__name__)
@pytest.mark.parametrize("dimensions", [2, 10])
def test_sessions_whose_rounds_are_needed_or_not_have_the_same_form(dimensions, placement):
    """Many records against two: another route, another number of Lloyd rounds, the same frames to the byte."""
    shapes, needed = [], []
    for records in (3000, 2):
        points = blobs(records, dimensions, 3, seed=4)
        budget = Budget(epsilon=8.0, delta=1e-6)
        session = Session([points, points[:1], points[:1]], budget=budget, placement=placement, members_min=3)
        run, _ = session.run(record_views=True)
        shapes.append((shape_of(session, run), [traffic.bytes_sent for traffic in run.traffic.values()]))
        needed.append(len(session.spent()[0].releases))
    assert shapes[0] == shapes[1]
    assert needed[0] != needed[1]


def test_a_session_of_whole_parties_has_the_same_form_whatever_they_hold():
    shapes, asked = [], []
    for records in (3000, 2):
        points, clients = blobs(records, 2, 3, seed=4), Unit.CLIENT
        budget = Budget(epsilon=30.0, delta=1e-6, unit=clients)
        session = Session([points, points[:1], points[:1]], budget=budget, placement=PLACEMENTS[1], members_min=3)
        run, parties = session.run(record_views=True)
        shapes.append(shape_of(session, run))
        asked.append(parties[1].centres.tobytes())
    assert shapes[0] == shapes[1]
    assert asked[0] != asked[1]


@pytest.mark.parametrize("placement", [Aggregator(), Local(parties=2)], ids=lambda placement: type(placement).__name__)
def test_rounds_that_are_not_needed_carry_the_same_masks_and_noise(placement, monkeypatch):
    parts = [np.zeros((5, 1))] * 2

    def idle_bytes():
        counts = np.zeros(256, dtype=np.int64)
        for seed in range(30):
            session = Session(parts, seed=seed, algorithm=count_thrice, placement=placement)
            run, parties = session.run(record_views=True)
            for number, update in enumerate(updates_of(run, 1)):
                if number not in counting_rounds(session.settings):
                    counts += np.bincount(np.frombuffer(update.vector, np.uint8), minlength=256)
            noises = [noise for _, noise in session.duties[1].sampler.drawn]
            assert [len(noise) for noise in noises] in ([], [slot.length for slot in session.settings.slots])
            assert all(total.any() for total in parties[0].released_totals)
        return counts

    assert stats.chisquare(idle_bytes()).pvalue > ALPHA
    rounds = counting_rounds(Session(parts).settings)

    def lazy(self, round_, index, length):
        return (REAL if round_ - 1 in rounds else no_potential)(self, round_, index, length)

    monkeypatch.setattr(MaskSchedule, "_potential", lazy)
    assert stats.chisquare(idle_bytes()).pvalue < ALPHA  # the mutant that leaves them in the clear


# --- check words -------------------------------------------------------------------------------------------------


def checks_of(session, sender=1):
    """The check words of each round as the coordinator receives them from one party."""
    run, _ = session.run(record_views=True)
    words = [words_of(update)[-session.agreement.sums.check_words :] for update in updates_of(run, sender)]
    assert len(words) == len(session.settings.slots)
    return [tuple(map(int, row)) for row in words]


def small_session(**options):
    return Session([np.zeros((5, 1))] * 3, algorithm=count_thrice, **options)


def test_the_coordinator_cannot_compare_check_words(monkeypatch):
    """Parties that agree send the same words, each under its own mask: no word repeats, in a session or in two."""

    def repeats():
        words = [
            w for seed in (7, 8) for sender in (1, 2, 3) for r in checks_of(small_session(seed=seed), sender) for w in r
        ]
        return len(words) - len(set(words))

    assert repeats() == 0
    real = MaskSchedule.mask

    def only_the_slot(self, values, round_, party):
        return np.concatenate([real(self, values, round_, party)[:-2], values[-2:]])

    monkeypatch.setattr(MaskSchedule, "mask", only_the_slot)
    assert repeats() > 0  # the mutant that leaves them in the clear


def test_check_words_look_uniform_to_the_coordinator():
    words = [checks_of(small_session(seed=seed)) for seed in range(40)]
    counts = np.bincount(np.array(words, np.uint64).ravel().view(np.uint8), minlength=256)
    assert stats.chisquare(counts).pvalue > ALPHA


def test_under_the_masks_check_words_are_one_partys_as_anothers_and_new_in_every_round(monkeypatch):
    """Many idle rounds ask the same: the chain parts them, and the session's key parts two sessions."""
    monkeypatch.setattr(MaskSchedule, "_potential", no_potential)
    options = {"silent": True, "knobs": replace(SMALL, rounds_max=6)}
    first, second, third = (checks_of(small_session(**options), sender) for sender in (1, 2, 3))
    assert first == second == third
    words = [word for row in (*first, *checks_of(small_session(seed=8, **options))) for word in row]
    assert len(set(words)) == len(words)


def test_no_party_object_hands_out_records():
    """Whatever a party shows of itself has been released."""
    shown = {name for name in vars(GuidedParty) if not name.startswith("_")}
    assert shown == {"centres", "finding", "finished", "handle", "released_totals"}
