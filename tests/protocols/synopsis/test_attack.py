"""Attacks on the synopsis: a sound session is not refuted, and one broken on purpose is.

Some audits run whole sessions: seeds, masks, messages. Others rehearse, which finds the same totals bit for bit
(test_session.py) at a third of the time. ``CLOISTER_LONG=1`` runs all of them as sessions.
"""

import os
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

from cloister.audit import Neighbour
from cloister.audit.attack import KeptNoise
from cloister.cli import app
from cloister.cli.failures import EXIT_REFUTED
from cloister.columns import Column
from cloister.crypto import Stream
from cloister.errors import BudgetError, TooFewPartiesError
from cloister.job import Budget, DataOptions, Job, JobParty
from cloister.privacy.accounting import Accountant
from cloister.privacy.placement import Shared
from cloister.privacy.simulation_sampler import SimulationSampler
from cloister.privacy.units import Unit
from cloister.protocol import prepare_audit
from cloister.protocols.guided_sums import attack as attacks
from cloister.protocols.guided_sums import postprocessing, refinement, statements, statistics
from cloister.protocols.guided_sums import query as queries
from cloister.protocols.guided_sums.coordinator import NoBooks
from cloister.protocols.guided_sums.query import Idle, Query
from cloister.protocols.guided_sums.scaling import Scaled
from cloister.protocols.guided_sums.settings import BUDGET_UNITS, GuidedSettings
from cloister.protocols.synopsis import pipeline, protocol
from cloister.protocols.synopsis.settings import Knobs
from tests.owners import told_to_owner
from tests.protocols.guided_sums import rehearsed
from tests.protocols.guided_sums.rehearsed import REAL_DRAW, Rehearsed, half_noise, one_seed_for_two_noises
from tests.protocols.synopsis.test_spread import own_scale

LONG = bool(os.environ.get("CLOISTER_LONG"))
SLOW = pytest.mark.skipif(not LONG, reason="takes a minute; set CLOISTER_LONG=1")
FEW = 2000 if LONG else 400  # runs per input, the fewest that an audit takes: for what gives itself away
# Where the mutant costs four times the claimed rho: the mean bound is then some four deviations above the claim.
QUADRUPLE_COST = 4000 if LONG else 1200
KNOBS = Knobs(cells_max=16, rounds_min=2, rounds_max=2, restarts=1)
SMALLEST = {"records": 100, "knobs": replace(KNOBS, rounds_min=1, rounds_max=1)}
REAL_PIPELINE = pipeline.run_synopsis


@pytest.fixture(autouse=True)
def _estimate_roughly(monkeypatch):
    """What is made of a total costs no privacy; here it need not be good."""
    monkeypatch.setattr(postprocessing, "_PRIOR_STEPS", 2)
    monkeypatch.setattr(postprocessing, "_SHRINK_STEPS", 2)


def make_job(*, dimensions=1, unit=Unit.RECORD, records=None, knobs=KNOBS, scale="bounds", private=(), **options):
    return Job(
        name="audited",
        k=1,
        columns=(*(Column(name=f"x{i}", low=0, high=10) for i in range(dimensions)), *map(Column.unbounded, private)),
        parties=(JobParty(name="a"), JobParty(name="b")),
        protocol=protocol.SynopsisOptions(knobs=knobs, **options),
        data=DataOptions(records=records, scale=scale),
        budget=Budget(epsilon=8.0, delta=1e-6, unit=unit),
    )


def run_audit(job, *, runs=FEW, attack=0, whole=False, monkeypatch=None):
    return rehearsed.run_audit(job, "synopsis audit", None if whole or LONG else monkeypatch, runs=runs, attack=attack)


# --- sound ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {"placement": "aggregator"},
        pytest.param({"placement": "shared", "colluding_max": 1}, marks=SLOW),
        pytest.param({"placement": "local"}, marks=SLOW),
        pytest.param({"unit": Unit.CLIENT}, marks=SLOW),
    ],
    ids=["aggregator", "shared", "local", "client"],
)
def test_a_sound_session_is_not_refuted(options):
    report = run_audit(make_job(**options), whole=True)
    assert not report.violates, report.text()
    assert report.claim.epsilon == 8.0


