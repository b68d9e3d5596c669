"""What a plan is made from and what it says: public values only, every number of records and epsilon that was asked."""

from __future__ import annotations

import io
import re
from dataclasses import replace

import msgspec
import numpy as np
import pytest

import cloister
import cloister.data.opening as opening
import cloister.simulation.stage as stage
from cloister.crypto import Stream
from cloister.data import Column
from cloister.errors import ConfigError
from cloister.job import Budget, DataOptions, Job, JobParty, Knobs, ProtocolOptions
from cloister.planning import Case, FamilyLoss, Plan, Range, Size, plan, print_plan
from cloister.planning.advice import advise_synopsis, list_notes
from cloister.planning.draft import RECORDS
from cloister.planning.epsilons import EPSILONS
from cloister.planning.families import FAMILIES, place_clusters, share_out
from cloister.planning.forecast import QUICK, Forecaster, set_parties
from cloister.planning.rounding import format_noise, format_percent, format_ratio
from cloister.privacy.placement import Local
from cloister.privacy.units import Unit
from cloister.report.layout import make_console
from cloister.simulation import make_settings

SMALL = Knobs(cells_max=256, rounds_max=4, restarts=3)


def make_job(**options):
    parts = {
        "name": "test",
        "k": 3,
        "columns": (Column(name="age", low=0, high=100), Column(name="a column with a long name", low=-1, high=1)),
        "parties": tuple(JobParty(name=name, data="missing.csv") for name in ("a", "b", "c")),
        "budget": Budget(epsilon=1.0, delta=1e-6),
        "synopsis": SMALL,
    }
    return Job(**{**parts, **options})


def lloyd_job(name, **options):
    budget = Budget(epsilon=1.0, delta=1e-6) if name == "mask-noise-average" else None
    return make_job(protocol=ProtocolOptions(name=name, **options), budget=budget, synopsis=None)


def printed(made):
    file = io.StringIO()
    print_plan(made, make_console(file))
    return file.getvalue()


@pytest.fixture(autouse=True)
def no_tables(monkeypatch):
    """Whoever opens a table fails the test."""

    def refuse(*args, **kwargs):
        raise AssertionError("a plan opened a table")

    monkeypatch.setattr(opening, "open_table", refuse)
    monkeypatch.setattr(stage, "open_table", refuse)
    monkeypatch.setattr("cloister.data.csv_source.CsvSource.__init__", refuse)


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


def test_a_budget_that_is_too_small_is_told_so():
    made = plan(make_job(budget=Budget(epsilon=0.002, delta=1e-6)), records=10_000, epsilons=(4.0,), quick=True)
    poor, rich = made.cases
    assert poor.loss_ratio.high > 1.5 > rich.loss_ratio.high
    assert poor.smallest_cluster is None, "noise that happens to put a centre there has not seen a cluster"
    assert rich.smallest_cluster < 1000
    assert "disappear in the noise" in made.advice
    assert "times that without privacy" in made.advice or "% above" in made.advice
    assert "epsilon = 4" in made.advice


def test_a_generous_budget_is_not_complained_about():
    made = plan(make_job(budget=Budget(epsilon=4.0, delta=1e-6)), records=50_000, epsilons=(), quick=True)
    assert "If that is too much" not in made.advice


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "The coordinator adds the noise, once"),
        ({"placement": "shared", "colluding_max": 1}, "adds a share"),
        ({"placement": "local"}, "the full noise"),
    ],
)
def test_it_says_who_adds_the_noise_and_what_breaks_it(options, words):
    made = plan(make_job(protocol=ProtocolOptions(**options)), records=1000, epsilons=(), quick=True)
    assert words in made.who_adds_noise
    text = printed(made)
    for needed in (
        "Protocol: synopsis",
        "Route: direct",
        "the coordinator learns nothing",
        "Breaks if:",
        "a column with a long name",
        "table was opened",
        "Advice",
    ):
        assert needed in text
    assert max(map(len, text.splitlines())) <= 100


def client_job(parties=150, **options):
    budget = Budget(epsilon=options.pop("epsilon", 1.0), delta=1e-6, unit=Unit.CLIENT)
    return make_job(parties=tuple(JobParty(name=f"p{i}") for i in range(parties)), budget=budget, **options)


def test_at_client_level_cases_differ_by_the_number_of_parties():
    made = plan(client_job(parties=15, choose_k=True), records=300, quick=True)
    sizes = [(case.parties, case.records) for case in made.cases]
    assert sizes == [(15, 300), (150, 3000), (1500, 30_000)]
    assert made.by_parties
    assert made.cases[0].loss_ratio.high > made.cases[-1].loss_ratio.high
    text = " ".join(printed(made).split())
    assert "any one party's whole table" in text
    assert "at most 3 clusters" in text
    assert "by the number of parties" in text
    assert "(job) 15" in text
    assert "1,500 parties" in text
    assert "by the number of records" not in text
    assert "300 records are your guess" in text


def make_case(*, parties, ratio, smallest, epsilon=0.5):
    return Case(
        epsilon=epsilon,
        records=100 * parties,
        parties=parties,
        route="direct",
        cells=100,
        rounds=2,
        losses=(FamilyLoss(family="one", ratio=1.0), FamilyLoss(family="another", ratio=ratio)),
        centre_noise=Range(low=0.1, high=0.1),
        smallest_cluster=smallest,
        smallest_without_privacy=1,
        looked_for_smallest=True,
    )


