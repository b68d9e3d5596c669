"""Whatever was released before, one unit moves the next answer by at most what the query declares, in integers.

The algorithm is driven through its routes by made-up totals, likely and hostile: the guarantee is for every sequence of
released numbers. At each query real and extreme tables are measured with and without one record.
"""

from dataclasses import dataclass, replace
from math import sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cloister.crypto import Stream
from cloister.errors import LocalProtocolError
from cloister.kmeans import sum_offsets
from cloister.numeric import FixedPoint
from cloister.privacy.units import Budget, Unit
from cloister.protocols.guided_sums import query as queries
from cloister.protocols.guided_sums import refinement, statistics
from cloister.protocols.guided_sums.postprocessing import Sketch
from cloister.protocols.guided_sums.query import IDLE
from cloister.protocols.guided_sums.settings import BUDGET_UNITS
from cloister.protocols.synopsis.pipeline import run_synopsis
from cloister.protocols.synopsis.questions import Grid
from cloister.protocols.synopsis.settings import Knobs, Settings
from cloister.records import ArrayRecords
from tests.protocols.synopsis.steps import measure, square
from tests.sessions import blobs

MOODS = ("true", "noise", "zeros", "huge", "hugely negative", "one entry", "alternating")
FAST = Knobs(cells_max=64, rounds_max=4, restarts=1)
KNOBS = (
    FAST,
    Knobs(cells_max=16, rounds_min=1, rounds_max=1, restarts=1),
    Knobs(
        cells_max=200,
        rounds_min=5,
        rounds_max=5,
        restarts=1,
        count_share=0.3,
        box_share=0.6,
        moment_share=0.55,
        histogram_share_direct=0.9,
        histogram_share_projected=0.9,
    ),
)


@dataclass(frozen=True, kw_only=True)
class Case:
    """A session's public values, what its totals look like, and records to tell apart."""

    settings: Settings
    moods: tuple[str, ...]
    seed: int
    rows: np.ndarray
    one: np.ndarray


