"""A job of the default protocol end to end: nearly the joint result, the books of every party, what the result says."""

import io
import json
import logging
from dataclasses import replace

import numpy as np
import pytest

from cloister.columns import Column
from cloister.crypto import Stream
from cloister.data import sample_folder
from cloister.errors import BudgetError, ConfigError
from cloister.job import Budget, DataOptions, Job, JobParty, OwnSide, Setup, make_options
from cloister.jobfile import load_setup
from cloister.privacy.costs import epsilon_of_rho, rho_of
from cloister.privacy.ledger import Ledger
from cloister.privacy.units import Sensitivity, Unit
from cloister.protocols.guided_sums import protocol as guided_sums
from cloister.protocols.guided_sums.agreement import envelope_of
from cloister.protocols.guided_sums.settings import BUDGET_UNITS
from cloister.protocols.synopsis.pipeline import run_synopsis
from cloister.protocols.synopsis.protocol import SynopsisOptions, make_settings
from cloister.protocols.synopsis.settings import Knobs, Settings
from cloister.records import ArrayRecords
from cloister.report import read_result, write_result
from cloister.report.layout import make_console
from cloister.report.text import print_report
from cloister.sessions import simulate
from tests.owners import told_to_owner
from tests.sessions import blobs

COLUMNS = (Column(name="length", low=0, high=50), Column(name="width", low=-10, high=10))
UNIT = blobs(3000, 2, 3, seed=8)
ORIGINAL = np.column_stack([25 + 25 * UNIT[:, 0], 10 * UNIT[:, 1]])
PARTS = {"a": ORIGINAL[:1500], "b": ORIGINAL[1500:2400], "c": ORIGINAL[2400:]}
SMALL = Knobs(cells_max=256, rounds_max=4, restarts=3)  # exact noise takes its time
BUDGET = Budget(epsilon=2.0, delta=1e-6)


def make_job(*, protocol=None, **options):
    parts = {
        "name": "test",
        "k": 3,
        "columns": COLUMNS,
        "parties": tuple(JobParty(name=name) for name in PARTS),
        "budget": BUDGET,
        "protocol": SynopsisOptions(**{"knobs": SMALL, **(protocol or {})}),
    }
    return Job(**{**parts, **options})


def with_ledgers(job, folder, **options):
    own = {party.name: OwnSide(ledger=folder / f"{party.name}.ledger") for party in job.parties}
    return Setup(job=job, own=own, **options)


def test_the_demo_job_is_private_and_finds_nearly_what_one_joint_table_gives():
    result = simulate(load_setup(sample_folder("clinics") / "job.toml"), evaluate=True)
    assert result.protocol == "synopsis"
    assert result.centres.shape == (4, 4)
    assert 1.0 <= result.evaluation.ratio < 1.02
    assert result.card.private
    assert 0.99 < result.card.epsilon <= 1.0
    assert result.card.delta == 1e-6
    assert (result.centres >= [18, 80, 14, 4]).all()
    assert (result.centres <= [95, 220, 60, 14]).all()
    assert result.sizes.total == pytest.approx(11_000, abs=500)
    assert sum(result.sizes.clusters) == pytest.approx(result.sizes.total)
    assert len(result.sizes.clusters) == len(result.centre_noise) == 4


def test_the_card_is_what_the_rounds_cost_and_travels_with_the_result(tmp_path):
    result = simulate(make_job(), sources=PARTS)
    card = result.card
    assert card.releases[0].name == "number of records"
    envelope = rho_of(envelope_of(make_settings(make_job())))
    assert 0.9 * envelope < sum(release.rho for release in card.releases) <= envelope * (1 + 1e-12)
    # Released values decide which rounds run: what is promised is the cost of all that could have.
    assert card.epsilon == pytest.approx(epsilon_of_rho(envelope, BUDGET.delta), rel=1e-12)
    assert card.epsilon <= BUDGET.epsilon
    assert card.epsilon > epsilon_of_rho(sum(release.rho for release in card.releases), BUDGET.delta)
    assert "paid for at once" in card.how_composed
    read = read_result(write_result(result, tmp_path / "r"))
    assert (read.card, read.sizes) == (card, result.sizes)
    assert np.array_equal(read.centre_noise, result.centre_noise)
    assert read.evaluation is None


def test_a_seed_repeats_the_run_and_says_so():
    first, again = (simulate(make_job(), seed=5, sources=PARTS, evaluate=False) for _ in range(2))
    assert first.transcript_sha256 == again.transcript_sha256
    assert np.array_equal(first.centres, again.centres)
    assert not first.card.private
    fresh = simulate(make_job(), sources=PARTS, evaluate=False)
    assert not np.array_equal(fresh.centres, first.centres)
    assert "anyone who knows the seed" in " ".join(first.notes)
    assert "seed" not in " ".join(fresh.notes)


