"""The refinement: a few rounds of Lloyd's algorithm with clipped offsets, and steps that are shrunk by their noise.

The squares of the offsets are summed, too: they show which cluster is too wide. After every round but the last, centres
that are hardly needed are moved to such clusters (`swap_centres`). A `Guide` is a subspace known to hold most of what
separates clusters; if there is one, the first round assigns records within it.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt, sqrt
from typing import Self

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from cloister.compiled import compile_loop
from cloister.crypto.stream import Stream
from cloister.kmeans.kernel import nearest
from cloister.kmeans.offsets import Join, Joined, sum_offsets
from cloister.numeric import find_reach
from cloister.privacy.centre_noise import UNKNOWN, blend, blur_means
from cloister.protocols.guided_sums.postprocessing import USUAL, Sketch, SwapRule, find_gains, swap_centres
from cloister.protocols.guided_sums.query import (
    IDLE,
    LENGTH_LEAST,
    LENGTH_MOST,
    SHARE_MOST,
    Asking,
    Form,
    Ground,
    Question,
    Share,
    count_rows,
    largest_array,
    pose,
    require_length,
    take_lengths,
    take_points,
)
from cloister.protocols.guided_sums.settings import GuidedSettings, Slot
from cloister.protocols.guided_sums.statistics import NumberOfRecords, Plane, Subspace
from cloister.records import FloatArray, IntArray, Records
from cloister.report.sizes import Sizes, fit_sizes, share_out
from cloister.wire import Array

IN_SUBSPACE = SwapRule(clear=3.0, worth=2.0)


@dataclass(frozen=True, kw_only=True, eq=False)
class Guide:
    """Where to look.

    In the first round, a record joins the centre that is nearest in the subspace: in the other directions, all centres
    start at the mean. In every round, the width of a cluster is measured in the subspace: a cluster that is really two
    stands out there, where the variance within clusters comes from only a few directions. The parts of a step within
    the subspace and orthogonal to it are shrunk separately (:mod:`.refinement`).

    Parameters
    ----------
    subspace
        Its axes.
    places
        The first centres' coordinates in it, (k, m).
    radius
        The length in it that counts as 1 in a cluster's width.
    clear
        Restrict the first round to records that are this many times closer to their centre than to any other:
        3 in Part 2 of Algorithm 5 (FedDP-KMeans, appendix F); 1 for all.
    swaps
        When centres are swapped. Widths in the subspace are clipped and understate the gain of a split, which is rated
        higher, but must be clearer.
    """

    subspace: Subspace
    places: FloatArray
    radius: float
    clear: float = 1.0
    swaps: SwapRule = IN_SUBSPACE

    def make_join(self, centres: FloatArray, *, first: bool) -> Join:
        """Return which centre a record joins, from these centres on; each record's depends on no other."""
        places = self.places if first else self.subspace.project(centres)
        clear = self.clear if first else 1.0

        def join(points: FloatArray) -> Joined:
            coordinates = self.subspace.project(points)
            labels = nearest(coordinates, places).labels if first else nearest(points, centres).labels
            squares = _measure_squares(coordinates, places, labels, clear) / self.radius**2
            return Joined(labels=labels, squares=squares)

        return join

    def pack(self, *, first: bool) -> PackedGuide:
        """Return it as it stands in a round's question; after the first round the places are the centres'."""
        return PackedGuide(
            plane=self.subspace.pack(), places=Array.of(self.places) if first else None, radius=self.radius
        )


class PackedGuide(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, kw_only=True):
    """A `Guide` in a question; who must be clear to be let in is agreed and not the question's to say."""

    plane: Plane
    places: Array | None
    radius: float

    def make_join(self, ground: Ground, centres: FloatArray) -> Join:
        """Check the range, and return which centre a record joins."""
        settings = ground.settings
        subspace = self.plane.unpack(ground, axes_most=settings.axes_most)
        require_length("width", self.radius)
        places = np.zeros((0, 0))
        if self.places is not None:
            shape = (len(centres), subspace.axes.shape[1])
            places = take_points("places", self.places, *shape, most=ground.reach)
        guide = Guide(subspace=subspace, places=places, radius=self.radius, clear=settings.clear)
        return guide.make_join(centres, first=self.places is not None)

    @classmethod
    def largest(cls, ground: Ground) -> PackedGuide:
        """Return the longest."""
        settings = ground.settings
        return cls(
            plane=Plane.largest(ground, settings.axes_most),
            places=largest_array(settings.clusters, settings.axes_most),
            radius=LENGTH_MOST,
        )


@compile_loop
def _square(coordinates: FloatArray, places: FloatArray, i: int, j: int) -> float:
    total = 0.0
    for h in range(places.shape[1]):
        difference = coordinates[i, h] - places[j, h]
        total += difference * difference
    return total


