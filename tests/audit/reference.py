"""A small sum-and-count release of several rounds, written from the definitions: what the audit is tried on.

It shares the encoder, the samplers and the accountant's conversion with the library and nothing else. Every knob that
turns it into a liar is a field; :mod:`tests.audit.mutants` lists the settings.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cloister.audit import Attack, Claim, Neighbour, WorstRecord, entry_labels, exact_pair, worst_records
from cloister.audit.worst_cases import place_contribution
from cloister.crypto import Stream
from cloister.numeric import FixedPoint
from cloister.privacy.costs import rho_of_epsilon
from cloister.privacy.encoder import SumCountEncoder, balance_count_weight
from cloister.privacy.mechanisms import DiscreteGaussian
from cloister.privacy.simulation_sampler import SimulationSampler

GRID = FixedPoint(16)
DELTA = 1e-5


@dataclass(frozen=True, kw_only=True)
class ReferenceRelease:
    """T rounds of (sums, weighted counts) for k clusters, with a total cost of rho = rho_of_epsilon(epsilon)."""

    epsilon: float
    dimensions: int = 4
    clusters: int = 2
    rounds: int = 2
    norm_bound: int | None = None
    separate_split: bool = False
    """Coordinates and count each get their own share of rho, instead of one joint release."""
    # The ways to be wrong.
    noise_factor: float = 1.0
    sensitivity_factor: float = 1.0
    swap_split: bool = False
    clip: bool = True
    one_seed: bool = False
    reuse_noise: bool = False
    reveal_noise: bool = False

    COUNT_SHARE = 0.9  # of rho, when the split is separate

    @property
    def claim(self) -> Claim:
        return Claim(epsilon=self.epsilon, delta=DELTA, rho=rho_of_epsilon(self.epsilon, DELTA))

    @property
    def encoder(self) -> SumCountEncoder:
        return SumCountEncoder(
            dimensions=self.dimensions,
            fixed_point=GRID,
            count_weight=balance_count_weight(self.dimensions, GRID),
            norm_bound=self.norm_bound,
        )

    def deviations(self) -> np.ndarray:
        """The noise of one cluster's slots: d sums and the count."""
        rho_round = self.claim.rho / self.rounds
        encoder, d = self.encoder, self.dimensions
        if not self.separate_split:
            sensitivity = self.sensitivity_factor * encoder.sensitivity.l2_squared**0.5
            return np.full(d + 1, self.noise_factor * sensitivity / (2 * rho_round) ** 0.5)
        # Each coordinate has sensitivity 2^f, the count w; rho = sum of the d + 1 shares.
        shares = np.append(np.full(d, (1 - self.COUNT_SHARE) / d), self.COUNT_SHARE)
        if self.swap_split:
            shares = np.append(np.full(d, shares[-1]), shares[0])
        sensitivities = np.append(np.full(d, float(GRID.scale)), float(encoder.count_weight))
        return self.noise_factor * self.sensitivity_factor * sensitivities / (2 * rho_round * shares) ** 0.5

    def attacks(self) -> tuple[Attack, ...]:
        records = worst_records(self.dimensions, clusters=self.clusters, rounds=self.rounds)
        return tuple(self.attack(record) for record in records)

    def attack(self, record: WorstRecord) -> Attack:
        if self.clip:
            pair = exact_pair(record, self.encoder, clusters=self.clusters)
        else:
            units = np.append(GRID.encode(record.point), self.encoder.count_weight)
            pair = place_contribution(record, units, clusters=self.clusters)
        exact = {Neighbour.WITHOUT: pair.exact_without, Neighbour.WITH: pair.exact_with}
        labels = entry_labels(self.dimensions, clusters=self.clusters, rounds=self.rounds)
        if self.reveal_noise:
            labels += tuple(f"noise of {label}" for label in labels)

        def run(which: Neighbour, runs: int, stream: Stream) -> np.ndarray:
            noise = self.draw(runs, stream)
            released = exact[which] + noise
            return np.hstack([released, noise]) if self.reveal_noise else released

        difference = np.append(pair.difference, np.zeros(len(labels) - len(pair.difference)))
        return Attack(name=record.name, run=run, labels=labels, difference=difference)

    def draw(self, runs: int, stream: Stream) -> np.ndarray:
        """(runs, rounds * clusters * (d + 1))."""
        deviations = self.deviations()
        rounds = 1 if self.reuse_noise else self.rounds
        noise = np.empty((runs, rounds, self.clusters, self.dimensions + 1), dtype=np.int64)
        sampler = SimulationSampler(stream.child("noise"))
        for sigma in np.unique(deviations):
            columns = np.flatnonzero(deviations == sigma)
            shape = (runs, rounds, self.clusters, len(columns))
            drawn = sampler.draw(DiscreteGaussian(sigma=float(sigma)), int(np.prod(shape)))
            noise[..., columns] = drawn.reshape(shape)
        if self.one_seed:
            noise[..., -1] = noise[..., 0]  # the count's generator was started from the seed of the first sum's
        return np.tile(noise, (1, self.rounds // rounds, 1, 1)).reshape(runs, -1)
