"""Plans of the synopsis: what is said of a case, how much is tried, and what runs then do, within a factor of two."""

from __future__ import annotations

import io
from dataclasses import replace
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from cloister.columns import Column, Coordinate
from cloister.crypto import Stream
from cloister.data import open_table, sample_folder
from cloister.forecast.families import FAMILIES, plant_cluster
from cloister.forecast.model import Case, FamilyLoss, PlanRequest, Range, Size
from cloister.forecast.trials import QUICK
from cloister.job import Budget, DataOptions, Job, JobParty
from cloister.jobfile import load_setup
from cloister.kmeans import cluster_sums, weighted_kmeans
from cloister.numeric import FixedPoint
from cloister.planning import plan, print_plan
from cloister.privacy.placement import Local, Shared
from cloister.privacy.simulation_sampler import SimulationSampler
from cloister.privacy.units import Unit
from cloister.protocols.synopsis.plan import (
    Forecaster,
    Scaling,
    advise,
    choose_records,
    even_out,
    list_notes,
    set_parties,
)
from cloister.protocols.synopsis.protocol import SynopsisOptions, make_settings
from cloister.protocols.synopsis.settings import Knobs, Settings
from cloister.records import ArrayRecords
from cloister.report.layout import make_console
from cloister.sessions import simulate
from tests.protocols.synopsis.sessions import rehearse

SMALL = Knobs(cells_max=256, rounds_max=4, restarts=3)


def make_job(*, protocol=None, **options):
    parts = {
        "name": "test",
        "k": 3,
        "columns": (Column(name="age", low=0, high=100), Column(name="a column with a long name", low=-1, high=1)),
        "parties": tuple(JobParty(name=name) for name in ("a", "b", "c")),
        "budget": Budget(epsilon=1.0, delta=1e-6),
        "protocol": SynopsisOptions(**{"knobs": SMALL, **(protocol or {})}),
        "data": DataOptions(scale="bounds"),
    }
    return Job(**{**parts, **options})


def printed(made):
    file = io.StringIO()
    print_plan(made, make_console(file))
    return file.getvalue()


def client_job(parties=150, **options):
    budget = Budget(epsilon=options.pop("epsilon", 1.0), delta=1e-6, unit=Unit.CLIENT)
    return make_job(parties=tuple(JobParty(name=f"p{i}") for i in range(parties)), budget=budget, **options)


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
        ({}, "adds a share; any 2 of them"),
        ({"placement": "aggregator"}, "The coordinator adds the noise, once"),
        ({"placement": "local"}, "the full noise"),
    ],
)
def test_it_says_who_adds_the_noise_and_what_breaks_it(options, words):
    made = plan(make_job(protocol=options), records=1000, epsilons=(), quick=True)
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


def test_at_client_level_more_parties_are_the_first_advice_and_more_records_none():
    settings = make_settings(client_job(parties=20, epsilon=0.5))
    poor = make_case(parties=20, ratio=7.0, smallest=None)
    still_poor, good = (
        make_case(parties=200, ratio=3.0, smallest=None),
        make_case(parties=2000, ratio=1.05, smallest=9),
    )
    advice = advise(settings, [poor, still_poor, good])
    assert "With the job's 20 parties, at epsilon = 0.5, even clusters of average size disappear" in advice
    assert "If that is too much, try more parties (2,000 are enough for a loss at most 10% above" in advice
    assert advice.index("more parties") < advice.index("a larger epsilon, fewer clusters")
    assert "more records" not in advice
    assert "more parties than 200, a larger epsilon" in advise(settings, [poor, still_poor])
    dearer = make_case(parties=20, ratio=1.05, smallest=9, epsilon=2.0)
    assert "more parties than 200, epsilon = 2," in advise(settings, [poor, dearer, still_poor])
    assert "more" not in advise(settings, [replace(good, parties=20), good]).replace("hardly more", "")


def test_what_helps_is_said_for_the_unit_in_question():
    sizes = (Size(records=2000, parties=20), Size(records=20_000, parties=200))
    of_clients, of_records = (
        " ".join(list_notes(make_settings(job), PlanRequest(sizes=sizes)))
        for job in (client_job(parties=20), make_job())
    )
    assert "100 per party are assumed" in of_clients
    assert "Ten times the records" not in of_clients
    assert "Ten times the records are about as good as ten times the epsilon" in of_records
    assert "party" not in of_records


