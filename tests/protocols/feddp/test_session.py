"""FedDP-KMeans as a protocol: a session finds what a rehearsal finds; samples, dropouts and returns."""

from dataclasses import replace

import numpy as np
import pytest

from cloister.errors import BudgetError, ConfigError, LocalProtocolError, RemoteProtocolError, TooFewPartiesError
from cloister.numeric import FixedPoint
from cloister.privacy.accounting import Accountant, compose_plan
from cloister.privacy.placement import Local, Shared
from cloister.privacy.units import Budget, Unit
from cloister.protocols.feddp.options import ExtraSteps, Separation
from cloister.protocols.feddp.pipeline import bind_server
from cloister.protocols.feddp.published import list_plan
from cloister.protocols.feddp.server import POINTS_MOST, ServerStamp
from cloister.protocols.feddp.settings import FeddpSettings
from cloister.protocols.guided_sums.agreement import sample_key, sample_parties
from cloister.protocols.guided_sums.algorithm import rehearse
from cloister.protocols.guided_sums.messages import Answer
from cloister.runtime import Fault, FaultKind
from tests.protocols.feddp.sessions import BUDGET, Session, make_mixture
from tests.protocols.synopsis.test_leakage import shape_of
from tests.sessions import SESSION, ReplayingSampler, Table, blobs

PARTS, SERVER, CENTRES = make_mixture()
CLIENT = Budget(epsilon=1.0, delta=1e-6, unit=Unit.CLIENT)
ALL = ExtraSteps.algorithm_5(weight_min=0.1, sigma_max=0.05)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"records": 360},
        {"placement": Shared(parties=6, colluding_max=2), "members_min": 6},
        {"placement": Local(parties=6)},
        {"budget": CLIENT},
        {"variant": "published"},
        {"variant": "published", "budget": CLIENT, "records": 360},
        {"variant": "published", "lloyd_steps": 2},
        {"options": ALL},
        {"options": ExtraSteps(separation=Separation(weight_min=0.2, sigma_max=1e-4))},
        {"sample": 3},
        {"lloyd_steps": 0},
    ],
    ids=lambda options: ", ".join(options) or "default",
)
def test_a_session_finds_what_a_rehearsal_with_the_same_noise_finds(options):
    session = Session(PARTS, SERVER, **options)
    _, parties = session.run()
    rehearsal = rehearse(
        session.settings,
        session.records,
        pipeline=bind_server(SERVER),
        sampler=ReplayingSampler(session.added_noise()),
        stream=session.common,
        key=sample_key(session.agreement.digest, SESSION),
    )
    for party in parties:
        assert np.array_equal(party.centres, rehearsal.finding.centres)
        assert party.finding.sizes == rehearsal.finding.sizes
        assert np.array_equal(party.finding.centre_noise, rehearsal.finding.centre_noise)
    if session.settings.sample is None:
        charged = [duty.charger.spent().releases for duty in session.duties.values()]
        assert all(releases == rehearsal.releases for releases in charged)


def test_a_rehearsal_asks_a_sample_of_its_own_where_no_session_gives_one():
    session = Session(PARTS, SERVER, sample=3)
    session.run()
    rehearsal = rehearse(
        session.settings,
        session.records,
        pipeline=bind_server(SERVER),
        sampler=ReplayingSampler(session.added_noise()),
        stream=session.common,
    )
    assert np.isfinite(rehearsal.finding.centres).all()


def test_with_little_noise_it_finds_the_clusters():
    for epsilon, options in ((200.0, {}), (200.0, {"options": ALL}), (20.0, {"variant": "published"})):
        _, parties = Session(PARTS, SERVER, budget=Budget(epsilon=epsilon, delta=1e-6), **options).run()
        distances = ((CENTRES[:, None] - parties[0].centres) ** 2).sum(axis=2)
        assert np.sort(distances.argmin(axis=1)).tolist() == [0, 1, 2]
        assert distances.min(axis=1).max() < 0.01


