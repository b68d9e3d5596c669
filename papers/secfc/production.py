"""Make SecFC's artefacts one after another; each is written and printed as soon as it is made."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from cloister.runtime.progress import OnProgress
from papers.fastlloyd.production import produce
from papers.secfc.catalogue import SecfcArtefact
from papers.secfc.lab import SecfcLab
from papers.secfc.scope import SecfcScope


def reproduce_secfc(
    artefacts: Sequence[SecfcArtefact],
    scope: SecfcScope,
    *,
    folder: Path,
    processes: int,
    console: Console,
    on_progress: OnProgress,
) -> tuple[Path, ...]:
    """Make artefacts and return the files that were written; parameters as for FastLloyd's ``reproduce``."""
    return produce(
        artefacts,
        scope,
        SecfcLab,
        headline=f"SecFC, reproduced. {scope.note}",
        folder=folder,
        processes=processes,
        console=console,
        on_progress=on_progress,
    )