def test_a_declared_number_of_records_grows_with_the_parties_who_place_their_noise_as_before():
    settings = make_settings(
        client_job(
            parties=4,
            data=DataOptions(records=400, scale="bounds"),
            protocol={"placement": "shared", "colluding_max": 1},
        )
    )
    grown = set_parties(settings, 40, 4000)
    assert (grown.parties, grown.records, grown.placement.parties, grown.placement.colluding_max) == (40, 4000, 40, 1)
    assert set_parties(settings, 4, 400) == settings
    local = set_parties(replace(settings, placement=Local(parties=4)), 40, 4000)
    assert local.noise_std == pytest.approx(10**0.5 * replace(settings, placement=Local(parties=4)).noise_std)


def test_made_up_clients_hold_no_more_than_real_ones():
    settings = make_settings(client_job(parties=1000))
    assert choose_records(QUICK, 10_000, settings) == 1000  # 100 clients of 10 records
    assert choose_records(QUICK, 10**6, settings) == 4000
    assert choose_records(QUICK, 1000, replace(settings, clusters=30)) == 600  # but 20 for each cluster


def test_many_columns_are_tried_with_fewer_records_but_not_too_few():
    settings = make_settings(make_job())
    assert choose_records(QUICK, 10**6, replace(settings, dimensions=10)) == 4000
    assert choose_records(QUICK, 10**6, replace(settings, dimensions=1000)) == 1000
    assert choose_records(QUICK, 10**6, replace(settings, dimensions=1000, clusters=500)) == 10_000
    assert choose_records(QUICK, 150, settings) == 150


def test_one_cluster_and_one_column_can_be_planned():
    made = plan(make_job(k=1, columns=(Column(name="x", low=0, high=1),)), records=300, epsilons=(), quick=True)
    (case,) = made.cases
    assert not case.looked_for_smallest
    assert "one cluster" in made.advice
    assert "-" in printed(made)


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


# --- predictions ------------------------------------------------------------------------------------------------------

RECORDS = 6000
EVEN = [family for family in FAMILIES if family.even]


def make_bare(*, k=4, d=3, epsilon=0.5, parties=3, scale="bounds", **options):
    return Job(
        data=DataOptions(scale=scale),
        name="test",
        k=k,
        columns=tuple(Column(name=f"c{i}", low=0, high=10) for i in range(d)),
        parties=tuple(JobParty(name=f"p{i}") for i in range(parties)),
        budget=None if epsilon is None else Budget(epsilon=epsilon, delta=1e-6),
        **options,
    )


@cache
def plan_of(k, d, epsilon, placement=None):
    job = make_bare(k=k, d=d, epsilon=epsilon, protocol=SynopsisOptions(placement=placement))
    (case,) = plan(job, records=RECORDS, epsilons=()).cases
    return case


def run_on(points, settings, seed, *, parts=1):
    records = [ArrayRecords(FixedPoint().quantise(part)) for part in np.array_split(points, parts)]
    sampler = SimulationSampler(Stream.from_seed(seed, "test noise"))
    finding = rehearse(settings, records, sampler=sampler, stream=Stream.from_seed(seed, "test starts")).finding
    return finding.centres if finding.scale is None else finding.scale.to_original(finding.centres)


def spread_of(points, settings, runs=16, parts=1):
    """The standard deviation of a coordinate of a typical centre over runs with other noise: written anew."""
    found = [run_on(points, settings, seed, parts=parts) for seed in range(runs)]
    reference = weighted_kmeans(points, settings.clusters, Stream.from_seed(1, "test reference"), restarts=5).centres
    matched = np.stack([c[linear_sum_assignment(cdist(reference, c))[1]] for c in found])
    return float(np.median(matched.std(axis=0, ddof=1)))


def middle(span):
    return (span.low * span.high) ** 0.5


