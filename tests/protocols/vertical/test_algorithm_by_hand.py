"""Vertical clustering: radii, steps, weights and groups, each formula written a second time."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from cloister.crypto import Stream
from cloister.kmeans import nearest
from cloister.privacy.centre_noise import UNKNOWN, blend
from cloister.protocols.guided_sums.postprocessing import estimate_counts, find_gains
from cloister.protocols.synopsis.extent import Box
from cloister.protocols.vertical import algorithm, codebook_makers
from cloister.protocols.vertical.algorithm import (
    StartingPoint,
    _estimate_weights,
    _fill_groups,
    _group_cells,
    find_start,
    refine_centres,
)
from cloister.protocols.vertical.codebook import Codebook, Codebooks, grid_codebook, quantise_reps
from cloister.protocols.vertical.codebook_makers import _make_synopsis, _measure_width, _Recorder, exact_codebook
from cloister.protocols.vertical.query import round_to_length
from cloister.protocols.vertical.settings import ALICE, Knobs
from tests.protocols.vertical.tables import make, mixture, rehearse


def start_at(k, d, *, alice=0.02, encrypted=0.05, weights=None, seed=1):
    return StartingPoint(
        centres=np.random.default_rng(seed).uniform(-0.6, 0.6, (k, d)),
        centre_variances=np.full((k, d), 0.013),
        weights=weights,
        weight_variances=None if weights is None else np.linspace(20.0, 400.0, k),
        variance_alice=alice,
        variance_encrypted=encrypted,
    )


def whole_grid(public, *, residuals=False):
    """Codebooks on the whole domain, for one encrypted holder."""
    shape = public.shape_of(0)
    box = Box(low=np.full(shape.columns, -1.0), high=np.full(shape.columns, 1.0))
    holder = grid_codebook(public, box, cells=shape.cells, residuals=residuals)
    d = public.layout.alice_count
    alice = grid_codebook(
        public, Box(low=np.full(d, -1.0), high=np.full(d, 1.0)), cells=public.alice_cells, residuals=False
    )
    return Codebooks(alice=alice, holders=(holder,))


def widen(public):
    """The radius over a cluster's deviation: the fourth root of how still a step is, less in many columns."""
    d, k = public.dimensions, public.clusters
    noise = (
        k * math.sqrt(d) * public.total_std(public.sigma_for(1, public.sum_rho * public.rounds_made)) / public.records
    )
    return public.knobs.radius_factor * max(0.7, (0.05 / noise) ** (0.25 * min(1, 6 / d)))


def units_of(public, length):
    return min(max(math.ceil(length * public.units), 2), public.weight_max)


