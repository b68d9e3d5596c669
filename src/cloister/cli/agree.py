"""``cloister join``: shows a party what it is about to agree to, and records its consent."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cloister.cli.failures import EXIT_DECLINED
from cloister.cli.ledger_report import format_epsilon, name_ledger, suggest_cap
from cloister.cli.output import AsJson, print_json
from cloister.errors import ConfigError

if TYPE_CHECKING:
    from rich.console import Console

    from cloister.agreement import LedgerOutlook, Terms
    from cloister.columns import Column
    from cloister.job import Setup
    from cloister.privacy.units import Noisy
    from cloister.protocol import PublicInput

CONSENT_SUFFIX = ".consent"
JobFile = Annotated[Path, typer.Argument(metavar="JOB.TOML", help="The job file.", show_default=False)]
Keys = Annotated[str, typer.Option(help="Our keys: NAME.key, or the name of keys in the default folder.")]
Own = Annotated[Path | None, typer.Option(metavar="FILE", help="Our own side: where our table and ledger are.")]
Records = Annotated[
    int | None, typer.Option(min=1, help="Where columns are split: about how many records will be aligned.")
]


def join(
    job_file: JobFile,
    keys: Keys,
    own: Own = None,
    records: Records = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where the consent goes; default: PARTY.consent beside the job.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Agree without being asked.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show what a job between organisations asks of us, and agree to one run of it. Sends and spends nothing."""
    from cloister.agreement import describe_terms, give_consent, write_consent
    from cloister.credentials import find_keys, load_keys
    from cloister.deployment.keys import find_role
    from cloister.job import COORDINATOR
    from cloister.jobfile import load_job, load_party_setup
    from cloister.protocol import read_public_input
    from cloister.report.layout import make_console

    job, held = load_job(job_file), load_keys(find_keys(keys))
    party = find_role(job, held)
    if party == COORDINATOR:
        raise ConfigError("a party must use its own keys; these are the coordinator's, which has nothing to agree to.")
    setup = load_party_setup(job_file, party, own)
    public: PublicInput = read_public_input(setup)
    terms = describe_terms(setup, party, public, records=records)
    path = find_consent(job_file, party) if out is None else out
    if as_json:
        if yes:
            write_consent(give_consent(held.identity, job, party), path)
        print_json({"consent": path if yes else None, **list_terms(terms)})
        return
    print_terms(terms, setup, make_console())
    if not yes and not typer.confirm(f"\nDo you agree, as {party}, to one run of this job?"):
        typer.echo("Nothing was recorded.")
        raise typer.Exit(EXIT_DECLINED)
    write_consent(give_consent(held.identity, job, party), path)
    typer.echo(f"Written: {path}. It is good for one run of exactly this job: cloister party {job_file} --keys ...")


def find_consent(job_file: Path, party: str) -> Path:
    """Return where a party's consent is by default: beside the job."""
    return job_file.parent / f"{party}{CONSENT_SUFFIX}"


def list_terms(terms: Terms) -> dict[str, object]:
    """Return what a party is about to agree to, for ``--json``."""
    from cloister.privacy.card import UNPROVED

    job, charges, leakage = terms.job, terms.charges, terms.leakage
    return {
        "name": job.name,
        "digest": job.digest.hex(),
        "party": terms.party.name,
        "protocol": terms.runs.protocol.name,
        "why": terms.why,
        "coordinator": job.coordinator.identity,
        "parties": {party.name: party.identity for party in job.parties},
        "columns": terms.columns,
        "budget": job.budget,
        "noise": None if charges is None else charges.placement.who_adds,
        "learns": [{"role": row.role, "learns": row.learns.value, "what": row.meaning} for row in leakage.rows],
        "withstands": UNPROVED if terms.runs.protocol.flaw else leakage.claim(_find_epsilon(terms)),
        "breaks_if": leakage.breaks_if,
        "flaw": terms.runs.protocol.flaw,
        "policy": terms.policy,
        "ledger": terms.ledger,
    }


def print_terms(terms: Terms, setup: Setup, console: Console) -> None:
    """Print what a party is about to agree to."""
    from cloister.planning.plan import value_noise
    from cloister.report.layout import print_line

    job = terms.job
    k = f"at most {job.k}" if job.choose_k else str(job.k)
    console.print(
        f"{job.name}: what {terms.party.name} is about to agree to: {k} clusters, by {terms.runs.protocol.name}"
    )
    print_line(console, f"The job's digest is {job.digest.hex()}. All who take part must have the same.")
    for sentence in terms.why:
        print_line(console, sentence)
    _print_people(terms, console)
    _print_columns(terms, console)
    noisy = value_noise(terms.runs, _find_epsilon(terms), seeded=setup.seed is not None)
    _print_leakage(terms, noisy, console)
    _print_budget(terms, noisy, console)
    _print_own(terms, setup, console)


def _print_people(terms: Terms, console: Console) -> None:
    from rich.text import Text

    from cloister.report.layout import WIDTH, make_table, print_heading, print_table

    print_heading(console, "Who takes part")
    people = {"the coordinator": terms.job.coordinator.identity}
    for party in terms.job.parties:
        people[f"{party.name} (you)" if party == terms.party else party.name] = party.identity
    if console.width < WIDTH:  # an identity stays whole, so that it can be copied and searched for
        for name, identity in people.items():
            console.print(Text(f"  {name}\n    {identity}"), soft_wrap=True)
        return
    table = make_table("who", "identity", left=2)
    for name, identity in people.items():
        table.add_row(Text(name), identity)
    print_table(console, table)


