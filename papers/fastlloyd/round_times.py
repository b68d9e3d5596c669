"""How long a round takes: sessions of one method on one data set, and what a network adds.

Each round is one request to each party and one reply, so a network adds two delays to it. CPU is that of all three
roles together, one after another; on three machines the parties would work at the same time.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from cloister.runtime.network import NETWORKS
from papers.fastlloyd.datasets import DataSet
from papers.fastlloyd.estimates import Estimate
from papers.fastlloyd.lab import Lab
from papers.fastlloyd.sessions import Traffic, count_traffic, time_rounds
from papers.fastlloyd.trials import Method, Trial


def compute_round_trip_ms(network: str) -> float:
    """What a network adds to a round: a request and a reply; the rows used here have no bandwidth and no jitter."""
    return 2.0 * NETWORKS[network].delay_ms


@dataclass(frozen=True, kw_only=True)
class RoundTime:
    """Means over sessions, and bytes."""

    cpu_ms: Estimate
    noise_ms: Estimate
    traffic: Traffic


def measure_round(data: DataSet, method: Method, epsilon: float, sessions: int, lab: Lab, label: str) -> RoundTime:
    """Run so many sessions after one that warms up, and tell the lab of each."""
    trials = [Trial(data=data, method=method, run=run, epsilon=epsilon) for run in range(sessions)]
    means = []
    time_rounds(trials[0], iterations=2)  # compiled kernels are loaded, data is in memory
    for trial in trials:
        costs = time_rounds(trial)
        means.append((_mean(cost.cpu_ms for cost in costs), _mean(cost.noise_ms for cost in costs)))
        lab.tick(label)
    return RoundTime(
        cpu_ms=Estimate.of([cpu for cpu, _ in means]),
        noise_ms=Estimate.of([noise for _, noise in means]),
        traffic=count_traffic(trials[0]),
    )


def _mean(values: Iterable[float]) -> float:
    every = list(values)
    return sum(every) / len(every)
