"""Plans of vertical jobs: who does what, bytes that a run counts, memory, noise and losses; from public values."""

from __future__ import annotations

import io
import tracemalloc
from dataclasses import replace

import msgspec
import numpy as np
import pytest
from typer.testing import CliRunner

from cloister.cli import app
from cloister.cli.failures import EXIT_UNEXPECTED
from cloister.columns import Column
from cloister.crypto import Stream
from cloister.data.samples.customers import write_customers
from cloister.errors import ConfigError
from cloister.forecast.families import FAMILIES
from cloister.forecast.trials import QUICK, choose_epsilons
from cloister.job import Budget, DataOptions, Job, JobParty, make_options
from cloister.planning import plan, print_plan
from cloister.privacy.accounting import Accountant
from cloister.privacy.release import NoiseDuty
from cloister.privacy.units import write_bound
from cloister.protocols.vertical.forecaster import Forecaster
from cloister.protocols.vertical.leakage import find_replacement_epsilon
from cloister.protocols.vertical.plan import count_memory
from cloister.protocols.vertical.protocol import Vertical, VerticalSession, make_agreement, make_settings
from cloister.protocols.vertical.settings import Settings
from cloister.protocols.vertical.traffic import measure_links
from cloister.report.layout import make_console
from tests.sessions import RecordingSampler, Session, make_directory

RECORDS = 600
TWO = (("a", "b"), ("c",))


def make_job(held=TWO, *, epsilon=1.0, k=3, data=None, **options):
    names = sorted(name for columns in held for name in columns)
    return Job(
        name="test",
        k=k,
        columns=tuple(Column(name=name, low=0, high=100) for name in names),
        parties=tuple(JobParty(name=f"p{i}", columns=columns) for i, columns in enumerate(held)),
        budget=None if epsilon is None else Budget(epsilon=epsilon, delta=1e-6),
        protocol=make_options("vertical", **options),
        data=data or DataOptions(aligned=True),
    )


def printed(made):
    file = io.StringIO()
    print_plan(made, make_console(file))
    return " ".join(file.getvalue().split())


@pytest.fixture(autouse=True)
def no_tables(monkeypatch):
    """Whoever opens a table fails the test."""

    def refuse(*args, **kwargs):
        raise AssertionError("a plan opened a table")

    monkeypatch.setattr("cloister.protocol.open_table", refuse)
    monkeypatch.setattr("cloister.data.csv_source.CsvSource.__init__", refuse)


def run_session(job, records=RECORDS):
    """A real session on made-up columns; returns the agreement, the parties and the run."""
    agreement = make_agreement(job, make_directory(1, len(job.parties)), records=records, alignment=None)
    rng = np.random.default_rng(3)
    columns = [np.rint(rng.uniform(-1, 1, (records, len(party.columns))) * 2**16) / 2**16 for party in job.parties]
    session = Session(Vertical(), VerticalSession(agreement=agreement, encrypted_columns=()), columns, seed=1)
    if job.budget is not None:
        session.duties = {
            number: NoiseDuty(charger=Accountant(job.budget), sampler=RecordingSampler(f"party {number}"))
            for number in session.numbers
        }
    run, parties = session.run()
    return agreement, parties, run


# --- bytes ----------------------------------------------------------------------------------------------------------


CASES = {
    "two parties": {},
    "two columns at each": {"held": (("a", "b"), ("c", "d"))},
    "random start": {"initialisation": "random", "iterations": 3},
    "exact": {"epsilon": None},
    "exact, k-means": {"epsilon": None, "held": (("a", "b", "c"), ("d", "e", "f"))},
    "residuals": {"residuals": True},
    "private k-means": {"held": (("a", "b", "c"), ("d", "e", "f"))},
    "server-aided, joint": {"held": (("a", "b"), ("c",), ("d",)), "model": "server-aided"},
    "server-aided, other key holder": {
        "held": (("a", "b"), ("c",), ()),
        "model": "server-aided",
        "computing": "p0",
        "key_holder": "p2",
    },
    "collective": {"held": (("a", "b"), ("c",), ()), "computing": "p0"},
    "collective, computing party without columns": {"held": ((), ("a", "b"), ("c",))},
    "threshold, joint": {"held": (("a", "b"), ("c",), ("d",), ("e",)), "threshold": 2, "cells": 4},
}


