"""The public values of FedDP-KMeans: the queries, the budget, and what is sent when."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import ceil, sqrt
from typing import ClassVar, Final, Self

from cloister.errors import ConfigError
from cloister.protocols.feddp.options import FEDDP, LLOYD_STEPS_MOST, ExtraSteps, FeddpKnobs, Variant
from cloister.protocols.feddp.published_noise import Bounds, PublishedNoise, calibrate_published
from cloister.protocols.feddp.published_questions import LENGTH, ClusterCounts, ClusterSums, PointWeights, Products
from cloister.protocols.feddp.questions import MovedMoments, MovedOffsets, MovedWeights, Weights
from cloister.protocols.feddp.server import ServerStamp
from cloister.protocols.guided_sums.query import Question
from cloister.protocols.guided_sums.refinement import Offsets, list_rounds
from cloister.protocols.guided_sums.settings import GuidedSettings, RoundLimits, Slot, require
from cloister.protocols.guided_sums.statistics import Moments, list_size_slots, moments_length
from cloister.records import FloatArray


def count_simplify_rounds(points: int) -> int:
    """Return T of Algorithm 4: each round halves the points that are not frozen, so none is left after log2 of them.

    The paper's T, 10 log(4 log |Q| / (epsilon w_min)), is larger for any realistic data, and
    every round costs budget.
    """
    return (max(points, 2) - 1).bit_length() + 1


WEIGHTS: Final = "weights of the server's points"
NEAR: Final = "records near each of the server's points"
GAP = 100.0
_LOG_3 = 1.0986122886681098  # not from libm: box lengths follow from it, the same at every party
"""Times the widest group's diameter lie between two groups that are moved (proof of Lemma 16)."""
CLEAR = 3.0
"""Times nearer to its own centre than to any other: Part 2 of Algorithm 5."""


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
    def prices_most(self) -> int:
        """What the prices of all questions may add up to; as published, they are fixed."""
        if self.variant == "tight":
            return super().prices_most
        bounds = self.bounds
        step = bounds.sums_l2**2 + bounds.counts_l1**2
        return bounds.products_l2**2 + bounds.weights_l1**2 + self.rounds * step

    @property
    def axes_most(self) -> int:
        """The most axes of the subspace in which the server's points are weighed."""
        return min(self.dimensions, self.clusters)

    @property
    def clear(self) -> float:
        """How many times nearer to its own centre than to others a record must be to count in the first step."""
        return CLEAR if self.options.clear_only else 1.0

    @property
    def may_drop_points(self) -> bool:
        """Whether a question may leave some of the server's points out."""
        return self.options.simplify or self.options.separation is not None

    @property
    def groups_most(self) -> int:
        """The most groups that records may be moved in.

        g groups lie GAP D' (g - 1) apart or more, D' >= D = 4 log(n) sqrt(d) sigma_max with n >= 3, and are moved only
        where that is less than the diameter, 2 sqrt(d) at most.
        """
        if self.options.separation is None:
            return 0
        most = 1 + int(1 / (2 * GAP * _LOG_3 * self.options.separation.sigma_max))
        return min(most, self.stamp.points)

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
        typical = sqrt(each * stamp.mean_fourth + each * (each - 1) * stamp.product_norm * stamp.product_norm)
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
        return self._list_published() if self.variant == "published" else self._list_tight()

    def _list_published(self) -> tuple[Slot, ...]:
        points, d, k, noise = self.stamp.points, self.dimensions, self.clusters, self.noise
        return (
            Slot(name="outer products", length=d * (d + 1) // 2, kind=Products, mechanism=noise.products),
            Slot(name=WEIGHTS, length=points, kind=PointWeights, mechanism=noise.weights),
            *(
                slot
                for t in range(self.rounds)
                for slot in (
                    Slot(name=f"sums, step {t}", length=k * d, kind=ClusterSums, mechanism=noise.sums),
                    Slot(name=f"counts, step {t}", length=k, kind=ClusterCounts, mechanism=noise.counts),
                )
            ),
        )

    def _list_tight(self) -> tuple[Slot, ...]:
        points, slots = self.stamp.points, [*list_size_slots(self)]
        moments: type[Question] = Moments
        weights: type[Question] = Weights
        offsets: type[Question] = Offsets
        if self.options.separation is not None:
            slots.append(Slot(name=NEAR, length=points, kind=Weights))
            moments, weights, offsets = MovedMoments, MovedWeights, MovedOffsets
        slots.append(Slot(name="sums and second moments", length=moments_length(self.dimensions), kind=moments))
        for t in range(count_simplify_rounds(points) if self.options.simplify else 0):
            slots.append(Slot(name=f"weights while simplifying, {t}", length=points, kind=weights))
        return (*slots, Slot(name=WEIGHTS, length=points, kind=weights), *list_rounds(self, offsets))
