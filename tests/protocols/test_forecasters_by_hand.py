"""What is tried for a forecast: how many records, under which noise, from which streams; and what comes of it."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from cloister.crypto import Stream
from cloister.forecast.families import FAMILIES
from cloister.forecast.trials import FULL, QUICK, Effort
from cloister.forecast.visibility import Visibility
from cloister.privacy.calibration import rho_for
from cloister.privacy.placement import Shared
from cloister.privacy.units import Budget, Unit
from cloister.protocols.synopsis import plan as synopsis
from cloister.protocols.vertical import forecaster as vertical
from tests.protocols.synopsis.steps import make_settings
from tests.protocols.vertical.tables import make

LITTLE = Effort(
    numbers=600,
    records_least=100,
    records_most=250,
    runs=2,
    runs_unsteady=3,
    trials=5,
    trials_without=4,
    restarts=6,
)
EVEN = [family for family in FAMILIES if family.even]


class Watched:
    """A stream that remembers what was derived from it."""

    def __init__(self):
        self.stream, self.asked = Stream.from_seed(5, "plan"), []

    def child(self, *context):
        self.asked.append(context)
        return self.stream.child(*context)


def watch_visibility(module, monkeypatch):
    """Note what is asked of planted clusters; the smallest is as large as was begun with."""
    asked = []

    def find(find_centres, plant, *, most, start, trials, stream):
        planted = plant(Stream.from_seed(1, "planted"))
        asked.append((most, start, trials, planted))
        return Visibility(size=start, hidden=False)

    monkeypatch.setattr(module, "find_smallest_cluster", find)
    return asked


def contexts_by_hand(tried):
    """A draw of records for each set, and another stream for each run's noise."""
    records, runs = set(), set()
    for family in FAMILIES:
        several = range(3 if family.unsteady else 2)
        records |= {(family.name, 0 if family.even else run, tried) for run in several}
        runs |= {(family.name, "run", run) for run in several}
    return records, runs


@pytest.mark.parametrize(("records", "tried"), [(70, 70), (5000, 200)])
def test_vertical(records, tried, monkeypatch):
    public = make(records, alice=(0,), encrypted=[(1, 2)], clusters=3, epsilon=2.0)
    seen, watched = [], Watched()

    def rehearse(small, table, *, samplers, stream):
        seen.append((small, table, samplers))
        moved = table[:3] + stream.uniform(3, 3) / 100
        return SimpleNamespace(finding=SimpleNamespace(centres=moved))

    monkeypatch.setattr(vertical, "rehearse_vertical", rehearse)
    planted, told = watch_visibility(vertical, monkeypatch), []
    case = vertical.Forecaster(public, effort=LITTLE, stream=watched, on_trial=told.append).forecast(
        2.0, look_for_smallest=True
    )
    draws, runs = contexts_by_hand(tried)
    assert sorted(map(str, watched.asked)) == sorted(map(str, [*draws, *runs, ("visibility",), ("visibility",)]))
    assert len(seen) == len(runs)
    for small, table, samplers in seen:
        assert (small.records, len(table), small.knobs.restarts, len(samplers)) == (tried, tried, 6, 2)
        assert np.array_equal(table * 2**16, np.rint(table * 2**16))
        wanted = min(rho_for(public.noise_budget) * (records / tried) ** 2, 4.0)
        assert rho_for(small.noise_budget) == pytest.approx(wanted, rel=1e-6)
    share = tried / 3
    assert [(most, start, trials) for most, start, trials, _ in planted] == [
        (share, pytest.approx(0.25 * share), 5),
        (share, pytest.approx(0.02 * share), 4),
    ]
    assert case.smallest_cluster == round(0.25 * share * records / tried)
    assert case.smallest_without_privacy == round(0.02 * share * records / tried)
    assert (case.epsilon, case.records, case.parties, case.rounds) == (2.0, records, 2, public.rounds_made)
    assert case.cells == public.histogram_length
    assert case.looked_for_smallest
    assert [loss.family for loss in case.losses] == [family.name for family in FAMILIES]
    assert all(loss.ratio > 1 for loss in case.losses)
    assert 0 < case.centre_noise.low <= case.centre_noise.high
    assert len(told) == len(FAMILIES) + 1


def test_a_loss_is_the_mean_over_the_runs():
    references = [SimpleNamespace(measure_ratio=lambda found, i=i: i * found) for i in (1, 2, 3)]
    assert vertical._compare(FAMILIES[0], references, [1.0, 10.0, 100.0]).ratio == pytest.approx(321 / 3)


def test_without_a_budget_losses_are_all(monkeypatch):
    monkeypatch.setattr(
        vertical,
        "rehearse_vertical",
        lambda small, table, **options: SimpleNamespace(finding=SimpleNamespace(centres=table[:3])),
    )
    public, told = make(900, clusters=3, epsilon=None), []
    losses = vertical.Forecaster(public, effort=LITTLE, stream=Watched(), on_trial=told.append).compare_exactly()
    assert [loss.family for loss in losses] == [family.name for family in FAMILIES]
    assert len(told) == len(FAMILIES)


