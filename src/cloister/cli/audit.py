"""``cloister audit``: try to refute what a job claims, on made-up records."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cloister.cli.failures import EXIT_REFUTED

_RUNS, _LONG_RUNS = 1_000, 20_000


def audit(
    job_file: Annotated[Path, typer.Argument(metavar="JOB.TOML", help="A job with a [budget].", show_default=False)],
    claim: Annotated[
        bool, typer.Option("--claim", help=f"Exit with {EXIT_REFUTED} if the job's claim is refuted.")
    ] = False,
    runs: Annotated[int, typer.Option(min=400, help="Sessions per input and attack.")] = _RUNS,
    long: Annotated[bool, typer.Option("--long", help=f"{_LONG_RUNS:,} sessions: hours for a large job.")] = False,
    seed: Annotated[int, typer.Option(help="Another seed tries another sample.")] = 0,
    confidence: Annotated[float, typer.Option(help="That the printed bound holds.")] = 1 - 1e-6,
) -> None:
    """Run the job's whole protocol on made-up neighbouring tables and print a lower bound on its epsilon.

    No table of the job is read. A bound above the claim refutes it; one below proves nothing.
    """
    from cloister.audit import audit as run_audit  # noqa: PLC0415 (numba takes a second to load)
    from cloister.audit.end_to_end import prepare_audit  # noqa: PLC0415
    from cloister.cli.progress import show_progress  # noqa: PLC0415
    from cloister.crypto import Stream  # noqa: PLC0415
    from cloister.job import load_job  # noqa: PLC0415
    from cloister.report.layout import make_console  # noqa: PLC0415
    from cloister.runtime import Progress  # noqa: PLC0415

    prepared = prepare_audit(load_job(job_file))
    with show_progress(make_console(stderr=True)) as show:
        report = run_audit(
            prepared.attacks,
            claim=prepared.claim,
            stream=Stream.from_seed(seed, "audit"),
            runs=_LONG_RUNS if long else runs,
            confidence=confidence,
            on_progress=lambda label, done, total: show(Progress(step=done, steps=total, label=label, waiting_for=())),
        )
    if prepared.flaw:
        typer.echo(f"The claim is false by proof, whatever these runs show. {prepared.flaw}")
    typer.echo(report.text())
    if claim and (report.violates or prepared.flaw):
        raise typer.Exit(EXIT_REFUTED)
