"""The algorithm: Lloyd exactly where there is no noise; a start and steps that noise does not decide."""

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest

from cloister.crypto import Stream
from cloister.errors import LocalProtocolError
from cloister.kmeans import cluster_sums, update_centres
from cloister.protocols.vertical import algorithm
from cloister.protocols.vertical.algorithm import StartingPoint, _fill_groups, find_start, refine_centres, run_vertical
from cloister.protocols.vertical.query import HistogramQuery
from cloister.protocols.vertical.settings import Knobs
from cloister.protocols.vertical.statistics import align_records, exact_total
from tests.protocols.vertical.tables import make, mixture, rehearse

COMMON = Stream.from_seed(1, "test vertical").child("common")
START = Stream.from_seed(4, "common")
LAYOUTS = [((0,), [(1,)]), ((), [(0, 1)]), ((0, 1), [(2, 3)]), ((0, 1, 2), [(3, 4, 5)]), ((0,), [(1,), (2,), (3,)])]


# --- pipeline ---------------------------------------------------------------------------------------------------------


def quantised_lloyd(table, centres, codebooks, layout, rounds):
    """The reference: assign by representatives, move to the means of the records themselves. Job's column order."""
    cells = align_records(table, layout, codebooks).exact_cells
    seen = table.copy()
    seen[:, layout.order[layout.alice_count :]] = codebooks.reps[cells]
    for _ in range(rounds):
        distances = ((seen[:, None] - centres) ** 2).sum(axis=2)
        labels = distances.argmin(axis=1)
        counts = np.bincount(labels, minlength=len(centres))
        sums = np.stack([np.bincount(labels, weights=column, minlength=len(centres)) for column in table.T], axis=1)
        centres = update_centres(sums, counts, centres)
    return centres


@pytest.mark.parametrize("start", ["synopsis", "random"])
@pytest.mark.parametrize(
    ("alice", "encrypted"), [((0,), [(1,)]), ((), [(1, 0)]), ((3, 1), [(0, 2)]), ((4, 0), [(5, 1, 3, 2)])]
)
def test_without_noise_it_is_lloyd_with_a_quantised_decision_exactly(start, alice, encrypted):
    d = len(alice) + sum(map(len, encrypted))
    table = mixture(800, d, 4, seed=d)
    public = make(800, alice=alice, encrypted=encrypted, clusters=4, epsilon=None, start=start, rounds=6)
    rehearsal = rehearse(public, table)
    asking = run_vertical(public, rehearsal.codebooks, COMMON)
    query = next(asking)
    if isinstance(query, HistogramQuery):
        query = asking.send(rehearsal.totals[0])
    expected = quantised_lloyd(table, public.layout.to_job(query.centres), rehearsal.codebooks, public.layout, 6)
    assert np.array_equal(rehearsal.finding.centres, expected)
    assert rehearsal.finding.sizes.total == 800
    assert rehearsal.releases == ()


@pytest.mark.parametrize("residuals", [None, True])
@pytest.mark.parametrize(("alice", "encrypted"), [((0,), [(1,)]), ((0, 1), [(2, 3)]), ((0, 1, 2), [(3, 4, 5)])])
def test_with_little_noise_the_clusters_are_found(alice, encrypted, residuals):
    d = len(alice) + sum(map(len, encrypted))
    table = mixture(6000, d, 4, seed=3)
    floor = cluster_sums(
        table, rehearse(make(6000, alice=alice, encrypted=encrypted, clusters=4, epsilon=None), table).finding.centres
    )
    found = rehearse(
        make(6000, alice=alice, encrypted=encrypted, clusters=4, epsilon=4.0, residuals=residuals), table
    ).finding
    assert cluster_sums(table, found.centres).loss < 1.05 * floor.loss
    assert found.sizes.total == pytest.approx(6000)
    exact = cluster_sums(table, found.centres).counts
    assert np.abs(np.array(found.sizes.clusters) - exact).max() < 0.1 * 6000
    assert found.rounds == 2
    assert (found.centre_noise > 0).all()
    assert (found.centre_noise < 0.1).all()


