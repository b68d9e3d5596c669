"""Where the grid is, and how its clusters become centres to refine. There are two routes.

**Direct**: a grid on the columns, within a box around the records. **Projected**, in many dimensions: a grid in the
subspace in which the records spread most; in the other directions all clusters start at the mean.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from cloister.privacy.centre_noise import UNKNOWN
from cloister.protocols.guided_sums.query import IDLE, LENGTH_LEAST, Asking
from cloister.protocols.guided_sums.settings import BUDGET_UNITS
from cloister.protocols.guided_sums.statistics import Subspace
from cloister.protocols.synopsis.extent import Box, Spread, find_axes, find_box, find_middle, find_radius
from cloister.protocols.synopsis.histogram import Start, choose_bins
from cloister.protocols.synopsis.questions import Grid
from cloister.protocols.synopsis.settings import BEFORE_HISTOGRAM_MOST, Settings
from cloister.records import FloatArray

Route = Literal["direct", "projected"]

_MOMENT_LEAST = 1e-4  # with less, integers of length c would not resolve 2000 columns
_CLEAR = 5.0  # records over noise, for each column, from which the axes are clear
_WIDTH, _WIDTH_CLEAR = 1.6, 2.0  # half the box, in standard deviations along an axis
_CELLS_DIRECT, _CELLS_PROJECTED = 8, 16  # cells for each cluster, at least
_RADIUS_PROJECTED = 1.15  # in standard deviations of the records around their centre
_HISTOGRAM_LEAST = 0.1  # of the remaining budget goes to the histogram in a subspace, however clear the records are
_COLUMNS_WITH_TAILS = 6.0  # up to this many, one column's tail makes a record long; beyond, lengths concentrate
_RADIUS_LEAST = 0.7  # what a radius shrinks to if a step is mostly noise
_STILL = 0.05  # the noise of a step, relative to the radius, below which the radius grows
_GROWTH = 0.25  # the power of their quotient by which it grows: noise rises with the radius, but bias falls much faster
_OWN = 0.5  # of a squared radius is the cluster's own variance, the rest the mean of all: its own alone is too noisy
_WITHIN_LEAST = 0.1  # of all variance is assumed to be within clusters: by noise, cells may explain more than all of it


@dataclass(frozen=True, kw_only=True)
class _Tuning:
    """The best values found for each unit (docs/study-synopsis.md)."""

    project_from: float
    """Records over noise, for each column: with less, the axes are those of the noise."""
    taper: float
    """The share of moments and histogram times the square root of the records over noise, for each column."""
    cell_direct: float
    cell_projected: float
    """Records over noise that a cell should have."""


_RECORD = _Tuning(project_from=2.5, taper=1.3, cell_direct=3.0, cell_projected=1.0)
_CLIENT = _Tuning(project_from=2.0, taper=1.0, cell_direct=5.0, cell_projected=1.0)


@dataclass(frozen=True, kw_only=True, eq=False)
class Found:
    """Where the records are, if columns were scaled by their spread.

    Attributes
    ----------
    box
        Around them.
    reach
        The length of the longest record there may be.
    """

    box: Box
    reach: float


def _tuning(settings: Settings) -> _Tuning:
    return _CLIENT if settings.client_level else _RECORD


@dataclass(frozen=True, kw_only=True, eq=False)
class GridPlan:
    """A grid, its histogram's part of the budget, and what is left after it."""

    grid: Grid
    histogram_l2_squared: int
    left_l2_squared: int
    spread: Spread | None = None

    @property
    def route(self) -> Route:
        """Which of the two routes it is."""
        return "direct" if self.spread is None else "projected"

    def embed(self, points: FloatArray) -> FloatArray:
        """Return points of the grid in the columns."""
        return points if self.grid.subspace is None else np.clip(self.grid.subspace.embed(points), -1.0, 1.0)

    def spread_noise(self, variances: FloatArray) -> FloatArray:
        """Return the variances of points of the grid, (k, axes), in the columns."""
        subspace = self.grid.subspace
        return variances if subspace is None else np.minimum(variances @ subspace.axes.T**2, UNKNOWN)

    def place(self, start: Start) -> tuple[FloatArray, FloatArray]:
        """Return centres in the columns, and the radius that a record's offset from each is clipped to."""
        if self.spread is None:
            return start.centres, np.sqrt((1 - _OWN) * start.loss + _OWN * start.variances)
        centres = self.embed(start.centres)
        explained = float(start.weights @ (start.centres**2).sum(axis=1) / start.weights.sum())
        total = self.spread.total_variance
        within = max(total - explained, _WITHIN_LEAST * total, 1e-12)
        return centres, np.full(len(centres), _RADIUS_PROJECTED * within**0.5)


