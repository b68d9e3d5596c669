"""Codebooks from records: a box for a grid, or a small private k-means, of a party's own columns; paid from the budget.

The party runs steps of the synopsis alone, on its own columns with its own noise, and sends the others what it found.
After a k-means, a histogram of distances shows how wide the cells are.
"""

from __future__ import annotations

from dataclasses import replace
from math import ceil, sqrt

import numpy as np

from cloister.crypto import Stream
from cloister.errors import LocalProtocolError
from cloister.kmeans import nearest, weighted_kmeans
from cloister.privacy.calibration import SLACK
from cloister.privacy.costs import epsilon_of_rho
from cloister.privacy.mechanisms import DiscreteGaussian, Release
from cloister.privacy.release import NoiseDuty, release
from cloister.privacy.units import Budget, Sensitivity
from cloister.protocols.guided_sums.agreement import release_of
from cloister.protocols.guided_sums.postprocessing import estimate_counts
from cloister.protocols.guided_sums.query import Answer, Asking
from cloister.protocols.guided_sums.settings import BUDGET_UNITS, Slot
from cloister.protocols.synopsis.extent import Box, find_box
from cloister.protocols.synopsis.pipeline import run_synopsis
from cloister.protocols.synopsis.settings import Knobs as SynopsisKnobs
from cloister.protocols.synopsis.settings import Settings as SynopsisSettings
from cloister.protocols.vertical.codebook import Codebook, grid_codebook, quantise_reps
from cloister.protocols.vertical.settings import ALICE, Settings
from cloister.records import ArrayRecords, FloatArray

_WIDTH_SHARE = 0.05  # of a codebook's budget, for the histogram of distances
_WIDTH_BINS = 24  # each ends a factor 2^(1/4) below the last, down to a fiftieth of the longest distance
_RESIDUAL_FACTOR = 1.0  # the residuals' radius, in standard deviations of a cell
_DELTA = 1e-9  # small, so that a small rho has an epsilon above 0
_RESTARTS, _ROUNDS = 4, 2  # fewer than for a result: cells only have to be small
_SAMPLE = 20_000


class _Recorder:
    """Charges the books behind it, and remembers the charges."""

    def __init__(self, *, duty: NoiseDuty | None, party: int) -> None:
        self._duty = duty
        self._whose = "computing party's codebook" if party == ALICE else f"codebook of holder {party + 1}"
        self.releases: list[Release] = []

    def charge(self, event: Release) -> None:
        """Charge, then remember: what was refused was not released."""
        named = replace(event, name=f"{self._whose}: {event.name}")
        self._given.charger.charge(named)
        self.releases.append(named)

    @property
    def paid(self) -> NoiseDuty:
        """The duty, with every charge remembered."""
        return NoiseDuty(charger=self, sampler=self._given.sampler, on_progress=self._given.on_progress)

    @property
    def _given(self) -> NoiseDuty:
        if self._duty is None:
            raise LocalProtocolError("a codebook that reads records must be charged; got no books: this is a bug.")
        return self._duty


def private_grid(
    settings: Settings, points: FloatArray, *, party: int, cells: int, residuals: bool, duty: NoiseDuty | None
) -> Codebook:
    """Make a grid in a box around a party's own columns; without a budget or ``box_share`` on the whole of [-1, 1].

    Privacy
    -------
    Neighbours: one record added or removed. Event: one histogram of each column, at most
    ``settings.codebook_rho_of(party)`` (docs/proofs/synopsis.md); nothing where the noise would decide.
    """
    d = points.shape[1]
    box = Box(low=np.full(d, -1.0), high=np.full(d, 1.0))
    recorder = _Recorder(duty=duty, party=party)
    if d and not settings.is_exact and settings.knobs.box_share > 0:
        own = _make_synopsis(settings, settings.codebook_rho_of(party), columns=d, cells=cells)
        asking = find_box(own, l2_squared=BUDGET_UNITS, records=float(settings.records))
        box = _answer(asking, own, points, recorder)
    codebook = grid_codebook(settings, box, cells=cells, residuals=residuals)
    return replace(codebook, releases=tuple(recorder.releases))


def private_codebook(
    settings: Settings,
    points: FloatArray,
    *,
    party: int,
    cells: int,
    residuals: bool,
    duty: NoiseDuty | None,
    stream: Stream,
) -> Codebook:
    """Make a codebook of a party's own columns by a small k-means.

    Parameters
    ----------
    settings
        Public values; it may cost ``settings.codebook_rho_of(party)``.
    points
        (n, d_h), the party's columns of all records.
    party
        Whose it is: a holder's number, or ``ALICE``.
    cells
        m.
    residuals
        Whether the party encrypts residuals.
    duty
        The party's own books and source of noise.
    stream
        Decides where clusterings start; noise never comes from it.

    Privacy
    -------
    Neighbours: one record added or removed. Events: those of a synopsis with one party, which adds all the noise
    itself, and one histogram to which a record adds 1. All are charged before noise is drawn, and cost at most
    ``settings.codebook_rho_of(party)`` together (docs/proofs/synopsis.md, docs/proofs/vertical.md).
    """
    recorder = _Recorder(duty=duty, party=party)
    rho = settings.codebook_rho_of(party)
    own = _make_synopsis(settings, rho * (1 - _WIDTH_SHARE), columns=points.shape[1], cells=cells)
    finding = _answer(run_synopsis(own, stream), own, points, recorder)
    assert finding.sizes is not None  # a synopsis counts
    reps = quantise_reps(finding.centres, settings.units)
    variance = _measure_width(settings, points, reps, recorder, settings.sigma_for(1, rho * _WIDTH_SHARE))
    radius = min(ceil(_RESIDUAL_FACTOR * sqrt(variance) * settings.units), settings.residual_most)
    return Codebook(
        reps=reps,
        units=settings.units,
        residual_radius=max(radius, 1) if residuals else 0,
        variance=variance,
        weights=np.maximum(finding.sizes.clusters, 1e-3),
        releases=tuple(recorder.releases),
    )


