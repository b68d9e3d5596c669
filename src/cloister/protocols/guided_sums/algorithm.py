"""An algorithm, what it ends with, and how to run it in one place without messages.

An algorithm is a generator of queries: it is sent the total of each round and yields the next query. In a session one
party runs it, the leader (:mod:`.leader`); the others answer what it states, and need no algorithm.

`rehearse` runs the same algorithm with the same noise and charges in one place, without masks or messages, for plans
and studies. It needs every record, so it protects nobody; it finds what a session with the same noise
finds, bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Any, Generic, Literal, Self

import numpy as np
from msgspec import Meta, Struct

from cloister.columns import Scale
from cloister.crypto import Stream
from cloister.errors import ConfigError, LocalProtocolError
from cloister.privacy.centre_noise import UNKNOWN
from cloister.privacy.mechanisms import DiscreteGaussian, DiscreteLaplace, Mechanism, Release
from cloister.privacy.samplers import Sampler
from cloister.protocols.guided_sums.agreement import Agreement, Settings, release_of, sample_parties
from cloister.protocols.guided_sums.postprocessing import part_equal_centres
from cloister.protocols.guided_sums.query import (
    LENGTH_MOST,
    NOTHING,
    Asking,
    Form,
    Idle,
    PublicValues,
    Question,
    count_rows,
    largest_array,
    take_points,
)
from cloister.protocols.guided_sums.refinement import Refined
from cloister.protocols.guided_sums.scaling import StatedScale
from cloister.protocols.guided_sums.settings import CLUSTERS_MOST, GuidedSettings, Slot, require
from cloister.protocols.guided_sums.statements import Forms
from cloister.records import FloatArray, IntArray, Records
from cloister.report.result import KChoice
from cloister.report.sizes import Sizes
from cloister.wire import Array


class Layout(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, kw_only=True):
    """Where a synopsis laid its histogram, in how many cells, and how many columns or axes it tells apart."""

    route: Literal["direct", "projected"]
    cells: Annotated[int, Meta(ge=1, lt=2**31)]
    axes: Annotated[int, Meta(ge=0, lt=2**31)]


@dataclass(frozen=True, kw_only=True, eq=False)
class GuidedFinding:
    """The result of an algorithm; all of it has been paid for.

    Attributes
    ----------
    centres
        (k, d) in [-1, 1]^d, all different.
    centre_noise
        (k, d): the standard deviations of the noise in the centres (docs/proofs/uncertainty.md).
    sizes
        About how many records each cluster holds, and all of them together; None where that was not released.
    rounds
        Rounds of Lloyd's algorithm, including one that makes the first centres.
    curve
        Where k was chosen: what was tried.
    layout
        Where there was a histogram.
    scale
        What maps the centres to original units, where a spread was released; else the columns' bounds do.
    """

    centres: FloatArray
    centre_noise: FloatArray
    sizes: Sizes | None
    rounds: int
    curve: tuple[KChoice, ...] = ()
    layout: Layout | None = None
    scale: Scale | None = None

    @property
    def is_nothing(self) -> bool:
        """Whether it is `find_nothing`'s."""
        return self.rounds == 0 and self.layout is None and self.scale is not None


def explain_nothing() -> ConfigError:
    """Return what whoever has `find_nothing`'s finding is told: it is no result."""
    return ConfigError(
        'bounds = "private" must come with more records, or a larger budget: those that there are do not show '
        "where columns lie. Their number is paid for, and there is no result. Give bounds, or raise epsilon."
    )


def find_nothing(settings: Any) -> GuidedFinding:
    """Return what an algorithm ends with that has too few records: no column counts, and all centres are alike."""
    axes, shape = settings.axes, (settings.clusters, settings.dimensions)
    scale = Scale(
        axes=axes,
        centre=tuple((axis.low + axis.high) / 2 for axis in axes),
        spread=(0.0,) * len(axes),
        grid=settings.fixed_point,
    )
    return GuidedFinding(centres=np.zeros(shape), centre_noise=np.zeros(shape), sizes=None, rounds=0, scale=scale)


