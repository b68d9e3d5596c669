"""FastLloyd through real messages: what is charged, what is computed, what goes wrong, what it costs."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from cloister.aggregation.messages import Answered
from cloister.data import Column
from cloister.errors import BudgetError, ConfigError, TooFewPartiesError
from cloister.job import Budget, DataOptions, Job, JobParty, make_options
from cloister.numeric import FixedPoint
from cloister.privacy.accounting import Accountant
from cloister.privacy.placement import Joint, Local, Shared
from cloister.protocols.fastlloyd.published import CENTROID_FLAW, SUM_FLAW
from cloister.protocols.fastlloyd.sound import ROUNDS
from cloister.records import ArrayRecords
from cloister.runtime import Fault, FaultKind
from cloister.sessions import simulate
from tests.owners import told_to_owner
from tests.protocols.fastlloyd.sessions import POINTS, PRESETS, FastLloydSession, deal
from tests.sessions import blobs

FIRST_ROUND = 3  # the step of round 1: three before it agree on the seed
THREE = {"iterations": 3}
PLACEMENTS = [None, Shared(parties=3, colluding_max=1), Local(parties=3)]


# --- books ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dimensions", [1, 2, 10, 100, 784])
@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_the_books_of_the_default_reconcile_with_what_ran(dimensions, noise):
    """The cost is composed here by hand, from the noise that was drawn and the length that one record may have."""
    points = FixedPoint().quantise(blobs(60, dimensions, 3, seed=1))
    session = FastLloydSession(parts=deal(points), noise=noise, start=())
    session.run()
    scale, weight = session.plan.rule.scale, session.plan.rule.count_weight
    drawn = session.duty.sampler.drawn
    if noise == "gaussian":
        cost = sum((scale**2 + weight**2) / (2 * mechanism.sigma**2) for mechanism, _ in drawn)
    else:
        cost = sum((int(np.sqrt(dimensions) * scale) + weight) / mechanism.scale for mechanism, _ in drawn)
    for book in (session.duty.charger, *(duty.charger for duty in session.duties.values())):
        spent = book.spent()
        assert len(spent.releases) == len(drawn) == ROUNDS
        assert (spent.rho if noise == "gaussian" else spent.epsilon) == pytest.approx(cost, rel=1e-6)
        assert 0.99 * session.epsilon <= spent.epsilon <= session.epsilon
        assert [event.entries for event in spent.releases] == [values.size for _, values in drawn]
    assert not any(duty.sampler.drawn for duty in session.duties.values())


@pytest.mark.parametrize("preset", PRESETS)
def test_the_books_of_a_published_variant_show_what_its_text_claims(preset):
    session = FastLloydSession(preset)
    session.run()
    spent = session.duties[1].charger.spent()
    assert spent.delta == 0
    assert spent.epsilon == pytest.approx(session.epsilon, rel=1e-6)
    assert len(spent.releases) == len(session.duty.sampler.drawn) == session.agreement.iterations


@pytest.mark.parametrize("kind", ["sound", *PRESETS])
def test_a_party_whose_books_are_full_sends_nothing(kind):
    session = FastLloydSession(kind, options=THREE)
    session.duties[1] = replace(session.duties[1], charger=Accountant(Budget(epsilon=1.5, delta=session.budget.delta)))
    with told_to_owner(BudgetError, party="party 1"):
        session.run()
    assert session.duties[1].charger.spent().epsilon <= 1.5
    assert len(session.duty.sampler.drawn) < 3


# --- what is computed -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("placement", PLACEMENTS, ids=["aggregator", "shared", "local"])
@pytest.mark.parametrize(("kind", "noise"), [("sound", "gaussian"), ("sound", "laplace"), *((p, "") for p in PRESETS)])
def test_a_session_computes_what_a_rehearsal_does_bit_for_bit(kind, noise, placement):
    session = FastLloydSession(kind, noise=noise, placement=placement)
    _, parties = session.run()
    rehearsal = session.rehearse()
    for party in parties:
        assert party.centres.tobytes() == rehearsal.centres.tobytes()
        for released, total in zip(party.state.released_totals, rehearsal.totals, strict=True):
            assert np.array_equal(released, total)
    assert (np.abs(rehearsal.centres) <= 1).all()


def test_all_parties_start_from_the_same_centres_and_end_with_the_same():
    session = FastLloydSession(start=())
    _, parties = session.run()
    assert len({party.centres.tobytes() for party in parties}) == 1


def test_the_number_of_records_changes_nothing_that_can_be_seen():
    """Rounds, noise, lengths and the agreement itself are the same for one record a party and for a thousand."""
    seen = []
    for copies in (1, 1000):
        session = FastLloydSession(parts=[np.repeat(POINTS[party : party + 1], copies, axis=0) for party in range(3)])
        run, parties = session.run()
        mechanisms = [event.mechanism for event in session.duties[1].charger.spent().releases]
        rounds = len(parties[0].state.released_totals)
        seen.append((session.agreement.digest, run.steps, run.traffic, mechanisms, rounds))
    assert seen[0] == seen[1]


def test_more_records_than_were_declared_stop_nothing():
    """An abort would tell neighbours apart. The sums wrap around, which spoils centres only."""
    many = [np.repeat(part, 3000, axis=0) for part in deal(POINTS[:30])]
    session = FastLloydSession(parts=many, max_records=1)
    assert session.agreement.ring.bits == 32
    assert session.plan.rule.scale * len(many[0]) * 3 > 2**32
    _, parties = session.run()
    assert all(len(duty.charger.spent().releases) == ROUNDS for duty in session.duties.values())
    assert np.isfinite(parties[0].centres).all()


# --- what goes wrong ------------------------------------------------------------------------------------------------


def walk(session, history):
    """The centres after the rounds whose members are given, from the noise that was drawn: by hand."""
    rule, centres = session.plan.rule, np.array(session.start)
    for round_, members in enumerate(history, start=1):
        parts = [ArrayRecords(session.records[member - 1]) for member in members]
        exact = sum(rule.contribute(part, centres, round_, session.assignment) for part in parts)
        noise = session.duty.sampler.drawn[round_ - 1][1].reshape(exact.shape)
        centres = rule.move(centres, exact + noise, round_=round_, members=len(members))
    return centres


SETS = [gone for size in range(4) for gone in itertools.combinations((1, 2, 3), size)]


@pytest.mark.parametrize("kind", ["sound", "published", "sulloyd"])
@pytest.mark.parametrize("fault", [FaultKind.DROP_REPLY, FaultKind.DELAY_REPLY, FaultKind.CRASH])
def test_every_set_of_dropouts_in_every_round(kind, fault):
    """The sum of those who answered, or a typed abort; who is there at the end has the same centres."""
    for round_, gone in itertools.product((1, 2, 3), SETS):
        session = FastLloydSession(kind, options=THREE)
        faults = [Fault(fault, number, FIRST_ROUND + round_ - 1) for number in gone]
        charged_by = {n: round_ - 1 if fault is FaultKind.CRASH and n in gone else 3 for n in (1, 2, 3)}
        try:
            run, parties = session.run(faults=faults)
        except TooFewPartiesError:
            assert gone == (1, 2, 3)
            charged_by = dict.fromkeys((1, 2, 3), round_ - (fault is FaultKind.CRASH))
        else:
            here = tuple(n for n in (1, 2, 3) if n not in gone)
            assert run.result.members[round_ - 1] == here
            expected = walk(session, run.result.members).tobytes()
            finished = [party for party in parties if party.finished]
            assert len(finished) == (len(here) if fault is FaultKind.CRASH else 3)
            assert all(party.centres.tobytes() == expected for party in finished)
        assert {n: len(session.duties[n].charger.spent().releases) for n in (1, 2, 3)} == charged_by


def test_an_answer_that_comes_too_late_is_refused_and_its_sender_catches_up():
    session = FastLloydSession(options=THREE)
    run, parties = session.run(faults=[Fault(FaultKind.DELAY_REPLY, 2, FIRST_ROUND)])
    assert [entry.receiver for entry in run.rejected] == [0]
    assert run.result.members == ((1, 3), (1, 2, 3), (1, 2, 3))
    assert np.array_equal(parties[1].centres, parties[0].centres)


class Liar:
    """A party that sends something else instead of its vector."""

    def __init__(self, party, change):
        self.party, self.change = party, change

    def handle(self, request):
        reply = self.party.handle(request)
        if not isinstance(reply, Answered):
            return reply
        return Answered(self.change(np.frombuffer(reply.vector, np.uint32)).tobytes())


def run_with_liar(session, change):
    """Run it with a second party that lies; returns the honest roles."""
    parties = [session.party(number) for number in session.numbers]
    run, _ = session.run([parties[0], Liar(parties[1], change), parties[2]])
    return run, parties


def cut(vector):
    """One number too few."""
    return vector[:-1]


def make_up(vector):
    """Whatever it likes, with its true check words."""
    wild = np.random.default_rng(1).integers(2**32, size=vector.shape, dtype=np.uint32)
    wild[-4:] = vector[-4:]
    return wild


@pytest.mark.parametrize("kind", ["sound", *PRESETS])
def test_a_party_that_sends_a_vector_of_another_length_is_left_out(kind):
    session = FastLloydSession(kind, options=THREE)
    run, parties = run_with_liar(session, cut)
    assert run.result.members == ((1, 3),) * 3
    assert parties[0].centres.tobytes() == walk(session, run.result.members).tobytes()


@pytest.mark.parametrize("kind", ["sound", *PRESETS])
def test_a_party_that_sends_wild_values_spoils_the_result_and_nothing_else(kind):
    honest, spoilt = FastLloydSession(kind, options=THREE), FastLloydSession(kind, options=THREE)
    _, expected = honest.run()
    _, parties = run_with_liar(spoilt, make_up)
    assert len({party.centres.tobytes() for party in parties}) == 1
    assert (np.abs(parties[0].centres) <= 1).all()
    assert not np.array_equal(parties[0].centres, expected[0].centres)
    for before, after in zip(honest.duties.values(), spoilt.duties.values(), strict=True):
        assert before.charger.spent() == after.charger.spent()


# --- what it costs --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("clusters", "dimensions", "records"), [(15, 2, 5000), (3, 6, 48_842), (100, 2, 25_000)])
@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_a_round_takes_four_bytes_a_number_and_a_small_envelope_each_way(clusters, dimensions, records, epsilon):
    traffic = []
    for rounds in (8, 10):
        points = FixedPoint().quantise(blobs(6, dimensions, 2, seed=1))
        session = FastLloydSession(
            parts=deal(points, 2),
            clusters=clusters,
            epsilon=epsilon,
            max_records=-(-records // 2),
            start=(),
            options={"iterations": rounds},
        )
        traffic.append(session.run()[0].traffic[1])
    most = 4 * clusters * (dimensions + 1) + 72
    assert 0 < traffic[1].bytes_sent - traffic[0].bytes_sent <= 2 * most
    assert 0 < traffic[1].bytes_received - traffic[0].bytes_received <= 2 * most


# --- the card -------------------------------------------------------------------------------------------------------


def card_of(parties, **options):
    job = Job(
        name="card",
        k=3,
        columns=(Column(name="x", low=-1, high=1), Column(name="y", low=-1, high=1)),
        parties=tuple(JobParty(name=f"p{number}") for number in range(parties)),
        protocol=make_options("fastlloyd", **options),
        data=DataOptions(records=len(POINTS) if options else None),
        budget=Budget(epsilon=4.0, delta=0.0 if options else 1e-6),
    )
    sources = {party.name: part for party, part in zip(job.parties, deal(parties=parties), strict=True)}
    return simulate(job, sources=sources).card


def test_two_parties_are_told_that_each_can_subtract_itself():
    assert any(warning.startswith("Two parties") for warning in card_of(2).warnings)
    assert not any("Two parties" in warning for warning in card_of(3).warnings)


@pytest.mark.parametrize(
    ("options", "flaw"),
    [
        ({"variant": "published"}, CENTROID_FLAW),
        ({"variant": "amn"}, CENTROID_FLAW),
        ({"variant": "csulloyd"}, SUM_FLAW),
        ({"variant": "mna"}, SUM_FLAW),
        ({"variant": "sulloyd"}, ""),
        ({"variant": "amn", "assignment": "unconstrained"}, ""),
        ({}, ""),
    ],
)
def test_the_card_says_where_a_published_guarantee_fails(options, flaw):
    card = card_of(3, **options)
    assert card.flaw == flaw
    assert card.private is not bool(flaw)
    assert any("does not hold" in warning for warning in card.warnings) is bool(flaw)
    assert ("protects nobody by proof" in card.plain_words) is bool(flaw)


def test_joint_noise_around_a_coordinator_is_refused_since_nobody_would_add_it():
    session = FastLloydSession("sound", noise="laplace", placement=Joint(parties=3), options={"iterations": 2})
    with pytest.raises(ConfigError, match="joint noise must be sampled by the parties in a ring"):
        session.run()
