"""``cloister ledger show | cap | join | export``: what a party's data sets have paid, and how much they may."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cloister.cli.failures import guard
from cloister.cli.ledger_report import format_epsilon
from cloister.cli.output import AsJson, print_json
from cloister.errors import ConfigError

if TYPE_CHECKING:
    from cloister.privacy.ledger import DataSummary

ledger_app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="What this party's data sets have paid in privacy, and how much they may.",
)
LedgerName = Annotated[
    str,
    typer.Argument(metavar="LEDGER", help="The ledger file; or a party's name: its default one.", show_default=False),
]


@ledger_app.command()
@guard
def show(
    ledger_name: LedgerName,
    head: Annotated[str | None, typer.Option(help="A head noted earlier: check that it is still there.")] = None,
    delta: Annotated[float, typer.Option(help="State epsilon at this delta where a data set has no cap.")] = 1e-6,
    as_json: AsJson = False,
) -> None:
    """Verify every entry, then print what each data set has paid. Never creates a ledger."""
    from cloister.privacy.ledger import Ledger
    from cloister.report.layout import make_console, print_line

    path = find_ledger(ledger_name)
    with Ledger(path, create=False) as ledger:
        last = ledger.verify(head=None if head is None else head.lower())
        summaries = ledger.summarise(delta=delta)
        everything = ledger.summarise_one(None, delta=delta)
    if as_json:
        entries = {"entries": last.number, "head": last.chain}
        print_json({"ledger": path, **entries, "data_sets": summaries, "together": everything})
        return
    console = make_console()
    holds = f"{_count(len(summaries), 'data set')}; {_count(last.number, 'entry', 'entries')}, none changed."
    console.print(f"{path}: {holds}", soft_wrap=True)
    for summary in (*summaries, *([everything] if len(summaries) > 1 or everything.cap else [])):
        _print_summary(summary, ledger_name)
    console.print(f"\nhead {last.chain}", soft_wrap=True)
    command = shlex.join(["cloister", "ledger", "show", ledger_name, "--head", last.chain])
    print_line(console, "Note it elsewhere. It shows later whether entries were edited or removed since:")
    console.print(f"  {command}", soft_wrap=True)


@ledger_app.command()
@guard
def cap(
    ledger_name: LedgerName,
    epsilon: Annotated[float, typer.Option(help="How much all jobs together may spend.")],
    delta: Annotated[float, typer.Option(help="Below 1 / number of records; 0 allows pure releases only.")],
    reason: Annotated[str, typer.Option(help="Why; kept in the ledger.")],
    dataset: Annotated[
        str | None, typer.Option(help="Cap one data set, by its name; default: all data sets of the ledger together.")
    ] = None,
    unit: Annotated[str, typer.Option(help="Whose presence is hidden: record, person or client.")] = "record",
    new: Annotated[bool, typer.Option("--new", help="Make the ledger if there is none: before any job.")] = False,
    as_json: AsJson = False,
) -> None:
    """Limit what all jobs together may spend. The latest cap counts; all are kept."""
    from cloister.privacy.ledger import Ledger
    from cloister.privacy.ledger.schema import make_folder
    from cloister.privacy.units import Budget, Unit

    if unit not in {known.value for known in Unit}:
        raise ConfigError(f"--unit must be record, person or client; got {unit!r}.")
    budget, path = Budget(epsilon=epsilon, delta=delta, unit=Unit(unit)), find_ledger(ledger_name)
    if new:
        make_folder(path.parent)
    with Ledger(path, create=new) as ledger:
        name = None if dataset is None else ledger.find_dataset(dataset)
        ledger.set_cap(name, budget, reason=reason)
        summary = ledger.summarise_one(name)
    _tell(summary, ledger_name, as_json=as_json)


@ledger_app.command()
@guard
def join(
    ledger_name: LedgerName,
    dataset: Annotated[str, typer.Option(help="The name, or the start of an old fingerprint, that is no more.")],
    into: Annotated[str, typer.Option(help="The data set that it is: takes over all that the other has paid.")],
    reason: Annotated[str, typer.Option(help="Why; kept in the ledger.")],
    as_json: AsJson = False,
) -> None:
    """Say that two names are one data set. This cannot be undone."""
    from cloister.privacy.ledger import Ledger

    with Ledger(find_ledger(ledger_name), create=False) as ledger:
        ledger.join(dataset, into, reason=reason)
        summary = ledger.summarise_one(into)
    _tell(summary, ledger_name, as_json=as_json)


@ledger_app.command()
@guard
def export(
    ledger_name: LedgerName,
    out: Annotated[Path | None, typer.Option(help="A new file; default: standard output.")] = None,
) -> None:
    """Write every entry as a line of JSON, with its hash but without the salt."""
    from cloister.privacy.ledger import Ledger

    with Ledger(find_ledger(ledger_name), create=False) as ledger:
        ledger.verify()
        text = "".join(f"{line}\n" for line in ledger.export())
    if out is None:
        typer.echo(text, nl=False)
        return
    try:
        with out.open("x", encoding="utf-8", newline="\n") as file:
            file.write(text)
    except FileExistsError:
        raise ConfigError(f"--out must name a new file; got {out}, which exists. Choose another name.") from None
    except OSError as error:
        raise ConfigError(f"--out must be writable; got {out}: {error.strerror}. Choose another place.") from None


def find_ledger(name: str) -> Path:
    """Return a ledger's file: the file itself, or the default ledger of a party."""
    from cloister.privacy.ledger import default_ledger

    path = Path(name)
    is_file = path.exists() or len(path.parts) > 1 or path.suffix == ".ledger"
    return path if is_file else default_ledger(name)


