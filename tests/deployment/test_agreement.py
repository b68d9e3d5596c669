"""Consents, policies and records in real runs: nobody takes part without having agreed, and each can prove it."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import numpy as np
import pytest

from cloister.agreement import OwnConsent, give_consent, read_consent, verify_result, write_consent
from cloister.credentials import load_public, make_keys
from cloister.deployment import own_roles
from cloister.deployment.ends import coordinate, participate
from cloister.deployment.keys import list_peers, make_end
from cloister.deployment.reach import reach_coordinator
from cloister.errors import CloisterError, PolicyError
from cloister.job import COORDINATOR, OwnSide, Setup
from cloister.jobfile import parse_job
from cloister.privacy.ledger import Ledger
from cloister.privacy.units import Unit
from cloister.report.folder import SESSION_FILE, write_result
from cloister.runtime.remote.hub import Deadlines
from cloister.runtime.remote.participant import UnreachableError
from tests.agreement.people import NAMES, make_people
from tests.agreement.test_record import write_job

pytest.importorskip("grpc")


class Town:
    """Three clinics and a coordinator, each with keys, tables and ledgers of its own, in one event loop."""

    def __init__(self, folder, *, change=lambda text: text):
        self.folder, self.people = folder, make_people(folder / "keys")
        self.text = change(write_job(self.people))
        self.job = parse_job(self.text)
        self.tables = {}
        for number, name in enumerate(NAMES):
            rng = np.random.default_rng(number)
            self.tables[name] = rng.uniform((18, 14), (95, 60), (300, 2))

    def end(self, name, *, revoked=()):
        public = {who: load_public(self.folder / "keys" / f"{who}.pub") for who in list_peers(self.job, name)}
        journals, deadlines = self.folder / f"journals-{name}", Deadlines(start_s=30, step_s=30)
        keys = self.people.keys[name]
        return make_end(self.job, keys, public, deadlines=deadlines, journals=journals, revoked=revoked)

    def own_consent(self, name):
        identity = self.people.keys[name].identity
        return OwnConsent(path=self.folder / f"{name}.consent", identity=identity, job=self.job, party=name)

    def agree(self, *names):
        for name in names:
            consent = give_consent(self.people.keys[name].identity, self.job, name)
            write_consent(consent, self.folder / f"{name}.consent")

    async def take_part(self, name, address, *, policy=None):
        own = OwnSide(dataset="patients", ledger=self.folder / f"{name}.ledger", policy=policy)

        def keep(result, labels, sign):
            write_result(result, self.folder / f"result-{name}", overwrite=True, sign=sign)

        return await participate(
            Setup(job=self.job, own={name: own}),
            name,
            self.end(name),
            address=address,
            keep=keep,
            consent=self.own_consent(name),
            contract=self.text,
            sources={name: self.tables[name]},
        )

    async def listen(self):
        """Start the coordinator; returns its task and its address."""
        port = asyncio.get_running_loop().create_future()
        serving = asyncio.ensure_future(
            coordinate(Setup(job=self.job), self.end(COORDINATOR), listen="127.0.0.1:0", on_listening=port.set_result)
        )
        await asyncio.wait((serving, port), return_when=asyncio.FIRST_COMPLETED)
        return serving, f"127.0.0.1:{port.result()}"

    async def run(self, **options):
        serving, address = await self.listen()
        parties = [asyncio.ensure_future(self.take_part(name, address, **options)) for name in NAMES]
        try:
            done = await asyncio.gather(*parties, return_exceptions=True)
            await asyncio.wait((serving,), timeout=0.1 if any(isinstance(one, Exception) for one in done) else 30)
            return done
        finally:
            for task in (serving, *parties):
                task.cancel()
            await asyncio.gather(serving, *parties, return_exceptions=True)

    def verify(self, name):
        return verify_result(self.folder / f"result-{name}", job=self.job, ledger=self.folder / f"{name}.ledger")


@pytest.mark.parametrize(
    "protocol",
    ["", '[protocol]\nname = "mask-noise-average"\niterations = 2\n'],
    ids=["synopsis", "mask-noise-average"],
)
def test_everybody_can_prove_a_run_and_no_consent_is_good_for_another(tmp_path, protocol):
    town = Town(tmp_path, change=lambda text: text.replace("[clusters]", f"{protocol}[clusters]"))
    town.agree(*NAMES)
    done = asyncio.run(town.run())
    assert [type(one).__name__ for one in done] == ["Result"] * 3, done
    for name in NAMES:
        verification = town.verify(name)
        outcomes = {check.outcome for check in verification.checks}
        assert verification.holds
        assert outcomes == ({"proved"} if not protocol else {"proved", "not shown"})
        assert (tmp_path / f"result-{name}" / SESSION_FILE).stat().st_mode & 0o077 == 0
        assert read_consent(tmp_path / f"{name}.consent").run == verification.record.run
    commitments = {town.verify(name).record.ledger for name in NAMES}
    assert len(commitments) == 3
    again = asyncio.run(town.run())
    assert all(isinstance(one, PolicyError) and "has used it up" in str(one) for one in again)


def test_parties_that_compute_other_scales_of_noise_end_before_a_ledger_pays(tmp_path, monkeypatch):
    """Scales follow from the budget through exponentials, which another library may round otherwise."""
    protocol = '[protocol]\nname = "fastlloyd"\niterations = 2\n'
    town = Town(tmp_path, change=lambda text: text.replace("[clusters]", f"{protocol}[clusters]"))
    town.agree(*NAMES)
    real, seen = own_roles.open_session, []

    def open_session(*args, **options):
        session = real(*args, **options)
        agreement = session.agreed.agreement
        seen.append(session)
        if len(seen) != 2:
            return session
        (first, *others) = agreement.noise.targets
        other = replace(first, **{name: np.nextafter(value, np.inf) for name, value in vars(first).items()})
        noise = replace(agreement.noise, targets=(other, *others))
        return replace(session, agreed=replace(session.agreed, agreement=replace(agreement, noise=noise)))

    monkeypatch.setattr(own_roles, "open_session", open_session)
    done = asyncio.run(town.run())
    assert len(seen) == 3
    assert all(isinstance(one, CloisterError) for one in done), done
    assert [str(one) for one in done if "Nothing was charged. Compare versions" in str(one)], done
    for name in NAMES:
        with Ledger(tmp_path / f"{name}.ledger") as ledger:
            assert ledger.total("patients", Unit.RECORD).epsilon(1e-6) == 0


def test_who_has_not_agreed_does_not_call_and_uses_nobodys_consent_up(tmp_path):
    town = Town(tmp_path)
    town.agree("north", "harbour")

    async def try_it():
        serving, address = await town.listen()
        parties = [asyncio.ensure_future(town.take_part(name, address)) for name in NAMES]
        with pytest.raises(PolicyError, match="no consent at"):
            await parties[2]
        await asyncio.sleep(1)
        for task in (*parties, serving):
            task.cancel()
        await asyncio.gather(serving, *parties, return_exceptions=True)

    asyncio.run(try_it())
    assert [read_consent(tmp_path / f"{name}.consent").run for name in ("north", "harbour")] == ["", ""]
    assert not (tmp_path / "valley.ledger").exists()


def test_a_policy_holds_for_what_runs_in_a_jobs_place(tmp_path):
    """Without server data, FedDP-KMeans gives way to the synopsis, which this policy does not allow."""
    town = Town(tmp_path, change=lambda text: text.replace("[clusters]", '[protocol]\nname = "feddp"\n[clusters]'))
    town.agree(*NAMES)
    (tmp_path / "policy.toml").write_text('protocols = ["feddp"]')
    done = asyncio.run(town.run(policy=tmp_path / "policy.toml"))
    assert any(isinstance(one, PolicyError) and 'got "synopsis"' in str(one) for one in done), done
    assert not list(tmp_path.glob("result-*"))


def test_the_way_to_the_coordinator_is_tried_and_nothing_is_said(tmp_path):
    town = Town(tmp_path)
    north, hub = town.people.keys["north"], town.people.keys[COORDINATOR].public
    stranger = make_keys("stranger", tmp_path)

    async def try_it():
        serving, address = await town.listen()
        found = await asyncio.to_thread(reach_coordinator, town.job, north, hub, address)
        with pytest.raises(UnreachableError):
            await asyncio.to_thread(reach_coordinator, town.job, stranger, hub, address)
        with pytest.raises(UnreachableError):  # somebody else answers there
            await asyncio.to_thread(reach_coordinator, town.job, north, stranger.public, address)
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)
        with pytest.raises(UnreachableError, match=r"hub|coordinator"):
            await asyncio.to_thread(reach_coordinator, town.job, north, hub, address)
        return found

    assert "answers over TLS" in asyncio.run(try_it())


def test_a_certificate_that_a_policy_revokes_is_not_let_in(tmp_path, monkeypatch):
    town = Town(tmp_path)
    town.agree(*NAMES)
    revoked = {town.people.keys["valley"].public.certificate_fingerprint}
    end = town.end
    monkeypatch.setattr(town, "end", lambda name: end(name, revoked=revoked if name == COORDINATOR else ()))

    async def try_it():
        serving, address = await town.listen()
        party = asyncio.ensure_future(town.take_part("valley", address))
        done = await asyncio.gather(asyncio.wait_for(party, 20), return_exceptions=True)
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)
        return done[0]

    assert "revoke" in str(asyncio.run(try_it()))
    assert read_consent(tmp_path / "valley.consent").run == ""
