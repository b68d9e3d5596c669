"""A4 on FedDP-KMeans at both levels: a sound run is not refuted, and the authors' mistakes are, each by itself."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import ndtri

from cloister.audit import audit, feddp_sessions
from cloister.audit.adversary import KeptNoise
from cloister.audit.end_to_end import prepare_audit
from cloister.crypto import Stream
from cloister.data import Column
from cloister.errors import BudgetError
from cloister.job import Budget, Job, JobParty, ProtocolOptions
from cloister.job.feddp_section import FeddpSection
from cloister.job.model import DataOptions
from cloister.privacy.mechanisms import DiscreteLaplace
from cloister.privacy.simulation_sampler import SimulationSampler
from cloister.privacy.units import Unit
from cloister.protocols.feddp import published, published_noise, settings
from cloister.protocols.guided_sums import bounding, denoising, moments, shrinkage
from cloister.simulation.feddp import read_server
from tests.audit.test_synopsis_audit import REAL_DRAW, Rehearsed, one_seed_for_two_noises

FEW = 400


@pytest.fixture(autouse=True)
def _think_less(monkeypatch):
    """What is made of a total costs no privacy; here it need not be good."""
    monkeypatch.setattr(denoising, "_STEPS", 2)
    monkeypatch.setattr(shrinkage, "_EM_STEPS", 2)


def make_job(folder, *, unit=Unit.RECORD, records=None, epsilon=8.0, **options):
    rng = np.random.default_rng(1)
    header = "x0,x1"
    np.savetxt(folder / "server.csv", 5 + rng.uniform(-1, 1, size=(6, 2)), delimiter=",", header=header, comments="")
    return Job(
        name="audited",
        k=1,
        columns=(Column(name="x0", low=0, high=10), Column(name="x1", low=0, high=10)),
        parties=(JobParty(name="a"), JobParty(name="b")),
        protocol=ProtocolOptions(name="feddp", **options),
        data=DataOptions(records=records, server="server.csv"),
        budget=Budget(epsilon=epsilon, delta=1e-6, unit=unit),
        feddp=FeddpSection(lloyd_steps=0, **({} if "variant" in options else {"restarts": 1})),
        folder=folder,
    )


def run_audit(job, monkeypatch, *, runs=FEW, whole=False, attack=0):
    if not whole:
        monkeypatch.setattr(feddp_sessions, "GuidedSessions", Rehearsed)
    prepared = prepare_audit(job)
    return audit(prepared.attacks[attack], claim=prepared.claim, stream=Stream.from_seed(5, "feddp audit"), runs=runs)


CASES = {
    "record": {},
    "client": {"unit": Unit.CLIENT},
    "published": {"variant": "published", "epsilon": 4.0},
    "published, client": {"variant": "published", "unit": Unit.CLIENT, "records": 40, "epsilon": 4.0},
}


@pytest.mark.parametrize("case", CASES)
def test_a_sound_run_is_not_refuted(case, monkeypatch, tmp_path):
    report = run_audit(make_job(tmp_path, **CASES[case]), monkeypatch)
    assert not report.violates, report.text()


def test_a_whole_session_is_not_refuted(monkeypatch, tmp_path):
    assert not run_audit(make_job(tmp_path), monkeypatch, whole=True).violates


def same_seed_for_every_release(self, mechanism, entries, on_progress=None):
    """One seed for all noises of a run: each is made of the same uniform numbers, by inversion, one by one.

    Generators that make normal numbers in another way relate the two less simply; that would take another statistic.
    """
    if not self._drawn:
        self._uniforms = np.clip(self._sampler._stream.uniform(1000), 1e-12, 1 - 1e-12)
    u = self._uniforms[:entries]
    if isinstance(mechanism, DiscreteLaplace):
        noise = -mechanism.scale * np.sign(u - 0.5) * np.log1p(-2 * np.abs(u - 0.5))
    else:
        noise = mechanism.sigma * ndtri(u)
    self._drawn.append(np.rint(noise).astype(np.int64))
    return self._drawn[-1].copy()


@pytest.mark.parametrize("case", CASES)
def test_one_seed_for_two_noises_is_refuted(case, monkeypatch, tmp_path):
    monkeypatch.setattr(KeptNoise, "draw", same_seed_for_every_release)
    report = run_audit(make_job(tmp_path, **CASES[case]), monkeypatch)
    assert report.violates
    assert "move together" in report.event


@pytest.mark.parametrize("case", CASES)
def test_one_noise_for_all_numbers_of_a_release_is_refuted(case, monkeypatch, tmp_path):
    monkeypatch.setattr(SimulationSampler, "draw", one_seed_for_two_noises)
    assert run_audit(make_job(tmp_path, **CASES[case]), monkeypatch).violates


def noise_for_length(budget, bounds, steps):
    sound = published_noise.calibrate_published(budget, bounds, steps)
    return replace(sound, products=replace(sound.products, sigma=sound.products.sigma / bounds.sums_l2))


def test_delta_instead_of_its_square_is_refuted(monkeypatch, tmp_path):
    """The authors' code: the noise of the outer products is scaled to the length of a record, not to its square."""
    monkeypatch.setattr(settings, "calibrate_published", noise_for_length)
    monkeypatch.setattr(feddp_sessions, "list_plan", lambda settings: None)  # sound books refuse it
    assert run_audit(make_job(tmp_path, **CASES["published"]), monkeypatch).violates