def _print_columns(terms: Terms, console: Console) -> None:
    from rich.text import Text

    from cloister.report.layout import make_table, print_heading, print_line, print_table

    print_heading(console, "Your columns, and the bounds onto which values outside are moved, or their levels")
    if not terms.columns:
        print_line(console, "None: you hold no records in this job.")
        return
    table = make_table("column", "low", "high")
    for column in terms.columns:
        table.add_row(Text(column.name), *_describe_bounds(column))
    print_table(console, table)
    if terms.job.data.id is not None:
        print_line(
            console, f"Records are aligned by {terms.job.data.id}: docs/align.md says who learns what from that."
        )


def _describe_bounds(column: Column) -> tuple[str, str]:
    """Return a column's bounds as people write them; of a category, its first and last levels."""
    from cloister.columns import show_date

    if column.kind == "category":
        return column.levels[0], f"{column.levels[-1]} ({len(column.levels)} levels)"
    if column.kind == "date":
        return show_date(column.low), show_date(column.high)
    return f"{column.low:g}", f"{column.high:g}"


def _print_leakage(terms: Terms, noisy: Noisy, console: Console) -> None:
    from cloister.privacy.card import UNPROVED
    from cloister.report.layout import make_table, print_heading, print_line, print_table

    print_heading(console, "Who would learn what")
    table = make_table("who", "learns", "what", left=3)
    previous = ""
    for (role, how), rows in groupby(terms.leakage.rows, key=lambda row: (row.role, row.learns)):
        name = {"coordinator": "the coordinator", "party": "each party"}[role]
        table.add_row("" if role == previous else name, how.in_words(noisy), "\n".join(row.meaning for row in rows))
        previous = role
    print_table(console, table)
    claim = UNPROVED if terms.runs.protocol.flaw else terms.leakage.claim(_find_epsilon(terms))
    print_line(console, f"Withstands: {claim}")
    print_line(console, f"Breaks if: {terms.leakage.breaks_if}")
    print_line(console, f"Proved in {terms.leakage.source}.")


def _find_epsilon(terms: Terms) -> float | None:
    budget, limit = terms.job.budget, terms.leakage.limit
    return limit if budget is None or limit is not None else budget.epsilon


def _print_budget(terms: Terms, noisy: Noisy, console: Console) -> None:
    from cloister.planning.plan import explain_not_private, name_any
    from cloister.report.layout import print_heading, print_line

    print_heading(console, "What the result may reveal")
    why_not = explain_not_private(noisy, _find_epsilon(terms))
    if why_not:
        print_line(console, why_not)
    budget = terms.job.budget
    if budget is None or terms.charges is None:
        return
    unit = name_any(budget.unit.value)
    print_line(console, f"Epsilon {budget.epsilon:g} at delta {budget.delta:g}, for {unit}, over all rounds together.")
    print_line(console, f"Noise: {terms.charges.placement.who_adds}")
    if terms.runs.protocol.flaw:
        print_line(console, terms.runs.protocol.flaw)


def _print_own(terms: Terms, setup: Setup, console: Console) -> None:
    from cloister.report.layout import print_heading, print_line

    print_heading(console, "Your own side; nobody else learns it")
    side = setup.own_side(terms.party.name)
    if terms.columns:
        print_line(console, f"Table: {side.data or 'not named yet: --own FILE'}")
    allowed = (
        "none: nothing but this question limits what a job may ask for" if terms.policy is None else "allows the job"
    )
    print_line(console, f"Policy: {allowed}" + ("" if terms.policy is None else f" ({terms.policy})"))
    if terms.ledger is None:
        print_line(console, "Ledger: none would be charged.")
        return
    for line in describe_outlook(terms.ledger):
        console.print(f"  {line}", soft_wrap=True)  # paths stay whole


def describe_outlook(outlook: LedgerOutlook) -> list[str]:
    """Say what a job would do to a ledger."""
    promise = f"at delta {outlook.delta:g} for one {outlook.unit.value}"
    there = "" if outlook.exists else ", which would be made"
    lines = [
        f"Ledger: data set {outlook.dataset!r} in {outlook.path}{there}.",
        f"Spent: epsilon {format_epsilon(outlook.before)} before, {format_epsilon(outlook.after)} after this job, "
        f"{promise}.",
    ]
    for which, cap in (("this data set", outlook.cap), ("all data sets", outlook.cap_of_all)):
        if cap is not None:
            lines.append(f"Cap on {which}: epsilon {cap.epsilon:g} at delta {cap.delta:g} for one {cap.unit.value}.")
    if outlook.cap is None and outlook.cap_of_all is None:
        command = suggest_cap(name_ledger(outlook.path), outlook, outlook.after, new=not outlook.exists)
        lines.append(f"No cap: jobs add up without limit. Set one: {command}")
    if outlook.refusal:
        lines.append(f"THE LEDGER WOULD REFUSE THE JOB: {outlook.refusal}")
    return lines