@pytest.mark.parametrize(
    ("d", "k", "records", "tried"),
    [(1, 3, 10**6, 250), (4, 3, 10**6, 150), (100, 3, 10**6, 100), (100, 20, 10**6, 400), (2, 3, 90, 90)],
)
def test_how_many_records_are_made_up(d, k, records, tried):
    """600 numbers, from 100 to 250 records, 20 for each cluster, and never more than there are."""
    own = vertical.Forecaster(
        make(records, alice=(), encrypted=[range(d)], clusters=k), effort=LITTLE, stream=Watched(), on_trial=print
    )
    assert own._tried == tried
    assert synopsis.choose_records(LITTLE, records, make_settings(clusters=k, dimensions=d)) == tried


@pytest.mark.parametrize(("parties", "tried"), [(10, 100), (1000, 10), (50, 50)])
def test_clients_hold_as_many_as_they_have(parties, tried):
    """A hundred clients are made up at most: of a thousand records of a thousand clients, 100 would do for them."""
    public = make_settings(clusters=1, dimensions=9, unit=Unit.CLIENT, parties=parties)
    records = {10: 1000, 1000: 100, 50: 50}[parties]
    found = synopsis.choose_records(LITTLE, records, public)
    enough = min(100, -(-records * min(parties, 100) // parties))
    assert found == min(records, max(min(enough, 250), 20))
    assert found == max(tried, 20)


@pytest.mark.parametrize("placement", ["one", "shares"])
def test_synopsis(placement, monkeypatch):
    public = make_settings(clusters=3, dimensions=3, epsilon=0.5, parties=4)
    if placement == "shares":
        public = replace(public, placement=Shared(parties=4, colluding_max=1))
    seen, watched = [], Watched()

    def run(self, points, stream):
        seen.append((self, len(points)))
        layout = SimpleNamespace(route="direct", cells=77)
        return SimpleNamespace(
            finding=SimpleNamespace(
                centres=points[:3] + stream.uniform(3, 3) / 100, layout=layout, rounds=4, scale=None
            )
        )

    monkeypatch.setattr(synopsis.Scaling, "run", run)
    planted, told = watch_visibility(synopsis, monkeypatch), []
    forecaster = synopsis.Forecaster(public, effort=LITTLE, stream=watched, on_trial=told.append)
    case = forecaster.forecast(epsilon=0.5, records=10_000, look_for_smallest=True)
    draws, runs = contexts_by_hand(200)
    assert sorted(map(str, watched.asked)) == sorted(map(str, [*draws, *runs, ("visibility",), ("visibility",)]))
    assert {points for _, points in seen} == {200}
    small = seen[0][0].small
    assert small.noise_std == pytest.approx(public.noise_std * 200 / 10_000, rel=1e-6)
    assert (small.parties, small.clusters, small.knobs.restarts) == (4, 3, 6)
    assert (case.route, case.cells, case.rounds, case.parties) == ("direct", 77, 4, 4)
    share = 200 / 3
    assert [(most, pytest.approx(start), trials) for most, start, trials, _ in planted] == [
        (share, 0.25 * share, 5),
        (share, 0.02 * share, 4),
    ]
    assert case.smallest_cluster == round(0.25 * share * 50)
    assert case.smallest_without_privacy == round(0.02 * share * 50)
    # The next case begins where this one ended, larger by as much as its noise is; k-means was looked at already.
    forecaster.forecast(epsilon=0.25, records=10_000, look_for_smallest=True)
    quieter = replace(public, budget=Budget(epsilon=0.25, delta=1e-6))
    assert planted[2][1] == pytest.approx(0.25 * share * quieter.noise_std / public.noise_std)
    assert len(planted) == 3
    without = forecaster.forecast(epsilon=0.25, records=10_000, look_for_smallest=False)
    assert (without.smallest_cluster, without.looked_for_smallest, len(planted)) == (None, False, 3)
    assert len(told) == 3 * len(FAMILIES) + 2


def test_a_trial_of_clients_has_as_many_as_there_are_up_to_a_hundred():
    public = make_settings(clusters=2, unit=Unit.CLIENT, parties=400, records=8000)
    scaling = synopsis.Scaling(settings=public, records=8000, tried=500)
    small = scaling.small
    assert (small.parties, small.records) == (100, 500)
    assert small.noise_std == pytest.approx(public.noise_std / 4, rel=1e-6)
    few = synopsis.Scaling(settings=replace(public, parties=40), records=8000, tried=500).small
    assert few.parties == 40
    assert few.noise_std == pytest.approx(public.noise_std, rel=1e-6)


@pytest.mark.parametrize(("k", "effort", "restarts"), [(20, FULL, 20), (50, FULL, 8), (1000, FULL, 4), (3, QUICK, 5)])
def test_cells_are_clustered_from_fewer_starts_where_clusters_are_many(k, effort, restarts):
    assert synopsis._limit_restarts(effort, make_settings(clusters=k)).knobs.restarts == restarts
    assert synopsis._limit_restarts(effort, make_settings(clusters=k, restarts=2)).knobs.restarts == 2
