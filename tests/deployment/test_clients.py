"""Clients that one process hosts: each is a party of its own, and all use the host's connection."""

import asyncio
import importlib

import numpy as np
import pytest
from typer.testing import CliRunner

from cloister.cli import app
from cloister.credentials import load_keys, make_identity, make_keys
from cloister.crypto import write_fingerprint
from cloister.deployment import clients as pool
from cloister.deployment.clients import Client, Host, take_part_together
from cloister.deployment.ends import End, coordinate
from cloister.errors import ConfigError, RefusedError, TooFewPartiesError
from cloister.jobfile import load_setup, parse_setup
from cloister.runtime.remote import greeting
from cloister.runtime.remote.hub import Deadlines
from cloister.runtime.remote.tls import TlsFiles
from cloister.sessions import simulate
from tests.deployment.organisations import COORDINATOR, TLS_NAME, Organisations, make_certificate
from tests.golden.jobs import JOBS
from tests.golden.tables import write_tables

command = importlib.import_module("cloister.cli.clients")  # the package has the command itself under this name


class Pool:
    """A coordinator that knows the host's certificate and no client's, and the host."""

    def __init__(self, folder, deadlines=None, job=JOBS["masked-sum-count"]):
        write_tables(folder)
        (folder / "job.toml").write_text(job)
        self.setup = load_setup(folder / "job.toml")
        self.everyone = Organisations(self.setup)
        self.deadlines = deadlines or Deadlines(start_s=30.0, step_s=30.0)
        self.outcomes = {}

    def make_tls(self, name, other):
        key, certificate = make_certificate(name)
        trusted = make_certificate(other)[1]
        return TlsFiles(key_pem=key, certificates_pem=certificate, trusted_pem=trusted, server_name=TLS_NAME)

    async def run(self, names=None, identities=None):
        everyone = self.everyone
        end = End(
            identity=everyone.identities[COORDINATOR],
            tls=self.make_tls(COORDINATOR, "host"),
            journal_key=b"",
            agreed=everyone.agreed,
            deadlines=self.deadlines,
        )
        port = asyncio.get_running_loop().create_future()
        serving = asyncio.ensure_future(
            coordinate(everyone.own_setup(COORDINATOR), end, listen="127.0.0.1:0", on_listening=port.set_result)
        )
        host = Host(
            setup=self.setup,
            clients=[
                Client(name=name, identity=(identities or everyone.identities)[name])
                for name in names or everyone.names
            ],
            agreed=everyone.agreed,
            tls=self.make_tls("host", COORDINATOR),
            deadlines=self.deadlines,
        )
        address = f"127.0.0.1:{await port}"
        await take_part_together(
            host, address=address, on_end=lambda outcome: self.outcomes.update({outcome.name: outcome})
        )
        return await serving


def test_clients_of_one_process_find_what_they_find_in_simulation_over_one_connection(tmp_path, monkeypatch):
    made = []
    real = pool.SharedConnection
    monkeypatch.setattr(pool, "SharedConnection", lambda *args: made.append(real(*args)) or made[-1])
    together = Pool(tmp_path)
    expected = simulate(together.setup, evaluate=False)
    course = asyncio.run(together.run())
    assert len(made) == 1
    assert course.sessions[0].run.transcript_sha256 == expected.transcript_sha256
    for party in expected.parties:
        outcome = together.outcomes[party.name]
        assert outcome.error is None
        assert np.array_equal(outcome.result.centres, expected.centres)
        assert outcome.result.parties == (party,)


def test_a_host_cannot_speak_for_a_client_whose_identity_it_does_not_hold(tmp_path):
    """Its certificate lets it through TLS, and no further."""
    together = Pool(tmp_path, Deadlines(start_s=2.0, step_s=2.0))
    names, identities = together.everyone.names, together.everyone.identities
    stolen = {**identities, names[0]: identities[names[1]]}
    with pytest.raises(TooFewPartiesError, match=f"missing: {names[0]}"):
        asyncio.run(together.run(identities=stolen))
    assert isinstance(together.outcomes[names[0]].error, RefusedError)
    assert all(isinstance(together.outcomes[name].error, TooFewPartiesError) for name in names[1:])


