"""Job files on the command line: ``cloister init`` writes one from the header of a table, other commands read one."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cloister.errors import ConfigError

if TYPE_CHECKING:
    from cloister.cli.drafting import Draft
    from cloister.job import Setup
    from cloister.jobfile.template import TemplateParty

_ODD = re.compile(r"[^\w.-]+")

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
    table: Annotated[
        Path, typer.Argument(metavar="TABLE", help="Your table: CSV, Parquet or Arrow.", show_default=False)
    ],
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
    vertical: Annotated[
        bool, typer.Option("--vertical", help="The parties hold different columns of the same records.")
    ] = False,
    id_column: Annotated[
        str | None, typer.Option("--id", metavar="COLUMN", help="With --vertical: the column of record IDs.")
    ] = None,
    levels: Annotated[
        bool,
        typer.Option("--levels", help="Propose, as comments, values of text columns that at least 20 rows have."),
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing job file.")] = False,
) -> None:
    """Write a commented job file with the table's columns and their kinds.

    Kinds are guessed from the cells of TABLE; of other tables the header is read and nothing else. No value is written
    unless --levels asks for some, and bounds never are.
    """
    from cloister.cli.drafting import draft_columns, draft_parties
    from cloister.jobfile.template import render_template

    if vertical is (id_column is None):
        raise ConfigError("--vertical and --id must be given together; got one of them. Write: --vertical --id COLUMN")
    if out.exists() and (out.is_dir() or not force):
        what_to_do = "Choose another name." if out.is_dir() else "Choose another with --out, or use --force."
        raise ConfigError(f"the job file must be new; got {out}, which exists. {what_to_do}")
    pairs = [_split_pair(text, "--party", "harbour=harbour.csv") for text in party or []]
    between = bool(pub) or coordinator is not None
    if not between and not any(file.resolve() == table.resolve() for _, file in pairs):
        pairs.insert(0, (_name_party(table), table))
    draft = draft_columns(table, pairs, id_column=id_column, propose_levels=levels)
    if between:
        parties, hub = _read_people(pub or [], coordinator, party or [])
    else:
        drafted = draft_parties(draft, pairs)
        parties = [replace(one, data=_find_relative(file, out)) for one, (_, file) in zip(drafted, pairs, strict=True)]
        hub = None
    name = re.sub(r"[^A-Za-z0-9_-]+", "-", out.resolve().parent.name).strip("-")[:64] or "job"
    text = render_template(
        name=name, k=k, columns=draft.columns, parties=parties, coordinator=hub, address=address, id_column=id_column
    )
    try:
        out.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"the job file must be writable; got {out}: {error.strerror}. Choose another.") from None
    _report_draft(draft, table, out, parties, hub=hub)


def _report_draft(draft: Draft, table: Path, out: Path, parties: list[TemplateParty], *, hub: str | None) -> None:
    """Say what was written, which problems there are, and what comes next."""
    used = sum(not column.left_out for column in draft.columns)
    typer.echo(f"Wrote {out}: {used} columns, {len(parties)} parties. Only the header of other tables was read.")
    typer.echo(f"Kinds are guesses from the cells of {table}: check the file before you share it.")
    for line in draft.problems:
        typer.echo(f"  {line}")
    typer.echo("Now fill in the bounds of each column: public bounds are never taken from the data.")
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
