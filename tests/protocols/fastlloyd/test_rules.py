"""The printed formulas: rounds, budget split, noise, sizes, post-processing, schedules; and the default's step."""

import csv
import itertools
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cloister.crypto import Stream
from cloister.errors import ConfigError
from cloister.kmeans import ConstrainedEExclusive, ConstrainedExclusive, DistanceConstrained, Unconstrained
from cloister.numeric import FixedPoint
from cloister.privacy.simulation_sampler import SimulationSampler
from cloister.privacy.units import Budget
from cloister.protocols.fastlloyd.offsets import Offsets, find_moves, relocate
from cloister.protocols.fastlloyd.published import (
    PublishedSettings,
    count_rounds_by_centroids,
    count_rounds_by_sums,
    plan_published,
)
from cloister.protocols.fastlloyd.published_rules import PostProcessing
from cloister.protocols.fastlloyd.rehearsal import rehearse
from cloister.protocols.fastlloyd.sound import SoundSettings, plan_fastlloyd
from cloister.records import ArrayRecords
from tests.protocols.fastlloyd.sessions import PRESETS, FastLloydSession
from tests.sessions import blobs

SCALE = FixedPoint().scale
PEERS = Path(__file__).parents[4] / "shared" / "peers" / "fastlloyd_and_dp_peers.csv"
# The papers' data sets: N, k, d.
DATA = {
    "iris": (150, 3, 4),
    "lsun": (400, 3, 2),
    "house": (1837, 3, 3),
    "s1": (5000, 15, 2),
    "adult": (48_842, 3, 6),
    "birch2": (25_000, 100, 2),
}
METHODS = {"sulloyd_old": "sulloyd", "csulloyd_old": "csulloyd", "fastlloyd_old": "published"}


def options_of(preset, *, records=5000, clusters=15, dimensions=2, parties=2, **more):
    return PublishedSettings(
        preset=preset, records=records, clusters=clusters, dimensions=dimensions, parties=parties, **more
    )


# --- rounds (thesis 6.2.4, 6.3.3; FastLloyd 5.4) --------------------------------------------------------------------


@pytest.mark.skipif(not PEERS.exists(), reason="needs ../shared/peers beside the repository")
def test_the_number_of_rounds_is_that_of_the_authors_code():
    with PEERS.open() as file:
        rows = [row for row in csv.DictReader(file) if row["method"] in METHODS and row["dataset"] in DATA]
    assert len(rows) >= 60
    for row in rows:
        records, clusters, dimensions = DATA[row["dataset"]]
        options = options_of(METHODS[row["method"]], records=records, clusters=clusters, dimensions=dimensions)
        assert options.count_rounds(float(row["eps"])) == int(row["T"]), row
    assert {row["T"] for row in rows} >= {"2", "4", "7"}