def test_at_client_level_more_parties_are_the_first_advice_and_more_records_none():
    settings = make_settings(client_job(parties=20, epsilon=0.5))
    poor = make_case(parties=20, ratio=7.0, smallest=None)
    still_poor, good = (
        make_case(parties=200, ratio=3.0, smallest=None),
        make_case(parties=2000, ratio=1.05, smallest=9),
    )
    advice = advise_synopsis(settings, [poor, still_poor, good])
    assert "With the job's 20 parties, at epsilon = 0.5, even clusters of average size disappear" in advice
    assert "If that is too much: more parties (2,000 are enough for a loss at most 10% above" in advice
    assert advice.index("more parties") < advice.index("a larger epsilon, fewer clusters")
    assert "more records" not in advice
    assert "more parties than 200, a larger epsilon" in advise_synopsis(settings, [poor, still_poor])
    dearer = make_case(parties=20, ratio=1.05, smallest=9, epsilon=2.0)
    assert "more parties than 200, epsilon = 2," in advise_synopsis(settings, [poor, dearer, still_poor])
    assert "more" not in advise_synopsis(settings, [replace(good, parties=20), good]).replace("hardly more", "")


def test_what_helps_is_said_for_the_unit_in_question():
    sizes = [Size(records=2000, parties=20), Size(records=20_000, parties=200)]
    of_clients, of_records = (
        " ".join(list_notes(make_settings(job), sizes, guess=None)) for job in (client_job(parties=20), make_job())
    )
    assert "100 a party are assumed" in of_clients
    assert "Ten times the records" not in of_clients
    assert "Ten times the records are as good as about ten times the epsilon" in of_records
    assert "party" not in of_records


def test_a_declared_number_of_records_grows_with_the_parties_who_place_their_noise_as_before():
    settings = make_settings(
        client_job(
            parties=4,
            data=DataOptions(records=400),
            protocol=ProtocolOptions(placement="shared", colluding_max=1),
        )
    )
    grown = set_parties(settings, 40, 4000)
    assert (grown.parties, grown.records, grown.placement.parties, grown.placement.colluding_max) == (40, 4000, 40, 1)
    assert set_parties(settings, 4, 400) is settings
    local = set_parties(replace(settings, placement=Local(parties=4)), 40, 4000)
    assert local.noise_std == pytest.approx(10**0.5 * replace(settings, placement=Local(parties=4)).noise_std)


def test_made_up_clients_hold_no_more_than_real_ones():
    settings = make_settings(client_job(parties=1000))
    assert QUICK.choose_records(10_000, settings) == 1000  # 100 clients of 10 records
    assert QUICK.choose_records(10**6, settings) == 4000
    assert QUICK.choose_records(1000, replace(settings, clusters=30)) == 600  # but 20 for each cluster


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


def test_one_cluster_and_one_column_can_be_planned():
    made = plan(make_job(k=1, columns=(Column(name="x", low=0, high=1),)), records=300, epsilons=(), quick=True)
    (case,) = made.cases
    assert not case.looked_for_smallest
    assert "one cluster" in made.advice
    assert "-" in printed(made)


def test_progress_ends_at_its_last_step():
    seen = []
    plan(make_job(), records=1000, epsilons=(0.5,), quick=True, on_progress=seen.append)
    assert [progress.step for progress in seen] == list(range(1, len(seen) + 1))
    assert {progress.steps for progress in seen} == {len(seen)}


def test_many_columns_are_tried_with_fewer_records_but_not_too_few():
    settings = make_settings(make_job())
    assert QUICK.choose_records(10**6, replace(settings, dimensions=10)) == 4000
    assert QUICK.choose_records(10**6, replace(settings, dimensions=1000)) == 1000
    assert QUICK.choose_records(10**6, replace(settings, dimensions=1000, clusters=500)) == 10_000
    assert QUICK.choose_records(150, settings) == 150


def test_shares_add_up_and_none_is_empty():
    for records, weights in ((10, [1, 1, 1]), (100, [1000, 1, 1]), (3, [5, 1, 1])):
        shares = share_out(records, np.array(weights, dtype=float))
        assert sum(shares) == records
        assert min(shares) >= 1


def test_clusters_are_as_separated_as_they_are_said_to_be():
    sample = place_clusters(Stream.from_seed(3, "test"), [4000] * 4, 2, 0.21)
    nearest = ((sample.points[:, None] - sample.centres) ** 2).sum(axis=2).argmin(axis=1)
    # Half the distance is 3 deviations at index 0.21: about 1 in 740 is nearer to any one neighbour.
    assert 0 < (nearest != sample.labels).mean() < 0.01


def test_a_smaller_signal_never_helps_the_forecast():
    forecaster = Forecaster(
        make_settings(make_job()), effort=QUICK, stream=Stream.from_seed(2, "test"), on_trial=lambda label: None
    )
    poor, rich = (
        forecaster.forecast(epsilon=epsilon, records=1500, look_for_smallest=False) for epsilon in (0.05, 5.0)
    )
    assert poor.loss_ratio.high > rich.loss_ratio.high
    assert poor.centre_noise.low > rich.centre_noise.high
    assert poor.smallest_cluster is None
    assert not poor.looked_for_smallest
