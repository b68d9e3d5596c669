"""What is made of released numbers, computed a second time: number by number, with plain loops."""

from __future__ import annotations

import math

import numpy as np
import pytest

from cloister.crypto import Stream
from cloister.privacy.centre_noise import UNKNOWN, blend
from cloister.privacy.units import Unit
from cloister.protocols.guided_sums import refinement
from cloister.protocols.guided_sums.postprocessing import Sketch, estimate_counts, find_gains, swap_centres
from cloister.protocols.guided_sums.refinement import Guide, _shrink, choose_rounds, refine_centres, split_share
from cloister.protocols.guided_sums.settings import BUDGET_UNITS
from cloister.protocols.guided_sums.statistics import (
    Moments,
    Subspace,
    count_records,
    release_moments,
    release_sizes,
    scale_moments,
    weigh_clients,
)
from tests.protocols.synopsis.steps import make_settings

P = BUDGET_UNITS


def tell(asking, *totals):
    """Drive a step with these totals; return what it found and what it asked."""
    queries = [next(asking)]
    for total in totals[:-1]:
        queries.append(asking.send(np.asarray(total, dtype=np.int64)))
    with pytest.raises(StopIteration) as stop:
        asking.send(np.asarray(totals[-1], dtype=np.int64))
    return stop.value.value, queries


# --- numbers of records -----------------------------------------------------------------------------------------------


def test_a_number_of_records_is_the_total_over_the_height():
    public = make_settings()
    found, (query,) = tell(count_records(public, l2_squared=10_001), [100 * 777 + 30])
    assert query.l2_squared == 100**2
    assert found.estimate == pytest.approx(777.3)
    assert found.noise == pytest.approx(public.noise_std / 100)
    assert tell(count_records(public, l2_squared=10_001), [-5])[0].estimate == 1.0


