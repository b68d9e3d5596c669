"""From the text of a job file to a ``Job``: every complaint names the file, the line and the key."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from cloister.errors import ConfigError
from cloister.job.key_lines import KeyLines
from cloister.job.model import DataOptions, Job, ProtocolOptions
from cloister.job.problems import KeyedConfigError
from cloister.job.sections import (
    SECTION_KEYS,
    SECTIONS,
    build_section,
    check_keys,
    check_required,
    read_budget,
    read_clusters,
    read_columns,
    read_feddp,
    read_knobs,
    read_parties,
    refuse_missing_bounds,
)

MAX_JOB_BYTES = 4 * 2**20
_TOML_LINE = re.compile(r"\(at line (\d+), column \d+\)")


def load_job(path: str | Path) -> Job:
    """Read and check a job file.

    Parameters
    ----------
    path
        A TOML file in UTF-8. Paths in it are relative to its folder.

    Raises
    ------
    ConfigError
        If it cannot be read, or a rule does not hold: ``file:line: key must ...; got .... What to do.``
    """
    path = Path(path)
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_JOB_BYTES + 1)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise ConfigError(
            f"the job must be a readable file; got {path}: {reason}. 'cloister init data.csv' writes one."
        ) from None
    if len(raw) > MAX_JOB_BYTES:
        raise ConfigError(f"a job file must have at most {MAX_JOB_BYTES} bytes; {path} has more. Is it a table?")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{path}:{line}: a job file must be UTF-8 text; got other bytes. Save it as UTF-8.") from None
    return parse_job(text, folder=path.parent, source_name=str(path))


def parse_job(text: str, *, folder: str | Path = ".", source_name: str = "job") -> Job:
    """Read and check the text of a job file.

    Parameters
    ----------
    text
        TOML.
    folder
        Where relative paths in the job start from.
    source_name
        What messages call the text, before the line.
    """
    text = text.replace("\r\n", "\n")
    document = _parse_toml(text, source_name)
    try:
        return _read_job(document, Path(folder))
    except KeyedConfigError as error:
        line = KeyLines(text).find(error.path)
        where = source_name if line is None else f"{source_name}:{line}"
        raise ConfigError(f"{where}: {error}") from None


def _parse_toml(text: str, source_name: str) -> dict[str, Any]:
    """Parse, with syntax errors told like all others."""
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ConfigError(f"{source_name}: a job must not nest lists this deeply. Simplify it.") from None
    except ValueError as error:  # a syntax error, or a number with more digits than Python converts
        match = _TOML_LINE.search(str(error))
        line = int(match[1]) if match else text.rstrip("\n").count("\n") + 1
        reason = _TOML_LINE.sub("", str(error)).strip()
        raise ConfigError(
            f"{source_name}:{line}: the job must be valid TOML; got: {reason}. Its syntax: https://toml.io"
        ) from None


def _read_job(document: dict[str, Any], folder: Path) -> Job:
    """Build the job from the parsed sections."""
    check_keys((), document, SECTIONS)
    for section, known in SECTION_KEYS.items():  # a misplaced key explains a missing section: tell it first
        if section in document:
            check_keys((section,), document[section], known)
    if "columns" not in document:
        refuse_missing_bounds(("columns",), "age", "no section [columns]")
    check_required((), document, ("name", "clusters", "columns", "parties"))
    for section, key in (("network", "model"), ("ledger", "path")):
        if section in document:
            check_required((section,), document[section], (key,))
    protocol = build_section(ProtocolOptions, ("protocol",), document.get("protocol", {}))
    data = build_section(DataOptions, ("data",), document.get("data", {}))
    return Job(
        name=document["name"],
        protocol=protocol,
        k=read_clusters(document["clusters"]),
        choose_k=document["clusters"].get("choose_k", False),
        columns=read_columns(document["columns"]),
        parties=read_parties(document["parties"]),
        data=data,
        network=document.get("network", {}).get("model"),
        seed=document.get("run", {}).get("seed"),
        secure=document.get("run", {}).get("secure", False),
        budget=read_budget(document["budget"], protocol, data) if "budget" in document else None,
        ledger=document.get("ledger", {}).get("path"),
        synopsis=read_knobs(document["synopsis"]) if "synopsis" in document else None,
        feddp=read_feddp(document["feddp"]) if "feddp" in document else None,
        folder=folder,
    )
