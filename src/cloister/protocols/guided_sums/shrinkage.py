"""Shrinkage: how much of a noisy vector to believe."""

from __future__ import annotations

from cloister.records import FloatArray

_EM_STEPS = 50


def shrink_mean(mean: FloatArray, noise_std: float) -> FloatArray:
    """James and Stein, positive part."""
    square = max(float(mean @ mean), 1e-300)
    return mean * max(0.0, 1.0 - max(len(mean) - 2, 0) * noise_std**2 / square)


def shrink_steps(steps: FloatArray, variances: FloatArray) -> FloatArray:
    """Empirical Bayes: steps are N(0, tau^2) in each coordinate, seen with noise; tau^2 by EM over all clusters."""
    squares = (steps**2).mean(axis=1)
    tau2 = max(float((squares - variances).mean()), 1e-6 * float(squares.mean()), 1e-30)
    for _ in range(_EM_STEPS):
        gain = tau2 / (tau2 + variances)
        tau2 = max(float((gain**2 * squares + gain * variances).mean()), 1e-30)
    return steps * (tau2 / (tau2 + variances))[:, None]
