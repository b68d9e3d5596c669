"""One record moves every total by its own integer vector, within the bound that is charged, whatever comes out."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cloister.crypto import Stream
from cloister.protocols.vertical import algorithm, statistics
from cloister.protocols.vertical.algorithm import run_vertical
from cloister.protocols.vertical.codebook import Codebook, Codebooks
from cloister.protocols.vertical.query import HistogramQuery, LloydQuery
from cloister.protocols.vertical.settings import Settings
from cloister.protocols.vertical.statistics import align_records, exact_total
from tests.protocols.vertical.tables import make, mixture, rehearse

MOODS = ("true", "zeros", "huge", "hugely negative", "one entry")
LAYOUTS = {
    "two columns": {"alice": (0,), "encrypted": [(1,)]},
    "Alice has none": {"alice": (), "encrypted": [(1, 0)]},
    "grids": {"alice": (1, 2), "encrypted": [(3, 0)]},
    "wide": {"alice": (5, 1, 2), "encrypted": [(3, 0, 4)]},
    "three holders": {"alice": (2,), "encrypted": [(3,), (0,), (1, 4)]},
}


@dataclass(frozen=True, kw_only=True)
class Case:
    """A session's public values, its codebooks, what its totals look like, and records to tell apart."""

    settings: Settings
    codebooks: Codebooks
    moods: tuple[str, ...]
    background: np.ndarray
    rows: np.ndarray
    ones: np.ndarray