def excess_of(family, settings, *, records=RECORDS, draws=6, parts=1):
    """The mean excess loss over fresh draws of a family."""
    k, d = settings.clusters, settings.dimensions
    ratios = []
    for seed in range(draws):
        sample = family.draw(Stream.from_seed(seed, "test draw"), records, k, d)
        reference = weighted_kmeans(sample.points, k, Stream.from_seed(seed, "test reference"), restarts=10).centres
        found = run_on(sample.points, settings, seed, parts=parts)
        ratios.append(cluster_sums(sample.points, found).loss / cluster_sums(sample.points, reference).loss)
    return float(np.mean(ratios)) - 1


@pytest.mark.parametrize(("k", "d", "epsilon"), [(4, 3, 0.5), (6, 2, 0.25), (4, 10, 1.0)])
def test_centres_move_as_far_as_the_plan_says(k, d, epsilon):
    case = plan_of(k, d, epsilon)
    settings = make_settings(make_bare(k=k, d=d, epsilon=epsilon))
    draws = [family.draw(Stream.from_seed(99, "test draw"), RECORDS, k, d).points for family in EVEN]
    observed = [spread_of(points, settings) for points in draws]
    assert case.centre_noise.low / 2 <= min(observed) <= max(observed) <= case.centre_noise.high * 2
    assert 0.5 < middle(case.centre_noise) / np.exp(np.mean(np.log(observed))) < 2


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_the_excess_loss_of_fresh_records_is_as_the_plan_says(family):
    (case,) = plan(make_bare(epsilon=0.15), records=RECORDS, epsilons=()).cases
    (predicted,) = (loss.ratio - 1 for loss in case.losses if loss.family == family.name)
    # Where a small cluster is missed now and then, the losses of six draws scatter by more than a factor of two.
    observed = excess_of(family, make_settings(make_bare(epsilon=0.15)), draws=48 if family.unsteady else 6)
    small = 0.02  # below, nobody cares, and k-means' own starts decide
    assert max(predicted, small) <= 2 * max(observed, small)
    assert max(observed, small) <= 2 * max(predicted, small)


@pytest.mark.parametrize("family", EVEN, ids=lambda family: family.name)
def test_so_is_it_where_a_spread_scales_the_columns(family):
    job = make_bare(scale="spread")
    (case,) = plan(job, records=RECORDS, epsilons=()).cases
    (predicted,) = (loss.ratio - 1 for loss in case.losses if loss.family == family.name)
    settings = replace(make_settings(job), axes=tuple(Coordinate(name=f"x{i}", low=-1, high=1) for i in range(3)))
    evened = SimpleNamespace(draw=lambda *sizes: even_out(family.draw(*sizes)))
    observed = excess_of(evened, settings)
    assert max(predicted, 0.02) <= 2 * max(observed, 0.02)
    assert max(observed, 0.02) <= 2 * max(predicted, 0.02)


def test_real_runs_on_the_clinics_sample_are_as_the_plan_says():
    setup = load_setup(sample_folder("clinics") / "job.toml")
    job = setup.job
    tight = replace(job, budget=replace(job.budget, epsilon=0.2), data=DataOptions(scale="bounds"))
    (case,) = plan(tight, records=11_000, epsilons=()).cases
    points = np.concatenate(
        [np.concatenate(list(open_table(setup.own_side(p.name).data, job.columns).batches())) for p in job.parties]
    )
    observed = spread_of(points, make_settings(tight))
    assert 0.5 < middle(case.centre_noise) / observed < 2
    ratio = simulate(replace(setup, job=tight), seed=3, evaluate=True).evaluation.ratio
    assert 1 - 1e-3 <= ratio <= 1 + 2 * max(case.loss_ratio.high - 1, 0.02)


