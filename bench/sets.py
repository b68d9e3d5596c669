"""The data of the benchmarks, in [-1, 1]^d: the papers' sets, drawn ones, and the families that Cloister was tuned on.

The papers' sets are read where :func:`papers.data.files.find_data` finds them and never copied; as in the papers their
bounds are the extremes of the data. No real table is among the families (docs/study-synopsis.md).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from sklearn.cluster import KMeans

from cloister.crypto import Stream
from cloister.forecast.families import SYNTH_OVERLAPPING, SYNTH_SEPARATED, scale_to_domain
from cloister.records import FloatArray
from papers.data.files import SOURCES, find_data
from papers.data.mixtures import feddp_mixture
from papers.data.separation import separated_clusters
from papers.fastlloyd.datasets import CLUSTERS, FileSet, Scope
from papers.fastlloyd.lines import Peers, load_peers

KS = {name: CLUSTERS[name] for name in ("iris", "lsun", "s1", "house", "adult", "birch2")}
SEPARATIONS = {"SynthOV": SYNTH_OVERLAPPING, "SynthSEP": SYNTH_SEPARATED}
MIXTURE_K = 10
Points = FloatArray


def find_set(name: str) -> FileSet:
    """A file of the papers."""
    if not has_set(name):
        raise SystemExit(f"this benchmark needs {name}.txt, which was not found. {SOURCES}")
    return Scope(data=find_data()).find_sets((name,))[0]


def has_set(name: str) -> bool:
    """Whether a file of the papers is here."""
    return bool(Scope(data=find_data()).find_sets((name,)))


def find_shared() -> Path:
    """The folder that has the data and, beside it, measurements of the authors' code."""
    data = find_data()
    return Path("nowhere") if data is None else data.parent


def find_peers() -> Peers:
    """The authors' code as measured on the papers' sets; none where the file is missing."""
    return load_peers(Scope(data=find_data()))


@cache
def load_unit(name: str) -> Points:
    """One data set, each column scaled to [-1, 1] by its extremes, as the papers do."""
    return _scale(np.loadtxt(find_set(name).path))


def _scale(points: Points) -> Points:
    low, high = points.min(axis=0), points.max(axis=0)
    unit: Points = 2 * (points - low) / (high - low) - 1
    return unit


def round_to_grid(points: Points) -> Points:
    """On the grid of the records."""
    rounded: Points = np.rint(points * 65536) / 65536
    return rounded


@dataclass(frozen=True, kw_only=True, eq=False)
class Mixture:
    """The mixture of FedDP-KMeans, appendix G.1: scaled, with what undoes the scaling."""

    points: Points
    width: Points
    optimum: float
    """Loss a record, in the mixture's own units, of Lloyd's algorithm from the true means."""

    def measure_excess(self, centres: Points) -> float:
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


def _loss_in_units(points: Points, centres: Points, width: Points) -> float:
    """Scale both back by the columns' widths (shifts do not matter) and take each record's nearest centre."""
    total = 0.0
    centres = centres * width / 2
    norms = (centres**2).sum(axis=1)
    for first in range(0, len(points), 8192):
        chunk = points[first : first + 8192] * width / 2
        total += float(((chunk**2).sum(axis=1) + (norms - 2 * chunk @ centres.T).min(axis=1)).sum())
    return total / len(points)


@cache
def draw_synth(family: str, k: int, d: int, number: int) -> Points:
    """Draw data set ``number`` of SynthOV or SynthSEP (FastLloyd 6.1): 7.5 to 12.5 thousand records."""
    stream = Stream.from_seed(number, f"{family} k={k} d={d}")
    return scale_to_domain(separated_clusters(stream, k, d, SEPARATIONS[family])).points


