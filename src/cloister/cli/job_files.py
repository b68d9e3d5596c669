"""Job files on the command line: ``cloister init`` writes one from the header of a table, other commands read one."""

from __future__ import annotations

import csv
import os
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cloister.errors import ConfigError

if TYPE_CHECKING:
    from cloister.job import Setup
    from cloister.jobfile.template import TemplateParty

_ODD = re.compile(r"[^\w.-]+")
_MOST_HEADER_BYTES = 1 << 20

OwnFiles = Annotated[
    list[str] | None,
    typer.Option("--own", metavar="PARTY=FILE", help="A file with a party's own side, if it is not in the job file."),
]


def read_setup(job_file: Path, own: list[str] | None = None, *, seed: int | None = None) -> Setup:
    """Read a job file, with the parties' own files and a seed from the command line."""
    from cloister.jobfile import load_setup

    setup = load_setup(job_file, own=dict(_split_pair(text, "--own", "north=north.toml") for text in own or []))
    return setup if seed is None else replace(setup, seed=seed)


def init(
    table: Annotated[Path, typer.Argument(metavar="TABLE", help="A CSV or TSV file.", show_default=False)],
    out: Annotated[Path, typer.Option(help="The job file to write.")] = Path("job.toml"),
    k: Annotated[int, typer.Option("-k", min=1, help="The number of clusters.")] = 3,
    party: Annotated[
        list[str] | None, typer.Option(metavar="NAME=FILE", help="Another party and its table; repeatable.")
    ] = None,
    pub: Annotated[
        list[Path] | None,
        typer.Option(metavar="NAME.PUB", help="Between organisations: a party's public file; repeatable."),
    ] = None,
    coordinator: Annotated[
        Path | None, typer.Option(metavar="NAME.PUB", help="Between organisations: the coordinator's public file.")
    ] = None,
    address: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="Between organisations: where the coordinator listens.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing job file.")] = False,
) -> None:
    """Write a commented job file with the table's columns. Reads the header line and nothing else."""
    from cloister.jobfile.template import TemplateParty, render_template

    columns = read_header(table)
    if out.exists() and (out.is_dir() or not force):
        what_to_do = "Choose another name." if out.is_dir() else "Choose another with --out, or use --force."
        raise ConfigError(f"the job file must be new; got {out}, which exists. {what_to_do}")
    if pub or coordinator is not None:
        parties, hub = _read_people(pub or [], coordinator, party or [])
    else:
        pairs = [_split_pair(text, "--party", "harbour=harbour.csv") for text in party or []]
        if not any(file.resolve() == table.resolve() for _, file in pairs):
            pairs.insert(0, (_name_party(table), table))
        parties, hub = [TemplateParty(name=name, data=_find_relative(file, out)) for name, file in pairs], None
    name = re.sub(r"[^A-Za-z0-9_-]+", "-", out.resolve().parent.name).strip("-")[:64] or "job"
    text = render_template(name=name, k=k, columns=columns, parties=parties, coordinator=hub, address=address)
    try:
        out.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"the job file must be writable; got {out}: {error.strerror}. Choose another.") from None
    typer.echo(f"Wrote {out}: {len(columns)} columns, {len(parties)} parties. Only the header of {table} was read.")
    typer.echo("Now fill in low and high for each column: public bounds are never taken from the data.")
    if len(parties) < 2:
        typer.echo("Also name a second party where the file says so.")
    then = f"each party: cloister join {out} --keys NAME --own FILE" if hub else f"cloister run {out}"
    typer.echo(f"Then: cloister plan {out}, which spends nothing; {then}")


def _read_people(pub: list[Path], coordinator: Path | None, party: list[str]) -> tuple[list[TemplateParty], str]:
    """Read who takes part between organisations: each party keeps where its table is to itself."""
    from cloister.credentials import load_public
    from cloister.jobfile.template import TemplateParty

    if not pub or coordinator is None or party:
        raise ConfigError(
            "between organisations there must be --pub for each party, --coordinator, and no --party: each keeps its "
            "table to itself; got something else. Ask everyone for their NAME.pub."
        )
    people = [load_public(file) for file in pub]
    return [TemplateParty(name=one.name, identity=one.fingerprint) for one in people], load_public(
        coordinator
    ).fingerprint


def read_header(path: Path) -> tuple[str, ...]:
    """Read the column names of a CSV (or, with tabs, TSV) file, and not one byte more: the rest are records.

    Raises
    ------
    ConfigError
        If the first line is not a header. Its cells are not shown, because they may be a record.
    """
    if path.suffix.lower() not in (".csv", ".tsv"):
        raise ConfigError(f"the table must be a .csv or .tsv file; got {path}. Write the job by hand for others.")
    try:
        # Without a buffer, readline reads byte by byte and stops at the end of the line.
        with path.open("rb", buffering=0) as file:
            raw = file.readline(_MOST_HEADER_BYTES)
    except OSError as error:
        raise ConfigError(f"the table must be readable; got {path}: {error.strerror}. Check the path.") from None
    try:
        line = raw.decode("utf-8-sig").rstrip("\r\n")
        cells = next(csv.reader([line], delimiter="\t" if path.suffix.lower() == ".tsv" else ",", strict=True), [])
    except (UnicodeDecodeError, csv.Error):
        raise ConfigError(
            f"the first line of {path} must be a header in UTF-8 with closed quotes; it is not. Correct it."
        ) from None
    names = tuple(cell.strip() for cell in cells)
    _check_names(path, names, line)
    return names


def _check_names(path: Path, names: tuple[str, ...], line: str) -> None:
    """Refuse a first line that cannot be a header; the message has counts only."""
    numbers = sum(_is_number(name) for name in names)
    if numbers:
        raise ConfigError(
            f"the first line of {path} must be a header; {numbers} of its {len(names)} cells are numbers, "
            "so it may be a record. Add a line with the columns' names."
        )
    unusable = sum(not name or not name.isprintable() or len(name) > 200 for name in names)
    if not names:
        raise ConfigError(f"{path} must start with a line of column names; the file is empty. Add one.")
    if unusable:
        raise ConfigError(
            f"the first line of {path} must name every column; {unusable} of {len(names)} names are empty, "
            "too long or not printable. Correct the header."
        )
    if len(set(names)) < len(names):
        raise ConfigError(
            f"the columns of {path} must have different names; {len(names) - len(set(names))} repeat one. Rename them."
        )
    if len(names) == 1 and any(sign in line for sign in ";\t|"):
        raise ConfigError(f"the columns of {path} must be separated by commas; something else was found. Convert it.")


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _split_pair(text: str, option: str, example: str) -> tuple[str, Path]:
    """Split NAME=FILE."""
    name, sign, file = text.partition("=")
    if not (name.strip() and sign and file.strip()):
        raise ConfigError(f"{option} must be NAME=FILE; got {text!r}. Write: {option} {example}")
    return name.strip(), Path(file.strip())


def _name_party(table: Path) -> str:
    """Derive a party's name from its file name."""
    return _ODD.sub("-", table.stem).strip("-")[:60] or "first"


def _find_relative(file: Path, out: Path) -> str:
    """Return a path relative to the job file, as it is written there."""
    return Path(os.path.relpath(file.resolve(), out.resolve().parent)).as_posix()
