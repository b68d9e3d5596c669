"""FedDP's public values and its steps, written a second time; see docs/study-feddp.md and docs/proofs/feddp.md."""

from __future__ import annotations

import math

import numpy as np
import pytest

from cloister.crypto import Stream
from cloister.privacy.centre_noise import UNKNOWN
from cloister.privacy.units import Budget, Unit
from cloister.protocols.feddp import initialisation
from cloister.protocols.feddp.initialisation import Proxy, Start, cluster_proxy, find_projection, release_weights
from cloister.protocols.feddp.options import ExtraSteps, FeddpKnobs, Separation
from cloister.protocols.feddp.pipeline import _find_radius, _find_width
from cloister.protocols.feddp.reduction import plan_relocation
from cloister.protocols.feddp.server import ServerData
from cloister.protocols.feddp.settings import FeddpSettings, count_simplify_rounds
from cloister.protocols.guided_sums.settings import BUDGET_UNITS
from cloister.protocols.guided_sums.statistics import Subspace
from tests.protocols.synopsis.steps import answer

SERVER = np.random.default_rng(4).uniform(-0.7, 0.7, (37, 4))


def settings_of(k=3, d=4, unit=Unit.RECORD, parties=6, epsilon=1.0, server=SERVER, **options):
    budget = Budget(epsilon=epsilon, delta=1e-6, unit=unit)
    made = FeddpSettings(clusters=k, dimensions=d, budget=budget, parties=parties, **options)
    return made if server is None else made.for_server(server)


@pytest.mark.parametrize(("points", "rounds"), [(1, 2), (2, 2), (3, 3), (4, 3), (5, 4), (256, 9), (257, 10)])
def test_rounds_until_no_point_is_left(points, rounds):
    """Halving: ceil(log2 Q) rounds leave one, and one more none; at least two points are assumed."""
    assert count_simplify_rounds(points) == rounds == math.ceil(math.log2(max(points, 2))) + 1


def test_steps_by_default_and_as_stated():
    assert settings_of().rounds == 4
    assert settings_of(variant="published").rounds == 1
    for steps in (0, 7, 50):
        assert settings_of(lloyd_steps=steps).rounds == 1 + steps
        assert settings_of(lloyd_steps=steps, variant="published").rounds == 1 + steps
    for steps in (-1, 51):
        with pytest.raises(ValueError, match=f"lloyd_steps must be from 0 to 50; got {steps}"):
            settings_of(lloyd_steps=steps)
    limits = settings_of(lloyd_steps=7).round_limits
    assert (limits.least, limits.most) == (8, 8)


def test_a_sample_of_the_parties():
    for sample in (1, 6):
        assert settings_of(sample=sample).sampled == sample / 6
        assert settings_of(sample=sample).sample_size == sample
    assert settings_of().sampled == 1.0
    for sample in (0, 7):
        with pytest.raises(ValueError, match="sample must be from 1 to 6 parties"):
            settings_of(sample=sample)
    assert settings_of(sample=2).scaled_to(9).sample is None


def test_what_a_round_may_ask():
    assert settings_of().axes_most == 3
    assert settings_of(k=9).axes_most == 4
    assert settings_of().clear == 1.0
    assert settings_of(options=ExtraSteps(clear_only=True)).clear == 3.0
    assert not settings_of().may_drop_points
    assert settings_of(options=ExtraSteps(simplify=True)).may_drop_points
    assert settings_of(options=ExtraSteps(separation=Separation(sigma_max=1e-4, weight_min=0.1))).may_drop_points
    assert settings_of().groups_most == 0


@pytest.mark.parametrize("sigma", [1e-5, 1e-4, 4e-4, 0.01])
def test_groups_that_fit_the_domain(sigma):
    """g groups, 100 D apart with D = 4 log(3) sqrt(d) sigma, no longer than the diameter 2 sqrt(d)."""
    own = settings_of(options=ExtraSteps(separation=Separation(sigma_max=sigma, weight_min=0.1)))
    most = 1 + math.floor(2 / (100 * 4 * math.log(3) * sigma))
    assert own.groups_most == min(most, 37)


def test_published_bounds_of_a_record_and_of_a_client():
    own = settings_of(variant="published", lloyd_steps=2)
    bounds = own.bounds
    assert (bounds.products_l2, bounds.weights_l1, bounds.sums_l2, bounds.counts_l1) == (4096**2, 1, 4096, 1)
    assert (bounds.products_entries, bounds.sums_entries) == (10, 12)
    assert own.prices_most == 4096**4 + 1 + 3 * (4096**2 + 1)
    assert own.contribution_most == 4096**2
    client = settings_of(variant="published", unit=Unit.CLIENT, records=605)
    bounds, stamp, each = client.bounds, client.stamp, round(605 / 6)
    typical = math.sqrt(each * stamp.mean_fourth + each * (each - 1) * stamp.product_norm**2)
    assert bounds.products_l2 == math.ceil(typical * 4096**2)
    assert (bounds.weights_l1, bounds.counts_l1) == (each, 3)
    assert bounds.sums_l2 == math.ceil(math.sqrt(3) * 4096)
    few = settings_of(variant="published", unit=Unit.CLIENT, records=1).bounds
    assert few.weights_l1 == 1
    assert few.products_l2 == math.ceil(math.sqrt(stamp.mean_fourth) * 4096**2)