def test_a_job_of_very_many_parties_begins_at_the_deadline_without_those_who_did_not_come(tmp_path, monkeypatch):
    monkeypatch.setattr(greeting, "CONSENTS_MOST", 2)
    job = JOBS["naive"].replace("[protocol]\n", "[protocol]\nmin_parties = 2\n")
    together = Pool(tmp_path, Deadlines(start_s=2.0, step_s=20.0), job)
    *names, last = together.everyone.names
    course = asyncio.run(together.run(names=names))
    assert course.hub.left == (last,)
    for name in names:
        result = together.outcomes[name].result
        assert result.between.left == (last,)
        assert [party.name for party in result.between.parties] == [name]  # it was shown its own consent


@pytest.fixture
def files(tmp_path):
    """What the command is given for two clients: keys, tables, and a job that names their identities."""
    (tmp_path / "data").mkdir()
    coordinator = [make_keys(name, tmp_path) for name in ("host", "coordinator")][-1]
    lines = ['name = "files"\n[clusters]\nk = 2\n[columns]\nx = { low = 0, high = 1 }\n[budget]\nepsilon = 1.0']
    lines.append(f'[coordinator]\nidentity = "{coordinator.public.fingerprint}"\naddress = "127.0.0.1:7400"')
    for name in ("one", "two"):
        identity = write_fingerprint(make_identity(name, tmp_path / "keys").public_bytes)
        lines.append(f'[[parties]]\nname = "client {name}"\nidentity = "{identity}"')
        (tmp_path / "data" / f"{name}.csv").write_text("x\n0.5\n")
    (tmp_path / "job.toml").write_text("\n".join(lines) + "\n")
    return tmp_path


def host_from(folder):
    found = tuple(command._find_clients(folder / "keys", folder / "data"))
    task = command.Hosting(folder / "job.toml", str(folder / "host.key"), (folder,), found, folder / "ledgers", "", 5.0)
    return command._open_host(task)


def test_a_host_reads_each_clients_identity_table_and_ledger_and_uses_its_own_certificate(files):
    host = host_from(files)
    assert [client.name for client in host.clients] == ["client one", "client two"]
    side = host.setup.own_side("client two")
    assert (side.data, side.ledger) == (files / "data" / "two.csv", files / "ledgers" / "two.ledger")
    assert host.tls.own == load_keys(files / "host.key").public.chain.der


def test_tables_without_keys_and_identities_that_the_job_does_not_name_are_refused(files):
    (files / "data" / "three.csv").write_text("x\n0.5\n")
    with pytest.raises(ConfigError, match=r"1 of 3 in .* have none in .*, such as three"):
        host_from(files)
    make_identity("three", files / "keys")
    with pytest.raises(ConfigError, match="the job must name each client's identity"):
        host_from(files)


def test_the_command_asks_for_consent_for_all(files):
    places = ["--keys", files / "keys", "--data", files / "data", "--host", files / "host.key"]
    done = CliRunner().invoke(app, ["clients", *map(str, (files / "job.toml", *places))])
    assert done.exit_code == ConfigError.exit_code
    assert "--yes was not given" in done.stderr


def test_what_a_clients_table_is_refused_for_stays_with_its_host(files, monkeypatch):
    """The result may be shown around; clients.csv, in its folder, has the clients' own errors."""
    write_tables(files)
    result = simulate(parse_setup(JOBS["masked-sum-count"], folder=files), evaluate=False)
    rows = [command.Row("two", "two.csv, row 7: a cell must be a number"), command.Row("one", "finished", 10, 20)]
    monkeypatch.setattr(command, "_host_all", lambda tasks: (rows, result))
    places = ["--keys", files / "keys", "--data", files / "data", "--host", files / "host.key", "--out", files / "out"]
    for more in ([], ["--overwrite"]):  # it is Cloister's own file: a later result may replace it
        done = CliRunner().invoke(app, ["clients", *map(str, (files / "job.toml", *places)), "--yes", *more])
        assert done.exit_code == 0, done.stderr
        table = files / "out" / "clients.csv"
        assert table.stat().st_mode & 0o777 == 0o600
        assert table.read_text().splitlines()[2].startswith('two,"two.csv, row 7')
