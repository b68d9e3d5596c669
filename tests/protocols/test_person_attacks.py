"""Audits of jobs whose unit is a person: sound ones are not refuted, and each trap of docs/proofs/persons.md is.

Rehearsed sessions, but for one; the canaries are `cloister.audit.persons`'s: a hundred records at every party that may
hold any, once equal and once in different cells.
"""

import os

import numpy as np
import pytest

from cloister.audit import audit
from cloister.audit import persons as inputs
from cloister.columns import Column
from cloister.crypto import Stream
from cloister.data import persons
from cloister.job import Budget, DataOptions, Job, JobParty, make_options
from cloister.privacy.simulation_sampler import SimulationSampler
from cloister.privacy.units import PersonBudget
from cloister.protocol import prepare_audit
from cloister.protocols.guided_sums import attack as guided
from cloister.protocols.guided_sums import postprocessing
from cloister.protocols.multiparty_lloyd import attack as rounds
from cloister.protocols.synopsis.settings import Knobs
from tests.data.test_persons import MUTANTS
from tests.protocols.fastlloyd.test_attack import Rehearsed as RehearsedRounds
from tests.protocols.guided_sums.rehearsed import Rehearsed, half_noise

FEW = 2000 if os.environ.get("CLOISTER_LONG") else 400
EQUAL, SPREAD = 0, 1
OPTIONS = {
    "synopsis": {"knobs": Knobs(cells_max=16, rounds_min=2, rounds_max=2, restarts=1)},
    "fastlloyd": {"iterations": 2},
    "mask-noise-average": {"iterations": 2},
}


@pytest.fixture(autouse=True)
def _rehearse_roughly(monkeypatch):
    monkeypatch.setattr(postprocessing, "_PRIOR_STEPS", 2)
    monkeypatch.setattr(postprocessing, "_SHRINK_STEPS", 2)


def make_job(protocol="synopsis", *, records=1, parties=1, scale="bounds", **options):
    return Job(
        name="audited",
        k=1,
        columns=(Column(name="x", low=0, high=10),),
        parties=(JobParty(name="a"), JobParty(name="b")),
        protocol=make_options(protocol, **OPTIONS[protocol] | options),
        data=DataOptions(person="who", person_records=records, person_parties=parties, scale=scale),
        budget=Budget(epsilon=8.0, delta=1e-6, unit="person"),
    )


def run_audit(job, monkeypatch=None, *, canary=EQUAL, runs=FEW):
    if monkeypatch is not None:
        monkeypatch.setattr(guided, "GuidedSessions", Rehearsed)
        monkeypatch.setattr(rounds, "LloydSessions", RehearsedRounds)
    prepared = prepare_audit(job)
    stream = Stream.from_seed(5, "persons")
    return audit(prepared.attacks[canary], claim=prepared.claim, stream=stream, runs=runs)


@pytest.mark.parametrize("protocol", OPTIONS)
@pytest.mark.parametrize("canary", [EQUAL, SPREAD])
@pytest.mark.parametrize(("records", "parties"), [(1, 1), (3, 2)])
def test_a_sound_job_is_not_refuted(protocol, canary, records, parties, monkeypatch):
    report = run_audit(make_job(protocol, records=records, parties=parties), monkeypatch, canary=canary)
    assert not report.violates, report.text()
    assert report.claim.epsilon == 8.0
    assert canary is SPREAD or report.rho_lower > 0, report.text()  # and the attack is not blind


@pytest.mark.parametrize("canary", [EQUAL, SPREAD] if FEW > 400 else [SPREAD])
def test_a_sound_job_that_scales_columns_is_not_refuted(canary, monkeypatch):
    report = run_audit(make_job(records=2, parties=2, scale="spread"), monkeypatch, canary=canary)
    assert not report.violates, report.text()


def test_a_whole_session_is_not_refuted():
    report = run_audit(make_job("fastlloyd", records=2, parties=2))
    assert not report.violates, report.text()


@pytest.mark.parametrize("protocol", OPTIONS)
@pytest.mark.parametrize(("records", "parties"), [(3, 1), (1, 2)], ids=["c", "q"])
def test_noise_without_one_of_the_factors_is_refuted(protocol, records, parties, monkeypatch):
    monkeypatch.setattr(
        PersonBudget, "most_records", property(lambda self: self.records * self.parties // max(records, parties))
    )
    report = run_audit(make_job(protocol, records=records, parties=parties), monkeypatch, runs=3 * FEW)
    assert report.violates, report.text()


def test_half_the_noise_is_refuted(monkeypatch):
    monkeypatch.setattr(SimulationSampler, "draw", half_noise)
    report = run_audit(make_job("fastlloyd", records=2, parties=2), monkeypatch, runs=4 * FEW)
    assert report.violates, report.text()


@pytest.mark.parametrize("canary", [EQUAL, SPREAD])
def test_persons_counted_per_batch_are_refuted(canary, monkeypatch):
    monkeypatch.setattr(inputs, "choose_records", MUTANTS["persons counted per batch"])
    report = run_audit(make_job(), monkeypatch, canary=canary)
    assert report.violates, report.text()


@pytest.mark.parametrize("mutant", ["chosen by reading order", "chosen by sorting the rows"])
def test_a_choice_by_place_is_refuted(mutant, monkeypatch):
    """Other persons keep other records when the canary leaves."""
    monkeypatch.setattr(inputs, "choose_records", MUTANTS[mutant])
    report = run_audit(make_job(), monkeypatch, canary=SPREAD)
    assert report.violates, report.text()


def test_spellings_taken_for_persons_are_refuted(monkeypatch):
    monkeypatch.setattr(persons, "_name_person", lambda cell: repr(cell).encode())
    report = run_audit(make_job(), monkeypatch, runs=2 * FEW)
    assert report.violates, report.text()


def test_every_record_of_a_person_is_refuted(monkeypatch):
    def keep_all(table, *, most, key):
        return persons.PersonRecords(table, np.ones(table.check().records, dtype=bool))

    monkeypatch.setattr(inputs, "choose_records", keep_all)
    assert run_audit(make_job(records=3), monkeypatch).violates
