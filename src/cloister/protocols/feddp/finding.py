"""What FedDP-KMeans ends with."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cloister.records import FloatArray


@dataclass(frozen=True, kw_only=True, eq=False)
class FeddpFinding:
    """What a run ends with; all of it has been paid for."""

    centres: FloatArray
    """(k, d) in [-1, 1]^d, all different."""
    weights: FloatArray
    """(k,): about how many records each cluster holds, at least 0."""
    weight_noise: float
    """The standard deviation of the noise in each of these."""
    released_records: float
    """The number of records, noisy or declared."""
    centre_noise: float
    """The standard deviation of the noise in a coordinate of a centre of average size in the last round."""
    rounds: int
    """Steps of Lloyd's algorithm that were made, the one that makes the first centres included."""

    def to_bytes(self) -> bytes:
        """Everything that the parties must agree on about it."""
        return self.centres.tobytes() + self.weights.tobytes() + np.float64(self.released_records).tobytes()
