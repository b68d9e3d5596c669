"""FastLloyd's sound form and SuLloyd, written again from their descriptions: what the synopsis is compared with.

Both run centrally, with continuous noise and with the exact curve of the Gaussian mechanism, as their authors' code
does: some 10 % less noise than the zCDP accounting of ours. Both are told n and k and pay for neither, and noise is
independent (the authors' code repeats it). Where a text leaves a choice, the better one for them counts:

- start: the paper's binary search for the radius of the spheres, or the code's halving of it;
- SuLloyd's noise: Laplace as published (Su et al. 2016), or Gaussian (the code's "GLloyd");
- a noisy count is at least 1 before a sum is divided by it, and centres outside the box are folded back.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq

from cloister.crypto import Stream
from cloister.kmeans import cluster_sums, sphere_packing
from cloister.privacy.privacy_loss import GaussianCost, delta_of_gaussian
from cloister.privacy.units import Budget
from cloister.records import FloatArray

ROUNDS_LEAST, ROUNDS_MOST = 2, 7
RADIUS_FACTOR = 0.8
"""FastLloyd v2's alpha: after the first round a record counts within alpha sqrt(d) / k^(1/d) of its centre."""
COUNT_WEIGHT = 0.225
"""rho of Su et al.: how far a cluster's mean is from the middle of the box, which decides between sums and counts."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """One rival on one data set: noise and radius of each round."""

    radii: tuple[float, ...]
    """How far from its centre a record may be to count; infinite for none. Offsets from the centre are then summed."""
    sum_noises: tuple[float, ...]
    count_noise: float
    is_laplace: bool = False


def plan_fastlloyd(n: int, k: int, d: int, budget: Budget) -> Plan:
    """Radius-bounded offsets with counts, released together: L2 norms of sums and counts share the budget 2 sqrt d : 1.

    With a = 1 + 2 sqrt d, sums have the variance a / (2 sqrt d) and counts a, times T radius^2 and T: the two
    squared signals add up to 1 / T.
    """
    sigma = find_sigma(budget)
    balance = 1 + 2 * math.sqrt(d)
    later = RADIUS_FACTOR * math.sqrt(d) / k ** (1 / d)
    rounds = _clip_rounds(0.016 * n**2 / (k**3 * later**2 * balance**2 * sigma**2))
    radii = (math.sqrt(d), *([later] * (rounds - 1)))
    unit = sigma * math.sqrt(rounds * balance)
    return Plan(
        radii=radii,
        sum_noises=tuple(unit * radius / (2 * math.sqrt(d)) ** 0.5 for radius in radii),
        count_noise=unit,
    )


def plan_sulloyd_gaussian(n: int, k: int, d: int, budget: Budget) -> Plan:
    """Sums from the middle of the box (norm sqrt d) and counts, shared sqrt d : 2 rho."""
    sigma = find_sigma(budget)
    balance = 2 * COUNT_WEIGHT + math.sqrt(d)
    rounds = _clip_rounds(0.004 * n**2 / (k**3 * d * balance**2 * sigma**2))
    unit = sigma * math.sqrt(rounds * balance)
    return Plan(
        radii=(math.inf,) * rounds,
        sum_noises=(unit * d**0.25,) * rounds,
        count_noise=unit / math.sqrt(2 * COUNT_WEIGHT),
    )


def plan_sulloyd_laplace(n: int, k: int, d: int, budget: Budget) -> Plan:
    """Pure epsilon: every column's sum and the count are Laplace queries, shared 1 : cbrt(4 d rho^2) / d."""
    count_part = (4 * d * COUNT_WEIGHT**2) ** (1 / 3)
    least = math.sqrt(500 * k**3 / n**2 * (d + count_part) ** 3)
    rounds = _clip_rounds(budget.epsilon / least)
    scale = (d + count_part) * rounds / budget.epsilon
    return Plan(
        radii=(math.inf,) * rounds,
        sum_noises=(scale,) * rounds,
        count_noise=scale / count_part,
        is_laplace=True,
    )


RIVALS: dict[str, tuple[Callable[[int, int, int, Budget], Plan], ...]] = {
    "FastLloyd": (plan_fastlloyd,),
    "SuLloyd": (plan_sulloyd_laplace, plan_sulloyd_gaussian),
}


def run_variants(name: str, points: FloatArray, k: int, budget: Budget, seed: int) -> Iterator[float]:
    """Yield the loss a record of each variant of a rival, always in the same order."""
    n, d = points.shape
    for plan_rounds in RIVALS[name]:
        for number, start in enumerate((sphere_packing, pack_by_halving)):
            plan = plan_rounds(n, k, d, budget)
            centres = start(Stream.from_seed(seed, f"rival's start {number}"), k, d)
            generator = np.random.default_rng([seed, number])
            yield cluster_sums(points, run_rounds(points, centres, plan, generator), threads=1).loss / n


def run_rounds(points: FloatArray, centres: FloatArray, plan: Plan, generator: np.random.Generator) -> FloatArray:
    """Lloyd's algorithm with noise."""
    draw = generator.laplace if plan.is_laplace else generator.normal
    for radius, sum_noise in zip(plan.radii, plan.sum_noises, strict=True):
        bounded = math.isfinite(radius)
        exact = cluster_sums(points, centres, radius=radius if bounded else None, threads=1)
        counts = exact.counts + draw(0.0, plan.count_noise, len(centres))
        origin = centres if bounded else np.zeros_like(centres)
        offsets = exact.sums - exact.counts[:, None] * origin + draw(0.0, sum_noise, centres.shape)
        moves = offsets / np.maximum(counts, 1.0)[:, None]
        if bounded:
            lengths = np.linalg.norm(moves, axis=1, keepdims=True)
            moves *= np.minimum(1.0, radius / np.maximum(lengths, 1e-300))
        centres = fold(origin + moves)
    return centres


def fold(centres: FloatArray) -> FloatArray:
    """Mirror what is outside [-1, 1] at the border, as often as it takes (FastLloyd 5.2.5)."""
    folded = np.mod(centres + 1.0, 4.0)
    return np.where(folded > 2.0, 4.0 - folded, folded) - 1.0


def pack_by_halving(stream: Stream, k: int, d: int) -> FloatArray:
    """Sphere packing with radius 1, 1/2, 1/4, ... until k centres fit with a hundred attempts each."""
    radius = 1.0
    while True:
        centres: list[FloatArray] = []
        for candidate in (1.0 - radius) * (2.0 * stream.uniform(100 * k, d) - 1.0):
            if all(np.linalg.norm(candidate - centre) >= 2 * radius for centre in centres):
                centres.append(candidate)
            if len(centres) == k:
                return np.array(centres)
        radius /= 2


def find_sigma(budget: Budget) -> float:
    """The noise on a query of sensitivity 1 that spends the budget, by the Gaussian mechanism's exact curve."""

    def exceeds(log_mu: float) -> float:
        return delta_of_gaussian(GaussianCost(mu_squared=math.exp(2 * log_mu), ripple=0.0), budget.epsilon)

    return math.exp(-float(brentq(lambda log_mu: math.log(max(exceeds(log_mu), 1e-300) / budget.delta), -12.0, 12.0)))


def _clip_rounds(rounds: float) -> int:
    return int(min(max(rounds, ROUNDS_LEAST), ROUNDS_MOST))
