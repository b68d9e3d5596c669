"""What one record may add is bounded to the last digit."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cloister.errors import LocalProtocolError
from cloister.protocols.vertical.clipping import LONGEST_MOST, round_to_length


def check_bound(clip, vectors, longest):
    rounded = clip(vectors, longest)
    assert rounded.dtype == np.int64
    assert (rounded**2).sum(axis=-1).max(initial=0) <= longest**2


@settings(max_examples=200, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    d=st.integers(0, 12),
    longest=st.one_of(st.integers(0, 40), st.sampled_from([255, 2**12 + 1, LONGEST_MOST])),
    scale=st.sampled_from([1e-3, 0.5, 1.0, 1.0001, 7.0, 1e6]),
)
def test_no_vector_is_longer_than_allowed(seed, d, longest, scale):
    rng = np.random.default_rng(seed)
    vectors = rng.standard_normal((50, d)) * scale * max(longest, 1) / max(d, 1) ** 0.5
    check_bound(round_to_length, vectors, longest)
    # Each alone is what it is among the others.
    assert np.array_equal(
        np.concatenate([round_to_length(row[None], longest) for row in vectors]), round_to_length(vectors, longest)
    )


def test_the_bound_is_reached_and_short_vectors_are_only_rounded():
    assert round_to_length(np.array([[30.2, 40.4]]), 50).tolist() == [[30, 40]]
    assert round_to_length(np.array([[300.0, 400.0]]), 50).tolist() == [[30, 40]]
    vectors = np.random.default_rng(1).uniform(-5, 5, (100, 3))
    assert np.array_equal(round_to_length(vectors, 20), np.rint(vectors))
    assert np.array_equal(round_to_length(100 * vectors, None), np.rint(100 * vectors))


def test_the_property_catches_rounding_that_lengthens():
    def careless(vectors, longest):
        lengths = np.sqrt((vectors**2).sum(axis=-1, keepdims=True))
        return np.rint(vectors * np.minimum(1, longest / np.maximum(lengths, 1e-9))).astype(np.int64)

    with pytest.raises(AssertionError):
        check_bound(careless, np.random.default_rng(0).standard_normal((500, 3)) * 100, 7)


@pytest.mark.parametrize("longest", [-1, LONGEST_MOST + 1])
def test_lengths_that_the_lemma_does_not_cover_are_refused(longest):
    with pytest.raises(LocalProtocolError, match="must be bounded"):
        round_to_length(np.zeros((1, 2)), longest)
