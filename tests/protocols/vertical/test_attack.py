"""Attacks on vertical clusterings, in both views: a sound session is not refuted, and one broken on purpose is.

Audits rehearse: the same algorithm, records and noise without encryption and messages, which a session equals to the
last digit (a test here holds it to that). ``CLOISTER_LONG=1`` runs all of them as sessions, with more runs.
"""

import os
from dataclasses import replace
from math import sqrt

import numpy as np
import pytest
from typer.testing import CliRunner

from cloister.audit import Neighbour, audit
from cloister.audit.attack import KeptNoise
from cloister.cli import app
from cloister.cli.failures import EXIT_REFUTED
from cloister.columns import Column
from cloister.crypto import Stream
from cloister.job import Budget, DataOptions, Job, JobParty, make_options
from cloister.privacy.accounting import Accountant
from cloister.privacy.release import NoiseDuty
from cloister.privacy.simulation_sampler import SimulationSampler
from cloister.protocol import prepare_audit
from cloister.protocols.guided_sums import postprocessing
from cloister.protocols.vertical import algorithm, computing, holder, protocol, statistics
from cloister.protocols.vertical import attack as attack_module
from cloister.protocols.vertical.agreement import VerticalAgreement
from cloister.protocols.vertical.algorithm import run_vertical
from cloister.protocols.vertical.attack import VerticalSessions, find_shares, list_coalitions
from cloister.protocols.vertical.attack_views import Observed
from cloister.protocols.vertical.codebook import Codebooks
from cloister.protocols.vertical.codebook_makers import make_alice_codebook, make_holder_codebook
from cloister.protocols.vertical.noise import ChargedFlood, pay_share
from cloister.protocols.vertical.settings import Knobs, Settings
from cloister.protocols.vertical.statistics import align_records, exact_total

LONG = bool(os.environ.get("CLOISTER_LONG"))
SLOW = pytest.mark.skipif(not LONG, reason="takes minutes; set CLOISTER_LONG=1")
FEW = 2000 if LONG else 400  # runs per input, the fewest that an audit takes: for what gives itself away
# Where the mutant costs four times the claimed rho: the mean bound is then some four deviations above the claim.
QUADRUPLE_COST = 4000 if LONG else 1200
COMPUTING, KEY_HOLDER = 0, 2  # the attacks, with a record at the corner, in either view
KNOBS = Knobs(box_share=0, restarts=1, start_cells_least=8, start_cells_most=16)
REAL_DRAW = SimulationSampler.draw
REAL_SIGMA = Settings.sigma_for
REAL_AGREEMENT = protocol.make_agreement
ONE_ROUND = {"initialisation": "random", "iterations": 1}
FAR = np.array([-1.0, -0.9])  # both centres opposite to the record: its offsets are as long as they may be
# One near the record, and all other records draw it away: what the record adds is short first and then long.
NEAR = np.array([0.6, -0.95])


def make_job(*, held=(("x",), ("y",)), epsilon=8.0, **options):
    names = [name for columns in held for name in columns]
    return Job(
        name="audited",
        k=2,
        columns=tuple(Column(name=name, low=0, high=10) for name in names),
        parties=tuple(JobParty(name=f"p{i}", columns=columns) for i, columns in enumerate(held)),
        protocol=make_options("vertical", cells=4, **options),
        data=DataOptions(aligned=True),
        budget=Budget(epsilon=epsilon, delta=1e-6),
    )


@pytest.fixture(autouse=True)
def _estimate_roughly(monkeypatch):
    """What is made of a total costs no privacy; here it need not be good."""
    monkeypatch.setattr(postprocessing, "_PRIOR_STEPS", 2)
    monkeypatch.setattr(postprocessing, "_SHRINK_STEPS", 2)

    def agree(*given, **options):
        agreement = REAL_AGREEMENT(*given, **options)
        return replace(agreement, settings=replace(agreement.settings, knobs=KNOBS))

    monkeypatch.setattr(protocol, "make_agreement", agree)
    start_at(FAR, monkeypatch)