ROUTES = {
    "direct": {},
    "projected": {"dimensions": 6},
    "idle rounds": {"records": 1},
    "spread": {"scale": "spread"},
    "spread, projected": {"scale": "spread", "dimensions": 6},
    "spread, no bounds": {"scale": "spread", "private": ("u", "v")},
    "client": {"unit": Unit.CLIENT},
    "client, projected": {"unit": Unit.CLIENT, "dimensions": 6},
}


@pytest.mark.parametrize("route", ROUTES)
def test_on_every_route_the_attack_sees_what_is_promised_and_no_more(route, monkeypatch):
    """With Gaussian noise the score's means lie mu = sqrt(2 rho) deviations apart if the budget is used up.

    100 runs an input: the distance is known to 0.15.
    """
    monkeypatch.setattr(attacks, "GuidedSessions", Rehearsed)
    prepared = prepare_audit(make_job(**ROUTES[route]))
    without, present = (prepared.attacks[0].run(side, 100, Stream.from_seed(2, side.value))[:, 0] for side in Neighbour)
    apart = (present.mean() - without.mean()) / np.sqrt((present.var() + without.var()) / 2)
    claimed = (2 * prepared.claim.rho) ** 0.5
    assert 0.7 * claimed - 0.5 < apart < claimed + 0.75


@SLOW
@pytest.mark.parametrize("route", ROUTES)
def test_no_route_is_refuted(route):
    report = run_audit(make_job(**ROUTES[route]), runs=QUADRUPLE_COST)
    assert not report.violates, report.text()
    assert report.rho_lower > 0.2 * report.claim.rho


@pytest.mark.parametrize("dimensions", [1, 5, 8])
def test_the_harmless_records_stand_out_of_the_noise(dimensions):
    """By so many deviations for each column, of which at least five are counted: then all questions are asked."""
    settings = prepare_audit(make_job(dimensions=dimensions)).attacks[0].run.__self__.agreed.agreement.settings
    together = settings.parties * attacks.count_harmless(settings)
    wanted = attacks._CLEAR * max(5, dimensions) / settings.signal(BUDGET_UNITS)
    assert wanted <= together <= wanted + settings.parties


def test_a_record_far_outside_adds_no_more_than_one_in_the_corner(monkeypatch):
    monkeypatch.setattr(attacks, "GuidedSessions", Rehearsed)
    corner, outside = (
        attack.run(Neighbour.WITH, 5, Stream.from_seed(1, "same")) for attack in prepare_audit(make_job()).attacks
    )
    assert np.array_equal(corner, outside)


def test_a_rehearsed_attack_reads_what_a_session_shows(monkeypatch):
    """Both kinds of run show the same unit in noise of the same size."""
    whole = prepare_audit(make_job()).attacks[0]
    monkeypatch.setattr(attacks, "GuidedSessions", Rehearsed)
    rehearsed = prepare_audit(make_job()).attacks[0]
    views = [attack.run(Neighbour.WITHOUT, 60, Stream.from_seed(1, "pair"))[:, 0] for attack in (whole, rehearsed)]
    assert len(whole.labels) == len(rehearsed.labels)
    assert abs(np.log(views[0].std() / views[1].std())) < 0.7  # five deviations of the logarithm of such a ratio
    assert len(np.unique(views[0])) == 60  # every session has its own noise


# --- mutants of the noise -------------------------------------------------------------------------------------------


def reused_in_every_round(self, mechanism, entries, on_progress=None):
    """The generator of the noise is started anew in every round."""
    if not self._drawn:
        self._kept = REAL_DRAW(self._sampler, mechanism, 1000)
    self._drawn.append(self._kept[:entries].copy())
    return self._drawn[-1].copy()