@pytest.mark.parametrize(
    ("options", "placed", "breaks"),
    [
        ({}, "adds a share", "Two or more colluding parties, with the coordinator or without"),
        ({"placement": "aggregator"}, "once", "The coordinator, once"),
        ({"masks": "common"}, "adds a share", "any one party together"),
        ({"placement": "local"}, "the full noise", "No coalition"),
    ],
)
def test_whoever_adds_the_noise_the_budget_is_kept(options, placed, breaks, tmp_path):
    setup = with_ledgers(make_job(protocol=options), tmp_path)
    result = simulate(setup, sources=PARTS, evaluate=False)
    assert placed in result.card.who_adds_noise
    assert breaks in result.breaks_if
    assert 0.9 * BUDGET.epsilon < result.card.epsilon <= BUDGET.epsilon
    (entry,) = Ledger(tmp_path / "a.ledger", create=False).summarise(delta=1e-6)
    assert entry.charges == 1
    assert entry.epsilon == pytest.approx(result.card.epsilon, rel=1e-12), "what was promised is what was paid"


def test_a_public_number_of_records_is_not_asked_for_and_is_named():
    job = make_job(data=DataOptions(records=3000))
    result = simulate(job, seed=1, sources=PARTS, evaluate=False)
    assert (result.sizes.total, result.sizes.total_noise) == (3000, 0)
    assert "number of records" not in [release.name for release in result.card.releases]
    assert any("3,000, was declared public" in note for note in result.notes)
    assert any("declares the number of records, 3,000." in warning for warning in result.card.warnings)
    wrong = replace(job, data=DataOptions(records=100_000))  # a private run does not check it: that would tell
    assert simulate(wrong, seed=1, sources=PARTS, evaluate=False).sizes.total == 100_000


def test_all_knobs_and_options_reach_the_protocol():
    job = make_job(
        protocol={"placement": "shared", "colluding_max": 2, "fractional_bits": 12},
        data=DataOptions(records=3000),
        budget=replace(BUDGET, unit=Unit.CLIENT),
        choose_k=True,
    )
    settings = make_settings(job)
    assert (settings.knobs, settings.records, settings.choose_k, settings.clusters) == (SMALL, 3000, True, 3)
    assert (settings.client_level, settings.fixed_point.fractional_bits) == (True, 12)
    assert (settings.placement.parties, settings.placement.colluding_max) == (3, 2)
    with pytest.raises(ConfigError, match="must be synopsis"):
        make_settings(replace(make_job(data=DataOptions()), protocol=make_options("naive"), budget=None))


def test_each_party_pays_its_ledger_once_for_the_whole_job_and_jobs_add_up(tmp_path):
    setup = with_ledgers(make_job(), tmp_path)
    spent = []
    for count in (1, 2):
        simulate(setup, sources=PARTS, evaluate=False)
        for party in PARTS:
            (entry,) = Ledger(tmp_path / f"{party}.ledger", create=False).summarise(delta=1e-6)
            assert entry.charges == count
        spent.append(entry.epsilon)
    assert spent[0] == pytest.approx(2.0, rel=1e-3)
    assert spent[1] > 2.5


def test_a_job_that_would_pass_a_cap_is_refused_before_the_first_round(tmp_path):
    setup = with_ledgers(make_job(), tmp_path)
    simulate(setup, sources=PARTS, evaluate=False)
    ledger = Ledger(tmp_path / "b.ledger", create=False)
    (entry,) = ledger.summarise(delta=1e-6)
    ledger.set_cap(entry.dataset, Budget(epsilon=2.5, delta=1e-6), reason="test")
    steps = []
    with told_to_owner(BudgetError, r"^party 'b' \(.*b\.ledger\): .* epsilon = 2\.5 .*; spent 2, asked 2 "):
        simulate(setup, sources=PARTS, on_progress=steps.append)
    assert steps == []
    for party in PARTS:
        (after,) = Ledger(tmp_path / f"{party}.ledger", create=False).summarise(delta=1e-6)
        assert after.charges == 1


