"""Vertical jobs, end to end: nearly the joint result, the same books and the same promise at every party."""

import dataclasses
import io
import logging

import numpy as np
import pandas as pd
import pytest

from cloister.columns import Column
from cloister.crypto import Identity, SeededEntropy
from cloister.data.samples.customers import write_customers
from cloister.errors import BudgetError, CloisterError, ConfigError
from cloister.job import Budget, DataOptions, Job, JobParty, OwnSide, Setup, make_options
from cloister.jobfile import load_setup
from cloister.lattice.noise import answer_error_bound
from cloister.privacy.calibration import rho_for
from cloister.privacy.costs import delta_of_rho, epsilon_of_rho, rho_of
from cloister.privacy.ledger import Ledger
from cloister.protocols.vertical.holder import HolderParty
from cloister.protocols.vertical.protocol import make_agreement, make_prepayment, make_settings
from cloister.report import write_result
from cloister.report.layout import make_console
from cloister.report.text import print_report
from cloister.sessions import simulate
from tests.data.test_canary import everything_said
from tests.owners import told_to_owner
from tests.sessions import blobs

NAMES = ("age", "income", "visits", "calls")
COLUMNS = tuple(Column(name=name, low=0, high=100) for name in NAMES)
UNIT = blobs(600, 4, 3, seed=6)
TABLE = 50 + 50 * UNIT
BUDGET = Budget(epsilon=2.0, delta=1e-6)
HELD = {"a": NAMES[:2], "b": NAMES[2:3], "c": NAMES[3:], "d": (), "e": ()}


def make_job(parties="ab", *, held=HELD, budget=BUDGET, k=3, **options):
    kept = {name: held[name] for name in parties}
    columns = tuple(column for column in COLUMNS if any(column.name in own for own in kept.values()))
    return Job(
        name="columns",
        k=k,
        columns=columns,
        parties=tuple(JobParty(name=name, columns=own) for name, own in kept.items()),
        protocol=make_options("vertical", **options),
        budget=budget,
        data=DataOptions(aligned=True, records=len(TABLE)),
    )


def sources_of(job):
    frame = pd.DataFrame(TABLE, columns=list(NAMES))
    return {party.name: frame[list(party.columns)] for party in job.parties if party.columns}


def run(job, *, books=None, seed=4, **options):
    """Run a job; in ``books``, if that is given, every party keeps a ledger, which seeds never charge."""
    own = {} if books is None else {party.name: OwnSide(ledger=books / f"{party.name}.ledger") for party in job.parties}
    return simulate(Setup(job=job, own=own, seed=seed if books is None else None), sources=sources_of(job), **options)


MODELS = {
    "two-party": {},
    "server-aided": {"parties": "abd", "model": "server-aided", "computing": "a", "key_holder": "d", "cells": 8},
    "collective": {"parties": "abd", "computing": "a", "cells": 8},
    "threshold": {"parties": "abde", "computing": "a", "threshold": 2, "cells": 4},
    "joint": {"parties": "abc", "computing": "a", "cells": 4},
}


@pytest.mark.parametrize("name", MODELS)
def test_a_private_job_finds_nearly_what_one_joint_table_gives_within_its_budget(name):
    job = make_job(**MODELS[name])
    result = run(job, evaluate=True)
    assert result.protocol == "vertical"
    assert result.centres.shape == (3, len(job.columns))
    assert (result.centres >= 0).all()
    assert (result.centres <= 100).all()
    assert 0.99 < result.evaluation.ratio < 1.6
    assert (result.sizes.total, result.sizes.total_noise) == (pytest.approx(len(TABLE)), 0)
    assert 0 < result.centre_noise.min() < result.centre_noise.max() < 30
    card = result.card
    assert BUDGET.epsilon < card.epsilon == card.budget_epsilon
    assert card.delta == card.budget_delta == BUDGET.delta
    assert sum(release.rho for release in card.releases) <= rho_for(BUDGET)
    shares = 2 if name in ("two-party", "server-aided") else 3
    assert make_settings(job, len(TABLE)).placement.parties == shares
    assert ("each adds all of it" if shares == 2 else "each of the 2 that decrypt") in card.who_adds_noise
    assert any("computed on ciphertexts" in note for note in result.notes)
    relay = [row for row in result.leakage if "relay" in row.role]
    assert [row.how for row in relay] == ["nothing of"]


