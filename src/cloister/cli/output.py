"""``--json``: what a command found, for programs, on standard output; all else it says goes to standard error."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

AsJson = Annotated[bool, typer.Option("--json", help="Print what was found as JSON.")]


def print_json(found: object) -> None:
    """Print dataclasses, structs, mappings and lists of them; infinite numbers become null."""
    import msgspec

    typer.echo(msgspec.json.format(msgspec.json.encode(found, enc_hook=_encode), indent=2).decode())


def _encode(value: Any) -> Any:
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")