def test_the_accountant_keeps_every_charge_within_the_budget():
    for options in ({}, {"budget": CLIENT}, {"options": ALL}, {"variant": "published"}):
        session = Session(PARTS, SERVER, **options)
        session.run()
        for duty in session.duties.values():
            spent = duty.charger.spent()
            assert 0.9 * session.settings.budget.epsilon < spent.epsilon <= session.settings.budget.epsilon


def test_a_party_that_was_away_counts_again():
    session = Session(PARTS, SERVER)
    run, parties = session.run(faults=[Fault(FaultKind.DROP_REQUEST, 2, 6)])
    assert [2 in members for members in run.result.members] == [True, False, *[True] * (run.result.rounds - 1)]
    assert all(np.array_equal(party.centres, parties[0].centres) for party in parties)
    assert len(session.duties[2].charger.spent().releases) == len(session.duties[1].charger.spent().releases) - 1


@pytest.mark.parametrize("kind", [FaultKind.DROP_REQUEST, FaultKind.DROP_REPLY, FaultKind.CRASH])
def test_dropouts_in_any_round_leave_one_result_for_all_that_finish(kind):
    steps = Session(PARTS, SERVER).agreement.steps
    for step in range(3, steps):
        faults = [Fault(kind, party, step) for party in (1, 4)]
        run, parties = Session(PARTS, SERVER).run(faults=faults)
        finished = [party for party in parties if party.finished]
        assert len(finished) >= 4
        assert all(np.array_equal(party.centres, finished[0].centres) for party in finished)
        assert min(map(len, run.result.members)) >= 4


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"options": ALL},
        {"placement": Shared(parties=6, colluding_max=1), "members_min": 6},
        {"variant": "published"},
    ],
    ids=lambda options: ", ".join(options) or "tight",
)
def test_a_session_has_the_same_form_whatever_the_parties_hold(options):
    """To the byte, and to the step; also where steps of appendix E are not needed."""
    shapes = []
    for own in (PARTS, [part[:1] for part in PARTS], [-part for part in PARTS]):
        session = Session(own, SERVER, **options)
        run, _ = session.run(record_views=True)
        shapes.append(shape_of(session, run))
    assert shapes[0] == shapes[1] == shapes[2]


def test_too_few_parties_stop_the_session():
    faults = [Fault(FaultKind.DROP_REPLY, party, 4) for party in range(1, 4)]
    with pytest.raises(TooFewPartiesError):
        Session(PARTS, SERVER).run(faults=faults)


def test_samples_follow_from_what_was_agreed_and_from_the_session():
    keys = [sample_key(digest, session) for digest in (b"a", b"b") for session in (bytes(16), bytes([1] * 16))]
    assert len({sample_parties(key, 1, parties=1000, size=9) for key in keys}) == 4


def test_a_sample_asks_and_charges_those_in_it_only():
    session = Session(PARTS, SERVER, sample=3)
    run, _ = session.run()
    rounds = run.result.rounds
    asked = [session.agreement.list_asked(number, session=SESSION) for number in range(1, rounds + 1)]
    assert list(run.result.members[:-1]) == asked
    assert run.result.members[-1] == (1, 2, 3, 4, 5, 6)
    assert len(set(asked)) > 1
    for number, duty in session.duties.items():
        assert len(duty.charger.spent().releases) == sum(number in members for members in asked)


def test_a_party_outside_the_sample_refuses():
    session = Session(PARTS, SERVER, sample=3)
    table = Table(session).play(4)  # the seed has been agreed on, and the first question stated
    asked = session.agreement.list_asked(1, session=SESSION)
    assert set(table.coordinator.ask.requests) == set(asked)
    request = table.request(asked[0])
    assert isinstance(request, Answer)
    outsider = next(number for number in range(1, 7) if number not in asked)
    with pytest.raises(RemoteProtocolError, match="must be in the sample of round 1"):
        table.parties[outsider].handle(request)


