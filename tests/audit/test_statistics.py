"""Each candidate statistic catches the defect it is there for."""

import numpy as np
import pytest

from cloister.audit import Attack, Claim, Neighbour, audit
from cloister.audit.statistics import check_outputs, fit_statistics, last_bit_exponents
from cloister.crypto import Stream
from cloister.errors import LocalProtocolError

CLAIM = Claim(epsilon=1.0, delta=0.0)
DEFECT_RUNS = 8_000


def attack(release):
    """An attack from release(present, runs, rng)."""

    def run(which, runs, stream):
        rng = np.random.default_rng(int(stream.integers(2**62, 1)[0]))
        return release(which is Neighbour.WITH, runs, rng)

    return Attack(name="a made-up pair", run=run)


def check_caught(release, words, claim=CLAIM, runs=DEFECT_RUNS):
    report = audit(attack(release), claim=claim, runs=runs, stream=Stream.from_seed(3, "statistics"))
    assert report.violates
    assert words in report.event


def discrete_laplace(rng, scale, shape):
    keep = 1 - np.exp(-1 / scale)
    return rng.geometric(keep, shape) - rng.geometric(keep, shape)


def test_one_entry_without_noise():
    def release(present, runs, rng):
        out = discrete_laplace(rng, 10, (runs, 6))
        out[:, 3] = present
        return out

    check_caught(release, "entry 3")


def test_floating_point_noise_shows_in_the_last_binary_digit():
    """Mironov 2012: a textbook Laplace sampler in doubles; the mean and the variance are as claimed."""

    def release(present, runs, rng):
        uniform = rng.random((runs, 1)) - 0.5
        noise = -np.sign(uniform) * np.log1p(-2 * np.abs(uniform))
        return present * 1.0 + noise

    check_caught(release, "last binary digit of entry 0")


def test_coarse_noise_shows_in_the_low_bits():
    def release(present, runs, rng):
        return 4 * discrete_laplace(rng, 25, (runs, 2)) + np.array([present, 0])

    check_caught(release, "modulo 8")


def test_a_value_that_only_one_input_gives():
    def release(present, runs, rng):
        # 0, 1, 2, 3 with the same mean and nearly the same law, but 3 is impossible without the record.
        share = [0.4, 0.3, 0.2, 0.1] if present else [0.25, 0.5, 0.25, 0.0]
        return rng.choice(4, size=(runs, 1), p=share)

    check_caught(release, "entry 0", runs=20_000)


def test_values_in_no_order():
    def release(present, runs, rng):
        share = [0.05, 0.45, 0.05, 0.45] if present else [0.45, 0.05, 0.45, 0.05]
        return rng.choice(4, size=(runs, 1), p=share)

    check_caught(release, "exact value of entry 0")


def test_noise_whose_size_depends_on_the_data():
    def release(present, runs, rng):
        return rng.normal(0, 1.0 + 1.0 * present, (runs, 20))

    check_caught(release, "log-likelihood ratio")


def test_an_outlier_in_any_entry():
    def release(present, runs, rng):
        out = rng.laplace(0, 1, (runs, 40))
        out[np.arange(runs), rng.integers(40, size=runs)] += 30 * present
        return out

    check_caught(release, "")  # the likelihood ratio sees it too, and may win
    rng = np.random.default_rng(1)
    without, present = release(False, 2000, rng), release(True, 2000, rng)
    (largest,) = (s for s in fit_statistics(without, present) if s.words.startswith("largest deviation"))
    assert np.median(largest.score(present)) > np.quantile(largest.score(without), 0.999)


def test_noises_that_move_together_without_being_equal():
    """Gaussian and Laplace noise from one stream of uniforms, as FedDP-KMeans's published code draws them."""
    from scipy import stats

    def release(present, runs, rng):
        uniform = rng.random((runs, 1))
        return np.hstack([stats.laplace.ppf(uniform) * 20 + present, stats.norm.ppf(uniform) * 20 - present])

    rho = 1 / 20**2  # far above what independent noise of either kind would cost together
    check_caught(release, "", claim=Claim(epsilon=0.4, delta=1e-5, rho=rho))
    rng = np.random.default_rng(1)
    statistics = fit_statistics(release(False, 2000, rng), release(True, 2000, rng))
    assert any("move together" in statistic.words for statistic in statistics)


def test_many_entries_with_a_little_each():
    def release(present, runs, rng):
        return rng.normal(0, 1, (runs, 1100)) + 0.1 * present

    check_caught(release, "mean difference", claim=Claim(epsilon=1, delta=1e-5, rho=0.03), runs=2_000)


def test_independent_sound_noise_is_not_caught_by_any():
    def release(present, runs, rng):
        return discrete_laplace(rng, 2.0, (runs, 5)) + np.array([present, present, 0, 0, 0])

    report = audit(attack(release), claim=CLAIM, runs=40_000, stream=Stream.from_seed(3, "sound"))
    assert not report.violates
    assert report.epsilon_lower > 0.5


def test_last_bit_exponents():
    assert last_bit_exponents(np.array([1, 5, 12, -8])).tolist() == [0, 0, 2, 3]
    assert last_bit_exponents(np.array([2.5, -0.75, 96.0, 2.0**-1060])).tolist() == [-1, -2, 5, -1060]
    assert last_bit_exponents(np.array([0]))[0] > 1000


def test_fitted_statistics_are_finite_on_constant_entries():
    constant = np.zeros((50, 3), dtype=np.int64)
    for statistic in fit_statistics(constant, constant):
        assert np.isfinite(statistic.score(constant)).all()


@pytest.mark.parametrize(
    "outputs",
    [np.zeros(5), np.zeros((4, 2)), np.zeros((5, 0)), np.full((5, 1), np.nan), np.full((5, 1), "x")],
)
def test_outputs_that_are_no_matrix_of_numbers_are_refused(outputs):
    with pytest.raises(LocalProtocolError, match="mechanism under audit"):
        check_outputs(outputs, runs=5)


def test_labels_must_fit():
    with pytest.raises(LocalProtocolError, match="labels"):
        fit_statistics(np.zeros((5, 2)), np.zeros((5, 2)), labels=("a",))
