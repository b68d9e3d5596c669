"""Columns and joint cells find their places."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloister.protocols.vertical.layout import Layout, cut_axes, join_cells, join_reps


@given(st.permutations(range(7)), st.integers(0, 5), st.integers(0, 5))
def test_session_order_and_back(columns, first, second):
    a, b = sorted((min(first, 6), min(second + 1, 6)))
    parts = tuple(part for part in (tuple(columns[a:b]), tuple(columns[b:])) if part)
    layout = Layout(alice=tuple(columns[:a]), encrypted=parts)
    table = np.random.default_rng(0).uniform(-1, 1, (5, 7))
    assert np.array_equal(layout.to_job(layout.to_session(table)), table)
    pieces = [layout.alice_part(table), *(layout.holder_part(table, h) for h in range(len(parts)))]
    assert np.array_equal(np.concatenate(pieces, axis=1), layout.to_session(table))
    assert layout.alice_count + layout.encrypted_count == layout.dimensions == 7


def test_a_joint_cell_has_the_representatives_of_its_parts():
    rng = np.random.default_rng(1)
    reps = [rng.uniform(-1, 1, shape) for shape in ((3, 1), (4, 2), (2, 3))]
    cells = [rng.integers(len(part), size=20) for part in reps]
    joint = join_cells(cells, [3, 4, 2])
    assert joint.min() >= 0
    assert joint.max() < 24
    expected = np.concatenate([part[own] for part, own in zip(reps, cells, strict=True)], axis=1)
    assert np.array_equal(join_reps(reps)[joint], expected)


@pytest.mark.parametrize(
    ("columns", "cells", "bins"), [(1, 16, (16,)), (2, 64, (8, 8)), (2, 15, (4, 3)), (0, 9, ()), (3, 8, (2, 2, 2))]
)
def test_axes_are_cut_evenly(columns, cells, bins):
    assert cut_axes(columns, cells) == bins