def test_samples_are_even():
    """Chi-squared over who is in 3000 samples of 4 out of 10; alpha = 1e-6 at 9 degrees of freedom is 44.8."""
    counts = np.zeros(10)
    for round_ in range(1, 3001):
        chosen = sample_parties(bytes(32), round_, parties=10, size=4)
        assert len(set(chosen)) == 4
        counts[np.array(chosen) - 1] += 1
    assert ((counts - 1200) ** 2 / (1200 * 0.6)).sum() < 44.8


def test_what_all_agree_on_about_the_servers_points_is_exact_in_any_order():
    """Its products are of BLAS: sums of integers below 2^53, for as many points as there may be."""
    points = FixedPoint().quantise(blobs(3000, 7, 3, seed=2))
    units = np.rint(points * 2**16).astype(np.int64)
    assert np.array_equal(points.T @ points, (units.T @ units) / 2.0**32)
    assert 4 * POINTS_MOST * 2**32 <= 2**53
    stamp = ServerStamp.of(points, dimensions=7, clusters=3)
    shuffled = ServerStamp.of(np.ascontiguousarray(points[::-1]), dimensions=7, clusters=3)
    assert (stamp.product_norm, stamp.points) == (shuffled.product_norm, shuffled.points)


def test_other_server_data_are_not_agreed_on():
    session = Session(PARTS, SERVER)
    other = SERVER.copy()
    other[0, 0] += 2.0**-16
    assert session.agreement.digest != Session(PARTS, other).agreement.digest
    with pytest.raises(LocalProtocolError, match="those that were agreed on"):
        next(bind_server(other)(session.settings, None))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"variant": "published", "budget": CLIENT}, "records must be declared"),
        ({"variant": "published", "options": ALL}, "as printed"),
        ({"sample": 0}, "sample must be"),
        ({"lloyd_steps": 51}, "lloyd_steps must be"),
        ({"clusters": 0}, "clusters must be"),
    ],
)
def test_refused_settings(options, message):
    usual = {"clusters": 3, "dimensions": 7, "budget": BUDGET, "parties": 6}
    with pytest.raises(ConfigError, match=message):
        FeddpSettings(**{**usual, **options})


@pytest.mark.parametrize("points", [SERVER[:2], SERVER[:, :3], SERVER * 3, np.full((9, 7), np.nan)])
def test_refused_server_data(points):
    settings = FeddpSettings(clusters=3, dimensions=7, budget=BUDGET, parties=6)
    with pytest.raises(ConfigError, match="the server's data must"):
        settings.for_server(points)


def test_settings_without_server_data_say_so():
    with pytest.raises(ConfigError, match="for_server"):
        _ = FeddpSettings(clusters=3, dimensions=7, budget=BUDGET, parties=6).slots


def test_a_published_plan_is_refused_by_a_smaller_budget():
    session = Session(PARTS, SERVER, variant="published")
    session.settings.noise  # noqa: B018  calibrated for epsilon 1
    smaller = replace(BUDGET, epsilon=0.5)
    with pytest.raises(BudgetError):
        Accountant(smaller, plan=list_plan(session.settings))


@pytest.mark.parametrize("each", [50, 400])
def test_the_published_variant_spends_its_budget_at_client_level(each):
    """Priced with its real lengths, the plan is composed by privacy loss distributions, and nothing is left over."""
    rng = np.random.default_rng(5)
    server = np.clip(rng.normal(0, 0.2, (60, 8)), -1, 1)
    settings = FeddpSettings(
        clusters=4,
        dimensions=8,
        budget=Budget(epsilon=1.0, delta=1e-6, unit="client"),
        parties=200,
        records=200 * each,
        variant="published",
    ).for_server(server)
    assert 0.99 <= compose_plan(list_plan(settings), settings.budget.delta).epsilon <= 1.0
