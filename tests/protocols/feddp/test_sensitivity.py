"""Sensitivities of FedDP-KMeans: one unit moves every answer by its own vector, whatever was released before."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cloister.crypto import Stream
from cloister.errors import ConfigError
from cloister.kmeans import sum_offsets
from cloister.numeric import FixedPoint
from cloister.privacy.units import Budget, Unit
from cloister.protocols.feddp import published_questions, questions
from cloister.protocols.feddp.options import ExtraSteps, FeddpKnobs
from cloister.protocols.feddp.pipeline import bind_server
from cloister.protocols.feddp.settings import FeddpSettings
from cloister.protocols.guided_sums import query as queries
from cloister.protocols.guided_sums import refinement, statistics
from cloister.protocols.guided_sums.settings import BUDGET_UNITS
from cloister.records import ArrayRecords
from tests.protocols.feddp.sessions import make_mixture
from tests.protocols.synopsis.steps import square

PARTS, SERVER, _ = make_mixture(clients=3, each=20, d=4)
POINTS = np.concatenate(PARTS)
CLIENT = Budget(epsilon=1.0, delta=1e-6, unit=Unit.CLIENT)
CASES = {
    "tight": {},
    "tight, public n": {"records": 60},
    "algorithm 5": {"options": ExtraSteps.algorithm_5(weight_min=0.1, sigma_max=0.02)},
    "moved": {"options": ExtraSteps(simplify=True, clear_only=True)},
    "published": {"variant": "published", "lloyd_steps": 1},
    "client": {"budget": CLIENT},
    "published client": {"variant": "published", "budget": CLIENT, "records": 60},
}


def make_settings(*, budget=None, **options):
    options.setdefault("knobs", FeddpKnobs(restarts=1))
    return FeddpSettings(
        clusters=3,
        dimensions=4,
        budget=budget or Budget(epsilon=1.0, delta=1e-6),
        parties=3,
        **options,
    ).for_server(SERVER)


def drive(job, seed, look):
    """Run the algorithm on noisy totals, and show every question that costs something to ``look``."""
    rng = np.random.default_rng(seed)
    asking = bind_server(SERVER)(job, Stream.from_seed(seed, "common"))
    query, spent = next(asking), 0
    for slot in job.slots:
        if query.l2_squared:
            spent += query.l2_squared
            look(query)
        noise = rng.normal(scale=job.placement.total_variance(job.noise_in(slot)) ** 0.5, size=query.length)
        total = query.measure(ArrayRecords(POINTS)) + np.rint(noise).astype(np.int64)
        try:
            query = asking.send(total)
        except StopIteration:
            return spent
    raise AssertionError("more questions than slots")


def one(query, row):
    return query.measure(ArrayRecords(np.ascontiguousarray(row[None])))


EDGES = st.sampled_from([-1.0, 1.0, 0.0, 2.0**-16, 0.5])


@pytest.mark.parametrize("case", [name for name in CASES if "client" not in name])
@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 10**6), row=st.lists(EDGES | st.floats(-1, 1), min_size=4, max_size=4))
def test_one_record_moves_every_answer_by_its_own_vector_within_the_bound(case, seed, row):
    record = FixedPoint(16).quantise(np.array(row))
    check_record(make_settings(**CASES[case]), seed, record)


def check_record(job, seed, record):
    with_record = ArrayRecords(np.concatenate([POINTS[:31], record[None], POINTS[31:]]))

    def look(query):
        own = one(query, record)
        assert np.array_equal(query.measure(with_record) - query.measure(ArrayRecords(POINTS)), own)
        assert square(own) <= query.l2_squared
        assert int(np.abs(own).sum()) <= query.sensitivity.l1

    drive(job, seed, look)


@pytest.mark.parametrize("case", ["client", "published client"])
@settings(max_examples=8, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    rows=st.lists(st.lists(EDGES | st.floats(-1, 1), min_size=4, max_size=4), max_size=40),
    times=st.sampled_from([1, 7, 300]),
)
def test_one_client_moves_every_answer_within_the_bound_whatever_its_table(case, seed, rows, times):
    table = FixedPoint(16).quantise(np.repeat(np.array(rows).reshape(len(rows), 4), times, axis=0))
    check_client(make_settings(**CASES[case]), seed, table)


def check_client(job, seed, table):
    def look(query):
        own = query.measure(ArrayRecords(table))
        assert square(own) <= query.l2_squared
        assert int(np.abs(own).sum()) <= query.sensitivity.l1

    drive(job, seed, look)


@pytest.mark.parametrize("case", [name for name in CASES if "published" not in name])
def test_all_questions_together_are_within_the_budget(case):
    for seed in range(3):
        job = make_settings(**CASES[case])
        spent = drive(job, seed, lambda query: None)
        idle = job.options.simplify  # rounds that were not needed
        assert (0.8 if idle else 0.999) * BUDGET_UNITS < spent <= BUDGET_UNITS


def test_hostile_totals_stop_nothing():
    """Whatever is unmasked, the algorithm goes on to the last round, and what it finds lies in the domain."""
    for case, value in [(case, value) for case in CASES for value in (0, -(2**62), 2**62)]:
        job = make_settings(**CASES[case])
        asking = bind_server(SERVER)(job, Stream.from_seed(1, "common"))
        query = next(asking)
        for _ in job.slots:
            try:
                query = asking.send(np.full(query.length, value, dtype=np.int64))
            except StopIteration as stop:
                found = stop.value
        assert np.isfinite(found.centres).all()
        assert np.abs(found.centres).max() <= 1.0


def unclipped(records, centres, radii, *, scale, weight, join=None):
    return sum_offsets(records, centres, radii / 50, scale=50 * scale, weight=weight, join=join)


def twice(labels, minlength=0):
    return 2 * np.bincount(labels, minlength=minlength)


class Doubling:
    """numpy, but for counts, which are doubled: a record that is counted with two points."""

    def __getattr__(self, name):
        return twice if name == "bincount" else getattr(np, name)


LONG = np.array([1.0, 1.0, -1.0, 1.0])


@pytest.mark.parametrize(
    ("module", "name", "mutant", "case"),
    [
        (refinement, "sum_offsets", unclipped, "tight"),
        (statistics, "_shorten", lambda offsets, radius, reach: np.rint(offsets * (reach / radius)), "tight"),
        (statistics, "OFF", 10, "tight"),
        (questions, "np", Doubling(), "tight"),
        (published_questions, "np", Doubling(), "published"),
        (published_questions, "measure_lengths", lambda offsets: np.zeros(len(offsets)), "published"),
    ],
    ids=["offsets not clipped", "moments not shortened", "pairs weigh too much", "two cells", "two, published", "long"],
)
def test_the_property_catches_a_record_that_adds_too_much(monkeypatch, module, name, mutant, case):
    monkeypatch.setattr(module, name, mutant)
    with pytest.raises(AssertionError):
        check_record(make_settings(**CASES[case]), 1, LONG)


@pytest.mark.parametrize(
    ("module", "name", "case"),
    [(queries, "bound_client", "client"), (published_questions, "clip_client", "published client")],
)
def test_the_property_catches_a_client_that_is_not_bounded(monkeypatch, module, name, case):
    monkeypatch.setattr(module, name, lambda exact, bound: exact)
    with pytest.raises(AssertionError):
        check_client(make_settings(**CASES[case]), 1, np.repeat(LONG[None], 500, axis=0))


def test_a_label_depends_on_no_other_record(monkeypatch):
    """Mutant: records within a batch are compared to the batch's mean."""
    real = refinement._measure_squares

    def together(coordinates, places, labels, clear):
        return real(coordinates - coordinates.mean(axis=0), places, labels, clear)

    monkeypatch.setattr(refinement, "_measure_squares", together)
    with pytest.raises(AssertionError):
        check_record(make_settings(), 1, LONG)


def test_shares_that_leave_nothing_for_the_steps_are_refused():
    knobs = FeddpKnobs(moment_share=0.8, weight_share=0.14, restarts=1)
    job = make_settings(records=60, knobs=knobs)
    assert 0.999 * BUDGET_UNITS < drive(job, 1, lambda query: None) <= BUDGET_UNITS
    with pytest.raises(ConfigError, match=r"at most 0\.95 together"):
        make_settings(options=ExtraSteps(simplify=True), knobs=knobs)