@compile_loop
def _fill_squares(
    coordinates: FloatArray, places: FloatArray, labels: NDArray[np.int32], clear: float, squares: FloatArray
) -> None:
    for i in range(len(labels)):
        squares[i] = _square(coordinates, places, i, labels[i])
        if clear > 1.0:
            own = labels[i]
            for j in range(len(places)):
                if j != own and clear * clear * squares[i] > _square(coordinates, places, i, j):
                    labels[i] = -1
                    break


def _measure_squares(
    coordinates: FloatArray, places: FloatArray, labels: NDArray[np.int32], clear: float
) -> FloatArray:
    """Return squared distances from the places that the labels name; labels that are not clear become -1."""
    squares = np.empty(len(labels))
    _fill_squares(coordinates, places, labels, clear, squares)
    return squares


_COUNT_PART = 6  # a count, and the square of the longest offset, weigh a sixth of that offset
_CLIENT_COUNT_PART = 8  # a party's sums are short beside its counts: offsets cancel
_NOISE_FOR_ONE = 0.08  # of the radius: a whole-budget step with so much noise is worth one round, half of it two; tuned


@dataclass(frozen=True, kw_only=True, eq=False)
class Refined:
    """Centres after the last round.

    Attributes
    ----------
    centres, centre_variances
        (k, d), and the variances of the noise in them.
    counts, count_variances
        (k,): how many records each cluster has, as released, and the variances of the noise in these.
    rounds
        How many there were.
    """

    centres: FloatArray
    centre_variances: FloatArray
    counts: FloatArray
    count_variances: FloatArray
    rounds: int


