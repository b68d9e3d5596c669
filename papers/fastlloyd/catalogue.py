"""All artefacts, in the order in which they are made."""

from __future__ import annotations

from collections.abc import Sequence

from papers.fastlloyd.ablations import ABLATIONS
from papers.fastlloyd.distance_figure import DistanceFigure
from papers.fastlloyd.empty_figure import EmptyFigure
from papers.fastlloyd.heat_maps import HeatMaps
from papers.fastlloyd.loss_figure import LossFigure
from papers.fastlloyd.network_tables import NETWORK_TABLES
from papers.fastlloyd.overhead_table import OverheadTable
from papers.fastlloyd.products import Artefact, choose_by_name
from papers.fastlloyd.serverless_figure import ServerlessFigure
from papers.fastlloyd.silhouette_figures import FIGURES

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
