"""Make the artefacts one after another; each is written and printed as soon as it is made."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from cloister.errors import ConfigError
from cloister.report.layout import make_console
from cloister.reproduction.drawing import require_matplotlib
from cloister.reproduction.lab import open_executor
from cloister.reproduction.production import SUMMARY
from cloister.reproduction.products import print_product, write_product
from cloister.reproduction.secfc.catalogue import SecfcArtefact
from cloister.reproduction.secfc.lab import SecfcLab
from cloister.reproduction.secfc.scope import SecfcScope
from cloister.runtime.progress import OnProgress


def reproduce_secfc(
    artefacts: Sequence[SecfcArtefact],
    scope: SecfcScope,
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
        lab = SecfcLab(steps=steps, executor=executor, on_progress=on_progress)
        consoles = (console, make_console(file))
        for each in consoles:
            each.print(f"SecFC, reproduced. {scope.note}")
        for artefact in artefacts:
            lab.measure(artefact.name, listed[artefact.name])
            product = artefact.make(scope, lab)
            written += write_product(artefact.name, product, folder)
            for each in consoles:
                print_product(artefact.title, product, each)
            file.flush()
    return (*written, folder / SUMMARY)
