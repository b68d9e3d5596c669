"""Queries: what is charged for them, what the roles compare, and that one record adds no more to the last digit."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cloister.errors import LocalProtocolError
from cloister.privacy.costs import rho_of
from cloister.privacy.mechanisms import DiscreteGaussian, DiscreteGaussianSum
from cloister.privacy.placement import Shared
from cloister.protocols.vertical.query import LONGEST_MOST, HistogramQuery, LloydQuery, round_to_length
from tests.protocols.vertical.tables import make

HISTOGRAM = HistogramQuery(alice_cells=4, group_of=np.array([0, 0, 1, 2, 2]), sigma=3.0)
LLOYD = LloydQuery(
    number=1,
    centres=np.zeros((3, 4)),
    origins=np.zeros((3, 4), dtype=np.int64),
    units=256,
    constants=np.zeros((3, 5, 2), dtype=np.int64),
    radius_alice=30,
    radius_encrypted=40,
    sigma_sum=100.0,
    sigma_count=5.0,
)


# --- query ------------------------------------------------------------------------------------------------------------


def test_lengths_and_parts():
    assert HISTOGRAM.length == 12
    assert LLOYD.length == 15
    assert (LLOYD.alice_count, LLOYD.encrypted_count) == (2, 2)
    for query in (HISTOGRAM, LLOYD):
        assert sum(part.length for part in query.parts) == query.length
    sums, counts = LLOYD.parts
    assert (sums.sensitivity.l2_squared, sums.sensitivity.l1) == (2500, 100)
    assert (counts.sensitivity.l2_squared, counts.sensitivity.l1) == (1, 1)


def test_a_total_is_sums_and_then_counts():
    sums, counts = LLOYD.split_total(np.arange(15))
    assert sums[1].tolist() == [4, 5, 6, 7]
    assert counts.tolist() == [12, 13, 14]


def test_releases_cost_what_the_parts_say_against_any_allowed_coalition():
    public = make(100)
    sums, counts = (part.release(public) for part in LLOYD.parts)
    assert sums.mechanism == DiscreteGaussian(sigma=100.0)
    assert rho_of(sums) == pytest.approx(2500 / (2 * 100.0**2))
    assert rho_of(counts) == pytest.approx(1 / (2 * 5.0**2))
    shared = replace(public, placement=Shared(parties=3, colluding_max=1))
    event = LLOYD.parts[0].release(shared)
    assert isinstance(event.mechanism, DiscreteGaussianSum)
    assert rho_of(event) <= rho_of(sums) * (1 + 1e-9)


def test_exact_totals_are_never_charged():
    with pytest.raises(LocalProtocolError, match="must not be charged"):
        replace(HISTOGRAM, sigma=None).parts[0].release(make(100, epsilon=None))


# --- clipping ---------------------------------------------------------------------------------------------------------


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