def start_at(places, monkeypatch):
    """Random centres are public and depend on no record, so a claim must hold for any: along the diagonal, here."""
    monkeypatch.setattr(algorithm, "sphere_packing", lambda stream, k, d: np.repeat(places[:k, None], d, axis=1))


class Rehearsed(VerticalSessions):
    """The same without encryption and messages; errors of ciphertexts are not there to be read."""

    def __init__(self, view, identities, *, reads_errors):
        super().__init__(view, identities, reads_errors=False)

    def _observe(self, table, samplers, entropies):
        agreement = self._view.agreement
        settings, layout = agreement.settings, agreement.settings.layout
        drawn = [sampler.start() for sampler in samplers]
        duties = [NoiseDuty(charger=Accountant(settings.budget), sampler=sampler) for sampler in samplers]
        stream = Stream(entropies[0].bytes(32))
        codebooks = Codebooks(
            alice=make_alice_codebook(
                settings, layout.alice_part(table), duty=duties[agreement.computing], stream=stream.child("alice")
            ),
            holders=tuple(
                make_holder_codebook(
                    settings, i, layout.holder_part(table, i), duty=duties[party], stream=stream.child("holder", i)
                )
                for i, party in enumerate(agreement.encrypted)
            ),
        )
        records = align_records(table, layout, codebooks)
        asking = run_vertical(settings, codebooks, stream)
        queries, totals = [next(asking)], []
        while True:
            query = queries[-1]
            total = exact_total(query, records, codebooks)
            total += computing.pay_share(settings, query.parts, duties[agreement.computing])
            if isinstance(agreement.flood, ChargedFlood):
                samplers[agreement.computing].draw(agreement.flood.price(query).mechanism, 1)
            for party in agreement.key_holders[: agreement.decryptors]:
                total += holder.pay_share(settings, query.parts, duties[party])
            totals.append(total)
            try:
                queries.append(asking.send(total))
            except StopIteration:
                break
        shares = find_shares(agreement, queries, drawn)
        return Observed(codebooks=codebooks, queries=queries, totals=totals, shares=shares, errors=None)


@pytest.fixture
def rehearsed(monkeypatch):
    if not LONG:
        monkeypatch.setattr(attack_module, "VerticalSessions", Rehearsed)


def run_audit(job, *, attack, runs=FEW):
    prepared = prepare_audit(job)
    return audit(
        prepared.attacks[attack], claim=prepared.claim, stream=Stream.from_seed(5, "vertical audit"), runs=runs
    )


# --- sound ----------------------------------------------------------------------------------------------------------


CASES = {
    "random centres": ONE_ROUND,
    "histogram and two rounds": {},
    "private codebooks": {"held": (("a", "b", "c"), ("x", "y", "z"))},
    "collective": {"held": (("x",), ("y",), ()), **ONE_ROUND},
}


@pytest.mark.parametrize("attack", [COMPUTING, KEY_HOLDER], ids=["computing", "key holder"])
@pytest.mark.parametrize("case", ["random centres", "histogram and two rounds"])
def test_a_sound_clustering_is_not_refuted(case, attack, rehearsed):
    report = run_audit(make_job(**CASES[case]), attack=attack)
    assert not report.violates, report.text()
    assert report.claim.epsilon == 8.0


@SLOW
@pytest.mark.parametrize("attack", range(4))
@pytest.mark.parametrize("case", CASES)
def test_no_view_of_whole_sessions_refutes(case, attack):
    report = run_audit(make_job(**CASES[case]), attack=attack)
    assert not report.violates, report.text()


