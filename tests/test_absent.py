"""What an error about a table says stays with its owner: whatever the cause, everybody else is told the same bytes.

Two organisations; the table of the second is at fault, before the session or in it. The first sees one thing only.
"""

import copy
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from cloister.cli.failures import describe_failure
from cloister.cli.role_process import RoleTask
from cloister.errors import AbsentError, DataError, InfeasibleError, PrecisionError
from cloister.job import OwnSide, Setup
from cloister.jobfile import load_setup
from cloister.privacy.ledger import Ledger
from cloister.privacy.units import Budget
from cloister.protocols.multiparty_lloyd.party import LloydState
from cloister.runtime.pipe_messages import Failed, Task, encode
from cloister.sessions import align_job, simulate
from tests.cli.test_cli_role_process import serve_all
from tests.owners import told_to_owner

JOB = """
name = "two"
[clusters]
k = 2
[protocol]
PROTOCOL
[columns]
age = { low = 0, high = 100 }
bmi = { low = 0, high = 50 }
[[parties]]
name = "a"
data = "a.csv"
[[parties]]
name = "b"
data = "b.csv"
"""
EXACT = 'name = "masked-sum-count"\niterations = 2\n[data]\nmax_records = 4'
PRIVATE = 'name = "mask-noise-average"\niterations = 2\n[budget]\nepsilon = 8.0\ndelta = 1e-6'
ROWS = "30,25\n31,26\n70,24\n"
BAD = {
    "a cell that is no number": f"age,bmi\n{ROWS}old,25\n",
    "two cells that are no numbers": f"age,bmi\n{ROWS}old,thin\n",
    "a cell that is NaN": f"age,bmi\n{ROWS}nan,25\n",
    "an empty cell": f"age,bmi\n{ROWS},25\n",
    "a column is missing": f"age\n30\n{ROWS[:2]}\n",
    "a row is short": f"age,bmi\n{ROWS}30\n",
    "an open quote": f'age,bmi\n{ROWS}"30,25\n',
    "no header": ROWS,
    "nothing at all": "",
    "no file": None,
}
TOO_MANY = {"too many records": f"age,bmi\n{ROWS * 2}", "no record": "age,bmi\n"}  # with noise both would be a leak
SEEN = str(AbsentError("b"))


def write_job(folder: Path, protocol: str, table: str | None) -> Path:
    (folder / "a.csv").write_text(f"age,bmi\n{ROWS}")
    if table is not None:
        (folder / "b.csv").write_text(table)
    (folder / "job.toml").write_text(JOB.replace("PROTOCOL", protocol))
    return folder / "job.toml"


def list_cases():
    return [(protocol, table) for protocol in (EXACT, PRIVATE) for table in BAD.values()] + [
        (EXACT, table) for table in TOO_MANY.values()
    ]


def test_whatever_is_wrong_with_a_table_others_are_told_the_same(tmp_path):
    seen, told = set(), []
    for number, (protocol, table) in enumerate(list_cases()):
        folder = tmp_path / str(number)
        folder.mkdir()
        with pytest.raises(AbsentError) as caught:
            simulate(load_setup(write_job(folder, protocol, table)), on_progress=pytest.fail)
        told.append(str(caught.value.why))
        assert isinstance(caught.value.why, DataError | PrecisionError)
        seen.add((type(caught.value), str(caught.value), caught.value.args, caught.value.exit_code))
    assert len(seen) == 1
    assert seen.pop()[1] == SEEN
    assert len({text.replace(str(tmp_path), "").partition(".csv")[2] for text in told}) >= len(BAD)  # owners know more
    assert not set("0123456789") & set(SEEN)


def test_over_pipes_the_hub_gets_the_same_bytes_whatever_is_wrong(tmp_path, capsys):
    seen = set()
    for number, (protocol, table) in enumerate(list_cases()):
        folder = tmp_path / str(number)
        folder.mkdir()
        path = write_job(folder, protocol, table)
        task = RoleTask(
            job=path.read_text(), folder=str(folder), session=bytes(16), party="b", data=str(folder / "b.csv"), seed=1
        )
        (said,) = serve_all(Task(task.encode()))
        seen.add(encode(said))
        assert "party 'b'" in capsys.readouterr().err  # the owner's log has it all
    assert seen == {encode(Failed())}
    assert repr(Failed().to_error("party 2")) == repr(AbsentError("party 2"))


def test_the_command_line_marks_what_is_for_the_owner_only(tmp_path):
    with pytest.raises(AbsentError) as caught:
        simulate(load_setup(write_job(tmp_path, EXACT, BAD["an empty cell"])))
    for_owner, for_all = describe_failure(caught.value)[0].splitlines()
    assert for_owner.startswith("for b only: party 'b' (")
    assert "1 empty" in for_owner
    assert for_all == f"cloister: {SEEN}"
    assert describe_failure(AbsentError("b")) == (SEEN, 8)
    again = copy.copy(caught.value)  # as a pool of processes would hand it on
    assert (str(again), again.party, str(again.why)) == (SEEN, "b", str(caught.value.why))


