"""Scaling by a spread: what a unit may add to its questions, what it finds, and what it does where it cannot."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cloister.columns import Column, Scale, list_coordinates
from cloister.crypto import Stream
from cloister.errors import ConfigError, LocalProtocolError
from cloister.kmeans import fill_from_centres
from cloister.numeric import FixedPoint
from cloister.privacy.placement import Aggregator
from cloister.privacy.simulation_sampler import SimulationSampler
from cloister.privacy.units import Budget, Unit
from cloister.protocols.guided_sums.query import PublicValues, pose
from cloister.protocols.guided_sums.scaling import Scaled, StatedScale, encode_records
from cloister.protocols.guided_sums.settings import BUDGET_UNITS
from cloister.protocols.synopsis import zoom_questions
from cloister.protocols.synopsis.pipeline import run_synopsis
from cloister.protocols.synopsis.settings import BEFORE_HISTOGRAM_MOST, Knobs, SpreadSettings
from cloister.protocols.synopsis.zoom_questions import Bounds, Locate, Measure, ScaledHistogram, ScaledOffsets
from cloister.records import ArrayRecords
from cloister.wire import Array
from tests.protocols.synopsis.sessions import rehearse
from tests.protocols.synopsis.test_sensitivity import FAST, MOODS, make_total, measure, square

BUDGET = Budget(epsilon=1.0, delta=1e-6)
NUMBERS = (Column(name="a", low=-1, high=1), Column(name="b", low=-40, high=900), Column(name="c", low=0, high=1e6))
MIXED = (*NUMBERS[:2], Column.unbounded("u"), Column.boolean("v"), Column.category("w", ("x", "y", "z")))
TABLES = {"numbers": NUMBERS, "many": NUMBERS * 3, "mixed": MIXED, "categories": MIXED[3:]}


def make_settings(columns=NUMBERS, *, epsilon=1.0, clusters=3, knobs=FAST, records=None):
    axes = list_coordinates(columns)
    return SpreadSettings(
        clusters=clusters,
        dimensions=len(axes),
        axes=axes,
        budget=replace(BUDGET, epsilon=epsilon),
        parties=1,
        placement=Aggregator(),
        knobs=knobs,
        records=records,
    )


def make_rows(columns, n, seed=0):
    """Records of three clusters in the columns' own units."""
    rng = np.random.default_rng(seed)
    labels, found = rng.integers(0, 3, n), []
    for axis in list_coordinates(columns):
        if axis.is_level:
            found.append((rng.uniform(size=n) < 0.3).astype(float))
            continue
        low, width = (-50.0, 2000.0) if axis.private else (axis.low, axis.high - axis.low)
        found.append(low + width * (rng.uniform(0.2, 0.8, 3)[labels] + 0.02 * rng.normal(size=n)))
    return np.stack(found, axis=1)


def walk(public, moods, seed):
    """Every query of one session, after totals of all kinds."""
    rng = np.random.default_rng(seed)
    table = ArrayRecords(make_rows(NUMBERS, 300)[:, :1] * np.ones(public.dimensions))
    asking = run_synopsis(public, Stream.from_seed(seed, "common"))
    query = next(asking)
    for number, slot in enumerate(public.slots):
        assert query.length <= slot.length
        yield query
        mood = moods[number % len(moods)]
        try:
            query = asking.send(make_total(mood, query, query.measure(table), rng, public.noise_std))
        except StopIteration:
            assert number == len(public.slots) - 1


cells = st.sampled_from([0.0, 1.0, -1.0, 0.5, 3.25, -40.0, 900.0, 5e5, 1e6, -1e30, 1e300, 2.0**-24, -(2.0**43), np.nan])


def check(public, queries, rows):
    """A record adds the same whoever is beside it, and no more than is paid for."""
    spent = 0
    alone = [0] * len(rows)
    for query in queries:
        spent += query.l2_squared
        assert spent <= BUDGET_UNITS
        parts = [measure(query, row[None]) for row in rows]
        assert np.array_equal(measure(query, rows), sum(parts)), query.name
        for place, part in enumerate(parts):
            assert square(part) <= query.l2_squared, query.name
            alone[place] += square(part)
    assert max(alone) <= BUDGET_UNITS


@settings(max_examples=60, deadline=None)
@given(
    table=st.sampled_from(list(TABLES)),
    moods=st.lists(st.sampled_from(MOODS), min_size=1, max_size=5),
    epsilon=st.sampled_from([0.05, 1.0, 8.0, 200.0]),
    seed=st.integers(0, 2**16),
    data=st.data(),
)
def test_one_record_adds_its_own_vector_within_the_bound_with_gaps_and_far_values(table, moods, epsilon, seed, data):
    public = make_settings(TABLES[table], epsilon=epsilon)
    row = st.lists(cells, min_size=public.dimensions, max_size=public.dimensions)
    rows = np.array(data.draw(st.lists(row, min_size=2, max_size=4)))
    check(public, walk(public, moods, seed), np.vstack([rows, np.full(public.dimensions, np.nan)]))


