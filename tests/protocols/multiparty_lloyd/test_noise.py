"""Thesis 7.2.4 with sound noise: what is released is the exact sum plus the noise that was charged; nothing else."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cloister.aggregation import MaskSchedule
from cloister.aggregation.messages import Answered
from cloister.crypto import SeededEntropy
from cloister.errors import BudgetError, ConfigError, DivergedError, TooFewPartiesError
from cloister.kmeans.assignment import ConstrainedExclusive
from cloister.numeric import FixedPoint
from cloister.privacy.accounting import Accountant
from cloister.privacy.mechanisms import DiscreteGaussian, DiscreteGaussianSum
from cloister.privacy.placement import Aggregator, Local, Shared
from cloister.privacy.release import NoiseDuty, release
from cloister.privacy.units import Budget, Learns
from cloister.protocols.multiparty_lloyd.agreement import LEAKAGE, Agreement
from cloister.protocols.multiparty_lloyd.coordinator import coordinate
from cloister.protocols.multiparty_lloyd.noise import plan_noise
from cloister.protocols.multiparty_lloyd.party import LloydState
from cloister.runtime import Fault, FaultKind
from tests.owners import told_to_owner
from tests.protocols.multiparty_lloyd.oracle import local_sums
from tests.protocols.multiparty_lloyd.sessions import Rounds, split
from tests.sessions import SESSION, RecordingSampler, blobs, make_directory

CENTRES = np.repeat([[-0.5, -0.5], [0.5, -0.5], [0.0, 0.5]], 200, axis=0)
POINTS = FixedPoint().quantise(CENTRES + np.random.default_rng(4).normal(0, 0.05, (600, 2)))
START = ((-0.4, -0.4), (0.4, -0.4), (0.1, 0.4))
BUDGET = Budget(epsilon=1.0, delta=1e-6)


class NoisySession(Rounds):
    """A session with books and a recording sampler for each role."""

    def __init__(self, records, *, budget=BUDGET, iterations=4, kind="gaussian", placement=None, clusters=3, **options):
        parties, dimensions = len(records), records[0].shape[1]
        noise = plan_noise(
            budget,
            kind=kind,
            iterations=iterations,
            clusters=clusters,
            dimensions=dimensions,
            fixed_point=FixedPoint(),
            norm_bound=options.pop("norm_bound", None),
            placement=placement,
        )
        agreement = Agreement(
            variant="mask-noise-average",
            parties=parties,
            clusters=clusters,
            dimensions=dimensions,
            iterations=iterations,
            noise=noise,
            max_records=10_000,
            directory=make_directory(7, parties),
            **{"initialisation": "random", **options},
        )
        self.duty = make_duty("coordinator", budget)
        super().__init__(
            agreement,
            records,
            duties=[make_duty(f"party {number}", budget) for number in range(1, parties + 1)],
            coordinator_duty=self.duty if noise.by_coordinator else None,
        )


def make_duty(label, budget):
    return NoiseDuty(charger=Accountant(budget), sampler=RecordingSampler(label))


def given_start(**options):
    return {"initialisation": "given", "start": START, **options}


@pytest.mark.parametrize("dimensions", [1, 2, 10, 100, 784])
@pytest.mark.parametrize("kind", ["gaussian", "laplace"])
def test_the_books_reconcile_with_what_ran(dimensions, kind):
    """The cost of the noise that was really drawn equals what each book says, and is within the budget."""
    budget = Budget(epsilon=1.0, delta=1e-6 if kind == "gaussian" else 0.0)
    points = FixedPoint().quantise(blobs(60, dimensions, 2, seed=1))
    session = NoisySession(split(points, 3), budget=budget, kind=kind, clusters=2)
    session.run()
    drawn = session.duty.sampler.drawn
    scale, d = 2**16, dimensions
    weight = session.agreement.noise.rule.encoder.count_weight
    if kind == "gaussian":  # composed by hand: rho = Delta^2 / 2 sigma^2 each; then the classic conversion bounds it
        rho = sum((d * scale**2 + weight**2) / (2 * mechanism.sigma**2) for mechanism, _ in drawn)
        assert rho + 2 * math.sqrt(rho * math.log(1e6)) >= budget.epsilon * 0.95
        expected = rho
    else:
        expected = sum((d * scale + weight) / mechanism.scale for mechanism, _ in drawn)
        assert expected <= budget.epsilon * (1 + 1e-9)
    assert len(drawn) == 4
    for book in [session.duty.charger, *(duty.charger for duty in session.duties.values())]:
        spent = book.spent()
        assert len(spent.releases) == 4
        assert budget.epsilon * 0.99 <= spent.epsilon <= budget.epsilon
        assert (spent.rho if kind == "gaussian" else spent.epsilon) == pytest.approx(expected, rel=1e-6)
        assert all(event.entries == noise.size for event, (_, noise) in zip(spent.releases, drawn, strict=True))
    assert all(not duty.sampler.drawn for duty in session.duties.values())


def unmasked_totals(session, run, parties):
    """What party 1 can read of each round."""
    return session.read_totals(run, parties[0], 1)


def exact_totals(session, totals):
    """The exact sums of each round, recomputed from the records and the centres that the noisy ones lead to."""
    plan, centres = session.agreement.noise, np.array(START)
    for total in totals:
        sums, counts = (np.sum(x, axis=0) for x in zip(*(local_sums(p, centres) for p in session.records), strict=True))
        yield np.hstack([np.rint(sums * 2**16), plan.rule.encoder.count_weight * counts[:, None]]).astype(np.int64)
        noisy = plan.rule.encoder.decode_counts(total)
        moved = plan.rule.encoder.decode_sums(total) / np.maximum(noisy, 1)[:, None]
        centres = np.where(noisy[:, None] >= 1, moved, centres)
        assert (np.abs(centres) <= 1).all()  # no fold needed in this run, so the recomputation is complete


def test_a_party_learns_exact_sums_plus_exactly_the_noise_that_was_charged():
    """Table 7.2, columns C_i, S_i, mu_i: "DP"."""
    session = NoisySession(split(POINTS, 3), budget=Budget(epsilon=8.0, delta=1e-6), **given_start())
    run, parties = session.run(record_views=True)
    totals = unmasked_totals(session, run, parties)
    drawn = [noise.reshape(3, 3) for _, noise in session.duty.sampler.drawn]
    for total, exact, noise in zip(totals, exact_totals(session, totals), drawn, strict=True):
        assert np.array_equal(total - exact, noise)
        assert (noise != 0).any()
    for value in ("C_i", "S_i", "mu_i"):
        assert LEAKAGE["mask-noise-average"].learns("party", value) is Learns.NOISY
        assert LEAKAGE["mask-noise-average"].learns("coordinator", value) is Learns.NOTHING
    for value in ("C_li", "S_li"):
        assert LEAKAGE["mask-noise-average"].learns("party", value) is Learns.OWN


def test_one_noisy_sum_a_round_however_often_it_is_sent():
    """A party that was away is sent the same noisy sums: fresh noise on the same sum would average out."""
    session = NoisySession(split(POINTS, 3), **given_start())
    faults = [Fault(FaultKind.DROP_REPLY, 2, step) for step in (4, 5)]
    run, parties = session.run(faults=faults, record_views=True)
    seen = {}
    for role in (1, 2, 3):
        for entry in run.views[role]:
            for news in getattr(entry.message, "news", ()):
                assert seen.setdefault(news.attempt.round, news.body) == news.body
    assert len(session.duty.sampler.drawn) == 4
    assert np.array_equal(parties[0].centres, parties[1].centres)
    assert len(session.duties[2].charger.spent().releases) == 4  # charged before its lost answers left


def test_a_party_that_stays_away_is_charged_for_what_it_answered_only():
    session = NoisySession(split(POINTS, 3), **given_start())
    session.run(faults=[Fault(FaultKind.CRASH, 3, 5)])
    assert [len(duty.charger.spent().releases) for duty in session.duties.values()] == [4, 4, 2]
    assert session.duties[3].charger.spent().epsilon < session.duties[1].charger.spent().epsilon


def test_an_aborted_run_keeps_its_charges():
    session = NoisySession(split(POINTS, 2), **given_start())
    with pytest.raises(TooFewPartiesError):
        session.run(faults=[Fault(FaultKind.DROP_REPLY, 1, 4)])
    assert [len(duty.charger.spent().releases) for duty in session.duties.values()] == [2, 2]
    assert len(session.duty.sampler.drawn) == 1


def test_a_party_whose_books_are_full_sends_nothing():
    session = NoisySession(split(POINTS, 2), **given_start())
    small = Accountant(Budget(epsilon=0.6, delta=1e-6))
    session.duties[1] = NoiseDuty(charger=small, sampler=RecordingSampler("p"))
    with told_to_owner(BudgetError, "spent"):
        session.run()
    assert small.spent().epsilon <= 0.6


@pytest.mark.parametrize("placement", [Shared(parties=3, colluding_max=1), Local(parties=3)])
def test_parties_can_add_the_noise_and_the_coordinator_then_knows_none(placement):
    budget = Budget(epsilon=8.0, delta=1e-6)
    session = NoisySession(split(POINTS, 3), placement=placement, budget=budget, members_min=3, **given_start())
    run, parties = session.run(record_views=True)
    totals = unmasked_totals(session, run, parties)
    assert not session.duty.sampler.drawn
    rounds = zip(*(duty.sampler.drawn for duty in session.duties.values()), strict=True)
    for total, exact, shares in zip(totals, exact_totals(session, totals), rounds, strict=True):
        assert np.array_equal(total - exact, np.sum([noise.reshape(3, 3) for _, noise in shares], axis=0))
    event = session.agreement.noise.release_of(1)
    if isinstance(placement, Shared):
        share = session.duties[1].sampler.drawn[0][0]
        assert event.mechanism == DiscreteGaussianSum(sigma=share.sigma, shares=2)
        assert share.sigma * math.sqrt(2) >= session.agreement.noise.target_of(1).sigma
    else:
        assert event.mechanism == session.agreement.noise.target_of(1)


def test_a_sum_needs_the_quorum_that_its_noise_was_scaled_to():
    shared = Shared(parties=4, colluding_max=1, quorum=3)
    with pytest.raises(ConfigError, match="members_min must be at least 3"):
        NoisySession(split(POINTS, 4), placement=shared, members_min=2)


@pytest.mark.parametrize(("quorum", "colluding_max"), [(3, 1), (4, 1), (4, 2), (4, 3)])
@pytest.mark.parametrize("masks", ["common", "double"])
@pytest.mark.parametrize("gone", [0, 1, 2])
def test_a_dropout_never_leaves_less_unknown_noise_than_was_charged(quorum, colluding_max, masks, gone):
    """Against each coalition that reads a sum, count the shares in it that it does not know."""
    placement = Shared(parties=4, colluding_max=colluding_max, quorum=quorum)
    session = NoisySession(
        split(POINTS, 4),
        placement=placement,
        members_min=quorum,
        masks=masks,
        colluding_max=colluding_max,
        **given_start(),
    )
    faults = [Fault(FaultKind.DROP_REQUEST, 4 - number, 5) for number in range(gone)]
    try:
        run, _ = session.run(faults=faults)
    except TooFewPartiesError:
        assert 4 - gone < quorum
        return
    charged = session.agreement.noise.release_of(1).mechanism
    shares = charged.shares if isinstance(charged, DiscreteGaussianSum) else 1
    assert all(len(members) - colluding_max >= shares for members in run.result.members)


def test_vectors_are_masked_before_they_reach_the_coordinator(monkeypatch):
    """Table 7.2, row P_S. Exact sums here are below 2^26 in magnitude; masked words are nearly all above."""

    def share_of_large_words():
        run, _ = NoisySession(split(POINTS, 3), **given_start()).run(record_views=True)
        vectors = [e.message.vector for e in run.views[0] if isinstance(e.message, Answered)]
        words = np.concatenate([np.frombuffer(vector, np.int32)[:-4] for vector in vectors])
        return (np.abs(words.astype(np.int64)) > 2**26).mean()

    assert share_of_large_words() > 0.9
    monkeypatch.setattr(MaskSchedule, "_potential", lambda self, round_, index, length: np.zeros(length, np.uint32))
    assert share_of_large_words() == 0  # the mutant that the line above must catch


def test_noise_spoils_little_when_records_are_many():
    """The error of a centre is what sigma says: a cluster of 200 records at epsilon 8."""
    session = NoisySession(split(POINTS, 3), budget=Budget(epsilon=8.0, delta=1e-6), **given_start())
    _, parties = session.run()
    exact = NoisySession(split(POINTS, 3), budget=Budget(epsilon=1e4, delta=1e-6), **given_start())
    _, reference = exact.run()
    sigma = session.agreement.noise.target_of(1).sigma / 2**16
    assert np.abs(parties[0].centres - reference[0].centres).max() < 6 * sigma / 150
    assert parties[0].state.released_counts.sum() == pytest.approx(600, abs=6 * sigma * math.sqrt(3))


def test_a_norm_bound_shrinks_the_noise():
    free, bounded = (NoisySession(split(POINTS, 2), norm_bound=bound).agreement.noise for bound in (None, 2**15))
    assert bounded.target_of(1).sigma < free.target_of(1).sigma
    assert bounded.rule.encoder.sensitivity.l2_squared == 2**30 + bounded.rule.encoder.count_weight**2


def test_constraints_and_missing_books_are_refused():
    session = NoisySession(split(POINTS, 2))
    with pytest.raises(ConfigError, match="one record can move others"):
        LloydState(
            agreement=session.agreement,
            records=session.record_tables[0],
            assignment=ConstrainedExclusive(alpha_min=1.25, alpha_max=1.25),
            duty=session.duties[1],
        )
    with pytest.raises(ConfigError, match="must keep books"):
        LloydState(agreement=session.agreement, records=session.record_tables[0])
    with pytest.raises(ConfigError, match="noise duty"):
        next(coordinate(session.agreement, entropy=SeededEntropy(1, "c"), session=SESSION))
    with pytest.raises(ConfigError, match="must come with a noise plan"):
        replace(session.agreement, noise=None)
    with pytest.raises(ConfigError, match="must come with a noise plan"):
        replace(session.agreement, variant="masked-sum-count")


def test_the_ring_has_room_for_the_noise():
    tiny = NoisySession(split(POINTS, 2), budget=Budget(epsilon=0.01, delta=1e-6))
    assert tiny.agreement.ring.bits == 64
    assert NoisySession(split(POINTS, 2)).agreement.ring.bits == 32


def test_release_charges_before_it_draws():
    event = NoisySession(split(POINTS, 2)).agreement.noise.release_of(1)
    order = []

    class Books:
        def charge(self, release):
            order.append("charge")
            raise BudgetError("full")

    class Sampler:
        is_simulation = True

        def draw(self, mechanism, entries, on_progress=None):
            order.append("draw")
            return np.zeros(entries, dtype=np.int64)

    with pytest.raises(BudgetError):
        release(np.zeros(event.entries, dtype=np.int64), event, duty=NoiseDuty(charger=Books(), sampler=Sampler()))
    assert order == ["charge"]


def test_every_round_has_the_same_mechanism_and_the_agreement_names_it():
    plan = NoisySession(split(POINTS, 2)).agreement.noise
    assert isinstance(plan.placement, Aggregator)
    assert isinstance(plan.release_of(1).mechanism, DiscreteGaussian)
    assert plan.release_of(1).mechanism == plan.release_of(4).mechanism
    budgets = (Budget(epsilon=epsilon, delta=1e-6) for epsilon in (1.0, 2.0))
    assert len({NoisySession(split(POINTS, 2), budget=budget).agreement.digest for budget in budgets}) == 2


PLANS = st.lists(
    st.builds(
        Fault,
        st.sampled_from([kind for kind in FaultKind if kind is not FaultKind.RESTART]),
        st.integers(1, 3),
        st.integers(0, 14),
    ),
    max_size=8,
)


@settings(max_examples=80, deadline=None)
@given(PLANS, st.sampled_from([None, Local(parties=3), Shared(parties=3, colluding_max=1)]))
def test_whatever_goes_wrong_each_round_is_charged_and_noised_once(plan, placement):
    """Duplicates, replays and lost answers never charge a party twice, nor draw a round's noise twice."""
    options = given_start()
    if isinstance(placement, Shared):
        options |= {"masks": "double", "members_min": 3, "colluding_max": 1}
    session = NoisySession(split(POINTS, 3), placement=placement, **options)
    try:
        run, _ = session.run(faults=plan)
        rounds = run.result.rounds
    except (TooFewPartiesError, DivergedError):
        rounds = None
    for duty in session.duties.values():
        names = [release.name for release in duty.charger.spent().releases]
        assert len(names) == len(set(names)) <= 4
        if placement is not None:
            assert len(duty.sampler.drawn) == len(names)
    if placement is None:
        drawn = len(session.duty.sampler.drawn)
        assert len(session.duty.charger.spent().releases) == drawn
        assert drawn == rounds or rounds is None
