"""A question that is accepted costs what its price says, whoever asks it; all others are refused, before anything."""

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from cloister.errors import ConfigError, RemoteProtocolError
from cloister.privacy.units import Unit
from cloister.protocols.feddp import questions as feddp
from cloister.protocols.guided_sums import query as queries
from cloister.protocols.guided_sums import refinement, statements, statistics
from cloister.protocols.guided_sums.query import Idle
from cloister.protocols.guided_sums.settings import BUDGET_UNITS
from cloister.protocols.guided_sums.statistics import Plane
from cloister.protocols.synopsis import questions
from cloister.records import ArrayRecords
from cloister.wire import Array
from tests.protocols.guided_sums import lies
from tests.protocols.guided_sums.lies import change, encode, every, first
from tests.protocols.synopsis.steps import square

CASES = lies.CASES


@cache
def prepare(family, unit):
    """Settings, forms and the honest questions of a case."""
    public, algorithm, points = lies.make_settings(family, unit)
    return public, lies.make_forms(public, points), tuple(lies.walk(public, algorithm))


def accept(family, unit, round_, question):
    """What a party makes of a question; None if it refuses it, as it should refuse: with one kind of error."""
    _, forms, _ = prepare(family, unit)
    forms.read.cache_clear()  # what a mutant made of it, in the same process, must not answer here
    stated = lies.seal(round_, encode(question), forms.lengths[round_ - 1])
    try:
        return lies.make_statements(forms).open(round_, stated)
    except RemoteProtocolError as error:
        assert "party 1" in str(error)
        return None


@cache
def make_rows(d):
    rng = np.random.default_rng(d)
    corner, middle = np.ones((1, d)), np.zeros((1, d))
    rows = np.vstack([corner, -corner, middle, rng.uniform(-1, 1, (29, d))])
    return np.round(rows * 2**16) / 2**16


def check(family, unit, round_, question):
    """The property; returns whether the question was accepted."""
    public, _, _ = prepare(family, unit)
    query = accept(family, unit, round_, question)
    if query is None:
        return False
    assert query.length <= public.slots[round_ - 1].length
    assert query.l2_squared <= public.prices_most
    assert query.l2_squared <= getattr(structs.asdict(question).get("question", question), "share", public.prices_most)
    rows = make_rows(public.dimensions)
    if family in lies.SPREAD:  # values in original units, cells that are missing among them
        rows = np.vstack(
            [np.full(rows.shape[1], np.nan), rows[:1] * [1e6], rows[1:] * np.where(rows[1:] > 0.9, np.nan, 1)]
        )
    with np.errstate(all="raise"):
        check_units(query, unit, rows)
    return True


def check_units(query, unit, rows):
    if unit is Unit.CLIENT:
        tables = [rows, rows[:1], np.repeat(rows[:1], 300, axis=0), rows[:2]]
        assert not measure(query, rows[:0]).any()
    else:
        tables = [row[None] for row in rows[:6]]
        whole = measure(query, rows)
        parts = [measure(query, row[None]) for row in rows]
        assert np.array_equal(whole, sum(parts)), "one record's part depends on the others"
    for table in tables:
        vector = measure(query, table)
        assert len(vector) == query.length
        assert square(vector) <= query.l2_squared
        assert sum(abs(int(entry)) for entry in vector) <= query.sensitivity.l1


def measure(query, rows):
    return query.measure(ArrayRecords(np.ascontiguousarray(rows)))


@pytest.mark.parametrize(("family", "unit"), CASES)
def test_honest_questions_of_every_kind_are_accepted_and_keep_the_property(family, unit):
    public, forms, walked = prepare(family, unit)
    kinds = set()
    for round_, query in enumerate(walked, start=1):
        assert check(family, unit, round_, query.question)
        assert len(forms.write(round_, query.question)) == len(forms.write(round_, Idle())) == forms.lengths[round_ - 1]
        kinds.add(type(query.question))
    assert {slot.kind for slot in public.slots} == kinds - {Idle}
    assert len(walked) == len(public.slots)