def test_half_the_noise_is_refuted(monkeypatch):
    monkeypatch.setattr(SimulationSampler, "draw", half_noise)
    report = run_audit(make_job(**SMALLEST), runs=QUADRUPLE_COST, monkeypatch=monkeypatch)
    assert report.violates
    assert "likelihood ratio of all rounds" in report.event


def test_one_seed_for_two_noises_is_refuted(monkeypatch):
    monkeypatch.setattr(SimulationSampler, "draw", one_seed_for_two_noises)
    report = run_audit(make_job(), monkeypatch=monkeypatch)
    assert report.violates
    assert "move together" in report.event


def test_noise_reused_across_rounds_is_refuted(monkeypatch):
    monkeypatch.setattr(KeptNoise, "draw", reused_in_every_round)
    report = run_audit(make_job(), monkeypatch=monkeypatch)
    assert report.violates
    assert "move together" in report.event


def test_noise_that_the_receiver_knows_is_refuted(monkeypatch):
    """The mutant of shared noise: only the adversary adds any, and it can subtract its own."""
    monkeypatch.setattr(Shared, "mechanism_for_share", lambda self, target: replace(target, sigma=1e-3))
    monkeypatch.setattr(Shared, "released_mechanism", lambda self, target: target)
    monkeypatch.setattr(Shared, "total_variance", lambda self, target: target.sigma**2)  # so it believes
    assert run_audit(make_job(placement="shared", colluding_max=1, **SMALLEST), whole=True).violates


# --- mutants of what a record adds ----------------------------------------------------------------------------------


def measured_twice(*, measure, **rest):
    """Records add twice what the query declares, whoever poses it."""
    return Query(measure=lambda records: 2 * measure(records), **rest)


