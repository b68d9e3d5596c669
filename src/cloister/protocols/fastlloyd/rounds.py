"""How many rounds the published variants run: Su et al.'s rule, from the budget and public values.

One round alone must leave a mean squared error of at most 0.004, summed over all centres; that asks for a budget
epsilon_m, and there are epsilon / epsilon_m rounds, at least 2 and at most 7 (thesis 6.2.4, 6.3.3; FastLloyd 5.4).
"""

from __future__ import annotations

import math

RHO = 0.225
"""The average normalised coordinate of a centre, which Su et al. found on 81 synthetic data sets (thesis 6.2.3)."""
ROUNDS_LEAST, ROUNDS_MOST = 2, 7
_ERROR_MOST = 0.004


def split_count(dimensions: int, rho: float = RHO) -> float:
    """The count's budget as a multiple of one column's: epsilon^C / epsilon^Sigma = cbrt(4 d rho^2) (thesis 6.2.3)."""
    return float((4.0 * dimensions * rho**2) ** (1.0 / 3.0))


def count_rounds_by_sums(
    epsilon: float, *, records: int, clusters: int, dimensions: int, memberships: int = 1, rho: float = RHO
) -> int:
    """Thesis 6.2.4: epsilon_m = sqrt(500 E^2 k^3 / N^2 (d + cbrt(4 d rho^2))^3)."""
    error = 2.0 * memberships**2 * clusters**3 / records**2 * (dimensions + split_count(dimensions, rho)) ** 3
    return _clamp(epsilon, error)


def count_rounds_by_centroids(
    epsilon: float, *, size_min: float, clusters: int, dimensions: int, memberships: int = 1
) -> int:
    """FastLloyd 5.4, thesis 6.3.3: epsilon_m = sqrt(500 k d^3 E^2 / c_min^2)."""
    return _clamp(epsilon, 2.0 * clusters * dimensions**3 * memberships**2 / size_min**2)


def _clamp(epsilon: float, error_at_1: float) -> int:
    """``error_at_1`` is the error of one round with epsilon = 1; it goes with 1 / epsilon^2."""
    epsilon_least = math.sqrt(error_at_1 / _ERROR_MOST)
    return int(min(max(epsilon / epsilon_least, ROUNDS_LEAST), ROUNDS_MOST))