@pytest.mark.parametrize("attack", [COMPUTING, KEY_HOLDER], ids=["computing", "key holder"])
@pytest.mark.parametrize("case", ["random centres", "histogram and two rounds", "collective"])
def test_the_attack_sees_what_is_promised_and_no_more(case, attack, rehearsed):
    """With Gaussian noise the score's means lie mu = sqrt(2 rho) deviations apart if all of rho is used.

    A histogram's start puts centres near the record, whose offsets then use less. 100 runs an input: the distance is
    known to 0.15.
    """
    prepared = prepare_audit(make_job(**CASES[case]))
    run = prepared.attacks[attack].run
    without, present = (run(side, 100, Stream.from_seed(2, side.value))[:, 0] for side in Neighbour)
    apart = (present.mean() - without.mean()) / np.sqrt((present.var() + without.var()) / 2)
    claimed = (2 * prepared.claim.rho) ** 0.5
    assert (0.6 if case == "histogram and two rounds" else 0.9) * claimed - 0.5 < apart < claimed + 0.75


def test_a_record_far_outside_adds_no_more_than_one_in_the_corner(rehearsed):
    attacks = prepare_audit(make_job(**ONE_ROUND)).attacks
    corner, outside = (attack.run(Neighbour.WITH, 3, Stream.from_seed(1, "same")) for attack in attacks[:2])
    assert np.array_equal(corner, outside)
    assert "corner" in attacks[0].name
    assert "far outside" in attacks[1].name


# --- sessions -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [ONE_ROUND, {}, {"held": (("x",), ("y",), ()), **ONE_ROUND}, {"held": (("x",), ("y",), ("z",)), **ONE_ROUND}],
    ids=["random", "histogram", "collective", "joint cells"],
)
@pytest.mark.parametrize("side", Neighbour)
def test_a_session_releases_the_exact_totals_and_the_noise_that_was_drawn(options, side):
    """What rehearsals stand on: on both inputs, and also where the last record is not there."""
    prepared = prepare_audit(make_job(**options))
    sessions = prepared.attacks[KEY_HOLDER].run.__self__
    view, stream = sessions._view, Stream.from_seed(3, "session")
    parties = range(view.agreement.parties + 1)
    table = view.known if side is Neighbour.WITHOUT else np.vstack([view.known, view.record])
    seen = sessions._observe(
        table, [KeptNoise(stream.child("noise", i)) for i in parties], [stream.child("keys", i) for i in parties]
    )
    records = align_records(table, view.agreement.settings.layout, seen.codebooks)
    assert [query.name for query in seen.queries] == list(view.agreement.queries)
    assert len(seen.shares) == view.agreement.settings.placement.parties
    for number, (query, total) in enumerate(zip(seen.queries, seen.totals, strict=True)):
        noise = sum(own[number] for own in seen.shares.values())
        assert np.array_equal(total, exact_total(query, records, seen.codebooks) + noise)


def test_every_session_of_an_audit_has_keys_of_its_own(monkeypatch):
    """Otherwise its runs would not be independent of each other."""
    drawn = []
    real = attack_module.run_local

    def run_noting(coordinator, parties, **options):
        drawn.extend(party._private.child("noted").bytes(16) for party in parties)
        return real(coordinator, parties, **options)

    monkeypatch.setattr(attack_module, "run_local", run_noting)
    prepare_audit(make_job(**ONE_ROUND)).attacks[KEY_HOLDER].run(Neighbour.WITH, 2, Stream.from_seed(1, "keys"))
    assert len(drawn) == len(set(drawn)) == 4


def read_error_fits(job, runs):
    """What the key holder makes of the low bits of a round's answer, by input."""
    attack = prepare_audit(job).attacks[KEY_HOLDER]
    place = attack.labels.index("errors of 'Lloyd round 1'")
    return [attack.run(side, runs, Stream.from_seed(4, side.value))[:, place] / 2**20 for side in Neighbour]


def test_the_low_bits_of_an_answer_tell_the_key_holder_nothing():
    """What it looks for is 0 or 1; what it finds scatters by ten millions."""
    assert all(fits.std() > 10**5 for fits in read_error_fits(make_job(**ONE_ROUND), 4))