def conclude(
    refined: Refined,
    sizes: Sizes | None,
    *,
    stream: Stream,
    curve: tuple[KChoice, ...] = (),
    layout: Layout | None = None,
) -> GuidedFinding:
    """Return what was found, with centres drawn from a stream in place of equal ones."""
    centres = part_equal_centres(refined.centres, stream)
    replaced = (centres != refined.centres).any(axis=1, keepdims=True)
    return GuidedFinding(
        centres=centres,
        centre_noise=np.sqrt(np.where(replaced, UNKNOWN, refined.centre_variances)),
        sizes=sizes,
        rounds=refined.rounds,
        curve=curve,
        layout=layout,
    )


NUMBER_MOST = 2.0**1000
"""Of losses and scores: finite, and so are their sums."""


class Result(Question, frozen=True, kw_only=True):
    """What was found, as the leader states it: the last slot's kind, which asks nothing of any record."""

    centres: Array
    centre_noise: Array
    sizes: Sizes | None
    rounds: Annotated[int, Meta(ge=0, lt=2**31)]
    curve: Annotated[tuple[KChoice, ...], Meta(max_length=CLUSTERS_MOST)]
    layout: Layout | None

    @classmethod
    def of(cls, finding: GuidedFinding) -> Self:
        """Return a finding as it is stated."""
        numbers = {name: getattr(finding, name) for name in cls.__struct_fields__}
        arrays = {name: Array.of(numbers[name]) for name in ("centres", "centre_noise")}
        return cls(**numbers | arrays)

    def read(self, public: PublicValues) -> GuidedFinding:
        """Check the range and return the finding."""
        settings = public.settings
        k = count_rows("centres", self.centres, settings.clusters)
        centres = take_points("centres", self.centres, k, settings.dimensions)
        noise = take_points("noise", self.centre_noise, k, settings.dimensions)
        require(bool((noise >= 0).all()), "a result's noise", "at least 0", "others")
        sizes = k if self.sizes is None else len(self.sizes.clusters)
        require(sizes == k, "the number of a result's sizes", str(k), sizes)
        numbers = np.abs([number for tried in self.curve for number in (tried.loss, tried.score)])
        require(bool((numbers <= NUMBER_MOST).all()), "a result's numbers", "finite", "others")  # NaN is not, either
        kept = {name: getattr(self, name) for name in Result.__struct_fields__}
        return GuidedFinding(**kept | {"centres": centres, "centre_noise": noise})

    def form(self, public: PublicValues) -> Form:
        """Check it; nothing is measured."""
        self.read(public)
        return NOTHING

    @classmethod
    def largest(cls, public: PublicValues) -> Self:
        """Return the longest."""
        k, d = public.settings.clusters, public.settings.dimensions
        tried = KChoice(k=2**32, loss=LENGTH_MOST, score=LENGTH_MOST)
        return cls(
            centres=largest_array(k, d),
            centre_noise=largest_array(k, d),
            sizes=Sizes(unit="records", clusters=(0.0,) * k, noise=(0.0,) * k, total=0.0, total_noise=0.0),
            rounds=2**31 - 1,
            curve=(tried,) * (k if getattr(public.settings, "choose_k", False) else 0),
            layout=Layout(route="projected", cells=2**31 - 1, axes=2**31 - 1),
        )


class ScaledResult(Result, frozen=True, kw_only=True):
    """What was found on scaled records, with the scale."""

    scale: StatedScale

    @classmethod
    def of(cls, finding: GuidedFinding) -> Self:
        """Return a finding as it is stated."""
        assert finding.scale is not None
        plain = Result.of(finding)
        kept = {name: getattr(plain, name) for name in plain.__struct_fields__}
        return cls(**kept, scale=StatedScale.of(finding.scale))

    def read(self, public: PublicValues) -> GuidedFinding:
        """Check the range and return the finding."""
        scale = self.scale.unpack(public)
        return replace(super().read(public), scale=scale)

    @classmethod
    def largest(cls, public: PublicValues) -> Self:
        """Return the longest."""
        plain = Result.largest(public)
        kept = {name: getattr(plain, name) for name in plain.__struct_fields__}
        return cls(**kept, scale=StatedScale.largest(public))


