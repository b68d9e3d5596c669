"""Public values: what is refused, how a budget is split, how large numbers can get."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cloister.errors import ConfigError
from cloister.privacy.calibration import rho_for
from cloister.privacy.placement import Shared
from cloister.privacy.units import Budget, Unit
from cloister.protocols.vertical.settings import ALICE, Knobs, Settings
from tests.protocols.vertical.tables import make, mixture, rehearse


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"clusters": 1}, "clusters must be from 2 to 100; got 1"),
        ({"clusters": 101}, "clusters must be from 2 to 100"),
        ({"columns_encrypted": ()}, "encrypted column holders must be from 1 to 3"),
        ({"columns_encrypted": ((1,), (2,), (3,), (4,))}, "encrypted column holders must be from 1 to 3"),
        ({"columns_encrypted": ((),)}, "at least one column"),
        ({"columns_encrypted": ((0,),)}, "held by exactly one party"),
        ({"columns_encrypted": ((2,),)}, "held by exactly one party"),
        ({"records": 0}, "records must be from 1"),
        ({"start": "published"}, "start must be"),
        ({"rounds": 0}, "rounds must be"),
        ({"cells": 1}, "cells must be"),
        ({"fractional_bits": 3}, "fractional_bits must be from 4 to 12"),
        ({"fractional_bits": 13}, "fractional_bits must be from 4 to 12"),
        ({"fractional_bits": 21, "budget": None}, "fractional_bits must be from 4 to 20"),
        ({"flood_share": 0.6}, "flood_share must be"),
        ({"columns_encrypted": ((1,), (2,)), "residuals": True}, "residuals need a single"),
        ({"columns_encrypted": ((1,), (2,), (3,)), "cells": 16}, "product of the holders' numbers of cells"),
        ({"budget": Budget(epsilon=1.0, delta=0.0)}, "delta must be greater than 0"),
        ({"budget": Budget(epsilon=1.0, delta=1e-6, unit=Unit.CLIENT)}, "unit must be"),
    ],
)
def test_what_cannot_be_is_refused_with_words_that_help(changes, words):
    good = {
        "clusters": 3,
        "columns_alice": (0,),
        "columns_encrypted": ((1,),),
        "records": 100,
        "budget": Budget(epsilon=1.0, delta=1e-6),
    }
    Settings(**good)
    with pytest.raises(ConfigError, match=words):
        Settings(**good | changes)


@pytest.mark.parametrize(
    ("name", "value"),
    [("start_share", 0.95), ("box_share", -0.1), ("restarts", 0), ("radius_factor", 0.0), ("start_cells_most", 1)],
)
def test_knobs_out_of_range_are_refused(name, value):
    with pytest.raises(ConfigError, match=f"{name}.* must be"):
        Knobs(**{name: value})


def test_an_exact_clustering_has_no_budget_to_split():
    with pytest.raises(ConfigError, match="no budget"):
        _ = make(100, epsilon=None).rho


@pytest.mark.parametrize(
    ("columns", "clusters", "epsilon", "cells"),
    [(1, 5, 1.0, 16), (1, 15, 1.0, 64), (2, 5, 1.0, 64), (2, 15, 1.0, 64), (2, 15, None, 256), (5, 4, 1.0, 64)],
)
def test_cells_by_default(columns, clusters, epsilon, cells):
    public = make(100, encrypted=[range(1, 1 + columns)], clusters=clusters, epsilon=epsilon)
    assert public.joint_cells == cells


def test_cells_of_several_holders_multiply():
    assert make(100, encrypted=[(1,), (2, 3)]).joint_cells == 16 * 16
    assert make(100, encrypted=[(1,), (2,), (3, 4, 5)]).joint_cells == 8**3
    assert not make(100, encrypted=[(1,), (2,)], epsilon=None).has_residuals


@settings(max_examples=100, deadline=None)
@given(
    alice=st.integers(0, 4),
    encrypted=st.lists(st.integers(1, 4), min_size=1, max_size=3),
    start=st.sampled_from(["synopsis", "random"]),
    rounds=st.sampled_from([None, 1, 7]),
    epsilon=st.sampled_from([0.05, 1.0, 50.0]),
    box=st.sampled_from([0.0, 0.05, 0.3]),
)
def test_the_parts_of_the_budget_are_the_budget(alice, encrypted, start, rounds, epsilon, box):
    edges = np.cumsum([alice, *encrypted])
    public = make(
        1000,
        alice=range(alice),
        encrypted=[range(a, b) for a, b in pairwise(edges)],
        start=start,
        rounds=rounds,
        epsilon=epsilon,
        knobs=Knobs(box_share=box),
    )
    spent = public.codebooks_rho + public.start_rho + public.rounds_made * (public.sum_rho + public.count_rho)
    assert spent == pytest.approx(public.rho, rel=1e-12)
    assert spent + public.flood_rho == pytest.approx(rho_for(public.noise_budget), rel=1e-12)
    assert public.noise_budget.delta + public.rare_delta == pytest.approx(public.budget.delta, rel=1e-12)
    assert min(public.round_rho, public.start_rho + (start == "random")) > 0
    assert public.rho <= public.replacement_rho <= 4 * public.rho * (1 + 1e-12)


def test_a_random_start_pays_for_no_codebook_of_alice():
    both = make(100, alice=(0, 1, 2), encrypted=[(3, 4, 5)])
    assert both.codebook_makers == (ALICE, 0)
    assert both.codebook_rho_of(0) == pytest.approx(both.codebooks_rho / 2)
    random = replace(both, start="random")
    assert random.codebook_makers == (0,)
    assert random.alice_cells == 1
    assert 2 <= both.alice_cells <= 64


@pytest.mark.parametrize("epsilon", [0.1, 1.0, None])
@pytest.mark.parametrize("residuals", [None, True])
@pytest.mark.parametrize("start", ["synopsis", "random"])
def test_no_total_passes_the_largest_sum(epsilon, residuals, start):
    """Also where every record is in a corner, far from every centre."""
    public = make(300, epsilon=epsilon, residuals=residuals, start=start)
    for table in (mixture(300, 2, 3, seed=1), np.ones((300, 2)), -np.ones((300, 2))):
        for total in rehearse(public, table).totals:
            assert np.abs(total).max() <= public.sum_max


def test_more_holders_of_noise_need_more_room():
    two = make(100)
    four = replace(two, placement=Shared(parties=4, colluding_max=3))
    assert four.total_std(10.0) == pytest.approx(2**0.5 * two.total_std(10.0))
    assert four.sum_max > two.sum_max
    assert two.total_std(None) == 0.0


def cost_of_change(public, before, after, radius=64):
    """The zCDP of one Lloyd round if a record's offsets and cluster are these before, and those after."""
    sigma_sum, sigma_count = public.sigma_for(radius**2, public.sum_rho), public.sigma_for(1, public.count_rho)
    sums, counts = np.zeros((2, 4)), np.zeros(2)
    for sign, (cluster, offset) in ((-1, before), (1, after)):
        sums[cluster] += sign * np.array(offset)
        counts[cluster] += sign
    return (sums**2).sum() / (2 * sigma_sum**2) + (counts**2).sum() / (2 * sigma_count**2)


@pytest.mark.parametrize("share", [0.05, 0.5, 0.9])
@pytest.mark.parametrize("start", ["synopsis", "random"])
def test_no_change_of_values_costs_more_than_is_said_and_the_worst_costs_as_much(start, share):
    """Replacement, from first principles: the worst of all pairs of offsets along the axes and of clusters."""
    public = make(500, start=start, knobs=Knobs(count_share=share))
    axes = [tuple(64 * sign * (i == j) for i in range(4)) for j in range(4) for sign in (-1, 1)]
    pairs = [(cluster, axis) for cluster in (0, 1) for axis in axes]
    worst = max(cost_of_change(public, before, after) for before in pairs for after in pairs)
    histogram = 2 / (2 * public.sigma_for(1, public.start_rho) ** 2) if start == "synopsis" else 0.0
    codebooks = sum(4 * public.codebook_rho_of(maker) for maker in public.codebook_makers)
    total = public.rounds_made * worst + histogram + codebooks
    assert total == pytest.approx(public.replacement_rho, rel=1e-6)
    assert total <= public.replacement_rho * (1 + 1e-12)
