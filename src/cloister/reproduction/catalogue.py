"""All artefacts, in the order in which they are made."""

from __future__ import annotations

from collections.abc import Sequence

from cloister.reproduction.ablations import ABLATIONS
from cloister.reproduction.distance_figure import DistanceFigure
from cloister.reproduction.empty_figure import EmptyFigure
from cloister.reproduction.heat_maps import HeatMaps
from cloister.reproduction.loss_figure import LossFigure
from cloister.reproduction.network_tables import NETWORK_TABLES
from cloister.reproduction.overhead_table import OverheadTable
from cloister.reproduction.products import Artefact, choose_by_name
from cloister.reproduction.serverless_figure import ServerlessFigure
from cloister.reproduction.silhouette_figures import FIGURES

ARTEFACTS: tuple[Artefact, ...] = (
    LossFigure(),
    EmptyFigure(),
    HeatMaps(name="fig5", family="SynthOV"),
    HeatMaps(name="fig6", family="SynthSEP"),
    DistanceFigure(),
    OverheadTable(),
    *ABLATIONS,
    *NETWORK_TABLES,
    *FIGURES,
    ServerlessFigure(),
)


def choose_artefacts(names: Sequence[str] | None) -> tuple[Artefact, ...]:
    """The artefacts of these names, or all of them; in the catalogue's order."""
    return choose_by_name(ARTEFACTS, names)
