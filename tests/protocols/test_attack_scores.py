"""What an adversary makes of a session is the likelihood ratio: computed a second time, number by number."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest

from cloister.privacy.mechanisms import DiscreteLaplace
from cloister.privacy.units import Unit
from cloister.protocols.guided_sums.attack import HiddenUnit, choose_units, count_harmless, name_entries
from cloister.protocols.guided_sums.query import PublicValues, pose
from cloister.protocols.guided_sums.settings import BUDGET_UNITS, Slot
from cloister.protocols.guided_sums.statistics import Count
from cloister.protocols.synopsis.questions import Columns
from cloister.protocols.vertical import attack_views
from cloister.records import ArrayRecords
from tests.protocols.synopsis.steps import make_settings
from tests.protocols.synopsis.test_attack import make_job


def settings_with(slots, **options):
    public = make_settings(**options)
    return SimpleNamespace(
        slots=slots, placement=public.placement, noise_in=lambda slot: slot.mechanism or public.target
    ), public


@pytest.mark.parametrize("laplace", [False, True])
def test_the_score_of_a_session_on_guided_sums(laplace):
    noise = DiscreteLaplace(scale=50.0) if laplace else None
    slots = (Slot(name="a", length=1, mechanism=noise), Slot(name="b", length=48))
    settings, public = settings_with(slots, dimensions=2)
    values = PublicValues(settings=public)
    queries = [pose(values, "a", Count(share=100**2)), pose(values, "b", Columns(share=2 * 30**2))]
    tables = [ArrayRecords(np.full((count, 2), place)) for count, place in ((3, 0.1), (4, -0.9), (5, 0.1))]
    present = ArrayRecords(np.vstack([np.full((5, 2), 0.1), [[0.99, -0.3]]]))
    unit = HiddenUnit(settings=settings, others=tuple(tables[:2]), without=tables[2], present=present)
    rng = np.random.default_rng(1)
    rests = [np.array([70]), rng.integers(-60, 60, 48)]
    totals = []
    for query, rest in zip(queries, rests, strict=True):
        total = rest.copy()
        total[: query.length] += sum(query.measure(table) for table in tables)
        totals.append(total)
    view = unit.read(queries, totals)
    v = [np.array([100]), np.zeros(32)]
    v[1][15], v[1][16 + 5] = 30, 30
    variance = public.placement.total_variance(public.target)
    first = (abs(70) - abs(70 - 100)) / 50 if laplace else (70 * 100 - 100**2 / 2) / variance
    x = rests[1][:32]
    second = sum(a * b - b * b / 2 for a, b in zip(x, v[1], strict=True)) / variance
    assert view[:3].tolist() == [round(2**20 * score) for score in (first + second, first, second)]
    assert view[3:].tolist() == [70, *rests[1][:32]]
    assert len(list(name_entries(slots))) == len(view)
    assert list(name_entries(slots))[:4] == [
        "likelihood ratio of all rounds",
        "likelihood ratio of 'a'",
        "likelihood ratio of 'b'",
        "'a', number 1",
    ]


@pytest.mark.parametrize("d", [1, 12])
@pytest.mark.parametrize("epsilon", [1e-4, 1.0])
def test_so_many_harmless_records_make_every_query_asked(d, epsilon):
    public = make_settings(dimensions=d, epsilon=epsilon, parties=3)
    needed = 40 * max(d, 5) * public.noise_std / math.isqrt(BUDGET_UNITS)
    assert count_harmless(public) == math.ceil(min(needed, 10_000) / 3)


def test_the_units_that_are_there_or_not():
    job = make_job(dimensions=2)
    units = list(choose_units(job, make_settings(dimensions=2)).values())
    assert [rows.shape for rows in units] == [(1, 2), (1, 2)]
    assert set(units[0].ravel()) <= {0.0, 10.0}
    assert np.abs(units[1]).max() > 100
    one, two = choose_units(job, make_settings(dimensions=2, unit=Unit.CLIENT)).values()
    assert one.shape == two.shape == (20, 2)
    assert len(np.unique(one, axis=0)) == 1
    assert np.array_equal(np.unique(two, axis=0, return_counts=True)[1], [10, 10])
    assert np.allclose(np.unique(two, axis=0).mean(axis=0), 5.0)


def test_the_score_of_a_pass():
    parts = [SimpleNamespace(length=2, sigma=3.0), SimpleNamespace(length=3, sigma=0.5)]
    rest, v = np.array([5.0, -1.0, 2.0, 0.5, 1.0]), np.array([1.0, 2.0, 0.0, 1.0, -1.0])
    score = attack_views._score(SimpleNamespace(parts=parts), rest, v)
    assert score == pytest.approx((5 - 2 - 2.5) / 9 + (0.5 - 1 - 1) / 0.25)


def test_the_first_numbers_are_kept_and_filled_up():
    assert attack_views._cut(np.arange(100)).tolist() == list(range(32))
    assert attack_views._cut(np.ones((2, 3))).tolist() == [1] * 6 + [0] * 26