def test_the_walks_ask_every_kind_of_question():
    kinds = {
        type(query.question) for name in TABLES for query in walk(make_settings(TABLES[name], epsilon=60), ["true"], 1)
    }
    assert {Bounds, Locate, Measure, ScaledHistogram, ScaledOffsets} <= kinds
    assert {*zoom_questions.SCALED.values()} <= kinds


shares = st.floats(1e-3, 0.2)


@settings(max_examples=60, deadline=None)
@given(
    table=st.sampled_from(list(TABLES)),
    moods=st.lists(st.sampled_from(MOODS), min_size=1, max_size=5),
    epsilon=st.sampled_from([0.05, 0.5, 1.0, 8.0]),
    seed=st.integers(0, 2**16),
    moments=st.floats(0.01, 0.9),
    public_number=st.booleans(),
)
def test_no_route_spends_more_than_three_quarters_before_its_histogram(
    table, moods, epsilon, seed, moments, public_number
):
    knobs = replace(FAST, moment_share=min(moments, 0.85))
    public = make_settings(TABLES[table], epsilon=epsilon, knobs=knobs, records=300 if public_number else None)
    spent = 0
    for query in walk(public, moods, seed):
        if isinstance(query.question, ScaledHistogram):
            break
        spent += query.l2_squared
    assert spent <= BEFORE_HISTOGRAM_MOST * BUDGET_UNITS


@pytest.mark.parametrize("changes", [{"count_share": 0.5}, {"locate_most": 0.2}, {"measure_share": 0.6}])
def test_shares_that_leave_too_little_are_refused(changes):
    with pytest.raises(ConfigError, match="the shares before moments and histogram must be at most"):
        make_settings(knobs=replace(FAST, **changes))


# --- mutants ------------------------------------------------------------------------------------------------------


def two_bins(real):
    """Mutant: a value is in its bin and in the next."""

    def form(self, public):
        found = real(self, public)
        return replace(found, measure=lambda party: found.measure(party) + np.roll(found.measure(party), 1))

    return form


def own_scale(self, public):
    """Mutant: members take the scale from their own data."""
    question = self.question.form(public)

    def measure(party):
        rows = np.nan_to_num(np.concatenate(list(party.batches())))
        low, high = rows.min(axis=0, initial=0.0), rows.max(axis=0, initial=1e-3)
        unit = np.clip((2 * rows - low - high) / (high - low), -1, 1)
        return question.measure(ArrayRecords(FixedPoint(16).quantise(unit)))

    return replace(question, measure=measure)


