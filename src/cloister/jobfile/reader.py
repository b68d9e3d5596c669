"""From the text of a job file to a ``Job`` or a ``Setup``: every error names the file, the line and the key."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import replace as with_fields
from pathlib import Path
from typing import Any, TypeVar

from msgspec.structs import replace

from cloister.columns import refuse_missing_bounds
from cloister.errors import ConfigError, require_kind
from cloister.job import Job, OwnSide, Policy, Setup, check_policy, find_policy
from cloister.job.refusals import KeyedConfigError, KeyPath, check_choice, refuse, show_value
from cloister.jobfile.key_lines import KeyLines
from cloister.jobfile.sections import (
    SECTION_KEYS,
    SECTIONS,
    check_keys,
    check_required,
    list_own_sections,
    read_budget,
    read_clusters,
    read_columns,
    read_coordinator,
    read_data,
    read_own_side,
    read_parties,
    read_protocol,
)
from cloister.privacy.ledger import default_ledger
from cloister.runtime import NETWORKS

VERSION = 1
"""Of the form of job files; one that names none has it."""
MAX_JOB_BYTES = 4 * 2**20
_TOML_LINE = re.compile(r"\(at line (\d+), column \d+\)")
# A dotted key of more than 16 parts, for which the parser would need time and memory in the square of their number.
_DEEP_KEY = re.compile(r"""(?<![\w-])(?:(?:[A-Za-z0-9_-]+|"(?:[^"\\\n]|\\.)*"|'[^'\n]*')[ \t]*\.[ \t]*){16}""")
_OWN_KEYS = ("data", "separator", "decimal", "dataset", "ledger", "alignment", "policy")

Read = TypeVar("Read")


def load_job(path: str | Path) -> Job:
    """Read and check the contract in a job file: what all parties agree on. The location of their tables is not read.

    Raises
    ------
    ConfigError
        If it cannot be read, or if a rule is broken: ``file:line: key must ...; got .... What to do.``
    """
    return parse_job(_read_text(path), source_name=str(path))


def load_setup(path: str | Path, *, own: Mapping[str, str | Path] | None = None) -> Setup:
    """Read and check a job file with everybody's own side, as a simulation needs it.

    Parameters
    ----------
    path
        A TOML file in UTF-8. Paths in it are relative to its folder.
    own
        By party name, the file of a party's own side (`load_own_side`), in place of that in the job file.

    Returns
    -------
    Setup
        Without any tables if the file is only the contract: plans and audits need none, and a simulation takes
        them from its caller. With a ledger for every party whose releases can be charged to one: that which its own
        side names, or else the default one (`cloister.privacy.ledger.default_ledger`).

    Raises
    ------
    ConfigError
        As `load_job`; also if the tables of some parties are named, but not of all.
    PolicyError
        If the policy that a party's own side names does not allow the job.
    """
    text, path = _read_text(path), Path(path)
    sides = {name: load_own_side(file) for name, file in (own or {}).items()}
    setup = parse_setup(text, folder=path.parent, source_name=str(path), own=sides)
    for name, side in sides.items():
        if side.policy is not None:
            check_policy(load_policy(side.policy), setup.job, name, source=str(side.policy))
    return _keep_ledgers(setup)


def load_party_setup(path: str | Path, party: str, own: str | Path | None) -> Setup:
    """Read a contract and ONE party's own side, as that party needs them between organisations.

    Nobody's own side is read from the job file: who else holds what is not this party's to read. Its ledger is the
    default one unless its own side names another.

    Raises
    ------
    ConfigError, PolicyError
        As `load_setup`.
    """
    path = Path(path)
    side = OwnSide() if own is None else load_own_side(own)
    setup = Setup(job=load_job(path), own={party: side}, folder=path.parent)
    check_own_policy(setup, party, setup.job)
    return _keep_ledgers(setup)


def load_clients_setup(job: Job, sides: Mapping[str, OwnSide], *, folder: Path) -> Setup:
    """Return a contract with the own sides of the clients that one operator hosts; its policy is that of all of them.

    Raises
    ------
    ConfigError, PolicyError
        As `load_party_setup`.
    """
    path = find_policy(OwnSide())
    policy = None if path is None else load_policy(path)
    if policy is not None:
        for name in sides:
            check_policy(policy, job, name, source=str(path))
    return _keep_ledgers(Setup(job=job, own=dict(sides), folder=folder))


