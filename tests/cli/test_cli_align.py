"""``cloister align``: files for each party, and what a newcomer does wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.conftest import JOB, Invoke

from cloister.errors import AbsentError
from cloister.protocols.align.alignment import check_alignments
from cloister.protocols.align.terms import Mode
from cloister.sessions.alignment import load_alignment

TABLES = {
    "north": ["p3", "p1", "p7", "CANARY"],
    "harbour": ["p7", "p9", "p3"],
    "valley": ["p2", "p3", "p4", "p7"],
}


@pytest.fixture
def job_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for party, ids in TABLES.items():
        write_table(party, ids)
    path = tmp_path / "job.toml"
    path.write_text(JOB)
    return path


def write_table(party: str, ids: list[str]) -> None:
    Path(f"{party}.csv").write_text("patient,age,bmi\n" + "".join(f"{exact_id},50,25\n" for exact_id in ids))


def load_all(folder: str) -> dict[str, list[str | None]]:
    alignments = {party: load_alignment(Path(folder, f"{party}.alignment.json")) for party in TABLES}
    mode = next(iter(alignments.values())).mode
    check_alignments(alignments, {party: len(ids) for party, ids in TABLES.items()}, mode=mode)
    return {p: [None if row < 0 else TABLES[p][row] for row in a.rows] for p, a in alignments.items()}


def test_the_intersection_is_written_for_each_party(invoke: Invoke, job_file: Path) -> None:
    done = invoke("align", job_file, "--id", "patient", "--out", "aligned")
    assert done.exit_code == 0, done.output
    orders = load_all("aligned")
    assert sorted(orders["north"]) == ["p3", "p7"]
    assert orders["north"] == orders["harbour"] == orders["valley"]
    assert "2 IDs in common" in done.stdout
    assert "the coordinator learns exactly: how many IDs each group of parties has in common" in done.stdout
    assert "north: 4 rows" in done.stdout
    assert "blinding" in done.stderr
    assert "CANARY" not in done.output + "".join(path.read_text() for path in Path("aligned").iterdir())


def test_the_union_gives_places_to_all(invoke: Invoke, job_file: Path) -> None:
    done = invoke("align", job_file, "--id", "patient", "--mode", "union", "--out", "aligned", "--quiet")
    assert done.exit_code == 0, done.output
    assert done.stdout.split() == [f"aligned/{party}.alignment.json" for party in TABLES]
    assert done.stderr == ""
    orders = load_all("aligned")
    assert len(orders["north"]) == 7
    for place in range(7):
        assert len({orders[party][place] for party in TABLES} - {None}) == 1


def test_a_seed_reproduces_files_and_says_that_it_is_no_secret(invoke: Invoke, job_file: Path) -> None:
    texts = []
    for folder in ("one", "two"):
        done = invoke("align", job_file, "--id", "patient", "--out", folder, "--seed", 5)
        assert "anyone who knows the seed" in done.stderr
        texts.append(Path(folder, "north.alignment.json").read_text())
    assert texts[0] == texts[1]
    invoke("align", job_file, "--id", "patient", "--out", "three")
    assert json.loads(Path("three/north.alignment.json").read_text())["digest"] != json.loads(texts[0])["digest"]


@pytest.mark.parametrize(
    ("options", "exit_code", "says"),
    [
        (["--id", "Patient"], 8, "'Patient' is not among its 3 columns"),
        (["--id", "age"], 8, "with the ID of an earlier row (rows 2, 3, 4)"),
        (["--id", "patient", "--form", "integer"], 8, "not a whole number (rows 1, 2, 3, 4)"),
        (["--id", "patient", "--form", "raw", "--trim"], 2, "trim must come with text or integer"),
        (["--id", "patient", "--form", "hex"], 2, "hex"),
        (["--id", "patient", "--mode", "both"], 2, "both"),
        (["--id", "patient", "--out", "north.csv"], 2, "got the file"),
        ([], 2, "--id"),
    ],
)
def test_newcomers_mistakes(options: list[str], exit_code: int, says: str, invoke: Invoke, job_file: Path) -> None:
    done = invoke("align", job_file, *(options if "--out" in options else [*options, "--out", "aligned"]))
    assert done.exit_code == exit_code, done.output
    assert says in done.stderr
    assert "CANARY" not in done.output
    assert not Path("aligned").exists()


@pytest.mark.parametrize(
    ("ids", "says"),
    [
        (["p1", "", "CANARY"], "1 cell empty (row 2)"),
        (["p1", " CANARY"], "with blanks at either end (row 2)"),
        (["CANARY", "p1", "CANARY"], "with the ID of an earlier row (row 3)"),
    ],
)
def test_bad_ids_are_told_by_row(ids: list[str], says: str, invoke: Invoke, job_file: Path) -> None:
    write_table("harbour", ids)
    done = invoke("align", job_file, "--id", "patient", "--out", "aligned")
    assert done.exit_code == 8, done.output
    assert "cloister: for harbour only: party 'harbour' (" in done.stderr
    assert done.stderr.splitlines()[-1] == f"cloister: {AbsentError('harbour')}"
    assert says in done.stderr
    assert "CANARY" not in done.output
    assert not Path("aligned").exists()


def test_forms_make_ids_meet_and_an_empty_intersection_says_what_to_try(invoke: Invoke, job_file: Path) -> None:
    for party, ids in (("north", ["007", "8"]), ("harbour", ["7", "9"]), ("valley", ["0007", "11"])):
        write_table(party, ids)
    done = invoke("align", job_file, "--id", "patient", "--out", "text")
    assert (done.exit_code, "0 IDs in common" in done.stdout) == (0, True)
    assert "--form integer" in done.stderr
    done = invoke("align", job_file, "--id", "patient", "--out", "integer", "--form", "integer")
    assert "1 ID in common" in done.stdout
    assert load_alignment(Path("integer/north.alignment.json")).rows.tolist() == [0]


def test_earlier_alignments_are_kept_unless_asked(invoke: Invoke, job_file: Path) -> None:
    assert invoke("align", job_file, "--id", "patient", "--out", "aligned").exit_code == 0
    before = load_alignment(Path("aligned/north.alignment.json"))
    refused = invoke("align", job_file, "--id", "patient", "--out", "aligned")
    assert (refused.exit_code, "--overwrite" in refused.stderr) == (2, True)
    assert load_alignment(Path("aligned/north.alignment.json")).digest == before.digest
    assert invoke("align", job_file, "--id", "patient", "--out", "aligned", "--overwrite").exit_code == 0
    after = load_alignment(Path("aligned/north.alignment.json"))
    assert (after.mode, after.digest != before.digest) == (Mode.INTERSECTION, True)


def test_a_missing_table_and_a_missing_job_are_told(invoke: Invoke, job_file: Path) -> None:
    Path("valley.csv").unlink()
    done = invoke("align", job_file, "--id", "patient", "--out", "aligned")
    assert (done.exit_code, "valley.csv" in done.stderr) == (8, True)
    done = invoke("align", "none.toml", "--id", "patient", "--out", "aligned")
    assert (done.exit_code, "cloister init" in done.stderr) == (2, True)
