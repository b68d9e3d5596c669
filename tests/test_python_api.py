"""Cloister in Python: short forms, one-line reprs, progress, and our own errors for values of other types."""

import logging
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest

import cloister
from cloister import (
    Budget,
    Column,
    DataOptions,
    Job,
    JobParty,
    Setup,
    load_job,
    load_setup,
    plan,
    read_result,
    simulate,
)
from cloister.errors import CloisterError, ConfigError
from cloister.jobfile import parse_job
from cloister.report import write_result
from tests.report.examples import make_result

COLUMN = Column(name="age", low=0, high=100)
TABLES = {name: np.random.default_rng(3).uniform(0, 100, (40, 1)) for name in ("north", "harbour")}


def make_job(**changes):
    parties = tuple(JobParty(name=name) for name in TABLES)
    values = {"name": "ages", "k": 2, "columns": (COLUMN,), "parties": parties, "budget": Budget(1.0)}
    return Job(**values | changes)


def test_a_budget_is_one_number():
    assert Budget(1.0) == Budget(1) == Budget(np.float32(1)) == Budget(epsilon=1.0, delta=1e-6)
    text = "[budget]\nepsilon = 1\n[clusters]\nk = 2\n[columns]\nage = { low = 0, high = 100 }\n"
    written = parse_job('name = "ages"\n' + text + '[[parties]]\nname = "north"\n[[parties]]\nname = "harbour"\n')
    assert written.digest == make_job().digest


def test_the_version_is_told():
    assert cloister.__version__ == version("cloister")
    assert "__version__" in dir(cloister)


def test_reprs_are_one_line_and_say_nothing_of_own_sides(tmp_path):
    job = make_job()
    setup = Setup(job=job, own={"north": cloister.OwnSide(data=tmp_path / "secret.csv")}, seed=1)
    for one in (job, setup, make_result(), plan(job, records=1000, epsilons=(), quick=True)):
        assert len(repr(one)) < 130
        assert "secret" not in repr(one)
        assert one.name if hasattr(one, "name") else "ages" in repr(one)


WRONG = {
    "a budget in words": lambda: Budget("1"),
    "a budget of nothing": lambda: Budget(None),
    "a budget that is true": lambda: Budget(True),
    "a delta in words": lambda: Budget(1.0, delta="x"),
    "bounds in words": lambda: Column(name="a", low="0", high=1),
    "k in words": lambda: make_job(k="2"),
    "columns as a mapping": lambda: make_job(columns={"a": (0, 1)}),
    "columns by name": lambda: make_job(columns=("a",)),
    "parties by name": lambda: make_job(parties=("a", "b")),
    "a budget as a number": lambda: make_job(budget=1.0),
    "a protocol by name": lambda: make_job(protocol="synopsis"),
    "data as a mapping": lambda: make_job(data={}),
    "records in words": lambda: make_job(data=DataOptions(records="x")),
    "a coordinator by name": lambda: make_job(coordinator="x"),
    "a setup of a path": lambda: Setup(job="job.toml"),
    "own sides as a list": lambda: Setup(job=make_job(), own=[1]),
    "a run of a path": lambda: simulate("job.toml"),
    "a seed in words": lambda: simulate(make_job(), seed="a"),
    "tables as a list": lambda: simulate(make_job(), sources=[1, 2]),
    "a table as a number": lambda: simulate(make_job(), sources={**TABLES, "north": 5}),
    "progress in other words": lambda: simulate(make_job(), sources=TABLES, on_progress="loud"),
    "progress as a number": lambda: simulate(make_job(), sources=TABLES, on_progress=3),
    "a plan of a path": lambda: plan("job.toml"),
    "a plan for records in words": lambda: plan(make_job(), records="9"),
    "a plan for one epsilon": lambda: plan(make_job(), epsilons=1.0),
    "a plan for epsilons in words": lambda: plan(make_job(), epsilons=("a",)),
    "a job from a number": lambda: load_job(5),
    "a setup from nothing": lambda: load_setup(None),
    "a result from a number": lambda: read_result(3),
    "a result that is none": lambda: write_result("x", Path("r")),
    "a folder that is a number": lambda: write_result(make_result(), 5),
    "another sample": lambda: cloister.sample_folder(3),
    "a table as a list": lambda: cloister.open_table([[1]], (COLUMN,)),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_values_of_other_types_are_refused_in_our_words(wrong):
    with pytest.raises(CloisterError, match=r"must|ask"):
        WRONG[wrong]()


class TestProgress:
    def test_goes_to_the_logger_and_holds_no_value_of_a_record(self, caplog):
        tables = {name: table.copy() for name, table in TABLES.items()}
        tables["north"][:] = 47.1125
        with caplog.at_level(logging.INFO, logger="cloister"):
            simulate(make_job(), sources=tables, seed=1, on_progress="log")
        lines = [record.getMessage() for record in caplog.records]
        assert len(lines) > 5
        assert len(set(lines)) == len(lines)
        assert lines[-1].startswith("[")
        assert not any("47.1" in line for line in lines)
        assert {record.name for record in caplog.records} == {"cloister"}

    def test_without_it_nothing_is_printed(self, capfd):
        simulate(make_job(), sources=TABLES, seed=1)
        assert capfd.readouterr() == ("", "")

    def test_a_bar_goes_to_standard_error(self, capfd):
        simulate(make_job(), sources=TABLES, seed=1, on_progress="rich")
        out, error = capfd.readouterr()
        assert out == ""
        assert "number of records" in error

    def test_a_function_is_called_with_each_step(self):
        seen = []
        simulate(make_job(), sources=TABLES, seed=1, on_progress=seen.append)
        assert seen[-1].step == seen[-1].steps > 3


def test_a_value_is_never_told_only_its_type():
    with pytest.raises(ConfigError) as caught:
        make_job(columns=["secret"])
    assert "secret" not in str(caught.value)
