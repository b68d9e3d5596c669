"""Audits: the default is not refuted, the published variants with size constraints are, and so are mutants.

Some audits run whole sessions; others rehearse, which finds the same view bit for bit (a test compares). Where only the
first round is looked at, its total for fixed centres is the exact one plus noise, and runs are cheap.
"""

from dataclasses import replace
from itertools import cycle

import numpy as np
import pytest
from typer.testing import CliRunner

from cloister.audit import Attack, Claim, Neighbour, audit
from cloister.audit.attack import ADVERSARY, KeptNoise
from cloister.cli import app
from cloister.cli.failures import EXIT_REFUTED
from cloister.columns import Column
from cloister.crypto import Stream
from cloister.job import Budget, DataOptions, Job, JobParty, make_options
from cloister.numeric import FixedPoint
from cloister.privacy.mechanisms import DiscreteLaplace
from cloister.privacy.simulation_sampler import SimulationSampler
from cloister.protocol import prepare_audit
from cloister.protocols.fastlloyd import offsets
from cloister.protocols.fastlloyd.attack import build_chain
from cloister.protocols.fastlloyd.published import PublishedSettings, plan_published
from cloister.protocols.fastlloyd.rehearsal import rehearse
from cloister.protocols.multiparty_lloyd import attack as attacks
from cloister.protocols.multiparty_lloyd.attack import LloydSessions
from cloister.records import ArrayRecords

FEW = 400  # runs per input, the fewest that an audit takes
REAL_DRAW = SimulationSampler.draw


class Rehearsed(LloydSessions):
    """The same rounds, records and noise without messages."""

    def _run_once(self, tables, samplers, entropies):
        entropies[0].bytes(16)  # a session's name: the streams stay in step
        own = [sampler.start() for sampler in samplers][ADVERSARY]
        found = rehearse(
            self._plan,
            tables,
            np.array(self._agreement.start),
            sampler=InTurn(samplers[:1] if self._plan.by_coordinator else samplers[1:]),
            assignment=self._agreed.assignment,
        )
        return self._read(found.totals, own)


class InTurn:
    """Draws for one holder of noise after another, as a rehearsal asks for them."""

    is_simulation = True

    def __init__(self, samplers):
        self._samplers = cycle(samplers)

    def draw(self, mechanism, entries, on_progress=None):
        return next(self._samplers).draw(mechanism, entries)


def make_job(*, k=1, dimensions=1, epsilon=8.0, records=None, **options):
    pure = options.get("variant") is not None or options.get("noise") == "laplace"
    pure = pure and options.get("placement") != "joint"
    return Job(
        name="audited",
        k=k,
        columns=tuple(Column(name=f"x{i}", low=0, high=10) for i in range(dimensions)),
        parties=(JobParty(name="a"), JobParty(name="b")),
        protocol=make_options("fastlloyd", **options),
        data=DataOptions(records=records),
        budget=Budget(epsilon=epsilon, delta=0.0 if pure else 1e-6),
    )


def run_audit(job, *, runs=FEW, attack=0, monkeypatch=None):
    """Audit whole sessions, or with ``monkeypatch`` rehearsals."""
    if monkeypatch is not None:
        monkeypatch.setattr(attacks, "LloydSessions", Rehearsed)
    prepared = prepare_audit(job)
    stream = Stream.from_seed(5, "fastlloyd audit")
    return audit(prepared.attacks[attack], claim=prepared.claim, stream=stream, runs=runs)


# --- the default ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"placement": "shared", "colluding_max": 1}, {"placement": "aggregator"}])
def test_a_session_of_the_default_is_not_refuted(options):
    report = run_audit(make_job(iterations=2, **options))
    assert not report.violates, report.text()
    assert report.claim.epsilon == 8.0


@pytest.mark.parametrize(
    "options",
    [{}, {"iterations": 3, "noise": "laplace"}, {"iterations": 3, "k": 3, "dimensions": 2}],
    ids=["all rounds", "laplace", "three clusters"],
)
def test_the_default_is_not_refuted(options, monkeypatch):
    report = run_audit(make_job(**options), monkeypatch=monkeypatch)
    assert not report.violates, report.text()
    assert report.rho_lower > 0  # and the attack is not blind


def test_the_attack_sees_what_is_promised_and_no_more(monkeypatch):
    """With Gaussian noise the scores' means lie sqrt(2 rho) deviations apart if every round's bound is reached."""
    monkeypatch.setattr(attacks, "LloydSessions", Rehearsed)
    prepared = prepare_audit(make_job(epsilon=4.0, radius=0.1, iterations=3))
    without, present = (prepared.attacks[0].run(side, 300, Stream.from_seed(2, side.value))[:, 0] for side in Neighbour)
    apart = (present.mean() - without.mean()) / np.sqrt((present.var() + without.var()) / 2)
    promised = (2 * prepared.claim.rho) ** 0.5
    assert apart == pytest.approx(promised, abs=0.5)  # known to 0.1


