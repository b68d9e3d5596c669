"""The noise that comes out is discrete Laplace, at small and large scales, in both rings; mutants are not."""

import numpy as np
import pytest

from cloister.joint_noise import JointLaplace, plan, sampler
from cloister.numeric import RING32, RING64
from cloister.privacy.mechanisms import DiscreteLaplace
from tests.joint_noise.joint_runs import Run
from tests.privacy.distributions import ALPHA, battery, battery_for_huge_scales, pmf

ENTRIES = 20_000
REACH = 200


def sample(scale, *, ring=RING32, parties=3, seed=1):
    return Run(JointLaplace(scale=scale, entries=ENTRIES, parties=parties, ring=ring), seed).noise


def p_value(samples, scale):
    return battery(samples, pmf(DiscreteLaplace(scale=scale), REACH))


@pytest.mark.parametrize("ring", [RING32, RING64], ids=str)
@pytest.mark.parametrize(("scale", "parties"), [(0.05, 2), (0.3, 3), (1.0, 2), (3.0, 3), (12.5, 5)])
def test_small_scales(scale, parties, ring):
    assert p_value(sample(scale, parties=parties, ring=ring), scale) > ALPHA


@pytest.mark.parametrize(
    ("scale", "ring"), [(2.0**18, RING32), (2.0**18, RING64), (2.0**24, RING32), (2.0**40, RING64)]
)
def test_large_scales(scale, ring):
    assert battery_for_huge_scales(sample(scale, ring=ring), DiscreteLaplace(scale=scale)) > ALPHA


def test_a_scale_at_which_almost_all_is_zero():
    assert not sample(0.02).any()  # P[x != 0] = 2e-22


def test_entries_and_samples_are_not_repeated():
    first, second = sample(2.0**18, seed=1), sample(2.0**18, seed=2)
    assert np.unique(first).size > 0.9 * ENTRIES
    assert abs(np.corrcoef(first, second)[0, 1]) < 5 / np.sqrt(ENTRIES)


class TestMutants:
    def test_thresholds_off_by_one_digit(self, monkeypatch):
        compute = plan.compute_threshold
        monkeypatch.setattr(plan, "compute_threshold", lambda scale, digit, bits: compute(scale, digit + 1, bits))
        assert p_value(sample(3.0), 3.0) < ALPHA

    def test_one_threshold_off_by_a_fifth(self, monkeypatch):
        def shrink_one(scale, digit, bits):
            return compute(scale, digit, bits) * (4 if digit == 2 else 5) // 5

        compute = plan.compute_threshold
        monkeypatch.setattr(plan, "compute_threshold", shrink_one)
        assert p_value(sample(3.0), 3.0) < ALPHA

    def test_a_sum_instead_of_a_difference(self, monkeypatch):
        def add(digits, plan):
            by_sign = digits.reshape(plan.digits, 2, plan.entries).copy()
            by_sign[:, 1] = -by_sign[:, 1]
            return weigh(by_sign.ravel(), plan)

        weigh = sampler.weigh_digits
        monkeypatch.setattr(sampler, "weigh_digits", add)
        assert p_value(sample(3.0), 3.0) < ALPHA

    def test_a_digit_that_is_not_weighed(self, monkeypatch):
        def forget_one(digits, plan):
            by_digit = digits.reshape(plan.digits, -1).copy()
            by_digit[1] = 0
            return weigh(by_digit.ravel(), plan)

        weigh = sampler.weigh_digits
        monkeypatch.setattr(sampler, "weigh_digits", forget_one)
        assert p_value(sample(3.0), 3.0) < ALPHA

    def test_both_variables_from_the_same_bits(self, monkeypatch):
        def repeat(digits, plan):
            by_sign = digits.reshape(plan.digits, 2, plan.entries).copy()
            by_sign[:, 1] = np.roll(by_sign[:, 0], 1, axis=-1)
            return weigh(by_sign.ravel(), plan)

        weigh = sampler.weigh_digits
        monkeypatch.setattr(sampler, "weigh_digits", repeat)
        assert p_value(sample(3.0), 3.0) < ALPHA