def halved(settings, stream):
    """The algorithm, given half of each total."""
    asking = REAL_PIPELINE(settings, stream)
    query = next(asking)
    while True:
        total = yield query
        try:
            query = asking.send(total // 2)
        except StopIteration as stop:
            return stop.value


def unclipped_offsets(records, centres, radii, *, scale, weight, join=None):
    out = np.zeros((len(centres), centres.shape[1] + 2), dtype=np.int64)
    for batch in records.batches():
        out[0, :-2] += np.rint((batch - centres[0]) / radii[0] * scale).astype(np.int64).sum(axis=0)  # k = 1
        out[0, -1] += weight * len(batch)
    return out


def unshortened_moments(offsets, radius, reach):
    return np.rint(offsets * (reach / radius))


def test_half_the_sensitivity_is_refuted(monkeypatch):
    monkeypatch.setattr(queries, "Query", measured_twice)
    monkeypatch.setattr(protocol, "run_synopsis", halved)
    assert run_audit(make_job(**SMALLEST), runs=QUADRUPLE_COST, monkeypatch=monkeypatch).violates


def test_lloyd_offsets_that_are_not_clipped_are_refuted(monkeypatch):
    monkeypatch.setattr(refinement, "sum_offsets", unclipped_offsets)
    report = run_audit(make_job(), monkeypatch=monkeypatch)
    assert report.violates
    assert "Lloyd" in report.event or "all rounds" in report.event


def test_a_scale_that_members_take_from_their_own_data_is_refuted(monkeypatch):
    """A record far away moves everybody's coordinates."""
    monkeypatch.setattr(Scaled, "form", own_scale)
    assert run_audit(make_job(scale="spread"), monkeypatch=monkeypatch).violates


def test_moments_that_are_not_clipped_are_refuted(monkeypatch):
    monkeypatch.setattr(statistics, "_shorten", unshortened_moments)
    report = run_audit(make_job(dimensions=6), monkeypatch=monkeypatch)
    assert report.violates
    assert "second moments" in report.event or "all rounds" in report.event


def test_a_client_that_is_not_bounded_is_refuted(monkeypatch):
    monkeypatch.setattr(queries, "bound_client", lambda exact, l2_squared: exact)
    assert run_audit(make_job(unit=Unit.CLIENT), monkeypatch=monkeypatch).violates


# --- mutants of the budget ------------------------------------------------------------------------------------------


MANY_ROUNDS = replace(KNOBS, rounds_min=5, rounds_max=5)


def take_the_whole_budget(monkeypatch):
    """Forget the split: count, histogram and each of five rounds of Lloyd's algorithm get all there is."""
    for name, times in {"find_number": 1, "release_histogram": 1, "refine_centres": 5}.items():
        real = getattr(pipeline, name)
        monkeypatch.setattr(
            pipeline,
            name,
            lambda *given, real=real, times=times, **options: real(
                *given, **{**options, "l2_squared": times * BUDGET_UNITS}
            ),
        )


def test_a_budget_that_is_spent_more_than_once_is_refused_by_all_parties_and_by_the_books(monkeypatch):
    take_the_whole_budget(monkeypatch)
    with pytest.raises(TooFewPartiesError):
        run_audit(make_job(knobs=MANY_ROUNDS), whole=True)
    monkeypatch.setattr(GuidedSettings, "prices_most", 10**30)  # mutant: nobody looks what is left
    with told_to_owner(BudgetError):
        run_audit(make_job(knobs=MANY_ROUNDS), whole=True)


def test_a_budget_that_is_spent_more_than_once_is_refuted(monkeypatch):
    """Where neither the parties nor the books look."""
    take_the_whole_budget(monkeypatch)
    monkeypatch.setattr(GuidedSettings, "prices_most", 10**30)
    monkeypatch.setattr(Accountant, "charge", NoBooks.charge)
    assert run_audit(make_job(knobs=MANY_ROUNDS), runs=FEW + 200, monkeypatch=monkeypatch).violates


def count_all(records):
    """As large as a whole budget allows."""
    return np.array([2**28 * sum(len(batch) for batch in records.batches())], dtype=np.int64)


def test_an_idle_round_that_carries_data_for_nothing_is_refuted(monkeypatch):
    """With one declared record, eight of nine rounds of Lloyd's algorithm are idle; the books see none of them."""
    smuggled = Query(name="nothing", question=Idle(), measure=count_all, length=1, l2_squared=1)
    object.__setattr__(smuggled, "l2_squared", 0)  # a query itself refuses to ask for numbers at no cost
    monkeypatch.setattr(refinement, "IDLE", smuggled)
    pose = statements.pose
    monkeypatch.setattr(statements, "pose", lambda *given: smuggled if given[2] == Idle() else pose(*given))
    # Where the parties add the noise, one that answers nothing sends nothing but noise: the mutant is harmless there.
    job = make_job(records=1, knobs=replace(KNOBS, rounds_min=1, rounds_max=9), placement="aggregator")
    assert run_audit(job, monkeypatch=monkeypatch).violates


# --- the command ----------------------------------------------------------------------------------------------------


def test_the_command_audits_the_default_protocol(tmp_path, monkeypatch):
    path = tmp_path / "job.toml"
    path.write_text(
        'name = "small"\n[budget]\nepsilon = 8\ndelta = 1e-6\n[clusters]\nk = 1\n'
        "[columns]\nx = { low = 0, high = 10 }\n"
        "[synopsis]\ncells_max = 16\nrounds_min = 1\nrounds_max = 1\nrestarts = 1\n"
        '[[parties]]\nname = "a"\ndata = "a.csv"\n[[parties]]\nname = "b"\ndata = "b.csv"\n'
    )
    monkeypatch.setattr(attacks, "GuidedSessions", Rehearsed)
    monkeypatch.setattr(SimulationSampler, "draw", one_seed_for_two_noises)
    broken = CliRunner().invoke(app, ["audit", str(path), "--claim", "--runs", "400"])
    assert broken.exit_code == EXIT_REFUTED, broken.output
    assert "VIOLATES the claim" in broken.stdout
    assert "claimed 8" in broken.stdout
