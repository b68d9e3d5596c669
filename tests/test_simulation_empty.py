"""Parties without records: a private job runs as with any other table, an exact one is refused.

Whether a job runs must not tell whether a unit is there. At client level a party without records is the neighbour that
the card speaks of; at record level the last record of a party may be the one.
"""

import io

import numpy as np
import pandas as pd
import pytest

from cloister.columns import Column
from cloister.errors import DataError
from cloister.job import Budget, Job, JobParty, OwnSide, Setup, make_options
from cloister.privacy.ledger import Ledger
from cloister.privacy.units import Unit
from cloister.protocols.synopsis.settings import Knobs
from cloister.report import read_result, write_result
from cloister.report.layout import make_console
from cloister.report.text import print_report
from cloister.sessions import simulate
from tests.owners import told_to_owner
from tests.sessions import blobs

COLUMNS = (Column(name="length", low=0, high=50), Column(name="width", low=-10, high=10))
UNIT = blobs(600, 2, 3, seed=8)
ORIGINAL = np.column_stack([25 + 25 * UNIT[:, 0], 10 * UNIT[:, 1]])
NONE = np.empty((0, 2))
FULL = {"a": ORIGINAL[:200], "b": ORIGINAL[200:400], "c": ORIGINAL[400:]}
ONE_EMPTY = {**FULL, "b": NONE}
ALL_EMPTY = dict.fromkeys(FULL, NONE)
EXACT = ("naive", "masked-sum-count", "masked-centroid")

# mask-noise-average has the unit "record" only: a job with another is refused.
PRIVATE = [("synopsis", Unit.RECORD), ("synopsis", Unit.CLIENT), ("mask-noise-average", Unit.RECORD)]


def make_job(name, unit=Unit.RECORD, **options):
    usual = {"knobs": Knobs(cells_max=64, rounds_max=2, restarts=2)} if name == "synopsis" else {"iterations": 3}
    return Job(
        name="test",
        k=3,
        columns=COLUMNS,
        parties=tuple(JobParty(name=party) for party in FULL),
        protocol=make_options(name, **usual, **options),
        budget=None if name in EXACT else Budget(epsilon=2.0, delta=1e-6, unit=unit),
    )


def with_ledgers(job, folder):
    own = {party: OwnSide(ledger=folder / f"{party}.ledger") for party in FULL}
    return Setup(job=job, own=own)


@pytest.mark.parametrize(("name", "unit"), PRIVATE)
@pytest.mark.parametrize("seed", [None, 4])
def test_a_private_job_runs_with_a_party_without_records(name, unit, seed):
    result = simulate(make_job(name, unit), seed=seed, sources=ONE_EMPTY, evaluate=True)
    assert result.centres.shape == (3, 2)
    assert np.isfinite(result.centres).all()
    assert (result.card.private, result.card.unit) == (seed is None, unit.value)
    assert result.card.epsilon <= 2.0
    assert result.evaluation.loss > 0
    assert [party.rounds_missed for party in result.parties] == [0, 0, 0]


@pytest.mark.parametrize("placement", ["aggregator", "shared", "local"])
@pytest.mark.parametrize(("name", "unit"), PRIVATE)
def test_a_private_job_without_any_record_has_a_card_and_nothing_to_evaluate(name, unit, placement, tmp_path):
    options = {"placement": placement, **({"colluding_max": 1} if placement == "shared" else {})}
    result = simulate(make_job(name, unit, **options), seed=1, sources=ALL_EMPTY)
    assert result.evaluation is None
    assert result.card.epsilon <= 2.0
    assert np.isfinite(result.centres).all()
    assert ((result.centres >= [0, -10]) & (result.centres <= [50, 10])).all()
    print_report(result, make_console(io.StringIO()))
    assert np.array_equal(read_result(write_result(result, tmp_path / "r")).centres, result.centres)


@pytest.mark.parametrize(("name", "unit"), PRIVATE)
def test_messages_and_promise_are_those_of_a_party_with_records(name, unit):
    there, gone = (simulate(make_job(name, unit), seed=4, sources=tables) for tables in (FULL, ONE_EMPTY))
    assert there.parties == gone.parties  # bytes and messages
    assert (there.leakage, there.breaks_if) == (gone.leakage, gone.breaks_if)
    assert (there.card.unit, there.card.delta) == (gone.card.unit, gone.card.delta)
    assert there.transcript_sha256 != gone.transcript_sha256


@pytest.mark.parametrize(("name", "unit"), PRIVATE)
def test_a_party_without_records_pays_its_ledger_like_any_other(name, unit, tmp_path):
    setup = with_ledgers(make_job(name, unit), tmp_path)
    for count in (1, 2):
        simulate(setup, sources=ONE_EMPTY, evaluate=False)
        charges = []
        for party in FULL:
            (entry,) = Ledger(tmp_path / f"{party}.ledger", create=False).summarise(delta=1e-6)
            charges.append(entry.charges)
        assert charges == [charges[0]] * 3
        assert charges[0] == count * (1 if name == "synopsis" else 3)


@pytest.mark.parametrize("suffix", ["csv", "parquet", "frame"])
def test_a_file_with_a_header_and_nothing_else_is_such_a_table(suffix, tmp_path):
    frame = pd.DataFrame(NONE, columns=["length", "width"])
    source = frame if suffix == "frame" else tmp_path / f"b.{suffix}"
    if suffix == "csv":
        frame.to_csv(source, index=False)
    elif suffix == "parquet":
        pytest.importorskip("pyarrow")
        frame.to_parquet(source)
    seen = {}
    setup = with_ledgers(make_job("mask-noise-average"), tmp_path)
    simulate(setup, sources={**FULL, "b": source}, on_table=seen.__setitem__)
    assert (seen["b"].records, seen["b"].clipped) == (0, (0, 0))


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("tables", [ONE_EMPTY, ALL_EMPTY], ids=["one", "all"])
def test_an_exact_job_refuses_a_party_without_records(name, tables):
    with told_to_owner(DataError, "at least one record; got none"):
        simulate(make_job(name), seed=1, sources=tables)
