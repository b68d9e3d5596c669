"""The public values of FedDP-KMeans: the queries, the budget, and what is sent when."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import ceil, log2, sqrt
from typing import ClassVar, Final, Self

from cloister.errors import ConfigError
from cloister.protocols.feddp.options import FEDDP, LLOYD_STEPS_MOST, ExtraSteps, FeddpKnobs, Variant
from cloister.protocols.feddp.published_noise import Bounds, PublishedNoise, calibrate_published
from cloister.protocols.feddp.server import ServerStamp
from cloister.protocols.guided_sums.refinement import list_rounds
from cloister.protocols.guided_sums.settings import GuidedSettings, RoundLimits, Slot, require
from cloister.protocols.guided_sums.statistics import count_slot_length, moments_length
from cloister.records import FloatArray


def count_simplify_rounds(points: int) -> int:
    """Return T of Algorithm 4: each round halves the points that are not frozen, so none is left after log2 of them.

    The paper's T, 10 log(4 log |Q| / (epsilon w_min)), is larger for any realistic data, and
    every round costs budget.
    """
    return ceil(log2(max(points, 2))) + 1


WEIGHTS: Final = "weights of the server's points"
LENGTH = 2**12
"""The length of the longest record in integers, in the published variant; a larger one would only be finer."""


@dataclass(frozen=True, kw_only=True)
class FeddpSettings(GuidedSettings):
    """The settings of one run of FedDP-KMeans.

    Parameters
    ----------
    server
        A stamp of the server's points; None until `for_server` sets it.
    variant
        ``tight``: ours. ``published``: Algorithms 1 and 2 with the splits of appendix G.4 (:mod:`.published`).
    lloyd_steps
        T: steps of FedDP-Lloyds after the first centres; None for 3, or 0 as published (tables 4 and 5).
    options
        What appendix E adds.
    sample
        How many parties are asked in each round, a new public sample each time; None for all.
    knobs
        Advanced settings.
    """

    protocol: ClassVar[str] = FEDDP
    may_return: ClassVar[bool] = True
    server: ServerStamp | None = None
    variant: Variant = "tight"
    lloyd_steps: int | None = None
    options: ExtraSteps = field(default_factory=ExtraSteps)
    sample: int | None = None
    knobs: FeddpKnobs = field(default_factory=FeddpKnobs)

    def __post_init__(self) -> None:
        super().__post_init__()
        first = self.knobs.count_share + self.knobs.moment_share + self.knobs.weight_share + self.options.share
        require(first <= 0.951, "the shares before the steps", "at most 0.95 together", first, "Lower one of them.")
        if self.sample is not None:
            require(1 <= self.sample <= self.parties, "sample", f"from 1 to {self.parties} parties", self.sample)
        if self.lloyd_steps is not None:
            must = f"from 0 to {LLOYD_STEPS_MOST}"
            require(0 <= self.lloyd_steps <= LLOYD_STEPS_MOST, "lloyd_steps", must, self.lloyd_steps)
        if self.variant == "published":
            plain = self.options == ExtraSteps() and self.sample is None
            require(plain, "options of the published variant", "none: it is as printed", "some", "Leave them out.")
            if self.client_level:
                what_to_do = "Declare it: the bound of a client's vectors must come from public values (appendix G.5)."
                require(self.records is not None, "records", "declared with variant published", None, what_to_do)

    @property
    def sample_size(self) -> int:
        """How many parties are asked in a round."""
        return self.parties if self.sample is None else self.sample

    @property
    def sampled(self) -> float:
        """The fraction of the parties that is asked in a round."""
        return self.sample_size / self.parties

    def scaled_to(self, parties: int) -> Self:
        """Return the settings of a job with this many parties, who are all asked in every round."""
        return replace(self, parties=parties, placement=self.placement.scaled_to(parties), sample=None)

    def for_server(self, points: FloatArray) -> FeddpSettings:
        """Return these settings for a server that has these points, (n, d) in [-1, 1]^d."""
        return replace(self, server=ServerStamp.of(points, dimensions=self.dimensions, clusters=self.clusters))

    @property
    def stamp(self) -> ServerStamp:
        """Which points the server has."""
        if self.server is None:
            raise ConfigError("the server's data must be named before a session; they are not. Call `for_server`.")
        return self.server

    @property
    def rounds(self) -> int:
        """Steps of Lloyd's algorithm: the one that makes the first centres (step 3 of FedDP-Init), and T more."""
        usual = 0 if self.variant == "published" else 3
        return 1 + (usual if self.lloyd_steps is None else self.lloyd_steps)

    @property
    def round_limits(self) -> RoundLimits:
        """The limits of the steps of Lloyd's algorithm."""
        return RoundLimits(least=self.rounds, most=self.rounds)

    @property
    def contribution_most(self) -> int:
        """The most that a unit can add to a number."""
        return super().contribution_most if self.variant == "tight" else self.bounds.products_l2

    @property
    def bounds(self) -> Bounds:
        """The bounds on a unit's vectors, as published: a record's, or a client's (appendix G.5).

        A record's length is at most LENGTH in integers. A client's products are bounded by what as many of
        the server's points would make: E |sum of n q q'|^2 = n E|q|^4 + n (n - 1) |E q q'|^2. Its weights count its
        share of the records, its means are k vectors no longer than a record, and it counts each cluster once.
        """
        d = self.dimensions
        products_entries, sums_entries = d * (d + 1) // 2, self.clusters * d
        if not self.client_level:
            return Bounds(
                products_l2=LENGTH**2,
                weights_l1=1,
                sums_l2=LENGTH,
                counts_l1=1,
                products_entries=products_entries,
                sums_entries=sums_entries,
            )
        each = max(round((self.records or 1) / self.parties), 1)
        stamp = self.stamp
        typical = sqrt(each * stamp.mean_fourth + each * (each - 1) * stamp.product_norm**2)
        return Bounds(
            products_l2=ceil(typical * LENGTH**2),
            weights_l1=each,
            sums_l2=ceil(sqrt(self.clusters) * LENGTH),
            counts_l1=self.clusters,
            products_entries=products_entries,
            sums_entries=sums_entries,
        )

    @property
    def noise(self) -> PublishedNoise:
        """The published variant's noise."""
        return calibrate_published(self.budget, self.bounds, self.rounds)

    @property
    def slots(self) -> tuple[Slot, ...]:
        """Every round of the session in order. A round that turns out not to be needed is sent as zeros."""
        points, d, k = self.stamp.points, self.dimensions, self.clusters
        if self.variant == "published":
            noise = self.noise
            return (
                Slot(name="outer products", length=d * (d + 1) // 2, mechanism=noise.products),
                Slot(name=WEIGHTS, length=points, mechanism=noise.weights),
                *(
                    slot
                    for t in range(self.rounds)
                    for slot in (
                        Slot(name=f"sums, step {t}", length=k * d, mechanism=noise.sums),
                        Slot(name=f"counts, step {t}", length=k, mechanism=noise.counts),
                    )
                ),
            )
        slots = []
        if self.records is None:
            slots.append(Slot(name="number of records", length=count_slot_length(self)))
        if self.options.separation is not None:
            slots.append(Slot(name="records near each of the server's points", length=points))
        slots.append(Slot(name="sums and second moments", length=moments_length(d)))
        for t in range(count_simplify_rounds(points) if self.options.simplify else 0):
            slots.append(Slot(name=f"weights while simplifying, {t}", length=points))
        return (*slots, Slot(name=WEIGHTS, length=points), *list_rounds(self))
