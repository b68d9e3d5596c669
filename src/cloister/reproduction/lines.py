"""The methods that figures 3, 4 and 7 compare: how each is run, drawn, and called in the peers' file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cloister.protocols.fastlloyd.published import AssignmentKind
from cloister.reproduction.datasets import DataSet
from cloister.reproduction.drawing import BLACK, BLUE, GREY, ORANGE, RED, SKY
from cloister.reproduction.trials import Method, Trial

FAILS = "guarantee fails"


@dataclass(frozen=True, kw_only=True)
class Line:
    """One line of a figure.

    Parameters
    ----------
    key, label
        Its name in CSV files, and in legends.
    method, private, assignment
        What is run.
    peer
        The method of the peers' file that it is compared with; empty for none.
    guarantee
        Whether its epsilon can be relied on, in words.
    colour, dash
        How it is drawn.
    """

    key: str
    label: str
    method: Method
    guarantee: str
    colour: str
    peer: str = ""
    private: bool = True
    assignment: AssignmentKind | None = None
    dash: str = "-"

    def make_trials(self, data: DataSet, epsilon: float, runs: int) -> list[Trial]:
        """The runs of one point; without privacy they are the same at each epsilon."""
        return [
            Trial(
                data=data,
                method=self.method,
                run=run,
                epsilon=epsilon if self.private else None,
                assignment=self.assignment,
            )
            for run in range(runs)
        ]

    @property
    def style(self) -> dict[str, Any]:
        """How matplotlib draws it."""
        width = 2.2 if self.method == "sound" else 1.5
        return {"color": self.colour, "linestyle": self.dash, "linewidth": width, "marker": "o" if self.private else ""}


PUBLISHED = Line(
    key="fastlloyd-published",
    label=f"FastLloyd, algorithm 1 ({FAILS})",
    method="published",
    guarantee=FAILS,
    colour=RED,
    peer="fastlloyd_old",
)
CSULLOYD = Line(
    key="csulloyd",
    label=f"CSuLloyd ({FAILS})",
    method="csulloyd",
    guarantee=FAILS,
    colour=ORANGE,
    peer="csulloyd_old",
)
SULLOYD = Line(
    key="sulloyd",
    label="SuLloyd (holds, n public)",
    method="sulloyd",
    guarantee="holds with n public",
    colour=SKY,
    peer="sulloyd_old",
)
SOUND = Line(
    key="cloister-fastlloyd",
    label="Cloister fastlloyd (holds, n private)",
    method="sound",
    guarantee="holds",
    colour=BLUE,
    peer="fastlloyd_new_indep",
)
LLOYD = Line(
    key="lloyd",
    label="Lloyd, 7 steps (no privacy)",
    method="sulloyd",
    guarantee="none: no privacy",
    colour=GREY,
    peer="lloyd_old",
    private=False,
    dash="--",
)
CONSTRAINED_LLOYD = Line(
    key="constrained-lloyd",
    label="constrained Lloyd, 7 steps (no privacy)",
    method="csulloyd",
    guarantee="none: no privacy",
    colour=BLACK,
    peer="clloyd_old",
    private=False,
    dash=":",
)
ALL_LINES = (PUBLISHED, CSULLOYD, SULLOYD, SOUND, LLOYD, CONSTRAINED_LLOYD)
