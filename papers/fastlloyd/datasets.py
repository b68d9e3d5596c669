"""What is run: files that the papers use, sets that are drawn as the papers describe, and how many runs of each.

Everything is scaled to [-1, 1] by its extremes, as the papers do, and rounded to the fixed-point grid. A set is named
by a small frozen value, so that processes know which one to load and keep it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Literal

import numpy as np

from cloister.crypto import Stream
from cloister.forecast.families import SYNTH_OVERLAPPING, SYNTH_SEPARATED, Sample, scale_to_domain
from cloister.numeric import FixedPoint
from cloister.records import FloatArray
from papers.data.files import SOURCES, read_numbers
from papers.data.separation import separated_clusters, time_synth
from papers.lab import paper

CLUSTERS = {"iris": 3, "s1": 15, "birch2": 100, "lsun": 3, "house": 3, "adult": 3}
"""k of each file (FastLloyd table 2), in the order of figure 3's panels: 3c is birch2, 3f the highest dimension."""
Family = Literal["SynthOV", "SynthSEP", "TimeSynth", "Synth"]
_SEPARATIONS = {"SynthOV": SYNTH_OVERLAPPING, "SynthSEP": SYNTH_SEPARATED}
_KEPT_SETS = 8


@dataclass(frozen=True, kw_only=True)
class FileSet:
    """A data set in a file; with ``most``, a seeded sample of this many of its records."""

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
    """A synthetic data set (FastLloyd 6.1, thesis 8.2); ``number`` distinguishes those of one kind."""

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


@dataclass(frozen=True, kw_only=True)
class Scope(paper.Scope):
    """Sizes of all experiments.

    Parameters
    ----------
    runs
        Runs of a point in FastLloyd's figures and the thesis's figures (20 there).
    ablation_runs
        Runs of a cell in thesis tables 8.2 to 8.5 (10 there).
    grid_runs, grid_sets, sizes
        Figures 5 and 6: runs on each of this many data sets per cell (20 and 3 there), and the k and d of the cells.
    sessions
        Sessions that a time is taken from (20 there).
    epsilons, thesis_epsilons
        The horizontal axes of figures 3, 4 and 7, and of 8.5 to 8.7.
    party_counts
        Parties whose loss is measured without a server; the exact formula takes all of 2 to 100.
    time_records
        The sizes of TimeSynth in table 3.
    samples
        Files of which only this many records are used.
    silhouette_records
        A silhouette is computed on at most this many records, always the same ones.
    """

    runs: int = 20
    ablation_runs: int = 10
    grid_runs: int = 4
    grid_sets: int = 3
    sizes: tuple[int, ...] = tuple(range(2, 21, 2))
    sessions: int = 10
    epsilons: tuple[float, ...] = (0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0)
    thesis_epsilons: tuple[float, ...] = (0.25, 0.5, 1.0, 2.0, 4.0)
    party_counts: tuple[int, ...] = (2, 3, 5, 10, 30, 100)
    time_records: tuple[int, ...] = (10_000, 100_000)
    samples: Mapping[str, int] = field(default_factory=dict)
    silhouette_records: int = 2_000
    note: str = (
        "As the papers, but for figures 5 and 6 (4 runs on each data set, not 20), the times (10 sessions, not 20) "
        "and silhouettes (on 2,000 records)."
    )

    def shrink(self) -> Scope:
        """Few runs and cells, samples of the large sets."""
        return replace(
            self,
            runs=3,
            ablation_runs=2,
            grid_runs=2,
            grid_sets=1,
            sizes=(2, 8, 14),
            sessions=2,
            epsilons=(0.05, 0.25, 1.0, 2.0),
            thesis_epsilons=(0.5, 4.0),
            party_counts=(2, 10, 100),
            samples={"birch2": 2_500, "adult": 5_000},
            silhouette_records=500,
            note="A quick look: few runs and cells, 2,500 records of birch2 and 5,000 of adult.",
        )

    def repeat(self, runs: int) -> Scope:
        """So many runs of everything, and as many sessions."""
        return replace(self, runs=runs, ablation_runs=runs, grid_runs=runs, sessions=runs)

    def find_sets(self, names: Sequence[str]) -> tuple[FileSet, ...]:
        """The sets of these names whose files are there."""
        return tuple(
            FileSet(name=name, path=self.data / f"{name}.txt", clusters=CLUSTERS[name], most=self.samples.get(name))
            for name in names
            if self.data is not None and (self.data / f"{name}.txt").is_file()
        )

    def explain_missing(self, names: Sequence[str]) -> tuple[str, ...]:
        """One sentence for each set that is left out, and where to get them."""
        if self.data is None:
            return (f"{', '.join(names)}: left out, no data folder was found. {SOURCES}",)
        missing = [name for name in names if not (self.data / f"{name}.txt").is_file()]
        said = [f"{name}: left out, {self.data / f'{name}.txt'} is missing." for name in missing]
        return (*said, SOURCES) if said else ()


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
    points = read_numbers(data.path, records_min=data.clusters)
    if data.most is not None and data.most < len(points):
        chosen = Stream.from_seed(0, "reproduction sample", data.name).permutation(len(points))[: data.most]
        points = points[np.sort(chosen)]
    nothing = np.zeros(len(points), dtype=np.int64)
    return Sample(points=points, labels=nothing, centres=points[:1])