def check_own_policy(setup: Setup, party: str, job: Job) -> Path | None:
    """Refuse a job, or what runs in its place, that ONE party's policy does not allow; return the policy's file.

    Raises
    ------
    ConfigError, PolicyError
        As `load_policy`, and `cloister.job.check_policy`.
    """
    policy = find_policy(setup.own_side(party))
    if policy is not None:
        check_policy(load_policy(policy), job, party, source=str(policy))
    return policy


def load_own_side(path: str | Path) -> OwnSide:
    """Read one party's own side: a TOML file with the keys of `OwnSide`.

    Paths in it are relative to its folder. No other party needs it, and nothing in it is agreed on.
    """
    path = Path(path)

    def read(document: dict[str, Any]) -> OwnSide:
        check_keys((), document, _OWN_KEYS)
        return read_own_side((), document, path.parent)

    return _read_document(_read_text(path, "an own side"), str(path), read)


def load_policy(path: str | Path) -> Policy:
    """Read a party's own policy: a TOML file with the keys of `Policy`.

    Raises
    ------
    ConfigError
        If it cannot be read, or a key or value is not one that limits anything.
    """
    path = Path(path)

    def read(document: dict[str, Any]) -> Policy:
        check_keys((), document, Policy.__struct_fields__)
        values: dict[str, Any] = {key: tuple(v) if isinstance(v, list) else v for key, v in document.items()}
        return Policy(**values)

    return _read_document(_read_text(path, "a policy"), str(path), read)


def parse_job(text: str, *, source_name: str = "job") -> Job:
    """Read and check the contract in the text of a job file; ``source_name`` is what messages call it."""
    return _read_document(text, source_name, _read_job)


def parse_setup(
    text: str, *, folder: str | Path = ".", source_name: str = "job", own: Mapping[str, OwnSide] | None = None
) -> Setup:
    """Read and check the text of a job file with everybody's own side; parameters as `load_setup`.

    Relative paths start from ``folder``.
    """
    return _read_document(text, source_name, lambda document: _read_setup(document, Path(folder), own or {}))


def _read_text(path: str | Path, what: str = "the job") -> str:
    require_kind("the path of " + what, path, str, Path)
    path = Path(path)
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_JOB_BYTES + 1)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise ConfigError(
            f"{what} must be a readable file; got {path}: {reason}. "
            + ("'cloister init data.csv' writes one." if what == "the job" else "Check the path.")
        ) from None
    if len(raw) > MAX_JOB_BYTES:
        raise ConfigError(f"a job file must have at most {MAX_JOB_BYTES} bytes; {path} has more. Is it a table?")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{path}:{line}: a job file must be UTF-8 text; got other bytes. Save it as UTF-8.") from None


def _read_document(text: str, source_name: str, read: Callable[[dict[str, Any]], Read]) -> Read:
    """Parse and read; errors start with the file and the line."""
    text = text.replace("\r\n", "\n")
    document = _parse_toml(text, source_name)
    try:
        return read(document)
    except KeyedConfigError as error:
        line = KeyLines(text).find(error.path)
        where = source_name if line is None else f"{source_name}:{line}"
        raise ConfigError(f"{where}: {error}") from None


def _parse_toml(text: str, source_name: str) -> dict[str, Any]:
    """Parse; syntax errors are reported like all others."""
    deep = _DEEP_KEY.search(text)
    if deep is not None:
        line = text.count("\n", 0, deep.start()) + 1
        raise ConfigError(f"{source_name}:{line}: a job must not nest tables this deeply. Simplify it.")
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ConfigError(f"{source_name}: a job must not nest lists this deeply. Simplify it.") from None
    except ValueError as error:  # a syntax error, or a number with more digits than Python converts
        match = _TOML_LINE.search(str(error))
        line = int(match[1]) if match else text.rstrip("\n").count("\n") + 1
        reason = _TOML_LINE.sub("", str(error)).strip()
        raise ConfigError(
            f"{source_name}:{line}: the file must be valid TOML; got: {reason}. Its syntax: https://toml.io"
        ) from None