def test_it_does_not_matter_how_the_jobs_columns_are_numbered():
    """Whoever holds which column: centres come back in the job's order."""
    table = mixture(1500, 3, 3, seed=8)
    expected = None
    for order in permutations(range(3)):
        place = [order.index(column) for column in range(3)]
        public = make(1500, alice=(place[0],), encrypted=[(place[1], place[2])], epsilon=5.0)
        centres = rehearse(public, table[:, order]).finding.centres[:, place]
        expected = centres if expected is None else expected
        assert np.array_equal(centres, expected)


@pytest.mark.parametrize("start", ["synopsis", "random"])
@pytest.mark.parametrize("value", [0, 2**62, -(2**62), 1])
def test_whatever_is_released_there_are_k_different_centres_in_the_domain(value, start):
    table = mixture(50, 4, 2, seed=1)
    public = make(50, alice=(0,), encrypted=[(1, 2, 3)], clusters=7, start=start, rounds=3)
    asking = run_vertical(public, rehearse(public, table).codebooks, COMMON)
    query = next(asking)
    try:
        while True:
            query = asking.send(np.full(query.length, value))
    except StopIteration as stop:
        finding = stop.value
    assert len(np.unique(finding.centres, axis=0)) == 7
    assert np.abs(finding.centres).max() <= 1
    assert len(finding.sizes.clusters) == 7
    assert (finding.centre_noise >= 0).all()


@pytest.mark.parametrize("n", [1, 2, 5])
@pytest.mark.parametrize("epsilon", [None, 0.1])
def test_a_handful_of_records(n, epsilon):
    public = make(n, alice=(0,), encrypted=[(1,)], clusters=5, epsilon=epsilon)
    found = rehearse(public, mixture(n, 2, 1, seed=n)).finding
    assert len(np.unique(found.centres, axis=0)) == 5


def test_three_holders_and_many_clusters():
    table = mixture(4000, 3, 4, seed=6)
    public = make(4000, alice=(), encrypted=[(0,), (1,), (2,)], clusters=4, epsilon=8.0)
    assert public.joint_cells == 512
    found = rehearse(public, table).finding
    best = rehearse(make(4000, alice=(0, 1), encrypted=[(2,)], clusters=4, epsilon=None), table).finding
    assert cluster_sums(table, found.centres).loss < 1.3 * cluster_sums(table, best.centres).loss
    crowded = make(4000, alice=(0, 1), encrypted=[(2,)], clusters=100)
    assert len(rehearse(crowded, table).finding.centres) == 100


@pytest.mark.parametrize("radius", [None, 10**6])
def test_a_private_round_refuses_residuals_without_a_bound(radius):
    public = make(100, residuals=True)
    codebooks = rehearse(public, mixture(100, 2, 2, seed=1)).codebooks
    loose = replace(codebooks, holders=(replace(codebooks.holders[0], residual_radius=radius),))
    asking = run_vertical(public, loose, COMMON)
    query = next(asking)
    with pytest.raises(LocalProtocolError, match="residuals of at most"):
        asking.send(np.zeros(query.length, dtype=np.int64))


# --- start ------------------------------------------------------------------------------------------------------------


def take_start(public, codebooks, total):
    """Run the start alone; return what it found."""
    asking = find_start(public, codebooks, START)
    next(asking)
    with pytest.raises(StopIteration) as stop:
        asking.send(total)
    return stop.value.value


@pytest.mark.parametrize(("alice", "encrypted"), LAYOUTS)
@pytest.mark.parametrize("clusters", [2, 20])
@pytest.mark.parametrize("epsilon", [0.3, None])
def test_every_cell_is_in_one_group_and_no_group_is_empty(alice, encrypted, clusters, epsilon):
    d = len(alice) + sum(map(len, encrypted))
    public = make(500, alice=alice, encrypted=encrypted, clusters=clusters, epsilon=epsilon)
    codebooks = rehearse(public, mixture(500, d, 3, seed=d)).codebooks
    query = next(run_vertical(public, codebooks, START))
    assert isinstance(query, HistogramQuery)
    assert query.group_of.shape == (public.joint_cells,)
    assert set(query.group_of) == set(range(query.groups))
    assert (query.alice_cells == 1) == (not alice)
    if len(encrypted) == 1:
        assert query.length <= 1.5 * max(public.knobs.start_cells_most, 16 * clusters)