def test_a_protocol_that_asks_for_more_than_was_paid_is_stopped(monkeypatch):
    """The prepayment holds even where the accountant would not object: with a tenth of it, no round fits twice."""
    monkeypatch.setattr(
        guided_sums,
        "envelope_of",
        lambda settings: replace(
            envelope_of(settings), sensitivity=Sensitivity(l1=BUDGET_UNITS // 10, l2_squared=BUDGET_UNITS // 10)
        ),
    )
    with told_to_owner(BudgetError, "fit the payment"):
        simulate(make_job(), seed=1, sources=PARTS)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("unit", [Unit.RECORD, Unit.CLIENT])
def test_one_unit_changes_no_answer_by_more_than_is_charged_for(unit, seed):
    """The card's promise at its root: a unit's part of each answer, measured, is within the declared sensitivity."""
    settings = Settings(clusters=3, dimensions=2, budget=replace(BUDGET, unit=unit), parties=3, knobs=SMALL)
    rng = np.random.default_rng(seed)
    size = 1 if unit is Unit.RECORD else 400
    member = ArrayRecords(settings.fixed_point.quantise(np.clip(rng.normal(0.5, 0.4, (size, 2)), -1, 1)))
    asking = run_synopsis(settings, Stream.from_seed(seed, "test"))
    query, spent = next(asking), 0
    for slot in settings.slots:
        part = [int(x) for x in query.measure(member)]
        assert sum(x * x for x in part) <= query.l2_squared, slot.name
        spent += query.l2_squared
        total = np.zeros(query.length, dtype=np.int64)
        for values in PARTS.values():
            unit_scaled = np.column_stack([values[:, 0] / 25 - 1, values[:, 1] / 10])
            total += query.measure(ArrayRecords(settings.fixed_point.quantise(np.clip(unit_scaled, -1, 1))))
        try:
            query = asking.send(total)
        except StopIteration:
            break
    assert spent <= BUDGET_UNITS


def test_client_level_says_whose_presence_is_hidden(tmp_path):
    def run(budget):
        setup = with_ledgers(make_job(budget=replace(budget, unit=Unit.CLIENT)), tmp_path / str(budget.epsilon), seed=1)
        return simulate(setup, sources=PARTS, evaluate=False)

    result = run(BUDGET)
    assert (result.card.unit, result.card.neighbours) == ("client", "all records of one client added or removed")
    assert "one party's whole table" in render(result)
    warnings = " ".join(run(Budget(epsilon=3.0, delta=0.5)).card.warnings)
    assert "1 / 3, the number of parties" in warnings
    (warning,) = (w for w in run(Budget(epsilon=0.01, delta=1e-6)).card.warnings if "mostly noise" in w)
    assert "half of their coordinates" in warning
    assert "bring in more parties" in warning
    assert "fewer rounds" not in warning


def test_k_is_chosen_and_the_result_says_how(tmp_path):
    result = simulate(make_job(k=6, choose_k=True), seed=1, sources=PARTS)
    assert result.k == len(result.sizes.clusters)
    assert 2 <= result.k <= 6
    assert {choice.k for choice in result.curve} <= set(range(1, 7))
    assert result.k == max(result.curve, key=lambda choice: choice.score).k
    assert any(f"synopsis chose k = {result.k}" in note for note in result.notes)
    assert read_result(write_result(result, tmp_path / "r")).curve == result.curve
    assert "Choice of k" in render(result)


def test_many_parties_run_and_the_report_stays_short():
    names = [f"client {i}" for i in range(60)]
    sources = {name: ORIGINAL[50 * i : 50 * i + 50] for i, name in enumerate(names)}
    result = simulate(
        make_job(parties=tuple(JobParty(name=name) for name in names)), seed=1, sources=sources, evaluate=True
    )
    assert result.evaluation.ratio < 1.5
    text = render(result)
    assert "client 19 and 40 more" in text
    assert "client 20" not in text
    assert len(text.splitlines()) < 150


def test_what_is_said_of_rounds_and_of_who_learned_what():
    result = simulate(Setup(job=make_job(), seed=1, network="thesis-WAN"), sources=PARTS, evaluate=False)
    idle = len(make_settings(make_job()).slots) - len(result.card.releases)
    assert any(f"{idle} of " in note for note in result.notes) is (idle > 0)
    assert not any("histogram" in note for note in result.notes), "laid along the columns, as anyone would expect"
    assert {row.role for row in result.leakage} == {"the coordinator", "each party", "everyone"}
    assert next(row.how for row in result.leakage if row.role == "the coordinator") == "nothing of"
    assert result.network.simulated_s > 0
    assert result.ring_bits == 64


def test_record_values_appear_nowhere(tmp_path, caplog):
    """A magic value in the records never reaches a log, a progress line or the result."""
    caplog.set_level(logging.DEBUG)
    parts = {name: part.copy() for name, part in PARTS.items()}
    parts["b"][5, 0] = 47.11471147
    lines = []
    result = simulate(make_job(), seed=1, sources=parts, on_progress=lambda p: lines.append(repr(p)))
    folder = write_result(result, tmp_path / "result")
    seen = [*lines, caplog.text, repr(result), *(p.read_text("latin-1") for p in folder.iterdir())]
    assert "47114711" not in " ".join(seen)
    assert "loss" not in json.loads((folder / "result.json").read_text())


def render(result):
    out = io.StringIO()
    print_report(result, make_console(out))
    return " ".join(out.getvalue().split("\n"))
