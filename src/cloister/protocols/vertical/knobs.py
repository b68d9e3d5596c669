"""The knobs of a vertical clustering: how a budget is split, and how fine the start is."""

from __future__ import annotations

from dataclasses import dataclass

from cloister.errors import ConfigError

DEFAULT = "Leave it out for the default."


@dataclass(frozen=True, kw_only=True)
class Knobs:
    """Advanced settings. The defaults were tuned on synthetic families (docs/study-vertical.md); nobody needs them.

    Parameters
    ----------
    box_share
        Part of the budget for the boxes of all grids together; 0: grids on the whole of [-1, 1], which read no record.
    codebook_share
        Part of the budget for all codebooks together that are made by a private k-means.
    start_share
        Part of what is then left for the joint histogram; the rest goes to the rounds of Lloyd's algorithm.
    count_share
        Part of a round for its counts; the rest is for the sums of offsets.
    start_cells_least, start_cells_most
        How many cells the joint histogram has at least, where the codebooks allow it, and at most.
    radius_factor
        The radius that offsets are clipped to, in standard deviations of a cluster, where noise is moderate.
    restarts
        How often the cells are clustered from another start.
    """

    box_share: float = 0.02
    codebook_share: float = 0.2
    start_share: float = 0.6
    count_share: float = 0.05
    start_cells_least: int = 64
    start_cells_most: int = 256
    radius_factor: float = 1.0
    restarts: int = 20

    def __post_init__(self) -> None:
        for name in ("codebook_share", "start_share", "count_share"):
            value = getattr(self, name)
            require(1e-4 <= value <= 0.9, name, "from 0.0001 to 0.9", value, DEFAULT)
        require(0 <= self.box_share <= 0.5, "box_share", "from 0 to 0.5", self.box_share, DEFAULT)
        first = self.box_share + self.codebook_share
        require(first <= 0.95, "box_share and codebook_share", "at most 0.95 together", first, "Lower one of them.")
        require(
            2 <= self.start_cells_least <= self.start_cells_most <= 4096,
            "start_cells_least and start_cells_most",
            "2 to 4096, in order",
            (self.start_cells_least, self.start_cells_most),
            DEFAULT,
        )
        require(0.1 <= self.radius_factor <= 10, "radius_factor", "from 0.1 to 10", self.radius_factor, DEFAULT)
        require(1 <= self.restarts <= 1000, "restarts", "from 1 to 1000", self.restarts, DEFAULT)


def require(holds: bool, name: str, must: str, value: object, what_to_do: str = "") -> None:
    """Refuse a public value that does not hold what it must."""
    if not holds:
        raise ConfigError(f"{name} must be {must}; got {value}. {what_to_do}".rstrip())