def test_delta_instead_of_its_square_is_refused_by_the_books(monkeypatch, tmp_path):
    monkeypatch.setattr(settings, "calibrate_published", noise_for_length)
    with pytest.raises(BudgetError, match="a plan must cost at most"):
        run_audit(make_job(tmp_path, **CASES["published"]), monkeypatch, whole=True)


def test_records_clipped_in_step_1_only_are_refuted(monkeypatch, tmp_path):
    """The authors' code: later sums are of records as long as they are. The corner is five times as long as Delta."""
    job = make_job(tmp_path, **CASES["published"])
    longest = np.sqrt((read_server(job) ** 2).sum(axis=1).max())
    assert 4 < np.sqrt(2) / longest < 7
    real = published._measure_sums

    def unclipped(shorten, label, k, bounds, *, whole):
        return real(lambda points: np.rint(points * published.LENGTH / longest), label, k, bounds, whole=whole)

    monkeypatch.setattr(published, "_measure_sums", unclipped)
    assert run_audit(job, monkeypatch, runs=800).violates


def test_moments_of_records_as_long_as_they_are_are_refuted(monkeypatch, tmp_path):
    monkeypatch.setattr(moments, "_shorten", lambda offsets, radius, reach: np.rint(offsets * (reach / radius)))
    assert run_audit(make_job(tmp_path), monkeypatch).violates


def test_a_client_that_is_not_bounded_is_refuted(monkeypatch, tmp_path):
    monkeypatch.setattr(bounding, "bound_client", lambda exact, l2_squared: exact)
    assert run_audit(make_job(tmp_path, unit=Unit.CLIENT), monkeypatch).violates


def test_a_client_that_is_not_clipped_is_refuted(monkeypatch, tmp_path):
    monkeypatch.setattr(published, "clip_client", lambda exact, longest: 4 * exact)
    job = make_job(tmp_path, **CASES["published, client"])
    assert run_audit(job, monkeypatch).violates


def test_half_the_noise_is_refuted(monkeypatch, tmp_path):
    def half(self, mechanism, entries, on_progress=None):
        return REAL_DRAW(self, replace(mechanism, sigma=mechanism.sigma / 2), entries)

    monkeypatch.setattr(SimulationSampler, "draw", half)
    assert run_audit(make_job(tmp_path), monkeypatch, runs=1200).violates
