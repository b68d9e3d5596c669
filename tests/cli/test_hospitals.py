"""Three messy tables of hospitals, to centres with a privacy card in at most four commands, no table touched.

What is messy: missing cells, free text, IDs, dates, two spellings of them, another column order, an index that pandas
wrote, semicolons and decimal commas.
"""

from __future__ import annotations

import csv
import re
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.cli.conftest import Invoke

from cloister.report import read_result
from cloister.report.centres import find_shares

NAMES = ["patient_id", "age", "creatinine", "ward", "sex", "smoker", "admitted", "notes"]
WARDS = ["medicine", "surgery", "renal"]
FILLED = {
    "age": "{ low = 0, high = 120 }",
    "creatinine": "{ low = 0, high = 15 }",
    "ward": '{ levels = ["medicine", "surgery", "renal"] }',
    "sex": '{ levels = ["f", "m"] }',
    "admitted": "{ from = 2015-01-01, to = 2034-12-31 }",
}


def draw(rows: int, seed: int) -> list[dict[str, Any]]:
    """Three kinds of patients, which differ in age, creatinine, ward and smoking."""
    rng = np.random.default_rng(seed)
    kinds = rng.integers(0, 3, rows)
    drawn = []
    for kind in kinds:
        ward = WARDS[kind] if rng.random() < 0.8 else rng.choice(WARDS)
        drawn.append(
            {
                "patient_id": f"P{rng.integers(10**8):08}",
                "age": f"{rng.normal([30, 52, 75][kind], 4):.0f}",
                "creatinine": f"{max(0.2, rng.normal([0.8, 1.0, 4.0][kind], 0.3)):.2f}",
                "ward": ward,
                "sex": rng.choice(["f", "m"]),
                "smoker": rng.choice(["yes", "no"], p=[[0.1, 0.9], [0.8, 0.2], [0.2, 0.8]][kind]),
                "admitted": date(2024, 1, 1) + timedelta(days=int(rng.integers(300))),
                "notes": f"stable, seen by CANARY {rng.integers(10**9)}",
            }
        )
        if rng.random() < 0.03:
            drawn[-1][rng.choice(["age", "creatinine", "smoker"])] = rng.choice(["", "NA"])
    return drawn


def write_tables(folder: Path) -> None:
    def write(name: str, rows: list[dict[str, Any]], names: list[str], separator: str, **spell: Any) -> None:
        with (folder / name).open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, delimiter=separator)
            writer.writerow(names)
            for i, row in enumerate(rows):
                writer.writerow([spell.get(one, lambda cell: cell)(row.get(one, i)) for one in names])

    write("north.csv", draw(1500, 1), NAMES, ",")
    write("harbour.csv", draw(1500, 2), ["", *NAMES[::-1]], ",")
    german = {"admitted": lambda day: f"{day:%d.%m.%Y}", "creatinine": lambda cell: cell.replace(".", ",")}
    write("valley.csv", draw(1500, 3), NAMES[3:] + NAMES[:3], ";", **german)


@pytest.fixture
def hospitals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    write_tables(tmp_path)
    return tmp_path


def fill_in(folder: Path) -> None:
    """Edit the job file as its comments ask for."""
    text = (folder / "job.toml").read_text()
    for name, bounds in FILLED.items():
        text, times = re.subn(rf"^{name}( *)= {{}}.*$", rf"{name}\1= {bounds}", text, flags=re.MULTILINE)
        assert times == 1
    for line in ("[data]", 'missing = "drop"', 'decimal = ","'):
        assert f"\n# {line}" in text
        text = text.replace(f"\n# {line}", f"\n{line}")
    (folder / "job.toml").write_text(text)


def test_three_messy_tables_become_centres_in_four_commands(hospitals: Path, invoke: Invoke) -> None:
    tables = {name: (hospitals / name).read_bytes() for name in ("north.csv", "harbour.csv", "valley.csv")}
    written = invoke("init", "north.csv", "--party", "harbour=harbour.csv", "--party", "valley=valley.csv")
    assert written.exit_code == 0, written.output
    fill_in(hospitals)
    planned = invoke("plan", "job.toml", "--quick", "--records", 4000)
    assert planned.exit_code == 0, planned.output
    done = invoke("run", "job.toml", "--out", "result")
    assert done.exit_code == 0, done.output
    labelled = invoke("predict", "result", "north.csv", "--out", "labels.csv")
    assert labelled.exit_code == 0, labelled.output
    assert "Privacy card" in done.stdout
    assert "Shares of the levels of ward" in done.stdout
    assert {name: (hospitals / name).read_bytes() for name in tables} == tables
    result = read_result("result")
    assert result.card is not None
    ages = np.sort(result.centres[:, 0])
    np.testing.assert_allclose(ages, [30, 52, 75], atol=3)
    wards = find_shares(result)["ward"]
    common = [wards.levels[wards.common[j]] for j in np.argsort(result.centres[:, 0])]
    assert common == WARDS
    assert len(Path("labels.csv").read_text().splitlines()) == 1501
    for name in ("north", "harbour", "valley"):
        assert f"for {name} only: records with missing cells were left out" in done.stderr
    for output in (written.output, planned.output, done.output, Path("job.toml").read_text()):
        assert "CANARY" not in output


