"""Make the artefacts one after another; each is written and printed as soon as it is made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from rich.console import Console

from cloister.errors import ConfigError, MissingExtraError
from cloister.report.layout import make_console
from cloister.runtime.progress import OnProgress
from papers.fastlloyd.drawing import require_matplotlib
from papers.fastlloyd.lab import Lab, open_executor
from papers.fastlloyd.products import Artefact, print_product, write_product
from papers.fastlloyd.scope import Scope

SUMMARY = "summary.txt"
_WITHOUT_FLOWS = ("serverless",)


def reproduce(
    artefacts: Sequence[Artefact],
    scope: Scope,
    *,
    folder: Path,
    processes: int,
    console: Console,
    on_progress: OnProgress,
) -> tuple[Path, ...]:
    """Make artefacts and return the files that were written.

    What is finished stays when a later one fails or is stopped.

    Parameters
    ----------
    artefacts
        Which, in order.
    scope
        How much is run.
    folder
        Where CSV files, pictures and ``summary.txt`` go; made if it is not there, files of the same names replaced.
    processes
        How many run trials; times are taken in this process, while the others are idle.
    console
        Where the summaries are printed.
    on_progress
        Told after each trial and session.
    """
    if any(artefact.name not in _WITHOUT_FLOWS for artefact in artefacts) and find_spec("ortools") is None:
        raise MissingExtraError("constrained assignment", "ortools", "papers")
    return produce(
        artefacts,
        scope,
        Lab,
        headline=f"FastLloyd and the thesis, reproduced. {scope.note}",
        folder=folder,
        processes=processes,
        console=console,
        on_progress=on_progress,
    )


def produce(
    artefacts: Sequence[Any],
    scope: Any,
    make_lab: Callable[..., Any],
    *,
    headline: str,
    folder: Path,
    processes: int,
    console: Console,
    on_progress: OnProgress,
) -> tuple[Path, ...]:
    """Make one paper's artefacts in its lab; what they, their scopes and labs are is that paper's business."""
    require_matplotlib()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(
            f"--out must be a folder; {folder} cannot be made ({error.strerror}). Choose another."
        ) from None
    listed = {artefact.name: artefact.list_trials(scope) for artefact in artefacts}
    trials = {trial for each in listed.values() for trial in each}
    steps = len(trials) + sum(artefact.count_sessions(scope) for artefact in artefacts)
    written: list[Path] = []
    with open_executor(processes) as executor, (folder / SUMMARY).open("w", encoding="utf-8") as file:
        lab = make_lab(steps=steps, executor=executor, on_progress=on_progress)
        consoles = (console, make_console(file))
        for each in consoles:
            each.print(headline)
        for artefact in artefacts:
            lab.measure(artefact.name, listed[artefact.name])
            product = artefact.make(scope, lab)
            written += write_product(artefact.name, product, folder)
            for each in consoles:
                print_product(artefact.title, product, each)
            file.flush()
    return (*written, folder / SUMMARY)