def _read_job(document: dict[str, Any]) -> Job:
    """Read the contract from a parsed job file."""
    version = document.get("version", VERSION)
    if version != VERSION or isinstance(version, bool):  # before anything else: another version has other keys
        what_to_do = "Use the version of Cloister that the others use."
        refuse(
            ("version",),
            f"be {VERSION}, the form of job files that this Cloister reads",
            show_value(version),
            what_to_do,
        )
    check_keys((), document, (*SECTIONS, *list_own_sections()))
    for section, known in SECTION_KEYS.items():  # a misplaced key explains a missing section: report it first
        if section in document:
            check_keys((section,), document[section], known)
    protocol, data = read_protocol(document), read_data(document.get("data", {}))
    if "columns" not in document:
        refuse_missing_bounds(("columns",), "age", "no section [columns]")
    check_required((), document, ("name", "clusters", "columns", "parties"))
    return Job(
        name=document["name"],
        protocol=protocol,
        k=read_clusters(document["clusters"]),
        choose_k=document["clusters"].get("choose_k", False),
        columns=read_columns(document["columns"]),
        parties=read_parties(document["parties"]),
        data=data,
        budget=read_budget(document["budget"], protocol, data) if "budget" in document else None,
        coordinator=read_coordinator(document.get("coordinator", {})),
    )


def _read_setup(document: dict[str, Any], folder: Path, own: Mapping[str, OwnSide]) -> Setup:
    """Read the contract, everybody's own side, and how to simulate them."""
    job = _read_job(document)
    for section, key in (("network", "model"), ("ledger", "path")):
        if section in document:
            check_required((section,), document[section], (key,))
    network = document.get("network", {}).get("model")
    if network is not None:
        check_choice(("network", "model"), network, NETWORKS)
    run = document.get("run", {})
    return Setup(
        job=job,
        own=_read_own_sides(job, document, folder, own),
        folder=folder,
        seed=run.get("seed"),
        secure=run.get("secure", False),
        network=network,
    )


def _read_own_sides(job: Job, document: dict[str, Any], folder: Path, own: Mapping[str, OwnSide]) -> dict[str, OwnSide]:
    """Take each party's own side from its own file, or else from the job's."""
    names = {party.name for party in job.parties}
    for name in own:
        if name not in names:
            raise ConfigError(f"own sides must be named after the job's parties; got {show_value(name)}. Correct it.")
    ledgers = document.get("ledger", {}).get("path")
    if ledgers is not None and (not isinstance(ledgers, str) or not ledgers.strip()):
        refuse(("ledger", "path"), "be the path of a folder", show_value(ledgers))
    sides: dict[str, OwnSide] = {}
    for i, (party, table) in enumerate(zip(job.parties, document["parties"], strict=True)):
        side = own.get(party.name) or read_own_side(("parties", i), table, folder)
        if ledgers is not None and party.name not in own:  # who has an own file chooses its ledger, never the job
            side = replace(side, ledger=folder / ledgers / f"{party.name}.ledger")
        if not job.find_columns(party):
            _refuse_tables(("parties", i), table)
        sides[party.name] = side
    _require_tables(job, sides)
    return sides


def _keep_ledgers(setup: Setup) -> Setup:
    """Give every party that has no ledger the default one, where its releases can be charged."""
    job = setup.job
    if job.budget is None or not job.protocol.facts.ledger or job.protocol.flaw:
        return setup
    sides = {
        party.name: side if side.ledger is not None else replace(side, ledger=default_ledger(party.name))
        for party in job.parties
        if job.find_columns(party) and party.name in setup.own
        for side in [setup.own_side(party.name)]
    }
    return with_fields(setup, own={**setup.own, **sides})


def _refuse_tables(path: KeyPath, table: Mapping[str, Any]) -> None:
    for key in ("data", "separator", "decimal", "dataset", "alignment"):
        if key in table:
            what_to_do = "It holds no records: remove it."
            refuse((*path, key), "be left out without columns", show_value(table[key]), what_to_do)


def _require_tables(job: Job, sides: Mapping[str, OwnSide]) -> None:
    """Refuse a job that names the tables of only some parties; one that names no tables is a contract."""
    holders = [i for i, party in enumerate(job.parties) if job.find_columns(party)]
    missing = [i for i in holders if sides[job.parties[i].name].data is None]
    if 0 < len(missing) < len(holders):
        refuse(("parties", missing[0]), "have the key data", "none", 'Write: data = "north.csv"')
