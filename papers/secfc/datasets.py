"""The data of SecFC's evaluation: Gaussian mixtures (5.1) and rotated digits (5.2), each named by a small value.

Two ground truths are kept for a mixture. The text says that a record's label is its closest centre; the printed
accuracies at sigma = 20 are those against the component that a record was drawn from.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

import numpy as np

from cloister.crypto import Stream
from cloister.records import FloatArray, IntArray
from papers.data.digits import TURNS, load_mnist_digit, load_small_digit
from papers.data.mixtures import nearest_centres

_BOX = 10.0  # scikit-learn's make_blobs draws centres from [-10, 10]^d; the paper says that they are random
_KEPT_SETS = 4


@dataclass(frozen=True, kw_only=True)
class MixtureSet:
    """An isotropic mixture with equal weights; ``number`` tells those of one kind apart."""

    clusters: int
    records: int
    deviation: float
    dimensions: int = 100
    number: int = 0

    @property
    def label(self) -> str:
        """Everything that names it."""
        sizes = f"k={self.clusters} m={self.records} d={self.dimensions}"
        return f"mixture sigma={self.deviation:g} {sizes} no. {self.number}"


@dataclass(frozen=True, kw_only=True)
class DigitSet:
    """One digit in four turns: of MNIST where its folder is given, else scikit-learn's 8 x 8 stand-in."""

    digit: int
    mnist: Path | None = None

    @property
    def clusters(self) -> int:
        """One for each turn."""
        return TURNS

    @property
    def label(self) -> str:
        """The digit, and which set it is of."""
        return f"digit {self.digit}, {'stand-in' if self.mnist is None else 'MNIST'}"


DataSet = MixtureSet | DigitSet


@dataclass(frozen=True, kw_only=True, eq=False)
class Study:
    """A data set in memory.

    Attributes
    ----------
    points
        (m, d), in the paper's unit.
    unit_points
        The same divided by their largest magnitude, one number for all columns: in [-1, 1], distances in proportion.
    components
        What each record was drawn from: a Gaussian, or a turn. Clients hold at most k' of these.
    closest
        The closest of the true centres; for digits the turn again.
    """

    points: FloatArray = field(repr=False)
    unit_points: FloatArray = field(repr=False)
    components: IntArray = field(repr=False)
    closest: IntArray = field(repr=False)


@lru_cache(maxsize=_KEPT_SETS)
def load_study(data: DataSet) -> Study:
    """Draw or read a data set."""
    if isinstance(data, MixtureSet):
        return _draw_mixture(data)
    sample = load_small_digit(data.digit) if data.mnist is None else load_mnist_digit(data.mnist, data.digit)
    return _make_study(sample.points, sample.labels, sample.labels)


def _draw_mixture(data: MixtureSet) -> Study:
    """p(x) = sum over h of N(mu_h, sigma^2 I) / k; as ``gaussian_mixture``, with the components kept."""
    stream = Stream.from_seed(data.number, "secfc", data.label)
    centres = (2.0 * stream.uniform(data.clusters, data.dimensions) - 1.0) * _BOX
    components = stream.integers(data.clusters, data.records)
    points = centres[components] + data.deviation * stream.normal(data.records, data.dimensions)
    return _make_study(points, components, nearest_centres(points, centres))


def _make_study(points: FloatArray, components: IntArray, closest: IntArray) -> Study:
    study = Study(
        points=points,
        unit_points=points / max(float(np.abs(points).max()), np.finfo(np.float64).tiny),
        components=components,
        closest=closest,
    )
    for array in (study.points, study.unit_points, study.components, study.closest):
        array.setflags(write=False)
    return study
