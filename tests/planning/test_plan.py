"""What a plan is made from and what it says: public values only, every number of records and epsilon that was asked."""

from __future__ import annotations

import io
import re
from dataclasses import replace

import msgspec
import numpy as np
import pytest

import cloister
from cloister.columns import Column
from cloister.crypto import Stream
from cloister.errors import ConfigError
from cloister.forecast.advice import format_noise, format_percent, format_ratio
from cloister.forecast.families import FAMILIES, place_clusters, split_by_weight
from cloister.forecast.trials import EPSILONS
from cloister.job import Budget, DataOptions, Job, JobParty, make_options, noise_options
from cloister.planning import Plan, plan, print_plan
from cloister.planning.plan import RECORDS
from cloister.protocols.synopsis.options import SynopsisOptions
from cloister.protocols.synopsis.settings import Knobs
from cloister.report.layout import make_console

SMALL = Knobs(cells_max=256, rounds_max=4, restarts=3)


def make_job(**options):
    parts = {
        "name": "test",
        "k": 3,
        "columns": (Column(name="age", low=0, high=100), Column(name="a column with a long name", low=-1, high=1)),
        "parties": tuple(JobParty(name=name) for name in ("a", "b", "c")),
        "budget": Budget(epsilon=1.0, delta=1e-6),
        "protocol": SynopsisOptions(knobs=SMALL),
    }
    return Job(**{**parts, **options})


def lloyd_job(name, **options):
    budget = Budget(epsilon=1.0, delta=1e-6) if name == "mask-noise-average" else None
    return replace(make_job(), protocol=make_options(name, **options), budget=budget)


def printed(made):
    file = io.StringIO()
    print_plan(made, make_console(file))
    return file.getvalue()


@pytest.fixture(autouse=True)
def no_tables(monkeypatch):
    """Whoever opens a party's table fails the test."""

    def refuse(*args, **kwargs):
        raise AssertionError("a plan opened a table")

    monkeypatch.setattr("cloister.sessions.tables.open_table", refuse)
    monkeypatch.setattr("cloister.protocol.open_table", refuse)
    monkeypatch.setattr("cloister.data.csv_source.CsvSource.__init__", refuse)


@pytest.mark.parametrize(
    ("protocol", "options", "warned"),
    [
        ("synopsis", {}, False),
        ("synopsis", {"placement": "local"}, False),
        ("synopsis", {"placement": "aggregator"}, True),
        ("mask-noise-average", {}, False),
        ("mask-noise-average", {"placement": "aggregator"}, True),
        ("mask-noise-average", {"topology": "ring"}, False),
        ("fastlloyd", {"variant": "amn"}, True),
        ("secfc", {}, True),
    ],
)
def test_a_result_that_must_never_reach_the_coordinator_is_warned_of(protocol, options, warned):
    pure = "variant" in options
    job = make_job(
        protocol=make_options(protocol, **options, **({"knobs": SMALL} if protocol == "synopsis" else {})),
        budget=Budget(epsilon=1.0, delta=0.0 if pure else 1e-6),
        data=DataOptions(records=1000 if pure else None),
    )
    check_warned(plan(job, records=1000, quick=True, epsilons=None if protocol != "synopsis" else ()), warned)


@pytest.mark.parametrize("parties", [300, 301])
def test_beyond_three_hundred_parties_the_coordinator_adds_the_noise_and_plans_warn_of_it(parties):
    many = tuple(JobParty(name=f"p{i}") for i in range(parties))
    job = make_job(protocol=make_options("mask-noise-average", iterations=2), parties=many)
    check_warned(plan(job, records=100_000), parties > 300)


def test_clients_beyond_the_limit_are_warned_of_it_too(monkeypatch):
    monkeypatch.setattr(noise_options, "PADS_MOST", 1)
    job = make_job(
        budget=Budget(epsilon=1.0, delta=1e-6, unit="client"), parties=(JobParty(name="a"), JobParty(name="b"))
    )
    check_warned(plan(job, epsilons=(), quick=True), True)


def check_warned(made, warned):
    text = " ".join(printed(made).split())
    words = "WARNING: The coordinator adds the noise and knows it: the result must never reach the coordinator"
    assert (words in text) is warned
    assert len(made.warnings) == warned
    if warned:
        assert text.index(words) < text.index("Leaks:"), "beside who adds the noise"


def test_python_users_find_it_at_the_top():
    assert (cloister.plan, cloister.Plan) == (plan, Plan)


def test_the_epsilons_asked_for_and_the_jobs_own_are_tried():
    made = plan(make_job(), records=2000, epsilons=(0.5, 3.0), quick=True)
    assert [case.epsilon for case in made.cases] == [0.5, 1.0, 3.0]
    assert {case.records for case in made.cases} == {2000}
    own = made.find_case(epsilon=1.0, records=2000)
    assert [loss.family for loss in own.losses] == [family.name for family in FAMILIES]
    assert own.loss_ratio.high == max(loss.ratio for loss in own.losses)
    assert own.looked_for_smallest
    assert own.cells <= 256
    assert (made.epsilon, made.delta, made.unit) == (1.0, 1e-6, "record")


def test_the_usual_epsilons_are_tried_where_none_is_named():
    made = plan(make_job(budget=Budget(epsilon=0.7, delta=1e-6)), records=500, quick=True)
    assert [case.epsilon for case in made.cases] == sorted([*EPSILONS, 0.7])
    noise = [case.centre_noise.high for case in made.cases]
    assert noise[0] > noise[-1], "less epsilon, more noise"


