"""Contributions of a single record: clipped offsets, middles, moments and projections, exact to the last bit."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cloister.errors import ConfigError
from cloister.kmeans import sum_offsets
from cloister.numeric import FixedPoint
from cloister.protocols.guided_sums import refinement
from cloister.protocols.guided_sums.query import bound_client
from cloister.protocols.guided_sums.settings import BUDGET_UNITS
from cloister.protocols.guided_sums.statistics import Subspace
from cloister.protocols.synopsis.extent import find_axes, find_middle
from cloister.protocols.synopsis.questions import Grid
from cloister.records import ArrayRecords
from tests.protocols.synopsis.steps import make_settings, measure, square


@settings(max_examples=200, deadline=None)
@given(
    d=st.sampled_from([1, 2, 3, 50, 2000]),
    scale=st.sampled_from([30, 1000, 2**20, 2**28, 2**40]),
    radius=st.sampled_from([1e-100, 1e-30, 1e-6, 2.0**-17, 0.3, 1.0, 100.0, 1e100]),
    part=st.sampled_from([refinement._COUNT_PART, refinement._CLIENT_COUNT_PART]),
    kind=st.sampled_from(["corner", "centre", "beside", "denormal", "at the radius", "random"]),
    seed=st.integers(0, 2**16),
)
def test_a_clipped_offset_is_never_longer_than_the_scale(d, scale, radius, part, kind, seed):
    rng = np.random.default_rng(seed)
    centre = rng.uniform(-1, 1, d) if seed % 2 else np.zeros(d)
    direction = rng.normal(size=d)
    offset = {
        "corner": rng.choice([-1.0, 1.0], d) - centre,
        "centre": np.zeros(d),
        "beside": np.full(d, 2.0**-50),
        "denormal": np.full(d, 5e-324),
        "at the radius": direction / np.linalg.norm(direction) * min(radius, 1.0),
        "random": rng.uniform(-1, 1, d),
    }[kind]
    weight = scale // part
    vector = sum_offsets(
        ArrayRecords((centre + offset)[None]), centre[None], np.array([radius]), scale=scale, weight=weight
    )
    assert square(vector[0, :d]) <= scale**2
    assert 0 <= vector[0, d] <= weight
    assert vector[0, d + 1] == weight


@pytest.mark.parametrize("radius", [0.0, 1e-310, -1.0, np.nan, np.inf])
def test_radii_that_clip_nothing_are_refused_whatever_the_records_are(radius):
    for rows in (np.zeros((0, 1)), np.zeros((1, 1)), np.ones((1, 1))):
        with pytest.raises(ConfigError, match="radii must be"):
            sum_offsets(ArrayRecords(rows), np.zeros((1, 1)), np.array([radius]), scale=1000, weight=1)


@pytest.mark.parametrize("d", [6, 100, 2000])
def test_middles_and_moments_of_the_longest_records(d):
    public = make_settings(clusters=3, dimensions=d, epsilon=8.0, parties=2)
    rng = np.random.default_rng(1)
    rows = np.vstack([np.ones((1, d)), rng.choice([-1.0, 1.0], (1, d)), np.zeros((1, d)), np.eye(d)[:1]])
    for l2_squared in (BUDGET_UNITS // 10_000, BUDGET_UNITS):
        asked = [
            next(find_middle(public, l2_squared=l2_squared)),
            *(
                next(find_axes(public, l2_squared=l2_squared, records=10.0, middle=middle, radius=radius))
                for middle in (-np.ones(d), rng.uniform(-1, 1, d))
                for radius in (0.02 * d**0.5, 2 * d**0.5)[: 1 if d > 1000 else 2]
            ),
        ]
        for query in asked:
            assert query.l2_squared <= l2_squared
            for row in rows:
                vector = measure(query, row[None])
                assert square(vector) <= query.l2_squared, query.name


@settings(max_examples=300, deadline=None)
@given(
    entries=st.lists(
        st.one_of(st.sampled_from([0, 1, -1, 2**62, -(2**63), 2**63 - 1]), st.integers(-(2**63), 2**63 - 1)),
        min_size=1,
        max_size=40,
    ),
    repeated=st.sampled_from([1, 1000]),
    l2_squared=st.sampled_from([BUDGET_UNITS, BUDGET_UNITS // 3, 10**6, 10**5]),
)
def test_a_clients_vector_is_scaled_into_the_bound(entries, repeated, l2_squared):
    exact = np.array(entries * repeated, dtype=np.int64)
    vector = bound_client(exact, l2_squared)
    assert square(vector) <= l2_squared
    assert (vector != 0).any() == (exact != 0).any() or l2_squared < 10**6
    if l2_squared > 10**6 and exact.any():
        assert square(vector) > 0.99 * l2_squared


@pytest.mark.parametrize("d", [6, 2000])
def test_a_share_too_small_for_so_many_columns_is_refused(d):
    """Rather than rounded to vectors that are longer than declared."""
    public = make_settings(clusters=3, dimensions=d, epsilon=8.0, parties=2)
    with pytest.raises(ConfigError, match="larger share"):
        next(find_middle(public, l2_squared=4))
    with pytest.raises(ConfigError, match="larger share"):
        next(find_axes(public, l2_squared=700, records=10.0, middle=np.zeros(d), radius=1.0))


def table_and_subspace(d, axes_number, seed):
    rng = np.random.default_rng(seed)
    basis, _ = np.linalg.qr(rng.normal(size=(d, axes_number)))
    rows = FixedPoint().quantise(rng.uniform(-1, 1, (67, d)))
    return rows, Subspace(origin=rng.uniform(-0.2, 0.2, d), axes=np.ascontiguousarray(basis))


def alone_differs(d):
    """How many coordinates of a record change when it is not alone in its table."""
    rows, subspace = table_and_subspace(d, 5, seed=d)
    alone = np.vstack([subspace.project(row[None]) for row in rows])
    return sum(np.count_nonzero(alone[:rest] != subspace.project(rows[:rest])) for rest in (2, 3, 5, 8, 17, 64, 67))


@pytest.mark.parametrize("d", [6, 20, 100, 784, 2000])
def test_a_records_coordinates_do_not_depend_on_who_is_beside_it(d, monkeypatch):
    """A product of matrices of doubles would: a record on the border of a cell would move when another one comes."""
    assert alone_differs(d) == 0
    monkeypatch.setattr(Subspace, "project", lambda self, points: (points - self.origin) @ self.axes)
    assert alone_differs(d) > 0


def test_a_record_on_a_border_stays_where_it_is_when_another_comes(monkeypatch):
    """The same as a change of the histogram: with doubles, one record more moves two."""

    def most_moved():
        moved = 0
        for seed in range(40):
            rows, subspace = table_and_subspace(20, 1, seed)
            border = float(subspace.project(rows[:2])[0, 0])  # the first record's coordinate, with company
            cells = Grid(
                low=np.array([border - 1]), high=np.array([border + 1]), bins=np.array([2**11]), subspace=subspace
            )
            difference = cells.count(ArrayRecords(rows[:2])) - cells.count(ArrayRecords(rows[:1]))
            moved = max(moved, square(difference))
        return moved

    assert most_moved() == 1
    monkeypatch.setattr(Subspace, "project", lambda self, points: (points - self.origin) @ self.axes)
    assert most_moved() > 1
