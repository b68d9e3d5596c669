"""The sound variant's schedule and its step, each formula of docs/study-fastlloyd.md written a second time."""

from __future__ import annotations

import math

import numpy as np
import pytest

from cloister.kmeans import fold
from cloister.privacy.centre_noise import UNKNOWN
from cloister.privacy.units import Budget
from cloister.protocols.fastlloyd.offsets import Offsets, find_moves, measure_contribution, relocate
from cloister.protocols.fastlloyd.sound import SoundSettings, plan_fastlloyd


def settings_of(k=15, d=2, **options):
    return SoundSettings(clusters=k, dimensions=d, parties=2, max_records=100, **options)


@pytest.mark.parametrize(("k", "d"), [(2, 1), (15, 2), (3, 9), (100, 40)])
def test_twelve_rounds_whose_radii_shrink_from_the_domains_to_a_clusters(k, d):
    options = settings_of(k, d)
    later = 0.6 * math.sqrt(d) / k ** (1 / d)
    assert options.rounds == len(options.radii) == 12
    wanted = [0.6 * math.sqrt(d), *(later * max(0.85**t, 0.1) for t in range(11))]
    assert options.radii == pytest.approx(wanted, rel=1e-6)
    many = settings_of(k, d, iterations=20)
    assert many.radii[-1] == pytest.approx(0.1 * later, rel=1e-6)
    assert many.radii[13] == pytest.approx(later * 0.85**12, rel=1e-6)
    assert settings_of(k, d, radius=0.25).radii == (0.25,) * 12
    assert settings_of(k, d, radius=1e9).radii == (2 * math.sqrt(d),) * 12


def test_a_radius_may_be_as_small_as_a_millionth():
    assert settings_of(radius=1e-6).radii[0] == 1e-6
    with pytest.raises(ValueError, match="radius must be at least 1e-06"):
        settings_of(radius=0.99e-6)


@pytest.mark.parametrize("d", [1, 2, 30])
def test_a_plan_weighs_counts_and_blurs_as_stated(d):
    options = settings_of(7, d)
    plan = plan_fastlloyd(options, Budget(epsilon=1.0, delta=1e-6))
    rule = plan.rule
    assert rule.scale == 2**16
    assert rule.count_weight == round(2**16 / math.sqrt(2 * math.sqrt(d)))
    assert rule.radii == options.radii
    assert rule.blur == pytest.approx(0.01 * options.later_radius)
    assert rule.deviation == pytest.approx(math.sqrt(plan.placement.total_variance(plan.targets[0])), rel=1e-6)
    assert plan_fastlloyd(settings_of(7, d, radius=0.3), Budget(epsilon=1.0, delta=1e-6)).rule.blur == 0.0
    assert plan_fastlloyd(settings_of(7, d, ring_bits=64), Budget(epsilon=1.0, delta=1e-6)).rule.scale == 2**16


def test_where_sums_do_not_fit_32_bits_the_grid_is_coarser_down_to_2_10_and_then_they_are_64():
    budget = Budget(epsilon=1.0, delta=1e-6)
    scales = [
        plan_fastlloyd(SoundSettings(clusters=3, dimensions=2, parties=2, max_records=most), budget).rule.scale
        for most in (10_000, 100_000, 980_000, 2 * 10**6)
    ]
    assert scales[0] == 2**16
    assert scales == [*sorted(scales[:3], reverse=True), 2**16]
    assert scales[2] == 2**10


@pytest.mark.parametrize("d", [1, 2, 5, 300])
@pytest.mark.parametrize("scale", [1, 2, 7, 2**16])
def test_no_integer_offset_has_larger_norms_than_stated_and_the_bounds_are_nearly_met(d, scale):
    found = measure_contribution(d, scale, 11)
    assert found.l2_squared == scale**2 + 121
    assert found.l1 == 11 + min(math.floor(math.sqrt(d) * scale + 1e-9), scale**2)


RULE = Offsets(dimensions=2, radii=(0.5, 0.4, 0.2, 0.1), scale=1000, count_weight=600, deviation=40_000.0, blur=0.02)
TOTAL = np.array([[300_000, -90_000, 600 * 700], [20_000, 10_000, 600 * 300], [400_000, 300_000, 600 * 20]])
LAST = np.array([[0, 0, 600 * 50_000], [0, 0, 600 * 250], [0, 0, -600]])


def radii_by_hand(round_, last):
    if last is None:
        return np.full(3, RULE.radii[round_ - 1])
    counts = np.maximum(last[:, 2] / 600, 1.0)
    noise = math.sqrt(2) * 40_000 / 1000 / counts
    return np.array([min(max(0.02 / own, RULE.radii[round_ - 1]), 2 * math.sqrt(2)) for own in noise])