@pytest.mark.parametrize(("alice", "encrypted"), LAYOUTS)
def test_centres_and_widths_are_those_of_the_records(alice, encrypted):
    """From exact counts: what is found is what the cells can tell."""
    d = len(alice) + sum(map(len, encrypted))
    rng = np.random.default_rng(1)
    middles = np.array([np.full(d, -0.5), np.full(d, 0.5)])
    labels = rng.integers(2, size=4000)
    table = np.round((middles[labels] + 0.1 * rng.uniform(-1, 1, (4000, d))) * 2**16) / 2**16
    public = make(4000, alice=alice, encrypted=encrypted, clusters=2, epsilon=10.0)
    codebooks = rehearse(public, table).codebooks
    query = next(find_start(public, codebooks, START))
    records = align_records(table, public.layout, codebooks)
    start = take_start(public, codebooks, exact_total(query, records, codebooks))
    order = np.argsort(start.centres[:, 0])
    assert np.abs(start.centres[order] - middles).max() < 0.1
    assert np.abs(start.weights[order] - np.bincount(labels)).max() < 200
    spread = 0.1**2 / 3  # of a uniform column
    cell = 0.25**2  # no cell here is wider
    assert start.variance_encrypted < public.layout.encrypted_count * (spread + cell)
    assert start.variance_alice < public.layout.alice_count * (spread + cell) + 1e-12
    assert (start.variance_alice > 0) == bool(alice)


def test_noise_alone_leaves_enough_cells_for_every_cluster():
    public = make(100, clusters=9, epsilon=0.1)
    codebooks = rehearse(public, mixture(100, 2, 3, seed=1)).codebooks
    query = next(find_start(public, codebooks, START))
    noise = np.rint(np.random.default_rng(2).normal(0, public.total_std(query.sigma), query.length)).astype(np.int64)
    start = take_start(public, codebooks, noise)
    assert len(np.unique(start.centres, axis=0)) == 9
    assert start.weights.sum() == pytest.approx(100)


def test_how_many_groups_the_histogram_has_does_not_follow_from_records():
    filled = _fill_groups(np.array([0, 0, 3, 3, 3, 0]), 4)
    assert sorted(set(filled.tolist())) == [0, 1, 2, 3]
    whole = np.array([2, 1, 0, 1])
    assert np.array_equal(_fill_groups(whole, 3), whole)


# --- rounds -----------------------------------------------------------------------------------------------------------


def start_at(centres, *, weights=None, variance=0.02):
    variances = None if weights is None else np.full(len(centres), 100.0)
    return StartingPoint(
        centres=np.asarray(centres, dtype=float),
        centre_variances=np.full(np.shape(centres), 0.01),
        weights=weights,
        weight_variances=variances,
        variance_alice=variance,
        variance_encrypted=variance,
    )


def take_round(public, start, make_total):
    """One round; return its query and what came of it."""
    codebooks = rehearse(public, mixture(public.records, 2, 3, seed=1)).codebooks
    asking = refine_centres(replace(public, rounds=1), codebooks, start)
    query = next(asking)
    with pytest.raises(StopIteration) as stop:
        asking.send(make_total(query))
    return query, stop.value.value


def totals(sums, counts):
    return lambda query: np.concatenate([np.asarray(sums).ravel(), counts]).astype(np.int64)


def test_a_clear_step_is_made_from_the_origin_on_the_grid():
    public = make(10**6, clusters=2, epsilon=30.0)
    centres = [[-0.5001, 0.1], [0.5, 0.3002]]
    counts = [400_000, 600_000]
    steps = np.array([[0.05, -0.02], [0.01, 0.03]])
    query, refined = take_round(
        public, start_at(centres), totals(np.rint(steps * 256 * np.array(counts)[:, None]), counts)
    )
    assert np.array_equal(query.origins, np.rint(np.array(centres) * 256))
    assert np.allclose(refined.centres, query.origins / 256 + steps, atol=1e-4)
    assert np.allclose(refined.sizes.clusters, counts, rtol=1e-6)


