"""Every range of a question is needed: for each there is a lie that nothing else refuses (`test_mutants`)."""

from dataclasses import replace

import numpy as np
import pytest
from msgspec.structs import force_setattr

from cloister.errors import ConfigError, LocalProtocolError, RemoteProtocolError
from cloister.privacy.mechanisms import DiscreteLaplace
from cloister.privacy.placement import Local
from cloister.privacy.units import Unit
from cloister.protocols.feddp import questions as feddp
from cloister.protocols.feddp.published_questions import ClusterSums
from cloister.protocols.guided_sums import algorithm, statistics
from cloister.protocols.guided_sums.algorithm import Result, ScaledResult
from cloister.protocols.guided_sums.query import Idle, PublicValues, Query, Question, pose
from cloister.protocols.guided_sums.refinement import Offsets
from cloister.protocols.guided_sums.settings import BUDGET_UNITS
from cloister.protocols.guided_sums.statements import Forms
from cloister.protocols.guided_sums.statistics import Moments
from cloister.protocols.synopsis import questions
from cloister.protocols.synopsis import zoom_questions as zoom
from cloister.report.result import KChoice
from cloister.report.sizes import Sizes
from cloister.wire import Array
from tests.protocols.guided_sums import lies
from tests.protocols.guided_sums.lies import change, encode, every, first
from tests.protocols.guided_sums.test_questions import CASES, accept, check, prepare

R, C = Unit.RECORD, Unit.CLIENT
LENGTHS, MOVED = questions.Lengths, feddp.MovedMoments
LOCATE, SCALED = zoom.Locate, zoom.ScaledHistogram


def more(array):
    """One row more, like the last."""
    return every(lambda x: np.concatenate([x, x[-1:]]))(array)


def none(array):
    return every(lambda x: x[:0])(array)


LIES = {
    "columns that cost nothing": ("direct", R, questions.Columns, {"share": 1}),
    "distances from a middle outside": ("projected", R, LENGTHS, {"middle": first(1.5)}),
    "edges that rise": ("projected", R, LENGTHS, {"edges": every(lambda x: x[::-1])}),
    "an edge below nothing": ("projected", R, LENGTHS, {"edges": every(lambda x: x - 1.0)}),
    "a box that begins beyond the domain": ("direct", R, questions.Histogram, {"low": first(-1e3)}),
    "a box that ends beyond the domain": ("direct", R, questions.Histogram, {"high": first(1e3)}),
    "more cells than there may be": ("direct", R, questions.Histogram, {"bins": first(65)}),
    "no cells": ("direct", R, questions.Histogram, {"bins": first(0)}),
    "a cell without a side": ("direct", R, questions.Histogram, {"high": every(lambda x: x * 0 - 1.0)}),
    "more sides than axes": ("projected", R, questions.Histogram, {"low": more, "high": more, "bins": more}),
    "no sides": ("projected", R, questions.Histogram, {"low": none, "high": none, "bins": none}),
    "moments around a middle outside": ("projected", R, Moments, {"middle": first(1.5)}),
    "moments within nothing": ("projected", R, Moments, {"radius": 0.0}),
    "an origin outside": ("projected", R, questions.Histogram, {"plane.origin": first(1.5)}),
    "an axis that is too long": ("projected", R, questions.Histogram, {"plane.axes": every(lambda x: x * 1.1)}),
    "an axis whose square is no number": ("projected", R, questions.Histogram, {"plane.axes": first(1e200)}),
    "more axes than there may be": (
        "projected",
        R,
        questions.Histogram,
        {"plane.axes": every(lambda x: np.repeat(x, 40, axis=1) / 100)},
    ),
    "no axes": ("feddp", R, feddp.Weights, {"plane.axes": every(lambda x: x[:, :0])}),
    "centres outside": ("direct", R, Offsets, {"centres": first(1.01)}),
    "no centres": ("direct", R, Offsets, {"centres": none, "radii": none}),
    "a centre more than there may be": ("feddp", R, Offsets, {"centres": more, "radii": more}, 1),
    "radii of nothing": ("direct", R, Offsets, {"radii": first(0.0)}),
    "radii that are too long": ("direct", R, Offsets, {"radii": first(1e10)}),
    "a share with no room to round": ("direct", R, Offsets, {"share": 4}),
    "a share with no room to round a client": ("direct", C, questions.Histogram, {"share": 4}),
    "a width of nothing": ("feddp", R, Offsets, {"guide.radius": 0.0}),
    "places beyond the domain": ("feddp", R, Offsets, {"guide.places": first(1e3)}),
    "a list of points that is too long": ("moved", R, feddp.MovedWeights, {"question.kept": lambda kept: kept + b"\0"}),
    "no points": ("moved", R, feddp.MovedWeights, {"question.kept": lambda kept: bytes(len(kept))}),
    "a point that there is not": (
        "moved",
        R,
        feddp.MovedWeights,
        {"question.kept": lambda kept: kept[:-1] + bytes([kept[-1] | 128])},
    ),
    "a group that there is not": ("moved", R, MOVED, {"move.groups": every(lambda x: x + 10**6)}),
    "a group below none": ("moved", R, MOVED, {"move.groups": every(lambda x: x * 0 - 2)}),
    "nowhere to go": ("moved", R, MOVED, {"move.groups": every(lambda x: x * 0 - 1)}),
    "no groups": ("moved", R, MOVED, {"move.shifts": none}),
    "a group more than there may be": (
        "moved",
        R,
        feddp.MovedOffsets,
        {"move.shifts": every(lambda x: np.repeat(x[:1], 6, axis=0))},
        1,
    ),
    "a shift out of sight": ("moved", R, MOVED, {"move.shifts": every(lambda x: x * 0 + 1e12)}),
    "a scale of nothing": ("moved", R, MOVED, {"move.scale": 0.0}),
    "a column's centre beyond its bounds": ("spread", R, SCALED, {"scale.centre": first(1e3)}),
    "a spread of nearly nothing": ("spread", R, SCALED, {"scale.spread": first(1e-30)}),
    "a spread beyond the bounds": ("unbounded", R, SCALED, {"scale.spread": first(1e3)}),
    "columns that fall": ("spread", R, LOCATE, {"columns": every(lambda x: x[::-1])}),
    "a column that there is not": ("spread", R, zoom.Measure, {"columns": every(lambda x: x + 1)}),
    "histograms of no column": ("spread", R, LOCATE, {"columns": none, "low": none, "high": none}),
    "a window beyond the bounds": ("spread", R, LOCATE, {"low": first(-1e6)}),
    "a window that ends beyond the bounds": ("spread", R, zoom.Measure, {"high": first(1e6)}),
    "a window of nothing": ("spread", R, LOCATE, {"high": every(lambda x: x * 0 - 1.0)}),
    "published centres outside": ("published", R, ClusterSums, {"centres": first(1e3)}),
}

