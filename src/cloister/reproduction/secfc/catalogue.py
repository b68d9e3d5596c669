"""All artefacts of SecFC, in the order in which they are made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from cloister.errors import ConfigError
from cloister.reproduction.products import Product
from cloister.reproduction.secfc.accuracy_tables import ACCURACY_TABLES
from cloister.reproduction.secfc.lab import SecfcLab
from cloister.reproduction.secfc.scope import SecfcScope
from cloister.reproduction.secfc.time_figure import TimeFigure
from cloister.reproduction.secfc.trials import Trial


class SecfcArtefact(Protocol):
    """One figure or table of the paper."""

    @property
    def name(self) -> str:
        """What ``--only`` and the files call it."""

    @property
    def title(self) -> str:
        """What it shows, and where the paper has it."""

    def list_trials(self, scope: SecfcScope) -> list[Trial]:
        """The runs that it needs."""

    def count_sessions(self, scope: SecfcScope) -> int:
        """How many timed sessions it makes, one tick of the lab each."""

    def make(self, scope: SecfcScope, lab: SecfcLab) -> Product:
        """Make it from runs that are done, and time what is to be timed."""


SECFC_ARTEFACTS: tuple[SecfcArtefact, ...] = (*ACCURACY_TABLES, TimeFigure())


def choose_secfc_artefacts(names: Sequence[str] | None) -> tuple[SecfcArtefact, ...]:
    """The artefacts of these names, or all of them; in the catalogue's order."""
    known = {artefact.name: artefact for artefact in SECFC_ARTEFACTS}
    if names is None:
        return SECFC_ARTEFACTS
    unknown = [name for name in names if name not in known]
    if unknown or not names:
        got = ", ".join(unknown) or "none"
        raise ConfigError(f"--only must name artefacts; got {got}. Known are: {', '.join(known)}.")
    return tuple(artefact for artefact in SECFC_ARTEFACTS if artefact.name in names)
