"""The published variants: FastLloyd's algorithm 1, CSuLloyd, SuLloyd, and the thesis's MNA and AMN, as printed.

They are here for reproduction and comparison. Where the printed guarantee does not hold, the plan says why
(:attr:`NoisePlan.flaw`), and so does the result. All take N, the number of records, as public.

=============  ==========================  =========  =====================  ===========  =========
preset         text                        step       assignment             alpha_min    alpha_max
=============  ==========================  =========  =====================  ===========  =========
``published``  FastLloyd 5.2, algorithm 1  centroids  constrained exclusive  1.25         1.25
``csulloyd``   FastLloyd 6.1               sums       constrained exclusive  1.25         1.25
``sulloyd``    FastLloyd 6.1, Su et al.    sums       nearest
``mna``        thesis 7.2.4, table 7.1     sums       constrained exclusive  1.5          3
``amn``        thesis 7.2.5, table 7.1     centroids  constrained exclusive  1.5          3
=============  ==========================  =========  =====================  ===========  =========
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

from cloister.errors import ConfigError
from cloister.kmeans import (
    Assignment,
    AssignmentKind,
    ConstrainedEExclusive,
    ConstrainedExclusive,
    ConstrainedNonExclusive,
    DistanceConstrained,
    Unconstrained,
)
from cloister.numeric import FixedPoint
from cloister.privacy.placement import Aggregator, Placement
from cloister.privacy.units import Budget
from cloister.protocols.fastlloyd.published_rules import (
    Constraints,
    PostProcessing,
    PublishedCentroids,
    PublishedSums,
)
from cloister.protocols.multiparty_lloyd.noise import NoisePlan, calibrate_rounds

Preset = Literal["published", "csulloyd", "sulloyd", "mna", "amn"]
CENTROID_PRESETS: tuple[Preset, ...] = ("published", "amn")

RHO = 0.225
"""The average normalised coordinate of a centre that Su et al. found on 81 synthetic data sets (thesis 6.2.3)."""
ROUNDS_LEAST, ROUNDS_MOST = 2, 7
_ERROR_MOST = 0.004

_ALPHAS: dict[Preset, tuple[float, float]] = {
    "published": (1.25, 1.25),
    "csulloyd": (1.25, 1.25),
    "sulloyd": (1.25, 1.25),
    "mna": (1.5, 3.0),
    "amn": (1.5, 3.0),
}

_PATHS = (
    "under size constraints one more record reassigns others, along a path through up to k clusters, so it changes "
    "up to k clusters, not {clusters}"
)
SUM_FLAW = (
    f"The claimed sensitivity of the sums is E B, but {_PATHS.format(clusters='E')}; each on the path gains one record "
    "and loses another, and its sums move by up to 2B (docs/proofs/published-fastlloyd.md)."
)
CENTROID_FLAW = (
    "The claimed sensitivity of a centroid is E B / c_min, or 2 eta_d / c_min with a distance constraint, but "
    f"{_PATHS.format(clusters='E')}, and a mean that gains one record and loses another moves by up to 2B / C. "
    "The noise is too small by a factor of up to 2k, or of 2 with one column (docs/proofs/published-fastlloyd.md)."
)
OVERLAP_FLAW = (
    "The claimed sensitivity is B for each of k clusters, but if every cluster takes its c_min nearest records, one "
    "more record takes another's place in each of them, and a sum moves by up to 2B "
    "(docs/proofs/published-fastlloyd.md)."
)
EMPTY_FLAW = (
    "An empty local cluster counts as its old centre, and its first record can move it by more than the claimed B, as "
    "centres are not brought back into the domain, or one party alone is averaged (docs/proofs/published-fastlloyd.md)."
)


@dataclass(frozen=True, kw_only=True)
class PublishedSettings:
    """The settings of a published variant; everything is public.

    Parameters
    ----------
    preset
        Whose parameters; the fields below override them.
    records
        N: the records of all parties together, declared public (thesis 7.1.1).
    clusters, dimensions, parties
        k, d and M.
    assignment
        How records join clusters; None for the preset's.
    alpha_min, alpha_max
        c_min = ceil(N / (alpha_min k)) and c_max = floor(alpha_max N / k) (Eqn 8; thesis 7.1.3).
    memberships_max
        E, with ``constrained-e-exclusive``.
    radius
        eta_d in all rounds; None for the schedule sqrt(B^2 / 2t) (Eqn 19).
    iterations
        T; None for the rule of section 5.4, with its clamp.
    rho
        The assumed average coordinate of a centre, which splits the budget between sums and counts.
    post
        What to do with noisy values outside their domain.
    """

    preset: Preset
    records: int
    clusters: int
    dimensions: int
    parties: int
    assignment: AssignmentKind | None = None
    alpha_min: float | None = None
    alpha_max: float | None = None
    memberships_max: int = 1
    radius: float | None = None
    iterations: int | None = None
    rho: float = RHO
    post: PostProcessing = field(default_factory=PostProcessing)
    fixed_point: FixedPoint = field(default_factory=FixedPoint)

    def __post_init__(self) -> None:
        low, high = self.local_sizes
        if low > high and self.kind not in ("unconstrained", "constrained-non-exclusive"):
            raise ConfigError(
                "the range of each party's cluster sizes, ceil(c_min / M) to floor(c_max / M), must not be empty; "
                f"got from {low} to {high} for N = {self.records}, k = {self.clusters}, M = {self.parties}. "
                "Raise alpha_min or alpha_max."
            )

    @property
    def local_sizes(self) -> tuple[int, int]:
        """Each party's part of the constraints: ceil(c_min / M) and floor(c_max / M) (thesis 7.1.3)."""
        return math.ceil(self.size_min / self.parties), self.size_max // self.parties

    @property
    def by_centroids(self) -> bool:
        """Whether centroids are released rather than sums and counts."""
        return self.preset in CENTROID_PRESETS

    @property
    def kind(self) -> AssignmentKind:
        """The assignment, given or the preset's."""
        return self.assignment or default_assignment(self.preset)

    @property
    def memberships(self) -> int:
        """E: how many clusters a record may be in."""
        if self.kind == "constrained-non-exclusive":
            return self.clusters
        return self.memberships_max if self.kind == "constrained-e-exclusive" else 1

    @property
    def size_min(self) -> int:
        """c_min of all parties together; 1 without constraints."""
        if self.kind == "unconstrained":
            return 1
        alpha = self.alpha_min if self.alpha_min is not None else _ALPHAS[self.preset][0]
        return max(1, math.ceil(self.records / (alpha * self.clusters)))

    @property
    def size_max(self) -> int:
        """c_max of all parties together; N without constraints."""
        if self.kind == "unconstrained":
            return self.records
        if self.kind == "constrained-non-exclusive":  # each takes its c_min nearest, no more
            return self.size_min
        alpha = self.alpha_max if self.alpha_max is not None else _ALPHAS[self.preset][1]
        return math.floor(alpha * self.records / self.clusters)

    @property
    def flaw(self) -> str:
        """Why the printed guarantee does not hold; empty if it does."""
        folds = self.post.centres != "none" and self.parties > 1
        return find_flaw(self.kind, by_centroids=self.by_centroids, folds=folds)

    def count_rounds(self, epsilon: float) -> int:
        """T: given, or by the rule of section 5.4."""
        if self.iterations is not None:
            return self.iterations
        if self.by_centroids:
            return count_rounds_by_centroids(
                epsilon,
                size_min=self.size_min,
                clusters=self.clusters,
                dimensions=self.dimensions,
                memberships=self.memberships,
            )
        return count_rounds_by_sums(
            epsilon,
            records=self.records,
            clusters=self.clusters,
            dimensions=self.dimensions,
            memberships=self.memberships,
            rho=self.rho,
        )

    def make_assignment(self) -> Assignment:
        """Return how each party's records join clusters."""
        low, high = self.local_sizes
        match self.kind:
            case "unconstrained":
                return Unconstrained()
            case "constrained-non-exclusive":
                return ConstrainedNonExclusive(size_min=low)
            case "constrained-exclusive":
                return ConstrainedExclusive(size_min=low, size_max=high)
            case "constrained-e-exclusive":
                return ConstrainedEExclusive(size_min=low, size_max=high, memberships_max=self.memberships_max)
            case "distance-constrained":
                return DistanceConstrained(size_min=low, size_max=high, radius=self.make_radii(1)[0])

    def make_radii(self, rounds: int) -> tuple[float, ...]:
        """eta_d of each round: given, or sqrt(B^2 / 2t) (Eqn 19, printed for two columns)."""
        if self.radius is not None:
            return (self.radius,) * rounds
        return tuple(math.sqrt(1.0 / (2.0 * t)) for t in range(1, rounds + 1))