TOO_LONG = ("more sides than axes", "more axes than there may be", "a list of points that is too long")
"""What does not fit its box, either."""


def make(family, unit, kind, changes, place=0):
    """The round in which a kind is asked for the first time, or a later one, and its question with these changes."""
    walked = prepare(family, unit)[2]
    round_ = [round_ for round_, query in enumerate(walked, 1) if isinstance(query.question, kind)][place]
    question = walked[round_ - 1].question
    for path, value in changes.items():
        question = change(question, path, value)
    return round_, question


@pytest.mark.parametrize("name", LIES)
def test_a_question_out_of_range_is_refused(name):
    family, unit, *said = LIES[name]
    round_, question = make(family, unit, *said)
    prepare(family, unit)[1].read.cache_clear()
    assert len(encode(question)) + 4 <= prepare(family, unit)[1].lengths[round_ - 1] or name in TOO_LONG
    with np.errstate(all="raise"):
        assert accept(family, unit, round_, question) is None
    prepare(family, unit)[1].read.cache_clear()


@pytest.mark.parametrize(("family", "unit"), CASES)
def test_no_honest_question_costs_less_than_it_may(family, unit):
    """The rows reach the price: were it half of what it is, some would pass it."""
    _, forms, walked = prepare(family, unit)
    forms.read.cache_clear()
    assert all(check(family, unit, round_, query.question) for round_, query in enumerate(walked, 1))
    forms.read.cache_clear()


def test_every_kind_of_question_there_is_is_tested():
    asked = {type(query.question) for case in CASES for query in prepare(*case)[2]}
    leaves = {kind for kind in list_kinds(Question) if not kind.__subclasses__()}
    assert asked | {Idle, ScaledResult} == {kind for kind in leaves if kind.__module__.startswith("cloister.")}


def list_kinds(kind):
    return {kind, *(deeper for inner in kind.__subclasses__() for deeper in list_kinds(inner))}


# --- the result -------------------------------------------------------------------------------------------------------


def make_sizes(**changes):
    """Sizes as they are stated, in range or not."""
    sizes = Sizes(unit="records", clusters=(1.0, 0.0, 2.0), noise=(1.0,) * 3, total=3.0, total_noise=1.0)
    for name, value in changes.items():
        force_setattr(sizes, name, value)  # past what sizes themselves refuse
    return sizes


def make_result(**changes):
    d, k = 4, 3
    said = {
        "centres": Array.of(np.zeros((k, d))),
        "centre_noise": Array.of(np.ones((k, d))),
        "sizes": make_sizes(),
        "rounds": 1,
        "curve": (),
        "layout": None,
    }
    return Result(**said | changes)