def test_what_is_sent_in_which_round():
    names = [(slot.name, slot.length) for slot in settings_of(options=ExtraSteps(simplify=True), records=10).slots]
    simplify = [(f"weights while simplifying, {t}", 37) for t in range(7)]
    assert names[0] == ("sums and second moments", 4 + 10)
    assert names[1:9] == [*simplify, ("weights of the server's points", 37)]
    published = settings_of(variant="published", lloyd_steps=1)
    assert [(slot.name, slot.length) for slot in published.slots] == [
        ("outer products", 10),
        ("weights of the server's points", 37),
        ("sums, step 0", 12),
        ("counts, step 0", 3),
        ("sums, step 1", 12),
        ("counts, step 1", 3),
    ]
    separated = settings_of(options=ExtraSteps(separation=Separation(sigma_max=1e-4, weight_min=0.1)), records=10)
    assert [slot.name for slot in separated.slots][:2] == ["records near each of the server's points", names[0][0]]


def test_shares_before_the_steps_leave_a_part_for_them():
    """The number of records, the moments, the points' weights, and 0.3 for simplification."""
    options = ExtraSteps(simplify=True, simplify_share=0.3)
    settings_of(knobs=FeddpKnobs(weight_share=0.44), options=options)
    with pytest.raises(ValueError, match=r"at most 0\.95 together"):
        settings_of(knobs=FeddpKnobs(weight_share=0.442), options=options)
    settings_of(knobs=FeddpKnobs(weight_share=0.442), options=ExtraSteps(simplify_share=0.3))


def test_what_is_known_of_the_servers_points():
    server, own = ServerData(points=SERVER), settings_of()
    squares = (SERVER**2).sum(axis=1)
    assert server.longest == pytest.approx(math.sqrt(squares.max()))
    lengths = np.linalg.norm(SERVER - SERVER.mean(axis=0), axis=1)
    assert server.radius == pytest.approx(np.median(lengths))
    short = (SERVER - SERVER.mean(axis=0)) * np.minimum(1, np.median(lengths) / lengths)[:, None]
    assert np.allclose(server.covariance, short.T @ short / 37, rtol=1e-9, atol=1e-12)
    assert own.stamp.mean_fourth == pytest.approx((squares**2).mean() / squares.max() ** 2)
    assert own.stamp.product_norm == pytest.approx(np.linalg.norm(SERVER.T @ SERVER / 37) / squares.max())
    same = ServerData(points=np.zeros((3, 2)))
    assert (same.longest, same.radius) == (1e-6, 1e-6)