def default_assignment(preset: Preset) -> AssignmentKind:
    """Return how records join clusters by default."""
    return "unconstrained" if preset == "sulloyd" else "constrained-exclusive"


def find_flaw(assignment: AssignmentKind, *, by_centroids: bool, folds: bool) -> str:
    """Say why a printed guarantee does not hold; empty if it does.

    ``folds`` says whether centres are folded back into the domain and averaged over more than one party.
    """
    if assignment == "unconstrained":
        return EMPTY_FLAW if by_centroids and not folds else ""
    if assignment == "constrained-non-exclusive":
        return OVERLAP_FLAW
    return CENTROID_FLAW if by_centroids else SUM_FLAW


def plan_published(options: PublishedSettings, budget: Budget, *, placement: Placement | None = None) -> NoisePlan:
    """Plan a published variant's noise: Laplace, and pure epsilons that add up over rounds and columns.

    Privacy
    -------
    As printed: epsilon = T d epsilon^mu (Theorem 5.1), or T (d epsilon^Sigma + epsilon^C) (thesis 6.2.1). It holds only
    where :attr:`PublishedSettings.flaw` is empty.
    """
    rounds = options.count_rounds(budget.epsilon)
    constraints = Constraints(
        size_min=options.size_min,
        size_max=options.size_max,
        memberships=options.memberships,
        radii=options.make_radii(rounds) if options.kind == "distance-constrained" else (),
    )
    rule: PublishedSums | PublishedCentroids
    if options.by_centroids:
        rule = PublishedCentroids(
            dimensions=options.dimensions,
            fixed_point=options.fixed_point,
            parties=options.parties,
            constraints=constraints,
            post=options.post,
        )
    else:
        weight = max(1, round(options.fixed_point.scale * split_count(options.dimensions, options.rho)))
        rule = PublishedSums(
            dimensions=options.dimensions,
            fixed_point=options.fixed_point,
            count_weight=weight,
            constraints=constraints,
            post=options.post,
        )
    placement = placement or Aggregator()
    budget = placement.reserve_delta(budget, rounds)
    pure = Budget(epsilon=budget.epsilon, delta=0.0, unit=budget.unit)
    targets = {
        sensitivity: calibrate_rounds(pure, sensitivity, kind="laplace", iterations=rounds)
        for sensitivity in {rule.sensitivity_of(t) for t in range(1, rounds + 1)}
    }
    return NoisePlan(
        budget=budget,
        targets=tuple(targets[rule.sensitivity_of(t)] for t in range(1, rounds + 1)),
        rule=rule,
        clusters=options.clusters,
        placement=placement,
        flaw=options.flaw,
    )