@pytest.mark.parametrize(
    "options",
    [{}, {"placement": "aggregator"}, {"k": 4, "dimensions": 2, "records": 100, "variant": "published"}],
    ids=["default", "aggregator", "published"],
)
def test_a_rehearsed_attack_reads_what_a_session_shows_bit_for_bit(options, monkeypatch):
    whole = prepare_audit(make_job(**options)).attacks[0]
    monkeypatch.setattr(attacks, "LloydSessions", Rehearsed)
    rehearsed = prepare_audit(make_job(**options)).attacks[0]
    views = [attack.run(Neighbour.WITH, 3, Stream.from_seed(1, "pair")) for attack in (whole, rehearsed)]
    assert np.array_equal(*views)
    assert len(whole.labels) == views[0].shape[1]
    assert len(np.unique(views[0][:, 0])) == 3


CASES = {
    "default": {"k": 3, "dimensions": 2},
    "shared": {"placement": "shared", "colluding_max": 1},
    "aggregator": {"placement": "aggregator", "k": 3, "dimensions": 2},
    "published": {"k": 4, "dimensions": 2, "records": 400, "variant": "published"},
    "csulloyd": {"k": 4, "dimensions": 2, "records": 400, "variant": "csulloyd"},
}


@pytest.mark.parametrize("case", CASES)
def test_without_noise_nothing_but_the_record_is_left(case, monkeypatch):
    """The adversary takes away what all others add, in every round, wherever the centres are."""

    def no_noise(self, mechanism, entries, on_progress=None):
        self._drawn.append(np.zeros(entries, dtype=np.int64))
        return self._drawn[-1]

    monkeypatch.setattr(KeptNoise, "draw", no_noise)
    attack = prepare_audit(make_job(**CASES[case])).attacks[0]
    without, present = (attack.run(side, 1, Stream.from_seed(1, "silent"))[0, 2:] for side in Neighbour)
    assert not without.any()
    assert present.any()


def test_a_record_far_outside_adds_no_more_than_one_in_the_corner():
    corner, outside = (
        attack.run(Neighbour.WITH, 3, Stream.from_seed(1, "same")) for attack in prepare_audit(make_job()).attacks
    )
    assert np.array_equal(corner, outside)


# --- mutants of the default -----------------------------------------------------------------------------------------


def half_noise(self, mechanism, entries, on_progress=None):
    return REAL_DRAW(self, replace(mechanism, sigma=mechanism.sigma / 2), entries)


def unclipped_offsets(records, centres, radii, *, scale, weight):
    out = np.zeros((len(centres), centres.shape[1] + 2), dtype=np.int64)
    for batch in records.batches():
        out[0, :-2] += np.rint((batch - centres[0]) / radii[0] * scale).astype(np.int64).sum(axis=0)  # k = 1
        out[0, -1] += weight * len(batch)
    return out


def reused_in_every_round(self, mechanism, entries, on_progress=None):
    """The generator of the noise is started anew in every round."""
    if not self._drawn:
        self._kept = REAL_DRAW(self._sampler, mechanism, entries)
    self._drawn.append(self._kept)
    return self._kept.copy()


def test_half_the_noise_is_refuted(monkeypatch):
    monkeypatch.setattr(SimulationSampler, "draw", half_noise)
    assert run_audit(make_job(iterations=2), runs=4 * FEW, monkeypatch=monkeypatch).violates


def test_offsets_that_are_not_clipped_are_refuted(monkeypatch):
    monkeypatch.setattr(offsets, "sum_offsets", unclipped_offsets)
    assert run_audit(make_job(radius=0.25, iterations=3), monkeypatch=monkeypatch).violates


def test_the_same_noise_in_every_round_is_refuted(monkeypatch):
    """Seen by a record that is not in the same cluster in every round: one total minus another has no noise."""
    monkeypatch.setattr(KeptNoise, "draw", reused_in_every_round)
    assert run_audit(make_job(k=3, iterations=3, epsilon=2.0), monkeypatch=monkeypatch).violates


def test_a_count_that_is_forgotten_in_the_sensitivity_is_refuted(monkeypatch):
    """The count weighs ten times what an offset may, and the noise is for the offset."""
    monkeypatch.setattr("cloister.protocols.fastlloyd.sound._weigh_count", lambda dimensions, scale: 10 * scale)
    real = offsets.measure_contribution
    for module in ("offsets", "sound"):
        monkeypatch.setattr(
            f"cloister.protocols.fastlloyd.{module}.measure_contribution", lambda d, scale, weight: real(d, scale, 0)
        )
    assert run_audit(make_job(iterations=2), monkeypatch=monkeypatch).violates


# --- as published ---------------------------------------------------------------------------------------------------


def test_sessions_of_the_published_variant_are_refuted():
    """FastLloyd's algorithm 1, one round: epsilon itself is larger than its theorem says."""
    report = run_audit(make_job(k=8, dimensions=2, epsilon=1.0, records=2000, variant="published", iterations=1))
    assert report.refutes_epsilon, report.text()
    assert "chain of clusters" in report.attack