def make_total(mood, exact):
    """What a pass might release; nothing about it may matter."""
    if mood == "huge":
        return np.full(len(exact), 2**62)
    if mood == "hugely negative":
        return np.full(len(exact), -(2**62))
    if mood == "one entry":
        return np.where(np.arange(len(exact)) == len(exact) // 2, 2**50, 0)
    return exact if mood == "true" else np.zeros(len(exact), dtype=np.int64)


def measure(query, rows, case):
    return exact_total(query, align_records(rows, case.settings.layout, case.codebooks), case.codebooks)


def walk(case):
    """Yield every query of one session."""
    asking = run_vertical(case.settings, case.codebooks, Stream.from_seed(2, "common"))
    query = next(asking)
    for number in range(100):
        yield query
        try:
            query = asking.send(make_total(case.moods[number % len(case.moods)], measure(query, case.background, case)))
        except StopIteration:
            return


def split_parts(query, vector):
    """The stretches of a vector that have their own noise."""
    return np.split(vector, np.cumsum([part.length for part in query.parts])[:-1])


def cost(query, vector):
    """In zCDP: the sum over the parts of |v|^2 / 2 sigma^2."""
    parts = zip(query.parts, split_parts(query, vector), strict=True)
    return sum(float((stretch.astype(float) ** 2).sum()) / (2 * part.sigma**2) for part, stretch in parts)


def check(case):
    spent = 0.0
    for query in walk(case):
        public = case.settings
        allowed = sum(part.l2_squared / (2 * part.sigma**2) for part in query.parts)
        spent += allowed
        without = measure(query, case.rows, case)
        alone = [measure(query, one[None], case) for one in case.ones]
        for one, vector in zip(case.ones, alone, strict=True):
            for part, stretch in zip(query.parts, split_parts(query, vector), strict=True):
                assert (stretch**2).sum() <= part.sensitivity.l2_squared, part.name
                assert np.abs(stretch).sum() <= part.sensitivity.l1, part.name
                assert np.count_nonzero(stretch) <= part.touched
            # Equality, not only a bound: nobody else's part depends on the record, wherever in the table it is.
            for table in (np.vstack([case.rows, one]), np.vstack([one, case.rows])):
                assert np.array_equal(measure(query, table, case) - without, vector), query.name
        histogram = isinstance(query, HistogramQuery)
        most = 2 * public.start_rho if histogram else max(4 * public.sum_rho, 2 * public.sum_rho + 2 * public.count_rho)
        assert max(cost(query, a - b) for a in alone for b in alone) <= most * (1 + 1e-6)
        if isinstance(query, LloydQuery):
            counts = np.array([query.split_total(vector)[1] for vector in alone])
            assert (counts.sum(axis=1) == 1).all()
            assert (counts >= 0).all()
    assert spent + case.settings.codebooks_rho <= case.settings.rho


def make_case(layout, *, moods=("true",), seed=1, rows=3, **options):
    """A session as sessions go, and records in corners, in the middle, and among the others."""
    shape = LAYOUTS[layout]
    d = len(shape["alice"]) + sum(map(len, shape["encrypted"]))
    background = mixture(200, d, 3, seed=seed)
    public = make(200, cells=5, clusters=4, **shape, **options)
    rng = np.random.default_rng(seed)
    ones = np.vstack([np.ones(d), -np.ones(d), np.zeros(d), np.where(np.arange(d) % 2, 1.0, -1.0), background[:2]])
    ones = np.vstack([ones, rng.integers(-(2**16), 2**16 + 1, (3, d)) / 2**16])
    return Case(
        settings=public,
        codebooks=rehearse(replace(public, rounds=1), background, seed=seed).codebooks,
        moods=moods,
        background=background,
        rows=background[:rows],
        ones=ones,
    )


@settings(max_examples=40, deadline=None)
@given(
    layout=st.sampled_from(sorted(LAYOUTS)),
    moods=st.lists(st.sampled_from(MOODS), min_size=1, max_size=4).map(tuple),
    seed=st.integers(0, 2**16),
    rows=st.integers(0, 5),
    epsilon=st.sampled_from([0.05, 1.0, 30.0]),
    start=st.sampled_from(["synopsis", "random"]),
    fractional_bits=st.sampled_from([4, 8, 12]),
    residuals=st.booleans(),
)
def test_one_record_moves_every_total_by_its_own_vector_within_the_bound(layout, residuals, **options):
    residuals = residuals and layout != "three holders"
    check(make_case(layout, rounds=3, residuals=residuals, **options))


def test_the_walks_ask_both_kinds_of_question():
    kinds = [type(query) for query in walk(make_case("wide", rounds=2))]
    assert kinds == [HistogramQuery, LloydQuery, LloydQuery]


@pytest.mark.parametrize("layout", ["two columns", "grids"])
def test_the_bounds_are_nearly_reached(layout):
    """Little noise is wasted: some record adds almost as much as it may."""
    case = make_case(layout, rounds=1)
    query = list(walk(case))[-1]
    largest = max(int((query.split_total(measure(query, one[None], case))[0] ** 2).sum()) for one in case.ones)
    assert largest >= 0.7 * query.l2_squared


REAL_TOTAL, REAL_ROUND = exact_total, algorithm.make_round


def count_twice(query, records, codebooks):
    """Mutant: a record counts in its cluster and in the next; in its cell and in the next."""
    total = REAL_TOTAL(query, records, codebooks)
    if isinstance(query, HistogramQuery):
        return total + np.roll(total, 1)
    sums, counts = query.split_total(total)
    return np.concatenate([sums.ravel(), counts + np.roll(counts, 1)])


def unclipped(vectors, longest):
    """Mutant: vectors as long as they are."""
    return np.rint(vectors).astype(np.int64)


def unclipped_residuals(self, points, cells):
    """Mutant: the holder forgets the public radius."""
    return np.rint((points - self.reps[cells]) * self.units).astype(np.int64)


def forgotten_residuals(public, reps, centres, radii, number):
    """Mutant: constants get the whole radius, as if there were no residuals beside them."""
    return replace(REAL_ROUND(public, reps, centres, radii, number), radius_encrypted=radii.constants)


@pytest.mark.parametrize(
    ("owner", "name", "mutant"),
    [
        ("tests.protocols.vertical.test_sensitivity", "exact_total", count_twice),
        (statistics, "round_to_length", unclipped),
        (algorithm, "round_to_length", unclipped),
        (Codebook, "residuals", unclipped_residuals),
        (algorithm, "make_round", forgotten_residuals),
    ],
    ids=["counted twice", "offsets", "constants", "residuals", "residuals forgotten"],
)
@pytest.mark.parametrize("layout", ["two columns", "grids"])
def test_the_property_catches_what_adds_too_much(owner, name, mutant, layout, monkeypatch):
    case = make_case(layout, rounds=1, residuals=True, epsilon=20.0)
    # Narrow cells and residuals that are clipped: so that forgetting to clip shows in one column, too.
    narrow = replace(case.codebooks.holders[0], residual_radius=20)
    case = replace(case, codebooks=Codebooks(alice=case.codebooks.alice, holders=(narrow,)))
    check(case)
    if isinstance(owner, str):
        monkeypatch.setattr(f"{owner}.{name}", mutant)
    else:
        monkeypatch.setattr(owner, name, mutant)
    with pytest.raises(AssertionError):
        check(case)
