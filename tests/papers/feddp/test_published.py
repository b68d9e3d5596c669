"""Algorithms 1 and 2 as published: what a unit adds to a release keeps the sensitivity that its noise is made for."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cloister.crypto import Stream
from cloister.kmeans import lloyd
from cloister.numeric import FixedPoint
from cloister.privacy.simulation_sampler import SimulationSampler
from cloister.privacy.units import Budget, Unit
from cloister.protocols.feddp.pipeline import bind_server
from cloister.protocols.feddp.settings import FeddpSettings
from cloister.protocols.guided_sums.algorithm import rehearse
from cloister.records import ArrayRecords
from papers.feddp import published
from papers.feddp.datasets import MixtureSet, load_study
from papers.feddp.published import Plan, Split, run_feddp
from papers.lab.scores import nicv
from tests.papers.feddp.test_trials import DEVICES, SILO

SPLIT = Split(projection=0.2, weights=0.2, sums=0.45, counts=0.15)


class Watching:
    """Noise that keeps the exact numbers, and answers with what it was told to: the same questions follow."""

    def __init__(self, answers: list[np.ndarray] | None = None) -> None:
        self.seen: list[np.ndarray] = []
        self._answers = answers

    def release(self, exact: np.ndarray) -> np.ndarray:
        self.seen.append(exact.copy())
        return exact if self._answers is None else self._answers[len(self.seen) - 1]


def make_plan(unit: Unit, epsilon: float = 1.0, rounds: int = 1) -> Plan:
    return Plan(
        budget=Budget(epsilon=epsilon, delta=1e-6, unit=unit),
        clusters=3,
        split=SPLIT,
        rounds=rounds,
        client_records=8 if unit is Unit.CLIENT else 1,
    )


def draw(seed: int, parts: int, each: int) -> tuple[list[np.ndarray], np.ndarray]:
    rng = np.random.default_rng(seed)
    centres = rng.uniform(-3, 3, (3, 5))
    records = [centres[rng.integers(3, size=each)] + rng.normal(0, 0.3, (each, 5)) for _ in range(parts)]
    server = np.concatenate([np.repeat(centres, 6, axis=0) + rng.normal(0, 0.3, (18, 5)), rng.uniform(-3, 3, (9, 5))])
    return records, server


def run(parts, server, plan, noise, monkeypatch) -> np.ndarray:
    monkeypatch.setattr(published, "PlannedNoise", lambda budget, releases, sampler: noise)
    stream = Stream.from_seed(1, "published")
    return run_feddp(parts, server, plan, sampler=SimulationSampler(stream), stream=stream)


@settings(deadline=None, max_examples=40)
@given(seed=st.integers(0, 10**6), stretch=st.floats(0.01, 50.0), unit=st.sampled_from(Unit), size=st.integers(1, 30))
def test_removing_a_unit_changes_no_release_by_more_than_its_sensitivity(
    seed: int, stretch: float, unit: Unit, size: int
) -> None:
    parts, server = draw(seed, 6, 10)
    rng = np.random.default_rng(seed + 1)
    extra = stretch * rng.normal(size=(size if unit is Unit.CLIENT else 1, 5))
    plan = make_plan(unit)
    with_unit = Watching()
    with pytest.MonkeyPatch.context() as patch:
        run([*parts, extra], server, plan, with_unit, patch)
        # the same answers, so that what is asked next is the same
        without = Watching(with_unit.seen)
        run(parts, server, plan, without, patch)
    means_most = 3 if unit is Unit.CLIENT else 1
    for step, one, two in zip(
        published._list_steps(plan, len(server), 5, means_most), with_unit.seen, without.seen, strict=True
    ):
        change = [int(value) for value in (one - two).ravel()]
        assert len(change) == step.entries
        if step.is_gaussian:
            assert sum(value**2 for value in change) <= step.longest**2
        else:
            assert sum(map(abs, change)) <= step.longest


def test_the_outer_product_has_the_square_of_the_radius_as_its_sensitivity(monkeypatch: pytest.MonkeyPatch) -> None:
    """A record as long as Delta uses all of it; with Delta in its place noise would be too small."""
    _, server = draw(1, 1, 1)
    radius = np.linalg.norm(server, axis=1).max()
    record = np.zeros((1, 5))
    record[0, 0] = radius
    noise = Watching()
    run([record], server, make_plan(Unit.RECORD, rounds=0), noise, monkeypatch)
    step = published._list_steps(make_plan(Unit.RECORD, rounds=0), len(server), 5, 1)[0]
    assert np.linalg.norm(noise.seen[0].astype(float)) == pytest.approx(step.longest, rel=1e-3)


@pytest.mark.parametrize("unit", list(Unit))
def test_without_noise_it_finds_the_clusters(unit: Unit, monkeypatch: pytest.MonkeyPatch) -> None:
    parts, server = draw(5, 40, 8)
    points = np.concatenate(parts)
    found = run(parts, server, make_plan(unit, rounds=0), Watching(), monkeypatch)
    best = lloyd(points, found, iterations=20)
    assert nicv(points, found) < 1.1 * best.loss / len(points)
    assert nicv(points, found) < 5 * 0.3**2 * 1.3  # the clusters' own variance


@pytest.mark.parametrize("unit", list(Unit))
def test_every_release_has_noise_of_its_own(unit: Unit) -> None:
    """One seed for two noises would let whoever sees both releases subtract one from the other."""
    drawn: list[np.ndarray] = []

    class Watched(SimulationSampler):
        def draw(self, mechanism, entries, on_progress=None):
            drawn.append(super().draw(mechanism, entries, on_progress))
            return drawn[-1]

    parts, server = draw(3, 20, 8)
    stream = Stream.from_seed(1, "published")
    run_feddp(parts, server, make_plan(unit, rounds=2), sampler=Watched(stream.child("noise")), stream=stream)
    assert [len(noise) for noise in drawn] == [15, 27, 15, 3, 15, 3, 15, 3]
    gaussian = [tuple(noise / np.abs(noise).max()) for noise in drawn if len(noise) == 15]
    assert len(set(gaussian)) == 4


@pytest.mark.parametrize("data", [SILO, DEVICES], ids=["record", "client"])
def test_it_agrees_with_the_protocols_published_variant(data: MixtureSet) -> None:
    """Two programs for one text: with little noise their best runs cost the same."""
    study = load_study(data)
    # bounds around 0, so that scaling moves no origin: the text does not centre
    half_width = 1.2 * float(np.abs(study.points).max())
    records = [ArrayRecords(FixedPoint(16).quantise(part / half_width)) for part in study.parts]
    server = study.server / half_width
    config = FeddpSettings(
        clusters=10,
        dimensions=20,
        budget=Budget(epsilon=4.0, delta=1e-6, unit=data.unit),
        parties=len(records),
        records=len(study.points),
        variant="published",
    ).for_server(server)
    ours, theirs = [], []
    for seed in range(4):
        stream = Stream.from_seed(seed, "two programs")
        sampler = SimulationSampler(stream.child("noise"))
        plan = Plan(
            budget=config.budget,
            clusters=10,
            split=SPLIT if data.unit is Unit.RECORD else Split(projection=0.35, weights=0.1, sums=0.45, counts=0.1),
            rounds=0,
            client_records=data.records_each if data.unit is Unit.CLIENT else 1,
        )
        ours.append(nicv(study.points, run_feddp(study.parts, study.server, plan, sampler=sampler, stream=stream)))
        found = rehearse(config, records, pipeline=bind_server(server), sampler=sampler, stream=stream)
        theirs.append(nicv(study.points, found.finding.centres * half_width))
    assert min(ours) == pytest.approx(min(theirs), rel=0.02 if data.unit is Unit.RECORD else 0.1)