def test_the_job_file_holds_no_value_unless_asked_for(hospitals: Path, invoke: Invoke) -> None:
    pairs = ["--party", "harbour=harbour.csv", "--party", "valley=valley.csv"]
    done = invoke("init", "north.csv", *pairs)
    text = (hospitals / "job.toml").read_text()
    assert "Left out, as comments: patient_id, notes." in done.stdout
    assert "Cells are missing in age, creatinine, smoker" in done.stdout
    values = {cell for row in draw(1500, 1) for name, cell in row.items() if name in ("ward", "patient_id", "notes")}
    assert not [value for value in values if str(value) in text + done.output]
    lines = {name: next(line for line in text.splitlines() if line.startswith((name, f"# {name}"))) for name in NAMES}
    assert lines["smoker"].endswith("{ boolean = true }")
    assert "dates" in lines["admitted"]
    assert "few values" in lines["ward"]
    assert lines["patient_id"].startswith("#")
    assert "ID" in lines["patient_id"]
    assert "free text" in lines["notes"]
    text = (hospitals / "north.csv").read_text()
    (hospitals / "north.csv").write_text(text.replace(",medicine,", ",RARE,", 19))  # one fewer than would be proposed
    invoke("init", "north.csv", *pairs, "--levels", "--force")
    assert "RARE" not in (hospitals / "job.toml").read_text()
    proposed = next(line for line in (hospitals / "job.toml").read_text().splitlines() if "medicine" in line)
    assert proposed.startswith("# ward")
    assert "VALUES OF RECORDS" in proposed


def test_all_problems_of_all_tables_are_told_at_once(hospitals: Path, invoke: Invoke) -> None:
    (hospitals / "few.csv").write_text("age,ward\n1,a\n")
    (hospitals / "broken.csv").write_text("4711,5\n1,2\n")
    pairs = [f"--party={name}={name}.csv" for name in ("few", "broken", "gone")]
    done = invoke("init", "north.csv", *pairs)
    assert done.exit_code == 0
    for words in (
        "creatinine: not in the table of few",
        "broken: the first line of broken.csv must be a header",
        "gone: the table must be readable",
    ):
        assert words in done.stdout
    text = (hospitals / "job.toml").read_text()
    assert re.search(r"^# creatinine += {}  # left out: not in the table of few", text, re.MULTILINE)
    assert "4711" not in text + done.output


def test_a_table_that_was_not_prepared_says_what_to_do(hospitals: Path, invoke: Invoke) -> None:
    invoke("init", "north.csv", "--party", "harbour=harbour.csv", "--party", "valley=valley.csv")
    fill_in(hospitals)
    job = hospitals / "job.toml"
    text = job.read_text()
    job.write_text(text.replace('missing = "drop"', '# missing = "drop"'))
    done = invoke("run", "job.toml")
    assert done.exit_code == 8
    assert "for north only: party 'north' (north.csv)" in done.stderr
    assert 'write missing = "drop" in [data]' in done.stderr
    assert "cloister: every party must be able to take part; 'north' is not." in done.stderr
    job.write_text(text.replace('decimal = ","', '# decimal = ","'))
    assert 'write decimal = ","' in invoke("run", "job.toml").stderr
    job.write_text(text.replace("[columns]\n", "[columns]\nnotes = { low = 0, high = 1 }\n"))
    told = invoke("run", "job.toml").stderr
    assert "Leave 'notes' out of [columns], or give it levels" in told
    assert "CANARY" not in told


def test_split_columns_are_drafted_too(tmp_path: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(4)
    ids, kinds = np.arange(300), rng.integers(0, 2, 300)
    rows = [f"{i},{20 + 50 * k + rng.normal(0, 3):.1f},{'fm'[k]}" for i, k in zip(ids, kinds, strict=True)]
    Path("bank.csv").write_text("customer,income,plan\n" + "\n".join(rows) + "\n")
    rows = [f"{5 + 20 * k + rng.normal():.1f};{i};1" for i, k in zip(ids, kinds, strict=True)]
    Path("telco.csv").write_text("data_gb;customer;plan\n" + "\n".join(rows) + "\n")
    done = invoke("init", "bank.csv", "--vertical", "--id", "customer", "--party", "telco=telco.csv", "-k", 2)
    assert done.exit_code == 0, done.output
    assert "plan: in your table and in that of telco" in done.stdout
    text = Path("job.toml").read_text()
    for name, bounds in {"income": "{ low = 0, high = 150 }", "data_gb": "{ low = 0, high = 50 }"}.items():
        text = re.sub(rf"^{name}( *)= {{}}.*$", rf"{name}\1= {bounds}", text, flags=re.MULTILINE)
    text = re.sub(r"^plan( *)= {}.*$", r'plan\1= { levels = ["f", "m"] }', text, flags=re.MULTILINE)
    Path("job.toml").write_text(text.replace("[budget]\nepsilon = 1.0\n", ""))
    done = invoke("run", "job.toml", "--out", "result")
    assert done.exit_code == 0, done.output
    incomes = np.sort(read_result("result").centres[:, 0])
    np.testing.assert_allclose(incomes, [20, 70], atol=2)
    assert invoke("init", "bank.csv", "--vertical", "--out", "b.toml").exit_code == 2