@pytest.mark.parametrize("residuals", [False, True])
@pytest.mark.parametrize("factor", [0.4, 1.0, 3.0])
@pytest.mark.parametrize(("n", "d"), [(300, 2), (200_000, 3), (10**8, 9)])
@pytest.mark.parametrize(("alice", "encrypted"), [(0.02, 0.05), (1e-9, 1e-9), (0.3, 0.001), (90.0, 90.0)])
def test_the_radii_of_a_round(n, d, factor, residuals, alice, encrypted):
    public = make(n, alice=range(d - 1), encrypted=[(d - 1,)], residuals=residuals, knobs=Knobs(radius_factor=factor))
    books = whole_grid(public, residuals=residuals)
    query = next(refine_centres(public, books, start_at(3, d, alice=alice, encrypted=encrypted)))
    most, factor = public.radius_most, widen(public)
    assert query.radius_alice == units_of(public, min(factor * math.sqrt(alice), most))
    longest, residual = units_of(public, min(factor * math.sqrt(encrypted), most)), books.residual_radius
    constants = max(longest - residual, longest // 2)
    assert query.radius_encrypted == constants + residual
    offsets = books.reps * public.units - query.origins[:, None, d - 1 :]
    assert np.array_equal(query.constants, round_to_length(offsets, constants))
    norm = query.radius_alice**2 + query.radius_encrypted**2
    assert query.sigma_sum == public.sigma_for(norm, public.sum_rho)
    assert query.sigma_count == public.sigma_for(1, public.count_rho)
    assert (query.number, query.units) == (1, public.units)


@pytest.mark.parametrize(("alice", "encrypted"), [((0, 1), [(2,)]), ((), [(0, 1)])])
def test_radii_from_random_centres_shrink_as_fastlloyds(alice, encrypted):
    public = make(5000, alice=alice, encrypted=encrypted, clusters=4, start="random", rounds=20)
    d, own = public.dimensions, len(alice)
    asking = refine_centres(public, whole_grid(public), start_at(4, d))
    query = next(asking)
    for number in range(1, 21):
        whole = 0.6 * math.sqrt(d)
        if number > 1:
            whole *= 4 ** (-1 / d) * max(0.85 ** (number - 2), 0.1)
        assert query.radius_alice == (units_of(public, whole * math.sqrt(own / d)) if own else 0)
        longest = units_of(public, whole * math.sqrt((d - own) / d))
        assert query.radius_encrypted == longest
        if number < 20:
            query = asking.send(np.zeros(query.length, dtype=np.int64))


@pytest.mark.parametrize("with_weights", [False, True])
@pytest.mark.parametrize("scale", [1.0, 30.0])
def test_a_noisy_step(with_weights, scale):
    """Counts joined with the start's by precision, brought up to n; steps shrunk, then shortened to the radius."""
    n, k, d = 2000, 3, 3
    public = make(n, alice=(0,), encrypted=[(1, 2)], clusters=k, rounds=1)
    start = start_at(k, d, weights=np.array([500.0, 700.0, 800.0]) if with_weights else None)
    asking = refine_centres(public, whole_grid(public), start)
    query = next(asking)
    rng = np.random.default_rng(5)
    sums = np.rint(scale * rng.normal(0, 4000, (k, d))).astype(np.int64)
    noisy = np.array([520, 640, 790])
    with pytest.raises(StopIteration) as stop:
        asking.send(np.concatenate([sums.ravel(), noisy]))
    refined = stop.value.value
    noise = public.total_std(query.sigma_count)
    variances, counts = np.full(k, noise**2), noisy.astype(float)
    if with_weights:
        precisions = 1 / noise**2 + 1 / start.weight_variances
        counts = (noisy / noise**2 + start.weights / start.weight_variances) / precisions
        variances = 1 / precisions
    left = variances * (1 - variances / variances.sum())  # of the noise, once the counts must add up to n
    counts = np.maximum(counts + (n - counts.sum()) * variances / variances.sum(), max(1.0, noise))
    assert np.allclose(refined.sizes.clusters, counts, rtol=1e-6)
    assert np.allclose(refined.sizes.noise, np.sqrt(left), rtol=1e-6)
    step_noise = public.total_std(query.sigma_sum) / public.units
    steps = sums / public.units / counts[:, None]
    gains = find_gains(steps, (step_noise / counts) ** 2)
    fresh = (step_noise**2 + steps**2 * left[:, None]) / counts[:, None] ** 2
    assert np.allclose(refined.centre_variances, blend(start.centre_variances, fresh, gains), rtol=1e-6)
    shrunk = steps * gains
    lengths = np.linalg.norm(shrunk, axis=1, keepdims=True)
    longest = math.hypot(query.radius_alice, query.radius_encrypted) / public.units
    expected = np.clip(query.origins / public.units + shrunk * np.minimum(1, longest / lengths), -1, 1)
    assert np.allclose(refined.centres, expected, rtol=1e-9, atol=1e-12)
    assert (lengths.max() > longest) == (scale > 1)


def test_no_count_is_below_its_noise_or_one():
    public = make(2000, clusters=2, rounds=1, epsilon=0.05)
    asking = refine_centres(public, whole_grid(public), start_at(2, 2))
    query = next(asking)
    with pytest.raises(StopIteration) as stop:
        asking.send(np.array([4000, 0, 0, 0, -9000, 9000]))
    assert min(stop.value.value.sizes.clusters) == 0.0
    assert np.isfinite(stop.value.value.centres).all()
    noise = public.total_std(query.sigma_count)
    step = 4000 / public.units / max(1.0, noise)
    moved = stop.value.value.centres[0, 0] - query.origins[0, 0] / public.units
    assert 0 <= moved <= step


def test_an_exact_step_is_to_the_means_and_an_empty_cluster_stays():
    public = make(100, epsilon=None, clusters=3, rounds=2)
    asking = refine_centres(public, whole_grid(public), start_at(3, 2))
    query = next(asking)
    assert not query.origins.any()
    assert (query.sigma_sum, query.sigma_count) == (None, None)
    assert (query.radius_alice, query.radius_encrypted) == (None, None)
    sums, counts = np.array([[65536 * 30, -65536 * 6], [5, 5], [65536, 0]]), np.array([60, 0, 40])
    second = asking.send(np.concatenate([sums.ravel(), counts]))
    assert np.allclose(second.centres, [[0.5, -0.1], query.centres[1], [0.025, 0.0]])
    with pytest.raises(StopIteration) as stop:
        asking.send(np.concatenate([sums.ravel(), counts]))
    assert stop.value.value.sizes.clusters == (60.0, 0.0, 40.0)
    assert stop.value.value.sizes.noise == (0.0, 0.0, 0.0)


# --- the start --------------------------------------------------------------------------------------------------------


def test_cells_of_noise_are_left_out_but_some():
    noisy = np.concatenate([np.full(10, 300.0), 5 * np.sin(np.arange(90))])
    found = _estimate_weights(noisy, 10.0, least=4)
    means = estimate_counts(noisy, 10.0, level=10.0).means
    assert np.array_equal(found[:10], means[:10])
    assert not found[10:].any()
    more = _estimate_weights(noisy, 10.0, least=25)
    assert (more > 0).sum() == 25
    assert set(np.flatnonzero(more)) == set(np.argsort(-means, kind="stable")[:25])
    assert more.min(initial=1.0, where=more > 0) >= 1e-9
    assert np.array_equal(_estimate_weights(noisy, 0.0, least=4), noisy)


def test_a_start_reports_how_wide_clusters_are_in_whose_columns(monkeypatch):
    public = make(1000, alice=(0,), encrypted=[(1,)], clusters=2)
    table = mixture(1000, 2, 2, seed=3)
    books = rehearse(public, table).codebooks
    asked = {}
    real = algorithm.cluster_cells

    def note(histogram, k, **options):
        asked.update(histogram=histogram, found=real(histogram, k, **options), options=options)
        return asked["found"]

    monkeypatch.setattr(algorithm, "cluster_cells", note)
    asking = find_start(public, books, Stream.from_seed(2, "start"))
    query = next(asking)
    total = np.zeros(query.length, dtype=np.int64)
    total[[0, 7, query.length - 1]] = 500, 300, 400
    with pytest.raises(StopIteration) as stop:
        asking.send(total)
    start, histogram = stop.value.value, asked["histogram"]
    assert histogram.weights.sum() <= 1000 * (1 + 1e-9)
    assert histogram.variance == max(public.total_std(query.sigma), 0.5) ** 2
    assert query.sigma == public.sigma_for(1, public.start_rho)
    assert asked["options"]["restarts"] == 20
    labels = nearest(histogram.points, start.centres).labels
    squares = histogram.weights @ (histogram.points - start.centres[labels]) ** 2 / histogram.weights.sum()
    holder = books.holders[0]
    inner = histogram.cell_variance - books.alice.variance
    assert inner >= holder.variance
    assert start.variance_alice == pytest.approx(squares[0] + books.alice.variance)
    assert start.variance_encrypted == pytest.approx(squares[1] + inner)
    assert start.weights is asked["found"].weights
    assert start.weight_variances is asked["found"].weight_variances


@pytest.mark.parametrize(("bins", "groups"), [((16,), (5,)), ((8, 8), (3, 2)), ((4, 3), (4, 3))])
def test_neighbours_in_a_grid_form_a_group(bins, groups):
    public = make(100, alice=(), encrypted=[range(len(bins))])
    box = Box(low=np.full(len(bins), -1.0), high=np.full(len(bins), 0.6))
    book = replace(
        grid_codebook(public, box, cells=math.prod(bins), residuals=False),
        weights=np.linspace(1.0, 3.0, math.prod(bins)),
    )
    assert book.bins == bins
    found = _group_cells(book, groups, Stream.from_seed(1, "groups"))
    places = np.array(np.unravel_index(np.arange(math.prod(bins)), bins)).T
    coarse = [tuple(p // math.ceil(b / g) for p, b, g in zip(place, bins, groups, strict=True)) for place in places]
    names = sorted(set(coarse))
    assert found.group_of.tolist() == [names.index(own) for own in coarse]
    spread = 0.0
    for number in range(len(names)):
        own = found.group_of == number
        middle = np.average(book.reps[own], axis=0, weights=book.weights[own])
        assert np.allclose(found.points[number], middle)
        spread += float(book.weights[own] @ ((book.reps[own] - middle) ** 2).sum(axis=1))
    assert found.variance == pytest.approx(book.variance + spread / book.weights.sum())


def test_cells_that_are_few_enough_are_their_own_groups():
    reps = quantise_reps(np.random.default_rng(1).uniform(-1, 1, (6, 3)), 256)
    book = Codebook(reps=reps, units=256, residual_radius=0, variance=0.01, weights=np.arange(1.0, 7.0))
    found = _group_cells(book, (6,), Stream.from_seed(1, "groups"))
    assert found.group_of.tolist() == list(range(6))
    assert np.allclose(found.points, reps)
    assert found.variance == pytest.approx(0.01)
    fewer = _group_cells(book, (3,), Stream.from_seed(1, "groups"))
    assert sorted(set(fewer.group_of.tolist())) == [0, 1, 2]


def test_an_empty_group_takes_the_last_cell_of_the_largest():
    assert _fill_groups(np.array([0, 0, 3, 3, 3, 0]), 4).tolist() == [0, 0, 3, 3, 2, 1]
    assert _fill_groups(np.array([1, 1, 1]), 3).tolist() == [1, 2, 0]


# --- codebooks --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("side", "cells", "columns"), [(2.0, 16, 1), (0.7, 5, 1), (1.1, 36, 2), (0.004, 9, 2)])
def test_a_grids_cells_are_as_wide_as_stated(side, cells, columns):
    public = make(100, alice=(), encrypted=[range(columns)], residuals=True)
    box = Box(low=np.full(columns, -0.4), high=np.full(columns, -0.4 + side))
    book = grid_codebook(public, box, cells=cells, residuals=True)
    half = side / (2 * round(cells ** (1 / columns)))
    assert book.variance == pytest.approx(columns * half**2 / 3)
    longest = math.sqrt(columns) * (half * 256 + 0.5)
    assert book.residual_radius == min(math.ceil(longest) + 1, public.residual_most)
    assert book.weights.tolist() == [1.0] * len(book.reps)
    middles = np.arange(round(cells ** (1 / columns))) * 2 * half - 0.4 + half
    assert np.allclose(np.unique(book.reps), np.unique(np.clip(np.rint(middles * 256), -256, 256) / 256))
    assert grid_codebook(public, box, cells=cells, residuals=False).residual_radius == 0


def test_representatives_stay_in_the_domain_and_on_the_grid():
    assert quantise_reps(np.array([[-1.3, 0.3, 1.002]]), 16).tolist() == [[-1.0, 0.3125, 1.0]]


@pytest.mark.parametrize("columns", [3, 7])
def test_how_wide_cells_are_is_the_mean_square_of_the_bins(columns, monkeypatch):
    """24 bins, each ends a factor 2^(1/4) below the next in length; a square stands for its bin's middle."""
    public = make(100, encrypted=[range(1, 1 + columns)])
    rng = np.random.default_rng(2)
    points, reps = rng.uniform(-0.5, 0.5, (400, columns)), rng.uniform(-0.5, 0.5, (9, columns))
    seen = {}

    def take(exact, event, *, duty):
        seen.update(exact=exact, event=event)
        return exact

    monkeypatch.setattr(codebook_makers, "release", take)
    monkeypatch.setattr(codebook_makers._Recorder, "paid", None)
    found = _measure_width(public, points, reps, _Recorder(duty=None, party=0), 1e-3)
    squares = ((points[:, None] - reps) ** 2).sum(axis=2).min(axis=1)
    ends = [4 * columns * 2 ** (-(23 - i) / 2) for i in range(24)]
    counts = np.zeros(24, dtype=int)
    for square in squares:
        counts[next(i for i, end in enumerate(ends) if square <= end)] += 1
    assert np.array_equal(seen["exact"], counts)
    event = seen["event"]
    assert (event.entries, event.sensitivity.l1, event.sensitivity.l2_squared) == (24, 1, 1)
    assert event.mechanism.sigma == 1e-3
    middles = np.array(ends) * (1 + math.sqrt(0.5)) / 2
    assert found == pytest.approx((counts * middles).sum() / 400, rel=1e-3)


def test_a_codebooks_synopsis_costs_its_part():
    public = make(3000, encrypted=[(1, 2, 3)])
    own = _make_synopsis(public, 0.01, columns=3, cells=24)
    assert (own.clusters, own.dimensions, own.parties, own.records) == (24, 3, 1, 3000)
    assert (own.knobs.rounds_min, own.knobs.rounds_max, own.knobs.restarts) == (2, 2, 4)
    assert own.budget.delta == 1e-9
    assert 2**56 / (2 * own.target.sigma**2) == pytest.approx(0.01, rel=1e-6)


def test_a_private_codebook_is_charged_in_two_parts(monkeypatch):
    """95 % for a synopsis of its columns, 5 % for the histogram of distances; residuals reach a deviation."""
    public = make(3000, encrypted=[(1, 2, 3)], residuals=True, epsilon=20.0)
    points, seen = mixture(3000, 3, 4, seed=2), {}

    def take_synopsis(settings, rho, **sizes):
        seen.update(rho=rho)
        return real(settings, rho, **sizes)

    def take_width(settings, points, reps, recorder, sigma):
        seen.update(sigma=sigma)
        return 0.01

    real = codebook_makers._make_synopsis
    monkeypatch.setattr(codebook_makers, "_make_synopsis", take_synopsis)
    monkeypatch.setattr(codebook_makers, "_measure_width", take_width)
    book = rehearse(public, np.hstack([points[:, :1], points])).codebooks.holders[0]
    rho = public.codebook_rho_of(0)
    assert seen["rho"] == pytest.approx(0.95 * rho)
    assert seen["sigma"] == pytest.approx(public.sigma_for(1, 0.05 * rho))
    assert book.residual_radius == math.ceil(0.1 * 256)
    assert (book.weights >= 1e-3).all()
    assert book.variance == 0.01


def test_an_exact_codebook_says_what_its_cells_hold():
    public = make(30_000, encrypted=[(1, 2, 3)], epsilon=None)
    points = mixture(30_000, 3, 4, seed=2)
    book = exact_codebook(public, points, cells=8, residuals=True, stream=Stream.from_seed(1, "book"))
    found = nearest(points, book.reps)
    assert book.weights.sum() == pytest.approx(30_000)
    assert np.abs(book.weights - np.bincount(found.labels, minlength=8)).max() < 300
    assert len(set((book.weights / 1.5).tolist()) - {float(round(w)) for w in book.weights / 1.5}) == 0  # of 20,000
    assert book.variance == pytest.approx(found.squared_distances.mean(), rel=0.05)
    assert book.residual_radius is None
    without = exact_codebook(public, points, cells=8, residuals=False, stream=Stream.from_seed(1, "book"))
    assert without.residual_radius == 0


def test_books_of_a_party_name_whose_they_are():
    assert _Recorder(duty=None, party=ALICE)._whose == "computing party's codebook"
    assert _Recorder(duty=None, party=1)._whose == "codebook of holder 2"


def test_where_nothing_is_known_of_a_centre_its_noise_is_unknown():
    public = make(500, clusters=3, start="random")
    found = rehearse(public, np.zeros((500, 2))).finding
    assert (found.centre_noise <= math.sqrt(UNKNOWN) + 1e-12).all()