def test_sizes_are_read_from_the_bins_that_have_votes_and_their_neighbours():
    public = make_settings(unit=Unit.CLIENT, parties=50)
    height = math.isqrt(P // 10)
    noise = public.noise_std / height
    votes = np.zeros(20)
    votes[[3, 4, 9, 15]] = 200 * noise, 100 * noise, 3.6 * noise, 3.4 * noise
    votes[[2, 5, 7]] = 0.5 * noise, -0.25 * noise, 0.125 * noise
    found, _ = tell(release_sizes(public, l2_squared=P // 10), np.rint(votes * height))
    near = [i for i in range(20) if any(abs(i - voted) <= 1 for voted in (3, 4, 9))]
    assert near == [2, 3, 4, 5, 8, 9, 10]
    mass = sum(votes[i] for i in near)
    mean = sum(votes[i] * 2**i for i in near) / mass
    assert found.estimate == pytest.approx(50 * mean, rel=1e-6)
    spread = math.sqrt(sum((2**i - mean) ** 2 for i in near))
    assert found.noise == pytest.approx(50 * noise * spread / mass, rel=1e-6)


def test_where_no_bin_has_votes_the_fullest_is_a_guess():
    public = make_settings(unit=Unit.CLIENT, parties=50)
    height = math.isqrt(P // 10)
    noise = public.noise_std / height
    votes = np.zeros(20)
    votes[6] = 3.4 * noise
    found, _ = tell(release_sizes(public, l2_squared=P // 10), np.rint(votes * height))
    assert (found.estimate, found.noise) == (50 * 64.0, None)


@pytest.mark.parametrize(("votes", "mean"), [({0: 9.0, 1: -8.0}, 1.0), ({19: 5.0, 18: -4.0}, 2.0**19)])
def test_a_mean_size_stays_within_the_bins(votes, mean):
    public = make_settings(unit=Unit.CLIENT, parties=2, epsilon=50.0)
    height = math.isqrt(P)
    total = np.zeros(20)
    for i, vote in votes.items():
        total[i] = vote * height
    assert tell(release_sizes(public, l2_squared=P), np.rint(total))[0].estimate == 2 * mean


@pytest.mark.parametrize("records", [1.0, 500.0, 10.0**6])
def test_scaled_clients_count_as_stated(records):
    """1 / |p| each, |p|^2 = 1 / n + 3 / (16 k)."""
    public = make_settings(clusters=5, parties=20, unit=Unit.CLIENT)
    each = max(records / 20, 1)
    assert weigh_clients(public, records) == pytest.approx(20 / math.sqrt(1 / each + 3 / 80))


# --- moments ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("share", [10, 126, 5000, P // 3, P])
def test_moments_take_all_of_their_share(share):
    """B = 5 c / 2, so b^2 c^2 + 25 c^4 = 25 c^4 (1 / 4 + 1): c is the largest integer for which that fits."""
    longest, weight = scale_moments(share)
    assert weight == 5 * longest // 2
    assert 125 * longest**4 <= 4 * share < 125 * (longest + 1) ** 4


def test_moments_are_read_as_they_were_weighed():
    public = make_settings(dimensions=3)
    share = P // 3
    longest, weight = scale_moments(share)
    reach = longest - math.sqrt(3) / 2 - 1  # about: rounding may make a vector longer
    total = np.arange(1, 10) * 10**9
    found, (query,) = tell(release_moments(public, l2_squared=share, middle=np.zeros(3), radius=0.4), total)
    assert isinstance(query.question, Moments)
    assert query.l2_squared == weight**2 * longest**2 + 25 * longest**4
    unit = found.sum_noise * weight / public.noise_std
    assert unit == pytest.approx(0.4 / reach, rel=2 / longest)
    assert np.allclose(found.sums, total[:3] * unit / weight)
    a, b, c, d, e, f = total[3:] * unit**2
    assert np.allclose(found.second, [[a / 5, b / 7, c / 7], [b / 7, d / 5, e / 7], [c / 7, e / 7, f / 5]])
    assert found.noise == pytest.approx(public.noise_std / 5 * unit**2)


# --- rounds -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("share", [3, 38, 1000, P])
def test_a_count_weighs_a_sixth_of_an_offset_and_a_partys_an_eighth(share):
    for client_level, part in ((False, 6), (True, 8)):
        scale, weight = split_share(share, client_level=client_level)
        assert weight == scale // part
        assert scale == max(
            a for a in (scale - 1, scale, scale + 1) if a * a * (part * part + 2) <= share * part * part
        )


@pytest.mark.parametrize("records", [10.0, 800.0, 1500.0, 3000.0, 10.0**7])
@pytest.mark.parametrize(("k", "d"), [(3, 2), (8, 5)])
def test_rounds_follow_from_the_noise_of_a_step(records, k, d):
    public = make_settings(clusters=k, dimensions=d, rounds_min=2, rounds_max=9)
    noise = k * math.sqrt(d) * public.noise_std / math.isqrt(P) / records
    assert choose_rounds(public, l2_squared=P, records=records, clusters=k) == min(max(round(0.08 / noise), 2), 9)


def gains_by_hand(steps, variances):
    """Empirical Bayes, one cluster at a time."""
    squares = [float(np.mean(row**2)) for row in steps]
    tau2 = max(np.mean([s - v for s, v in zip(squares, variances, strict=True)]), 1e-6 * np.mean(squares), 1e-30)
    for _ in range(50):
        gains = [tau2 / (tau2 + v) for v in variances]
        tau2 = max(np.mean([g * g * s + g * v for g, s, v in zip(gains, squares, variances, strict=True)]), 1e-30)
    return np.array([tau2 / (tau2 + v) for v in variances])


@pytest.mark.parametrize("scale", [1e-3, 0.05, 0.2, 5.0])
def test_gains(scale):
    rng = np.random.default_rng(1)
    variances = rng.uniform(0.001, 0.02, 6)
    steps = scale * rng.standard_normal((6, 3))
    assert np.allclose(find_gains(steps, variances)[:, 0], gains_by_hand(steps, variances), rtol=1e-9)
    assert find_gains(np.zeros((2, 3)), np.ones(2)).max() < 1e-20


@pytest.mark.parametrize("unit", [Unit.RECORD, Unit.CLIENT])
@pytest.mark.parametrize("guided", [False, True])
def test_two_rounds(unit, guided, monkeypatch):
    """The first counts with the histogram, the second alone; swaps are asked about between them."""
    k, d = 3, 4
    public = make_settings(clusters=k, dimensions=d, unit=unit, parties=4, rounds_min=2, rounds_max=3, epsilon=0.1)
    rng = np.random.default_rng(7)
    centres, radii = rng.uniform(-0.9, 0.9, (k, d)), np.array([0.3, 0.2, 1e-12])
    weights, weight_variances = np.array([300.0, 100.0, 50.0]), np.array([900.0, 400.0, 2500.0])
    left, first_centres = np.full((k, d), 0.02), centres.copy()
    subspace = Subspace(origin=np.zeros(d), axes=np.linalg.qr(rng.normal(size=(d, 2)))[0])
    guide = Guide(subspace=subspace, places=np.zeros((k, 2)), radius=0.4, clear=1.0) if guided else None
    asked = []

    def note(moved, **given):
        asked.append((moved.copy(), given))
        swapped = moved.copy()
        swapped[1] = 0.5
        return swapped

    monkeypatch.setattr(refinement, "swap_centres", note)
    monkeypatch.setattr(type(public), "axes_most", 2)
    asking = refine_centres(
        public,
        l2_squared=P - 1,
        records=400.0,
        centres=centres,
        centre_variances=left.copy(),
        radii=radii,
        weights=weights,
        weight_variances=weight_variances,
        sketch=Sketch(points=centres, weights=np.ones(k)),
        stream=Stream.from_seed(1, "swaps"),
        guide=guide,
    )
    scale, weight = split_share((P - 1) // 2, client_level=unit is Unit.CLIENT)
    sum_std, count_std = public.noise_std / scale, public.noise_std / weight
    counts = [np.array([280.0, 130.0, 0.25]), np.array([260.0, 90.0, -3.0])]
    offsets = [rng.normal(0, 40.0, (k, d)) for _ in range(2)]
    squares = [np.array([90.0, 60.0, 1.0]), np.zeros(k)]
    totals = [
        np.rint(np.hstack([o * scale, s[:, None] * weight, c[:, None] * weight])).ravel()
        for o, s, c in zip(offsets, squares, counts, strict=True)
    ]
    found, queries = tell(asking, *totals, np.zeros(0))
    assert [bool(query.length) for query in queries] == [True, True, False]
    radii = np.maximum(radii, 1e-9)
    variances = np.full(k, count_std**2)
    for t in range(2):
        counted, own = counts[t], variances.copy()
        if t == 0:
            factor = max(counted.sum(), count_std) / weights.sum() if unit is Unit.CLIENT else 1.0
            prior, prior_variances = weights * factor, weight_variances * factor**2
            own = 1 / (1 / variances + 1 / prior_variances)
            counted = own * (counted / variances + prior / prior_variances)
        full = np.maximum(counted, max(1.0, count_std))
        steps = offsets[t] / full[:, None]
        fresh = (sum_std**2 + steps**2 * own[:, None]) / full[:, None] ** 2 * radii[:, None] ** 2
        shrunk = _shrink(steps, (sum_std / full) ** 2, subspace.axes if guided else None)
        steps, left = shrunk.steps, shrunk.blend(left, fresh)
        steps = np.array([row / max(1.0, np.linalg.norm(row)) for row in steps])
        centres = np.clip(centres + radii[:, None] * steps, -1, 1)
        if t == 0:
            assert np.array_equal(first_centres, queries[0].question.centres.to_numpy(np.float64, k, d))
            moved, given = asked[0]
            assert np.allclose(moved, centres)
            widths = np.full(k, 0.4) if guided else radii
            inner = steps @ subspace.axes * (radii / 0.4)[:, None] if guided else steps
            wide = squares[0] / full - (inner**2).sum(axis=1)
            assert np.allclose(given["variances"], np.clip(wide, 0, 1) * widths**2, rtol=1e-5, atol=1e-9)
            assert np.allclose(given["errors"], widths**2 * count_std / full)
            assert np.allclose(given["counts"], full)
            centres[1], left[1] = 0.5, UNKNOWN
    assert len(asked) == 1
    assert np.allclose(found.centres, centres, rtol=1e-6)
    assert np.allclose(found.centre_variances, left, rtol=1e-6)
    assert np.allclose(found.counts, counts[1], atol=1e-6)
    assert np.allclose(found.count_variances, variances)
    assert found.rounds == 2


def test_parts_of_a_step_are_shrunk_by_the_noise_in_them():
    rng = np.random.default_rng(2)
    axes = np.linalg.qr(rng.normal(size=(5, 2)))[0]
    steps, variances = rng.normal(0, 0.1, (4, 5)), np.array([0.001, 0.01, 0.02, 0.1])
    shrunk = _shrink(steps, variances, axes)
    along, across = steps @ axes, steps - steps @ axes @ axes.T
    gains = find_gains(along, variances), find_gains(across, variances * 3 / 5)
    assert np.allclose(shrunk.steps, gains[0] * along @ axes.T + gains[1] * across)
    inside = (axes**2).sum(axis=1)
    left, fresh = np.full((4, 5), 0.01), rng.uniform(0, 0.02, (4, 5))
    wanted = inside * blend(left, fresh, gains[0]) + (1 - inside) * blend(left, fresh, gains[1])
    assert np.allclose(shrunk.blend(left, fresh), wanted)
    for whole in (None, np.eye(5)):
        plain = _shrink(steps, variances, whole)
        assert np.allclose(plain.steps, steps * find_gains(steps, variances))
        assert np.allclose(plain.blend(left, fresh), blend(left, fresh, find_gains(steps, variances)))


# --- counts and swaps -------------------------------------------------------------------------------------------------


def counts_by_hand(noisy, noise, level):
    """The prior by EM over 60 levels, each observation rounded to an eighth of the noise."""
    top = max(noisy.max(), noise)
    levels = [top * (i / 59) ** 1.5 for i in range(60)]
    seen = [np.rint(x * 8 / noise) / 8 for x in noisy]
    squares = np.array([[(x - c / noise) ** 2 for c in levels] for x in seen])
    likelihood = np.exp(-0.5 * (squares - squares.min(axis=1, keepdims=True)))
    prior = np.full(60, 1 / 60)
    for _ in range(60):
        joint = likelihood * prior
        prior = (joint / joint.sum(axis=1, keepdims=True)).mean(axis=0)
    joint = likelihood * prior
    joint /= joint.sum(axis=1, keepdims=True)
    return joint @ levels, joint[:, np.array(levels) > level].sum(axis=1)


@pytest.mark.parametrize("noise", [0.5, 4.0, 300.0])
@pytest.mark.parametrize("level", [0.0, 1.0])
def test_counts_are_the_posterior_means_under_the_prior_that_fits_best(noise, level):
    rng = np.random.default_rng(3)
    noisy = np.concatenate([np.zeros(30), [5.0, 40.0, 41.0, 200.0]]) + noise * rng.standard_normal(34)
    found = estimate_counts(noisy, noise, level=level * noise)
    means, occupied = counts_by_hand(noisy, noise, level * noise)
    assert np.allclose(found.means, means, rtol=1e-6, atol=1e-9)
    assert np.allclose(found.occupied, occupied, rtol=1e-6, atol=1e-9)


CENTRES = np.array([[-0.5, 0.0], [-0.45, 0.0], [0.5, 0.0], [0.0, 0.8]])


def swap(variances, errors=1e-3, counts=(100.0, 100.0, 200.0, 100.0), points=CENTRES):
    return swap_centres(
        CENTRES,
        counts=np.array(counts),
        variances=np.array(variances),
        errors=np.full(4, errors),
        sketch=Sketch(points=points, weights=np.ones(len(points))),
        stream=Stream.from_seed(1, "swaps"),
    )


def test_a_swap_needs_two_deviations_and_half_the_gain():
    """Giving up a twin costs 100 100 / 200 0.05^2 = 0.125; the third gains 200 times its excess over the median."""
    gone = 100 * 100 / 200 * 0.05**2
    worth = gone / 0.5 / 200
    usual = 0.01
    assert np.array_equal(swap([usual, usual, usual + 0.99 * worth, usual], errors=1e-6), CENTRES)
    moved = swap([usual, usual, usual + 1.01 * worth, usual], errors=1e-6)
    assert not np.array_equal(moved, CENTRES)
    excess = 0.04
    assert np.array_equal(swap([usual, usual, usual + excess, usual], errors=excess / 1.99), CENTRES)
    assert not np.array_equal(swap([usual, usual, usual + excess, usual], errors=excess / 2.01), CENTRES)


def test_a_wide_cluster_is_split_as_far_as_its_excess_along_its_halves():
    halves = np.array([[0.5, 0.2], [0.5, -0.2], [-0.47, 0.0], [0.0, 0.8]])
    moved = swap([0.01, 0.01, 0.01 + 0.09, 0.01], points=halves)
    changed = np.flatnonzero((moved != CENTRES).any(axis=1))
    assert 2 in changed
    assert len(changed) == 2
    assert changed[0] in (0, 1)
    pair = moved[changed]
    assert np.allclose(np.sort(pair[:, 1]), [-0.3, 0.3])
    assert np.allclose(pair[:, 0], 0.5)


def test_the_usual_width_is_the_median_of_the_records():
    """Half of the records are in the third cluster: its own width is the usual one, and nothing is in excess."""
    assert np.array_equal(swap([0.01, 0.01, 0.5, 0.01], counts=(50.0, 50.0, 200.0, 50.0), errors=1e-6), CENTRES)
