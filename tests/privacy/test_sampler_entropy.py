"""The exact sampler's randomness: all of it is the operating system's, and no two draws are the same."""

import numpy as np
import pytest

from cloister.crypto import SystemEntropy
from cloister.privacy import samplers
from cloister.privacy.mechanisms import DiscreteGaussian, DiscreteGaussianSum, DiscreteLaplace, PolyaDifference
from cloister.privacy.samplers import ExactSampler, fold_to_geometric, thin_geometric

MECHANISMS = [
    DiscreteGaussian(sigma=2.0**30),
    DiscreteGaussianSum(sigma=2.0**30, shares=3),
    DiscreteLaplace(scale=2.0**30),
    PolyaDifference(scale=2.0**30, shares=3),
]


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda mechanism: type(mechanism).__name__)
def test_two_draws_and_two_samplers_have_nothing_in_common(mechanism):
    one, other = ExactSampler(), ExactSampler()
    drawn = np.concatenate([one.draw(mechanism, 40), one.draw(mechanism, 40), other.draw(mechanism, 40)])
    drawn = drawn[drawn != 0]  # a Polya share is often zero
    assert drawn.size > 30
    assert np.unique(drawn).size == drawn.size  # two of 120 alike have a chance of 120^2 / 2^31


@pytest.fixture
def known_laplace(monkeypatch):
    """OpenDP's samples replaced by constants, so that only the thinning is random."""
    constant = [10**9 + 7 * place for place in range(400)]
    monkeypatch.setattr(samplers, "_build_measurement", lambda mechanism: lambda zeros: constant[: len(zeros)])


def test_thinning_differs_from_sampler_to_sampler_and_from_draw_to_draw(known_laplace):
    one, other = ExactSampler(), ExactSampler()
    draws = [sampler.draw(PolyaDifference(scale=2.0**30, shares=3), 200) for sampler in (one, one, other)]
    for i, first in enumerate(draws):
        for second in draws[i + 1 :]:
            assert (first == second).mean() < 0.5  # alike where both are zero: about (2/3)^2 at the most


def test_thinning_takes_its_bytes_from_the_operating_system(known_laplace, monkeypatch):
    """With the system's bytes replaced by a recording, the thinning is what the recording gives."""
    recording, given = SystemEntropy().bytes(1 << 20), []

    def token_bytes(count):
        start = sum(given)
        given.append(count)
        return recording[start : start + count]

    class Replay:
        at = 0

        def bytes(self, count):
            self.at += count
            return recording[self.at - count : self.at]

    monkeypatch.setattr("secrets.token_bytes", token_bytes)
    drawn = ExactSampler().draw(PolyaDifference(scale=2.0**30, shares=3), 100)
    geometric = fold_to_geometric(np.array([10**9 + 7 * place for place in range(200)]))
    thinned = thin_geometric(geometric, 3, Replay())
    assert np.array_equal(drawn, thinned[:100] - thinned[100:])
    assert sum(given) > 200 * 16