SCALES = [0.0, -1.0, 1e-12, 0.5, 1.5, 64.0, 1e6, 1e12, 1e300, np.nan, np.inf, -np.inf]
INTEGERS = [-1, 0, 1, 2, 30, 700, 2**20, 2**40, BUDGET_UNITS, BUDGET_UNITS + 1, 2**63]


def distort(value, data):
    """Something else of the same type or not; often close to what may be asked."""
    if isinstance(value, Array):
        numbers = lies.numbers(value)
        if numbers.size and data.draw(st.booleans()):
            place = data.draw(st.integers(0, numbers.size - 1))
            flat = numbers.ravel()
            with np.errstate(all="ignore"):
                flat[place] = np.array(data.draw(st.sampled_from(SCALES + INTEGERS[:6]))).astype(numbers.dtype)
            return Array.of(flat.reshape(numbers.shape))
        if numbers.dtype.kind == "f":
            scale = data.draw(st.sampled_from([0.1, 0.9, 1.0, -1.0, 3.0, 1e9, 1e-12]))
            with np.errstate(all="ignore"):
                return Array.of(numbers * scale)
        rows = data.draw(st.sampled_from([numbers[:0], numbers[:1], np.concatenate([numbers, numbers])]))
        return Array.of(np.ascontiguousarray(rows))
    if isinstance(value, bytes):
        return data.draw(st.binary(max_size=12))
    if isinstance(value, float):
        return data.draw(st.sampled_from(SCALES) | st.floats(1e-9, 10.0))
    if isinstance(value, int):
        return data.draw(st.sampled_from(INTEGERS) | st.integers(1, BUDGET_UNITS))
    return data.draw(st.sampled_from([None, 1, b"", 0.5]))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("family", "unit"), CASES)
@settings(max_examples=80, deadline=None)
@given(data=st.data())
def test_accepted_means_within_the_price_and_all_else_is_refused(family, unit, data):
    _, _, walked = prepare(family, unit)
    round_ = data.draw(st.integers(1, len(walked)))
    question = walked[round_ - 1].question
    for _ in range(data.draw(st.integers(1, 3))):
        fields = list(lies.list_fields(question))
        if fields:
            path, value = data.draw(st.sampled_from(fields))
            question = change(question, path, distort(value, data))
    try:
        encode(question)
    except OverflowError:
        return
    check(family, unit, round_, question)


@given(round_=st.integers(1, 6), content=st.binary(max_size=60))
def test_bytes_that_are_no_question_are_refused_or_ask_nothing(round_, content):
    _, forms, _ = prepare("direct", Unit.RECORD)
    stated = lies.seal(round_, content, forms.lengths[round_ - 1])
    try:
        assert lies.make_statements(forms).open(round_, stated).length == 0
    except RemoteProtocolError as error:
        assert "party 1" in str(error)


# --- every check is needed ----------------------------------------------------------------------------------------


def find_round(family, unit, kind):
    _, _, walked = prepare(family, unit)
    return next(round_ for round_, query in enumerate(walked, 1) if isinstance(query.question, kind))


def lie(family, unit, kind, path, value):
    """Whether the changed honest question is refused; raises where it is not and breaks the property."""
    round_ = find_round(family, unit, kind)
    question = change(prepare(family, unit)[2][round_ - 1].question, path, value)
    prepare(family, unit)[1].read.cache_clear()
    try:
        return not check(family, unit, round_, question)
    except RemoteProtocolError:
        raise AssertionError("refused while it was measured") from None
    except (ConfigError, FloatingPointError, ValueError, IndexError, RuntimeWarning) as error:
        raise AssertionError(f"it was accepted and could not be measured: {error}") from None
    finally:
        prepare(family, unit)[1].read.cache_clear()


def anything(*args, **options):
    """A check that is left out."""


def unchecked_plane(self, values, *, axes_most):
    origin, axes = (lies.numbers(array) for array in (self.origin, self.axes))
    return statistics.Subspace(origin=origin, axes=axes)