def _mix(
    rng: np.random.Generator, n: int, d: int, k: int, std: float, *, sizes: list[float] | None = None, shape: float = 0
) -> Points:
    """Draw k Gaussians with centres anywhere in the cube; ``shape`` makes them of unequal widths."""
    centres = rng.uniform(-1, 1, (k, d))
    parts = np.full(k, 1 / k) if sizes is None else np.array(sizes) / sum(sizes)
    labels = rng.choice(k, n, p=parts)
    widths = std * np.exp(shape * rng.standard_normal((k, d)))
    return centres[labels] + widths[labels] * rng.standard_normal((n, d))


def _fit(points: Points) -> Points:
    """Scaled by the extremes, on the grid."""
    return round_to_grid(_scale(points))


def _loosen(points: Points, rng: np.random.Generator) -> Points:
    """As if the bounds were ten times too wide."""
    return round_to_grid(0.1 * points + rng.uniform(-0.8, 0.8, points.shape[1]))


def _skewed(rng: np.random.Generator) -> Points:
    points = _mix(rng, 50_000, 6, 6, 0.4, shape=0.7)
    points[:, :3] = np.round(np.exp(points[:, :3]) * 3)
    return _fit(points)


def _heavy(rng: np.random.Generator) -> Points:
    points = _mix(rng, 5000, 2, 5, 0.1)
    return _fit(points + 0.05 * rng.standard_t(1.5, points.shape))


_SIZES = [2000.0, 1500, 1000, 800, 600, 300, 200, 100]
FAMILIES: dict[str, tuple[int, Callable[[np.random.Generator], Points]]] = {
    "n150d4k3": (3, lambda rng: _fit(_mix(rng, 150, 4, 3, 0.25, shape=0.3))),
    "n400d2k3": (3, lambda rng: _fit(_mix(rng, 400, 2, 3, 0.25, shape=0.5))),
    "n2000d3k3": (3, lambda rng: _fit(_mix(rng, 2000, 3, 3, 0.3, shape=0.5))),
    "n5000d2k15": (15, lambda rng: _fit(_mix(rng, 5000, 2, 15, 0.07))),
    "n600d2k15": (15, lambda rng: _fit(_mix(rng, 600, 2, 15, 0.07))),
    "unbal6500d2k8": (8, lambda rng: _fit(_mix(rng, 6500, 2, 8, 0.06, sizes=_SIZES))),
    "loose5000d2k5": (5, lambda rng: _loosen(_fit(_mix(rng, 5000, 2, 5, 0.1)), rng)),
    "loose5000d2k15": (15, lambda rng: _loosen(_fit(_mix(rng, 5000, 2, 15, 0.07)), rng)),
    "heavy5000d2k5": (5, _heavy),
    "n5000d4k5": (5, lambda rng: _fit(_mix(rng, 5000, 4, 5, 0.2))),
    "unif1000d3k4": (4, lambda rng: _fit(rng.uniform(-1, 1, (1000, 3)))),
    "n20kd3k20": (20, lambda rng: _fit(_mix(rng, 20_000, 3, 20, 0.1))),
    "n25kd2k100": (100, lambda rng: _fit(_mix(rng, 25_000, 2, 100, 0.02))),
    "disc50kd6k3": (3, _skewed),
    "n12kd20k8": (8, lambda rng: _fit(_mix(rng, 12_500, 20, 8, 0.3))),
    "n5000d10k5": (5, lambda rng: _fit(_mix(rng, 5000, 10, 5, 0.3))),
    "loose20kd8k5": (5, lambda rng: _loosen(_fit(_mix(rng, 20_000, 8, 5, 0.2)), rng)),
    "n10kd100k10": (10, lambda rng: _fit(_mix(rng, 10_000, 100, 10, 0.5))),
}


@cache
def load_family(name: str, instance: int) -> tuple[Points, int, float]:
    """Return one draw of a family: points, k, and the loss of k-means without privacy, best of ten starts."""
    k, make = FAMILIES[name]
    points = make(np.random.default_rng([instance, *name.encode()]))
    floor = KMeans(k, n_init=10, random_state=0).fit(points).inertia_ / len(points)
    return points, k, float(floor)
