"""The options of the protocols of multiparty Lloyd: rounds, the first centres, and how records join clusters."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from cloister.aggregation import MaskKind
from cloister.job import Facts, Job, NoiseOptions, Options, SumOptions
from cloister.job.model import MAX_COUNT
from cloister.job.noise_options import (
    PADS_MOST,
    PlacementKind,
    check_quorum,
    default_colluding_max,
    default_quorum,
)
from cloister.job.refusals import KeyPath, refuse, show_value
from cloister.kmeans import assignment as assignments
from cloister.privacy.units import Unit
from cloister.protocols.multiparty_lloyd.agreement import Initialisation, StartBy
from cloister.protocols.multiparty_lloyd.noise import NoiseKind

Rounds = Annotated[int, Meta(ge=1, le=10_000)]
Size = Annotated[int, Meta(ge=0, le=MAX_COUNT)]
Ratio = Annotated[float, Meta(ge=1)]
"""A cluster's size as a multiple, or its inverse, of an average cluster's (FastLloyd, section 5.2.2)."""
Members = Annotated[int, Meta(ge=1)]
LIMITS = ("size_min", "size_max", "alpha_min", "alpha_max", "memberships_max", "radius")
_LOWER, _UPPER = ("size_min", "alpha_min"), ("size_max", "alpha_max")
_LIMITS_OF: dict[assignments.AssignmentKind, tuple[tuple[str, ...], ...]] = {
    "unconstrained": (),
    "constrained-non-exclusive": (("size_min",),),
    "constrained-exclusive": (_LOWER, _UPPER),
    "constrained-e-exclusive": (_LOWER, _UPPER, ("memberships_max",)),
    "distance-constrained": (_LOWER, _UPPER, ("radius",)),
}
"""Which limits each assignment takes: one of each group must be given."""
_ASSIGNMENTS = {
    kind.name: kind
    for kind in (
        assignments.Unconstrained,
        assignments.ConstrainedNonExclusive,
        assignments.ConstrainedExclusive,
        assignments.ConstrainedEExclusive,
        assignments.DistanceConstrained,
    )
}


class ExactOptions(SumOptions, frozen=True):
    """Options of the protocols that release exact sums.

    Attributes
    ----------
    iterations
        Rounds of Lloyd's algorithm.
    initialisation, start_by, start
        Where the first centres come from, and who draws them: the parties from their common seed (default; thesis
        5.1.1) or the coordinator (5.1.2). ``start`` goes with ``"given"``: k rows, in original units.
    assignment, size_min, size_max, alpha_min, alpha_max, memberships_max, radius
        How each party's records join clusters (thesis 4.1; FastLloyd, section 7.1), and the limits of that. ``radius``
        is in unit scaling.
    """

    iterations: Rounds = 10
    initialisation: Initialisation = "sphere-packing"
    start_by: StartBy | None = None
    start: tuple[tuple[float, ...], ...] | None = None
    assignment: assignments.AssignmentKind = "unconstrained"
    size_min: Size | None = None
    size_max: Size | None = None
    alpha_min: Ratio | None = None
    alpha_max: Ratio | None = None
    memberships_max: Members | None = None
    radius: Annotated[float, Meta(gt=0)] | None = None

    def check(self, job: Job) -> None:
        """Refuse a start that nobody can make, and limits that the assignment lacks or does not accept."""
        super().check(job)
        check_start(self, job)
        given = refuse_limits(
            self, self.assignment, [limit for group in _LIMITS_OF[self.assignment] for limit in group]
        )
        path: KeyPath = ("protocol", "assignment")
        for group in _LIMITS_OF[self.assignment]:
            if sum(limit in given for limit in group) != 1:
                must = f"come with {'one of ' if len(group) > 1 else ''}{' and '.join(group)}"
                got = "both" if len(group) > 1 and given.issuperset(group) else "none"
                refuse(path, must, got, f"assignment = {show_value(self.assignment)} needs it.")
        check_memberships(self.memberships_max, job.k)
        if self.size_min is not None and self.size_max is not None and self.size_min > self.size_max:
            got = f"size_min = {self.size_min}, size_max = {self.size_max}"
            refuse(("protocol", "size_min"), "be at most size_max", got, "Swap them.")

    @property
    def starter(self) -> StartBy:
        """Who draws the first centres if none are given."""
        return self.start_by or "parties"

    def make_assignment(self) -> assignments.Assignment:
        """Return what assigns records to clusters."""
        given = {name: getattr(self, name) for name in LIMITS if getattr(self, name) is not None}
        return _ASSIGNMENTS[self.assignment](**given)


class NaiveOptions(ExactOptions, frozen=True, tag="naive"):
    """Options of the protocol in the clear, whose parties share no seed: the coordinator draws the first centres.

    Attributes
    ----------
    tolerance
        The coordinator, which sees the centres, stops when none moves further than this, in unit scaling. 0: never.
    """

    start_by: Literal["coordinator"] | None = None
    tolerance: Annotated[float, Meta(ge=0)] = 0.0

    @property
    def starter(self) -> StartBy:
        """The coordinator: the parties share no seed."""
        return "parties" if self.initialisation == "given" else "coordinator"


class MaskedOptions(ExactOptions, frozen=True):
    """Options of masked sums without noise.

    Attributes
    ----------
    masks
        From a seed that all parties know, as published: the coordinator and any one party read every vector. Or double
        masks, which no coordinator removes with up to ``colluding_max`` parties.
    colluding_max
        With double masks: how many parties may collude with the coordinator, by default a third of them.
    """

    masks: MaskKind = "common"
    colluding_max: Annotated[int, Meta(ge=1)] | None = None

    def name_masks(self, parties: int) -> str:
        """Return what masks the sums."""
        return self.masks

    def check(self, job: Job) -> None:
        """Refuse a coalition that common masks do not withstand, and sums that double masks do not protect."""
        super().check(job)
        if self.masks == "common":
            if self.colluding_max is not None:
                refuse(("protocol", "colluding_max"), 'come with masks = "double"', '"common"', "Remove it.")
            return
        parties = len(job.parties)
        check_quorum(self.resolve_min_parties(parties), parties, self.resolve_colluding_max(parties))

    def resolve_min_parties(self, parties: int) -> int:
        """Return ``min_parties``, or its default for so many parties."""
        if self.min_parties is None and self.masks == "double":
            return default_quorum(parties, self.resolve_colluding_max(parties))
        return super().resolve_min_parties(parties)

    def resolve_colluding_max(self, parties: int) -> int:
        """Return how many parties may collude with the coordinator."""
        if self.masks == "common":
            return 0
        return default_colluding_max(parties) if self.colluding_max is None else self.colluding_max


class MaskedSumCountOptions(MaskedOptions, frozen=True, tag="masked-sum-count"):
    """Options of masked sums and counts."""


class MaskedCentroidOptions(MaskedOptions, frozen=True, tag="masked-centroid"):
    """Options of masked centroids."""


class NoisyOptions(NoiseOptions, frozen=True):
    """Options of the protocols that release sums with noise, around a coordinator or in a ring.

    Attributes
    ----------
    initialisation, start_by, start
        As in `ExactOptions`.
    noise
        Gaussian (default) or Laplace.
    topology
        A star around the coordinator, or a ring of parties without a server, which add the noise themselves.
    placement
        As in `NoiseOptions`; or, in a ring, all parties together.
    """

    facts: ClassVar[Facts] = Facts(budget="required")
    initialisation: Initialisation = "sphere-packing"
    start_by: StartBy | None = None
    start: tuple[tuple[float, ...], ...] | None = None
    noise: NoiseKind | None = None
    topology: Literal["star", "ring"] = "star"
    placement: PlacementKind | None = None  # type: ignore[assignment] # wider

    @property
    def noise_kind(self) -> NoiseKind:
        """Gaussian or Laplace noise."""
        return self.noise or "gaussian"

    @property
    def starter(self) -> StartBy:
        """Who draws the first centres if none are given."""
        return self.start_by or "parties"

    @property
    def in_ring(self) -> bool:
        """Whether the parties add up among themselves."""
        return self.topology == "ring"

    def resolve_placement(self, parties: int) -> PlacementKind:
        """Return who adds the noise; in a ring the parties, however many they are."""
        return super().resolve_placement(min(parties, PADS_MOST) if self.in_ring else parties)

    def resolve_masks(self, parties: int) -> MaskKind:
        """Return what masks the sums; in a ring always double masks."""
        return "double" if self.in_ring else super().resolve_masks(parties)

    @property
    def needs_delta(self) -> bool:
        """Whether delta must be positive: for Gaussian noise, and for joint noise, which is within 2^-80 of its law."""
        return self.noise_kind == "gaussian" or self.placement == "joint"

    @property
    def variant_in_words(self) -> str:
        """How this run differs from the protocol's default."""
        return "in a ring" if self.in_ring else ""

    def check(self, job: Job) -> None:
        """Refuse a start that nobody can make, and noise that nobody can add."""
        super().check(job)
        check_start(self, job)
        if self.in_ring and self.masks == "common":
            what_to_do = "A ring's masks are double: remove it."
            refuse(("protocol", "masks"), 'be left out with topology = "ring"', '"common"', what_to_do)
        path: KeyPath = ("protocol", "placement")
        if self.placement == "joint" and self.noise_kind != "laplace":
            what_to_do = 'Its binary digits can be sampled jointly; write noise = "laplace".'
            refuse(path, 'come with noise = "laplace"', '"joint" with Gaussian noise', what_to_do)
        if not self.in_ring:
            if self.placement == "joint":
                what_to_do = 'Write topology = "ring" and noise = "laplace".'
                refuse(path, 'come with topology = "ring"', '"joint" without it', what_to_do)
            return
        if self.placement == "aggregator":
            must = 'be "local", "shared" or "joint" with topology = "ring"'
            refuse(path, must, '"aggregator"', "A ring has no server that could add noise.")
        if self.start_by == "coordinator":
            what_to_do = "A ring has no coordinator: remove start_by."
            refuse(("protocol", "start_by"), 'be "parties" with topology = "ring"', '"coordinator"', what_to_do)