@pytest.mark.parametrize("round_", [1, 2, 3, 4])
@pytest.mark.parametrize("last", [None, LAST], ids=["first", "later"])
def test_a_radius_grows_until_noise_moves_the_centre_as_far_as_it_may(round_, last):
    assert np.allclose(RULE.find_radii(3, round_, last), radii_by_hand(round_, last), rtol=1e-12)
    for records in (1.0, 2000.0, 60_000.0):
        radius = min(max(0.02 * 1000 * records / (math.sqrt(2) * 5000), RULE.radii[round_ - 1]), 2 * math.sqrt(2))
        assert RULE.blur_centre(5000.0, round_, records) == pytest.approx(5000 * radius / 1000 / records)


def step_by_hand(round_, last):
    """Offsets, what of them is certain, and the longest step, cluster by cluster."""
    for row, radius in zip(TOTAL, radii_by_hand(round_, last), strict=True):
        count = max(row[2] / 600, 1.0)
        offset = row[:2] * radius / 1000 / count
        length = math.hypot(*offset)
        noise = math.sqrt(2) * 40_000 * radius / 1000 / count
        yield radius, count, offset, max(0.0, 1 - 0.5 * noise**2 / length**2), radius / length


@pytest.mark.parametrize("round_", [1, 3, 4])
@pytest.mark.parametrize("last", [None, LAST], ids=["first", "later"])
def test_a_step_is_half_as_much_shortened_as_james_and_stein_would(round_, last):
    centres = np.array([[0.9, 0.1], [-0.2, 0.3], [0.0, -0.7]])
    moved = RULE.move(centres, TOTAL, round_=round_, members=2, last=last)
    steps = [offset * min(certain, limit) for _, _, offset, certain, limit in step_by_hand(round_, last)]
    expected = fold(centres + np.array(steps), -1.0, 1.0)
    moves = [] if round_ >= 3 else find_moves(TOTAL[:, 2] / 600, count_noise=40_000 / 600)
    assert np.allclose(moved, relocate(expected, moves, distance=0.1, turn=round_), rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("round_", [1, 3])
def test_noise_is_carried_from_step_to_step(round_):
    left = np.full((3, 2), 0.02)
    carried = RULE.carry_noise(left, TOTAL, 30_000.0, round_=round_)
    moved = {idle for idle, _ in find_moves(TOTAL[:, 2] / 600, count_noise=40_000 / 600)} if round_ < 3 else set()
    for i, (radius, count, offset, certain, _) in enumerate(step_by_hand(round_, None)):
        of_sum, of_count = 30_000 * radius / 1000, 30_000 / 600
        fresh = (of_sum**2 + (offset * of_count) ** 2) / count**2
        wanted = certain**2 * fresh + (1 - certain) ** 2 * 0.02
        assert np.allclose(carried[i], UNKNOWN if i in moved else np.minimum(wanted, UNKNOWN), rtol=1e-9)


def test_nobody_moves_in_the_last_round_but_one_nor_in_the_last():
    counts = np.array([[0, 0, 600 * 5000], [0, 0, 600]])
    rule = Offsets(dimensions=2, radii=(0.5, 0.4, 0.2, 0.1), scale=1000, count_weight=600, deviation=600.0)
    centres = np.array([[0.5, 0.5], [-0.5, -0.5]])
    hops = [not np.array_equal(rule.move(centres, counts, round_=t, members=1), centres) for t in (1, 2, 3, 4)]
    assert hops == [True, True, False, False]


@pytest.mark.parametrize(
    ("counts", "noise", "moves"),
    [
        ([1000, 1000, 155], 0.0, []),  # the average is 718: idle is below 0.2 of it, 143.7; busy from 1.5 of it, 1077
        ([1100, 911, 143], 0.0, [(2, 0)]),
        ([1100, 911, 145], 0.0, []),
        ([1070, 941, 143], 0.0, []),
        ([600, 50, 50], 25.0, [(1, 0)]),  # idle is up to 2 noises, 50; busy from 350, and the half of 600 is not
        ([600, 51, 51], 25.0, []),
        ([600, 50, 50], 99.0, [(1, 0)]),  # 600 is above 594; its half is not
        ([593, 50, 50], 99.0, []),
        ([-5.0, -5.0, 1.0], 0.0, [(0, 2), (1, 0)]),
    ],
)
def test_who_is_idle_and_who_is_busy(counts, noise, moves):
    assert find_moves(np.array(counts, dtype=float), count_noise=noise) == moves


def test_an_idle_centre_hops_along_an_axis_that_changes_with_cluster_and_round():
    centres = np.linspace(-0.4, 0.4, 15).reshape(5, 3)
    for turn in (1, 2, 7):
        for idle in range(4):
            moved = relocate(centres, [(idle, 4)], distance=0.5, turn=turn)
            hop = np.zeros(3)
            hop[(idle + turn) % 3] = 0.06 if idle < 3 else -0.06
            assert np.allclose(moved[idle], centres[4] + hop, atol=1e-15)
            assert np.array_equal(np.delete(moved, idle, axis=0), np.delete(centres, idle, axis=0))
    edge = relocate(np.array([[0.0, 0.0], [0.99, 0.0]]), [(0, 1)], distance=0.5, turn=2)
    assert np.allclose(edge[0], [0.95, 0.0])  # folded back into the domain
