"""The picture: always the same size, and records in it only when they are handed over."""

from __future__ import annotations

import struct
import sys

import numpy as np
import pytest
from tests.report.examples import COLUMNS, make_result

from cloister.data import Column
from cloister.errors import ConfigError, MissingExtraError
from cloister.report.picture import choose_columns, draw_picture
from cloister.report.result import KChoice


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
    with pytest.raises(ConfigError, match="4 columns"):
        draw_picture(make_result(), records=np.zeros((5, 3)))
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtraError, match=r"cloister\[report\]"):
        draw_picture(make_result())
