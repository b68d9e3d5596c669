"""Attacks on whole jobs: real tables, roles, messages, masks and noise; what another party reads is what is judged.

A job's protocol builds the attacks. What they share is here: the adversary is the second party, which reads what every
party reads and knows the noise that it added; made-up records; and who takes part.
"""

from __future__ import annotations

import numpy as np

from cloister.crypto import Identity, SeededEntropy, Stream
from cloister.data import Table, open_points
from cloister.job import Job
from cloister.privacy.mechanisms import Noise
from cloister.privacy.samplers import OnProgress
from cloister.privacy.simulation_sampler import SimulationSampler
from cloister.records import FloatArray, IntArray

ADVERSARY = 2
SESSIONS_AT_ONCE = 100  # about a second
_FAR_OUTSIDE = 10.0  # widths of a coordinate: a record that must be clipped


def make_identities(job: Job) -> tuple[Identity, ...]:
    """Return identities for the parties of a job under audit."""
    return tuple(Identity(SeededEntropy(0, f"identity {party.name}")) for party in job.parties)


class KeptNoise:
    """A sampler that remembers what it drew since :meth:`start`: its holder knows its own noise."""

    is_simulation = True

    def __init__(self, stream: Stream) -> None:
        self._sampler = SimulationSampler(stream)
        self._drawn: list[IntArray] = []

    def start(self) -> list[IntArray]:
        """Forget what was drawn; the list fills from now on."""
        self._drawn = []
        return self._drawn

    def draw(self, mechanism: Noise, entries: int, on_progress: OnProgress | None = None) -> IntArray:
        """Draw and remember."""
        noise = self._sampler.draw(mechanism, entries)
        self._drawn.append(noise)
        return noise


def find_middle(job: Job) -> FloatArray:
    """Return the middle of a job's domain, in its units, (d,)."""
    return np.array([(axis.low + axis.high) / 2 for axis in job.coordinates])


def find_corner(job: Job) -> FloatArray:
    """Return the upper corner of a job's domain, in its units, (d,)."""
    return np.array([axis.high for axis in job.coordinates])


def find_far_outside(job: Job) -> FloatArray:
    """Return a point far beyond the corner, which a table must clip to it, (d,)."""
    widths = np.array([axis.high - axis.low for axis in job.coordinates])
    return find_corner(job) + _FAR_OUTSIDE * widths


def make_table(job: Job, rows: FloatArray) -> Table:
    """Return a party's table of these made-up rows."""
    return open_points(rows, job.coordinates, fixed_point=job.protocol.grid)
