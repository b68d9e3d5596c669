"""The options of FastLloyd: those of the sound variant, and those of the published ones."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from cloister.aggregation import MaskKind
from cloister.errors import ConfigError
from cloister.job import Facts, Job
from cloister.job.noise_options import PlacementKind
from cloister.job.persons import refuse_persons
from cloister.job.refusals import KeyPath, refuse, show_value
from cloister.kmeans import AssignmentKind
from cloister.numeric import FixedPoint
from cloister.privacy.units import Unit
from cloister.protocols.fastlloyd.published import (
    CENTROID_PRESETS,
    RHO,
    Preset,
    PublishedSettings,
    default_assignment,
    find_flaw,
)
from cloister.protocols.fastlloyd.published_rules import Correction, PostProcessing
from cloister.protocols.multiparty_lloyd.noise import NoiseKind
from cloister.protocols.multiparty_lloyd.options import (
    Members,
    NoisyOptions,
    Ratio,
    Rounds,
    check_memberships,
    refuse_limits,
)

_NOT_SOUND = (
    "Under size constraints one record can move others, so the sensitivity would not hold: remove it, or reproduce a "
    'text with variant = "published", "csulloyd", "sulloyd", "mna" or "amn".'
)
_PUBLISHED_ONLY = 'Only the published variants take it: remove it, or set variant = "mna".'
_REFUSED_BY_SOUND: dict[str, str] = {
    "assignment": _NOT_SOUND,
    "alpha_min": _NOT_SOUND,
    "alpha_max": _NOT_SOUND,
    "memberships_max": _NOT_SOUND,
    "postprocess": _PUBLISHED_ONLY,
    "rho": _PUBLISHED_ONLY,
}
"""What the sound variant does not accept, and why."""
_LIMITS_OF: dict[AssignmentKind, list[str]] = {
    "unconstrained": [],
    "constrained-non-exclusive": ["alpha_min"],
    "constrained-exclusive": ["alpha_min", "alpha_max"],
    "constrained-e-exclusive": ["alpha_min", "alpha_max", "memberships_max"],
    "distance-constrained": ["alpha_min", "alpha_max", "radius"],
}
"""Which limits each assignment of a published variant takes."""


class FastLloydOptions(NoisyOptions, frozen=True, tag="fastlloyd"):
    """Options of FastLloyd.

    Attributes
    ----------
    variant
        Sound (default), or one of the published ones, which take N, the number of records, as public.
    iterations
        Rounds of Lloyd's algorithm; 12 by default, or by the published rule.
    radius
        A bound on offsets instead of the schedule, in unit scaling, in which a column runs from -1 to 1.
    assignment, alpha_min, alpha_max, memberships_max
        Published variants: how records join clusters, and sizes as multiples of an average cluster's.
    postprocess, rho
        Published variants: what to do with noisy sums, counts and centres outside their domains, and the average
        coordinate of a centre, by which the budget is split between sums and counts.
    """

    facts = Facts(budget="required", units=(Unit.RECORD, Unit.PERSON), data_keys=frozenset({"records"}))
    variant: Literal["sound", "published", "csulloyd", "sulloyd", "mna", "amn"] = "sound"
    iterations: Rounds | None = None
    radius: Annotated[float, Meta(ge=1e-6)] | None = None
    assignment: AssignmentKind | None = None
    alpha_min: Ratio | None = None
    alpha_max: Ratio | None = None
    memberships_max: Members | None = None
    postprocess: tuple[Correction, Correction, Correction] | None = None
    rho: Annotated[float, Meta(gt=0, le=1)] | None = None

    @property
    def noise_kind(self) -> NoiseKind:
        """Gaussian or Laplace noise."""
        return super().noise_kind if self.variant == "sound" else "laplace"

    def resolve_placement(self, parties: int) -> PlacementKind:
        """In published variants the coordinator adds the noise, as in their texts."""
        if self.variant != "sound" and self.placement is None and not self.in_ring:
            return "aggregator"
        return super().resolve_placement(parties)

    def resolve_masks(self, parties: int) -> MaskKind:
        """Published variants keep the masks of their texts."""
        if self.variant != "sound" and self.masks is None and not self.in_ring:
            return "common"
        return super().resolve_masks(parties)

    @property
    def variant_in_words(self) -> str:
        """How this run differs from the protocol's default."""
        if self.variant == "sound":
            return super().variant_in_words
        published = "as published" if self.variant == "published" else f"{self.variant} as published"
        return f"{published}, in a ring" if self.in_ring else published

    @property
    def flaw(self) -> str:
        """Why the stated guarantee does not hold; empty if it does."""
        if self.variant == "sound":
            return ""
        assignment = self.assignment or default_assignment(self.variant)
        return find_flaw(assignment, by_centroids=self.variant in CENTROID_PRESETS, folds=self._post.centres != "none")

    @property
    def _post(self) -> PostProcessing:
        if self.postprocess is None:
            return PostProcessing()
        sums, counts, centres = self.postprocess
        return PostProcessing(sums=sums, counts=counts, centres=centres)

    def check(self, job: Job) -> None:
        """Refuse options that the variant does not accept, lacks, or cannot satisfy."""
        super().check(job)
        if self.variant != "sound":
            self._check_published(job, self.variant)
            return
        for key, what_to_do in _REFUSED_BY_SOUND.items():
            value = getattr(self, key)
            if value is not None and value != "unconstrained":
                refuse(("protocol", key), "be left out with the sound variant", show_value(value), what_to_do)

    def _check_published(self, job: Job, preset: Preset) -> None:
        with_variant = f'with variant = "{preset}"'
        refuse_persons(job, with_variant)
        path: KeyPath = ("data", "records")
        if job.data.records is None:
            what_to_do = (
                "Its cluster sizes and its number of rounds follow from N, which the texts take as known (thesis "
                "7.1.1). Declare it only where it is public anyway."
            )
            refuse(path, f"be declared {with_variant}", "none", what_to_do)
        if job.data.records < job.k:
            got = f"{job.data.records} records, {job.k} clusters"
            refuse(path, "be at least clusters.k", got, "Use fewer clusters, or declare the actual number.")
        if self.noise == "gaussian":
            what_to_do = "Its noise is Laplace, as printed."
            refuse(("protocol", "noise"), f"be left out {with_variant}", '"gaussian"', what_to_do)
        if preset in CENTROID_PRESETS:
            self._check_centroids(with_variant)
        self._check_assignment(job.k, self.assignment or default_assignment(preset))

    def _check_centroids(self, with_variant: str) -> None:
        """A variant that releases centres has no sums and counts."""
        if self.rho is not None:
            what_to_do = "It releases centres: there is no budget to split."
            refuse(("protocol", "rho"), f"be left out {with_variant}", show_value(self.rho), what_to_do)
        if self.postprocess is not None and self.postprocess[:2] != ("none", "none"):
            what_to_do = "It releases centres, not sums and counts: only the third word can differ."
            got = ", ".join(map(show_value, self.postprocess))
            refuse(("protocol", "postprocess"), 'begin with "none", "none"', got, what_to_do)

    def _check_assignment(self, clusters: int, assignment: AssignmentKind) -> None:
        refuse_limits(self, assignment, _LIMITS_OF[assignment])
        if assignment == "constrained-e-exclusive" and self.memberships_max is None:
            must = "be given with constrained-e-exclusive"
            refuse(("protocol", "memberships_max"), must, "none", "It is the thesis's E.")
        check_memberships(self.memberships_max, clusters)
        if assignment == "distance-constrained" and self.placement == "joint":
            what_to_do = "Its noise shrinks with the radius, but joint noise is the same in all rounds. Choose another."
            refuse(("protocol", "placement"), "not be joint with distance-constrained", '"joint"', what_to_do)

    def make_published_settings(self, job: Job) -> PublishedSettings:
        """Translate a job of a published variant."""
        if self.variant == "sound" or job.data.records is None:
            raise ConfigError("a job must be of a published variant, with records declared, to have its settings.")
        return PublishedSettings(
            preset=self.variant,
            records=job.data.records,
            clusters=job.k,
            dimensions=job.dimensions,
            parties=len(job.parties),
            assignment=self.assignment,
            alpha_min=self.alpha_min,
            alpha_max=self.alpha_max,
            memberships_max=self.memberships_max or 1,
            radius=self.radius,
            iterations=self.iterations,
            rho=RHO if self.rho is None else self.rho,
            post=self._post,
            fixed_point=FixedPoint(self.fractional_bits),
        )