MUTANTS = {
    "two bins": (zoom_questions.Binned, "form", two_bins(zoom_questions.Binned.form)),
    "own scale": (Scaled, "form", own_scale),
    "half the columns paid for": (zoom_questions, "isqrt", lambda share: int((2 * share) ** 0.5)),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", MUTANTS)
@pytest.mark.parametrize("table", ["numbers", "many", "mixed"])
def test_the_property_catches_a_question_that_adds_too_much(name, table, monkeypatch):
    public = make_settings(TABLES[table], epsilon=20.0)
    rows = np.array([[1e9], [-0.5], [0.25]]) * np.ones(public.dimensions)
    check(public, walk(public, ["true"], 3), rows)
    monkeypatch.setattr(*MUTANTS[name])
    with pytest.raises(AssertionError):
        check(public, walk(public, ["true"], 3), rows)


def check_domain(public, stated, rows):
    """T lies on the grid, in the domain; gaps stay gaps where a column counts."""
    scale = stated.unpack(PublicValues(settings=public))
    points = scale.encode(rows)
    there = points[~np.isnan(points)]
    assert (np.abs(there) <= 1).all()
    assert np.array_equal(there * 2**16, np.rint(there * 2**16))
    assert np.array_equal(np.isnan(points), np.isnan(rows) & (np.array(scale.spread) > 0))
    parts = [scale.encode(row[None])[0] for row in rows]
    np.testing.assert_array_equal(points, parts)


@st.composite
def stated_scales(draw, axes):
    centre = [draw(st.sampled_from([axis.low, axis.high, (axis.low + axis.high) / 2])) for axis in axes]
    part = st.sampled_from([0.0, 2.0**-39, 1e-3, 1.0])
    spread = [draw(part) * (axis.high - axis.low) for axis in axes]
    return StatedScale(centre=Array.of(np.array(centre)), spread=Array.of(np.array(spread)))


@settings(max_examples=100, deadline=None)
@given(table=st.sampled_from(list(TABLES)), data=st.data())
def test_scaled_records_lie_on_the_grid_in_the_domain(table, data):
    public = make_settings(TABLES[table])
    row = st.lists(cells, min_size=public.dimensions, max_size=public.dimensions)
    rows = np.array(data.draw(st.lists(row, min_size=1, max_size=4)))
    with np.errstate(divide="raise", invalid="raise", over="raise"):
        check_domain(public, data.draw(stated_scales(public.axes)), rows)


def unclipped(self, values):
    """Mutant: T does not clip."""
    centre, spread = np.array(self.centre), np.array(self.spread)
    return np.nan_to_num((values - centre) / np.where(spread > 0, 6 * spread, np.inf), nan=0.0)


def test_a_map_that_does_not_clip_is_caught(monkeypatch):
    public = make_settings()
    stated = StatedScale(centre=Array.of(np.zeros(3)), spread=Array.of(np.full(3, 0.1)))
    rows = np.array([[1.0, 900.0, 1e6]])
    check_domain(public, stated, rows)
    monkeypatch.setattr(Scale, "encode", unclipped)
    with pytest.raises(AssertionError):
        check_domain(public, stated, rows)


# --- refusals -----------------------------------------------------------------------------------------------------


def test_parties_as_units_are_refused():
    public = make_settings()
    with pytest.raises(ConfigError, match="must be"):
        replace(public, budget=Budget(epsilon=1.0, delta=1e-6, unit=Unit.CLIENT))
    clients = SpreadSettings.__mro__[1](
        clusters=3, dimensions=3, budget=Budget(epsilon=1.0, delta=1e-6, unit=Unit.CLIENT), parties=3
    )
    for question in [query.question for query in walk(public, ["true"], 1) if query.length]:
        if not isinstance(question, Scaled | zoom_questions.Binned):
            continue
        with pytest.raises(ConfigError, match="must be about records"):
            pose(PublicValues(settings=clients), "asked", question)


# --- what is found ------------------------------------------------------------------------------------------------


def run(columns, rows, *, epsilon=1.0, seed=1, **options):
    public = make_settings(columns, epsilon=epsilon, knobs=Knobs(cells_max=500, restarts=3), **options)
    found = rehearse(
        public,
        [ArrayRecords(rows)],
        sampler=SimulationSampler(Stream.from_seed(seed, "noise")),
        stream=Stream.from_seed(seed, "common"),
    )
    return found.finding


@pytest.mark.parametrize("width", [1, 10, 1000])
def test_spreads_are_found_whatever_the_bounds(width):
    rng = np.random.default_rng(2)
    rows = rng.normal(size=(5000, 3)) * (1.0, 30.0, 0.001) + (5.0, -200.0, 0.0)
    low, high = rows.min(axis=0), rows.max(axis=0)
    below = rng.uniform(size=3) * (width - 1) * (high - low)
    ends = zip(low - below, high + (width - 1) * (high - low) - below, strict=True)
    found = run(tuple(Column(name=str(j), low=a, high=b) for j, (a, b) in enumerate(ends)), rows)
    np.testing.assert_allclose(found.scale.spread, rows.std(axis=0), rtol=0.15)
    assert (np.abs(np.array(found.scale.centre) - rows.mean(axis=0)) < 0.2 * rows.std(axis=0)).all()


def test_a_column_that_is_nearly_constant_does_not_count():
    rows = make_rows(NUMBERS, 4000)
    rows[:, 1] = 77.0
    found = run(NUMBERS, rows)
    assert [spread == 0 for spread in found.scale.spread] == [False, True, False]
    np.testing.assert_allclose(found.scale.to_original(found.centres)[:, 1], 77.0, atol=940 / 32)


def test_columns_count_by_their_weights():
    scale = run((NUMBERS[0], replace(NUMBERS[1], weight=4)), make_rows(NUMBERS[:2], 4000)).scale
    assert scale.lengths[0] / scale.spread[0] == pytest.approx(24.0)
    assert scale.lengths[1] / scale.spread[1] == pytest.approx(6.0)


def test_bounds_that_nobody_knows_are_found():
    columns = (Column.unbounded("a"), Column.unbounded("b"), Column.unbounded("c"))
    rng = np.random.default_rng(4)
    rows = np.stack([rng.normal(size=9000) * 1e-4, 1e6 + 2e5 * rng.normal(size=9000), np.zeros(9000)], axis=1)
    found = run(columns, rows, epsilon=2.0)
    np.testing.assert_allclose(found.scale.spread[:2], rows.std(axis=0)[:2], rtol=0.15)
    assert found.scale.spread[2] == 0  # mostly 0: lost


def test_too_few_records_for_unknown_bounds_end_without_a_result():
    found = run(MIXED, make_rows(MIXED, 100), epsilon=0.5)
    assert found.is_nothing


def test_where_noise_would_decide_the_windows_are_the_scale():
    found = run(NUMBERS, make_rows(NUMBERS, 60), epsilon=0.1)
    np.testing.assert_allclose(found.scale.lengths, [1.0, 470.0, 5e5], rtol=0.07)  # half the bounds, in four bits


def test_levels_have_weight_one_in_units_of_a_spread():
    found = run(MIXED[3:], make_rows(MIXED[3:], 5000))
    alone, *levels = np.diff(found.scale.encode(np.stack([np.zeros(4), np.ones(4)])), axis=0)[0]
    assert alone == pytest.approx(2**0.5 / 6, abs=1e-4)
    assert levels == pytest.approx([1 / 6] * 3, abs=1e-4)
    np.testing.assert_allclose(found.scale.centre[0], 0.3, atol=0.05)


# --- missing cells ------------------------------------------------------------------------------------------------


def test_a_missing_cell_takes_the_coordinate_of_its_own_centre():
    centres = np.array([[0.0, 0.0, 0.5], [0.5, 0.5, -0.5]])
    points = np.array([[0.4, np.nan, np.nan], [np.nan] * 3, [0.1, 0.1, np.nan], [0.3, 0.2, 0.1]])
    filled = fill_from_centres(points, centres)
    np.testing.assert_array_equal(filled, [[0.4, 0.5, -0.5], centres[0], [0.1, 0.1, 0.5], points[3]])
    assert np.isnan(points).sum() == 6
    assert fill_from_centres(points[3:], centres) is not None


@pytest.mark.parametrize("part", [0.05, 0.2])
def test_gaps_cost_little(part):
    rows = make_rows(NUMBERS, 20_000, seed=3)
    gaps = np.where(np.random.default_rng(1).uniform(size=rows.shape) < part, np.nan, rows)
    found, whole = run(NUMBERS, gaps), run(NUMBERS, rows)
    np.testing.assert_allclose(found.scale.spread, whole.scale.spread, rtol=0.3)
    deviation = rows.std(axis=0)
    centres = [np.sort(one.scale.to_original(one.centres) / deviation, axis=0) for one in (found, whole)]
    np.testing.assert_allclose(*centres, atol=0.1)


# --- the scale in a question --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value"),
    [("centre", 2.0), ("centre", -1.5), ("spread", -1.0), ("spread", 2.0**-41), ("spread", 2.5), ("spread", 1e-320)],
)
def test_a_scale_out_of_range_is_refused(name, value):
    public = PublicValues(settings=make_settings(NUMBERS[:1]))
    said = {"centre": Array.of(np.zeros(1)), "spread": Array.of(np.ones(1))}
    StatedScale(**said).unpack(public)
    with pytest.raises(ConfigError, match="a question's"):
        StatedScale(**said | {name: Array.of(np.array([value]))}).unpack(public)


