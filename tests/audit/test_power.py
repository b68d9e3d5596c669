"""The printed power is true: noise below the stated part is refuted nearly always, and clearly more noise seldom."""

import math

import numpy as np
import pytest

from cloister.audit import Attack, Claim, Neighbour, audit
from cloister.audit.bounds import DEFAULT_CONFIDENCE
from cloister.audit.power import find_power
from cloister.crypto import Stream
from cloister.privacy.costs import rho_of_epsilon
from cloister.privacy.privacy_loss import GaussianCost, epsilon_of_gaussian
from tests.audit.reference import DELTA, ReferenceRelease

SEEDS = range(8)


def claim_of(epsilon: float) -> Claim:
    return Claim(epsilon=epsilon, delta=DELTA, rho=rho_of_epsilon(epsilon, DELTA))


def power_of(claim: Claim, runs: int) -> float | None:
    return find_power(claim, runs=runs - 2 * (runs // 4), confidence=DEFAULT_CONFIDENCE)


def count_refuted(attacks: Attack | tuple[Attack, ...], claim: Claim, runs: int) -> int:
    streams = (Stream.from_seed(seed, "power") for seed in SEEDS)
    return sum(audit(attacks, claim=claim, stream=stream, runs=runs).violates for stream in streams)


def one_number(shift: float, *, laplace: bool = False) -> Attack:
    """One number whose mean is larger by ``shift``, in units of the noise."""

    def run(side: Neighbour, runs: int, stream: Stream) -> np.ndarray:
        rng = np.random.default_rng(int.from_bytes(stream.bytes(8), "little"))
        noise = rng.laplace(size=(runs, 1)) if laplace else rng.standard_normal((runs, 1))
        shifted = noise + (shift if side is Neighbour.WITH else 0.0)
        return np.rint(shifted * 2**16).astype(np.int64)  # the last bits of floating-point noise would tell the inputs

    return Attack(name="one number", run=run)


@pytest.mark.parametrize(("epsilon", "runs"), [(0.5, 4_000), (1.0, 4_000), (3.0, 2_000), (8.0, 1_000)])
def test_noise_below_the_stated_part_is_refuted_and_clearly_more_is_not(epsilon, runs):
    claim = claim_of(epsilon)
    times = power_of(claim, runs)
    assert times is not None
    mu = math.sqrt(2 * claim.rho)
    assert count_refuted(one_number(1.02 * times * mu), claim, runs) >= 7
    assert count_refuted(one_number(0.7 * times * mu), claim, runs) <= 4, "the stated part must not be far too small"
    assert count_refuted(one_number(mu), claim, runs) == 0


@pytest.mark.parametrize(("epsilon", "runs"), [(1.0, 4_000), (3.0, 4_000)])
def test_so_is_laplace_noise_of_a_pure_claim(epsilon, runs):
    claim = Claim(epsilon=epsilon, delta=0.0)
    times = power_of(claim, runs)
    assert times is not None
    assert count_refuted(one_number(1.02 * times * epsilon, laplace=True), claim, runs) >= 7
    assert count_refuted(one_number(epsilon, laplace=True), claim, runs) == 0


def test_a_whole_release_with_too_little_noise_is_refuted():
    """Several entries, rounds and neighbours: the event must be found, and the power leaves room for that."""
    release = ReferenceRelease(epsilon=3.0)
    times = power_of(release.claim, 4_000)
    assert times is not None
    mutant = ReferenceRelease(epsilon=3.0, noise_factor=1 / (1.05 * times))
    assert count_refuted(mutant.attacks(), release.claim, 4_000) >= 6


def test_more_runs_and_less_confidence_catch_more():
    claim = claim_of(1.0)
    powers = [power_of(claim, runs) for runs in (1_000, 10_000, 100_000)]
    assert powers == sorted(powers, reverse=True)
    assert powers[1] == pytest.approx(2.2, abs=0.05), "docs/audit.md"
    assert find_power(claim, runs=500, confidence=0.99) < find_power(claim, runs=500, confidence=0.999999)
    alone = Claim(epsilon=1.0, delta=DELTA)
    assert power_of(alone, 10_000) > powers[1], "epsilon alone shows less than rho"


def test_without_rho_the_noise_is_that_whose_curve_passes_through_the_claim():
    mu = 0.7
    claim = Claim(epsilon=epsilon_of_gaussian(GaussianCost(mu_squared=mu**2), 1e-5), delta=1e-5)
    times = power_of(claim, 20_000)
    assert times is not None
    assert count_refuted(one_number(1.02 * times * mu), claim, 20_000) >= 7


def test_too_few_runs_have_no_power_and_the_report_says_so():
    claim = Claim(epsilon=8.0, delta=0.0)
    assert power_of(claim, 400) is None
    report = audit(one_number(8.0, laplace=True), claim=claim, stream=Stream.from_seed(0, "few"), runs=400)
    assert "power: none" in report.text()
    report = audit(one_number(0.3), claim=claim_of(1.0), stream=Stream.from_seed(0, "few"), runs=1_000)
    assert report.caught_below == power_of(claim_of(1.0), 1_000), "only counted runs count"
    shown = math.ceil(100 * report.caught_below) / 100
    assert f"would have caught noise below 1/{shown:g} of what it should be" in report.text()
