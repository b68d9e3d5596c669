"""The sections of a job file: their known and required keys, and the values that the model takes.

The shape is checked here, the values by ``Job`` itself. Which options ``[protocol]`` takes, and which
protocols have a section of their own, is looked up in the registry.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from cloister.columns import Column, parse_column, refuse_missing_bounds, show_bounds
from cloister.job import Budget, DataOptions, JobCoordinator, JobParty, Options, OwnSide, make_options
from cloister.job.options import known_options, name_takers
from cloister.job.refusals import (
    KeyedConfigError,
    KeyPath,
    check_choice,
    check_fields,
    check_number,
    check_text,
    format_path,
    quote_string,
    refuse,
    show_value,
    suggest,
)
from cloister.privacy.units import DELTA, EPSILON_LEAST, EPSILON_MOST, Unit

_PARTY_KEYS = ("name", "identity", "columns", "data", "separator", "decimal", "dataset", "alignment")
SECTION_KEYS: dict[str, tuple[str, ...]] = {
    "clusters": ("k", "choose_k", "k_max"),
    "data": DataOptions.__struct_fields__,
    "network": ("model",),
    "run": ("seed", "secure"),
    "budget": tuple(f.name for f in fields(Budget)),
    "ledger": ("path",),
    "coordinator": JobCoordinator.__struct_fields__,
}
SECTIONS = ("version", "name", "protocol", "columns", "parties", *SECTION_KEYS)


def list_own_sections() -> dict[str, type]:
    """Return the sections that belong to single protocols, by name, and what each is read into."""
    kinds = {name: options.section_kind() for name, options in known_options().items()}
    return {name: kind for name, kind in kinds.items() if kind is not None}


def choose_delta(records: int | None) -> float:
    """Return the delta of a budget that does not name one.

    Parameters
    ----------
    records
        The number of records n, if it is declared public.

    Returns
    -------
    float
        1e-6, or 1 / (n ln n) if n is public and this is less. A mechanism that publishes one record at random is
        (0, 1/n)-DP, so delta must stay well below 1/n.
    """
    if records is None or records < 2:
        return DELTA
    return min(DELTA, 1 / (records * math.log(records)))


def read_clusters(table: Mapping[str, Any]) -> Any:
    """Read ``[clusters]``: k, or the largest k that may be chosen. ``Job`` checks the number."""
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


def read_protocol(document: Mapping[str, Any]) -> Options:
    """Read ``[protocol]``, and the section of the protocol's own, if it has one."""
    table = document.get("protocol", {})
    if not isinstance(table, dict):
        refuse(("protocol",), "be a table", show_value(table))
    for key in table:
        home = "" if key == "name" or name_takers(key) else _find_home(key)
        if home:
            refuse(("protocol", key), "be a known key of [protocol]", quote_string(key), home)
    options = make_options(**table)
    for name, kind in list_own_sections().items():
        if name not in document:
            continue
        if name != options.name:
            what_to_do = f'Write protocol.name = "{name}" to use it, or remove it.'
            refuse((name,), f"come with the protocol {name}", options.name, what_to_do)
        check_keys((name,), document[name], tuple(f.name for f in fields(kind)))
        section = str(options.facts.section)
        options = replace(options, **{section: options.read(section, document[name])})
    return options


def read_columns(table: object) -> tuple[Column, ...]:
    """Read ``[columns]``: each needs public bounds or levels."""
    if not isinstance(table, dict):
        refuse(("columns",), "be a section of columns with bounds", show_value(table))
    if not table:
        refuse_missing_bounds(("columns",), "age", "no column")
    for name, bounds in table.items():
        path: KeyPath = ("columns", name)
        check_text(path, name, longest=200)
        if not isinstance(bounds, dict):
            refuse(path, "be a table of bounds", show_value(bounds), f"Write: {show_bounds(name)}")
    return tuple(parse_column(name, bounds) for name, bounds in table.items())


