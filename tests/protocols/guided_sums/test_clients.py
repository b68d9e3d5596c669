"""A client's whole vector is bounded, exactly, whatever the client holds."""

from math import isqrt
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import settings as hyp
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from cloister.errors import ConfigError
from cloister.privacy.units import Unit
from cloister.protocols.guided_sums.query import bound_client
from cloister.protocols.guided_sums.settings import BUDGET_UNITS
from cloister.protocols.guided_sums.statistics import Sizes, release_sizes, weigh_clients
from cloister.protocols.synopsis.questions import vote_for_median
from tests.protocols.synopsis.steps import answer, make_settings


@given(arrays(np.int64, st.integers(1, 300), elements=st.integers(-(2**59), 2**59)), st.integers(2000, 2**56))
@hyp(max_examples=400, deadline=None)
def test_squared_length_is_within_the_bound_exactly(exact, l2_squared):
    assert sum(int(a) ** 2 for a in bound_client(exact, l2_squared)) <= l2_squared


@given(arrays(np.int64, st.integers(1, 300), elements=st.integers(-(2**59), 2**59)), st.integers(2000, 2**56))
@hyp(max_examples=400, deadline=None)
def test_a_client_that_holds_anything_uses_all_of_the_bound_but_what_rounding_needs(exact, l2_squared):
    """Rounding takes sqrt(m)/2 + 1 from the length beforehand, and may take sqrt(m)/2 more."""
    least = isqrt(l2_squared) - len(exact) ** 0.5 - 2
    assume(exact.any())
    assume(least > 0)
    assert sum(int(a) ** 2 for a in bound_client(exact, l2_squared)) >= least**2


@given(arrays(np.float64, st.integers(1, 300), elements=st.floats(-1e150, 1e150)), st.integers(2000, 2**56))
@hyp(max_examples=400, deadline=None)
def test_doubles_of_any_size_are_within_the_bound(exact, l2_squared):
    assert sum(int(a) ** 2 for a in bound_client(exact, l2_squared)) <= l2_squared


def test_subnormals_and_long_vectors():
    assert int((bound_client(np.full(6000, 5e-324), 2**50) ** 2).sum()) <= 2**50
    v = bound_client(np.random.default_rng(0).standard_normal(1 << 20), 2**56)
    assert int((v.astype(object) ** 2).sum()) <= 2**56


def test_zeros_stay_zeros_and_small_bounds_are_refused():
    assert not bound_client(np.zeros(5, dtype=np.int64), 10**6).any()
    with pytest.raises(ConfigError):
        bound_client(np.ones(10000), 100)


def test_scaling_the_records_changes_nothing():
    a = np.arange(1, 9)
    assert (bound_client(a, 2**50) == bound_client(1000 * a, 2**50)).all()


def test_vote_is_one_hot():
    assert vote_for_median(np.array([0, 3, 1]), 7).tolist() == [0, 7, 0]
    assert not vote_for_median(np.zeros(3, dtype=np.int64), 7).any()


# --- how many records there are -----------------------------------------------------------------------------------


def release(sizes, *, noisy=True, seed=1, epsilon=1.0):
    public = make_settings(parties=len(sizes), dimensions=1, unit=Unit.CLIENT, epsilon=epsilon)
    parts = [np.zeros((size, 1)) for size in sizes]
    return answer(
        release_sizes(public, l2_squared=BUDGET_UNITS // 100),
        parts,
        noise_std=public.noise_std if noisy else 0.0,
        seed=seed,
    )


@pytest.mark.parametrize(
    ("size", "bins"), [(1, [0]), (2, [1]), (3, [1, 2]), (4, [2]), (5, [2, 3]), (8, [3]), (1000, [9, 10]), (2**19, [19])]
)
def test_a_party_splits_its_vote_so_that_the_mean_is_its_size(size, bins):
    votes = release([size], noisy=False).totals[0]
    assert np.flatnonzero(votes).tolist() == bins
    assert votes.sum() == (votes**2).sum() ** 0.5 or len(bins) == 2
    assert votes @ 2.0 ** np.arange(20) / votes.sum() == pytest.approx(size, rel=1e-6)


@given(st.integers(0, 2**21), st.integers(1, 2**56))
@hyp(max_examples=300, deadline=None)
def test_a_vote_is_within_its_price_whatever_the_size(size, share):
    records = SimpleNamespace(batches=lambda: iter([range(size)]))
    form = Sizes(share=share).form(None)
    votes = form.measure(records)
    assert (votes >= 0).all()
    assert sum(int(vote) ** 2 for vote in votes) <= form.l2_squared <= share


def test_a_party_without_records_does_not_vote_and_one_with_very_many_votes_for_the_last_bin():
    assert not release([0], noisy=False).totals[0].any()
    assert np.flatnonzero(release([2**20], noisy=False).totals[0]).tolist() == [19]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("sizes", [[1] * 1000, [100] * 1000, [20] * 700 + [200] * 700], ids=["ones", "alike", "mixed"])
def test_the_number_of_records_is_right_within_its_noise(sizes, seed):
    """Votes of noise alone would say 2^19 records for each of some parties."""
    found = release(sizes, seed=seed).found
    assert abs(found.estimate - sum(sizes)) < 4 * found.noise < 2 * sum(sizes)


@pytest.mark.parametrize("epsilon", [1.0, 3.0])
def test_the_noise_of_the_number_of_records_is_what_is_seen_over_many_releases(epsilon):
    sizes = [100] * 500 + [300] * 300
    found = [release(sizes, seed=seed, epsilon=epsilon).found for seed in range(200)]
    errors = np.array([(one.estimate - sum(sizes)) / one.noise for one in found])
    assert 0.85 < np.sqrt((errors**2).mean()) < 1.2
    assert abs(errors.mean()) < 4 / 200**0.5


@pytest.mark.parametrize("seed", range(3))
def test_where_noise_hides_every_vote_there_is_a_guess_that_says_that_it_is_one(seed):
    found = release([5], seed=seed, epsilon=0.01).found
    assert 1 <= found.estimate <= 2**19
    assert found.noise is None


def test_clients_count_for_what_their_directions_can_tell():
    """One record counts as about one; very many as sqrt(16 k / 3), and in between it grows."""
    public = make_settings(clusters=12, parties=50, unit=Unit.CLIENT)
    weights = [weigh_clients(public, 50.0 * each) / 50 for each in (0.01, 1, 10, 100, 10**9)]
    assert weights == sorted(weights)
    assert weights[0] == weights[1] == pytest.approx(1.0, abs=0.01)
    assert weights[2] < 10
    assert weights[-1] == pytest.approx((16 * 12 / 3) ** 0.5, rel=1e-6)
