"""What is run: Gaussian mixtures (5.1) and rotated digits (5.2), each named by a small value, and how often.

Two ground truths are kept for a mixture. The text says that a record's label is its closest centre; the printed
accuracies at sigma = 20 are those against the component that a record was drawn from.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path

import numpy as np

from cloister.crypto import Stream
from cloister.records import FloatArray, IntArray
from papers.data import digits
from papers.data.mixtures import gaussian_mixture, nearest_centres
from papers.lab import paper

_KEPT_SETS = 4


@dataclass(frozen=True, kw_only=True)
class MixtureSet:
    """An isotropic mixture with equal weights; ``number`` distinguishes those of one kind."""

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
        return digits.TURNS

    @property
    def label(self) -> str:
        """The digit, and which set it is of."""
        return f"digit {self.digit}, {'stand-in' if self.mnist is None else 'MNIST'}"


DataSet = MixtureSet | DigitSet


@dataclass(frozen=True, kw_only=True)
class Setting:
    """Sizes of a mixture (5.1): k, n and m, and the k' that are run."""

    clusters: int
    clients: int
    records: int
    local_clusters: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class TimedSize:
    """One point of figure 1; the defaults are the paper's (5.1)."""

    clients: int = 10
    dimensions: int = 20
    records: int = 1_000

    @property
    def data(self) -> MixtureSet:
        """What is clustered: k = 4, sigma = 1."""
        return MixtureSet(clusters=4, records=self.records, deviation=1.0, dimensions=self.dimensions)


@dataclass(frozen=True, kw_only=True)
class Scope(paper.Scope):
    """Sizes of all experiments.

    Parameters
    ----------
    runs
        Runs of each cell (10 in the paper).
    protocol_runs
        How many of them are real sessions; the others are the same algorithm in one place.
    settings
        The mixtures of tables 1 and 2.
    digits, digit_clients, digit_local_clusters
        Of table 3.
    sessions
        How many sessions a time is taken from.
    timed_clients, timed_dimensions, timed_records
        The axes of figure 1; the text does not print them.
    """

    runs: int = 10
    protocol_runs: int = 1
    settings: tuple[Setting, ...] = (
        Setting(clusters=4, clients=10, records=10_000, local_clusters=(1, 2, 4)),
        Setting(clusters=16, clients=16, records=16_384, local_clusters=(1, 2, 4, 16)),
    )
    digits: tuple[int, ...] = (2, 3)
    digit_clients: int = 10
    digit_local_clusters: tuple[int, ...] = (1, 2, 4)
    sessions: int = 5
    timed_clients: tuple[int, ...] = (5, 10, 20, 30, 40, 50)
    timed_dimensions: tuple[int, ...] = (10, 20, 50, 100, 200)
    timed_records: tuple[int, ...] = (500, 1_000, 2_000, 5_000, 10_000)
    note: str = "Sizes as in the paper; of the runs of a SecFC cell one is a real session."

    @property
    def mnist(self) -> Path | None:
        """The folder ``mnist`` of the data, if it is there; else scikit-learn's digits stand in."""
        folder = None if self.data is None else self.data / "mnist"
        return folder if folder is not None and folder.is_dir() else None

    def find_digits(self) -> tuple[DigitSet, ...]:
        """The sets of table 3."""
        return tuple(DigitSet(digit=digit, mnist=self.mnist) for digit in self.digits)

    def check(self) -> None:
        """A folder ``mnist`` must hold the training images and labels."""
        if self.mnist is not None:
            for name in (digits.IMAGES, digits.LABELS):
                digits.find_idx(self.mnist, name)

    def shrink(self) -> Scope:
        """Few runs and points, smaller mixtures."""
        small, large = self.settings
        return replace(
            self,
            runs=2,
            settings=(replace(small, records=2_000), replace(large, records=4_096)),
            sessions=2,
            timed_clients=(5, 10, 20),
            timed_dimensions=(10, 20, 100),
            timed_records=(500, 1_000, 5_000),
            note="A quick look: few runs and points, mixtures of 2,000 (k = 4) and 4,096 (k = 16) records.",
        )

    def repeat(self, runs: int) -> Scope:
        """So many runs of a cell, and sessions of a time."""
        return replace(self, runs=runs, sessions=runs)


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
    sample = (
        digits.load_small_digit(data.digit) if data.mnist is None else digits.load_mnist_digit(data.mnist, data.digit)
    )
    return _make_study(sample.points, sample.labels, sample.labels)


def _draw_mixture(data: MixtureSet) -> Study:
    stream = Stream.from_seed(data.number, "secfc", data.label)
    drawn = gaussian_mixture(stream, n=data.records, k=data.clusters, d=data.dimensions, deviation=data.deviation)
    return _make_study(drawn.points, drawn.labels, nearest_centres(drawn.points, drawn.centres))


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
