"""A new protocol is its package and one line in the registry: then it simulates, plans, audits and reports."""

from __future__ import annotations

import io

import numpy as np
import pytest
from rich.console import Console

from cloister.audit import audit
from cloister.crypto import Stream
from cloister.errors import ConfigError
from cloister.jobfile import parse_job, parse_setup
from cloister.planning import plan
from cloister.privacy.simulation_sampler import SimulationSampler
from cloister.protocol import prepare_audit, register, unregister
from cloister.report.folder import read_result, write_result
from cloister.report.text import print_report
from cloister.sessions import simulate
from tests.toy_protocol import Mean, MeanOptions

JOB = """
name = "toy"
[protocol]
name = "mean"
[clusters]
k = 1
[columns]
length = { low = 0, high = 10 }
[[parties]]
name = "north"
[[parties]]
name = "south"
[budget]
epsilon = 1.0
"""
TABLES = {"north": np.full((3000, 1), 7.0), "south": np.full((1000, 1), 3.0)}


@pytest.fixture(autouse=True)
def _registered():
    register(MeanOptions, Mean)
    yield
    unregister("mean")


def test_it_runs_and_its_result_is_reported(tmp_path):
    result = simulate(parse_job(JOB), sources=TABLES)
    assert result.centres == pytest.approx(np.array([[6.0]]), abs=0.1)
    assert result.card.epsilon <= 1.0
    assert result.card.private
    assert [release.name for release in result.card.releases] == ["sums and count"]
    folder = write_result(result, tmp_path / "result")
    console = Console(file=io.StringIO(), width=100)
    print_report(read_result(folder), console)
    assert "each party's sums and number of records" in console.file.getvalue()


def test_its_books_are_checked_before_anything_leaves(tmp_path):
    """What the toy does not say itself: one ledger per party, charged beforehand, with a cap."""
    ledgers = JOB + '[ledger]\npath = "ledgers"\n'
    for name, table in TABLES.items():
        np.savetxt(tmp_path / f"{name}.csv", table, header="length", comments="")
        ledgers = ledgers.replace(f'name = "{name}"', f'name = "{name}"\ndata = "{name}.csv"')
    setup = parse_setup(ledgers, folder=tmp_path)
    simulate(setup)
    assert sorted(path.name for path in (tmp_path / "ledgers").iterdir()) == ["north.ledger", "south.ledger"]


def test_it_is_planned():
    planned = plan(parse_job(JOB), records=4000)
    assert planned.protocol == "mean"
    assert planned.traffic.steps == 2
    result = simulate(parse_job(JOB), sources=TABLES, seed=1)
    assert planned.traffic.total_bytes == sum(party.bytes_sent + party.bytes_received for party in result.parties)


def run_audit():
    job = prepare_audit(parse_job(JOB.replace("epsilon = 1.0", "epsilon = 4.0")))
    return audit(job.attacks, claim=job.claim, stream=Stream.from_seed(1, "toy"), runs=8000, confidence=0.999)


def test_it_is_audited():
    report = run_audit()
    assert not report.violates
    assert report.rho_lower > 0.3 * report.claim.rho


def test_the_audit_refutes_it_with_half_the_noise(monkeypatch):
    draw = SimulationSampler.draw
    monkeypatch.setattr(SimulationSampler, "draw", lambda *asked: draw(*asked) // 2)
    assert run_audit().violates


def test_keys_that_it_does_not_take_are_refused_with_the_protocols_that_do():
    with pytest.raises(ConfigError, match=r"job:5: protocol.placement must come with the protocol synopsis"):
        parse_job(JOB.replace('"mean"', '"mean"\nplacement = "local"'))
    with pytest.raises(ConfigError, match=r"protocol.name must be one of synopsis, .*mean; got .means.\. Did you mean"):
        parse_job(JOB.replace('"mean"', '"means"'))


def test_a_name_can_be_taken_once():
    with pytest.raises(ConfigError, match="a protocol must have a unique name; got mean"):
        register(MeanOptions, Mean)
