"""Rehearsals: charges within the budget, the noise that is stated, and the accuracy that was promised."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from cloister.crypto import Stream
from cloister.errors import BudgetError, LocalProtocolError
from cloister.kmeans import cluster_sums
from cloister.numeric import FixedPoint
from cloister.privacy.accounting import Accountant
from cloister.privacy.costs import rho_of
from cloister.privacy.placement import Shared
from cloister.privacy.simulation_sampler import SimulationSampler
from cloister.privacy.units import Budget
from cloister.protocols.vertical.algorithm import run_vertical
from cloister.protocols.vertical.noise import draw_share
from cloister.protocols.vertical.rehearsal import rehearse_vertical
from cloister.protocols.vertical.statistics import align_records, exact_total
from tests.protocols.vertical.sessions import same_finding
from tests.protocols.vertical.tables import Silent, make, mixture, rehearse

DATA = Path(__file__).parents[4] / "shared" / "data"


@pytest.mark.parametrize("start", ["synopsis", "random"])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
@pytest.mark.parametrize(
    ("alice", "encrypted"), [((0,), [(1,)]), ((0, 1, 2), [(3, 4, 5)]), ((), [(0,), (1, 2, 3), (4, 5)])]
)
def test_what_is_charged_is_within_the_budget_and_uses_nearly_all_of_it(alice, encrypted, start, epsilon):
    d = len(alice) + sum(map(len, encrypted))
    public = make(400, alice=alice, encrypted=encrypted, start=start, epsilon=epsilon, cells=4)
    books = Accountant(public.budget)
    rehearsal = rehearse(public, mixture(400, d, 3, seed=1), charger=books)
    spent = sum(map(rho_of, rehearsal.releases))
    assert spent <= public.rho
    assert spent >= 0.8 * public.rho  # boxes are not bought where the noise would decide
    assert books.spent().epsilon <= epsilon


def test_books_that_refuse_stop_it_before_noise_is_drawn():
    public = make(100)
    books = Accountant(Budget(epsilon=0.01, delta=1e-6))
    with pytest.raises(BudgetError):
        rehearse_vertical(
            public,
            mixture(100, 2, 2, seed=1),
            samplers=[Silent(), Silent()],
            stream=Stream.from_seed(0, "common"),
            charger=books,
        )


def test_wrong_numbers_of_records_and_samplers_are_refused():
    public, table, stream = make(100), mixture(100, 2, 2, seed=1), Stream.from_seed(0, "common")
    with pytest.raises(LocalProtocolError, match="all 100 records; got 99"):
        rehearse_vertical(public, table[:99], samplers=[Silent(), Silent()], stream=stream)
    with pytest.raises(LocalProtocolError, match="each of 2 holders of noise; got 1"):
        rehearse_vertical(public, table, samplers=[Silent()], stream=stream)


def test_a_session_with_the_same_noise_and_codebooks_finds_the_same():
    public, table = make(500, residuals=True), mixture(500, 2, 3, seed=2)
    first = rehearse(public, table)
    stream = Stream.from_seed(9, "noise")
    again = rehearse(public, table, codebooks=first.codebooks)
    samplers = [SimulationSampler(Stream.from_seed(1, "test vertical").child("noise", holder)) for holder in range(2)]
    asking = run_vertical(public, first.codebooks, Stream.from_seed(1, "test vertical").child("common"))
    query, totals = next(asking), []
    records = align_records(table, public.layout, first.codebooks)
    try:
        while True:
            exact = exact_total(query, records, first.codebooks)
            totals.append(exact + sum(draw_share(public, query.parts, sampler) for sampler in samplers))
            query = asking.send(totals[-1])
    except StopIteration as stop:
        assert same_finding(stop.value, again.finding)
    assert all(np.array_equal(a, b) for a, b in zip(totals, again.totals, strict=True))
    other = rehearse_vertical(
        public,
        table,
        samplers=[SimulationSampler(stream), SimulationSampler(stream.child("b"))],
        stream=stream,
        codebooks=first.codebooks,
    )
    assert not same_finding(other.finding, again.finding)


@pytest.mark.parametrize(("parties", "colluding", "factor"), [(2, 1, 2.0), (4, 1, 4 / 3), (3, 2, 3.0)])
def test_every_total_carries_the_noise_of_all_holders(parties, colluding, factor):
    """Two parties: each the whole noise, so the variance doubles; seeded, alpha 1e-6 in all."""
    public = make(300, start="random", rounds=1, placement=Shared(parties=parties, colluding_max=colluding))
    codebooks = rehearse(public, mixture(300, 2, 3, seed=4)).codebooks
    query = next(run_vertical(public, codebooks, Stream.from_seed(1, "common")))
    samplers = [SimulationSampler(Stream.from_seed(7, "noise", holder)) for holder in range(parties)]
    draws = np.array([sum(draw_share(public, query.parts, sampler) for sampler in samplers) for _ in range(1500)])
    sums, counts = query.parts
    for part, noise in zip((sums, counts), np.split(draws, [sums.length], axis=1), strict=True):
        variance = (noise.astype(float) ** 2).mean()
        low, high = stats.chi2.ppf([2.5e-7, 1 - 2.5e-7], noise.size) / noise.size
        assert low * factor < variance / part.sigma**2 < high * factor
        assert public.total_std(part.sigma) == pytest.approx(math.sqrt(factor) * part.sigma, rel=1e-6)


def scale(points):
    low, high = points.min(axis=0), points.max(axis=0)
    return FixedPoint().quantise(2 * (points - low) / (high - low) - 1)


@pytest.mark.skipif(not DATA.is_dir(), reason="the papers' data sets are not beside the repository")
def test_s1_at_epsilon_one_is_below_the_published_plaintext_baseline():
    """Seed 003, Table 4, in [0, 1] scaling: published 0.00566, its plaintext baseline 0.00286, best 0.00206."""
    table = scale(np.loadtxt(DATA / "s1.txt")[:, :2])
    n = len(table)

    def measure_loss(public, seed):
        return cluster_sums(table, rehearse(public, table, seed=seed).finding.centres).loss / n / 4

    exact = make(n, clusters=15, epsilon=None)
    assert measure_loss(exact, 1) < 0.0024
    private = replace(exact, budget=Budget(epsilon=1.0, delta=1 / n))
    assert np.mean([measure_loss(private, seed) for seed in range(10)]) < 0.00286