def test_the_first_number_is_for_the_values_of_a_record_that_is_known_to_be_there():
    job = make_job()
    settings = make_settings(job, len(TABLE))
    weaker = epsilon_of_rho(settings.replacement_rho + 4 * settings.flood_rho, settings.noise_budget.delta)
    card = simulate(job, sources=sources_of(job), evaluate=False).card
    assert BUDGET.epsilon < card.epsilon == weaker < 4 * BUDGET.epsilon
    assert card.neighbours.startswith("the values of one record changed")
    assert "For one record added or removed epsilon is 2, as the job's budget says" in card.neighbours
    assert f"at most {np.exp(weaker):.3g}"[:11] in card.plain_words
    assert "if any one record that is known to be there had other values" in card.plain_words
    assert "Vertical sessions assume semi-honest parties" in card.breaks_if


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("delta", [1e-6, 1e-12])
def test_delta_covers_what_floods_show_and_bounds_that_fail(name, delta):
    """At 1e-12 all of it was 1,461 times delta once, and in no number on the card."""
    job = make_job(**MODELS[name], budget=Budget(epsilon=1.0, delta=delta))
    agreement = make_agreement(job, (b"x" * 32,) * len(job.parties), records=len(TABLE), alignment=None)
    settings = agreement.settings
    floods = 0 if name == "two-party" else 1 + (agreement.decryptors if agreement.is_collective else 0)
    events = sum(settings.lengths) * (floods + 2)  # bounds hold for both of two neighbours
    errors = 2.0**-60 if name == "two-party" else 0.0
    assert agreement.rare_delta == events * 2.0**-agreement.distance_bits + errors
    assert delta_of_rho(rho_for(settings.noise_budget), 1.0) + agreement.rare_delta <= delta
    assert agreement.load.failure_bits == agreement.distance_bits + 4
    # what is claimed of a flood is so in the ring that was chosen
    ours = answer_error_bound(agreement.parameters, agreement.load)
    error = ours if agreement.plan is None else agreement.plan.error_bound
    if floods:
        assert error / 2.0**agreement.smudge_bits <= 2.0**-agreement.distance_bits
    assert (agreement.distance_bits > 40) == (delta == 1e-12)


def test_a_mutant_that_keeps_nothing_of_delta_is_noticed():
    job = make_job(budget=Budget(epsilon=1.0, delta=1e-12))
    settings = make_settings(job, len(TABLE))
    agreement = make_agreement(job, (b"x" * 32,) * 2, records=len(TABLE), alignment=None)
    assert delta_of_rho(rho_for(settings.budget), 1.0) + agreement.rare_delta > 1e-12


@pytest.mark.parametrize("delta", [1e-15, 1e-18, 1e-300])  # also where no delta is left beside one error's 2^-60
def test_a_delta_that_rare_events_pass_is_refused(delta):
    job = make_job(budget=Budget(epsilon=1.0, delta=delta))
    with pytest.raises(ConfigError, match="delta must be at least about"):
        make_agreement(job, (b"x" * 32,) * 2, records=len(TABLE), alignment=None)


def test_without_a_budget_there_is_no_card_and_the_result_says_so():
    result = run(make_job(budget=None))
    assert result.card is None
    assert 0.99 < result.evaluation.ratio < 1.02
    assert any("nothing here is differentially private" in note for note in result.notes)
    sums = next(row for row in result.leakage if "without noise" in row.what and "party" in row.role)
    assert sums.how == "exactly"
    assert result.centre_noise is None
    assert (sum(result.sizes.clusters), set(result.sizes.noise)) == (600, {0})
    report = io.StringIO()
    print_report(result, make_console(report))
    assert "±" not in report.getvalue()
    assert "The sizes add up to 600 records." in report.getvalue()


def test_a_seed_repeats_a_job():
    first, again = (run(make_job(), evaluate=False) for _ in range(2))
    assert first.transcript_sha256 == again.transcript_sha256
    assert np.array_equal(first.centres, again.centres)
    other = run(make_job(), seed=5, evaluate=False)
    assert other.transcript_sha256 != first.transcript_sha256


@pytest.mark.parametrize("name", ["two-party", "server-aided", "threshold"])
def test_every_ledger_pays_for_the_whole_job_once(name, tmp_path):
    """Also that of a party which adds no noise: its columns are in every total."""
    job = make_job(**MODELS[name])
    run(job, books=tmp_path, evaluate=False)
    for party in job.parties:
        if party.columns:
            (entry,) = Ledger(tmp_path / f"{party.name}.ledger", create=False).summarise(delta=1e-6)
            assert entry.charges == 1
            assert 0.95 * BUDGET.epsilon < entry.epsilon <= BUDGET.epsilon
            paid = rho_for(make_settings(job, len(TABLE)).noise_budget)
            assert entry.epsilon == pytest.approx(epsilon_of_rho(paid, 1e-6), rel=1e-9)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 20.0])