def first_round(preset, *, clusters, epsilon, size=40):
    """The first total of a session whose first party holds a chain, and what the whole session claims."""
    alpha = 1.5 if preset in ("mna", "amn") else 1.25
    options = PublishedSettings(
        preset=preset, records=int(alpha * clusters * 2 * size), clusters=clusters, dimensions=2, parties=2
    )
    plan = plan_published(options, Budget(epsilon=epsilon, delta=0.0))
    chain, grid = build_chain(clusters, 2, size=size), FixedPoint()
    exact = {
        side: plan.rule.contribute(ArrayRecords(grid.quantise(rows)), chain.start, 1, options.make_assignment()).ravel()
        for side, rows in {
            Neighbour.WITHOUT: chain.rows,
            Neighbour.WITH: np.vstack([chain.rows, chain.record]),
        }.items()
    }
    assert isinstance(plan.target_of(1), DiscreteLaplace)

    def run(side, runs, stream):
        noise = SimulationSampler(stream).draw(plan.target_of(1), runs * exact[side].size)
        return exact[side] + noise.reshape(runs, -1)

    difference = (exact[Neighbour.WITH] - exact[Neighbour.WITHOUT]).astype(float)
    return Attack(name=preset, run=run, difference=difference), plan


@pytest.mark.parametrize(("preset", "at_least"), [("published", 2.0), ("amn", 2.0), ("csulloyd", 1.4), ("mna", 1.4)])
def test_the_first_round_alone_costs_more_than_all_rounds_claim(preset, at_least):
    """Of claimed epsilon = 1 for T = 2 rounds, a chain of 12 clusters shows more in one of them."""
    attack, plan = first_round(preset, clusters=12, epsilon=1.0)
    assert len(plan.targets) == 2
    # The largest ratio of probabilities is that of the far corner, exp(|v|_1 / b): for centroids nearly 2 k / T.
    real_epsilon = np.abs(attack.difference).sum() / plan.target_of(1).scale
    assert real_epsilon > (11.0 if preset in ("published", "amn") else 8.0)
    report = audit(attack, claim=Claim(epsilon=1.0, delta=0.0), stream=Stream.from_seed(1, preset), runs=30_000)
    assert report.epsilon_lower > at_least, report.text()


@pytest.mark.parametrize("options", [{"variant": "sulloyd"}, {"variant": "amn", "assignment": "unconstrained"}])
def test_published_variants_without_constraints_are_not_refuted(options, monkeypatch):
    report = run_audit(make_job(k=2, epsilon=4.0, records=20, **options), monkeypatch=monkeypatch)
    assert not report.violates, report.text()


@pytest.mark.parametrize(
    "options",
    [
        {"assignment": "distance-constrained"},
        {"assignment": "constrained-e-exclusive", "memberships_max": 2},
        {"assignment": "constrained-non-exclusive"},
    ],
)
def test_every_assignment_can_be_audited(options):
    """Also where a run ends early because no assignment fits: then there are fewer rounds to read."""
    prepared = prepare_audit(make_job(k=4, dimensions=2, records=400, variant="published", **options))
    for side in Neighbour:
        outputs = prepared.attacks[0].run(side, 5, Stream.from_seed(1, "kinds"))
        assert outputs.shape == (5, len(prepared.attacks[0].labels))
        assert (outputs[:, 1] >= 1).all()
        assert (outputs[:, 2] != 0).any()


def test_joint_noise_of_a_ring_is_judged_by_one_noise_of_the_same_law():
    job = make_job(topology="ring", placement="joint", noise="laplace", iterations=2)
    outputs = prepare_audit(job).attacks[0].run(Neighbour.WITHOUT, 5, Stream.from_seed(1, "ring"))
    assert (np.abs(outputs[:, 2:]).mean(axis=0) > 0).all()


# --- the command ----------------------------------------------------------------------------------------------------


def test_the_command_audits_both(tmp_path, monkeypatch):
    monkeypatch.setattr(attacks, "LloydSessions", Rehearsed)
    common = (
        "[clusters]\nk = 8\n[columns]\nx = { low = 0, high = 10 }\ny = { low = 0, high = 10 }\n"
        '[[parties]]\nname = "a"\ndata = "a.csv"\n[[parties]]\nname = "b"\ndata = "b.csv"\n'
    )
    published = tmp_path / "published.toml"
    published.write_text(
        'name = "p"\n[protocol]\nname = "fastlloyd"\nvariant = "published"\niterations = 1\n[data]\nrecords = 2000\n'
        "[budget]\nepsilon = 1\n" + common
    )
    refuted = CliRunner().invoke(app, ["audit", str(published), "--claim", "--runs", "400"])
    assert refuted.exit_code == EXIT_REFUTED, refuted.output
    assert "VIOLATES the claim" in refuted.stdout
    sound = tmp_path / "sound.toml"
    sound.write_text('name = "s"\n[protocol]\nname = "fastlloyd"\niterations = 1\n[budget]\nepsilon = 1\n' + common)
    kept = CliRunner().invoke(app, ["audit", str(sound), "--claim", "--runs", "400"])
    assert kept.exit_code == 0, kept.output
    assert "is consistent with the claim" in kept.stdout
