"""The sections of a job file: their known and required keys, and the values that the model takes.

The shape is checked here; what the values must hold, by ``Job`` itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any, TypeVar

from cloister.columns import Column
from cloister.errors import ConfigError
from cloister.job.checks import check_bounds
from cloister.job.defaults import choose_delta, resolve_noise
from cloister.job.fastlloyd_checks import FASTLLOYD
from cloister.job.feddp_section import FeddpSection
from cloister.job.model import DataOptions, JobParty, ProtocolOptions
from cloister.job.problems import (
    KeyedConfigError,
    KeyPath,
    check_choice,
    check_integer,
    check_number,
    check_text,
    format_path,
    quote_key,
    quote_string,
    refuse,
    show_value,
    suggest,
)
from cloister.job.protocol_checks import MAX_COUNT
from cloister.job.secfc_checks import SECFC
from cloister.privacy.units import EPSILON_LEAST, EPSILON_MOST, Budget, Unit
from cloister.protocols.feddp.settings import FEDDP
from cloister.protocols.synopsis.settings import SYNOPSIS, Knobs
from cloister.protocols.vertical.settings import VERTICAL

SECTIONS = (
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
    "synopsis",
    "feddp",
)
SECTION_KEYS: dict[str, tuple[str, ...]] = {
    "protocol": tuple(f.name for f in fields(ProtocolOptions)),
    "clusters": ("k", "choose_k", "k_max"),
    "data": tuple(f.name for f in fields(DataOptions)),
    "network": ("model",),
    "run": ("seed", "secure"),
    "budget": tuple(f.name for f in fields(Budget)),
    "ledger": ("path",),
    "synopsis": tuple(f.name for f in fields(Knobs)),
    "feddp": tuple(f.name for f in fields(FeddpSection)),
}

Section = TypeVar("Section", ProtocolOptions, DataOptions, JobParty)


def read_clusters(table: Mapping[str, Any]) -> Any:
    """Read ``[clusters]``: k, or the most that may be chosen. ``Job`` checks the number."""
    if table.get("choose_k") is True:
        if "k" in table:
            what_to_do = "Write k_max instead, or remove choose_k."
            refuse(("clusters", "k"), "be left out with choose_k = true", show_value(table["k"]), what_to_do)
        check_required(("clusters",), table, ("k_max",))
        return table["k_max"]
    if "k_max" in table:
        what_to_do = "Write choose_k = true, or k instead."
        refuse(("clusters", "k_max"), "come with choose_k = true", show_value(table["k_max"]), what_to_do)
    check_required(("clusters",), table, ("k",))
    return table["k"]


def read_knobs(table: Mapping[str, Any]) -> Knobs:
    """Read ``[synopsis]``; ``Knobs`` knows the ranges, and names the key that is out of its own."""
    for knob in fields(Knobs):
        if knob.name in table:
            if isinstance(knob.default, int):
                check_integer(("synopsis", knob.name), table[knob.name], 1, MAX_COUNT)
            else:
                check_number(("synopsis", knob.name), table[knob.name])
    try:
        return Knobs(**table)
    except ConfigError as error:
        blamed = [key for key in table if key in str(error)]
        raise KeyedConfigError(("synopsis", *blamed[:1]), f"in [synopsis] {error}") from None


def read_feddp(table: Mapping[str, Any]) -> FeddpSection:
    """Read ``[feddp]``; ``Job`` checks ranges that depend on others."""
    for key, value in table.items():
        path: KeyPath = ("feddp", key)
        if key in ("simplify", "clear_only"):
            if not isinstance(value, bool):
                refuse(path, "be true or false", show_value(value))
        elif key in ("lloyd_steps", "sample", "restarts"):
            check_integer(path, value, 0, MAX_COUNT)
        else:
            check_number(path, value)
    return FeddpSection(**table)


def read_columns(table: object) -> tuple[Column, ...]:
    """Read ``[columns]``: each needs public bounds."""
    if not isinstance(table, dict):
        refuse(("columns",), "be a section of columns with bounds", show_value(table))
    if not table:
        refuse_missing_bounds(("columns",), "age", "no column")
    columns = []
    for name, bounds in table.items():
        path: KeyPath = ("columns", name)
        check_text(path, name, longest=200)
        if not isinstance(bounds, dict):
            refuse(path, "be a table of bounds", show_value(bounds), f"Write: {_show_bounds(name)}")
        check_keys(path, bounds, ("low", "high"))
        missing = [key for key in ("low", "high") if key not in bounds]
        if missing:
            refuse_missing_bounds(path, name, f"no {' and no '.join(missing)}")
        check_bounds(path, bounds["low"], bounds["high"])
        columns.append(Column(name=name, low=float(bounds["low"]), high=float(bounds["high"])))
    return tuple(columns)


def refuse_missing_bounds(path: KeyPath, name: str, got: str) -> None:
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


def read_budget(table: Any, protocol: ProtocolOptions, data: DataOptions) -> Budget:
    """Read ``[budget]``; where noise is Gaussian by default, a delta that is not written follows from public values."""
    check_required(("budget",), table, ("epsilon",))
    epsilon = check_number(("budget", "epsilon"), table["epsilon"])
    if not EPSILON_LEAST <= epsilon <= EPSILON_MOST:
        must = f"be greater than 0, from {EPSILON_LEAST:g} to {EPSILON_MOST:g}"
        refuse(("budget", "epsilon"), must, show_value(table["epsilon"]), "Less is all noise, more is no privacy.")
    default = 0.0
    if (
        protocol.name in (SYNOPSIS, FEDDP, SECFC, VERTICAL)
        or protocol.placement == "joint"
        or (protocol.name == FASTLLOYD and resolve_noise(protocol) == "gaussian")
    ):
        default = choose_delta(data.records if isinstance(data.records, int) else None)  # ``Job`` refuses what is none
    delta = check_number(("budget", "delta"), table.get("delta", default))
    if not 0 <= delta < 1:
        refuse(("budget", "delta"), "be at least 0 and less than 1", show_value(table["delta"]))
    unit = table.get("unit", Unit.RECORD.value)
    check_choice(("budget", "unit"), unit, [unit.value for unit in Unit])
    return Budget(epsilon=epsilon, delta=delta, unit=Unit(unit))


def read_parties(tables: object) -> tuple[JobParty, ...]:
    """Read ``[[parties]]``: in a file, each says where its table lies, but for one that holds no columns."""
    if not isinstance(tables, list):
        refuse(("parties",), "be written as [[parties]], once for each party", show_value(tables))
    parties = []
    for i, table in enumerate(tables):
        parties.append(build_section(JobParty, ("parties", i), table))
        if parties[-1].data is None and parties[-1].columns != ():
            refuse(("parties", i), "have the key data", "none", 'Write: data = "north.csv"')
    return tuple(parties)


def build_section(section: type[Section], path: KeyPath, table: Any) -> Section:
    """Make one of the model's sections, whose fields are the keys it takes."""
    known = fields(section)
    check_keys(path, table, tuple(f.name for f in known))
    check_required(path, table, tuple(f.name for f in known if f.default is MISSING))
    values = {key: _freeze(value) if isinstance(value, list) else value for key, value in table.items()}
    return section(**values)


def _freeze(value: Any) -> Any:
    """Turn lists into tuples, all the way down."""
    return tuple(_freeze(item) for item in value) if isinstance(value, list) else value


def check_keys(path: KeyPath, table: object, known: tuple[str, ...]) -> None:
    """Refuse what is not a table, and keys that nobody reads."""
    if not isinstance(table, dict):
        refuse(path, f"be a table with the keys {', '.join(known)}", show_value(table))
    for key in table:
        if key not in known:
            what_to_do = _find_home(key) or suggest(key, known) or "Remove it."
            refuse((*path, key), f"be a known key ({', '.join(known)})", quote_string(key), what_to_do)


def check_required(path: KeyPath, table: Mapping[str, Any], required: tuple[str, ...]) -> None:
    """Refuse a table that lacks a key."""
    for key in required:
        if key not in table:
            where = format_path(path) or "the job"
            raise KeyedConfigError((*path, key), f"{where} must have the key {key}; got none. Add it.")


def _find_home(key: str) -> str:
    """Return where a key belongs that was written in the wrong section."""
    homes = [section for section, known in SECTION_KEYS.items() if key in known and key != "name"]
    return f"It belongs in [{'] or ['.join(homes)}]." if homes else ""