def test_an_answer_without_flood_and_rounding_gives_the_record_away(monkeypatch):
    monkeypatch.setattr(computing, "add_error", lambda batch, integers: batch)
    monkeypatch.setattr(VerticalAgreement, "switch_bits", 60)
    without, present = read_error_fits(make_job(offset_bits=12, **ONE_ROUND), 4)
    assert np.abs(without).max() < 0.4
    assert np.abs(present - 1).max() < 0.4


def test_residuals_have_errors_of_their_own(monkeypatch):
    monkeypatch.setattr(computing, "add_error", lambda batch, integers: batch)
    monkeypatch.setattr(VerticalAgreement, "switch_bits", 60)
    without, present = read_error_fits(make_job(offset_bits=12, residuals=True, **ONE_ROUND), 3)
    assert np.abs(without).max() < 0.4
    assert np.abs(present - 1).max() < 0.4


def test_as_many_collude_as_may():
    two = prepare_audit(make_job()).attacks
    assert [attack.name.rpartition("as ")[2] for attack in two[::2]] == [
        "the computing party sees it",
        "the key holder sees it",
    ]
    collective = prepare_audit(make_job(held=(("x",), ("y",), (), ()), computing="p0")).attacks
    agreement = collective[0].run.__self__._view.agreement
    with_alice, without = list_coalitions(agreement)
    assert with_alice.members == (1, 2, 3)
    assert without.members == (2, 3, 4)
    assert not without.reads_errors


# --- mutants: who adds noise ----------------------------------------------------------------------------------------


def drawn_for_nothing(settings, parts, duty):
    """Noise that is drawn, paid for, and not added."""
    return 0 * pay_share(settings, parts, duty)


def test_only_alice_adds_noise_and_alice_sees_everything(monkeypatch, rehearsed):
    monkeypatch.setattr(holder, "pay_share", drawn_for_nothing)
    assert run_audit(make_job(**ONE_ROUND), attack=COMPUTING).violates
    assert not run_audit(make_job(**ONE_ROUND), attack=KEY_HOLDER).violates


def test_only_the_key_holder_adds_noise_and_it_sees_everything(monkeypatch, rehearsed):
    monkeypatch.setattr(computing, "pay_share", drawn_for_nothing)
    assert run_audit(make_job(**ONE_ROUND), attack=KEY_HOLDER).violates
    assert not run_audit(make_job(**ONE_ROUND), attack=COMPUTING).violates


@pytest.mark.parametrize(("module", "attack"), [(holder, COMPUTING), (computing, KEY_HOLDER)])
def test_in_whole_sessions_too_a_share_that_is_missing_shows_exact_totals(module, attack, monkeypatch):
    """Less its own noise and all records that it knows, nothing is left; or exactly the record."""
    whole = prepare_audit(make_job(**ONE_ROUND)).attacks[attack]
    first = whole.labels.index("'Lloyd round 1', number 1")
    left = slice(first, first + 6)
    assert whole.run(Neighbour.WITHOUT, 1, Stream.from_seed(1, "sound"))[0, left].any()
    monkeypatch.setattr(module, "pay_share", drawn_for_nothing)
    assert not whole.run(Neighbour.WITHOUT, 2, Stream.from_seed(1, "mutant"))[:, left].any()
    counts = whole.run(Neighbour.WITH, 2, Stream.from_seed(1, "mutant"))[:, first + 4 : first + 6]
    assert counts.sum(axis=1).tolist() == [1, 1]


# --- mutants: how much ----------------------------------------------------------------------------------------------


def half_noise(self, mechanism, entries, on_progress=None):
    return REAL_DRAW(self, replace(mechanism, sigma=mechanism.sigma / 2), entries)


