"""The rounds: steps that noise does not decide, counts that add up to n, radii within what was declared."""

from dataclasses import replace

import numpy as np
import pytest

from cloister.protocols.vertical.knobs import Knobs
from cloister.protocols.vertical.rounds import refine_centres
from cloister.protocols.vertical.start import StartingPoint
from tests.protocols.vertical.tables import make, mixture, rehearse


def start_at(centres, *, weights=None, variance=0.02):
    variances = None if weights is None else np.full(len(centres), 100.0)
    return StartingPoint(
        centres=np.asarray(centres, dtype=float),
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
    assert np.allclose(refined.weights, counts, rtol=1e-6)


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
    assert plain.weights.tolist() == pytest.approx([350, 650])
    _, averaged = take_round(
        public,
        start_at([[-0.5, 0.0], [0.5, 0.0]], weights=np.array([500.0, 500.0])),
        totals(np.zeros((2, 2)), [300, 700]),
    )
    assert averaged.weights.sum() == pytest.approx(1000)
    assert 300 < averaged.weights[0] < 500


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
