"""From the text of a job file to a ``Job``: every complaint names the file, the line and the key.

The shape (sections, known keys, required keys) is checked here; what the values must hold, by ``Job`` itself.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, TypeVar

from cloister.data.columns import Column
from cloister.errors import ConfigError
from cloister.job.checks import check_bounds
from cloister.job.key_lines import KeyLines
from cloister.job.model import DataOptions, Job, JobParty, ProtocolOptions
from cloister.job.problems import (
    KeyedConfigError,
    KeyPath,
    check_choice,
    check_number,
    check_text,
    format_path,
    quote_key,
    quote_string,
    refuse,
    show_value,
    suggest,
)
from cloister.privacy.units import EPSILON_LEAST, EPSILON_MOST, Budget, Unit

MAX_JOB_BYTES = 4 * 2**20
_SECTIONS = (
    "name",
    "protocol",
    "clusters",
    "columns",
    "data",
    "parties",
    "network",
    "run",
    "budget",
    "ledger",
)
_SECTION_KEYS: dict[str, tuple[str, ...]] = {
    "protocol": tuple(f.name for f in fields(ProtocolOptions)),
    "clusters": ("k",),
    "data": tuple(f.name for f in fields(DataOptions)),
    "network": ("model",),
    "run": ("seed", "secure"),
    "budget": tuple(f.name for f in fields(Budget)),
    "ledger": ("path",),
}
_TOML_LINE = re.compile(r"\(at line (\d+), column \d+\)")

Section = TypeVar("Section", ProtocolOptions, DataOptions, JobParty)


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
    _check_keys((), document, _SECTIONS)
    for section, known in _SECTION_KEYS.items():  # a misplaced key explains a missing section: tell it first
        if section in document:
            _check_keys((section,), document[section], known)
    if "columns" not in document:
        _refuse_missing_bounds(("columns",), "age", "no section [columns]")
    _check_required((), document, ("name", "protocol", "clusters", "columns", "parties"))
    for section, key in (("clusters", "k"), ("network", "model"), ("ledger", "path")):
        if section in document:
            _check_required((section,), document[section], (key,))
    return Job(
        name=document["name"],
        protocol=_build(ProtocolOptions, ("protocol",), document["protocol"]),
        k=document["clusters"]["k"],
        columns=_read_columns(document["columns"]),
        parties=_read_parties(document["parties"]),
        data=_build(DataOptions, ("data",), document.get("data", {})),
        network=document.get("network", {}).get("model"),
        seed=document.get("run", {}).get("seed"),
        secure=document.get("run", {}).get("secure", False),
        budget=_read_budget(document["budget"]) if "budget" in document else None,
        ledger=document.get("ledger", {}).get("path"),
        folder=folder,
    )


def _read_columns(table: object) -> tuple[Column, ...]:
    """Read ``[columns]``: each needs public bounds."""
    if not isinstance(table, dict):
        refuse(("columns",), "be a section of columns with bounds", show_value(table))
    if not table:
        _refuse_missing_bounds(("columns",), "age", "no column")
    columns = []
    for name, bounds in table.items():
        path: KeyPath = ("columns", name)
        check_text(path, name, longest=200)
        if not isinstance(bounds, dict):
            refuse(path, "be a table of bounds", show_value(bounds), f"Write: {_show_bounds(name)}")
        _check_keys(path, bounds, ("low", "high"))
        missing = [key for key in ("low", "high") if key not in bounds]
        if missing:
            _refuse_missing_bounds(path, name, f"no {' and no '.join(missing)}")
        check_bounds(path, bounds["low"], bounds["high"])
        columns.append(Column(name=name, low=float(bounds["low"]), high=float(bounds["high"])))
    return tuple(columns)


def _refuse_missing_bounds(path: KeyPath, name: str, got: str) -> None:
    """Say why bounds must be written by hand."""
    refuse(
        path,
        "have public bounds, low and high",
        got,
        "The smallest and the largest value of a column are two people's records, so they are not public and "
        f"Cloister does not take them from the data. Fill in low and high for column {name} from what is "
        f"generally known, for example: {_show_bounds(name)}",
    )


def _show_bounds(name: str) -> str:
    """Return an example line."""
    return f"{quote_key(name)} = {{ low = 0, high = 100 }}"


def _read_budget(table: Any) -> Budget:
    """Read ``[budget]``."""
    _check_required(("budget",), table, ("epsilon",))
    epsilon = check_number(("budget", "epsilon"), table["epsilon"])
    if not EPSILON_LEAST <= epsilon <= EPSILON_MOST:
        must = f"be greater than 0, from {EPSILON_LEAST:g} to {EPSILON_MOST:g}"
        refuse(("budget", "epsilon"), must, show_value(table["epsilon"]), "Less is all noise, more is no privacy.")
    delta = check_number(("budget", "delta"), table.get("delta", 0.0))
    if not 0 <= delta < 1:
        refuse(("budget", "delta"), "be at least 0 and less than 1", show_value(table["delta"]))
    unit = table.get("unit", Unit.RECORD.value)
    check_choice(("budget", "unit"), unit, [unit.value for unit in Unit])
    return Budget(epsilon=epsilon, delta=delta, unit=Unit(unit))


def _read_parties(tables: object) -> tuple[JobParty, ...]:
    """Read ``[[parties]]``: in a file, each says where its table lies."""
    if not isinstance(tables, list):
        refuse(("parties",), "be written as [[parties]], once for each party", show_value(tables))
    parties = []
    for i, table in enumerate(tables):
        parties.append(_build(JobParty, ("parties", i), table))
        if parties[-1].data is None:
            refuse(("parties", i), "have the key data", "none", 'Write: data = "north.csv"')
    return tuple(parties)


def _build(section: type[Section], path: KeyPath, table: Any) -> Section:
    """Make one of the model's sections, whose fields are the keys it takes."""
    known = fields(section)
    _check_keys(path, table, tuple(f.name for f in known))
    _check_required(path, table, tuple(f.name for f in known if f.default is MISSING))
    values = {key: _freeze(value) if isinstance(value, list) else value for key, value in table.items()}
    return section(**values)


def _freeze(value: Any) -> Any:
    """Turn lists into tuples, all the way down."""
    return tuple(_freeze(item) for item in value) if isinstance(value, list) else value


def _check_keys(path: KeyPath, table: object, known: tuple[str, ...]) -> None:
    """Refuse what is not a table, and keys that nobody reads."""
    if not isinstance(table, dict):
        refuse(path, f"be a table with the keys {', '.join(known)}", show_value(table))
    for key in table:
        if key not in known:
            what_to_do = suggest(key, known) or _find_home(key) or "Remove it."
            refuse((*path, key), f"be a known key ({', '.join(known)})", quote_string(key), what_to_do)


def _check_required(path: KeyPath, table: Mapping[str, Any], required: tuple[str, ...]) -> None:
    """Refuse a table that lacks a key."""
    for key in required:
        if key not in table:
            where = format_path(path) or "the job"
            raise KeyedConfigError((*path, key), f"{where} must have the key {key}; got none. Add it.")


def _find_home(key: str) -> str:
    """Return where a key belongs that was written in the wrong section."""
    homes = [section for section, known in _SECTION_KEYS.items() if key in known and key != "name"]
    return f"It belongs in [{homes[0]}]." if homes else ""