def split_share(share: int, *, client_level: bool) -> tuple[int, int]:
    """Return a and b for one round: the length of the longest offset in integers, and the weight of a count."""
    part = _CLIENT_COUNT_PART if client_level else _COUNT_PART
    scale = isqrt(share * part**2 // (part**2 + 2))
    return scale, scale // part


class Offsets(Question, frozen=True, kw_only=True):
    """For every cluster its records' clipped offsets from its centre, their squares and their number.

    Privacy
    -------
    A record joins one cluster, or none, and adds (z, q, b) there: z, |z| <= a, is its offset from the centre over the
    cluster's radius, its length clipped to 1, in integers; 0 <= q <= b is b times the square of that length, or of
    what of it lies in the guide's subspace; b is a constant. The squared L2 norm is at most a^2 + 2 b^2 <= share.
    """

    share: Share
    centres: Array
    radii: Array
    guide: PackedGuide | None = None

    def form(self, ground: Ground) -> Form:
        """Sum up."""
        settings, d = ground.settings, ground.settings.dimensions
        k = count_rows("centres", self.centres, settings.clusters)
        centres, radii = take_points("centres", self.centres, k, d), take_lengths("radii", self.radii, k)
        scale, weight = split_share(self.share, client_level=settings.client_level)
        find_reach(scale, d)
        join = None if self.guide is None else self.guide.make_join(ground, centres)

        def measure(party: Records) -> IntArray:
            return sum_offsets(party, centres, radii, scale=scale, weight=weight, join=join).ravel()

        return Form(length=k * (d + 2), l2_squared=scale**2 + 2 * weight**2, measure=measure)

    @classmethod
    def largest(cls, ground: Ground) -> Self:
        """Return the longest."""
        settings = ground.settings
        return cls(
            share=SHARE_MOST,
            centres=largest_array(settings.clusters, settings.dimensions),
            radii=largest_array(settings.clusters),
            guide=PackedGuide.largest(ground) if settings.axes_most else None,
        )


def list_rounds(settings: GuidedSettings, kind: type[Question] = Offsets) -> tuple[Slot, ...]:
    """The slots of as many rounds as there may be."""
    length = settings.clusters * (settings.dimensions + 2)
    rounds = range(1, settings.round_limits.most + 1)
    return tuple(Slot(name=f"Lloyd round {t}", length=length, kind=kind) for t in rounds)


def choose_rounds(settings: GuidedSettings, *, l2_squared: int, records: float, clusters: int) -> int:
    """Choose T by the noise of a whole-budget step relative to the radius: with less noise, more rounds pay off."""
    limits = settings.round_limits
    noise = clusters * sqrt(settings.dimensions) / max(records * settings.signal(l2_squared), 1e-300)
    return int(np.clip(round(_NOISE_FOR_ONE / noise), limits.least, limits.most))


def refine_centres(
    settings: GuidedSettings,
    *,
    l2_squared: int,
    records: float,
    centres: FloatArray,
    centre_variances: FloatArray,
    radii: FloatArray,
    weights: FloatArray,
    weight_variances: FloatArray,
    sketch: Sketch,
    stream: Stream,
    guide: Guide | None = None,
) -> Asking[Refined]:
    """Run T rounds; each releases, for every cluster, its records' clipped offsets, their squares and their number.

    Privacy
    -------
    As `Offsets`, T times with T shares that add up to ``l2_squared`` at most. Centres and radii come from earlier
    releases.
    """
    k, d = centres.shape
    rounds = choose_rounds(settings, l2_squared=l2_squared, records=records, clusters=k)
    share = l2_squared // rounds
    scale, weight = split_share(share, client_level=settings.client_level)
    radii = np.clip(radii, LENGTH_LEAST, LENGTH_MOST)
    sum_std, count_std = settings.noise_std / scale, settings.noise_std / weight
    for t in range(settings.round_limits.most):
        if t >= rounds:
            yield IDLE
            continue
        question = Offsets(
            share=share,
            centres=Array.of(centres),
            radii=Array.of(radii),
            guide=None if guide is None else guide.pack(first=t == 0),
        )
        total = yield pose(Ground(settings=settings), f"Lloyd round {t + 1}", question)
        released = total.reshape(k, d + 2)
        counted, count_variances = released[:, -1] / weight, np.full(k, count_std**2)
        if t == 0:  # the histogram has counted them too
            if settings.client_level:  # in other units: a party's vectors are scaled by other factors
                factor = max(float(counted.sum()), count_std) / float(weights.sum())
                weights, weight_variances = weights * factor, weight_variances * factor**2
            precisions = 1 / count_variances + 1 / weight_variances
            counted = (counted / count_variances + weights / weight_variances) / precisions
            count_variances = 1 / precisions
        counts = np.maximum(counted, max(1.0, count_std))
        steps = released[:, :d] / scale / counts[:, None]
        blurs = blur_means(steps, counts, sum_std=sum_std, count_variances=count_variances) * radii[:, None] ** 2
        shrunk = _shrink(steps, (sum_std / counts) ** 2, None if guide is None else guide.subspace.axes)
        steps, centre_variances = shrunk.steps, shrunk.blend(centre_variances, blurs)
        squares = (steps**2).sum(axis=1)
        steps = steps / np.sqrt(np.maximum(squares, 1.0))[:, None]
        centres = np.clip(centres + radii[:, None] * steps, -1.0, 1.0)
        if t < rounds - 1:
            # Of the whole offsets, or of what of them lies in the subspace, where clusters of two show more clearly.
            widths = radii if guide is None else np.full(k, guide.radius)
            moved = steps if guide is None else (radii / widths)[:, None] * steps @ guide.subspace.axes
            variances = released[:, d] / weight / counts - (moved**2).sum(axis=1)
            stayed = centres
            centres = swap_centres(
                centres,
                counts=counts,
                variances=np.clip(variances, 0.0, 1.0) * widths**2,
                errors=widths**2 * count_std / counts,
                sketch=sketch,
                stream=stream.child(t),
                rule=USUAL if guide is None else guide.swaps,
            )
            moved = (centres != stayed).any(axis=1)
            centre_variances[moved] = UNKNOWN  # until the next round has measured where it went
    return Refined(
        centres=centres,
        centre_variances=centre_variances,
        counts=counted,
        count_variances=count_variances,
        rounds=rounds,
    )


def estimate_sizes(refined: Refined, number: NumberOfRecords, *, counted_all: bool) -> Sizes:
    """Return sizes that add up to the number of records.

    ``counted_all`` says whether the last round counted each record as one; otherwise its counts are proportions.
    """
    total = None if number.noise is None else number.estimate
    fit = fit_sizes if counted_all else share_out
    return fit(refined.counts, refined.count_variances, total=total, total_variance=(number.noise or 0.0) ** 2)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Shrunk:
    """Steps that were shrunk, whole or in two parts."""

    steps: FloatArray
    gains: tuple[FloatArray, ...]
    """Of each part, (k, 1)."""
    extents: tuple[FloatArray, ...]
    """How much of each coordinate is in each part, (d,); they add up to 1."""

    def blend(self, left: FloatArray, fresh: FloatArray) -> FloatArray:
        """Return the variances of the centres after the step."""
        parts = [extent * blend(left, fresh, gains) for gains, extent in zip(self.gains, self.extents, strict=True)]
        blended: FloatArray = np.sum(parts, axis=0)
        return blended


def _shrink(steps: FloatArray, variances: FloatArray, axes: FloatArray | None) -> _Shrunk:
    """Shrink whole steps; with axes, the parts along and orthogonal to them separately, each by its own noise."""
    if axes is None or axes.shape[1] == len(axes):
        whole = find_gains(steps, variances)
        return _Shrunk(steps=steps * whole, gains=(whole,), extents=(np.ones(steps.shape[1]),))
    along = steps @ axes
    across = steps - along @ axes.T
    d, m = axes.shape
    # A projection's noise is in its m, or d - m, directions only: the mean over d coordinates is less by that.
    gains = find_gains(along, variances), find_gains(across, variances * ((d - m) / d))
    inside = (axes**2).sum(axis=1)
    return _Shrunk(steps=(along * gains[0]) @ axes.T + across * gains[1], gains=gains, extents=(inside, 1.0 - inside))
