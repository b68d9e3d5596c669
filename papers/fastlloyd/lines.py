"""The methods that figures 3, 4 and 7 compare: how each is run, drawn, and called in the peers' file."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from cloister.protocols.fastlloyd import PostProcessing
from cloister.protocols.fastlloyd.published import AssignmentKind
from papers.fastlloyd.datasets import DataSet
from papers.fastlloyd.drawing import BLACK, BLUE, GREY, ORANGE, RED, SKY
from papers.fastlloyd.trials import Method, Trial

FAILS = "fails"
"""What tables say of a guarantee that does not hold."""
WARNING = "guarantee fails"
"""What legends say of it."""


@dataclass(frozen=True, kw_only=True)
class Line:
    """One line of a figure.

    Parameters
    ----------
    key, short, label
        Its name in CSV files, in printed tables, and in legends.
    method, private, assignment, post
        What is run.
    peer
        The method of the peers' file that it is compared with; empty for none.
    peer_as_printed
        That method with the noise that the text asks for, where the authors' code adds another.
    guarantee
        Whether its epsilon can be relied on, in words.
    colour, dash
        How it is drawn.
    """

    key: str
    short: str
    label: str
    method: Method
    guarantee: str
    colour: str
    peer: str = ""
    peer_as_printed: str = ""
    private: bool = True
    assignment: AssignmentKind | None = None
    post: PostProcessing = field(default_factory=PostProcessing)
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
                post=self.post,
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
    short="FastLloyd",
    label=f"FastLloyd, algorithm 1 ({WARNING})",
    method="published",
    guarantee=FAILS,
    colour=RED,
    peer="fastlloyd_old",
    peer_as_printed="fastlloyd_old_noise_x_d_indep",
)
CSULLOYD = Line(
    key="csulloyd",
    short="CSuLloyd",
    label=f"CSuLloyd ({WARNING})",
    method="csulloyd",
    guarantee=FAILS,
    colour=ORANGE,
    peer="csulloyd_old",
)
SULLOYD = Line(
    key="sulloyd",
    short="SuLloyd",
    label="SuLloyd (holds, n public)",
    method="sulloyd",
    guarantee="holds, n public",
    colour=SKY,
    peer="sulloyd_old",
    post=PostProcessing(centres="none"),
)
"""As the authors ran it: by its losses and empty clusters, with centres left where the noise put them."""
FOLDED_SULLOYD = Line(
    key="sulloyd-folded",
    short="SuLloyd, folded",
    label="SuLloyd, centres folded (holds, n public)",
    method="sulloyd",
    guarantee="holds, n public",
    colour=SKY,
    peer="sulloyd_new_fold_indep",
    dash="-.",
)
"""With the folding that FastLloyd has: the fairer comparison."""
SOUND = Line(
    key="cloister-fastlloyd",
    short="Cloister",
    label="Cloister fastlloyd (holds, n private)",
    method="sound",
    guarantee="holds",
    colour=BLUE,
    peer="fastlloyd_new_indep",
)
LLOYD = Line(
    key="lloyd",
    short="Lloyd",
    label="Lloyd, 7 steps (no privacy)",
    method="sulloyd",
    guarantee="no privacy",
    colour=GREY,
    peer="lloyd_old",
    private=False,
    dash="--",
)
CONSTRAINED_LLOYD = Line(
    key="constrained-lloyd",
    short="constr. Lloyd",
    label="constrained Lloyd, 7 steps (no privacy)",
    method="csulloyd",
    guarantee="no privacy",
    colour=BLACK,
    peer="clloyd_old",
    private=False,
    dash=":",
)
ALL_LINES = (PUBLISHED, CSULLOYD, SULLOYD, FOLDED_SULLOYD, SOUND, LLOYD, CONSTRAINED_LLOYD)