def test_the_prepayment_is_the_budget_and_no_more(name, epsilon):
    budget = Budget(epsilon=epsilon, delta=1e-6)
    settings = make_settings(make_job(**MODELS[name], budget=budget), len(TABLE))
    rho = rho_of(make_prepayment(settings))
    assert 0.999999 * rho_for(settings.noise_budget) < rho <= rho_for(settings.noise_budget) < rho_for(budget)
    assert settings.rho + settings.flood_rho <= rho * (1 + 1e-9)


def test_the_agreement_is_of_the_jobs_columns_bounds_and_alignment():
    job = make_job()
    directory = tuple(Identity(SeededEntropy(1, party.name)).public_bytes for party in job.parties)

    def digest(changed, **options):
        made = {"records": len(TABLE), "alignment": "digest", **options}
        return make_agreement(changed, directory, **made).digest

    wider = dataclasses.replace(job, columns=(Column(name="age", low=0, high=120), *job.columns[1:]))
    others = [
        digest(job, alignment="other"),
        digest(job, records=599),
        digest(wider),
        digest(dataclasses.replace(job, k=4)),
        digest(make_job(computing="b")),
    ]
    assert len({digest(job), *others}) == 6


def test_a_job_that_would_pass_a_cap_is_refused_before_anything_is_sent(tmp_path):
    job = make_job()
    run(job, books=tmp_path, evaluate=False)
    ledger = Ledger(tmp_path / "b.ledger", create=False)
    (entry,) = ledger.summarise(delta=1e-6)
    ledger.set_cap(entry.dataset, Budget(epsilon=2.5, delta=1e-6), reason="test")
    steps = []
    with told_to_owner(BudgetError, r"^party 'b'"):
        run(job, books=tmp_path, on_progress=steps.append)
    assert steps == []
    for party in job.parties:
        (after,) = Ledger(tmp_path / f"{party.name}.ledger", create=False).summarise(delta=1e-6)
        assert after.charges == 1


def test_record_values_appear_nowhere(tmp_path, caplog):
    """A marked value in the records never reaches a log, a progress line, the result or an error."""
    caplog.set_level(logging.DEBUG)
    job, lines = make_job(), []
    sources = sources_of(job)
    sources["b"].iloc[3, 0] = 47.11471147
    result = simulate(job, sources=sources, seed=4, on_progress=lambda step: lines.append(repr(step)))
    folder = write_result(result, tmp_path / "result")
    seen = [*lines, caplog.text, repr(result), *(path.read_text("latin-1") for path in folder.iterdir())]
    assert len(lines) > 10
    assert "47114711" not in " ".join(seen)
    sources["b"] = sources["b"].astype(object)
    sources["b"].iloc[3, 0] = "8675309x"
    with pytest.raises(CloisterError) as caught:
        simulate(job, sources=sources)
    assert "8675309" not in everything_said(caught.value)


def test_the_sample_job_runs_as_it_is(tmp_path):
    result = simulate(load_setup(write_customers(tmp_path)), evaluate=True)
    assert result.centres.shape == (4, 4)
    assert result.evaluation.ratio < 1.25
    assert 1.0 < result.card.epsilon < 2.5
    assert result.card.private


def test_several_encrypted_parties_get_as_many_bits_as_there_is_room_for():
    job = make_job("abc", budget=None, cells=4, iterations=1)
    agreement = make_agreement(job, (b"x" * 32,) * 3, records=10**5, alignment=None)
    assert agreement.settings.precision_bits < 16
    named = make_job("abc", budget=None, cells=4, iterations=1, offset_bits=16)
    with pytest.raises(ConfigError, match="fewer fractional bits"):
        make_agreement(named, (b"x" * 32,) * 3, records=10**5, alignment=None)


def test_a_result_says_how_its_records_were_rounded():
    notes = " ".join(run(make_job("abc", budget=None, cells=4, iterations=1)).notes)
    assert "rounded to multiples of 2^-" in notes
    assert "middles of their cells" in notes


def test_a_delta_beyond_one_record_is_warned_of_and_a_small_epsilon_runs():
    card = run(make_job(budget=Budget(epsilon=0.1, delta=0.01))).card
    assert any("delta = 0.01 is larger than 1 / 600" in warning for warning in card.warnings)


def test_keys_are_wiped_where_a_session_is_given_up(monkeypatch):
    held = []
    original = HolderParty._decrypt

    def fail(self, opened):
        held.append(self._keys)
        original(self, opened)
        raise ConfigError("given up")

    monkeypatch.setattr(HolderParty, "_decrypt", fail)
    with told_to_owner(ConfigError, "given up"):
        run(make_job())
    assert "closed=True" in repr(held[0])
