"""Codebooks: cells that cover the domain, residuals that stay within their radius, charges before noise."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cloister.crypto import Stream
from cloister.errors import BudgetError, LocalProtocolError
from cloister.numeric import FixedPoint
from cloister.privacy.accounting import Accountant
from cloister.privacy.costs import rho_of
from cloister.privacy.release import NoiseDuty
from cloister.privacy.simulation_sampler import SimulationSampler
from cloister.privacy.units import Budget
from cloister.protocols.synopsis.extent import Box
from cloister.protocols.vertical.codebook import grid_codebook
from cloister.protocols.vertical.codebook_makers import make_alice_codebook, make_holder_codebook
from cloister.protocols.vertical.settings import ALICE, Knobs
from tests.protocols.vertical.tables import Silent, make, mixture

STREAM = Stream.from_seed(3, "codebooks")


def whole(columns):
    return Box(low=np.full(columns, -1.0), high=np.full(columns, 1.0))


def noisy_duty(budget):
    return NoiseDuty(charger=Accountant(budget), sampler=SimulationSampler(STREAM.child("noise")))


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    columns=st.integers(1, 2),
    cells=st.integers(2, 100),
    epsilon=st.sampled_from([1.0, None]),
)
def test_a_grid_puts_every_point_in_its_nearest_cell_and_keeps_what_is_left(seed, columns, cells, epsilon):
    rng = np.random.default_rng(seed)
    public = make(10, encrypted=[range(1, 1 + columns)], epsilon=epsilon, residuals=True)
    codebook = grid_codebook(public, whole(columns), cells=cells, residuals=True)
    points = FixedPoint().quantise(np.vstack([rng.uniform(-1, 1, (40, columns)), np.ones(columns), -np.ones(columns)]))
    found = codebook.assign(points)
    squares = ((points[:, None] - codebook.reps) ** 2).sum(axis=2)
    assert np.allclose(squares[np.arange(len(points)), found], squares.min(axis=1), atol=1e-12)
    assert np.array_equal(np.rint(codebook.reps * public.units), codebook.reps * public.units)
    # The radius of a whole grid clips nobody: cell and residual tell where the record is, to a unit.
    back = codebook.reps[found] * public.units + codebook.residuals(points, found)
    assert np.abs(back - points * public.units).max() <= 0.5


def test_residuals_are_clipped_to_the_public_radius_or_not_there():
    public = make(10, residuals=True)
    codebook = replace(grid_codebook(public, whole(1), cells=4, residuals=True), residual_radius=7)
    points = np.linspace(-1, 1, 201)[:, None]
    residuals = codebook.residuals(points, codebook.assign(points))
    assert np.abs(residuals).max() == 7
    without = grid_codebook(public, whole(1), cells=4, residuals=False)
    assert not without.residuals(points, without.assign(points)).any()


def test_a_party_without_columns_has_one_cell():
    public = make(20, alice=(), encrypted=[(0,)])
    codebook = make_alice_codebook(public, np.zeros((20, 0)), duty=None, stream=STREAM)
    assert codebook.reps.shape == (1, 0)
    assert not codebook.assign(np.zeros((20, 0))).any()


def test_a_narrow_box_makes_narrow_cells():
    table = FixedPoint().quantise(0.3 + 0.05 * np.random.default_rng(1).uniform(-1, 1, (5000, 1)))
    public = make(5000, alice=(), encrypted=[(0,)])
    codebook = make_holder_codebook(public, 0, table, duty=noisy_duty(public.budget), stream=STREAM)
    assert codebook.is_grid
    assert np.ptp(codebook.reps) < 0.4
    data_independent = replace(public, knobs=Knobs(box_share=0.0))
    codebook = make_holder_codebook(data_independent, 0, table, duty=None, stream=STREAM)
    assert codebook.releases == ()
    assert np.ptp(codebook.reps) == pytest.approx(2 - 2 / 16)


@pytest.mark.parametrize("columns", [1, 2, 3, 8])
@pytest.mark.parametrize("epsilon", [0.2, 1.0, 8.0])
def test_a_codebook_costs_at_most_its_part_and_is_charged(columns, epsilon):
    public = make(2000, alice=(0,), encrypted=[range(1, 1 + columns)], epsilon=epsilon, cells=8, residuals=True)
    points = mixture(2000, columns, 4, seed=2)
    duty = noisy_duty(public.budget)
    codebook = make_holder_codebook(public, 0, points, duty=duty, stream=STREAM)
    assert sum(map(rho_of, codebook.releases)) <= public.codebook_rho_of(0) * (1 + 1e-9)
    assert len(codebook.reps) == public.joint_cells
    assert codebook.residual_radius <= public.residual_most
    assert np.abs(codebook.reps).max() <= 1
    if epsilon == 8.0:  # enough to see the records: they are near their representatives
        squares = ((points - codebook.reps[codebook.assign(points)]) ** 2).sum(axis=1).mean()
        assert squares < 0.5 * points.var(axis=0).sum()
        assert 0.3 * squares < codebook.variance < 3 * squares


def test_refused_books_draw_no_noise():
    public = make(2000, alice=(), encrypted=[(0, 1, 2)])
    books = Accountant(Budget(epsilon=1e-6, delta=1e-9))
    with pytest.raises(BudgetError):
        make_holder_codebook(
            public, 0, mixture(2000, 3, 2, seed=1), duty=NoiseDuty(charger=books, sampler=Silent()), stream=STREAM
        )
    with pytest.raises(LocalProtocolError, match="must be charged"):
        make_holder_codebook(public, 0, mixture(2000, 3, 2, seed=1), duty=None, stream=STREAM)


def test_without_a_budget_nothing_is_charged_and_nothing_is_clipped():
    public = make(500, encrypted=[(1, 2, 3)], epsilon=None, cells=8)
    points = mixture(500, 3, 3, seed=4)
    codebook = make_holder_codebook(public, 0, points, duty=None, stream=STREAM)
    found = codebook.assign(points)
    assert np.array_equal(codebook.reps[found] * public.units + codebook.residuals(points, found), points * 2**16)
    assert codebook.releases == ()
    assert public.is_grid(ALICE)
