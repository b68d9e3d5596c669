"""What a plan says of other placements of the noise: the placements' own ratios, and the job's own marked."""

from __future__ import annotations

import io
from dataclasses import replace

import msgspec
import pytest

from cloister.columns import Column
from cloister.forecast.model import Case, Range
from cloister.forecast.placements import Sightings
from cloister.job import Budget, DataOptions, Job, JobParty, make_options
from cloister.planning import Plan, plan, print_plan
from cloister.privacy.placement import Aggregator, Shared
from cloister.report.layout import make_console

NOISY = "mask-noise-average"


def make_job(name=NOISY, *, parties=3, budget=Budget(epsilon=1.0, delta=1e-6), data=DataOptions(), **options):  # noqa: B008
    return Job(
        name="test",
        k=3,
        columns=tuple(Column(name=f"c{i}", low=0, high=10) for i in range(2)),
        parties=tuple(JobParty(name=f"p{i}") for i in range(parties)),
        budget=budget,
        data=data,
        protocol=make_options(name, **options),
    )


def compare(job, **request):
    """Plan, and return what is said of each placement."""
    return {one.placement: one for one in plan(job, records=1000, **request).placements}


def printed(made):
    file = io.StringIO()
    print_plan(made, make_console(file))
    return " ".join(file.getvalue().split())


@pytest.mark.parametrize("name", [NOISY, "fastlloyd"])
@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
@pytest.mark.parametrize(
    ("parties", "options", "honest"),
    [
        (2, {}, 1),  # q = 2, t = 1
        (3, {}, 2),  # q = 3, t = 1
        (6, {}, 4),  # q = 5, t = 1
        (6, {"placement": "shared", "colluding_max": 2, "min_parties": 6}, 4),
        (6, {"placement": "shared", "colluding_max": 3, "min_parties": 5}, 2),
        (6, {"placement": "shared", "honest_fraction": 0.5, "min_parties": 6}, 3),
    ],
)
def test_all_noise_is_once_n_times_or_n_over_q_minus_t_of_what_privacy_needs(name, noise, parties, options, honest):
    rows = compare(make_job(name, parties=parties, noise=noise, **options))
    needed = {kind: row.variance_ratio for kind, row in rows.items()}
    assert needed == pytest.approx({"aggregator": 1, "shared": parties / honest, "local": parties}, rel=1e-9)
    (own,) = [row for row in rows.values() if row.chosen]
    assert own.placement == options.get("placement", "local" if parties == 2 else "shared")
    for row in rows.values():
        assert row.noise_ratio == pytest.approx((row.variance_ratio / own.variance_ratio) ** 0.5, rel=1e-12)


@pytest.mark.parametrize("chosen", ["aggregator", "shared", "local"])
def test_the_jobs_own_placement_is_marked_and_the_others_are_what_they_would_be(chosen):
    made = plan(make_job(placement=chosen), records=1000)
    rows = {row.placement: row for row in made.placements}
    assert [row.placement for row in made.placements if row.chosen] == [chosen]
    assert rows[chosen].noise_ratio == 1.0
    assert f"(job) {chosen}" in printed(made)
    assert printed(made).count("(job)") == 1
    for kind, row in rows.items():
        other = plan(make_job(placement=kind), records=1000)
        assert row.traffic == other.traffic
        assert row.noise_ratio == pytest.approx(other.round_noise[0].centre_noise / made.round_noise[0].centre_noise)
    assert msgspec.json.decode(msgspec.json.encode(made), type=Plan) == made


def test_the_numbers_are_the_placements_own(monkeypatch):
    monkeypatch.setattr(Shared, "total_variance", lambda self, target: 7.0 * Aggregator().total_variance(target))
    shared = compare(make_job())["shared"]
    assert shared.variance_ratio == pytest.approx(7.0)
    assert shared.quorums[0].variance_ratio == pytest.approx(7.0)


def test_the_default_protocol_compares_too_and_says_who_could_take_the_noise_away():
    rows = compare(make_job("synopsis"), quick=True, epsilons=())
    assert {kind: row.variance_ratio for kind, row in rows.items()} == pytest.approx(
        {"aggregator": 1, "shared": 1.5, "local": 3}, rel=1e-9
    )
    assert {kind: row.removed_by for kind, row in rows.items()} == {
        "aggregator": "the coordinator",
        "shared": "any 2 parties, in part",
        "local": "nobody",
    }
    common = compare(make_job(placement="shared", masks="common"))
    assert common["shared"].removed_by == "the coordinator with any one party, in part"