def reused_in_every_round(self, mechanism, entries, on_progress=None):
    """The generators of sums' and of counts' noise are started anew in every round."""
    if not self._drawn:
        self._kept = {}
    if entries not in self._kept:
        self._kept[entries] = REAL_DRAW(self._sampler, replace(mechanism, sigma=2.0**20), entries)
    self._drawn.append(np.rint(self._kept[entries] * (mechanism.sigma / 2.0**20)).astype(np.int64))
    return self._drawn[-1].copy()


def half_the_sensitivity(self, l2_squared, rho):
    return REAL_SIGMA(self, l2_squared, rho) / 2


@pytest.mark.parametrize("attack", [COMPUTING, KEY_HOLDER], ids=["computing", "key holder"])
def test_half_the_noise_is_refuted(attack, monkeypatch, rehearsed):
    monkeypatch.setattr(SimulationSampler, "draw", half_noise)
    report = run_audit(make_job(**ONE_ROUND), attack=attack, runs=QUADRUPLE_COST)
    assert report.violates, report.text()
    assert "likelihood ratio" in report.event


def test_half_the_sensitivity_is_refuted(monkeypatch, rehearsed):
    monkeypatch.setattr(Settings, "sigma_for", half_the_sensitivity)
    monkeypatch.setattr(Accountant, "charge", lambda self, release: None)  # the books would refuse
    assert run_audit(make_job(**ONE_ROUND), attack=COMPUTING, runs=QUADRUPLE_COST).violates


@pytest.mark.parametrize("attack", [COMPUTING, KEY_HOLDER], ids=["computing", "key holder"])
def test_offsets_that_are_not_clipped_are_refuted(attack, monkeypatch, rehearsed):
    monkeypatch.setattr(statistics, "round_to_length", lambda vectors, longest: np.rint(vectors).astype(np.int64))
    report = run_audit(make_job(held=(("a", "b"), ("y",)), **ONE_ROUND), attack=attack)
    assert report.violates, report.text()


@pytest.mark.parametrize("attack", [COMPUTING, KEY_HOLDER], ids=["computing", "key holder"])
def test_noise_reused_across_rounds_is_refuted(attack, monkeypatch, rehearsed):
    monkeypatch.setattr(KeptNoise, "draw", reused_in_every_round)
    start_at(NEAR, monkeypatch)
    report = run_audit(make_job(**{**ONE_ROUND, "iterations": 2}), attack=attack)
    assert report.violates, report.text()
    assert "move together" in report.event


# --- the command ----------------------------------------------------------------------------------------------------


def test_the_command_audits_a_vertical_job(tmp_path, monkeypatch):
    path = tmp_path / "job.toml"
    path.write_text(
        'name = "small"\n[budget]\nepsilon = 8\ndelta = 1e-6\n[clusters]\nk = 2\n'
        "[columns]\nx = { low = 0, high = 10 }\ny = { low = 0, high = 10 }\n[data]\naligned = true\n"
        '[protocol]\nname = "vertical"\ninitialisation = "random"\niterations = 1\ncells = 2\n'
        '[[parties]]\nname = "a"\ndata = "a.csv"\ncolumns = ["x"]\n'
        '[[parties]]\nname = "b"\ndata = "b.csv"\ncolumns = ["y"]\n'
    )
    monkeypatch.setattr(attack_module, "VerticalSessions", Rehearsed)
    monkeypatch.setattr(holder, "pay_share", drawn_for_nothing)
    broken = CliRunner().invoke(app, ["audit", str(path), "--claim", "--runs", "400"])
    assert broken.exit_code == EXIT_REFUTED, broken.output
    assert "as the computing party sees it" in broken.stdout
    assert "VIOLATES the claim" in broken.stdout


def test_the_claim_is_the_whole_budget():
    prepared = prepare_audit(make_job(epsilon=1.0))
    assert prepared.claim.epsilon == 1.0
    assert sqrt(prepared.claim.rho) < 1.0 / 2
