"""Every protocol and model of the golden jobs gives over the network the bytes that it gives in simulation."""

import asyncio

import numpy as np
import pytest

from cloister.jobfile import load_setup
from cloister.sessions import simulate
from tests.deployment.organisations import Organisations
from tests.golden.jobs import JOBS
from tests.golden.tables import write_tables


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("tables")
    write_tables(made)
    return made


@pytest.fixture(autouse=True)
def ledgers(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))


CHOSEN = [name for name in JOBS if not name.startswith("align")]


@pytest.mark.parametrize("name", CHOSEN)
def test_a_job_gives_what_it_gives_in_simulation(name, folder, tmp_path):
    path = folder / f"{name}.toml"
    path.write_text(JOBS[name])
    setup = load_setup(path)
    labels = {}
    expected = simulate(setup, on_labels=lambda own: labels.update({own.party: own}), evaluate=False)
    course, results = asyncio.run(Organisations(setup).run_all())
    for party, (result, own) in results.items():
        assert np.array_equal(result.centres, expected.centres)
        assert result.card == expected.card or setup.job.protocol.facts.split == "rows"
        assert (own is None) == (party not in labels)
        if own is not None:
            assert np.array_equal(own.labels, labels[party].labels)
            assert own.keys == labels[party].keys
