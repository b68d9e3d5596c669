"""The data of the evaluations: files that the papers use, and sets that are drawn as the papers describe.

Everything is scaled to [-1, 1] by its extremes, as the papers do, and rounded to the fixed-point grid. A set is named
by a small frozen value, so that processes can be told which one to load and keep it.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal

import numpy as np

from cloister.crypto import Stream
from cloister.data.synthetic import SYNTH_OVERLAPPING, SYNTH_SEPARATED, Sample, scale_to_domain
from cloister.errors import DataError
from cloister.numeric import FixedPoint
from cloister.records import FloatArray
from papers.data.separation import separated_clusters, time_synth

CLUSTERS = {"iris": 3, "s1": 15, "birch2": 100, "lsun": 3, "house": 3, "adult": 3}
"""k of each file (FastLloyd table 2), in the order of figure 3's panels: 3c is birch2, 3f the highest dimension."""
Family = Literal["SynthOV", "SynthSEP", "TimeSynth", "Synth"]
_SEPARATIONS = {"SynthOV": SYNTH_OVERLAPPING, "SynthSEP": SYNTH_SEPARATED}
_KEPT_SETS = 8


@dataclass(frozen=True, kw_only=True)
class FileSet:
    """A data set in a file; with ``most``, a seeded sample of so many of its records."""

    name: str
    path: Path
    clusters: int
    most: int | None = None

    @property
    def label(self) -> str:
        """The name; a sample says that it is one."""
        return self.name if self.most is None else f"{self.name} ({self.most:,})"


@dataclass(frozen=True, kw_only=True)
class DrawnSet:
    """A synthetic data set (FastLloyd 6.1, thesis 8.2); ``number`` tells those of one kind apart."""

    family: Family
    clusters: int
    dimensions: int
    records: int = 10_000
    number: int = 0

    @property
    def name(self) -> str:
        """The family, as the papers call it."""
        return self.family

    @property
    def label(self) -> str:
        """Everything that names it."""
        return f"{self.family} n={self.records} k={self.clusters} d={self.dimensions} no. {self.number}"


DataSet = FileSet | DrawnSet


@lru_cache(maxsize=_KEPT_SETS)
def load_points(data: DataSet) -> FloatArray:
    """Read or draw a data set: (n, d), in [-1, 1], on the grid."""
    unit = scale_to_domain(_draw(data) if isinstance(data, DrawnSet) else _read(data)).points
    points = FixedPoint().quantise(unit)
    points.setflags(write=False)
    return points


def _draw(data: DrawnSet) -> Sample:
    stream = Stream.from_seed(data.number, "reproduction", data.label)
    if data.family in _SEPARATIONS:
        average = round(data.records / data.clusters)
        separation = _SEPARATIONS[data.family]
        return separated_clusters(stream, data.clusters, data.dimensions, separation, average_size=average)
    return time_synth(stream, data.records, data.clusters, data.dimensions)


def _read(data: FileSet) -> Sample:
    """Read numbers with blanks between them; what cannot be read is not quoted."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an empty file is an error below
            points = np.loadtxt(data.path, dtype=np.float64, ndmin=2)
    except (OSError, ValueError):
        raise DataError(
            f"{data.path} must be a table of numbers with blanks between them; it could not be read as one. "
            "See docs/reproduction-fastlloyd.md for what the files hold."
        ) from None
    if len(points) < data.clusters or not np.isfinite(points).all():
        raise DataError(
            f"{data.path} must hold at least {data.clusters} records of finite numbers; it does not. Replace the file."
        )
    if data.most is not None and data.most < len(points):
        chosen = Stream.from_seed(0, "reproduction sample", data.name).permutation(len(points))[: data.most]
        points = points[np.sort(chosen)]
    nothing = np.zeros(len(points), dtype=np.int64)
    return Sample(points=points, labels=nothing, centres=points[:1])