@pytest.mark.parametrize("case", CASES)
def test_bytes_and_messages_are_those_that_a_run_counts(case):
    agreement, parties, run = run_session(make_job(**CASES[case]))
    counted = [
        (link.bytes_sent, link.bytes_received, link.messages_sent, link.messages_received)
        for link in run.traffic.values()
    ]
    forecast = measure_links(agreement)
    assert [(link.bytes_up, link.bytes_down, link.messages_up, link.messages_down) for link in forecast] == counted
    assert agreement.settings.lengths == tuple(map(len, parties[0].released_totals))


def test_several_uploads_are_counted_each(monkeypatch):
    monkeypatch.setattr("cloister.protocols.vertical.agreement._UPLOAD_BYTES", 2**20)
    agreement, _, run = run_session(make_job(epsilon=8.0, cells=8), records=20_000)
    assert agreement.uploads > 1
    assert [link.bytes_up for link in measure_links(agreement)] == [link.bytes_sent for link in run.traffic.values()]


def test_a_hundred_million_records_take_no_longer_to_plan():
    agreement = make_agreement(make_job(), (bytes(32),) * 2, records=10**8, alignment=None)
    holder = measure_links(agreement)[1]
    assert holder.bytes_up > 10**8 * 16 * 54 / 8


def test_the_plan_shows_every_partys_link_and_upload():
    job = make_job(CASES["threshold, joint"]["held"], threshold=2, cells=4)
    made = plan(job, records=RECORDS, epsilons=(), quick=True)
    agreement = make_agreement(job, (bytes(32),) * 4, records=RECORDS, alignment=None)
    assert tuple(party.carried for party in made.links) == measure_links(agreement)
    assert [party.upload_bytes > 0 for party in made.links] == [False, True, True, True]
    assert all(party.upload_bytes <= party.carried.bytes_up for party in made.links)
    assert made.traffic.total_bytes == sum(party.carried.bytes_up + party.carried.bytes_down for party in made.links)


@pytest.mark.parametrize("case", ["two columns at each", "collective"])
def test_memory_is_what_the_computing_party_holds(case):
    job = make_job(**CASES[case])
    run_session(job, records=100)  # compiled loops and tables of roots are there from now on
    tracemalloc.start()
    agreement, parties, _ = run_session(job, records=6000)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    kept = sum(block.masks.nbytes + block.bodies.nbytes for block in parties[agreement.computing - 1]._receiver.blocks)
    assert kept <= count_memory(agreement)
    assert count_memory(agreement) <= peak <= 4 * count_memory(agreement), "all parties, and messages on their way"


# --- what it says ---------------------------------------------------------------------------------------------------


def test_it_says_who_does_what_and_why():
    made = plan(make_job(), records=RECORDS, epsilons=(), quick=True)
    assert [party.does for party in made.links] == [
        "computes on ciphertexts",
        "encrypts its columns, decrypts",
    ]
    text = printed(made)
    assert "p0 computes: it holds the most columns" in text
    assert "two-party: the other one holds the key" in text
    assert "16 cells (a grid): few, which suffices for one column" in text
    assert "no comparison under encryption" in text
    parameters = make_agreement(make_job(), (bytes(32),) * 2, records=RECORDS, alignment=None).parameters
    assert f"ring {parameters.degree:,}, modulus of {parameters.modulus_bits} bits" in text
    assert "charged to the budget" in text
    assert "one pass for a joint histogram, then 2 rounds" in text
    assert "the relay learns nothing" in text
    assert "of memory for ciphertexts and sums" in text


def test_the_jobs_own_choices_are_named_as_such():
    held = (("a",), ("b",), ("c",), ())
    made = plan(
        make_job(held, model="collective", threshold=2, computing="p1", cells=5),
        records=RECORDS,
        epsilons=(),
        quick=True,
    )
    assert [party.does for party in made.links] == [
        "encrypts its columns, decrypts, 2 at a time",
        "computes on ciphertexts",
        "encrypts its columns, decrypts, 2 at a time",
        "decrypts, 2 at a time",
    ]
    text = printed(made)
    assert "p1 computes: the job says so" in text
    assert "The job chooses the model, collective" in text
    assert "Any 2 of 3 key holders are enough" in text
    assert "the job says how many at most" in text
    assert "5 x 5 cells, 25 joint ones" in text
    assert "2^40" in text


def test_replacing_values_costs_more_than_adding_a_record():
    made = plan(make_job(), records=RECORDS, epsilons=(), quick=True)
    replacement = find_replacement_epsilon(make_settings(make_job(), RECORDS))
    assert made.epsilon < replacement < 2.5 * made.epsilon
    assert f"privacy card will say epsilon = {write_bound(replacement)}" in printed(made)