# --- steps ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.3, 30.0])
def test_the_projection_is_of_both_covariances_by_their_precision(epsilon, monkeypatch):
    own = settings_of(k=2, epsilon=epsilon)
    server = ServerData(points=SERVER)
    rng = np.random.default_rng(9)
    second = rng.normal(size=(4, 4)) * 30
    second = second @ second.T / 20 + 300 * np.eye(4)

    class Moments:
        sums = np.array([40.0, -20.0, 10.0, 5.0])
        sum_noise, noise = 0.4, 80.0 / epsilon

    Moments.second = second

    def given(settings, *, l2_squared, middle, radius):
        assert (l2_squared, radius) == (BUDGET_UNITS // 5, server.radius)
        assert np.array_equal(middle, server.middle)
        return Moments
        yield

    monkeypatch.setattr(initialisation, "release_moments", given)
    with pytest.raises(StopIteration) as stop:
        next(find_projection(own, server, l2_squared=BUDGET_UNITS // 5, records=1000.0))
    mean = Moments.sums / 1000
    mean = mean * max(0.0, 1 - 2 * (0.4 / 1000) ** 2 / (mean @ mean))
    theirs = server.covariance
    of_ours = (Moments.noise / 1000) ** 2 / 2
    of_theirs = 4 * (np.trace(theirs) / 4) ** 2 / 37
    seen = second / 1000 - np.outer(mean, mean)
    both = (seen / of_ours + server.covariance / of_theirs) / (1 / of_ours + 1 / of_theirs)
    vectors = np.linalg.eigh(both)[1][:, ::-1][:, :2]
    found = stop.value.value
    assert np.allclose(np.abs(found.axes.T @ vectors), np.eye(2), atol=1e-9)
    assert np.allclose(found.origin, np.clip(server.middle + mean, -1, 1))


def test_weights_are_those_of_the_nearest_points_and_their_noise_is_stated():
    own = settings_of(epsilon=50.0)
    subspace = Subspace(origin=np.full(4, 0.1), axes=np.eye(4)[:, :2])
    records = np.repeat(SERVER[:5], [100, 200, 300, 50, 10], axis=0)
    kept = np.arange(0, 30)
    asking = release_weights(own, SERVER, kept, subspace, l2_squared=BUDGET_UNITS // 4, records=660.0)
    answered = answer(asking, [records])
    proxy = answered.found
    assert np.allclose(proxy.places, (SERVER[kept] - 0.1)[:, :2])
    assert np.allclose(proxy.weights[:5], [100, 200, 300, 50, 10], atol=3)
    assert (proxy.weights >= 6.6e-7).all()
    assert proxy.variance == pytest.approx((own.noise_std / math.isqrt(BUDGET_UNITS // 4)) ** 2)


def test_clusters_of_the_servers_points():
    proxy = Proxy(
        places=np.array([[0.0, 0.0], [0.1, 0.0], [0.9, 0.0], [0.9, 0.2], [0.8, 0.1]]),
        weights=np.array([30.0, 10.0, 5.0, 5.0, 10.0]),
        variance=3.0,
    )
    start = cluster_proxy(proxy, 2, restarts=4, stream=Stream.from_seed(1, "proxy"))
    order = np.argsort(start.places[:, 0])
    assert np.allclose(start.places[order], [[0.025, 0.0], [0.85, 0.1]])
    assert np.allclose(start.weights[order], [40, 20])
    assert np.allclose(start.weight_variances[order], [6, 9])
    blur = 3.0 * (0.025**2 + 0.075**2) / 40**2
    assert np.allclose(start.place_variances[order][0], [blur, 0.0])
    assert (start.place_variances <= UNKNOWN).all()


def test_radius_and_width_are_typical_distances_and_never_nothing():
    start = Start(
        places=np.array([[0.0, 0.0], [1.0, 0.0]]),
        labels=np.array([0, 0, 1], dtype=np.int32),
        weights=np.ones(2),
        weight_variances=np.ones(2),
        place_variances=np.zeros((2, 2)),
    )
    weights = np.array([2.0, 1.0, 1.0])
    points = np.array([[0.0, 0.3], [0.4, 0.0], [1.0, 0.2]])
    square = (2 * 0.09 + 0.16 + 0.04) / 4
    assert _find_radius(points, start.places, start, weights) == pytest.approx(math.sqrt(square))
    proxy = Proxy(places=points, weights=weights, variance=1.0)
    assert _find_width(proxy, start) == pytest.approx(1.6 * math.sqrt(square))
    at_once = start.places[start.labels]
    assert _find_radius(at_once, start.places, start, weights) == 1e-6
    assert _find_width(Proxy(places=at_once, weights=weights, variance=1.0), start) == 1e-6


def test_points_are_dropped_frozen_and_grouped_by_what_is_within_reach():
    line = np.array([0.0, 0.01, 0.02, 0.5, 0.9, 0.905, 0.91, 0.915])[:, None] * [1.0, 0.0]
    weights = np.array([10.0, 0.0, 10.0, 19.0, 0.0, 0.0, 0.0, 0.0])
    plan = plan_relocation(line, weights, reach=0.0101, least_records=20, least_points=4)
    # The first and the third see 10 records, the one between them 20; 0.5 has 19; of the last four, three are within
    # reach of the outer ones, and all four of the inner ones.
    assert plan.groups.tolist() == [-1, 0, -1, -1, -1, 1, 1, -1] or plan.scale == 1.0
    kept = plan_relocation(line, weights, reach=0.0101, least_records=1e9, least_points=1e9)
    assert (kept.groups == 0).all()
    assert not kept.group_shifts.any()
    assert kept.scale == 1.0


def test_groups_are_put_a_hundred_diameters_apart_around_the_origin():
    near = np.array([[0.0, 0.0], [1e-4, 0.0], [0.9, 0.9], [0.9, 0.9003], [-0.9, 0.9]])
    plan = plan_relocation(near, np.full(5, 9.0), reach=5e-4, least_records=5, least_points=9)
    moved = near + plan.group_shifts[plan.groups]
    widest = 5e-4
    firsts = moved[[0, 2, 4]]
    assert np.allclose(np.diff(firsts[:, 0]), 100 * widest)
    assert np.allclose(np.diff(firsts[:, 1]), 0, atol=1e-12)
    assert np.allclose(moved.mean(axis=0), 0, atol=1e-12)
    outermost = np.abs(moved).max() + widest
    assert plan.scale == pytest.approx(min(1.0, 1 / outermost))
    wide = plan_relocation(near * [1, 1], np.full(5, 9.0), reach=2e-4, least_records=5, least_points=9)
    assert np.allclose(np.diff(wide.group_shifts[np.unique(wide.groups)][:, 0] + near[[0, 2, 3, 4]][:, 0])[:1], 0.02)
