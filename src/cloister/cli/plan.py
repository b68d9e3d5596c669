"""``cloister plan``: what a job would do, cost and find, before anything is spent."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cloister.errors import ConfigError

if TYPE_CHECKING:
    from cloister.runtime.local import OnProgress, Progress

_SILENT_S = 2.0  # a plan that is ready by then shows no progress


def plan(
    job_file: Annotated[Path, typer.Argument(metavar="JOB.TOML", help="The job file.", show_default=False)],
    records: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="About how many records there are, if the job does not declare it; a vertical job's must be known.",
        ),
    ] = None,
    epsilon: Annotated[
        str | None, typer.Option(metavar="E,E,...", help="Compare with these; default: 0.1,0.25,0.5,1,2.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Coarser, in some seconds.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the plan as JSON.")] = False,
) -> None:
    """Say what a job would do, cost and find. Reads no table and spends nothing."""
    from cloister.cli.progress import show_progress  # noqa: PLC0415 (numba takes a second to load)
    from cloister.job import load_job  # noqa: PLC0415
    from cloister.planning import plan as make_plan  # noqa: PLC0415
    from cloister.planning import print_plan  # noqa: PLC0415
    from cloister.report.layout import make_console  # noqa: PLC0415

    job = load_job(job_file)
    epsilons = None if epsilon is None else _read_epsilons(epsilon)
    with show_progress(make_console(stderr=True)) as show:
        made = make_plan(job, records=records, epsilons=epsilons, quick=quick, on_progress=_show_late(show))
    if as_json:
        import msgspec  # noqa: PLC0415

        typer.echo(msgspec.json.format(msgspec.json.encode(made), indent=2).decode())
    else:
        print_plan(made, make_console())


def _read_epsilons(text: str) -> tuple[float, ...]:
    """Read a list of numbers."""
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise ConfigError(f"--epsilon must be numbers with commas between them; got {text!r}.") from None


def _show_late(show: OnProgress) -> OnProgress:
    """Show progress only once it has taken a while."""
    started = time.monotonic()

    def tell(progress: Progress) -> None:
        if time.monotonic() - started > _SILENT_S:
            show(progress)

    return tell