def make_total(mood, query, exact, rng, noise_std):
    """What a round might release; nothing about it may matter."""
    noise = np.rint(rng.normal(scale=noise_std, size=query.length)).astype(np.int64)
    if mood == "true":
        return exact + noise
    if mood == "huge":
        return np.full(query.length, 2**62) + noise
    if mood == "hugely negative":
        return np.full(query.length, -(2**62)) + noise
    if mood == "one entry":
        return np.where(np.arange(query.length) == query.length // 2, 2**50, 0)
    if mood == "alternating":
        return np.where(np.arange(query.length) % 2, 2**40, -(2**40))
    return noise if mood == "noise" else np.zeros(query.length, dtype=np.int64)


def walk(case, pipeline=run_synopsis):
    """Yield every query of one session."""
    rng = np.random.default_rng(case.seed)
    public = case.settings
    background = ArrayRecords(FixedPoint().quantise(blobs(200, public.dimensions, 3, seed=case.seed)))
    asking = pipeline(public, Stream.from_seed(case.seed, "common"))
    query = next(asking)
    slots = public.slots
    for number, slot in enumerate(slots):
        assert query.length <= slot.length
        yield query
        total = make_total(
            case.moods[number % len(case.moods)], query, query.measure(background), rng, public.noise_std
        )
        try:
            query = asking.send(total)
        except StopIteration:
            assert number == len(slots) - 1
            return


def extremes(query, case):
    """Records that queries may treat specially: corners, the middle, and, in a Lloyd round, the very centres."""
    d = case.settings.dimensions
    found = [np.ones(d), -np.ones(d), np.zeros(d), np.where(np.arange(d) % 2, 1.0, -1.0), np.eye(d)[0]]
    if query.name.startswith("Lloyd"):
        k = query.length // (d + 2)
        centres = query.question.centres.to_numpy(np.float64, k, d)
        found += [centres[0], np.clip((centres[0] + centres[-1]) / 2, -1, 1)]  # off the grid: stricter than need be
    return found


def check(case, queries):
    """The property, and the sum over the session."""
    spent = [0] * 64
    allowed = 0
    for query in queries:
        allowed += query.l2_squared
        assert allowed <= BUDGET_UNITS
        without = measure(query, case.rows)
        assert without.dtype == np.int64
        assert without.shape == (query.length,)
        for number, one in enumerate([case.one, case.one[::-1], *case.rows[:1], *extremes(query, case)]):
            alone = measure(query, one[None])
            assert square(alone) <= query.l2_squared, query.name
            assert sum(abs(int(entry)) for entry in alone) <= query.sensitivity.l1
            spent[number] += square(alone)
            for table in (np.vstack([case.rows, one]), np.vstack([one, case.rows])):
                # Equality, not only a bound: nobody else's part depends on the record, wherever in the table it is.
                assert np.array_equal(measure(query, table) - without, alone), query.name
    assert max(spent) <= BUDGET_UNITS


def check_client(case, queries):
    """The same for whole tables: one party more or less, whatever it holds."""
    d = case.settings.dimensions
    corner, many = np.ones((1, d)), FixedPoint().quantise(blobs(300, d, 3, seed=case.seed))
    tables = [case.rows, case.one[None], corner, np.repeat(corner, 500, axis=0), np.vstack([corner, -corner]), many]
    spent, allowed = [0] * len(tables), 0
    for query in queries:
        allowed += query.l2_squared
        assert allowed <= BUDGET_UNITS
        assert not measure(query, np.zeros((0, d))).any()  # a party without records is one that is not there
        for number, table in enumerate(tables):
            vector = measure(query, table)
            assert square(vector) <= query.l2_squared, query.name
            assert sum(abs(int(entry)) for entry in vector) <= query.sensitivity.l1
            spent[number] += square(vector)
    assert max(spent) <= BUDGET_UNITS


coordinates = st.one_of(
    st.sampled_from([-1.0, 1.0, 0.0, 2.0**-16, -(2.0**-16), 0.125, -0.875, np.nan]),  # the last: a missing cell
    st.integers(-(2**16), 2**16).map(lambda units: units / 2**16),
)


@st.composite
def cases(draw, unit=Unit.RECORD):
    d = draw(st.sampled_from([1, 2, 3, 5, 6, 7, 12]))
    public = Settings(
        clusters=draw(st.integers(1, 4)),
        dimensions=d,
        budget=Budget(epsilon=draw(st.sampled_from([0.02, 1.0, 8.0, 200.0])), delta=1e-6, unit=unit),
        parties=2,
        records=draw(st.sampled_from([None, 1, 200, 10**12])),
        knobs=draw(st.sampled_from(KNOBS)),
    )
    rows = draw(st.lists(st.lists(coordinates, min_size=d, max_size=d), min_size=0, max_size=5))
    return Case(
        settings=public,
        moods=tuple(draw(st.lists(st.sampled_from(MOODS), min_size=1, max_size=5))),
        seed=draw(st.integers(0, 2**16)),
        rows=np.array(rows).reshape(-1, d),
        one=np.array(draw(st.lists(coordinates, min_size=d, max_size=d))),
    )


@settings(max_examples=100, deadline=None)
@given(cases())
def test_one_record_moves_every_answer_by_its_own_vector_within_the_bound(case):
    check(case, walk(case))


@settings(max_examples=100, deadline=None)
@given(cases(unit=Unit.CLIENT))
def test_one_client_moves_every_answer_within_the_bound_whatever_its_table(case):
    check_client(case, walk(case))


def typical(d, *, clusters=3, epsilon=8.0, unit=Unit.RECORD, moods=("true",), **options):
    """A session that goes as sessions go, and a record in a corner."""
    budget = Budget(epsilon=epsilon, delta=1e-6, unit=unit)
    public = Settings(clusters=clusters, dimensions=d, budget=budget, parties=2, knobs=FAST, **options)
    rows = FixedPoint().quantise(blobs(5, d, 2, seed=3))
    return Case(settings=public, moods=moods, seed=5, rows=rows, one=np.ones(d))


def test_the_walks_ask_every_kind_of_question():
    """The property is about all of them."""
    names = {query.name for d in (2, 7) for query in walk(typical(d, epsilon=60.0))}
    assert {name.partition(":")[0] for name in names} == {
        "number of records",
        "histogram of each column",
        "sum and number of all records",
        "histogram of distances from the middle",
        "sums and second moments",
        "histogram",
        *(f"Lloyd round {number}" for number in range(1, 5)),
    }
    assert "nothing" in {query.name for query in walk(typical(7, epsilon=0.02))}


@pytest.mark.parametrize(("d", "least"), [(1, 0.99), (2, 0.99), (7, 0.9), (100, 0.7)])
def test_a_record_in_a_corner_uses_most_of_the_budget(d, least):
    """The bounds are not far from tight, so that little noise is wasted."""
    case = typical(d)
    spent = sum(square(measure(query, case.one[None])) for query in walk(case))
    assert least * BUDGET_UNITS <= spent <= BUDGET_UNITS


@pytest.mark.parametrize("d", [1, 2, 10, 100, 784])
def test_the_property_in_many_dimensions(d):
    for moods in (("true",), ("huge", "noise"), ("zeros",)):
        case = typical(d, moods=moods)
        check(case, walk(case))


@pytest.mark.parametrize("d", [1, 2, 100, 784])
def test_the_property_of_clients_in_many_dimensions(d):
    for moods in (("true",), ("huge", "noise"), ("zeros",)):
        case = typical(d, moods=moods, unit=Unit.CLIENT)
        check_client(case, walk(case))


shares = st.floats(1e-3, 0.99)


@settings(max_examples=100, deadline=None)
@given(
    count=shares,
    box=shares,
    middle=shares,
    norms=shares,
    moment=shares,
    histogram=shares,
    rounds=st.integers(1, 50),
    d=st.sampled_from([1, 3, 7]),
    public=st.sampled_from([None, 1, 10**9]),
    seed=st.integers(0, 2**16),
)
def test_no_split_passes_the_budget(count, box, middle, norms, moment, histogram, rounds, d, public, seed):
    """To the last unit: the splits are computed from doubles."""
    total = (count + max(box, middle + norms + moment)) / 0.94
    knobs = Knobs(
        cells_max=16,
        restarts=1,
        rounds_min=rounds,
        rounds_max=rounds,
        count_share=count / max(total, 1),
        box_share=box / max(total, 1),
        middle_share=middle / max(total, 1),
        norm_share=norms / max(total, 1),
        moment_share=moment / max(total, 1),
        histogram_share_direct=histogram,
        histogram_share_projected=histogram,
    )
    case = replace(typical(d, clusters=1, records=public), seed=seed)
    case = replace(case, settings=replace(case.settings, knobs=knobs))
    assert sum(query.l2_squared for query in walk(case)) <= BUDGET_UNITS


COUNT_PARTS = {Unit.RECORD: refinement._COUNT_PART, Unit.CLIENT: refinement._CLIENT_COUNT_PART}


def check_split(rounds, unit):
    """Budgets just at, below and above rounds * (a^2 + 2 b^2), b = a / part: where a doubles' root may be too large."""
    part = COUNT_PARTS[unit]
    public = typical(1, unit=unit).settings
    public = replace(public, knobs=replace(FAST, rounds_min=rounds, rounds_max=rounds))
    for b in (2**22 + 1, 2**25, 2**25 - 1, 3 * 2**23 + 2):
        full = rounds * ((part * b) ** 2 + 2 * b**2)
        for budget in (full - 1, full, full + 1):
            asking = refinement.refine_centres(
                public,
                l2_squared=budget,
                records=100.0,
                centres=np.zeros((1, 1)),
                centre_variances=np.ones((1, 1)),
                radii=np.ones(1),
                weights=np.ones(1),
                weight_variances=np.ones(1),
                sketch=Sketch(points=np.zeros((1, 1)), weights=np.ones(1)),
                stream=Stream.from_seed(0, "swaps"),
            )
            query = next(asking)
            assert rounds * query.l2_squared <= budget
            assert query.l2_squared > (budget // rounds) * (1 - 2**-20)
            if budget >= full:
                assert rounds * query.l2_squared == full


@pytest.mark.parametrize("rounds", range(1, 9))
@pytest.mark.parametrize("unit", [Unit.RECORD, Unit.CLIENT])
def test_a_split_that_leaves_nothing_over_is_split_exactly(rounds, unit, monkeypatch):
    check_split(rounds, unit)
    monkeypatch.setattr(refinement, "isqrt", lambda square: int(sqrt(square)))  # mutant: a root of doubles
    with pytest.raises(AssertionError):
        check_split(rounds, unit)


def unclipped_offsets(records, centres, radii, *, scale, weight, join=None):
    """Mutant: offsets as long as they are."""
    out = np.zeros((len(centres), centres.shape[1] + 2), dtype=np.int64)
    for batch in records.batches():
        for point in batch:
            nearest = ((point - centres) ** 2).sum(axis=1).argmin()
            out[nearest, :-2] += np.rint((point - centres[nearest]) / radii[nearest] * scale).astype(np.int64)
            out[nearest, -1] += weight
    return out


def unclipped_squares(records, centres, radii, *, scale, weight, join=None):
    """Mutant: offsets are clipped, their squared lengths are not."""
    out = sum_offsets(records, centres, radii, scale=scale, weight=weight)
    return out + np.rint(3 * out[:, -1:] * np.eye(out.shape[1])[-2]).astype(np.int64)


def rounded_up(records, centres, radii, *, scale, weight, join=None):
    """Mutant: clips, and forgets that rounding lengthens."""
    return sum_offsets(records, centres, radii, scale=scale + centres.shape[1], weight=weight)


def unshortened(offsets, radius, reach):
    """Mutant: second moments of records as long as they are."""
    return np.rint(offsets * (reach / radius))


def two_cells(self, records):
    """Mutant: a record counts in its cell and in the next."""
    counts = REAL_COUNT(self, records)
    return counts + np.roll(counts, 1)


REAL_COUNT = Grid.count


@pytest.mark.parametrize(
    ("owner", "name", "mutant", "d"),
    [
        (refinement, "sum_offsets", unclipped_offsets, 2),
        (refinement, "sum_offsets", unclipped_squares, 2),
        (refinement, "sum_offsets", rounded_up, 12),
        (statistics, "_shorten", unshortened, 7),
        (statistics, "OFF", 10, 7),
        (Grid, "count", two_cells, 2),
        (Grid, "count", two_cells, 7),
    ],
    ids=[
        "offsets not clipped",
        "squares not clipped",
        "rounding forgotten",
        "moments not clipped",
        "weights",
        "two cells",
        "in a subspace",
    ],
)
def test_the_property_catches_a_step_that_adds_too_much(owner, name, mutant, d, monkeypatch):
    case = typical(d)
    check(case, walk(case))
    monkeypatch.setattr(owner, name, mutant)
    with pytest.raises(AssertionError):
        check(case, walk(case))


@pytest.mark.parametrize("d", [2, 7])
def test_the_property_catches_clients_that_are_not_bounded(d, monkeypatch):
    case = typical(d, unit=Unit.CLIENT)
    monkeypatch.setattr(queries, "bound_client", lambda exact, l2_squared: exact)
    with pytest.raises(AssertionError):
        check_client(case, walk(case))


def test_the_property_catches_a_budget_spent_twice(monkeypatch):
    real = refinement.refine_centres

    def overspent(public, *, l2_squared, **options):
        return real(public, l2_squared=BUDGET_UNITS, **options)

    monkeypatch.setattr("cloister.protocols.synopsis.pipeline.refine_centres", overspent)
    case = typical(2)
    with pytest.raises(AssertionError):
        check(case, walk(case))


@pytest.mark.parametrize(("length", "l2_squared"), [(1, 0), (0, 1), (-1, 1), (1, -1)])
def test_a_question_costs_something_exactly_if_it_asks_for_something(length, l2_squared):
    with pytest.raises(LocalProtocolError, match="must cost something"):
        replace(IDLE, length=length, l2_squared=l2_squared)
