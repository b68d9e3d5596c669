"""Make FedDP-KMeans's artefacts one after another; each is written and printed as soon as it is made."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from rich.console import Console

from cloister.errors import MissingExtraError
from cloister.runtime.progress import OnProgress
from papers.fastlloyd.production import produce
from papers.feddp.catalogue import FeddpArtefact
from papers.feddp.lab import FeddpLab
from papers.feddp.scope import FeddpScope


def reproduce_feddp(
    artefacts: Sequence[FeddpArtefact],
    scope: FeddpScope,
    *,
    folder: Path,
    processes: int,
    console: Console,
    on_progress: OnProgress,
) -> tuple[Path, ...]:
    """Make artefacts and return the files that were written; parameters as for FastLloyd's ``reproduce``."""
    if find_spec("dp_accounting") is None:
        raise MissingExtraError("composing Laplace with Gaussian releases", "dp-accounting", "papers")
    return produce(
        artefacts,
        scope,
        FeddpLab,
        headline=f"FedDP-KMeans, reproduced. {scope.note}",
        folder=folder,
        processes=processes,
        console=console,
        on_progress=on_progress,
    )
