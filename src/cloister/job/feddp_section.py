"""The section ``[feddp]`` of a job: what FedDP-KMeans with server data is told besides."""

from __future__ import annotations

from dataclasses import dataclass

from cloister.errors import ConfigError
from cloister.protocols.feddp.options import FeddpOptions, Separation
from cloister.protocols.feddp.settings import FeddpKnobs

_DEFAULTS = FeddpKnobs()


@dataclass(frozen=True, kw_only=True)
class FeddpSection:
    """Advanced settings; nobody needs them.

    Attributes
    ----------
    lloyd_steps
        Steps of Lloyd's algorithm after the first centres; None for the variant's.
    sample
        How many parties are asked in each round, a public sample anew for every round; None for all.
    simplify, clear_only
        Steps of appendix E: thin out the server's points (Algorithm 4); let only clear records into the first step.
    weight_min, sigma_max
        Reduce the diameter first (Lemma 16), for clusters of at least this part of the records and at most this
        deviation in unit scaling; both or none.
    count_share, moment_share, weight_share
        Parts of the budget.
    restarts
        How often the server's points are clustered.
    """

    lloyd_steps: int | None = None
    sample: int | None = None
    simplify: bool = False
    clear_only: bool = False
    weight_min: float | None = None
    sigma_max: float | None = None
    count_share: float = _DEFAULTS.count_share
    moment_share: float = _DEFAULTS.moment_share
    weight_share: float = _DEFAULTS.weight_share
    restarts: int = _DEFAULTS.restarts

    @property
    def knobs(self) -> FeddpKnobs:
        """The protocol's own."""
        return FeddpKnobs(
            count_share=self.count_share,
            moment_share=self.moment_share,
            weight_share=self.weight_share,
            restarts=self.restarts,
        )

    @property
    def options(self) -> FeddpOptions:
        """What appendix E adds."""
        separation = None
        if (self.weight_min is None) != (self.sigma_max is None):
            raise ConfigError("weight_min and sigma_max must be given together; got one of them. Add the other.")
        if self.weight_min is not None and self.sigma_max is not None:
            separation = Separation(weight_min=self.weight_min, sigma_max=self.sigma_max)
        return FeddpOptions(separation=separation, simplify=self.simplify, clear_only=self.clear_only)
