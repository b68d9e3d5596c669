"""A sound release is not flagged; every mutant is, at every claim.

``CLOISTER_LONG=1`` also audits every mutant without the help of rho, which takes more runs, and sound releases with a
million (`make audit-long`).
"""

from dataclasses import replace

import pytest

from cloister.audit import Claim, audit
from cloister.crypto import Stream
from tests.audit import mutants
from tests.audit.mutants import LONG_RUNS, MUTANTS, QUADRUPLE_COST, SOUND
from tests.audit.reference import ReferenceRelease

CLAIMS = (0.5, 1.0, 3.0)
LONG = pytest.mark.skipif(not mutants.LONG, reason="takes minutes; set CLOISTER_LONG=1")


def named(cases):
    return [pytest.param(case, id=case.name) for case in cases]


def run_audit(release, runs, *, with_rho=True):
    claim = release.claim if with_rho else replace(release.claim, rho=None)
    return audit(release.attacks(), claim=claim, runs=runs, stream=Stream.from_seed(11, "mutants"))


@pytest.mark.parametrize("epsilon", CLAIMS)
@pytest.mark.parametrize("sound", named(SOUND))
def test_a_sound_release_is_not_flagged(sound, epsilon):
    release = ReferenceRelease(epsilon=epsilon, **sound.changes)
    report = run_audit(release, sound.runs[epsilon])
    assert not report.violates, report.text()
    if epsilon == 3.0:  # enough runs here to ask that the attack is alive: it must see a good part of what is there
        assert report.rho_lower > 0.2 * release.claim.rho


@pytest.mark.parametrize("epsilon", CLAIMS)
@pytest.mark.parametrize("mutant", named(MUTANTS))
def test_every_mutant_is_flagged(mutant, epsilon):
    release = ReferenceRelease(epsilon=epsilon, **mutant.changes)
    report = run_audit(release, mutant.runs[epsilon])
    assert report.violates, report.text()
    assert mutant.shown_by in report.text()


@pytest.mark.parametrize("epsilon", [pytest.param(0.5, marks=LONG), pytest.param(1.0, marks=LONG), 3.0])
def test_half_noise_is_flagged_from_epsilon_and_delta_alone(epsilon):
    """Without rho the event must lie in the tail; a release of two numbers is cheap enough to see it."""
    small = {"epsilon": epsilon, "dimensions": 1, "clusters": 1, "rounds": 1}
    runs = LONG_RUNS[epsilon]
    assert run_audit(ReferenceRelease(**small, noise_factor=0.5), runs, with_rho=False).refutes_epsilon
    assert not run_audit(ReferenceRelease(**small), runs, with_rho=False).violates


@LONG
@pytest.mark.parametrize("epsilon", CLAIMS)
@pytest.mark.parametrize("mutant", named(MUTANTS))
def test_every_mutant_is_flagged_from_epsilon_and_delta_alone(mutant, epsilon):
    release = ReferenceRelease(epsilon=epsilon, **mutant.changes)
    report = run_audit(release, LONG_RUNS[epsilon], with_rho=False)
    assert report.refutes_epsilon, report.text()


def test_a_claim_may_be_audited_against_what_the_release_really_costs():
    """Half noise costs four times rho: the audit agrees with that claim."""
    release = ReferenceRelease(epsilon=3.0, noise_factor=0.5)
    honest = Claim(epsilon=20.0, delta=release.claim.delta, rho=4 * release.claim.rho)
    report = audit(release.attacks(), claim=honest, runs=QUADRUPLE_COST[3.0], stream=Stream.from_seed(11, "honest"))
    assert not report.violates
