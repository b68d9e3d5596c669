"""The data of FedDP-KMeans's evaluation (5.1, 5.2, G.1), each set named by a small value; loaded with public bounds.

Clients' records are scaled by bounds that everyone knows: a cube around the middle of the server's points, half as wide
again as they reach, the same width in every column so that distances keep their proportions. Records outside are
clipped, as a session would clip them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

import numpy as np

from cloister.crypto import Stream
from cloister.numeric import FixedPoint
from cloister.privacy.units import Unit
from cloister.records import ArrayRecords, FloatArray, IntArray
from papers.data.census import Employment, load_census
from papers.data.mixtures import feddp_mixture
from papers.data.questions import load_questions

CLUSTERS = 10
"""In all of the paper's experiments."""
PAPER_RECORDS = {Unit.RECORD: 1000, Unit.CLIENT: 50}
"""Records of a client in the paper's mixtures (G.1)."""
_MARGIN = 1.5
_KEPT_SETS = 1  # the largest has 200 MB, and as much again scaled
_GRID = FixedPoint(16)


@dataclass(frozen=True, kw_only=True)
class MixtureSet:
    """Ten Gaussians in 100 dimensions (G.1); ``number`` distinguishes mixtures, which then share nothing."""

    clients: int
    records_each: int
    unit: Unit
    number: int = 0
    dimensions: int = 100

    @property
    def label(self) -> str:
        """As the paper's tables call it, where it has the paper's size."""
        each = "" if self.records_each == PAPER_RECORDS[self.unit] else f" of {self.records_each}"
        return f"Gaussian Mixture ({self.clients} clients{each})"


@dataclass(frozen=True, kw_only=True)
class CensusSet:
    """US states as clients, people of one employment type as records."""

    folder: Path
    employment: Employment
    server_other: int = 1000

    unit = Unit.RECORD

    @property
    def label(self) -> str:
        """As the paper's tables call it."""
        return f"US Census ({_EMPLOYED[self.employment]})"


@dataclass(frozen=True, kw_only=True)
class QuestionSet:
    """Stack Overflow's users as clients, questions under two tags as records."""

    path: Path
    topics: tuple[str, str]
    server_other: int = 1000

    unit = Unit.CLIENT

    @property
    def label(self) -> str:
        """As the paper's tables call it."""
        return f"Stack Overflow ({', '.join(self.topics)})"


DataSet = MixtureSet | CensusSet | QuestionSet
_EMPLOYED: dict[Employment, str] = {
    "not-for-profit": "Not-for-profit Employees",
    "federal": "Federal Employees",
    "self-employed": "Self-Employed",
}


@dataclass(frozen=True, kw_only=True, eq=False)
class Frame:
    """Public bounds: a cube."""

    middle: FloatArray
    half_width: float

    def to_unit(self, points: FloatArray) -> FloatArray:
        """Scale to [-1, 1]^d and clip."""
        unit: FloatArray = np.clip((points - self.middle) / self.half_width, -1.0, 1.0)
        return unit

    def to_original(self, points: FloatArray) -> FloatArray:
        """Scale back."""
        original: FloatArray = points * self.half_width + self.middle
        return original


@dataclass(frozen=True, kw_only=True, eq=False)
class Study:
    """A data set in memory, in its own units.

    Attributes
    ----------
    points
        (n, d): all clients' records.
    clients
        Each client's rows.
    server
        (m, d): public.
    components
        What each record was drawn from; None for real data.
    frame
        The public bounds.
    """

    points: FloatArray = field(repr=False)
    clients: tuple[IntArray, ...] = field(repr=False)
    server: FloatArray = field(repr=False)
    components: IntArray | None = field(repr=False)
    frame: Frame = field(repr=False)

    @property
    def parts(self) -> list[FloatArray]:
        """Each client's records."""
        return [self.points[rows] for rows in self.clients]


@lru_cache(maxsize=_KEPT_SETS)
def load_study(data: DataSet) -> Study:
    """Draw or read a data set."""
    components = None
    if isinstance(data, MixtureSet):
        drawn = feddp_mixture(
            Stream.from_seed(data.number, "feddp mixture"),
            clients=data.clients,
            points_per_client=data.records_each,
            k=CLUSTERS,
            d=data.dimensions,
        )
        points, clients, server = drawn.sample.points, drawn.clients, drawn.server_points
        components = drawn.sample.labels
    else:
        stream = Stream.from_seed(0, "feddp server", data.label)
        if isinstance(data, CensusSet):
            found = load_census(data.folder, data.employment, stream, server_other=data.server_other)
        else:
            found = load_questions(data.path, data.topics, stream, server_other=data.server_other)
        points, clients, server = found.points, found.clients, found.server_points
    study = Study(points=points, clients=clients, server=server, components=components, frame=_frame_server(server))
    for array in (study.points, study.server):
        array.setflags(write=False)
    return study


@lru_cache(maxsize=_KEPT_SETS)
def load_records(data: DataSet) -> tuple[ArrayRecords, ...]:
    """Each client's records as a session reads them: scaled by the public bounds and on the grid."""
    study = load_study(data)
    return tuple(ArrayRecords(_GRID.quantise(study.frame.to_unit(part))) for part in study.parts)


def _frame_server(server: FloatArray) -> Frame:
    low, high = server.min(axis=0), server.max(axis=0)
    middle = (low + high) / 2
    return Frame(middle=middle, half_width=max(_MARGIN * float((high - low).max()) / 2, np.finfo(np.float64).tiny))