def plan_grid(settings: Settings, *, l2_squared: int, records: float, found: Found | None = None) -> Asking[GridPlan]:
    """Choose the route from public values and the noisy number of records, and make the grid.

    Parameters
    ----------
    settings, records
        Public values, and about how many records there are.
    l2_squared
        What is left of the budget.
    found
        Where the records are, if columns were scaled by their spread: around 0, and in this box.
    """
    signal = records * settings.signal(BUDGET_UNITS)
    if settings.may_project and signal >= _tuning(settings).project_from * settings.dimensions:
        return (
            yield from _lay_in_subspace(settings, l2_squared=l2_squared, records=records, signal=signal, found=found)
        )
    return (yield from _lay_on_columns(settings, l2_squared=l2_squared, records=records, found=found))


def _lay_on_columns(settings: Settings, *, l2_squared: int, records: float, found: Found | None) -> Asking[GridPlan]:
    knobs, d = settings.knobs, settings.dimensions
    if settings.may_project:
        for _ in range(2 if found else 3):
            yield IDLE
    if found is not None:
        box = found.box
    elif settings.may_project:
        box = Box(low=np.full(d, -1.0), high=np.full(d, 1.0))
    else:
        box = yield from find_box(settings, l2_squared=int(knobs.box_share * BUDGET_UNITS), records=records)
    left_l2_squared = l2_squared - box.l2_squared
    histogram_l2_squared = int(knobs.histogram_share_direct * left_l2_squared)
    # The error of a smooth density in d dimensions, bias against noise, is least at this number of cells.
    wanted = (records * settings.signal(histogram_l2_squared) / _tuning(settings).cell_direct) ** (2 * d / (2 + d))
    cells = np.clip(wanted, min(_CELLS_DIRECT * settings.clusters, knobs.cells_max), knobs.cells_max)
    return GridPlan(
        grid=Grid(low=box.low, high=box.high, bins=choose_bins(box.high - box.low, float(cells))),
        histogram_l2_squared=histogram_l2_squared,
        left_l2_squared=left_l2_squared - histogram_l2_squared,
    )


def _lay_in_subspace(
    settings: Settings, *, l2_squared: int, records: float, signal: float, found: Found | None
) -> Asking[GridPlan]:
    knobs, d = settings.knobs, settings.dimensions
    middle_l2_squared, norm_l2_squared = int(knobs.middle_share * BUDGET_UNITS), int(knobs.norm_share * BUDGET_UNITS)
    # The clearer the records, the less the axes and the start need, and the more is left for the rounds.
    taper = _tuning(settings).taper * (d / signal) ** 0.5
    moment_l2_squared = int(min(knobs.moment_share, max(taper, _MOMENT_LEAST)) * BUDGET_UNITS)
    if found is None:
        middle, longest = (yield from find_middle(settings, l2_squared=middle_l2_squared)), None
    else:
        middle, longest, middle_l2_squared = np.zeros(d), found.reach, 0
        most = l2_squared - norm_l2_squared - int((1 - BEFORE_HISTOGRAM_MOST) * BUDGET_UNITS)
        moment_l2_squared = max(min(moment_l2_squared, most), int(_MOMENT_LEAST * BUDGET_UNITS))
    radius = yield from find_radius(
        settings, l2_squared=norm_l2_squared, records=records, middle=middle, longest=longest
    )
    spread = yield from find_axes(settings, l2_squared=moment_l2_squared, records=records, middle=middle, radius=radius)
    left_l2_squared = l2_squared - middle_l2_squared - norm_l2_squared - moment_l2_squared
    histogram_l2_squared = int(min(knobs.histogram_share_projected, max(taper, _HISTOGRAM_LEAST)) * left_l2_squared)
    wanted = records * settings.signal(histogram_l2_squared) / _tuning(settings).cell_projected
    cells = np.clip(wanted, min(_CELLS_PROJECTED * settings.clusters, knobs.cells_max), knobs.cells_max)
    width = _WIDTH if signal < _CLEAR * d else _WIDTH_CLEAR
    half = np.maximum(np.minimum(width * spread.deviations, radius), LENGTH_LEAST)
    bins = choose_bins(2 * half, float(cells))
    used = bins > 1
    used[0] = True
    axes = np.ascontiguousarray(spread.subspace.axes[:, used])
    return GridPlan(
        grid=Grid(
            low=-half[used],
            high=half[used],
            bins=bins[used],
            subspace=Subspace(origin=spread.subspace.origin, axes=axes),
        ),
        histogram_l2_squared=histogram_l2_squared,
        left_l2_squared=left_l2_squared - histogram_l2_squared,
        spread=spread,
    )


def widen_radii(settings: Settings, radii: FloatArray, *, l2_squared: int, records: float) -> FloatArray:
    """Clip less where noise is small, because a mean of clipped offsets is biased, and more where noise is large."""
    noise = len(radii) * settings.dimensions**0.5 / (records * settings.signal(l2_squared))
    exponent = _GROWTH * min(1.0, _COLUMNS_WITH_TAILS / settings.dimensions)
    widened: FloatArray = radii * max(_RADIUS_LEAST, (_STILL / noise) ** exponent)
    return widened
