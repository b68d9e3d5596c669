"""``cloister init``: write a commented job file from the header of a table."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Annotated

import typer

from cloister.cli.header import read_header
from cloister.errors import ConfigError

_ODD = re.compile(r"[^\w.-]+")


def init(
    table: Annotated[Path, typer.Argument(metavar="TABLE", help="A CSV or TSV file.", show_default=False)],
    out: Annotated[Path, typer.Option(help="The job file to write.")] = Path("job.toml"),
    k: Annotated[int, typer.Option("-k", min=1, help="The number of clusters.")] = 3,
    party: Annotated[
        list[str] | None, typer.Option(metavar="NAME=FILE", help="Another party and its table; repeatable.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing job file.")] = False,
) -> None:
    """Write a commented job file with the table's columns. Reads the header line and nothing else."""
    from cloister.job.template import TemplateParty, render_template  # noqa: PLC0415

    columns = read_header(table)
    if out.exists() and (out.is_dir() or not force):
        what_to_do = "Choose another name." if out.is_dir() else "Choose another with --out, or use --force."
        raise ConfigError(f"the job file must be new; got {out}, which exists. {what_to_do}")
    pairs = [_split_party(text) for text in party or []]
    if not any(file.resolve() == table.resolve() for _, file in pairs):
        pairs.insert(0, (_name_party(table), table))
    parties = [TemplateParty(name=name, data=_find_relative(file, out)) for name, file in pairs]
    name = re.sub(r"[^A-Za-z0-9_-]+", "-", out.resolve().parent.name).strip("-")[:64] or "job"
    try:
        out.write_text(render_template(name=name, k=k, columns=columns, parties=parties), encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"the job file must be writable; got {out}: {error.strerror}. Choose another.") from None
    typer.echo(f"Wrote {out}: {len(columns)} columns, {len(parties)} parties. Only the header of {table} was read.")
    typer.echo("Now fill in low and high for each column: public bounds are not taken from the data.")
    if len(parties) < 2:
        typer.echo("And name a second party: the file marks where.")
    typer.echo(f"Then: cloister plan {out}, which spends nothing; cloister run {out}")


def _split_party(text: str) -> tuple[str, Path]:
    """Split NAME=FILE."""
    name, sign, file = text.partition("=")
    if not (name.strip() and sign and file.strip()):
        raise ConfigError(f"--party must be NAME=FILE; got {text!r}. Write: --party harbour=harbour.csv")
    return name.strip(), Path(file.strip())


def _name_party(table: Path) -> str:
    """Return a party's name from its file's."""
    return _ODD.sub("-", table.stem).strip("-")[:60] or "first"


def _find_relative(file: Path, out: Path) -> str:
    """Return a path as it is written in the job file: relative to it."""
    return Path(os.path.relpath(file.resolve(), out.resolve().parent)).as_posix()