def test_a_declared_number_of_records_is_used_and_named():
    made = plan(make_job(data=DataOptions(records=4000)), epsilons=(), quick=True)
    assert made.records == (4000,)
    assert "4,000 records public" in " ".join(made.notes)
    with pytest.raises(ConfigError, match=r"data\.records = 4000; got 500"):
        plan(make_job(data=DataOptions(records=4000)), records=500)


def test_without_a_number_of_records_several_are_tried():
    made = plan(make_job(), epsilons=(), quick=True)
    assert made.records == RECORDS
    assert [case.records for case in made.cases] == list(RECORDS)
    losses = [case.loss_ratio.high for case in made.cases]
    assert losses[0] >= losses[-1]
    assert "private and no table is read" in " ".join(made.notes)
    assert "by the number of records" in printed(made)
    assert "records are enough for a loss at most 10% above that without privacy" in made.advice
    assert "to see clusters of a quarter of the average size" in made.advice


@pytest.mark.parametrize("records", [0, 2, 2**60])
def test_a_number_of_records_out_of_range_is_refused(records):
    with pytest.raises(ConfigError, match="records must be from"):
        plan(make_job(), records=records)


@pytest.mark.parametrize("epsilon", [0.0, -1.0, float("nan"), 1e9])
def test_an_epsilon_out_of_range_is_refused(epsilon):
    with pytest.raises(ConfigError, match="epsilon must lie between"):
        plan(make_job(), records=1000, epsilons=(epsilon,))


def test_the_same_job_has_the_same_plan():
    first, again = (plan(make_job(), records=800, epsilons=(), quick=True) for _ in range(2))
    assert first == again


def test_wide_columns_have_no_exponents_and_the_last_column_is_named():
    columns = (Column(name="income", low=0, high=2_000_000), Column(name="share", low=0, high=0.01))
    made = plan(
        make_job(columns=columns, budget=Budget(epsilon=0.05, delta=1e-6)), records=1000, epsilons=(), quick=True
    )
    text = printed(made)
    noise = text[text.index("in original units") : text.index("Traffic")]
    assert re.search(r"\d,\d{3}", noise)
    assert "e+" not in text
    assert "e-" not in noise
    assert re.search(r"smallest cluster seen +without privacy", text)
    assert not re.search(r"\d \(\d+\)", text)


@pytest.mark.parametrize(
    ("ratio", "words", "percent"),
    [
        (1.0001, "1.000", "0"),
        (1.0023, "1.002", "0.2"),
        (1.0123, "1.012", "1.2"),
        (1.034, "1.03", "3"),
        (1.12, "1.12", "12"),
        (1.347, "1.3", "30"),
        (2.66, "2.7", "170"),
        (6.31, "6", "500"),
        (14.2, "14", "1,300"),
        (0.9984, "0.998", "0"),
    ],
)
def test_an_excess_has_the_digits_that_the_runs_support(ratio, words, percent):
    assert (format_ratio(ratio), format_percent(ratio)) == (words, percent)


@pytest.mark.parametrize(
    ("value", "words"),
    [(1234.0, "1,200"), (98.7, "99"), (9.96, "10.0"), (3.44, "3.4"), (0.0213, "0.021"), (3e-9, "3e-09"), (0.0, "0")],
)
def test_noise_has_two_digits_and_no_exponent(value, words):
    assert format_noise(value) == words


@pytest.mark.parametrize("name", ["naive", "masked-sum-count", "masked-centroid", "mask-noise-average"])
def test_other_protocols_get_rounds_bytes_and_leakage(name):
    made = plan(lloyd_job(name, iterations=7), records=1000)
    assert (made.cases, made.rounds_max, made.protocol) == ((), 7, name)
    assert bool(made.round_noise) == (name == "mask-noise-average")
    text = printed(made)
    assert "Traffic" in text
    assert "Rounds: 7." in text
    assert ("nothing here is differentially private" in " ".join(text.split())) == (name != "mask-noise-average")
    assert max(map(len, text.splitlines())) <= 100


def test_a_run_that_may_stop_early_has_bytes_at_most():
    made = plan(lloyd_job("naive", tolerance=0.1))
    assert made.traffic.at_most
    assert "Traffic at most" in printed(made)


def test_a_plan_goes_into_json_and_back():
    made = plan(make_job(), records=1000, epsilons=(), quick=True)
    assert msgspec.json.decode(msgspec.json.encode(made), type=Plan) == made


def test_progress_ends_at_its_last_step():
    seen = []
    plan(make_job(), records=1000, epsilons=(0.5,), quick=True, on_progress=seen.append)
    assert [progress.step for progress in seen] == list(range(1, len(seen) + 1))
    assert {progress.steps for progress in seen} == {len(seen)}


def test_shares_add_up_and_none_is_empty():
    for records, weights in ((10, [1, 1, 1]), (100, [1000, 1, 1]), (3, [5, 1, 1])):
        shares = split_by_weight(records, np.array(weights, dtype=float))
        assert sum(shares) == records
        assert min(shares) >= 1


def test_clusters_are_as_separated_as_they_are_said_to_be():
    sample = place_clusters(Stream.from_seed(3, "test"), [4000] * 4, 2, 0.21)
    nearest = ((sample.points[:, None] - sample.centres) ** 2).sum(axis=2).argmin(axis=1)
    # Half the distance is 3 deviations at index 0.21: about 1 in 740 is nearer to any one neighbour.
    assert 0 < (nearest != sample.labels).mean() < 0.01
