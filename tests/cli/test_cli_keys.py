"""``cloister keys``: identities for organisations; and jobs that name them."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from tests.cli.conftest import Invoke
from tests.credentials.authority import Authority

from cloister.credentials import load_keys, load_public
from cloister.jobfile import load_job


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "data" / "cloister" / "keys"


def test_new_keys_are_shown_and_no_secret_is(invoke: Invoke, folder: Path) -> None:
    made = invoke("keys", "new", "north")
    assert made.exit_code == 0, made.output
    own = load_keys(folder / "north.key")
    assert stat.S_IMODE((folder / "north.key").stat().st_mode) == 0o600
    assert f'identity = "{own.public.fingerprint}"' in made.stdout
    shown = invoke("keys", "show", "north")
    for output in (made.stdout, shown.stdout, invoke("keys", "show", folder / "north.pub").stdout):
        assert own.public.fingerprint in output
        assert own.public.certificate_fingerprint in output
        assert own.public.fingerprint[8:12] + " " + own.public.fingerprint[12:16] in output
        assert "PRIVATE KEY" not in output
    letters = next(line for line in shown.stdout.splitlines() if "read out" in line).split()[3:]
    assert "".join(letters) == own.public.fingerprint[8:]


def test_keys_are_never_replaced(invoke: Invoke, folder: Path) -> None:
    invoke("keys", "new", "north")
    before = (folder / "north.key").read_bytes()
    for more in ((), ("--csr",)):
        again = invoke("keys", "new", "north", *more)
        assert again.exit_code in (2, 15)
        assert "keys renew" in again.stderr
    assert (folder / "north.key").read_bytes() == before


def test_renewing_keeps_the_identity(invoke: Invoke, folder: Path) -> None:
    invoke("keys", "new", "north", "--days", "10")
    old = load_public(folder / "north.pub")
    assert "renew it" in invoke("keys", "show", "north").stdout
    assert invoke("keys", "renew", "north").exit_code == 0
    new = load_public(folder / "north.pub")
    assert new.identity == old.identity
    assert new.chain.der != old.chain.der
    assert "renew it" not in invoke("keys", "show", "north").stdout


def test_a_lost_public_file_is_written_again(invoke: Invoke, folder: Path) -> None:
    invoke("keys", "new", "north")
    (folder / "north.pub").unlink()
    assert "Written again" in invoke("keys", "show", "north").stderr
    assert load_public(folder / "north.pub").name == "north"


def test_a_certificate_of_an_authority_is_asked_for_and_taken(invoke: Invoke, folder: Path, tmp_path: Path) -> None:
    root, chain = Authority(), tmp_path / "chain.pem"
    asked = invoke("keys", "new", "north", "--csr")
    assert asked.exit_code == 0, asked.output
    assert "keys new north --certificate" in asked.stdout
    assert invoke("keys", "show", "north").exit_code == 15
    chain.write_bytes(root.issue((folder / "north.csr").read_bytes()) + root.pem)
    assert invoke("keys", "new", "north", "--certificate", chain, "--csr").exit_code == 2
    assert invoke("keys", "new", "north", "--certificate", chain).exit_code == 0
    first = load_public(folder / "north.pub")
    assert "keys renew north --certificate" in invoke("keys", "renew", "north", "--csr").stdout
    request = (folder / "north.csr").read_bytes()
    assert invoke("keys", "renew", "north", "--certificate", chain).exit_code == 0  # the old one, again: still ours
    assert load_public(folder / "north.pub") == first
    chain.write_bytes(root.issue(request) + root.pem)
    assert invoke("keys", "renew", "north", "--certificate", chain).exit_code == 0
    renewed = load_public(folder / "north.pub")
    assert renewed.identity == first.identity
    assert renewed.chain.key != first.chain.key


@pytest.mark.parametrize("name", ["../north", ".north", "a" * 65, "a/b", ""])
def test_a_name_that_cannot_be_one_is_refused(invoke: Invoke, folder: Path, name: str) -> None:
    assert invoke("keys", "new", name).exit_code == 15
    assert not folder.exists() or not list(folder.iterdir())


def test_a_key_file_that_others_can_read_is_refused(invoke: Invoke, folder: Path) -> None:
    invoke("keys", "new", "north")
    (folder / "north.key").chmod(0o644)
    shown = invoke("keys", "show", "north")
    assert shown.exit_code == 15
    assert "chmod 600" in shown.stderr


class TestInit:
    @pytest.fixture
    def people(self, invoke: Invoke, folder: Path, tmp_path: Path) -> Path:
        for name in ("north", "harbour", "hub"):
            invoke("keys", "new", name)
        (tmp_path / "t.csv").write_text("age,bmi\n40,20\n")
        return folder

    def test_writes_a_job_that_names_everybody(self, invoke: Invoke, people: Path, tmp_path: Path) -> None:
        options = ["--pub", people / "north.pub", "--pub", people / "harbour.pub", "--coordinator", people / "hub.pub"]
        written = invoke("init", "t.csv", *options, "--address", "hub.example.org:7400")
        assert written.exit_code == 0, written.output
        text = (tmp_path / "job.toml").read_text()
        assert "data = " not in text
        (tmp_path / "job.toml").write_text(text.replace("= {}", "= { low = 0, high = 100 }"))
        job = load_job(tmp_path / "job.toml")
        assert [party.name for party in job.parties] == ["north", "harbour"]
        for name, one in zip(("north", "harbour", "hub"), (*job.parties, job.coordinator), strict=True):
            assert one.public_key == load_public(people / f"{name}.pub").identity
        assert job.coordinator.address == "hub.example.org:7400"
        assert invoke("init", "t.csv", "--out", "b.toml", *options).exit_code == 0
        assert "# address = " in (tmp_path / "b.toml").read_text()

    def test_a_half_of_it_is_refused(self, invoke: Invoke, people: Path) -> None:
        north, hub = people / "north.pub", people / "hub.pub"
        for options in (
            ["--pub", north],
            ["--coordinator", hub],
            ["--pub", north, "--coordinator", hub, "--party", "a=b"],
        ):
            assert invoke("init", "t.csv", *options).exit_code == 2