# --- how many rounds -------------------------------------------------------------------------------------------------


def split_count(dimensions: int, rho: float = RHO) -> float:
    """The count's budget as a multiple of one column's: epsilon^C / epsilon^Sigma = cbrt(4 d rho^2) (thesis 6.2.3)."""
    return float((4.0 * dimensions * rho**2) ** (1.0 / 3.0))


def count_rounds_by_sums(
    epsilon: float, *, records: int, clusters: int, dimensions: int, memberships: int = 1, rho: float = RHO
) -> int:
    """Thesis 6.2.4: epsilon_m = sqrt(500 E^2 k^3 / N^2 (d + cbrt(4 d rho^2))^3)."""
    error = 2.0 * memberships**2 * clusters**3 / records**2 * (dimensions + split_count(dimensions, rho)) ** 3
    return _clamp_rounds(epsilon, error)


def count_rounds_by_centroids(
    epsilon: float, *, size_min: float, clusters: int, dimensions: int, memberships: int = 1
) -> int:
    """FastLloyd 5.4, thesis 6.3.3: epsilon_m = sqrt(500 k d^3 E^2 / c_min^2)."""
    return _clamp_rounds(epsilon, 2.0 * clusters * dimensions**3 * memberships**2 / size_min**2)


def _clamp_rounds(epsilon: float, error_at_1: float) -> int:
    """Su et al.'s rule, from the budget and public values; ``error_at_1`` is that of one round with epsilon = 1.

    One round alone must leave a mean squared error of at most 0.004, summed over all centres, and its error goes with
    1 / epsilon^2. That asks for a budget epsilon_m, and there are epsilon / epsilon_m rounds, at least 2 and at most 7
    (thesis 6.2.4, 6.3.3; FastLloyd, section 5.4).
    """
    epsilon_least = math.sqrt(error_at_1 / _ERROR_MOST)
    return int(min(max(epsilon / epsilon_least, ROUNDS_LEAST), ROUNDS_MOST))
