"""What appendix E adds to FedDP-KMeans: steps that its theorem needs, and practice mostly does not (appendix G.2)."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, log2

from cloister.protocols.guided_sums.settings import require


@dataclass(frozen=True, kw_only=True)
class Separation:
    """What Lemma 16 is told of the mixture, as public assumptions.

    Parameters
    ----------
    weight_min
        w_min: the least part of the records that a cluster holds.
    sigma_max
        The largest standard deviation of a cluster in any direction, where every column runs from -1 to 1.
    """

    weight_min: float
    sigma_max: float

    def __post_init__(self) -> None:
        require(0 < self.weight_min <= 1, "weight_min", "above 0 and at most 1", self.weight_min)
        require(0 < self.sigma_max <= 2, "sigma_max", "above 0 and at most 2", self.sigma_max)


@dataclass(frozen=True, kw_only=True)
class FeddpOptions:
    """Which of the steps of appendix E are made; none by default.

    Parameters
    ----------
    separation
        Reduce the diameter first (Lemma 16); None: leave the records where they are.
    simplify
        Thin out the server's points until each that is left stands for many records (Algorithm 4).
    clear_only
        Let only records into the first step that are three times nearer to their centre than to any other (Part 2 of
        Algorithm 5).
    simplify_share, separation_share
        Parts of the budget for the first two.
    """

    separation: Separation | None = None
    simplify: bool = False
    clear_only: bool = False
    simplify_share: float = 0.15
    separation_share: float = 0.05

    def __post_init__(self) -> None:
        for name in ("simplify_share", "separation_share"):
            value = getattr(self, name)
            require(1e-3 <= value <= 0.3, name, "from 0.001 to 0.3", value, "Leave it out for the default.")

    @classmethod
    def algorithm_5(cls, *, weight_min: float, sigma_max: float) -> FeddpOptions:
        """All of them: Algorithm 5 from end to end, with as many steps of Lloyd's algorithm as the settings say."""
        separation = Separation(weight_min=weight_min, sigma_max=sigma_max)
        return cls(separation=separation, simplify=True, clear_only=True)


def count_simplify_rounds(points: int) -> int:
    """T of Algorithm 4: each round halves the points that are not frozen, so after log2 of their number none is left.

    The paper's T, 10 log(4 log |Q| / (epsilon w_min)), is larger than that for any data that one would cluster, and
    every round costs budget.
    """
    return ceil(log2(max(points, 2))) + 1