@pytest.mark.parametrize(
    ("job", "line"),
    [
        (
            make_job(parties=6),
            "With min_parties = 5 of 6 and 1 that may collude, all noise together has 6/4 = 1.5 times the variance "
            "that privacy needs; with min_parties = 6, so that none may drop out, 6/5 = 1.2 times.",
        ),
        (
            make_job(parties=5),
            "With min_parties = 5 of 5 and 1 that may collude, all noise together has 5/4 = 1.25 times the variance "
            "that privacy needs; with min_parties = 4, so that one may drop out, 5/3 = 1.67 times.",
        ),
        (
            make_job(parties=3),  # a quorum of two would be two quorums without an honest party in common
            "With min_parties = 3 of 3 and 1 that may collude, all noise together has 3/2 = 1.5 times the variance "
            "that privacy needs.",
        ),
        (
            make_job(parties=5, placement="aggregator", min_parties=3),  # too few for shares, so their default
            "In shares, with min_parties = 5 of 5 and 1 that may collude, all noise together has 5/4",
        ),
        (
            make_job(parties=5, placement="aggregator", min_parties=4),  # enough: kept
            "In shares, with min_parties = 4 of 5 and 1 that may collude, all noise together has 5/3",
        ),
    ],
)
def test_what_parties_that_drop_out_cost_is_said(job, line):
    assert line in printed(plan(job, records=1000))


def test_only_what_the_protocol_takes_is_offered():
    assert set(compare(make_job("fastlloyd", topology="ring"))) == {"shared", "local"}
    ring = compare(make_job("fastlloyd", topology="ring", noise="laplace"))
    assert set(ring) == {"shared", "local", "joint"}
    assert ring["joint"].variance_ratio == pytest.approx(1.0)
    assert "deals the randomness" in ring["joint"].removed_by


@pytest.mark.parametrize(
    "job",
    [
        make_job("naive", budget=None),
        make_job("masked-sum-count", budget=None),
        make_job("masked-centroid", budget=None),
        make_job("fastlloyd", variant="published", data=DataOptions(records=1000)),  # its guarantee does not hold
    ],
    ids=lambda job: job.protocol.name,
)
def test_jobs_without_noise_or_without_a_guarantee_compare_nothing(job):
    made = plan(job, records=None if job.data.records else 1000)
    assert made.placements == ()
    assert "Who could add the noise" not in printed(made)


# --- the smallest cluster ---------------------------------------------------------------------------------------------


def make_case(epsilon, smallest, *, records=1000):
    return Case(
        epsilon=epsilon,
        records=records,
        parties=3,
        route="direct",
        cells=100,
        rounds=2,
        losses=(),
        centre_noise=Range(low=0.0, high=0.0),
        smallest_cluster=smallest,
        smallest_without_privacy=1,
        looked_for_smallest=True,
    )


@pytest.mark.parametrize(
    ("smallest", "power"),
    [((80, 40, 20), 1.0), ((40, 20, 10), 1.0), ((50, 50, 50), 0.0), ((20, 40, 80), 0.0), ((None, 40, 20), 1.0)],
)
def test_the_smallest_cluster_grows_with_the_noise_as_in_the_trials(smallest, power):
    cases = tuple(make_case(epsilon, seen) for epsilon, seen in zip((0.5, 1.0, 2.0), smallest, strict=True))
    sightings = Sightings(cases=cases, noise_per_unit=lambda case: 1 / case.epsilon)
    assert sightings.fit_growth() == pytest.approx(power, abs=1e-12)


def test_one_noise_shows_no_growth():
    cases = (make_case(1.0, 40), make_case(2.0, None))
    assert Sightings(cases=cases, noise_per_unit=lambda case: 1 / case.epsilon).fit_growth() is None


def test_the_smallest_cluster_is_forecast_for_each_placement():
    made = plan(make_job("synopsis"), records=10_000, epsilons=(0.25, 4.0))
    own = made.find_case(epsilon=1.0, records=10_000)
    rows = {row.placement: row.smallest_clusters for row in made.placements}
    assert rows["shared"] == (own.smallest_cluster,)
    assert rows["aggregator"] < rows["shared"] < rows["local"]
    assert "Smallest cluster seen at epsilon = 1, by who adds the noise" in printed(made)
    for kind in ("aggregator", "local"):  # within what two plans differ by
        tried = plan(make_job("synopsis", placement=kind), records=10_000, epsilons=())
        assert rows[kind][0] == pytest.approx(tried.cases[0].smallest_cluster, rel=0.5)


def test_without_other_noise_only_what_was_tried_is_said():
    made = plan(make_job("synopsis", parties=2), records=3000, epsilons=(), quick=True)
    rows = {row.placement: row.smallest_clusters for row in made.placements}
    assert rows["aggregator"] == (None,)
    assert rows["shared"] == rows["local"] == (made.cases[0].smallest_cluster,)  # two parties: the same noise


def test_no_cluster_is_larger_than_an_even_share():
    job = make_job("synopsis", parties=3)
    made = plan(replace(job, budget=Budget(epsilon=0.12, delta=1e-6)), records=1000, epsilons=(0.5, 1.0), quick=True)
    for row in made.placements:
        assert all(records is None or records <= 1000 / 3 for records in row.smallest_clusters)
