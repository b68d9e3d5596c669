"""``cloister check``: everything about a job between organisations that can be tried without spending anything."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from importlib.metadata import version as version_of
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from cloister.cli.agree import JobFile, Keys, Own, Records, describe_outlook, find_consent
from cloister.cli.output import AsJson, print_json
from cloister.errors import BudgetError, CloisterError, ConfigError, LedgerError, own_error

if TYPE_CHECKING:
    from rich.console import Console

    from cloister.agreement import Terms
    from cloister.credentials import OwnKeys, PublicKeyFile
    from cloister.job import Job, Setup
    from cloister.protocol import PublicInput

Value = TypeVar("Value")
Reach = Callable[["Job", "OwnKeys", "PublicKeyFile", str], str]
"""Connects to the coordinator and hangs up: the job, our keys, its public file, its address; returns what was found."""
Peers = Annotated[
    list[Path] | None,
    typer.Option(
        metavar="PATH", help="Public files (NAME.pub) of the others, or folders of them; default: beside ours."
    ),
]


class _NotTriedError(Exception):
    """Something cannot be tried here, and that is no failure."""


class Checklist:
    """Tries one thing after the other, and says what became of each; one that needs what failed is left out."""

    def __init__(self, console: Console | None) -> None:
        self._console = console
        self.said: list[dict[str, str]] = []
        self.first_failure: CloisterError | None = None

    def try_out(self, what: str, attempt: Callable[..., tuple[Value, str]], *needed: object) -> Value | None:
        """Try one thing with the values that it needs; it returns a value for later ones, and what to say.

        Returns None if it failed, or if something that it needs had failed.
        """
        if any(value is None for value in needed):
            self._say("--", what, "left out, because something above failed")
            return None
        try:
            value, said = attempt(*needed)
        except _NotTriedError as error:
            self._say("--", what, f"not tried: {error}")
            return None
        except CloisterError as error:
            wrong = own_error(error)
            self.first_failure = self.first_failure or wrong
            self._say("FAILED", what, str(wrong))
            return None
        self._say("ok", what, said)
        return value

    def _say(self, outcome: str, what: str, said: str) -> None:
        self.said.append({"what": what, "outcome": outcome, "said": said})
        if self._console is not None:
            self._console.print(f"  {outcome:<7} {what}: {said}", soft_wrap=True)


def check(
    job_file: JobFile,
    keys: Keys,
    own: Own = None,
    peers: Peers = None,
    address: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="Where the coordinator listens; default: the job's address.")
    ] = None,
    records: Records = None,
    as_json: AsJson = False,
) -> None:
    """Try what spends nothing before a job between organisations: files, keys, policy, table, ledger, reach."""
    from cloister.deployment.reach import reach_coordinator
    from cloister.report.layout import make_console

    checklist = Checklist(None if as_json else make_console())
    failure = run_checks(checklist, job_file, keys, own, peers, address, records, reach=reach_coordinator)
    if as_json:
        print_json({"ok": failure is None, "checks": checklist.said})
    if failure is not None:
        raise typer.Exit(failure.exit_code)


def run_checks(
    checklist: Checklist,
    job_file: Path,
    keys: str,
    own: Path | None,
    peers: list[Path] | None,
    address: str | None,
    records: int | None,
    *,
    reach: Reach | None,
) -> CloisterError | None:
    """Try everything; return the first failure."""
    from cloister.job import COORDINATOR

    job = checklist.try_out("job", _read_job, job_file)
    held = checklist.try_out("keys", _read_keys, keys)
    role = checklist.try_out("our place in the job", _find_place, job, held)
    peers_found = checklist.try_out("public files", partial(_find_peers, keys, peers), job, role)
    if role != COORDINATOR:
        setup = checklist.try_out("own side and policy", partial(_read_setup, job_file, own), role)
        public = checklist.try_out("public values", _read_public, setup)
        terms = checklist.try_out("what is agreed", partial(_agree, records), setup, role, public)
        checklist.try_out("own table", _open_table, setup, role)
        checklist.try_out("ledger", _look_at_ledger, terms)
        checklist.try_out("consent", partial(_find_consent, job_file), job, held, role)
        checklist.try_out("coordinator", partial(_reach, address, reach), job, held, peers_found)
    return checklist.first_failure


def _read_job(path: Path) -> tuple[Job, str]:
    from cloister.jobfile import load_job

    job = load_job(path)
    return job, f"{job.name}, {len(job.parties)} parties, digest {job.digest.hex()}"


def _read_keys(name: str) -> tuple[OwnKeys, str]:
    from cloister.credentials import find_keys, load_keys

    held = load_keys(find_keys(name))
    until = held.public.chain.valid_until
    return held, f"{held.public.name}, certificate valid until {until:%Y-%m-%d}, Cloister {version_of('cloister')}"


def _find_place(job: Job, held: OwnKeys) -> tuple[str, str]:
    from cloister.deployment.keys import find_role

    role = find_role(job, held)
    return role, role


def _find_peers(keys: str, peers: list[Path] | None, job: Job, role: str) -> tuple[dict[str, PublicKeyFile], str]:
    from cloister.credentials import find_keys, find_public_files
    from cloister.deployment.keys import list_peers

    found = find_public_files(list_peers(job, role), peers or [find_keys(keys).parent])
    first = min(one.chain.valid_until for one in found.values())
    return found, f"of {', '.join(found)}, valid until {first:%Y-%m-%d}"


def _read_setup(job_file: Path, own: Path | None, role: str) -> tuple[Setup, str]:
    from cloister.job import find_policy
    from cloister.jobfile import load_party_setup

    setup = load_party_setup(job_file, role, own)
    policy = find_policy(setup.own_side(role))
    return setup, "no policy: nothing limits what a job may ask for" if policy is None else f"{policy} allows the job"


def _read_public(setup: Setup) -> tuple[PublicInput, str]:
    from cloister.protocol import read_public_input

    public = read_public_input(setup)
    return public, "none but the job" if public.server is None else f"a public table of {len(public.server):,} rows"


def _agree(records: int | None, setup: Setup, role: str, public: PublicInput) -> tuple[Terms, str]:
    from cloister.agreement import describe_terms

    terms = describe_terms(setup, role, public, records=records)
    return terms, f"{terms.runs.protocol.name}; cloister join shows all of it"


def _open_table(setup: Setup, role: str) -> tuple[bool, str]:
    from cloister.cli.progress import describe_changes
    from cloister.report.layout import format_quantity
    from cloister.sessions.tables import open_own_table

    party = next(one for one in setup.job.parties if one.name == role)
    table = open_own_table(setup, party, {}).table
    if table is None:
        return True, "we hold no records in this job"
    found = table.check()
    changes = describe_changes(setup.job.find_columns(party), found)
    return True, "; ".join([f"{format_quantity(found.records, 'record')}, for your eyes only", *changes])


def _look_at_ledger(terms: Terms) -> tuple[bool, str]:
    if terms.ledger is None:
        return True, "none would be charged"
    if terms.ledger.refusal:
        raise BudgetError(terms.ledger.refusal)
    folder = next(one for one in terms.ledger.path.absolute().parents if one.exists())
    if not terms.ledger.exists and not os.access(folder, os.W_OK):
        raise LedgerError(
            f"a ledger must be made at {terms.ledger.path}, and {folder} cannot be written to. Name another."
        )
    head = f" (head: {terms.ledger.head})" if terms.ledger.head else ""
    return True, " ".join(describe_outlook(terms.ledger)).removeprefix("Ledger: ") + head


def _find_consent(job_file: Path, job: Job, held: OwnKeys, role: str) -> tuple[bool, str]:
    from cloister.agreement import check_consent, read_consent

    path = find_consent(job_file, role)
    if not path.exists():
        return True, f"none yet: cloister join {job_file} --keys NAME --own FILE"
    check_consent(read_consent(path), held.public.identity, job, role, source=str(path))
    return True, f"{path} is good for one run"


def _reach(
    address: str | None, reach: Reach | None, job: Job, held: OwnKeys, peers: dict[str, PublicKeyFile]
) -> tuple[bool, str]:
    from cloister.job import COORDINATOR

    where = address or job.coordinator.address
    if where is None:
        raise ConfigError(
            'the job must say where the coordinator listens; it does not. Write address = "host:port" in '
            "[coordinator], or give --address HOST:PORT."
        )
    if reach is None:
        raise _NotTriedError("nothing here can connect")
    return True, reach(job, held, peers[COORDINATOR], where)
