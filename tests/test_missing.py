"""Missing cells, from a job's point of view: a record that is left out leaves nothing, and its owner alone is told."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cloister import Budget, Column, Job, JobParty, Setup, make_options, simulate
from cloister.data import TableCheck
from cloister.errors import AbsentError, ConfigError
from cloister.job import DataOptions
from cloister.job.options import known_options
from cloister.jobfile import parse_setup
from cloister.protocols.align.terms import Mode, NormalForm
from cloister.report.labels import PartyLabels
from cloister.sessions import align_job

COLUMNS = (Column(name="age", low=0, high=100), Column.category("sex", ["f", "m", "other"]))
PARTIES = tuple(JobParty(name=name) for name in "abc")
RECORDS = {
    "a": ["10,f", "12,m", "90,f", "88,m", "11,x"],
    "b": ["9,f", "91,m", "92,m"],
    "c": ["13,f", "14,f", "86,m", "87,other"],
}


def write(folder: Path, **more: list[str]) -> dict[str, Path]:
    folder.mkdir(exist_ok=True)
    for name, rows in RECORDS.items():
        (folder / f"{name}.csv").write_text("\n".join(("age,sex", *rows, *more.get(name, []), "")))
    return {name: folder / f"{name}.csv" for name in RECORDS}


def make_job(protocol: str = "synopsis", missing: str = "drop") -> Job:
    budget = Budget(epsilon=5.0, delta=1e-6) if protocol == "synopsis" else None
    return Job(
        name="gaps",
        k=2,
        columns=COLUMNS,
        parties=PARTIES,
        budget=budget,
        protocol=make_options(protocol),
        data=DataOptions(missing=missing),  # type: ignore[arg-type]
    )


@pytest.mark.parametrize("protocol", ["synopsis", "masked-sum-count"])
def test_a_record_with_a_gap_leaves_nothing_at_all(protocol: str, tmp_path: Path) -> None:
    """The transcript of a seeded run has every message of every party."""
    told: list[tuple[str, TableCheck]] = []
    ways = {"without": write(tmp_path / "1"), "with": write(tmp_path / "2", a=[",f", "NA,m", "5,"])}

    def tell(name: str, check: TableCheck) -> None:
        told.append((name, check))

    setup = Setup(job=make_job(protocol), seed=3)
    results = [simulate(setup, sources=tables, on_table=tell) for tables in ways.values()]
    assert results[0].transcript_sha256 == results[1].transcript_sha256
    np.testing.assert_array_equal(results[0].centres, results[1].centres)
    assert [check.dropped for name, check in told if name == "a"] == [0, 3]
    assert not any("left out" in note for note in results[1].notes)


def test_by_default_such_a_table_is_refused_and_only_its_owner_knows_why(tmp_path: Path) -> None:
    with pytest.raises(AbsentError) as caught:
        simulate(make_job(missing="refuse"), sources=write(tmp_path, b=[",f"]))
    assert "missing" not in str(caught.value)
    assert "column 'age': 1 cell is not a number (1 empty) (row 4)" in str(caught.value.why)


def test_how_a_party_writes_its_file_is_told_to_nobody_else(tmp_path: Path) -> None:
    text = VERTICAL.replace('separator = ";"', 'separator = ","')
    for name in ("bank", "telco"):
        (tmp_path / f"{name}.csv").write_text("customer,income,data_gb\n1,2,3\n")
    with pytest.raises(AbsentError) as caught:
        simulate(parse_setup(text, folder=tmp_path))
    assert "decimal" not in str(caught.value)
    assert 'decimal must be "." or ","' in str(caught.value.why)


def test_imputing_is_refused_by_whoever_does_not_say_that_it_takes_it() -> None:
    takers = [name for name, options in known_options().items() if options.facts.imputes]
    for protocol in ("synopsis", "masked-sum-count"):
        if protocol not in takers:
            with pytest.raises(ConfigError, match=r"data\.missing must .*impute.*missing = \"drop\""):
                make_job(protocol, missing="impute")


def test_what_becomes_of_gaps_is_agreed_on() -> None:
    digests = {make_job(missing=missing).digest for missing in ("refuse", "drop")}
    assert len(digests) == 2


VERTICAL = """name = "customers"
[protocol]
name = "vertical"
[clusters]
k = 2
[columns]
income = { low = 0, high = 100 }
data_gb = { low = 0, high = 50 }
[data]
id = "customer"
missing = "drop"
[[parties]]
name = "bank"
data = "bank.csv"
columns = ["income"]
[[parties]]
name = "telco"
data = "telco.csv"
columns = ["data_gb"]
separator = ";"
decimal = ","
"""


def test_split_columns_leave_them_out_before_they_are_aligned(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    low = rng.random(60) < 0.5
    income = [f"{v:.1f}" for v in np.where(low, 20, 80) + rng.normal(0, 3, 60)]
    used = [f"{v:.1f}".replace(".", ",") for v in np.where(low, 5, 40) + rng.normal(0, 1, 60)]
    income[0] = income[7] = used[8] = ""
    (tmp_path / "bank.csv").write_text("customer,income\n" + "".join(f"{i},{v}\n" for i, v in enumerate(income)))
    (tmp_path / "telco.csv").write_text("data_gb;customer\n" + "".join(f"{v};{i}\n" for i, v in enumerate(used)))
    setup = parse_setup(VERTICAL, folder=tmp_path)
    aligned = align_job(setup, "customer", mode=Mode.INTERSECTION, form=NormalForm())
    assert aligned.count == 57
    result = simulate(parse_setup(VERTICAL + "[run]\nseed = 1\n", folder=tmp_path))
    np.testing.assert_allclose(np.sort(result.centres[:, 0]), [20, 80], atol=3)
    with pytest.raises(ConfigError, match="be refuse with aligned = true"):
        parse_setup(VERTICAL.replace('id = "customer"', "aligned = true"), folder=tmp_path)


def test_labels_are_of_the_records_that_stayed(tmp_path: Path) -> None:
    (tmp_path / "bank.csv").write_text("customer,income\n" + "".join(f"{i},{10 + 80 * (i % 2)}\n" for i in range(20)))
    rows = [f"{'' if i == 4 else 5 + 40 * (i % 2)};{i}\n" for i in range(20)]
    (tmp_path / "telco.csv").write_text("data_gb;customer\n" + "".join(rows))
    text = VERTICAL.replace('name = "vertical"', 'name = "vertical"\nlabels = ["bank", "telco"]')
    found: list[PartyLabels] = []
    simulate(parse_setup(text, folder=tmp_path), on_labels=found.append)
    for own in found:
        assert sorted(map(int, map(str, own.keys))) == [i for i in range(20) if i != 4]
        label = {int(str(key)): int(which) for key, which in zip(own.keys, own.labels, strict=True)}
        assert {i: which == label[0] for i, which in label.items()} == {i: i % 2 == 0 for i in label}


def test_own_keys_of_a_file_are_read_and_checked() -> None:
    side = parse_setup(VERTICAL, folder=".").own_side("telco")
    assert (side.separator, side.decimal) == (";", ",")
    for wrong, message in (("separator = ';;'", "one character"), ("decimal = ';'", "be one of ., ,")):
        key = wrong.split(" ", maxsplit=1)[0]
        text = "\n".join(wrong if line.startswith(key) else line for line in VERTICAL.splitlines())
        with pytest.raises(ConfigError, match=rf"job:21|job:2\d: parties\[1\]\.{key} must .*{message}"):
            parse_setup(text, folder=".")
    contract = parse_setup(VERTICAL.replace('separator = ";"\n', ""), folder=".").job
    assert contract.digest == parse_setup(VERTICAL, folder=".").job.digest
