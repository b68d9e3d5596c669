"""Alice's decision for every cell: the nearest centre, the first of equals, whoever else is in the table."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cloister.protocols.vertical.decision import decide_labels


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    n=st.sampled_from([1, 3, 255, 256, 600]),
    columns=st.integers(0, 3),
    others=st.integers(1, 3),
    k=st.integers(2, 7),
    steps=st.sampled_from([2, 2**16]),
)
def test_labels_are_those_of_the_nearest_centre(seed, n, columns, others, k, steps):
    """On a coarse grid, distances are exact and ties are many."""
    rng = np.random.default_rng(seed)
    alice, reps, centres = (
        rng.integers(-steps, steps + 1, shape) / steps for shape in ((n, columns), (5, others), (k, columns + others))
    )
    labels = decide_labels(alice, reps, centres)
    assert labels.dtype == np.int16
    assert labels.shape == (5, n)
    for c, rep in enumerate(reps):
        points = np.concatenate([alice, np.broadcast_to(rep, (n, others))], axis=1)
        squares = ((points[:, None] - centres) ** 2).sum(axis=2)
        if steps == 2:
            assert np.array_equal(labels[c], squares.argmin(axis=1))
        chosen = squares[np.arange(n), labels[c]]
        assert np.allclose(chosen, squares.min(axis=1), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("columns", [0, 1, 5])
def test_a_label_depends_on_no_other_record(columns):
    rng = np.random.default_rng(7)
    alice, reps, centres = (
        rng.uniform(-1, 1, (700, columns)),
        rng.uniform(-1, 1, (9, 2)),
        rng.uniform(-1, 1, (6, columns + 2)),
    )
    together = decide_labels(alice, reps, centres)
    for n in (0, 1, 255, 256, 300, 699):
        assert np.array_equal(decide_labels(alice[n : n + 1], reps, centres)[:, 0], together[:, n])
        assert np.array_equal(decide_labels(alice[n:], reps, centres), together[:, n:])
