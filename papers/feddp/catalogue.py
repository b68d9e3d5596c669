"""All artefacts of FedDP-KMeans, in the order in which they are made."""

from __future__ import annotations

from collections.abc import Sequence

from papers.fastlloyd.products import PaperArtefact, choose_by_name
from papers.feddp.budget_tables import BUDGET_TABLES
from papers.feddp.cost_figures import COST_FIGURES
from papers.feddp.lab import FeddpLab
from papers.feddp.scope import FeddpScope
from papers.feddp.trials import Trial

FeddpArtefact = PaperArtefact[FeddpScope, Trial, FeddpLab]
"""One figure or table of the paper."""

FEDDP_ARTEFACTS: tuple[FeddpArtefact, ...] = (*COST_FIGURES, *BUDGET_TABLES)


def choose_feddp_artefacts(names: Sequence[str] | None) -> tuple[FeddpArtefact, ...]:
    """The artefacts of these names, or all of them; in the catalogue's order."""
    return choose_by_name(FEDDP_ARTEFACTS, names)