def read_result(result):
    settings, _, points = lies.make_settings("feddp", R)
    forms = Forms(PublicValues(settings=settings, points=points), [("result", Result)])
    return lies.make_statements(forms).open(1, lies.seal(1, encode(result), forms.lengths[0])).question


RESULTS = {
    "a centre outside": {"centres": Array.of(np.full((3, 4), 1.5))},
    "no centres": {
        "centres": Array.of(np.zeros((0, 4))),
        "centre_noise": Array.of(np.zeros((0, 4))),
        "sizes": make_sizes(clusters=(), noise=(), total=0.0),
    },
    "more centres than were asked for": {
        "centres": Array.of(np.zeros((4, 4))),
        "centre_noise": Array.of(np.ones((4, 4))),
        "sizes": make_sizes(clusters=(1.0, 0.0, 2.0, 0.0), noise=(1.0,) * 4),
    },
    "noise below nothing": {"centre_noise": Array.of(np.full((3, 4), -0.5))},
    "noise beyond the domain": {"centre_noise": Array.of(np.full((3, 4), 1.5))},
    "noise that is no number": {"centre_noise": Array.of(np.full((3, 4), np.nan))},
    "sizes of other clusters": {"sizes": make_sizes(clusters=(1.0, 2.0), noise=(1.0,) * 2)},
    "a size below nothing": {"sizes": make_sizes(clusters=(4.0, -1.0, 0.0))},
    "sizes that do not add up": {"sizes": make_sizes(total=4.0)},
    "sizes that add up to no number": {"sizes": make_sizes(clusters=(1e308,) * 3, total=np.inf)},
    "sizes whose noise is no number": {"sizes": make_sizes(noise=(np.nan,) * 3)},
    "a total without end": {"sizes": make_sizes(total=np.inf)},
    "a loss without end": {"sizes": None, "curve": (KChoice(k=3, loss=np.inf, score=1.0),)},
}


@pytest.mark.parametrize("name", RESULTS)
def test_a_result_out_of_range_is_refused(name):
    for true in (make_result(), make_result(sizes=None, curve=(KChoice(k=3, loss=2.0, score=1.0),))):
        assert read_result(true) == true
    with pytest.raises(RemoteProtocolError, match="party 1"):
        read_result(make_result(**RESULTS[name]))


def test_a_question_that_says_it_is_longer_than_its_box_is_refused():
    _, forms, _ = prepare("direct", R)
    encoded = encode(statistics.Count(share=BUDGET_UNITS))
    assert len(encoded) + 4 == forms.lengths[0]
    assert forms._read(1, len(encoded).to_bytes(4, "little") + encoded).length == 1
    for length in (len(encoded) - 1, len(encoded) + 1, 2**32 - 1):
        with pytest.raises(RemoteProtocolError, match=r"padded with zeros|must be Count or none"):
            forms._read(1, length.to_bytes(4, "little") + encoded)


# --- our own mistakes -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("length", "price"), [(0, 1), (1, 0), (-1, 1), (1, -1)])
def test_a_query_costs_something_if_and_only_if_it_asks_for_numbers(length, price):
    with pytest.raises(LocalProtocolError, match="this is a bug"):
        Query(name="", question=Idle(), length=length, l2_squared=price, measure=lambda records: None)


def test_a_share_that_is_too_small_for_all_columns_is_refused_by_name():
    values = PublicValues(settings=prepare("direct", R)[0])
    with pytest.raises(ConfigError, match="the share of a question about columns must be at least 2; got 1"):
        pose(values, "columns", questions.Columns(share=1))


def test_shares_of_laplace_noise_are_not_rehearsed():
    """Their sum has no law that is drawn at once."""
    settings = prepare("published", R)[0]
    slot = next(slot for slot in settings.slots if isinstance(settings.noise_in(slot), DiscreteLaplace))
    algorithm._total_noise(settings, slot)
    with pytest.raises(LocalProtocolError, match="can be rehearsed only where the coordinator adds it"):
        algorithm._total_noise(replace(settings, placement=Local(parties=settings.parties)), slot)


def test_a_question_longer_than_its_slot_or_of_another_kind_is_not_stated():
    _, forms, walked = prepare("direct", R)
    round_, question = make("direct", R, Offsets, {})
    longer = change(change(question, "centres", more), "radii", more)
    for wrong in (longer, walked[0].question):
        with pytest.raises(LocalProtocolError, match="this is a bug"):
            forms.write(round_, wrong)
    assert len(forms.write(round_, question)) == len(forms.write(round_, Idle())) == forms.lengths[round_ - 1]
