"""What the parties' books say is what the noise that was really drawn costs, and it is within the budget."""

from math import sqrt

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cloister.errors import DivergedError, TooFewPartiesError
from cloister.numeric import FixedPoint
from cloister.privacy.calibration import rho_for
from cloister.privacy.card import make_card
from cloister.privacy.placement import Aggregator, Local, Shared
from cloister.privacy.units import Budget, PersonBudget, Unit
from cloister.protocols.guided_sums.settings import BUDGET_UNITS
from cloister.protocols.synopsis.pipeline import run_synopsis
from cloister.records import ArrayRecords
from cloister.runtime import Fault, FaultKind
from tests.protocols.guided_sums.sessions import count_thrice, counted_names
from tests.protocols.synopsis.sessions import Session
from tests.sessions import blobs, split

DIMENSIONS = [1, 2, 10, 100, 784]
PLACEMENTS = [Aggregator(), Shared(parties=3, colluding_max=1), Local(parties=3)]
POINTS = {d: blobs(90, d, 2, seed=1) for d in DIMENSIONS}


class Watched:
    """The real algorithm, and every query that it makes."""

    def __init__(self):
        self.queries = []

    def __call__(self, public, stream):
        asking = run_synopsis(public, stream)
        query = next(asking)
        while True:
            self.queries.append(query)
            total = yield query
            try:
                query = asking.send(total)
            except StopIteration as stop:
                return stop.value


def play(dimensions, *, unit=Unit.RECORD, epsilon=1.0, members_min=3, **options):
    watched = Watched()
    kind = PersonBudget if unit is Unit.PERSON else Budget
    budget = kind(epsilon=epsilon, delta=1e-6, unit=unit)
    parts = split(POINTS[dimensions], 3)
    options |= {"members_min": members_min}
    session = Session(parts, clusters=2, budget=budget, algorithm=watched, **options)
    return session, watched


def drawn_sigmas(session):
    """The noise that was really drawn in each round, against one party that knows its own share."""
    if session.noise.drawn:
        return [mechanism.sigma for mechanism, _ in session.noise.drawn]
    shares = [mechanism.sigma for mechanism, _ in session.duties[1].sampler.drawn]
    unknown = 2 if isinstance(session.settings.placement, Shared) else 1
    return [sigma * sqrt(unknown) for sigma in shares]


@pytest.mark.parametrize("dimensions", DIMENSIONS)
@pytest.mark.parametrize("placement", PLACEMENTS, ids=lambda placement: type(placement).__name__)
@pytest.mark.parametrize("unit", [Unit.RECORD, Unit.CLIENT])
@pytest.mark.parametrize("records", [None, 90], ids=["private n", "public n"])
@pytest.mark.parametrize("epsilon", [1.0, 60.0])
def test_the_books_reconcile_with_what_ran(dimensions, placement, unit, records, epsilon):
    session, watched = play(dimensions, unit=unit, epsilon=epsilon, placement=placement, records=records)
    _, parties = session.run()
    sigmas = drawn_sigmas(session)
    assert len(sigmas) == len(watched.queries) == len(session.settings.slots)
    # Composed by hand from the queries that were made and the noise that was drawn: rho = Delta^2 / 2 sigma^2 each.
    pairs = list(zip(watched.queries, sigmas, strict=True))
    expected = sum(query.l2_squared / (2 * sigma**2) for query, sigma in pairs)
    assert sum(query.l2_squared for query in watched.queries) <= BUDGET_UNITS
    assert expected == pytest.approx(rho_for(session.settings.budget), rel=0.08)  # little is left over
    for spent in session.spent():
        assert spent.rho == pytest.approx(expected, rel=1e-6)
        assert spent.epsilon <= epsilon
        leakage, budget = session.roles.leakage(session.agreed), session.settings.budget
        card = make_card(spent, budget=budget, placement=placement, leakage=leakage, seeded=True)
        assert card.epsilon == spent.epsilon
        assert sum(release.rho for release in card.releases) == pytest.approx(expected, rel=1e-6)
    # Whatever had something of a record in it was charged, and nothing else was.
    exact = [total - noise for total, noise in zip(parties[0].released_totals, session.added_noise(), strict=True)]
    names = [query.name for query, total in zip(watched.queries, exact, strict=True) if total.any()]
    assert names == [release.name for release in session.spent()[0].releases]
    for query, total in zip(watched.queries, exact, strict=True):
        assert not total[query.length :].any()


