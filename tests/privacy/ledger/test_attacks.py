"""Attacks on a ledger through whole jobs: each of them once got past a spent cap, or told something of a table."""

from __future__ import annotations

import json

import numpy as np
import pytest

from cloister import Budget, Column, Job, JobParty, simulate
from cloister.errors import BudgetError
from cloister.job import OwnSide, Setup, make_options
from cloister.privacy.ledger import UNDECLARED, Ledger
from cloister.report import write_result
from tests.owners import told_to_owner

COLUMNS = (Column(name="length", low=0, high=50), Column(name="width", low=-10, high=10))
NAMES = ("north", "south")
TABLES = {name: np.random.default_rng(i).uniform((0, -10), (50, 10), (100, 2)) for i, name in enumerate(NAMES, start=1)}
BUDGET = Budget(epsilon=1.0, delta=1e-6)
CAP = Budget(epsilon=1.2, delta=1e-6)


def run(folder, *, tables=None, dataset=None, seed=None, columns=COLUMNS, **options):
    job = Job(
        name="attack",
        k=2,
        columns=columns,
        parties=tuple(JobParty(name=name) for name in NAMES),
        protocol=make_options("mask-noise-average", iterations=2),
        budget=BUDGET,
    )
    own = {"north": OwnSide(ledger=folder / "north.ledger", dataset=dataset)}
    setup = Setup(job=job, own=own, seed=seed)
    return simulate(setup, sources={**TABLES, **(tables or {})}, evaluate=False, **options)


@pytest.fixture(params=["patients", None], ids=["declared", "undeclared"])
def dataset(request):
    return request.param


@pytest.fixture
def spent(tmp_path, dataset):
    """A cap that one job has used up, on the data set or, where none is declared, on what that stands for."""
    run(tmp_path, dataset=dataset)
    with Ledger(tmp_path / "north.ledger") as ledger:
        ledger.set_cap(dataset or UNDECLARED, CAP, reason="test")
    return tmp_path


def attempts():
    whole = TABLES["north"]
    for n in range(5):
        yield f"fold {n} left out", {"tables": {"north": np.delete(whole, np.s_[n::5], axis=0)}}
    yield "a row less", {"tables": {"north": whole[1:]}}
    yield "a row twice", {"tables": {"north": np.concatenate([whole, whole[:1]])}}
    yield "another order", {"tables": {"north": whole[::-1]}}
    yield "no rows", {"tables": {"north": whole[:0]}}
    yield "a bit", {"tables": {"north": np.nextafter(whole, np.inf)}}
    swapped = {name: table[:, ::-1] for name, table in TABLES.items()}
    yield "columns swapped", {"tables": swapped, "columns": COLUMNS[::-1]}
    yield "a column less", {"tables": {name: t[:, :1] for name, t in TABLES.items()}, "columns": COLUMNS[:1]}
    wider = tuple(Column(name=column.name, low=column.low - 1, high=column.high + 1) for column in COLUMNS)
    yield "other bounds", {"columns": wider}


@pytest.mark.parametrize("attempt", [one for _, one in attempts()], ids=[what for what, _ in attempts()])
def test_a_changed_table_is_no_new_account(attempt, spent, dataset):
    columns = attempt.get("columns", COLUMNS)
    tables = {name: table[:, : len(columns)] for name, table in TABLES.items()}
    with told_to_owner(BudgetError) as same:
        run(spent, dataset=dataset, tables=tables, columns=columns)
    with told_to_owner(BudgetError) as changed:
        run(spent, dataset=dataset, **attempt)
    assert str(changed.value.why) == str(same.value.why), "a refusal must not tell whether the table is an earlier one"


def test_another_name_meets_the_cap_over_all(tmp_path):
    with Ledger(tmp_path / "north.ledger") as ledger:
        ledger.set_cap(None, CAP, reason="test")
    run(tmp_path, dataset="patients")
    for name in ("customers", None):
        with told_to_owner(BudgetError, match="all data sets of this ledger"):
            run(tmp_path, dataset=name)


def test_accounts_by_content_would_let_every_fold_pass(spent, dataset, monkeypatch):
    """The tests above can fail: this is how it was."""
    monkeypatch.setattr("cloister.sessions.assembly.UNDECLARED", "another")
    if dataset is None:
        run(spent, dataset=dataset)
    else:
        run(spent, dataset=dataset + "'")


def test_a_seeded_run_is_refused_on_a_capped_account_and_noted_on_another(spent, dataset, tmp_path):
    with told_to_owner(BudgetError, match="got a seed"):
        run(spent, dataset=dataset, seed=1)
    result = run(tmp_path / "fresh", dataset=dataset, seed=1)
    assert not result.card.private
    with Ledger(tmp_path / "fresh" / "north.ledger", create=False) as ledger:
        (summary,) = ledger.summarise()
        assert (summary.seeded, summary.charges, summary.rho) == (1, 0, 0.0)


def test_nothing_of_a_ledger_reaches_a_result(tmp_path):
    """Neither its path, name, totals and warnings, nor anything that is computed from the table."""
    sessions = {}
    run(tmp_path, dataset="patients-2026")
    other = {"north": TABLES["north"][1:]}
    result = run(tmp_path, dataset="patients-2026", tables=other, on_ledger=sessions.__setitem__)
    (session,) = sessions.values()
    assert len(session.warnings) == 1
    written = write_result(result, tmp_path / "result")
    text = (written / "result.json").read_text()
    assert json.loads(text)["name"] == "attack"
    for secret in ("patients-2026", "north.ledger", session.fingerprint, session.warnings[0], session.session.hex()):
        assert secret
        assert secret not in text
    assert session.fingerprint not in "".join(session.ledger.export())


def test_the_owner_is_told_of_each_job(tmp_path):
    states = []

    def keep(party, session):
        states.append((party, session))

    for _ in range(2):
        run(tmp_path, on_ledger=keep)
    (party, first), (_, second) = states
    before, after = second.state().before, second.state().after
    assert party == "north"
    assert first.warnings == second.warnings == ()
    assert before == pytest.approx(1.0, rel=1e-3)
    assert after == pytest.approx(second.state().after)
    assert before < after < second.state().again
    assert second.state().dataset == UNDECLARED
