"""Whoever would do something else in a session has another digest of its public parameters."""

from dataclasses import replace

import pytest

from cloister.jobfile import load_setup
from cloister.protocol import read_public_input
from cloister.sessions.assembly import open_session
from tests.golden.jobs import JOBS
from tests.golden.tables import write_tables

ALIKE = (
    {"synopsis-defaults", "synopsis-network"},
    {"feddp-record", "feddp-shared"},
    {"feddp-published", "feddp-ledger"},
    {"mask-noise-average", "mask-noise-average-shared"},
    {"mask-noise-average-laplace", "mask-noise-average-laplace-shared"},
    {"fastlloyd-gaussian", "fastlloyd-shared"},
    {"fastlloyd-laplace", "fastlloyd-ledger"},
    {"fastlloyd-published", "fastlloyd-infeasible"},
    {"vertical-budget", "vertical-labels", "vertical-id", "vertical-ledger"},
)
"""What differs is a default said aloud, a name, where a ledger is, or who gets labels in a session of its own."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("tables")
    write_tables(made)
    return made


def find_digest(folder, name, **changes):
    path = folder / "job.toml"
    path.write_text(JOBS[name])
    setup = load_setup(path)
    public = read_public_input(setup)
    if setup.job.protocol.facts.split != "rows":
        public = replace(public, records=setup.job.data.records or 80, alignment="00" * 32)
    directory = tuple(bytes([number]) * 32 for number in range(len(setup.job.parties)))
    session = open_session(setup.job, directory, replace(public, **changes), session=bytes(16))
    return session.protocol.digest(session.agreed)


def test_jobs_that_do_other_things_have_other_digests(folder):
    found = {}
    for name in JOBS:
        if not name.startswith("align"):
            found.setdefault(find_digest(folder, name), set()).add(name)
    assert [names for names in found.values() if len(names) > 1] == list(ALIKE)


def test_what_is_known_of_the_records_is_in_it(folder):
    one, *others = (find_digest(folder, "vertical-id", alignment=byte * 32) for byte in ("00", "01"))
    assert one not in others
