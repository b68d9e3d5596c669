"""The picture: always the same size, and records in it only when they are handed over."""

from __future__ import annotations

import struct
import sys
from itertools import pairwise

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from tests.report.examples import COLUMNS, make_result

from cloister.data import Column, to_unit
from cloister.errors import ConfigError, MissingExtraError
from cloister.privacy.accounting import Accountant
from cloister.privacy.card import make_card
from cloister.privacy.mechanisms import DiscreteLaplace, Release
from cloister.privacy.placement import Aggregator
from cloister.privacy.units import Budget, LeakageTable, Sensitivity
from cloister.report import picture as picture_module
from cloister.report.picture import choose_columns, draw_picture
from cloister.report.result import KChoice, Result


def read_size(png: bytes) -> tuple[int, int]:
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", png[16:24])
    return int(width), int(height)


@pytest.mark.parametrize(("k", "d"), [(1, 1), (3, 1), (1, 3), (9, 12), (60, 40), (20_000, 3)])
def test_any_shape_is_drawn(k: int, d: int) -> None:
    rng = np.random.default_rng(5)
    columns = tuple(Column(name=f"$x_{i}", low=-1, high=1) for i in range(d))
    result = make_result(columns=columns, centres=rng.uniform(-1, 1, (k, d)))
    assert read_size(draw_picture(result, records=rng.uniform(-1, 1, (50, d)))) == (1200, 500)


@pytest.mark.parametrize("most", [2, 4, 100])
def test_a_choice_of_k_is_drawn_beside_the_centres(most: int) -> None:
    curve = tuple(KChoice(k=k, loss=1 / k, score=-abs(k - 4.0)) for k in range(2, most + 1))
    result = make_result(curve=(*curve, *(() if most >= 4 else (KChoice(k=4, loss=0.2, score=0.0),))))
    drawn = draw_picture(result)
    assert read_size(drawn) == (1600, 500)
    moved = tuple(KChoice(k=one.k, loss=one.loss, score=one.score**2) for one in result.curve)
    assert draw_picture(make_result(curve=moved)) != drawn


def test_records_change_the_picture_and_are_drawn_only_when_given() -> None:
    result = make_result()
    plain = draw_picture(result)
    assert plain == draw_picture(result)
    records = np.array([[column.low for column in COLUMNS]] * 3)
    assert draw_picture(result, records=records) != plain


def test_the_columns_that_separate_the_closest_centres_are_chosen() -> None:
    # Columns 0 and 1 vary most, but only columns 1 and 2 together keep every pair of centres apart.
    centres = np.array([[0.9, 0.9, 0.0], [0.9, 0.9, 0.5], [-0.9, -0.9, 0.0], [-0.9, -0.9, 0.5]])
    assert choose_columns(centres) in {(0, 2), (1, 2)}


def test_what_is_missing_or_misshapen_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="4 coordinates"):
        draw_picture(make_result(), records=np.zeros((5, 3)))
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtraError, match=r"cloister\[report\]"):
        draw_picture(make_result())


def draw_panel(result: Result) -> tuple[Figure, FigureCanvasAgg]:
    figure = Figure(figsize=(5, 5), dpi=100, layout="constrained")
    canvas = FigureCanvasAgg(figure)
    picture_module._draw_centres(figure.subplots(), result, None)
    canvas.draw()
    return figure, canvas


@pytest.mark.parametrize(
    ("low", "high"), [(0, 200_000), (-1, 1), (1.7e9, 1.71e9), (-2e12, 2e12), (0, 1e-9), (1e6, 1e6 + 0.5), (0, 1e300)]
)
def test_numbers_on_an_axis_keep_apart_and_differ(low: float, high: float) -> None:
    columns = tuple(Column(name=name, low=low, high=high) for name in ("a", "b"))
    middle = low / 2 + high / 2
    figure, canvas = draw_panel(make_result(columns=columns, centres=np.array([[middle, middle], [low, high]])))
    (axes,) = figure.axes
    first, last = axes.get_xlim()
    shown = [
        label for tick, label in zip(axes.get_xticks(), axes.get_xticklabels(), strict=True) if first <= tick <= last
    ]
    texts = [label.get_text() for label in shown]
    assert 2 <= len(texts) == len(set(texts))
    boxes = [label.get_window_extent(canvas.get_renderer()) for label in shown]
    assert all(left.x1 + 3 < right.x0 for left, right in pairwise(boxes)), texts
    if high == 200_000:
        assert "100,000" in texts


def test_the_picture_says_which_columns_it_draws_and_why() -> None:
    def title_of(result: Result) -> str:
        return str(draw_panel(result)[0].axes[0].get_title(loc="left"))

    x, y = choose_columns(to_unit(make_result().centres, COLUMNS))
    axes = draw_panel(make_result())[0].axes[0]
    assert (axes.get_xlabel(), axes.get_ylabel()) == (COLUMNS[x].name, COLUMNS[y].name)
    assert "the 2 of 4 columns that best separate the closest centres" in title_of(make_result())
    assert "the first 2 of 4 columns" in title_of(make_result(centres=make_result().centres[:1]))
    two = make_result(columns=COLUMNS[:2], centres=make_result().centres[:, :2])
    assert "\n" not in title_of(two), "there are no others"


@pytest.mark.parametrize(("k", "numbers"), [(30, 30), (31, 0)])
def test_many_centres_are_drawn_small_and_without_numbers(k: int, numbers: int) -> None:
    centres = np.random.default_rng(3).uniform(20, 50, (k, 4))
    axes = draw_panel(make_result(centres=centres))[0].axes[0]
    assert len(axes.texts) == numbers
    assert bool(axes.collections[0].get_sizes()[0] < 100) is (numbers == 0)


@pytest.mark.parametrize(("epsilon", "weak"), [(9.0, False), (60.0, True)])
def test_the_title_does_not_boast_of_a_weak_promise(epsilon: float, weak: bool) -> None:
    accountant = Accountant(Budget(epsilon=epsilon, delta=0.0))
    noise, sensitivity = DiscreteLaplace(scale=1.0001 / epsilon), Sensitivity(l1=1, l2_squared=1)
    accountant.charge(Release(name="a", mechanism=noise, sensitivity=sensitivity, entries=1))
    spent, budget = accountant.spent(), accountant.budget
    leakage = LeakageTable(source="", rows=(), withstands="", breaks_if="")
    card = make_card(
        spent,
        budget=budget,
        placement=Aggregator(),
        leakage=leakage,
        seeded=False,
    )
    title = picture_module._title(make_result(card=card))
    assert ("NO PROTECTION CLAIMED" in title) is weak
    assert ("differentially private" in title) is not weak
    assert "; simulated; " in title
