"""The exact sampler's randomness: all of it is the operating system's, and no two draws are the same."""

import subprocess
import sys

import numpy as np
import pytest

from cloister.crypto import SystemEntropy
from cloister.privacy.mechanisms import DiscreteGaussian, DiscreteGaussianSum, DiscreteLaplace, PolyaDifference
from cloister.privacy.samplers import ExactSampler

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


def test_every_word_comes_from_the_operating_system_and_no_byte_is_asked_for_twice(monkeypatch):
    """With the system's bytes replaced by a recording, the samples are what the recording gives, and go on in it."""
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
    replayed = ExactSampler()
    replayed._entropy = Replay()
    for mechanism in MECHANISMS * 2:
        assert np.array_equal(ExactSampler().draw(mechanism, 100), replayed.draw(mechanism, 100))
    assert sum(given) == replayed._entropy.at > 2 * (1 + 3 + 1 + 2) * 100 * 24


@pytest.fixture
def known_laplace(monkeypatch):
    """Laplace samples replaced by constants, so that only the thinning is random."""
    constant = 10**9 + 7 * np.arange(400)
    monkeypatch.setattr(ExactSampler, "_draw_symmetric", lambda self, mechanism, count: constant[:count])


def test_thinning_differs_from_sampler_to_sampler_and_from_draw_to_draw(known_laplace):
    one, other = ExactSampler(), ExactSampler()
    draws = [sampler.draw(PolyaDifference(scale=2.0**30, shares=3), 200) for sampler in (one, one, other)]
    for i, first in enumerate(draws):
        for second in draws[i + 1 :]:
            assert (first == second).mean() < 0.5  # alike where both are zero: about (2/3)^2 at the most


def test_drawing_loads_the_compiler_and_nothing_before_does():
    code = (
        "import sys; from cloister.privacy.mechanisms import DiscreteLaplace; "
        "from cloister.privacy.samplers import ExactSampler; sampler = ExactSampler(); "
        "assert 'numba' not in sys.modules; sampler.draw(DiscreteLaplace(scale=2.0), 1); assert 'numba' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