def test_steps_that_are_all_noise_are_hardly_made():
    public = make(1000, clusters=2, epsilon=0.2)
    centres = np.array([[-0.5, 0.0], [0.5, 0.25]])

    def noise(query):
        sums = np.random.default_rng(1).normal(0, public.total_std(query.sigma_sum), 4)
        return np.concatenate([np.rint(sums), [500, 500]]).astype(np.int64)

    _, refined = take_round(public, start_at(centres), noise)
    assert np.abs(refined.centres - centres).max() < 0.1


def test_counts_are_made_to_add_up_and_averaged_with_the_starts():
    public = make(1000, clusters=2)
    _, plain = take_round(public, start_at([[-0.5, 0.0], [0.5, 0.0]]), totals(np.zeros((2, 2)), [300, 600]))
    assert plain.sizes.clusters == pytest.approx((350, 650))
    _, averaged = take_round(
        public,
        start_at([[-0.5, 0.0], [0.5, 0.0]], weights=np.array([500.0, 500.0])),
        totals(np.zeros((2, 2)), [300, 700]),
    )
    assert averaged.sizes.total == pytest.approx(1000)
    assert 300 < averaged.sizes.clusters[0] < 500
    assert averaged.sizes.noise[0] < plain.sizes.noise[0]


@pytest.mark.parametrize("variance", [0.0, 1e-6, 0.02, 0.5, 50.0])
@pytest.mark.parametrize("factor", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("residuals", [False, True])
def test_radii_are_positive_and_within_what_the_modulus_was_chosen_for(variance, factor, residuals):
    public = make(1000, clusters=2, residuals=residuals, knobs=Knobs(radius_factor=factor))
    query, _ = take_round(
        public, start_at([[-0.5, 0.0], [0.5, 0.0]], variance=variance), totals(np.zeros((2, 2)), [1, 1])
    )
    assert 2 <= query.radius_alice <= public.weight_max
    assert 1 <= query.radius_encrypted <= public.weight_max + public.residual_most
    assert np.abs(query.constants).max() <= public.weight_max


def test_radii_of_a_random_start_shrink_from_round_to_round():
    public = make(1000, clusters=4, start="random", rounds=5)
    codebooks = rehearse(public, mixture(1000, 2, 3, seed=1)).codebooks
    asking = refine_centres(public, codebooks, start_at(np.linspace(-0.5, 0.5, 8).reshape(4, 2)))
    query, radii = next(asking), []
    for _ in range(4):
        radii.append(query.radius_alice)
        query = asking.send(np.zeros(query.length, dtype=np.int64))
    assert radii == sorted(radii, reverse=True)
    assert radii[0] <= public.weight_max
    assert query.number == 5


def test_only_counts_that_noise_does_not_explain_are_cut_off(monkeypatch):
    """A cell with all records may show more than n; beyond 16 deviations it does not."""
    seen = []
    real = algorithm._estimate_weights

    def note(plausible, noise_std, **options):
        seen.append((plausible.copy(), noise_std))
        return real(plausible, noise_std, **options)

    monkeypatch.setattr(algorithm, "_estimate_weights", note)
    public = make(500, alice=(0,), encrypted=[(1, 2)], clusters=2)
    asking = run_vertical(public, rehearse(public, mixture(500, 3, 2, seed=1)).codebooks, COMMON)
    query = next(asking)
    total = np.zeros(query.length, dtype=np.int64)
    noise_std = public.total_std(query.sigma)
    total[:4] = 500 + round(8 * noise_std), 500 + round(99 * noise_std), -round(8 * noise_std), -round(99 * noise_std)
    asking.send(total)
    (plausible, _), *_ = seen[-1:]
    wanted = [total[0], 500 + 16 * noise_std, total[2], -16 * noise_std]
    assert plausible[:4].tolist() == pytest.approx(wanted)
