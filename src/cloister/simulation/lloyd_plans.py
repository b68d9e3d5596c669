"""From a job of multiparty Lloyd or FastLloyd to its noise: who plans it, and from which public values."""

from __future__ import annotations

from cloister.errors import ConfigError
from cloister.job import Job
from cloister.job.defaults import ITERATIONS, resolve_noise
from cloister.job.fastlloyd_checks import FASTLLOYD
from cloister.numeric import FixedPoint
from cloister.privacy.units import Budget
from cloister.protocols.fastlloyd import (
    FastLloydOptions,
    PostProcessing,
    PublishedOptions,
    plan_fastlloyd,
    plan_published,
)
from cloister.protocols.fastlloyd.rounds import RHO
from cloister.protocols.multiparty_lloyd import NoisePlan, Variant, plan_noise
from cloister.protocols.multiparty_lloyd.agreement import MAX_RECORDS
from cloister.simulation_desks import make_placement


def make_noise_plan(job: Job) -> NoisePlan | None:
    """Plan a job's noise from its public values; None for a protocol without noise."""
    if job.budget is None:
        return None
    if job.protocol.name == FASTLLOYD:
        return _plan_fastlloyd(job, job.budget)
    options = job.protocol
    fixed_point = FixedPoint(options.fractional_bits)
    bound = options.norm_bound
    return plan_noise(
        job.budget,
        kind=resolve_noise(options),
        iterations=options.iterations or ITERATIONS,
        clusters=job.k,
        dimensions=len(job.columns),
        fixed_point=fixed_point,
        norm_bound=None if bound is None else max(1, int(bound * fixed_point.scale)),
        placement=make_placement(job),
    )


def _plan_fastlloyd(job: Job, budget: Budget) -> NoisePlan:
    if job.protocol.is_published:
        return plan_published(make_published_options(job), budget, placement=make_placement(job))
    options = FastLloydOptions(
        clusters=job.k,
        dimensions=len(job.columns),
        parties=len(job.parties),
        max_records=bound_records(job),
        kind=resolve_noise(job.protocol),
        iterations=job.protocol.iterations,
        radius=job.protocol.radius,
        ring_bits=job.protocol.ring,
    )
    return plan_fastlloyd(options, budget, placement=make_placement(job))


def make_published_options(job: Job) -> PublishedOptions:
    """Translate a job of a published variant."""
    options = job.protocol
    preset = options.variant
    if preset is None or preset == "sound" or preset == "tight" or job.data.records is None:  # noqa: PLR1714 (for mypy)
        raise ConfigError("a job must be of a published variant, with records declared, to have its options.")
    sums, counts, centres = options.postprocess or ("none", "none", "fold")
    return PublishedOptions(
        preset=preset,
        records=job.data.records,
        clusters=job.k,
        dimensions=len(job.columns),
        parties=len(job.parties),
        assignment=options.assignment,
        alpha_min=options.alpha_min,
        alpha_max=options.alpha_max,
        memberships_max=options.memberships_max or 1,
        radius=options.radius,
        iterations=options.iterations,
        rho=RHO if options.rho is None else options.rho,
        post=PostProcessing(sums=sums, counts=counts, centres=centres),
        fixed_point=FixedPoint(options.fractional_bits),
    )


def name_variant(job: Job) -> Variant:
    """Which of the protocols of multiparty Lloyd a job runs; published variants are two of them with other noise."""
    options = job.protocol
    name = options.name
    if name == "synopsis" or name == "secfc" or name == "vertical" or name == "feddp":  # noqa: PLR1714 (for mypy)
        raise ConfigError(f"the protocol must be one of multiparty Lloyd to have a variant; got {options.name}.")
    if not options.is_published:
        return name
    return "average-mask-noise" if make_published_options(job).by_centroids else "mask-noise-average"


def bound_records(job: Job) -> int:
    """A public cap on one party's records, such that so many for each party bound the records of all together."""
    caps = [MAX_RECORDS if job.data.max_records is None else job.data.max_records]
    if job.data.records is not None:
        caps.append(min(MAX_RECORDS, -(-job.data.records // len(job.parties))))
    return min(caps)
