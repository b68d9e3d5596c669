"""Labels of a vertical job through the simulator: exact, in nobody's result, and again for new records."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from msgspec.structs import replace

from cloister.columns import Column, to_unit
from cloister.errors import ConfigError
from cloister.job import DataOptions, Job, JobParty, Setup, make_options
from cloister.kmeans import nearest
from cloister.numeric import FixedPoint
from cloister.privacy.units import Budget
from cloister.report.result import CellBook, decode_result, encode_result
from cloister.sessions import label_records, simulate

COLUMNS = tuple(Column(name=name, low=0.0, high=10.0) for name in ("a", "b", "c"))
RECORDS = 400


def make_setup(labels=("right",), *, third=False, **changes):
    """Two parties, or three with joint cells; IDs in both tables."""
    held = {"left": ("a",), "right": ("b",), "other": ("c",)} if third else {"left": ("a",), "right": ("c", "b")}
    values = {
        "name": "labelled",
        "k": 3,
        "columns": COLUMNS,
        "parties": tuple(JobParty(name=name, columns=columns) for name, columns in held.items()),
        "protocol": make_options(
            "vertical",
            computing="left",
            labels=labels,
            model="server-aided" if third else None,
            iterations=2,
            cells=4,
        ),
        "data": DataOptions(id="who", match="name"),
    }
    return Setup(job=Job(**(values | changes)), seed=5)


def make_tables(seed, *, names, count=RECORDS):
    """Clusters in three columns, each party's rows in its own order, and some that the others do not have."""
    rng = np.random.default_rng(seed)
    points = np.clip(rng.integers(2, 9, (4, 3))[rng.integers(4, size=count)] + rng.normal(0, 0.6, (count, 3)), 0, 10)
    ids = [f"K{number}" for number in rng.permutation(90_000)[: count + 20]]
    whole = pd.DataFrame(points, columns=["a", "b", "c"]).assign(who=ids[:count])
    tables = {}
    for name in names:
        own = whole.sample(frac=1, random_state=len(name)).reset_index(drop=True)
        extra = own.head(2).assign(who=[f"{name}{i}" for i in range(2)])
        tables[name] = pd.concat([own, extra], ignore_index=True)
    return whole, tables


def decide(result, centres, whole):
    """Whole records, each encrypted party's columns replaced by the nearest cell's: the nearest centre."""
    points = FixedPoint(16).quantise(to_unit(whole[["a", "b", "c"]].to_numpy(), COLUMNS))
    for book in result.codebooks:
        places = ["abc".index(name) for name in book.columns]
        cells = np.array(book.cells)
        points[:, places] = cells[nearest(np.ascontiguousarray(points[:, places]), cells).labels]
    return dict(zip(whole["who"], nearest(points, centres).labels.tolist(), strict=True))


@pytest.mark.parametrize("third", [False, True])
@pytest.mark.parametrize("epsilon", [None, 20.0])
def test_labels_of_a_run_are_those_of_its_centres_and_cells(third, epsilon):
    names = ("left", "right", "other") if third else ("left", "right")
    whole, tables = make_tables(1, names=names)
    budget = None if epsilon is None else Budget(epsilon=epsilon, delta=1e-6)
    got = []
    setup = make_setup(("right", "left"), third=third, budget=budget)
    result = simulate(setup, sources=tables, evaluate=False, on_labels=got.append)
    assert [own.party for own in got] == ["right", "left"]
    wanted = decide(result, to_unit(result.centres, COLUMNS), whole)
    for own in got:
        assert own.key_name == "who"
        assert dict(zip(own.keys, own.labels.tolist(), strict=True)) == wanted
        in_table = [who for who in tables[own.party]["who"] if who in wanted]
        assert list(own.keys) == in_table  # the order of the party's own table
    told = result.card.not_promised if budget is not None else result.notes
    assert any("given to right, left" in text and "not differentially private" in text for text in told)
    assert any("right, left only" in line.what for line in result.leakage)


def test_a_result_with_labels_holds_none_and_one_without_says_nothing_of_them():
    _, tables = make_tables(1, names=("left", "right"))
    got = []
    granted = simulate(make_setup(), sources=tables, evaluate=False, on_labels=got.append)
    plain = simulate(make_setup(()), sources=tables, evaluate=False, on_labels=got.append)
    assert [own.party for own in got] == ["right"]
    np.testing.assert_array_equal(granted.centres, plain.centres)
    assert granted.bytes_total > plain.bytes_total
    first, second = (json.loads(encode_result(result)) for result in (granted, plain))
    # What differs is that there are labels, and what they took: public, and the same whatever they are.
    differing = {key for key in first if first[key] != second[key]}
    assert differing == {"leakage", "notes", "parties", "transcript_sha256", "created"} - (
        {"created"} if granted.created == plain.created else set()
    )
    assert "given to" not in json.dumps(second)
    assert not any(who in json.dumps(first) for who in got[0].keys)
    assert longest_list(first) < RECORDS
    assert repr(got[0]) == "PartyLabels(party='right', key_name='who')"


