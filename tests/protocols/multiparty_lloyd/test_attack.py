"""Audits of whole sessions: a sound job is not refuted, and a protocol broken on purpose is, through real messages."""

from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

from cloister.audit import Neighbour, audit
from cloister.cli import app
from cloister.cli.failures import EXIT_REFUTED
from cloister.columns import Column
from cloister.crypto import Stream
from cloister.data import Table, sample_folder
from cloister.errors import ConfigError
from cloister.job import Budget, Job, JobParty, make_options
from cloister.privacy.encoder import SumCountEncoder
from cloister.privacy.placement import Shared
from cloister.privacy.simulation_sampler import SimulationSampler
from cloister.protocol import prepare_audit
from cloister.protocols.multiparty_lloyd import rules

RUNS = 600  # 1,200 whole sessions an audit
REAL_DRAW = SimulationSampler.draw


def make_job(*, dimensions=1, **options):
    return Job(
        name="audited",
        k=1,
        columns=tuple(Column(name=f"x{i}", low=0, high=10) for i in range(dimensions)),
        parties=(JobParty(name="a"), JobParty(name="b")),
        protocol=make_options("mask-noise-average", iterations=2, initialisation="random", **options),
        budget=Budget(epsilon=6.0, delta=1e-6),
    )


def run_audit(job, attack=0, runs=RUNS):
    prepared = prepare_audit(job)
    return audit(prepared.attacks[attack], claim=prepared.claim, stream=Stream.from_seed(3, "e2e"), runs=runs)


@pytest.mark.parametrize("options", [{}, {"placement": "shared", "colluding_max": 1}])
def test_a_sound_protocol_is_not_refuted(options):
    report = run_audit(make_job(**options))
    assert not report.violates
    assert report.claim.epsilon == 6.0


def half_noise(self, mechanism, entries, on_progress=None):
    return REAL_DRAW(self, replace(mechanism, sigma=mechanism.sigma / 2), entries)


def one_seed_for_two_noises(self, mechanism, entries, on_progress=None):
    """Sum and count get the same noise: their difference has none."""
    return np.repeat(REAL_DRAW(self, mechanism, 1), entries)


MUTANTS = {
    "half noise": (half_noise, 1600),  # 600 catch it on average, in theory; these always, in practice
    "one seed for two noises": (one_seed_for_two_noises, RUNS),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_broken_protocol_is_refuted(name, monkeypatch):
    mutant, runs = MUTANTS[name]
    monkeypatch.setattr(SimulationSampler, "draw", mutant)
    assert run_audit(make_job(), runs=runs).violates


def test_noise_that_the_receiver_knows_is_refuted(monkeypatch):
    """The mutant of shared noise: only the adversary adds any, and it can subtract its own."""
    monkeypatch.setattr(Shared, "mechanism_for_share", lambda self, target: replace(target, sigma=1e-3))
    monkeypatch.setattr(Shared, "released_mechanism", lambda self, target: target)
    assert run_audit(make_job(placement="shared", colluding_max=1)).violates


def test_a_norm_bound_that_is_not_applied_is_refuted(monkeypatch):
    monkeypatch.setattr(SumCountEncoder, "bound", lambda self, points: points)
    assert run_audit(make_job(dimensions=9, norm_bound=0.25)).violates


def test_a_table_that_does_not_clip_is_refuted(monkeypatch):
    real = Table.batches

    def unclipped(self):
        for batch in real(self):
            yield np.where(np.abs(batch) == 1.0, 21.0 * batch, batch)  # where the far record really lies

    def sum_as_they_come(records, centres, assignment, fixed_point, count_weight):
        exact = assignment.sums(records, centres)
        return np.hstack([fixed_point.encode(exact.sums), count_weight * exact.counts[:, None]])

    monkeypatch.setattr(Table, "batches", unclipped)
    assert not run_audit(make_job(), attack=1).violates  # sums clip again
    monkeypatch.setattr(rules, "sum_on_grid", sum_as_they_come)
    assert run_audit(make_job(), attack=1).violates


@pytest.mark.parametrize("placement", [{}, {"placement": "shared", "colluding_max": 1}])
def test_the_score_is_the_exact_likelihood_ratio(placement, monkeypatch):
    """Noise that happens to be 0 speaks for one input as loudly as for the other: -|v|^2 / 2 sigma^2, and + that."""
    monkeypatch.setattr(SimulationSampler, "draw", lambda self, mechanism, entries, *_: np.zeros(entries, np.int64))
    run = prepare_audit(make_job(**placement)).attacks[0].run
    without, present = (run(side, 1, Stream.from_seed(1, "silent"))[0, 0] for side in Neighbour)
    assert without == -present < 0


def test_audits_are_reproducible():
    first, again = (
        prepare_audit(make_job()).attacks[0].run(Neighbour.WITH, 5, Stream.from_seed(1, "again")) for _ in range(2)
    )
    assert np.array_equal(first, again)
    assert len(np.unique(first[:, 0])) == 5  # and every session has its own noise


def test_a_job_that_claims_nothing_cannot_be_audited():
    job = replace(make_job(), budget=None, protocol=make_options("naive"))
    with pytest.raises(ConfigError, match="must have a claim"):
        prepare_audit(job)


def test_the_command_prints_the_bound_and_fails_on_a_refuted_claim(tmp_path, monkeypatch):
    path = tmp_path / "job.toml"
    path.write_text(
        'name = "small"\n[protocol]\nname = "mask-noise-average"\niterations = 2\n[budget]\nepsilon = 6\ndelta = 1e-6\n'
        "[clusters]\nk = 1\n[columns]\nx = { low = 0, high = 10 }\n"
        '[[parties]]\nname = "a"\ndata = "a.csv"\n[[parties]]\nname = "b"\ndata = "b.csv"\n'
    )
    sound = CliRunner().invoke(app, ["audit", str(path), "--claim", "--runs", "400"])
    assert sound.exit_code == 0, sound.output
    assert "is consistent with the claim" in sound.stdout
    assert "claimed 6" in sound.stdout
    monkeypatch.setattr(SimulationSampler, "draw", one_seed_for_two_noises)
    broken = CliRunner().invoke(app, ["audit", str(path), "--claim", "--runs", "400"])
    assert broken.exit_code == EXIT_REFUTED
    assert "VIOLATES the claim" in broken.stdout
    assert CliRunner().invoke(app, ["audit", str(sample_folder() / "north.csv")]).exit_code == 2