def read_data(table: object) -> DataOptions:
    """Read ``[data]``. Its values are checked here already: the default delta is computed from them."""
    check_keys(("data",), table, DataOptions.__struct_fields__)
    assert isinstance(table, dict)
    data = DataOptions(**table)
    check_fields(("data",), data)
    return data


def read_budget(table: Any, protocol: Options, data: DataOptions) -> Budget:
    """Read ``[budget]``; if the noise needs a delta and none is given, it follows from public values."""
    check_required(("budget",), table, ("epsilon",))
    epsilon = check_number(("budget", "epsilon"), table["epsilon"])
    if not EPSILON_LEAST <= epsilon <= EPSILON_MOST:
        must = f"be from {EPSILON_LEAST:g} to {EPSILON_MOST:g}"
        refuse(
            ("budget", "epsilon"), must, show_value(table["epsilon"]), "Less leaves only noise, more leaves no privacy."
        )
    default = choose_delta(data.records) if protocol.needs_delta else 0.0
    delta = check_number(("budget", "delta"), table.get("delta", default))
    if not 0 <= delta < 1:
        refuse(("budget", "delta"), "be at least 0 and less than 1", show_value(table["delta"]))
    unit = table.get("unit", Unit.RECORD.value)
    check_choice(("budget", "unit"), unit, [unit.value for unit in Unit])
    return Budget(epsilon=epsilon, delta=delta, unit=Unit(unit))


def read_parties(tables: object) -> tuple[JobParty, ...]:
    """Read the public part of ``[[parties]]``: their names, and who holds which columns."""
    if not isinstance(tables, list):
        refuse(("parties",), "be written as [[parties]], once for each party", show_value(tables))
    parties = []
    for i, table in enumerate(tables):
        path: KeyPath = ("parties", i)
        check_keys(path, table, _PARTY_KEYS)
        check_required(path, table, ("name",))
        columns = tuple(table["columns"]) if isinstance(table.get("columns"), list) else table.get("columns")
        parties.append(JobParty(name=table["name"], columns=columns, identity=table.get("identity")))
    return tuple(parties)


def read_coordinator(table: Mapping[str, Any]) -> JobCoordinator:
    """Read ``[coordinator]``. `Job` checks the values."""
    check_keys(("coordinator",), table, JobCoordinator.__struct_fields__)
    return JobCoordinator(identity=table.get("identity"), address=table.get("address"))


def read_own_side(path: KeyPath, table: Mapping[str, Any], folder: Path) -> OwnSide:
    """Read one party's own side; its paths start from ``folder``."""

    def find(key: str) -> Path | None:
        value = table.get(key)
        if value is not None and (not isinstance(value, str) or not value.strip()):
            refuse((*path, key), "be a path", show_value(value))
        return None if value is None else folder / value

    dataset = table.get("dataset")
    if dataset is not None:
        check_text((*path, "dataset"), dataset, longest=200)
    separator, decimal = table.get("separator"), table.get("decimal")
    if separator is not None and (not isinstance(separator, str) or len(separator) != 1):
        refuse((*path, "separator"), "be one character", show_value(separator), 'Write: separator = ";"')
    if decimal is not None:
        check_choice((*path, "decimal"), decimal, (".", ","))
    paths = {key: find(key) for key in ("data", "alignment", "ledger", "policy")}
    return OwnSide(dataset=dataset, separator=separator, decimal=decimal, **paths)


def check_keys(path: KeyPath, table: object, known: tuple[str, ...]) -> None:
    """Refuse what is not a table, and unknown keys."""
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
    """Say in which section a misplaced key belongs."""
    homes = ["protocol"] if name_takers(key) else []
    homes += [section for section, known in SECTION_KEYS.items() if key in known]
    homes += [name for name, kind in list_own_sections().items() if key in {f.name for f in fields(kind)}]
    return f"It belongs in [{'] or ['.join(homes)}]." if homes and key != "name" else ""