def longest_list(value):
    if isinstance(value, dict):
        return max(map(longest_list, value.values()), default=0)
    if isinstance(value, list):
        return max(len(value), max(map(longest_list, value), default=0))
    return 0


def test_new_records_get_the_labels_that_their_cells_and_the_centres_say():
    _, tables = make_tables(1, names=("left", "right"))
    result = simulate(make_setup((), budget=Budget(epsilon=5.0, delta=1e-6)), sources=tables, evaluate=False)
    stored = decode_result(encode_result(result), Path("result.json"))
    whole, new = make_tables(2, names=("left", "right"), count=2)  # fewer than clusters
    # Other party names, the columns in another order, and no budget: nothing of it matters.
    setup = make_setup(
        ("shop",),
        columns=COLUMNS[::-1],
        parties=(JobParty(name="bank", columns=("a",)), JobParty(name="shop", columns=("b", "c"))),
        protocol=make_options("vertical", computing="bank", labels=("shop",)),
    )
    (own,) = label_records(stored, setup, sources={"bank": new["left"], "shop": new["right"]})
    assert dict(zip(own.keys, own.labels.tolist(), strict=True)) == decide(
        result, to_unit(stored.centres, COLUMNS), whole
    )


def test_rows_in_one_order_are_labelled_by_their_numbers():
    whole, _ = make_tables(1, names=())
    tables = {"left": whole[["a"]], "right": whole[["c", "b"]]}
    got = []
    result = simulate(
        make_setup(data=DataOptions(aligned=True, match="name")), sources=tables, evaluate=False, on_labels=got.append
    )
    wanted = decide(result, to_unit(result.centres, COLUMNS), whole)
    assert got[0].key_name == "row"
    assert list(got[0].keys) == list(range(1, RECORDS + 1))
    assert got[0].labels.tolist() == list(wanted.values())


@pytest.fixture(scope="module")
def a_result():
    _, tables = make_tables(1, names=("left", "right"))
    return simulate(make_setup(()), sources=tables, evaluate=False)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"protocol": make_options("vertical", computing="left")}, "say who gets labels"),
        ({"k": 4}, "clusters.k must be the result's, 3"),
        ({"columns": (*COLUMNS[:2], Column(name="c", low=0.0, high=11.0))}, "and their bounds must be the result's"),
        ({"protocol": make_options("vertical", computing="right", labels=("left",))}, r"split .*\(c, b\)"),
    ],
)
def test_jobs_that_do_not_fit_a_result_are_refused(a_result, changes, words):
    _, tables = make_tables(1, names=("left", "right"))
    with pytest.raises(ConfigError, match=words):
        label_records(a_result, make_setup(**changes), sources=tables)


def test_results_without_cells_are_refused(a_result):
    with pytest.raises(ConfigError, match="job's protocol, vertical"):
        label_records(replace(a_result, protocol="synopsis", codebooks=()), make_setup())


def test_labels_under_a_collective_key_are_refused():
    with pytest.raises(ConfigError, match=r"protocol.labels must come with one key holder.*server-aided"):
        make_setup(third=True, protocol=make_options("vertical", computing="left", labels=("right",)))


@pytest.mark.parametrize(
    ("books", "words"),
    [
        ((CellBook(columns=("x",), cells=((0.0,),)),), "columns of the result"),
        ((CellBook(columns=("b",), cells=((0.0,),)), CellBook(columns=("b",), cells=((0.0,),))), "each at most once"),
        ((CellBook(columns=("b",), cells=((0.0, 1.0),)),), "one coordinate"),
        ((CellBook(columns=("b",), cells=()),), "one coordinate"),
        ((CellBook(columns=("b",), cells=((1.5,),)),), r"in \[-1, 1\]"),
        ((CellBook(columns=("b",), cells=((float("nan"),),)),), r"in \[-1, 1\]"),
        ((CellBook(columns=("b",), cells=((0.0,),) * 1025),), "1024"),
    ],
)
def test_codebooks_that_no_run_writes_are_refused(a_result, books, words):
    with pytest.raises(ConfigError, match=words):
        replace(a_result, codebooks=books)
