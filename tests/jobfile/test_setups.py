"""Job files with everybody's own side: in the job file, in files of their own, or nowhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from cloister.errors import ConfigError
from cloister.job import OwnSide, Setup
from cloister.jobfile import load_job, load_own_side, load_setup, parse_job, parse_setup
from cloister.privacy.ledger import default_ledger

CONTRACT = """\
name = "clinics"
[budget]
epsilon = 1.0
[clusters]
k = 2
[columns]
age = { low = 18, high = 95 }
[[parties]]
name = "north"
[[parties]]
name = "harbour"
"""
WITH_TABLES = CONTRACT.replace('"north"', '"north"\ndata = "north.csv"\ndataset = "patients"').replace(
    '"harbour"', '"harbour"\ndata = "tables/harbour.csv"'
)
SPLIT = """\
name = "customers"
[protocol]
name = "vertical"
[clusters]
k = 2
[columns]
age = { low = 18, high = 95 }
spent = { low = 0, high = 100 }
[data]
aligned = true
[[parties]]
name = "bank"
columns = ["age"]
[[parties]]
name = "shop"
columns = ["spent"]
[[parties]]
name = "helper"
columns = []
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "job.toml").write_text(CONTRACT)
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "north.toml").write_text('data = "n.csv"\nledger = "n.ledger"\ndataset = "patients"\n')
    (tmp_path / "own" / "harbour.toml").write_text('data = "h.csv"\n')
    return tmp_path


def test_paths_of_a_job_start_from_its_folder() -> None:
    setup = parse_setup(WITH_TABLES, folder="/jobs")
    assert setup.own == {
        "north": OwnSide(data=Path("/jobs/north.csv"), dataset="patients"),
        "harbour": OwnSide(data=Path("/jobs/tables/harbour.csv")),
    }
    assert (setup.folder, setup.seed, setup.secure, setup.network) == (Path("/jobs"), None, False, None)


def test_own_sides_and_simulations_are_not_agreed_on() -> None:
    job = parse_job(CONTRACT)
    simulated = WITH_TABLES + "[run]\nseed = 7\n[network]\nmodel = 'regWAN100'\n[ledger]\npath = 'books'\n"
    assert parse_job(simulated) == parse_setup(simulated).job == job
    assert parse_job(simulated).digest == job.digest
    assert parse_job(CONTRACT.replace("epsilon = 1.0", "epsilon = 1.1")).digest != job.digest
    assert parse_job(CONTRACT.replace('"harbour"', '"valley"')).digest != job.digest


def test_a_contract_alone_is_a_setup_without_tables(folder: Path) -> None:
    setup = load_setup(folder / "job.toml")
    assert setup == Setup(job=load_job(folder / "job.toml"), own=setup.own, folder=folder)
    assert setup.own == {name: OwnSide(ledger=default_ledger(name)) for name in ("north", "harbour")}
    assert parse_setup(CONTRACT).own == {name: OwnSide() for name in ("north", "harbour")}


def test_a_party_may_keep_its_own_side_in_its_own_file(folder: Path) -> None:
    files = {name: folder / "own" / f"{name}.toml" for name in ("north", "harbour")}
    setup = load_setup(folder / "job.toml", own=files)
    assert setup.own_side("north") == OwnSide(
        data=folder / "own" / "n.csv", ledger=folder / "own" / "n.ledger", dataset="patients"
    )
    assert setup.own_side("harbour") == OwnSide(data=folder / "own" / "h.csv", ledger=default_ledger("harbour"))


def test_its_own_file_replaces_what_the_job_says_also_of_its_ledger(folder: Path) -> None:
    (folder / "job.toml").write_text(WITH_TABLES + "[ledger]\npath = 'books'\n")
    setup = load_setup(folder / "job.toml", own={"north": folder / "own" / "harbour.toml"})
    assert setup.own_side("north") == OwnSide(data=folder / "own" / "h.csv", ledger=default_ledger("north"))
    assert setup.own_side("harbour").ledger == folder / "books" / "harbour.ledger"


def test_a_default_ledger_is_in_the_users_data_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert default_ledger("north") == tmp_path / "cloister" / "north.ledger"
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for unset in ("", "relative/path"):
        monkeypatch.setenv("XDG_DATA_HOME", unset)
        assert default_ledger("north") == tmp_path / "home" / ".local" / "share" / "cloister" / "north.ledger"


def test_a_job_whose_releases_no_ledger_can_add_up_keeps_none(folder: Path) -> None:
    exact = CONTRACT.replace("[budget]\nepsilon = 1.0\n", '[protocol]\nname = "masked-sum-count"\niterations = 2\n')
    assert "[budget]" not in exact
    (folder / "job.toml").write_text(exact)
    assert set(load_setup(folder / "job.toml").own.values()) == {OwnSide()}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('data = "n.csv"\nname = "north"\n', r"north\.toml:2: name must be a known key \(data, separator"),
        ("data = 5\n", r"north\.toml:1: data must be a path; got 5"),
        ('data = "n.csv"\n\ndataset = ""\n', r"north\.toml:3: dataset must be printable text"),
        ("data = \n", r"north\.toml:1: the file must be valid TOML"),
    ],
)
def test_a_broken_own_file_is_told_with_its_line(text: str, message: str, folder: Path) -> None:
    path = folder / "own" / "north.toml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=message):
        load_own_side(path)


def test_tables_are_named_for_all_or_for_none(folder: Path) -> None:
    own = {"north": folder / "own" / "north.toml"}
    with pytest.raises(ConfigError, match=r"job\.toml:10: parties\[1\] must have the key data"):
        load_setup(folder / "job.toml", own=own)
    with pytest.raises(ConfigError, match='named after the job\'s parties; got "nroth"'):
        load_setup(folder / "job.toml", own={"nroth": own["north"]})


def test_a_party_without_columns_has_no_table() -> None:
    named = SPLIT.replace('["age"]', '["age"]\ndata = "bank.csv"').replace('["spent"]', '["spent"]\ndata = "shop.csv"')
    setup = parse_setup(named)
    assert setup.own_side("helper") == OwnSide()
    with pytest.raises(ConfigError, match=r"job:22: parties\[2\]\.data must be left out without columns"):
        parse_setup(named + 'data = "helper.csv"\n')


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[ledger]\npath = 5\n", r"job:13: ledger\.path must be the path of a folder; got 5"),
        ("[ledger]\n", r"job:12: ledger must have the key path"),
        ("[network]\nmodel = 'LAN501'\n", r"job:13: network\.model must be one of .*LAN500"),
        ("[run]\nseed = 1.5\n", r"job:13: run\.seed must be an integer"),
    ],
)
def test_what_only_a_simulation_has_is_checked_too(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_setup(CONTRACT + text)