def test_a_share_that_is_too_small_for_all_columns_is_refused_by_name():
    public = PublicValues(settings=make_settings())
    ends = Array.of(np.array([0.0, 0.0])), Array.of(np.array([1.0, 1.0]))
    question = Locate(share=1, columns=Array.of(np.array([0, 1])), low=ends[0], high=ends[1])
    with pytest.raises(ConfigError, match="the share of a question about columns must be at least 2; got 1"):
        pose(public, "columns", question)


def test_records_that_are_not_stored_are_not_scaled():
    class Streamed:
        dimensions = 3

        def batches(self):
            yield np.zeros((1, 3))

    scale = Scale(axes=list_coordinates(NUMBERS), centre=(0.0,) * 3, spread=(1.0,) * 3, grid=FixedPoint(16))
    with pytest.raises(LocalProtocolError, match="must be stored in original units"):
        encode_records(Streamed(), scale)


def test_a_table_is_encoded_once_for_a_scale():
    records = ArrayRecords(make_rows(NUMBERS, 50))
    scale = Scale(axes=list_coordinates(NUMBERS), centre=(0.0,) * 3, spread=(1.0,) * 3, grid=FixedPoint(16))
    assert records.encoded_by(scale) is records.encoded_by(replace(scale))
    assert records.encoded_by(scale) is not records.encoded_by(replace(scale, spread=(2.0,) * 3))
