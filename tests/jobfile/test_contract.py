"""The public part of a job file: the same agreement, and nobody's own side."""

import tomllib

import pytest

from cloister.jobfile import parse_job
from cloister.jobfile.contract import write_contract
from tests.golden.jobs import JOBS

ODD = """
version = 1
name = "odd"
[clusters]
k = 2
[columns]
"a.b \\"c\\" \\\\ ü" = { low = -1e-3, high = 1_000.5 }
"été" = { low = 0, high = 9007199254740993 }
[budget]
epsilon = 1
[run]
seed = 7
[network]
model = "LAN500"
[ledger]
path = "secret-ledgers"
[[parties]]
name = "north"
data = "secret-north.csv"
dataset = "secret-patients"
[[parties]]
name = "harbour"
data = "secret-harbour.csv"
dataset = "secret"
"""


@pytest.mark.parametrize("name", JOBS)
def test_every_job_keeps_its_digest(name):
    job = parse_job(JOBS[name])
    written = write_contract(JOBS[name])
    assert parse_job(written).digest == job.digest
    assert write_contract(written) == written


def test_names_of_all_kinds_are_kept_and_nothing_of_own_sides_is():
    written = write_contract(ODD)
    assert parse_job(written) == parse_job(ODD)
    assert "secret" not in written
    assert tomllib.loads(written).keys() == {"version", "name", "clusters", "columns", "budget", "parties"}
    assert "seed" not in written
