"""All artefacts of SecFC, in the order in which they are made."""

from __future__ import annotations

from collections.abc import Sequence

from papers.fastlloyd.products import PaperArtefact, choose_by_name
from papers.secfc.accuracy_tables import ACCURACY_TABLES
from papers.secfc.lab import SecfcLab
from papers.secfc.scope import SecfcScope
from papers.secfc.time_figure import TimeFigure
from papers.secfc.trials import Trial

SecfcArtefact = PaperArtefact[SecfcScope, Trial, SecfcLab]
"""One figure or table of the paper."""

SECFC_ARTEFACTS: tuple[SecfcArtefact, ...] = (*ACCURACY_TABLES, TimeFigure())


def choose_secfc_artefacts(names: Sequence[str] | None) -> tuple[SecfcArtefact, ...]:
    """The artefacts of these names, or all of them; in the catalogue's order."""
    return choose_by_name(SECFC_ARTEFACTS, names)
