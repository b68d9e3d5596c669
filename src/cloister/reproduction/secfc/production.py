"""Make SecFC's artefacts one after another; each is written and printed as soon as it is made."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from cloister.reproduction.production import produce
from cloister.reproduction.secfc.catalogue import SecfcArtefact
from cloister.reproduction.secfc.lab import SecfcLab
from cloister.reproduction.secfc.scope import SecfcScope
from cloister.runtime.local import OnProgress


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
