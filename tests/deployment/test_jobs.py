"""Every protocol and model of the golden jobs gives over the network the bytes that it gives in simulation."""

import asyncio
import hashlib

import numpy as np
import pytest

from cloister.errors import InfeasibleError, TooFewPartiesError
from cloister.jobfile import load_setup
from cloister.sessions import simulate
from tests.deployment.organisations import Organisations
from tests.golden.jobs import JOBS
from tests.golden.tables import write_tables
from tests.owners import told_to_owner


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("tables")
    write_tables(made)
    return made


@pytest.fixture(autouse=True)
def ledgers(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))


PRIVATE = ("epsilon", "delta", "budget_epsilon", "neighbours", "who_adds_noise", "protects_against", "breaks_if")


@pytest.mark.parametrize("name", [name for name in JOBS if not name.startswith("align")])
def test_a_job_gives_what_it_gives_in_simulation(name, folder):
    path = folder / f"{name}.toml"
    path.write_text(JOBS[name])
    setup = load_setup(path)
    organisations, labels = Organisations(setup), {}
    if name == "fastlloyd-infeasible":
        with told_to_owner(InfeasibleError):
            simulate(setup)
        with pytest.raises((InfeasibleError, TooFewPartiesError)):
            asyncio.run(organisations.run_all())
        return
    expected = simulate(setup, on_labels=lambda own: labels.update({own.party: own}), evaluate=False)
    course, results = asyncio.run(organisations.run_all())
    traffic = {party.name: party for party in expected.parties}
    assert join_transcripts(course) == expected.transcript_sha256
    for party, (result, own) in results.items():
        assert np.array_equal(result.centres, expected.centres)
        assert result.parties == (traffic[party],)
        assert [getattr(result.card, part, None) for part in PRIVATE] == [
            getattr(expected.card, part, None) for part in PRIVATE
        ]
        assert result.notes == expected.notes[:-1]  # but for the seed
        assert (own is None) == (party not in labels)
        if own is not None:
            assert np.array_equal(own.labels, labels[party].labels)
            assert own.keys == labels[party].keys


def join_transcripts(course):
    """The transcript of a clustering and, if there was one, of the session for labels, as a simulation joins them."""
    first, *rest = [one.run.transcript_sha256 for one in course.sessions if one.kind != "alignment"]
    return first if not rest else hashlib.sha256(bytes.fromhex(first + rest[0])).hexdigest()