def unchecked_points(what, array, *shape, most=1.0):
    return array.to_numpy(np.float64, *shape).copy()


LONG = every(lambda axes: axes * 1e4)
R, C = Unit.RECORD, Unit.CLIENT
CHECKS = {
    "axes no longer than 1": (
        Plane,
        "unpack",
        unchecked_plane,
        "projected",
        R,
        questions.Histogram,
        "plane.axes",
        LONG,
    ),
    "origin in the domain": (
        statistics,
        "take_points",
        unchecked_points,
        "feddp",
        R,
        refinement.Offsets,
        "guide.plane.origin",
        every(lambda origin: origin + 1e9),
    ),
    "cells within the slot": (questions, "require", anything, "direct", R, questions.Histogram, "bins", first(10**4)),
    "sides of cells": (
        questions,
        "require",
        anything,
        "direct",
        R,
        questions.Histogram,
        "high",
        every(lambda high: high * 0 - 1.0),
    ),
    "radii of clusters": (
        refinement,
        "take_lengths",
        unchecked_points,
        "direct",
        R,
        refinement.Offsets,
        "radii",
        first(0.0),
    ),
    "radius of moments": (statistics, "require_length", anything, "projected", R, statistics.Moments, "radius", np.nan),
    "width in the subspace": (
        refinement,
        "require_length",
        anything,
        "feddp",
        R,
        refinement.Offsets,
        "guide.radius",
        0.0,
    ),
    "room for rounding an offset": (refinement, "find_reach", anything, "direct", R, refinement.Offsets, "share", 4),
    "room for rounding a client": (
        queries,
        "find_reach",
        lambda longest, entries: longest - entries**0.5 / 2 - 1,
        "direct",
        C,
        questions.Histogram,
        "share",
        4,
    ),
    "somewhere to go": (
        feddp,
        "require",
        anything,
        "moved",
        R,
        feddp.MovedMoments,
        "move.groups",
        every(lambda groups: groups * 0 - 1),
    ),
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", CHECKS)
def test_every_check_is_needed(name, monkeypatch):
    """With the check the lie is refused; without it the lie is accepted and breaks the property."""
    owner, attribute, mutant, family, unit, kind, path, value = CHECKS[name]
    assert lie(family, unit, kind, path, value)
    monkeypatch.setattr(owner, attribute, mutant)
    with pytest.raises(AssertionError):
        assert lie(family, unit, kind, path, value)


@pytest.mark.parametrize(("family", "unit"), CASES)
def test_a_price_that_the_question_says_is_caught(family, unit, monkeypatch):
    """Mutant: who asks says what it costs."""
    real = queries.pose

    def cheap(values, name, question):
        query = real(values, name, question)
        return query if query.length == 0 else lies_cost(query)

    def lies_cost(query):
        return queries.Query(
            name=query.name, question=query.question, length=query.length, l2_squared=1, measure=query.measure
        )

    _, forms, walked = prepare(family, unit)
    forms.read.cache_clear()
    monkeypatch.setattr(statements, "pose", cheap)
    caught = 0
    for round_, query in enumerate(walked, start=1):
        try:
            check(family, unit, round_, query.question)
        except AssertionError:
            caught += 1
    forms.read.cache_clear()
    asked = sum(query.length > 0 and query.l2_squared > 1 for query in walked)
    assert caught == asked > 0


@pytest.mark.parametrize("family", ["direct", "projected", "feddp"])
def test_a_unit_that_is_not_the_agreements_is_caught(family, monkeypatch):
    """Mutant: a whole party counts as its records do."""
    forms = prepare(family, Unit.CLIENT)[1]
    forms.read.cache_clear()
    monkeypatch.setattr(queries, "bound_client", lambda exact, l2_squared: exact)
    with pytest.raises(AssertionError):
        check_all(family, Unit.CLIENT)
    forms.read.cache_clear()


def check_all(family, unit):
    for round_, query in enumerate(prepare(family, unit)[2], start=1):
        check(family, unit, round_, query.question)
