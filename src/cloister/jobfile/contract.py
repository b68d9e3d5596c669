"""The public part of a job file, as a job file: what all parties agree on, and nothing of anybody's own side."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from typing import Any

from cloister.job import JobParty
from cloister.jobfile.sections import SECTIONS, list_own_sections

_NOT_AGREED = frozenset({"ledger", "run", "network"})


def write_contract(text: str) -> str:
    """Return the public part of a job file that can be read: without tables, ledgers, seeds and comments.

    The job that it holds has the same digest: nothing that is agreed on is left out.
    """
    document = tomllib.loads(text.removeprefix("\ufeff"))
    known = {*SECTIONS, *list_own_sections()} - _NOT_AGREED
    agreed = {key: value for key, value in document.items() if key in known}
    agreed["parties"] = [
        {key: value for key, value in party.items() if key in JobParty.__struct_fields__}
        for party in document["parties"]
    ]
    lines = [f"{key} = {_write(value)}" for key, value in agreed.items() if not isinstance(value, dict | list)]
    for key, value in agreed.items():
        if isinstance(value, dict):
            lines += ["", f"[{key}]", *_write_keys(value)]
        elif isinstance(value, list):
            for table in value:
                lines += ["", f"[[{key}]]", *_write_keys(table)]
    return "\n".join(lines) + "\n"


def _write_keys(table: Mapping[str, Any]) -> list[str]:
    return [f"{_quote(key)} = {_write(value)}" for key, value in table.items()]


def _write(value: Any) -> str:
    """Write one value on one line."""
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return _quote(value)
        case int() | float():
            return repr(value)
        case Mapping():
            return "{ " + ", ".join(_write_keys(value)) + " }"
        case list():
            return "[" + ", ".join(map(_write, value)) + "]"
    return str(value.isoformat())  # dates and times


def _quote(text: str) -> str:
    """Write a string; JSON's are TOML's, but for one control character."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