def _tell(summary: DataSummary, ledger_name: str, *, as_json: bool) -> None:
    if as_json:
        print_json(summary)
    else:
        _print_summary(summary, ledger_name)


def _print_summary(summary: DataSummary, ledger_name: str) -> None:
    """Print what a data set has paid: words first, then numbers."""
    from cloister.cli.ledger_report import suggest_cap
    from cloister.privacy.ledger.entries import shorten_name
    from cloister.report.layout import make_console, print_heading, print_line

    console = make_console()
    name = "all data sets together" if summary.dataset is None else f"data set {shorten_name(summary.dataset)!r}"
    print_heading(console, name)
    for line in _describe(summary):
        print_line(console, line)
    if summary.cap is None:
        print_line(console, "No cap: only each job's own budget limits it, and jobs add up. Set one:")
        console.print(f"  {suggest_cap(ledger_name, summary, summary.epsilon)}", soft_wrap=True)


def _describe(summary: DataSummary) -> Iterator[str]:
    if summary.seeded:
        yield f"{_count(summary.seeded, 'run')} with a seed: not private, and not counted."
    if not summary.charges and not summary.held:
        yield "Nothing has been released from it yet."
    else:
        first, last = _day(summary.first), _day(summary.last)
        yield (
            f"{_count(summary.charges, 'release')} in {_count(summary.sessions, 'session')} of "
            f"{', '.join(summary.jobs) or 'no job'}, {first if first == last else f'{first} to {last}'}."
        )
        if summary.held:
            yield f"{_count(summary.held, 'hold')} for work that has not been settled, counted as spent."
        yield _guarantee(summary)
    if summary.cap is not None:
        limit = summary.cap
        yield f"Cap: epsilon {limit.epsilon:g} at delta {limit.delta:g} for one {limit.unit.value}."
        if summary.epsilon >= limit.epsilon:
            yield "The cap is reached: every further release is refused."


def _guarantee(summary: DataSummary) -> str:
    """Describe how much all releases together reveal about one unit."""
    from cloister.privacy.units import EPSILON_CLAIMED_MOST

    promise = f"for one {summary.unit.value} at delta {summary.delta:g}"
    if math.isinf(summary.epsilon):
        return f"Spent: no bound holds {promise} (epsilon infinite)."
    rho = "" if math.isinf(summary.rho) else f" (rho {format_epsilon(summary.rho)})"
    said = f"Spent: epsilon {format_epsilon(summary.epsilon)}{rho}, all releases together, {promise}."
    if summary.epsilon <= EPSILON_CLAIMED_MOST:
        return said
    return f"{said} Above epsilon {EPSILON_CLAIMED_MOST:g} no protection is claimed."


def _count(number: int, one: str, many: str | None = None) -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def _day(time: str | None) -> str:
    """Return the date of an ISO time."""
    return "" if time is None else time[:10]
