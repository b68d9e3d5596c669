"""``cloister plan`` and ``cloister audit``: what a job would do, and whether its claim holds. No table is opened."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cloister.cli.failures import EXIT_REFUTED
from cloister.cli.job_files import read_setup
from cloister.cli.output import AsJson, print_json
from cloister.errors import ConfigError

if TYPE_CHECKING:
    from cloister.runtime import OnProgress, Progress

_SILENT_S = 2.0  # a plan that is ready by then shows no progress
_RUNS, _LONG_RUNS = 1_000, 20_000


def plan(
    job_file: Annotated[Path, typer.Argument(metavar="JOB.TOML", help="The job file.", show_default=False)],
    records: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="About how many records there are, if the job does not declare it; required if columns are split.",
        ),
    ] = None,
    epsilon: Annotated[
        str | None, typer.Option(metavar="E,E,...", help="Compare with these; default: 0.1,0.25,0.5,1,2.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Coarser, but ready in a few seconds.")] = False,
    as_json: AsJson = False,
) -> None:
    """Forecast what a job would do, cost and find. Reads no table and spends nothing."""
    from cloister.planning import plan as make_plan
    from cloister.planning import print_plan
    from cloister.report.layout import make_console
    from cloister.report.progress import show_progress

    setup = read_setup(job_file)
    epsilons = None if epsilon is None else _read_epsilons(epsilon)
    with show_progress(make_console(stderr=True)) as show:
        made = make_plan(setup, records=records, epsilons=epsilons, quick=quick, on_progress=_show_late(show))
    if as_json:
        print_json(made)
    else:
        print_plan(made, make_console())


def _read_epsilons(text: str) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise ConfigError(f"--epsilon must be numbers separated by commas; got {text!r}.") from None


def _show_late(show: OnProgress) -> OnProgress:
    """Show progress only after a while."""
    started = time.monotonic()

    def report(progress: Progress) -> None:
        if time.monotonic() - started > _SILENT_S:
            show(progress)

    return report


def audit(
    job_file: Annotated[Path, typer.Argument(metavar="JOB.TOML", help="A job with a [budget].", show_default=False)],
    claim: Annotated[
        bool, typer.Option("--claim", help=f"Exit with {EXIT_REFUTED} if the job's claim is refuted.")
    ] = False,
    runs: Annotated[int, typer.Option(min=400, help="Sessions per input and attack.")] = _RUNS,
    long: Annotated[bool, typer.Option("--long", help=f"{_LONG_RUNS:,} sessions: hours for a large job.")] = False,
    seed: Annotated[int, typer.Option(help="A different seed draws a different sample.")] = 0,
    confidence: Annotated[float, typer.Option(help="The probability that the printed bound holds.")] = 1 - 1e-6,
    as_json: AsJson = False,
) -> None:
    """Run the job's whole protocol on made-up neighbouring tables and print a lower bound on its epsilon.

    No table of the job is read. A bound above the claim refutes it; one below proves nothing. Whatever else runs leave
    behind must not tell more than they release: that is compared, too.
    """
    from cloister.audit import audit as run_audit
    from cloister.crypto import Stream
    from cloister.exposure import compare_everything
    from cloister.protocol import prepare_audit
    from cloister.report.layout import make_console
    from cloister.report.progress import show_progress
    from cloister.runtime import Progress

    setup = read_setup(job_file)
    prepared = prepare_audit(setup)
    with show_progress(make_console(stderr=True)) as show:
        report = run_audit(
            prepared.attacks,
            claim=prepared.claim,
            stream=Stream.from_seed(seed, "audit"),
            runs=_LONG_RUNS if long else runs,
            confidence=confidence,
            on_progress=lambda label, done, total: show(Progress(step=done, steps=total, label=label, waiting_for=())),
        )
        show(Progress(step=0, steps=1, label="comparing everything else that runs leave behind", waiting_for=()))
        rest = None if prepared.flaw else compare_everything(setup)
    if as_json:
        import msgspec

        told = {"violates": report.violates, "flaw": prepared.flaw, **msgspec.to_builtins(report)}
        told["whole_view"] = None if rest is None else {"violates": rest.violates, **msgspec.to_builtins(rest)}
        print_json(told)
    else:
        if prepared.flaw:
            typer.echo(f"The claim is provably false, whatever these runs show. {prepared.flaw}")
        typer.echo(report.text())
        if rest is not None:
            typer.echo(rest.text())
    if claim and (report.violates or prepared.flaw or (rest is not None and rest.violates)):
        raise typer.Exit(EXIT_REFUTED)
