"""All artefacts of FedDP-KMeans, in the order in which they are made."""

from __future__ import annotations

from collections.abc import Sequence

from cloister.reproduction.feddp.budget_tables import BUDGET_TABLES
from cloister.reproduction.feddp.cost_figures import COST_FIGURES
from cloister.reproduction.feddp.lab import FeddpLab
from cloister.reproduction.feddp.scope import FeddpScope
from cloister.reproduction.feddp.trials import Trial
from cloister.reproduction.products import PaperArtefact, choose_by_name

FeddpArtefact = PaperArtefact[FeddpScope, Trial, FeddpLab]
"""One figure or table of the paper."""

FEDDP_ARTEFACTS: tuple[FeddpArtefact, ...] = (*COST_FIGURES, *BUDGET_TABLES)


def choose_feddp_artefacts(names: Sequence[str] | None) -> tuple[FeddpArtefact, ...]:
    """The artefacts of these names, or all of them; in the catalogue's order."""
    return choose_by_name(FEDDP_ARTEFACTS, names)
