"""The data of the benchmarks: the papers' sets from ``../shared/data`` beside the repository, never copied; drawn ones.

Everything is in [-1, 1]^d. As in the papers the bounds are the extremes of the data.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans

from cloister.crypto import Stream
from cloister.data.synthetic import SYNTH_OVERLAPPING, SYNTH_SEPARATED, scale_to_domain
from papers.data.mixtures import feddp_mixture
from papers.data.separation import separated_clusters

FOLDER = Path(__file__).parents[2] / "shared" / "data"
KS = {"iris": 3, "lsun": 3, "s1": 15, "house": 3, "adult": 3, "birch2": 100}
SEPARATIONS = {"SynthOV": SYNTH_OVERLAPPING, "SynthSEP": SYNTH_SEPARATED}
MIXTURE_K = 10


@cache
def load_unit(name: str) -> NDArray[np.float64]:
    """One data set, each column scaled to [-1, 1] by its extremes, as the papers do."""
    path = FOLDER / f"{name}.txt"
    if not path.exists():
        raise SystemExit(f"this benchmark needs {path}, which is not here: see docs/benchmarks.md")
    points: NDArray[np.float64] = np.loadtxt(path)
    low, high = points.min(axis=0), points.max(axis=0)
    unit: NDArray[np.float64] = 2 * (points - low) / (high - low) - 1
    return unit


@dataclass(frozen=True, kw_only=True, eq=False)
class Mixture:
    """The mixture of FedDP-KMeans, appendix G.1: scaled, with what undoes the scaling."""

    points: NDArray[np.float64]
    width: NDArray[np.float64]
    optimum: float
    """Loss a record, in the mixture's own units, of Lloyd's algorithm from the true means."""

    def measure_excess(self, centres: NDArray[np.float64]) -> float:
        """Loss a record above the optimum, in the mixture's own units."""
        return _loss_in_units(self.points, centres, self.width) - self.optimum


@cache
def draw_mixture(clients: int, points_per_client: int) -> Mixture:
    """Draw it; client c holds rows c * points_per_client and on."""
    drawn = feddp_mixture(
        Stream.from_seed(1, "the mixture of the benchmarks"),
        clients=clients,
        points_per_client=points_per_client,
        k=MIXTURE_K,
    ).sample
    best = KMeans(MIXTURE_K, init=drawn.centres, n_init=1, tol=0.0).fit(drawn.points)
    unit = scale_to_domain(drawn).points
    return Mixture(points=unit, width=np.ptp(drawn.points, axis=0), optimum=float(best.inertia_) / len(unit))


def _loss_in_units(points: NDArray[np.float64], centres: NDArray[np.float64], width: NDArray[np.float64]) -> float:
    """Scale both back by the columns' widths (shifts do not matter) and take each record's nearest centre."""
    total = 0.0
    centres = centres * width / 2
    norms = (centres**2).sum(axis=1)
    for first in range(0, len(points), 8192):
        chunk = points[first : first + 8192] * width / 2
        total += float(((chunk**2).sum(axis=1) + (norms - 2 * chunk @ centres.T).min(axis=1)).sum())
    return total / len(points)


@cache
def draw_synth(family: str, k: int, d: int, number: int) -> NDArray[np.float64]:
    """Draw data set ``number`` of SynthOV or SynthSEP (FastLloyd 6.1): 7.5 to 12.5 thousand records."""
    stream = Stream.from_seed(number, f"{family} k={k} d={d}")
    return scale_to_domain(separated_clusters(stream, k, d, SEPARATIONS[family])).points