class MaskNoiseAverageOptions(NoisyOptions, frozen=True, tag="mask-noise-average"):
    """Options of "Mask, Noise then Average".

    Attributes
    ----------
    iterations
        Rounds of Lloyd's algorithm.
    norm_bound
        A bound on a record's length in unit scaling: longer records are shortened to it, and the noise shrinks with it.
    """

    facts = Facts(budget="required", units=(Unit.RECORD, Unit.PERSON), noise_on_grid=True)
    iterations: Rounds = 10
    norm_bound: Annotated[float, Meta(gt=0)] | None = None


LloydOptions = ExactOptions | NoisyOptions


def check_start(options: LloydOptions, job: Job) -> None:
    """Refuse a start that nobody can make, or given centres that do not fit the columns."""
    path: KeyPath = ("protocol", "start")
    if options.initialisation != "given":
        if options.start is not None:
            got = f"initialisation = {show_value(options.initialisation)}"
            refuse(path, 'come with initialisation = "given"', got, "Change it, or remove start.")
        return
    if options.start_by is not None:
        what_to_do = "The start is in the job, so nobody draws it: remove start_by."
        must = 'be left out with initialisation = "given"'
        refuse(("protocol", "start_by"), must, show_value(options.start_by), what_to_do)
    axes = job.coordinates
    if options.start is None:
        must = f"be a list of {job.k} rows of {len(axes)} numbers (clusters.k rows, one number per coordinate)"
        refuse(path, must, "no start")
    if len(options.start) != job.k:
        refuse(path, f"have clusters.k = {job.k} rows", f"{len(options.start)}", "Give one centre for each cluster.")
    for i, row in enumerate(options.start):
        if len(row) != len(axes):
            refuse((*path, i), f"be a list of {len(axes)} numbers, one per coordinate", f"{len(row)} numbers")
        for j, (value, axis) in enumerate(zip(row, axes, strict=True)):
            if not axis.low <= value <= axis.high:
                must = f"lie within the bounds of column {axis.name}, {axis.low:g} to {axis.high:g}"
                refuse((*path, i, j), must, show_value(value), "The start is in original units.")


def refuse_limits(options: Options, assignment: assignments.AssignmentKind, taken: list[str]) -> set[str]:
    """Refuse limits that an assignment does not take; return the given ones."""
    given = [limit for limit in LIMITS if getattr(options, limit, None) is not None]
    for limit in given:
        if limit not in taken:
            what_to_do = f"assignment = {show_value(assignment)} takes {', '.join(taken) or 'no limits'}."
            must = "come with an assignment that takes it"
            refuse(("protocol", limit), must, show_value(assignment), what_to_do)
    return set(given)


def check_memberships(memberships_max: int | None, clusters: int) -> None:
    """Refuse to let a record be in more clusters than there are."""
    if memberships_max is not None and memberships_max > clusters:
        refuse(("protocol", "memberships_max"), f"be an integer from 1 to {clusters}", str(memberships_max))
