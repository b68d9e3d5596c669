"""Magic values in the tables never appear in what the program prints or writes, in success and in failure."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.conftest import Invoke

WORD, NUMBER, DIGITS = "CANARYWORD", "61.8033989", "618033"
TABLES = {
    "a clean table": f"age,bmi\n{NUMBER},25\n" + "30,25\n31,26\n70,24\n" * 20,
    "text in a number column": f"age,bmi\n{WORD},25\n{NUMBER},26\n",
    "a quoted cell over two lines": f'age,bmi\n"{WORD}\n{NUMBER}",25\n',
    "an open quote": f'age,bmi\n30,25\n"{WORD},{NUMBER}\n',
    "a short row": f"age,bmi\n30,25\n{NUMBER}\n",
    "a long row": f"age,bmi\n30,25\n{NUMBER},{WORD},3\n",
    "an empty cell": f"age,bmi\n{NUMBER},\n",
    "infinity": f"age,bmi\n{NUMBER},inf\n",
    "a huge number": f"age,bmi\n{NUMBER}e999,{WORD}\n",
    "no header": f"{NUMBER},25\n{WORD},26\n",
    "no records": "age,bmi\n",
    "other columns": f"bmi,{WORD}\n{NUMBER},25\n",
    "bytes that are not UTF-8": f"age,bmi\n{NUMBER},25\n{WORD}\udcff,3\n",
    "outside the bounds": f"age,bmi\n-{NUMBER}e9,25\n",
}


PRIVATE = "\n[budget]\nepsilon = 1.0\ndelta = 1e-6\n[ledger]\npath = 'books'\n"


@pytest.mark.parametrize("case", TABLES)
@pytest.mark.parametrize("protocol", ["naive", "masked-sum-count", "mask-noise-average", "synopsis"])
def test_values_of_records_appear_nowhere(case: str, protocol: str, invoke: Invoke, job_file: Path) -> None:
    text = job_file.read_text().replace("masked-sum-count", protocol)
    private = protocol in ("mask-noise-average", "synopsis")
    if private:
        text += PRIVATE
    if protocol == "synopsis":
        text = text.replace("iterations = 4\n", "") + "[synopsis]\ncells_max = 64\nrounds_max = 3\n"
    job_file.write_text(text)
    (job_file.parent / "north.csv").write_text(TABLES[case], errors="surrogateescape")
    done = invoke("run", job_file, "--seed", 1)
    # A private job runs without records, too: a refusal would tell whether the last one is there.
    runs = case in ("a clean table", "outside the bounds") or (private and case == "no records")
    assert (done.exit_code == 0) == runs, done.output
    assert done.exit_code in (0, 8), done.output
    predicted = invoke("predict", "result-small", "north.csv")
    header = invoke("init", "north.csv", "--out", "new.toml")
    written = b"".join(path.read_bytes() for folder in ("result-small", "books") for path in Path(folder).glob("*"))
    shown = done.output + predicted.output + written.decode("latin-1")
    if case != "other columns":  # there the word is a column's name, which init is asked to write
        shown += header.output + (Path("new.toml").read_text() if Path("new.toml").exists() else "")
    for secret in (WORD, NUMBER, DIGITS):
        assert secret not in shown
