"""Attacks on FedDP-KMeans at both levels: a sound run is not refuted, and the authors' mistakes are, each by itself."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import ndtri

from cloister.audit.attack import KeptNoise
from cloister.columns import Column
from cloister.errors import BudgetError, ConfigError
from cloister.job import Budget, DataOptions, Job, JobParty, Setup
from cloister.privacy.mechanisms import DiscreteLaplace
from cloister.privacy.simulation_sampler import SimulationSampler
from cloister.privacy.units import Unit
from cloister.protocol import prepare_audit, read_public_input
from cloister.protocols.feddp import protocol, published_noise, published_questions, settings
from cloister.protocols.feddp.options import FeddpOptions, FeddpSection
from cloister.protocols.guided_sums import postprocessing, statistics
from cloister.protocols.guided_sums import query as queries
from tests.protocols.guided_sums import rehearsed
from tests.protocols.guided_sums.rehearsed import half_noise, one_seed_for_two_noises

FEW = 400


@pytest.fixture(autouse=True)
def _estimate_roughly(monkeypatch):
    """What is made of a total costs no privacy; here it need not be good."""
    monkeypatch.setattr(postprocessing, "_PRIOR_STEPS", 2)
    monkeypatch.setattr(postprocessing, "_SHRINK_STEPS", 2)


def make_setup(folder, *, unit=Unit.RECORD, records=None, epsilon=8.0, **options):
    rng = np.random.default_rng(1)
    header = "x0,x1"
    np.savetxt(folder / "server.csv", 5 + rng.uniform(-1, 1, size=(6, 2)), delimiter=",", header=header, comments="")
    section = FeddpSection(lloyd_steps=0, **({} if "variant" in options else {"restarts": 1}))
    job = Job(
        name="audited",
        k=1,
        columns=(Column(name="x0", low=0, high=10), Column(name="x1", low=0, high=10)),
        parties=(JobParty(name="a"), JobParty(name="b")),
        protocol=FeddpOptions(section=section, **options),
        data=DataOptions(records=records, server="server.csv"),
        budget=Budget(epsilon=epsilon, delta=1e-6, unit=unit),
    )
    return Setup(job=job, folder=folder)


def run_audit(setup, monkeypatch, *, runs=FEW, whole=False):
    return rehearsed.run_audit(setup, "feddp audit", None if whole else monkeypatch, runs=runs)


CASES = {
    "record": {},
    "client": {"unit": Unit.CLIENT},
    "published": {"variant": "published", "epsilon": 4.0},
    "published, client": {"variant": "published", "unit": Unit.CLIENT, "records": 40, "epsilon": 4.0},
}


@pytest.mark.parametrize("case", CASES)
def test_a_sound_run_is_not_refuted(case, monkeypatch, tmp_path):
    report = run_audit(make_setup(tmp_path, **CASES[case]), monkeypatch)
    assert not report.violates, report.text()


def test_a_whole_session_is_not_refuted(monkeypatch, tmp_path):
    assert not run_audit(make_setup(tmp_path), monkeypatch, whole=True).violates


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
    report = run_audit(make_setup(tmp_path, **CASES[case]), monkeypatch)
    assert report.violates
    assert "move together" in report.event


@pytest.mark.parametrize("case", CASES)
def test_one_noise_for_all_numbers_of_a_release_is_refuted(case, monkeypatch, tmp_path):
    monkeypatch.setattr(SimulationSampler, "draw", one_seed_for_two_noises)
    assert run_audit(make_setup(tmp_path, **CASES[case]), monkeypatch).violates


def noise_for_length(budget, bounds, steps):
    sound = published_noise.calibrate_published(budget, bounds, steps)
    return replace(sound, products=replace(sound.products, sigma=sound.products.sigma / bounds.sums_l2))


def test_delta_instead_of_its_square_is_refuted(monkeypatch, tmp_path):
    """The authors' code: the noise of the outer products is scaled to the length of a record, not to its square."""
    monkeypatch.setattr(settings, "calibrate_published", noise_for_length)
    monkeypatch.setattr(protocol, "list_plan", lambda settings: None)  # sound books refuse it
    assert run_audit(make_setup(tmp_path, **CASES["published"]), monkeypatch).violates


def test_delta_instead_of_its_square_is_refused_by_the_books(monkeypatch, tmp_path):
    monkeypatch.setattr(settings, "calibrate_published", noise_for_length)
    with pytest.raises(BudgetError, match="a plan must cost at most"):
        run_audit(make_setup(tmp_path, **CASES["published"]), monkeypatch, whole=True)


def test_records_clipped_in_step_1_only_are_refuted(monkeypatch, tmp_path):
    """The authors' code: later sums are of records as long as they are. The corner is five times as long as Delta."""
    setup = make_setup(tmp_path, **CASES["published"])
    longest = np.sqrt((read_public_input(setup).server ** 2).sum(axis=1).max())
    assert 4 < np.sqrt(2) / longest < 7
    real = published_questions._measure_sums

    def unclipped(shorten, label, k, bounds, *, whole):
        return real(
            lambda points: np.rint(points * published_questions.LENGTH / longest), label, k, bounds, whole=whole
        )

    monkeypatch.setattr(published_questions, "_measure_sums", unclipped)
    assert run_audit(setup, monkeypatch, runs=800).violates


def test_moments_of_records_as_long_as_they_are_are_refuted(monkeypatch, tmp_path):
    monkeypatch.setattr(statistics, "_shorten", lambda offsets, radius, reach: np.rint(offsets * (reach / radius)))
    assert run_audit(make_setup(tmp_path), monkeypatch).violates


def test_a_client_that_is_not_bounded_is_refuted(monkeypatch, tmp_path):
    monkeypatch.setattr(queries, "bound_client", lambda exact, l2_squared: exact)
    assert run_audit(make_setup(tmp_path, unit=Unit.CLIENT), monkeypatch).violates


def test_a_client_that_is_not_clipped_is_refuted(monkeypatch, tmp_path):
    monkeypatch.setattr(published_questions, "clip_client", lambda exact, longest: 4 * exact)
    assert run_audit(make_setup(tmp_path, **CASES["published, client"]), monkeypatch).violates


def test_half_the_noise_is_refuted(monkeypatch, tmp_path):
    monkeypatch.setattr(SimulationSampler, "draw", half_noise)
    assert run_audit(make_setup(tmp_path), monkeypatch, runs=1200).violates


def test_a_job_that_asks_samples_is_not_audited(tmp_path):
    setup = make_setup(tmp_path)
    section, parties = FeddpSection(sample=2), (*setup.job.parties, JobParty(name="c"))
    job = replace(setup.job, parties=parties, protocol=FeddpOptions(section=section, min_parties=2))
    with pytest.raises(ConfigError, match="must ask all parties in every round"):
        prepare_audit(replace(setup, job=job))