Pipeline = Callable[[Any, Stream], Asking[GuidedFinding]]
"""An algorithm: from its own kind of settings and the parties' common stream."""


@dataclass(frozen=True, kw_only=True, eq=False)
class GuidedSession(Generic[Settings]):
    """What was agreed for one session of guided sums.

    Attributes
    ----------
    agreement
        The public parameters.
    algorithm
        What the leader runs on the released totals.
    points
        The server's points, where there are some; the agreement has their digest.
    plan
        All releases, if they are fixed in advance; otherwise one prepayment covers them.
    result
        How what was found is stated.
    """

    agreement: Agreement[Settings]
    algorithm: Pipeline
    points: FloatArray | None = None
    plan: tuple[Release, ...] | None = None
    result: type[Result] = Result

    @cached_property
    def forms(self) -> Forms:
        """What may be asked in each round, and in how many bytes; parties of one process share it."""
        public = PublicValues(settings=self.agreement.settings, points=self.points)
        slots = [(slot.name, slot.kind or Idle) for slot in self.agreement.slots]
        return Forms(public, (*slots, ("result", self.result)))


@dataclass(frozen=True, kw_only=True, eq=False)
class Rehearsal:
    """What a session would have ended with."""

    finding: GuidedFinding
    releases: tuple[Release, ...]
    """What each party would have been charged for."""
    totals: tuple[IntArray, ...]
    """The released numbers of each round, whole slots."""


def rehearse(
    settings: GuidedSettings,
    parts: Sequence[Records],
    *,
    pipeline: Pipeline,
    sampler: Sampler,
    stream: Stream,
    key: bytes = bytes(32),
) -> Rehearsal:
    """Run the algorithm on all parties' records at once.

    Parameters
    ----------
    settings
        Public values.
    parts
        Each party's records; who holds which only matters for client-level privacy.
    pipeline
        The algorithm.
    sampler
        Draws once per round the noise of a whole slot, in place of everyone who adds noise.
    stream
        The parties' common stream.
    key
        Decides who is asked in which round, where not all are (`sample_parties`).
    """
    asking = pipeline(settings, stream)
    query = next(asking)
    releases: list[Release] = []
    totals: list[IntArray] = []
    for round_, slot in enumerate(settings.slots, start=1):
        exact = np.zeros(slot.length, dtype=np.int64)
        for part in _choose_parts(settings, parts, round_, key):
            exact[: query.length] += query.measure(part)
        total = exact + sampler.draw(_total_noise(settings, slot), slot.length)
        if query.l2_squared > 0:
            releases.append(release_of(query, slot, settings))
        totals.append(total)
        try:
            query = asking.send(total[: query.length])
        except StopIteration as stop:
            return Rehearsal(finding=stop.value, releases=tuple(releases), totals=tuple(totals))
    raise LocalProtocolError(f"the algorithm must end after {len(settings.slots)} rounds; it did not: this is a bug.")


def _choose_parts(settings: GuidedSettings, parts: Sequence[Records], round_: int, key: bytes) -> Sequence[Records]:
    if settings.sample_size >= settings.parties:
        return parts
    asked = sample_parties(key, round_, parties=settings.parties, size=settings.sample_size)
    return [parts[number - 1] for number in asked]


def _total_noise(settings: GuidedSettings, slot: Slot) -> Mechanism:
    # A sum of Gaussian shares is one Gaussian up to a relative exp(-2 pi^2 sigma^2) (privacy.costs.ripple_of_sum),
    # which is nothing for the sigmas here: they are above 1000 for any budget.
    noise = settings.noise_in(slot)
    if settings.placement.by_coordinator:
        return noise
    if isinstance(noise, DiscreteLaplace):
        raise LocalProtocolError(
            "Laplace noise can be rehearsed only where the coordinator adds it; parties add it here."
        )
    return DiscreteGaussian(sigma=settings.placement.total_variance(noise) ** 0.5)