@given(st.floats(0.01, 100), st.integers(10, 10**6), st.integers(1, 100), st.integers(1, 50), st.integers(1, 5))
def test_one_round_more_would_leave_too_much_error(epsilon, records, k, d, e):
    """T rounds of epsilon / T each, from 2 to 7: T is the most for which the error of one round is at most 0.004."""
    weight = (4 * d * 0.225**2) ** (1 / 3)
    size_min = max(1, records // k)

    def error_of_sums(rounds):
        return 2 * (e * rounds) ** 2 * k**3 / (epsilon * records) ** 2 * (d + weight) ** 3

    def error_of_centroids(rounds):
        return 2 * k * d**3 * (rounds * e) ** 2 / (epsilon * size_min) ** 2

    by_sums = count_rounds_by_sums(epsilon, records=records, clusters=k, dimensions=d, memberships=e)
    by_centroids = count_rounds_by_centroids(epsilon, size_min=size_min, clusters=k, dimensions=d, memberships=e)
    for rounds, error in ((by_sums, error_of_sums), (by_centroids, error_of_centroids)):
        assert 2 <= rounds <= 7
        assert rounds == 2 or error(rounds) <= 0.004 * (1 + 1e-9)
        assert rounds == 7 or error(rounds + 1) >= 0.004 * (1 - 1e-9)


def test_given_rounds_are_taken():
    assert len(plan_published(options_of("mna", iterations=1), Budget(epsilon=1.0, delta=0.0)).targets) == 1


# --- the budget and the noise (thesis 6.2.1, 6.2.3, 6.3.1) ----------------------------------------------------------


@pytest.mark.parametrize("dimensions", [1, 2, 10, 100])
@pytest.mark.parametrize(("epsilon", "rho"), [(0.1, 0.225), (1.0, 0.225), (4.0, 0.5)])
def test_sums_and_counts_have_the_printed_noise(dimensions, epsilon, rho):
    plan = plan_published(options_of("sulloyd", dimensions=dimensions, rho=rho), Budget(epsilon=epsilon, delta=0.0))
    rounds, cube_root = len(plan.targets), (4 * dimensions * rho**2) ** (1 / 3)
    epsilon_sum = epsilon / rounds / (dimensions + cube_root)
    epsilon_count = cube_root * epsilon_sum
    assert rounds * (dimensions * epsilon_sum + epsilon_count) == pytest.approx(epsilon)
    for target in plan.targets:
        assert target.scale / SCALE == pytest.approx(1 / epsilon_sum, rel=1e-4)  # Lap(B / epsilon^Sigma)
        assert target.scale / plan.rule.count_weight == pytest.approx(1 / epsilon_count, rel=1e-4)


@pytest.mark.parametrize("dimensions", [1, 2, 10])
@pytest.mark.parametrize("preset", ["published", "amn"])
def test_centroids_have_the_printed_noise(preset, dimensions):
    epsilon = 1.0
    options = options_of(preset, dimensions=dimensions)
    plan = plan_published(options, Budget(epsilon=epsilon, delta=0.0))
    epsilon_mean = epsilon / len(plan.targets) / dimensions
    printed = 1 / options.size_min / epsilon_mean  # Lap(Delta^mu / epsilon^mu), Delta^mu = B / c_min
    for target in plan.targets:
        steps = (target.scale / SCALE - printed) * SCALE * epsilon_mean
        assert -1e-3 < steps <= 2.001  # one step of the grid for rounding, and less than one to a whole number


@pytest.mark.parametrize("preset", PRESETS)
def test_a_record_in_several_clusters_costs_as_many_times_the_noise(preset):
    """E-exclusive: Delta^Sigma = B E, Delta^C = E, Delta^mu = B E / c_min."""
    one, three = (
        plan_published(
            options_of(preset, assignment="constrained-e-exclusive", memberships_max=e, iterations=2),
            Budget(epsilon=1.0, delta=0.0),
        )
        for e in (1, 3)
    )
    ratio = three.targets[0].scale / one.targets[0].scale
    assert ratio == pytest.approx(3, rel=0.02 if one.rule.width == 2 else 1e-6)
    everywhere = plan_published(
        options_of(preset, assignment="constrained-non-exclusive", iterations=2), Budget(epsilon=1.0, delta=0.0)
    )
    assert everywhere.targets[0].scale / one.targets[0].scale == pytest.approx(15, rel=0.02)


def test_the_distance_constraint_has_its_schedule_and_its_noise():
    """eta_d = sqrt(B^2 / 2t) (Eqn 19), Delta^mu = 2 eta_d / c_min (Eqn 13), never more than B / c_min."""
    options = options_of("published", assignment="distance-constrained", iterations=7)
    plan = plan_published(options, Budget(epsilon=1.0, delta=0.0))
    radii = [math.sqrt(1 / (2 * t)) for t in range(1, 8)]
    assert plan.rule.constraints.radii == pytest.approx(radii)
    for t, radius in enumerate(radii, start=1):
        entry = min(1.0, 2 * radius) * SCALE / options.size_min
        assert entry <= plan.rule.sensitivity_of(t).l1 / 2 <= entry + 2
        assert plan.target_of(t).scale == pytest.approx(7 * plan.rule.sensitivity_of(t).l1, rel=1e-6)
        assert plan.rule.constraints.at_round(options.make_assignment(), t).radius == pytest.approx(radius)
    fixed = options_of("published", assignment="distance-constrained", iterations=3, radius=0.4)
    assert fixed.make_radii(3) == (0.4,) * 3


# --- sizes (Eqn 8; thesis 7.1.3) ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("preset", "alpha_min", "alpha_max"),
    [("published", 1.25, 1.25), ("csulloyd", 1.25, 1.25), ("mna", 1.5, 3.0), ("amn", 1.5, 3.0)],
)
@pytest.mark.parametrize(("records", "clusters", "parties"), [(5000, 15, 2), (1837, 3, 7), (100, 9, 3)])
def test_sizes_follow_from_n_and_are_divided_among_the_parties(
    preset, alpha_min, alpha_max, records, clusters, parties
):
    options = options_of(preset, records=records, clusters=clusters, parties=parties)
    least, most = math.ceil(records / (alpha_min * clusters)), math.floor(alpha_max * records / clusters)
    assert (options.size_min, options.size_max) == (least, most)
    local = options.make_assignment()
    assert isinstance(local, ConstrainedExclusive)
    assert (local.size_min, local.size_max) == (math.ceil(least / parties), most // parties)
    assert parties * local.size_min >= least
    assert parties * local.size_max <= most
    changed = options_of(preset, records=records, clusters=clusters, parties=parties, alpha_min=2.0, alpha_max=4.0)
    assert (changed.size_min, changed.size_max) == (
        math.ceil(records / (2.0 * clusters)),
        math.floor(4.0 * records / clusters),
    )


def test_sizes_that_no_party_can_meet_are_refused_where_they_are_used():
    with pytest.raises(ConfigError, match="from 3 to 2"):
        options_of("published", records=20, clusters=4, parties=2, alpha_min=1.0, alpha_max=1.1)
    assert options_of("sulloyd", records=2, clusters=2, parties=3).size_min == 1  # fewer records than parties


def test_every_assignment_can_be_asked_for():
    kinds = {
        "constrained-exclusive": ConstrainedExclusive,
        "constrained-e-exclusive": ConstrainedEExclusive,
        "distance-constrained": DistanceConstrained,
        "unconstrained": Unconstrained,
    }
    for name, kind in kinds.items():
        assert type(options_of("published", assignment=name).make_assignment()) is kind
    assert type(options_of("sulloyd").make_assignment()) is Unconstrained


# --- post-processing (thesis 6.1.3, 8.4) ----------------------------------------------------------------------------

CORRECTIONS = ("none", "truncate", "fold")


def correct(values, how, low, high):
    if how == "truncate":
        return np.clip(values, low, high)
    return values if how == "none" else high - np.abs((values - low) % (2 * (high - low)) - (high - low))


@pytest.mark.parametrize("how", list(itertools.product(CORRECTIONS, repeat=3)), ids="-".join)
def test_all_27_combinations_of_post_processing(how):
    options = options_of("mna", records=60, clusters=3, post=PostProcessing(sums=how[0], counts=how[1], centres=how[2]))
    plan = plan_published(options, Budget(epsilon=1.0, delta=0.0))
    rng = np.random.default_rng(1)
    total = np.hstack(
        [
            rng.integers(-90 * SCALE, 90 * SCALE, (3, 2)),
            plan.rule.count_weight * rng.integers(1, 90, (3, 1)) * np.array([[1], [-1], [1]]),
        ]
    )
    sums = correct(total[:, :2] / SCALE, how[0], -60, 60)
    counts = correct(total[:, 2] / plan.rule.count_weight, how[1], options.size_min, options.size_max)
    expected = correct(sums / counts[:, None], how[2], -1, 1)
    moved = plan.rule.move(np.zeros((3, 2)), total, round_=1, members=2)
    assert moved == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("how", ["truncate", "fold"])
def test_a_count_that_can_have_one_value_only_has_that(how):
    """N = 5 and k = 3 leave c_min = c_max = 2."""
    options = options_of("csulloyd", records=5, clusters=3, post=PostProcessing(counts=how))
    assert options.size_min == options.size_max == 2
    plan = plan_published(options, Budget(epsilon=1.0, delta=0.0))
    total = np.array([[SCALE, SCALE, -7]] * 3)
    assert plan.rule.move(np.zeros((3, 2)), total, round_=1, members=2) == pytest.approx(np.full((3, 2), 0.5))


@pytest.mark.parametrize("how", CORRECTIONS)
def test_noisy_centroids_are_corrected_and_averaged_over_those_who_stayed(how):
    options = options_of("amn", parties=4, post=PostProcessing(centres=how))
    plan = plan_published(options, Budget(epsilon=1.0, delta=0.0))
    total = np.array([[2 * SCALE, SCALE // 2], [-SCALE // 8, 5 * SCALE]])
    moved = plan.rule.move(np.zeros((2, 2)), total, round_=1, members=3)
    assert moved == pytest.approx(correct(total / SCALE * 4 / 3, how, -1, 1))


def test_a_cluster_of_noisy_count_zero_keeps_its_centre():
    plan = plan_published(options_of("sulloyd", clusters=2), Budget(epsilon=1.0, delta=0.0))
    total = np.array([[SCALE, SCALE, 0], [SCALE, SCALE, 2 * plan.rule.count_weight]])
    centres = np.array([[0.3, 0.4], [0.3, 0.4]])
    assert plan.rule.move(centres, total, round_=1, members=2) == pytest.approx(np.array([[0.3, 0.4], [0.5, 0.5]]))


# --- the first centres (thesis 4.2.2, 5.1) --------------------------------------------------------------------------


@pytest.mark.parametrize("initialisation", ["sphere-packing", "random"])
def test_both_initialisations_look_at_the_seed_only(initialisation):
    session = FastLloydSession(start=(), initialisation=initialisation)
    first, again, other = (session.agreement.draw_start(Stream.from_seed(seed, "start")) for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
    assert (np.abs(first) <= 1).all()
    _, parties = session.run()
    assert len({party.centres.tobytes() for party in parties}) == 1


# --- the default: its schedule and its step -------------------------------------------------------------------------


@given(st.integers(1, 200), st.integers(1, 800), st.integers(1, 20), st.none() | st.floats(1e-3, 100))
def test_radii_never_grow_and_stay_within_the_domain(clusters, dimensions, rounds, radius):
    options = SoundSettings(
        clusters=clusters, dimensions=dimensions, parties=2, max_records=100, iterations=rounds, radius=radius
    )
    diagonal = 2 * math.sqrt(dimensions)
    assert len(options.radii) == rounds
    assert all(0 < after <= before <= diagonal for before, after in itertools.pairwise((diagonal, *options.radii)))


@pytest.mark.parametrize("max_records", [2, 100, 10_000, 500_000])
@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_a_plan_takes_the_finest_grid_that_fits_the_small_ring(max_records, epsilon):
    budget = Budget(epsilon=epsilon, delta=1e-6)
    options = SoundSettings(clusters=15, dimensions=2, parties=2, max_records=max_records)
    plan = plan_fastlloyd(options, budget)
    most = plan.rule.bound_sum(2, max_records) + plan.reach
    assert most < 2**31
    assert plan.rule.scale == 2**16 or 2 * most > 2**31 - 10  # all of it is in proportion to the scale
    wide = SoundSettings(clusters=15, dimensions=2, parties=2, max_records=max_records, ring_bits=64)
    assert plan_fastlloyd(wide, budget).rule.scale == 2**16


def offsets_without_noise(radius, rounds=1, dimensions=2):
    return Offsets(dimensions=dimensions, radii=(radius,) * rounds, scale=2**16, count_weight=2**15, deviation=0.0)


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32))
def test_without_noise_and_bounds_a_step_is_lloyds(seed):
    points = FixedPoint().quantise(blobs(80, 2, 3, seed=seed))
    centres = np.add(points[:3], [[0, 0], [1e-3, 0], [0, 1e-3]])
    rule = offsets_without_noise(4.0)
    moved = rule.move(centres, rule.contribute(ArrayRecords(points), centres, 1, Unconstrained()), round_=1, members=1)
    nearest = ((points[:, None] - centres) ** 2).sum(axis=2).argmin(axis=1)
    for cluster in range(3):
        own = points[nearest == cluster]
        assert moved[cluster] == pytest.approx(own.mean(axis=0) if len(own) else centres[cluster], abs=3e-4)


@example(seed=4194892, radius=2.0, deviation=6864798.0)  # a step of exactly zero in much noise
@given(st.integers(0, 2**32), st.floats(0.01, 2.0), st.floats(0, 1e9))
def test_no_centre_leaves_the_domain_or_steps_further_than_the_radius(seed, radius, deviation):
    rng = np.random.default_rng(seed)
    rule = Offsets(dimensions=2, radii=(radius,), scale=2**10, count_weight=500, deviation=deviation)
    total = rng.integers(-(2**31), 2**31, (4, 3)) >> rng.integers(0, 31)
    centres = rng.uniform(-1, 1, (4, 2))
    moved = rule.move(centres, total, round_=1, members=1)
    assert (np.abs(moved) <= 1).all()
    assert (np.linalg.norm(moved - centres, axis=1) <= radius * (1 + 1e-9)).all()


def test_steps_that_are_mostly_noise_are_shortened_and_those_that_are_all_noise_left_out():
    rule = Offsets(dimensions=2, radii=(0.5,), scale=1000, count_weight=500, deviation=1000.0)
    centres = np.zeros((1, 2))

    def step_of(size):
        return np.linalg.norm(rule.move(centres, np.array([[size, 0, 50 * 500]]), round_=1, members=1))

    assert step_of(900) == 0  # below the noise of two columns, 1000 sqrt(2 / 2)
    assert 0 < step_of(2000) < 2000 * 0.5 / 1000 / 50
    assert step_of(40_000) == pytest.approx(40_000 * 0.5 / 1000 / 50, rel=0.01)


def test_an_idle_centre_goes_beside_a_busy_one():
    centres = np.array([[-0.5, 0.0], [0.5, 0.0], [0.9, 0.9]])
    moves = find_moves(np.array([900.0, 300.0, 3.0]), count_noise=1.0)
    assert moves == [(2, 0)]
    moved = relocate(centres, moves, distance=0.5, turn=1)
    assert np.array_equal(moved[:2], centres[:2])
    assert 0 < np.linalg.norm(moved[2] - centres[0]) < 0.1
    for counts in ([400.0, 400.0, 390.0], [3.0, 4.0, 2.0], [900.0, 300.0, 200.0]):
        assert not find_moves(np.array(counts), count_noise=2.0)


def test_nobody_is_relocated_in_the_last_rounds():
    rule = offsets_without_noise(0.5, rounds=4)
    centres = np.array([[-0.5, 0.0], [0.9, 0.9]])
    total = np.array([[0, 0, 2**15 * 900], [0, 0, 2**15 * 3]])
    moved = [not np.array_equal(rule.move(centres, total, round_=t, members=1), centres) for t in (1, 2, 3, 4)]
    assert moved == [True, True, False, False]


def test_with_little_noise_the_centre_of_a_lopsided_cluster_is_its_mean():
    """Offsets are shortened as far as noise asks for it, and no further: the bias goes with the noise."""
    grid = FixedPoint()
    points = grid.quantise(np.clip(np.random.default_rng(5).exponential(0.3, (6000, 2)) - 1, -1, 1))
    errors = []
    for epsilon in (1.0, 1e4):
        options = SoundSettings(clusters=1, dimensions=2, parties=1, max_records=6000)
        plan = plan_fastlloyd(options, Budget(epsilon=epsilon, delta=1e-6))
        sampler = SimulationSampler(Stream.from_seed(1, "noise"))
        found = rehearse(plan, [ArrayRecords(points)], np.zeros((1, 2)), sampler=sampler).centres
        errors.append(np.abs(found - points.mean(axis=0)).max())
    assert errors[0] < 0.03
    assert errors[1] < 1e-4