@pytest.mark.parametrize("dimensions", DIMENSIONS)
@pytest.mark.parametrize("unit", [Unit.RECORD, Unit.CLIENT])
@pytest.mark.parametrize("epsilon", [1.0, 60.0])
def test_no_unit_contributes_more_than_the_budget_to_all_rounds_together(dimensions, unit, epsilon):
    """The sensitivities that were charged, against units made to be extreme: corners, edges, middles, real ones."""
    session, watched = play(dimensions, unit=unit, epsilon=epsilon)
    session.run()
    rng = np.random.default_rng(2)
    corner = rng.choice([-1.0, 1.0], (3, dimensions))
    edge = np.where(rng.uniform(size=(3, dimensions)) < 0.5, corner, 0.0)
    points = FixedPoint().quantise(np.vstack([corner, edge, POINTS[dimensions][:3], np.zeros((1, dimensions))]))
    tables = [point[None] for point in points]
    if unit is Unit.CLIENT:  # all records of a party together, however many
        tables += [np.repeat(points[:1], 1000, axis=0), np.repeat(points[:2], 500, axis=0), points, POINTS[dimensions]]
    for table in tables:
        spent = 0
        for query in watched.queries:
            vector = [int(number) for number in query.measure(ArrayRecords(FixedPoint().quantise(table)))]
            norm = sum(number**2 for number in vector)
            assert norm <= query.l2_squared
            assert sum(map(abs, vector)) <= query.sensitivity.l1
            spent += norm
        assert spent <= BUDGET_UNITS


@pytest.mark.parametrize("placement", PLACEMENTS, ids=lambda placement: type(placement).__name__)
def test_an_aborted_run_keeps_its_charges(placement):
    session, _ = play(2, placement=placement)
    step = 11 if session.agreement.sums.double else 8  # double masks: two more rounds' openings, and parties meet
    with pytest.raises(TooFewPartiesError):
        session.run(faults=[Fault(FaultKind.DROP_REPLY, 2, step)])
    whole, _ = play(2, placement=placement)
    whole.run()
    full = whole.spent()[0].releases
    answered = len(session.noise.drawn) + 1 if session.noise.drawn else len(session.duties[1].sampler.drawn)
    assert answered == 3
    for spent in session.spent():
        assert spent.releases == full[: len(spent.releases)]
        assert 0 < len(spent.releases) < len(full)


def test_a_party_that_drops_out_is_charged_for_what_it_answered_only():
    session, watched = play(10, members_min=2)
    session.run(faults=[Fault(FaultKind.CRASH, 3, 7)])
    names = [query.name for query in watched.queries if query.l2_squared]
    first, second, third = ([release.name for release in spent.releases] for spent in session.spent())
    assert first == second == names
    assert third == [query.name for query in watched.queries[:2] if query.l2_squared]
    assert 0 < len(third) < len(names)


FAULTS = st.lists(
    st.builds(
        Fault,
        st.sampled_from([kind for kind in FaultKind if kind is not FaultKind.RESTART]),
        st.integers(1, 3),
        st.integers(0, 17),
    ),
    max_size=8,
)


def require_one_finding(parties, faults):
    """Whoever found something found the same; who found nothing had a message changed on its way."""
    found = []
    for party in parties:
        if party.finished:
            try:
                found.append(party.finding.sizes.clusters)
            except DivergedError:
                assert {fault.kind for fault in faults} & {FaultKind.CORRUPT_REQUEST, FaultKind.CORRUPT_REPLY}
    assert all(weights == found[0] for weights in found)


@settings(max_examples=60, deadline=None)
@given(FAULTS, st.sampled_from([Aggregator(), Local(parties=3)]))
@example([Fault(FaultKind.CORRUPT_REPLY, 1, 4)], Aggregator())
@example([Fault(FaultKind.CORRUPT_REQUEST, 2, 17)], Aggregator())
@example([Fault(FaultKind.DROP_REPLY, 1, 3)], Aggregator())
def test_whatever_goes_wrong_each_round_is_charged_and_noised_once(faults, placement):
    """Duplicates, replays and lost answers never charge a party twice, nor draw a round's noise twice."""
    parts = [np.zeros((10**power, 1)) for power in range(3)]
    session = Session(parts, algorithm=count_thrice, placement=placement)
    try:
        run, parties = session.run(faults=faults)
        rounds = run.result.rounds
        require_one_finding(parties, faults)
    except TooFewPartiesError:
        rounds = None
    for duty in session.duties.values():
        names = [release.name for release in duty.charger.spent().releases]
        assert set(names) <= set(counted_names(session.settings))
        assert len(set(names)) == len(names)
        assert len(duty.sampler.drawn) <= len(session.settings.slots)
    drawn = len(session.noise.drawn)
    if isinstance(placement, Aggregator):
        assert drawn == rounds or rounds is None
    else:
        assert drawn == 0