def test_without_a_number_of_records_it_asks_for_one():
    with pytest.raises(ConfigError, match=r"must know how many records are aligned.*--records N"):
        plan(make_job())
    made = plan(make_job(data=DataOptions(aligned=True, records=700)), epsilons=(), quick=True)
    assert made.records == (700,)
    with pytest.raises(ConfigError, match=r"data\.records = 700; got 800"):
        plan(make_job(data=DataOptions(aligned=True, records=700)), records=800)


def test_labels_and_alignment_are_said_not_to_be_counted():
    job = make_job(data=DataOptions(id="person"), labels=("p0",))
    notes = " ".join(plan(job, records=RECORDS, epsilons=(), quick=True).notes)
    assert "align IDs are not counted" in notes
    assert "labels" in notes


# --- losses and noise -----------------------------------------------------------------------------------------------


def test_the_usual_epsilons_are_tried_and_noise_falls():
    made = plan(make_job(epsilon=0.7), records=2000, quick=True)
    assert [case.epsilon for case in made.cases] == list(choose_epsilons(0.7, None))
    noises = [case.centre_noise.high for case in made.cases]
    assert noises[0] > 2 * noises[-1]
    assert made.cases[0].loss_ratio.high > made.cases[-1].loss_ratio.high
    own = made.find_case(epsilon=0.7, records=2000)
    assert [loss.family for loss in own.losses] == [family.name for family in FAMILIES]
    assert [case.looked_for_smallest for case in made.cases] == [case.epsilon == 0.7 for case in made.cases]
    assert "At epsilon = 0.7" in made.advice
    text = printed(made)
    assert "Noise on a centre of average size, in original units" in text
    assert "What to expect of 2,000 records" in text


def test_fewer_records_under_less_noise_are_the_same_trial():
    """The centre noise of a job of 40,000 records, tried as 4,000 and all of them."""
    settings = Settings(
        clusters=3,
        columns_alice=(0,),
        columns_encrypted=((1,),),
        records=40_000,
        budget=Budget(epsilon=0.1, delta=1e-6),
    )
    stream = Stream.from_seed(1, "scale")
    few, all_ = (
        Forecaster(
            settings,
            effort=replace(QUICK, runs=8, records_most=most, numbers=10**6),
            stream=stream,
            on_trial=lambda label: None,
        ).forecast(0.1, look_for_smallest=False)
        for most in (4_000, 40_000)
    )
    assert few.centre_noise.high == pytest.approx(all_.centre_noise.high, rel=1.0)
    assert few.loss_ratio.low == pytest.approx(all_.loss_ratio.low, rel=0.02)
    assert few.cells == all_.cells


def test_without_a_budget_there_is_a_loss_by_cells_only():
    made = plan(make_job(epsilon=None), records=5000, quick=True)
    assert made.cases == ()
    assert made.epsilon is None
    ratios = [loss.ratio for loss in made.exact_losses]
    assert len(ratios) == len(FAMILIES)
    assert max(ratios) < 1.05
    assert "nothing is differentially private" in made.advice
    assert "by family" in printed(made)
    with pytest.raises(ConfigError, match=r"left out where there is no \[budget\]"):
        plan(make_job(epsilon=None), records=5000, epsilons=(1.0,))


def test_huge_jobs_are_tried_with_noise_that_can_be_drawn():
    made = plan(make_job(epsilon=2.0), records=10**8, epsilons=(), quick=True)
    assert made.cases[0].loss_ratio.high < 1.1


def test_the_same_job_has_the_same_plan():
    first, again = (plan(make_job(), records=800, epsilons=(), quick=True) for _ in range(2))
    assert first == again


def test_progress_ends_at_its_total():
    told = []
    plan(make_job(), records=500, epsilons=(0.5,), quick=True, on_progress=told.append)
    assert [progress.step for progress in told] == list(range(1, told[-1].steps + 1))


def test_a_sum_that_fits_no_ring_is_refused_before_anything_is_tried():
    with pytest.raises(ConfigError, match="bits"):
        plan(make_job((("a",), ("b",), ("c",))), records=10**7)


# --- the command ----------------------------------------------------------------------------------------------------


def test_the_command_plans_the_sample(tmp_path):
    path = write_customers(tmp_path)
    run = CliRunner().invoke(app, ["plan", str(path), "--records", "1200", "--quick", "--epsilon", "1", "--json"])
    assert run.exit_code == 0, run.output
    made = msgspec.json.decode(run.stdout)
    assert made["split"] == "columns"
    assert made["links"][0]["name"] == "bank"
    refused = CliRunner().invoke(app, ["plan", str(path)])
    assert refused.exit_code not in (0, EXIT_UNEXPECTED)
    assert "--records N" in refused.output