@pytest.mark.parametrize(
    ("k", "d", "epsilon", "placement"), [(4, 3, 0.5, None), (6, 2, 0.25, "aggregator"), (6, 2, 0.25, "local")]
)
def test_a_cluster_of_twice_the_smallest_size_is_found_and_one_of_half_mostly_not(k, d, epsilon, placement):
    case = plan_of(k, d, epsilon, placement)
    settings = make_settings(make_bare(k=k, d=d, epsilon=epsilon, protocol=SynopsisOptions(placement=placement)))

    def rate(size, runs=24):
        found = 0
        for seed in range(runs):
            planting = plant_cluster(Stream.from_seed(seed, "test plant"), RECORDS, k, d)
            there, without = (run_on(planting.with_size(planted), settings, seed) for planted in (size, 0))
            found += planting.is_found_by(there) and not planting.is_found_by(without)
        return found / runs

    assert rate(2 * case.smallest_cluster) >= 0.6
    assert rate(case.smallest_cluster // 2) <= 0.35


def test_fewer_records_under_less_noise_are_as_good_as_all():
    """4,000 for 40,000: what makes plans for millions of records quick."""
    settings = Settings(clusters=5, dimensions=3, budget=Budget(epsilon=0.05, delta=1e-6), parties=3)
    scaled = Scaling(settings=settings, records=40_000, tried=4_000).small
    assert scaled.noise_std == pytest.approx(settings.noise_std / 10, rel=1e-6)
    family = FAMILIES[1]
    whole = excess_of(family, settings, records=40_000, draws=8)
    small = excess_of(family, scaled, records=4_000, draws=8)
    assert whole / 2 < small < whole * 2
    points = family.draw(Stream.from_seed(5, "test draw"), 40_000, 5, 3).points
    wide = spread_of(points, settings)
    assert wide / 2 < spread_of(points[:4_000], scaled) < wide * 2


def test_fewer_clients_under_less_noise_are_as_good_as_all():
    budget = Budget(epsilon=2.0, delta=1e-6, unit=Unit.CLIENT)
    settings = Settings(clusters=3, dimensions=2, budget=budget, parties=400)
    scaled = Scaling(settings=settings, records=20_000, tried=5_000).small
    assert scaled.parties == 100
    assert scaled.client_level
    points = EVEN[1].draw(Stream.from_seed(5, "test draw"), 20_000, 3, 2).points
    wide = spread_of(points, settings, runs=10, parts=400)
    narrow = spread_of(points[:5_000], scaled, runs=10, parts=100)
    assert wide / 2 < narrow < wide * 2


@pytest.mark.parametrize("placement", [Shared(parties=4, colluding_max=1), Local(parties=4)])
def test_the_noise_of_all_holders_is_tried(placement):
    budget = Budget(epsilon=1.0, delta=1e-6)
    settings = Settings(clusters=3, dimensions=2, budget=budget, parties=4, placement=placement, records=8000)
    scaled = Scaling(settings=settings, records=8000, tried=2000).small
    assert scaled.noise_std == pytest.approx(settings.noise_std / 4, rel=1e-6)
    assert scaled.noise_std > replace(scaled, budget=budget).noise_std / 4
    assert scaled.records == 2000


def test_more_colluding_parties_than_the_hollow_session_has_are_no_obstacle():
    """Traffic of many parties is measured on a few of them, and is that of a run."""
    names, rng = [f"p{i}" for i in range(70)], np.random.default_rng(0)
    job = make_job(
        parties=tuple(JobParty(name=name) for name in names),
        protocol={"colluding_max": 30, "knobs": Knobs(cells_max=16, rounds_max=2, restarts=1)},
    )
    told = plan(job, records=1400, quick=True, epsilons=[]).traffic
    tables = {name: rng.uniform([0, -1], [100, 1], (20, 2)) for name in names}
    ran = simulate(job, seed=1, sources=tables, evaluate=False)
    assert told.total_bytes == pytest.approx(ran.bytes_total, rel=0.001)
    for party, predicted in zip(ran.parties, [told.leader, *[told.other] * 69], strict=True):
        assert predicted.bytes_up == pytest.approx(party.bytes_sent, rel=0.001)
        assert predicted.bytes_down == pytest.approx(party.bytes_received, rel=0.001)
        assert (predicted.messages_up, predicted.messages_down) == (party.messages_sent, party.messages_received)


def test_with_common_masks_who_adds_the_noise_changes_no_length():
    parties = tuple(JobParty(name=f"p{i}") for i in range(70))
    options = ({"masks": "common", "colluding_max": 30}, {"placement": "local"}, {"placement": "aggregator"})
    jobs = [make_job(parties=parties, protocol=one) for one in options]
    shared, *others = (plan(job, records=1000, quick=True, epsilons=[]).traffic for job in jobs)
    assert others == [shared, shared]