def test_an_error_in_a_session_is_told_to_nobody_else_either(tmp_path, monkeypatch):
    setup = load_setup(write_job(tmp_path, EXACT, f"age,bmi\n{ROWS}{ROWS[:6]}"))
    real, seen = LloydState.contribute, set()
    for error in (DataError("3 cells"), PrecisionError("4 records"), InfeasibleError("5 records"), DataError("0")):

        def fail(state, round_, error=error):
            if round_ == 2 and sum(map(len, state._records.batches())) == 4:  # party b
                raise error
            return real(state, round_)

        monkeypatch.setattr(LloydState, "contribute", fail)
        with told_to_owner(type(error), str(error)) as caught:
            simulate(setup, seed=1)
        seen.add(str(caught.value))
    assert len(seen) == 1


def test_a_file_that_changes_during_the_run_is_its_owners_affair(tmp_path):
    setup = load_setup(write_job(tmp_path, PRIVATE, f"age,bmi\n{ROWS}"))

    def swap(party, check):
        if party == "b":
            (tmp_path / "b.csv").write_text("age,bmi\n1,1\n")

    own = {"b": OwnSide(data=tmp_path / "b.csv", ledger=tmp_path / "b.ledger")}
    setup = Setup(job=setup.job, own={**setup.own, **own}, folder=setup.folder)
    with told_to_owner(DataError, "must stay the same", party="b"):
        simulate(setup, on_table=swap)


def test_a_ledger_that_refuses_looks_like_a_bad_table(tmp_path):
    setup = load_setup(write_job(tmp_path, PRIVATE, f"age,bmi\n{ROWS}"))
    own = {"b": OwnSide(data=tmp_path / "b.csv", ledger=tmp_path / "b.ledger")}
    setup = Setup(job=setup.job, own={**setup.own, **own}, folder=setup.folder)
    with Ledger(tmp_path / "b.ledger") as ledger:
        ledger.set_cap(None, Budget(epsilon=1.0, delta=1e-6), reason="test")
    with pytest.raises(AbsentError) as caught:
        simulate(setup, on_progress=pytest.fail)
    assert str(caught.value) == SEEN
    (tmp_path / "b.ledger").write_bytes(b"damaged")
    with pytest.raises(AbsentError) as caught:
        simulate(setup, on_progress=pytest.fail)
    assert str(caught.value) == SEEN


def test_ids_that_are_wrong_are_their_owners_affair(tmp_path):
    setup = load_setup(write_job(tmp_path, PRIVATE, f"age,bmi\n{ROWS}"))
    good = pd.DataFrame({"id": ["p", "q"], "age": [1, 2], "bmi": [3, 4]})
    seen = set()
    for ids in (["p", "p"], ["", "q"], ["p", " q"]):
        with told_to_owner(DataError, "its own ID", party="b") as caught:
            align_job(setup, "id", sources={"a": good, "b": good.assign(id=ids)}, on_progress=pytest.fail)
        seen.add(str(caught.value))
    with told_to_owner(DataError, "not among", party="b") as caught:
        align_job(setup, "id", sources={"a": good, "b": good.drop(columns="id")})
    assert {*seen, str(caught.value)} == {SEEN}


def test_a_private_session_runs_whatever_the_records_are(tmp_path):
    """Empty, one record, more than the cap, all outside the bounds: with noise none of that stops it."""
    protocol = f"{PRIVATE}\n[data]\nmax_records = 2"
    for rows in (np.zeros((0, 2)), np.zeros((1, 2)), np.full((9, 2), 1e9), np.full((3, 2), -1e300)):
        setup = load_setup(write_job(tmp_path, protocol, None))
        assert simulate(setup, sources={"b": rows}, evaluate=False).card.private


def test_without_the_rule_the_cause_is_told_to_all(tmp_path, monkeypatch):
    """Mutants: a text that counts cells, and a pipe that carries classes and texts."""

    def talk(self, party, why=None):
        super(AbsentError, self).__init__(f"{party} is absent: {why}")
        self.party, self.why = party, why

    monkeypatch.setattr(AbsentError, "__init__", talk)
    seen = set()
    for table in (BAD["a cell that is no number"], BAD["two cells that are no numbers"]):
        with pytest.raises(AbsentError) as caught:
            simulate(load_setup(write_job(tmp_path, EXACT, table)))
        seen.add(str(caught.value))
    assert len(seen) == 2