def exact_codebook(settings: Settings, points: FloatArray, *, cells: int, residuals: bool, stream: Stream) -> Codebook:
    """Make a codebook where there is no budget: centres of the records themselves, which are not private."""
    sample = points[stream.child("sample").permutation(len(points))[:_SAMPLE]]
    fit = weighted_kmeans(sample, cells, stream.child("codebook"), restarts=1, iterations=20)
    reps = quantise_reps(fit.centres, settings.units)
    found = nearest(sample, reps)
    return Codebook(
        reps=reps,
        units=settings.units,
        residual_radius=None if residuals else 0,
        variance=float(found.squared_distances.mean()),
        weights=np.bincount(found.labels, minlength=cells).astype(np.float64) * (len(points) / len(sample)),
    )


def _make_synopsis(settings: Settings, rho: float, *, columns: int, cells: int) -> SynopsisSettings:
    """The settings of a synopsis with one party that costs rho."""
    if settings.budget is None:
        raise LocalProtocolError("a private codebook must have a budget; got an exact clustering: this is a bug.")
    return SynopsisSettings(
        clusters=cells,
        dimensions=columns,
        # To epsilon and back, at any delta, is exact up to roundings, which the slack is for.
        budget=Budget(epsilon=epsilon_of_rho(rho / SLACK, _DELTA), delta=_DELTA),
        parties=1,
        records=settings.records,
        knobs=SynopsisKnobs(rounds_min=_ROUNDS, rounds_max=_ROUNDS, restarts=_RESTARTS),
    )


def _answer(asking: Asking[Answer], own: SynopsisSettings, points: FloatArray, recorder: _Recorder) -> Answer:
    """Run a part of the synopsis on one party's records; rounds that are not needed cost nothing."""
    records = ArrayRecords(points)
    try:
        query = next(asking)
        while True:
            total = np.zeros(query.length, dtype=np.int64)
            if query.length:
                slot = Slot(name=query.name, length=query.length)
                total = release(query.measure(records), release_of(query, slot, own), duty=recorder.paid)
            query = asking.send(total)
    except StopIteration as stop:
        answer: Answer = stop.value
        return answer


def _measure_width(
    settings: Settings, points: FloatArray, reps: FloatArray, recorder: _Recorder, sigma: float
) -> float:
    """Release a histogram of the distances to the representatives; return about the mean square.

    Privacy
    -------
    A record adds 1 to one bin.
    """
    event = Release(
        name="histogram of distances",
        mechanism=DiscreteGaussian(sigma=sigma),
        sensitivity=Sensitivity(l1=1, l2_squared=1),
        entries=_WIDTH_BINS,
    )
    edges = 4.0 * points.shape[1] * 2.0 ** (-np.arange(_WIDTH_BINS - 1, -1, -1) / 2)  # squared, rising
    squares = nearest(points, reps).squared_distances
    exact = np.bincount(np.minimum(np.searchsorted(edges, squares), _WIDTH_BINS - 1), minlength=_WIDTH_BINS)
    noisy = release(exact.astype(np.int64), event, duty=recorder.paid).astype(np.float64)
    counts = estimate_counts(noisy, sigma, level=sigma).means
    middles = edges * (1 + 0.5**0.5) / 2
    return float((counts * middles).sum() / max(counts.sum(), 1e-9))


def make_alice_codebook(settings: Settings, points: FloatArray, *, duty: NoiseDuty | None, stream: Stream) -> Codebook:
    """Return Alice's codebook, of her columns (n, d_A), for the joint histogram; a single cell if there is none."""
    if ALICE not in settings.codebook_makers:
        points = points[:, :0]
    return _make_codebook(settings, ALICE, points, cells=settings.alice_cells, duty=duty, stream=stream)


def make_holder_codebook(
    settings: Settings, holder: int, points: FloatArray, *, duty: NoiseDuty | None, stream: Stream
) -> Codebook:
    """Return an encrypted holder's codebook, of its columns (n, d_h).

    ``duty``, its own books and noise, may be None where there is no budget.
    """
    return _make_codebook(settings, holder, points, cells=settings.cells_of(holder), duty=duty, stream=stream)


def _make_codebook(
    settings: Settings, party: int, points: FloatArray, *, cells: int, duty: NoiseDuty | None, stream: Stream
) -> Codebook:
    residuals = party != ALICE and settings.has_residuals
    if settings.is_grid(party) or not points.shape[1]:
        return private_grid(settings, points, party=party, cells=cells, residuals=residuals, duty=duty)
    if settings.is_exact:
        return exact_codebook(settings, points, cells=cells, residuals=residuals, stream=stream)
    return private_codebook(settings, points, party=party, cells=cells, residuals=residuals, duty=duty, stream=stream)
