"""The methods that the figures compare: which runs each needs, how it is drawn, and what the peers' file calls it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cloister.privacy.units import Unit
from papers.fastlloyd.drawing import BLACK, BLUE, GREEN, GREY, ORANGE, PINK, RED, SKY
from papers.feddp.datasets import DataSet
from papers.feddp.scope import FeddpScope
from papers.feddp.trials import Method, Split, Trial

HOLDS, NONE = "holds", "no privacy"


@dataclass(frozen=True, kw_only=True)
class Line:
    """One line of a figure.

    Parameters
    ----------
    method, label
        What is run, and what legends and tables call it.
    guarantee
        Whether its epsilon can be relied on, in words.
    peer, peer_label
        The method of the peers' file that it is compared with, and what tables call that; empty for none.
    colour, dash, width
        How it is drawn.
    """

    method: Method
    label: str
    colour: str
    guarantee: str = HOLDS
    peer: str = ""
    peer_label: str = "  authors' code"
    dash: str = "-"
    width: float = 1.5

    @property
    def private(self) -> bool:
        """Whether it has an epsilon."""
        return self.guarantee != NONE

    @property
    def style(self) -> dict[str, Any]:
        """How matplotlib draws it."""
        return {"color": self.colour, "linestyle": self.dash, "linewidth": self.width}

    def list_settings(self, data: DataSet, scope: FeddpScope) -> list[Trial]:
        """Everything that is tried, as first runs: epsilons with steps and splits."""
        if not self.private:
            return [Trial(data=data, method=self.method, run=0)]
        found = []
        for epsilon in scope.epsilons:
            for steps in self._list_steps(scope):
                for split in self._list_splits(data, scope):
                    found.append(Trial(data=data, method=self.method, run=0, epsilon=epsilon, steps=steps, split=split))
        return found

    def _list_steps(self, scope: FeddpScope) -> tuple[int | None, ...]:
        if self.method == "published":
            return scope.steps
        return (None,) if self.method in ("cloister", "synopsis") else scope.baseline_steps

    def _list_splits(self, data: DataSet, scope: FeddpScope) -> tuple[Split | None, ...]:
        if self.method != "published":
            return (None,)
        return scope.record_splits if data.unit is Unit.RECORD else scope.client_splits


CLOISTER = Line(
    method="cloister",
    label="Cloister feddp",
    colour=BLUE,
    peer="own-tight T=1",
    peer_label="  a study, continuous noise",
    width=2.2,
)
PUBLISHED = Line(
    method="published",
    label="FedDP-KMeans, as published",
    colour=RED,
    peer="FedDP-KMeans-fixedsens",
    peer_label="  authors' code, corrected",
)
SYNOPSIS = Line(method="synopsis", label="Cloister synopsis (no server)", colour=SKY, dash="-.")
SERVER_LLOYDS = Line(method="server-lloyds", label="ServerLloyds", colour=GREEN, peer="ServerLloyds")
SERVER_PLUS_PLUS = Line(method="server-kmeans++", label="ServerKMeans++", colour=ORANGE, peer="ServerKMeans++")
PACKING = Line(method="sphere-packing", label="SpherePacking", colour=PINK, peer="SpherePacking")
K_FED = Line(method="k-fed", label="k-FED (no privacy)", colour=GREY, guarantee=NONE, peer="KFed-bugfixed", dash="--")
OPTIMAL = Line(method="optimal", label="Optimal (no privacy)", colour=BLACK, guarantee=NONE, peer="Optimal", dash=":")
ALL_LINES = (CLOISTER, PUBLISHED, SYNOPSIS, SERVER_LLOYDS, SERVER_PLUS_PLUS, PACKING, K_FED, OPTIMAL)
AS_SHIPPED = "FedDP-KMeans"
"""The authors' code as it is, which adds too little noise: its guarantee fails, and it is shown apart."""
