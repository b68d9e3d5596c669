"""All artefacts of SecFC, in the order in which they are made."""

from __future__ import annotations

from collections.abc import Sequence

from cloister.reproduction.products import PaperArtefact, choose_by_name
from cloister.reproduction.secfc.accuracy_tables import ACCURACY_TABLES
from cloister.reproduction.secfc.lab import SecfcLab
from cloister.reproduction.secfc.scope import SecfcScope
from cloister.reproduction.secfc.time_figure import TimeFigure
from cloister.reproduction.secfc.trials import Trial

SecfcArtefact = PaperArtefact[SecfcScope, Trial, SecfcLab]
"""One figure or table of the paper."""

SECFC_ARTEFACTS: tuple[SecfcArtefact, ...] = (*ACCURACY_TABLES, TimeFigure())


def choose_secfc_artefacts(names: Sequence[str] | None) -> tuple[SecfcArtefact, ...]:
    """The artefacts of these names, or all of them; in the catalogue's order."""
    return choose_by_name(SECFC_ARTEFACTS, names)
