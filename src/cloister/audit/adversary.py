"""The adversary of an audit: the second party. It reads what every party reads, and knows the noise that it added."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cloister.audit.claims import Claim
from cloister.audit.harness import Attack
from cloister.crypto import Stream
from cloister.data import Table, open_table
from cloister.job import Job
from cloister.numeric import FixedPoint
from cloister.privacy.samplers import Noise, OnProgress
from cloister.privacy.simulation_sampler import SimulationSampler
from cloister.records import FloatArray, IntArray

ADVERSARY = 2
SESSIONS_AT_ONCE = 100  # about a second
_FAR_OUTSIDE = 10.0  # widths of a column: a record that must be clipped


@dataclass(frozen=True, kw_only=True)
class JobUnderAudit:
    """A job's attacks, and what it claims; ``flaw`` says why the claim is false, where that is proved."""

    attacks: tuple[Attack, ...]
    claim: Claim
    flaw: str = ""


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
    return np.array([(column.low + column.high) / 2 for column in job.columns])


def find_corner(job: Job) -> FloatArray:
    """Return the upper corner of a job's domain, in its units, (d,)."""
    return np.array([column.high for column in job.columns])


def find_far_outside(job: Job) -> FloatArray:
    """Return a point far beyond the corner, which a table must clip to it, (d,)."""
    widths = np.array([column.high - column.low for column in job.columns])
    return find_corner(job) + _FAR_OUTSIDE * widths


def make_table(job: Job, rows: FloatArray) -> Table:
    """Return a party's table of these made-up rows."""
    table = open_table(rows, job.columns, fixed_point=FixedPoint(job.protocol.fractional_bits))
    table.check()
    return table
