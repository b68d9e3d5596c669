"""A plan spends its budget and no more, in the given proportions; noise is drawn in its order, once it is charged."""

from __future__ import annotations

import math

import numpy as np
import pytest

from cloister.crypto import Stream
from cloister.errors import BudgetError
from cloister.privacy.accounting import Accountant
from cloister.privacy.mechanisms import DiscreteGaussian, DiscreteLaplace
from cloister.privacy.simulation_sampler import SimulationSampler
from cloister.privacy.units import Budget
from papers.feddp import noise
from papers.feddp.noise import PlannedNoise, Step, plan_releases

GAUSSIAN = Step(name="sums", share=3.0, entries=12, longest=2**20, is_gaussian=True)
LAPLACE = Step(name="counts", share=1.0, entries=4, longest=50, is_gaussian=False)


def budget(epsilon: float) -> Budget:
    return Budget(epsilon=epsilon, delta=1e-6)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 2.0])
@pytest.mark.parametrize("steps", [(GAUSSIAN, LAPLACE), (GAUSSIAN, LAPLACE) * 3])
def test_a_plan_spends_its_budget_and_no_more(epsilon: float, steps: tuple[Step, ...]) -> None:
    releases = plan_releases(budget(epsilon), steps)
    spent = Accountant(budget(epsilon), plan=releases).would_spend(releases).epsilon
    assert 0.9999 * epsilon < spent <= epsilon
    assert [release.name for release in releases] == [step.name for step in steps]


def test_shares_and_sensitivities_set_the_noise() -> None:
    sums, counts = plan_releases(budget(1.0), (GAUSSIAN, LAPLACE))
    assert (sums.sensitivity.l2_squared, counts.sensitivity.l1) == (2**40, 50)
    assert isinstance(sums.mechanism, DiscreteGaussian)
    assert isinstance(counts.mechanism, DiscreteLaplace)
    own_epsilons = (
        math.sqrt(2 * math.log(1.25e6)) * 2**20 / sums.mechanism.sigma,
        50 / counts.mechanism.scale,
    )
    assert own_epsilons[0] / own_epsilons[1] == pytest.approx(3.0)


def test_noise_comes_in_the_order_of_the_plan() -> None:
    releases = plan_releases(budget(1.0), (GAUSSIAN, LAPLACE))
    one, two = (SimulationSampler(Stream.from_seed(1, "noise")) for _ in range(2))
    planned = PlannedNoise(budget(1.0), releases, one)
    sums = planned.release(np.zeros((4, 3), dtype=np.int64))
    counts = planned.release(np.full(4, 7, dtype=np.int64))
    np.testing.assert_array_equal(sums.ravel(), two.draw(releases[0].mechanism, 12))
    np.testing.assert_array_equal(counts - 7, two.draw(releases[1].mechanism, 4))
    with pytest.raises(StopIteration):
        planned.release(np.zeros(4, dtype=np.int64))


def test_a_release_is_charged_before_its_noise_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    log: list[str] = []

    class Logged(Accountant):
        def charge(self, release):
            log.append(f"charge {release.name}")
            super().charge(release)

    class Sampler(SimulationSampler):
        def draw(self, mechanism, entries, on_progress=None):
            log.append("draw")
            return super().draw(mechanism, entries, on_progress)

    monkeypatch.setattr(noise, "Accountant", Logged)
    releases = plan_releases(budget(1.0), (GAUSSIAN, LAPLACE))
    planned = PlannedNoise(budget(1.0), releases, Sampler(Stream.from_seed(1, "noise")))
    for release in releases:
        planned.release(np.zeros(release.entries, dtype=np.int64))
    assert log == ["charge sums", "draw", "charge counts", "draw"]


def test_a_plan_that_is_too_dear_is_refused_before_anything_is_drawn() -> None:
    releases = plan_releases(budget(1.0), (GAUSSIAN, LAPLACE))
    with pytest.raises(BudgetError, match="a plan must cost at most"):
        PlannedNoise(budget(0.9), releases, SimulationSampler(Stream.from_seed(1, "noise")))
