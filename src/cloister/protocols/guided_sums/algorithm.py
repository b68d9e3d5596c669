"""Running an algorithm on released totals: in a session, or in one place without messages.

An algorithm is a generator of queries. In a session, every party runs its own copy, which is sent the total of each
round and yields the next query. `AlgorithmState` is that copy after some rounds. A state never changes, and the same
totals lead to the same next state, so a party that refuses a request remains as it was. `AlgorithmCache` shares states
among parties in one process: thousands of simulated parties that read the same totals run the algorithm only once.

`rehearse` runs the same algorithm with the same noise and charges in one place, without masks or messages, for plans
and studies. It needs every record, so it protects nobody; it finds what a session with the same noise
finds, bit for bit.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from cloister.aggregation import Aggregate
from cloister.crypto import Stream, encode_context
from cloister.errors import LocalProtocolError
from cloister.privacy.mechanisms import DiscreteGaussian, DiscreteLaplace, Mechanism, Release
from cloister.privacy.samplers import Sampler
from cloister.protocols.guided_sums.agreement import Agreement, Settings, release_of, sample_parties
from cloister.protocols.guided_sums.query import Asking, Query
from cloister.protocols.guided_sums.settings import GuidedSettings, Slot
from cloister.records import FloatArray, IntArray, Records
from cloister.report.result import KChoice


@dataclass(frozen=True, kw_only=True, eq=False)
class GuidedFinding:
    """The result of an algorithm; all of it has been paid for.

    Attributes
    ----------
    centres
        (k, d) in [-1, 1]^d, all different.
    weights, weight_noise
        (k,): about how many records each cluster holds, at least 0; and the standard deviation of the noise in each.
    released_records
        The number of records, noisy or declared.
    centre_noise
        The standard deviation of the noise in a coordinate of a centre of average size in the last round.
    rounds
        Rounds of Lloyd's algorithm, including one that makes the first centres.
    curve
        What was tried, if k was chosen.
    """

    centres: FloatArray
    weights: FloatArray
    weight_noise: float
    released_records: float
    centre_noise: float
    rounds: int
    curve: tuple[KChoice, ...] = ()

    def to_bytes(self) -> bytes:
        """Encode everything that the parties must agree on about the result."""
        return self.centres.tobytes() + self.weights.tobytes() + np.float64(self.released_records).tobytes()


FindingT = TypeVar("FindingT", bound=GuidedFinding)
Pipeline = Callable[[Any, Stream], Asking[FindingT]]
"""An algorithm: from its own kind of settings and the parties' common stream."""


@dataclass(frozen=True, kw_only=True, eq=False)
class GuidedSession(Generic[Settings]):
    """What was agreed for one session of guided sums.

    Attributes
    ----------
    agreement
        The public parameters.
    algorithm
        What every party runs on the released totals.
    plan
        All releases, if they are fixed in advance; otherwise one prepayment covers them.
    """

    agreement: Agreement[Settings]
    algorithm: Pipeline[Any]
    plan: tuple[Release, ...] | None = None


@dataclass(frozen=True, kw_only=True)
class _Run(Generic[FindingT]):
    """What all states of one run have in common; the same key gives the same run."""

    settings: GuidedSettings
    key: bytes
    pipeline: Pipeline[FindingT]
    lock: AbstractContextManager[object]

    def start(self) -> tuple[Asking[FindingT], Query]:
        asking = self.pipeline(self.settings, Stream(self.key))
        return asking, next(asking)


class AlgorithmState(Generic[FindingT]):
    """Where the algorithm stands after some rounds.

    Attributes
    ----------
    totals
        The released numbers of every round so far, whole slots.
    output
        The next round's query; after the last round, what was found.
    digest
        Of the output and of the total that it follows from.
    """

    __slots__ = ("_asking", "_next", "_run", "digest", "output", "totals")

    def __init__(
        self, run: _Run[FindingT], asking: Asking[FindingT], totals: tuple[IntArray, ...], output: Query | FindingT
    ) -> None:
        _check_output(output, done=len(totals), settings=run.settings)
        self.totals, self.output = totals, output
        self._run, self._asking = run, asking
        self._next: AlgorithmState[FindingT] | None = None
        last = totals[-1].tobytes() if totals else b""
        self.digest = b"".join(hashlib.blake2b(part).digest() for part in (output.to_bytes(), last))

    def advance(self, total: IntArray) -> AlgorithmState[FindingT]:
        """Return the state after one more round's released slot."""
        with self._run.lock:
            if self._next is None:
                self._next = self._send(self._asking, total)
            if np.array_equal(self._next.totals[-1], total):
                return self._next
            # Our generator has already been sent another total and cannot go back: replay the run up to here.
            asking, query = self._run.start()
            for earlier in self.totals:
                query = asking.send(earlier[: query.length])
            return self._send(asking, total)

    def _send(self, asking: Asking[FindingT], total: IntArray) -> AlgorithmState[FindingT]:
        if not isinstance(self.output, Query):
            raise LocalProtocolError("the algorithm must not be sent a total after it has ended; it was.")
        output: Query | FindingT
        try:
            output = asking.send(total[: self.output.length])
        except StopIteration as stop:
            output = stop.value
        return AlgorithmState(self._run, asking, (*self.totals, total), output)


def _check_output(output: object, *, done: int, settings: GuidedSettings) -> None:
    # One query per slot, which it must fit: rounds on the wire are public.
    slots = settings.slots
    room = slots[done].length if done < len(slots) else -1
    fits = output.length <= room if isinstance(output, Query) else room < 0
    if not fits:
        raise LocalProtocolError(
            f"the algorithm must ask one query for each of {len(slots)} slots, within its length; after {done} rounds "
            "it did not: this is a bug."
        )


Unmasked = tuple[NDArray[Any], tuple[int, ...]]
"""Ring elements, and the parties that they are the sum of."""
_SUMS_KEPT = 16  # of the last rounds, for parties that were away


class AlgorithmCache(Generic[FindingT]):
    """Runs of an algorithm, and unmasked sums, for several parties of one process: each is computed once.

    Parameters
    ----------
    lock
        Held while something is computed, where parties run in several threads; `nullcontext` otherwise.
    pipeline
        The algorithm.
    """

    def __init__(self, *, lock: AbstractContextManager[object], pipeline: Pipeline[FindingT]) -> None:
        self._lock = lock
        self._pipeline = pipeline
        self._first: dict[tuple[GuidedSettings, bytes], AlgorithmState[FindingT]] = {}
        self._unmasked: dict[bytes, Unmasked] = {}

    def begin(self, settings: GuidedSettings, key: bytes) -> AlgorithmState[FindingT]:
        """Return the state before the first round; ``key`` is that of the parties' common stream."""
        with self._lock:
            if (settings, key) not in self._first:
                run = _Run(settings=settings, key=key, pipeline=self._pipeline, lock=self._lock)
                asking, query = run.start()
                self._first[settings, key] = AlgorithmState(run, asking, (), query)
            return self._first[settings, key]

    def unmask(self, key: bytes, aggregate: Aggregate, unmask: Callable[[], Unmasked]) -> Unmasked:
        """Return an unmasked sum; parties with the same masks, identified by ``key``, unmask it only once.

        Summing masks takes time if there are gaps among the parties that answered.
        """
        words = aggregate.masked_sum
        shape = encode_context(*words.shape)
        name = hashlib.blake2b(encode_context(aggregate.round, aggregate.members, words.code, shape), key=key)
        name.update(words.data)
        with self._lock:
            if name.digest() not in self._unmasked:
                if len(self._unmasked) >= _SUMS_KEPT:
                    self._unmasked.clear()
                self._unmasked[name.digest()] = unmask()
            return self._unmasked[name.digest()]


@dataclass(frozen=True, kw_only=True, eq=False)
class Rehearsal(Generic[FindingT]):
    """What a session would have ended with."""

    finding: FindingT
    releases: tuple[Release, ...]
    """What each party would have been charged for."""
    totals: tuple[IntArray, ...]
    """The released numbers of each round, whole slots."""


def rehearse(
    settings: GuidedSettings,
    parts: Sequence[Records],
    *,
    pipeline: Pipeline[FindingT],
    sampler: Sampler,
    stream: Stream,
    key: bytes = bytes(32),
) -> Rehearsal[FindingT]:
    """Run the algorithm on all parties' records at once.

    Parameters
    ----------
    settings
        Public values.
    parts
        Each party's records; who holds which only matters for client-level privacy.
    pipeline
        The algorithm.
    sampler
        Draws once per round the noise of a whole slot, in place of everyone who adds noise.
    stream
        The parties' common stream.
    key
        Decides who is asked in which round, where not all are (`sample_parties`).
    """
    asking = pipeline(settings, stream)
    query = next(asking)
    releases: list[Release] = []
    totals: list[IntArray] = []
    for round_, slot in enumerate(settings.slots, start=1):
        exact = np.zeros(slot.length, dtype=np.int64)
        for part in _choose_parts(settings, parts, round_, key):
            exact[: query.length] += query.measure(part)
        total = exact + sampler.draw(_total_noise(settings, slot), slot.length)
        if query.l2_squared > 0:
            releases.append(release_of(query, slot, settings))
        totals.append(total)
        try:
            query = asking.send(total[: query.length])
        except StopIteration as stop:
            return Rehearsal(finding=stop.value, releases=tuple(releases), totals=tuple(totals))
    raise LocalProtocolError(f"the algorithm must end after {len(settings.slots)} rounds; it did not: this is a bug.")


def _choose_parts(settings: GuidedSettings, parts: Sequence[Records], round_: int, key: bytes) -> Sequence[Records]:
    if settings.sample_size >= settings.parties:
        return parts
    asked = sample_parties(key, round_, parties=settings.parties, size=settings.sample_size)
    return [parts[number - 1] for number in asked]


def _total_noise(settings: GuidedSettings, slot: Slot) -> Mechanism:
    # A sum of Gaussian shares is one Gaussian up to a relative exp(-2 pi^2 sigma^2) (privacy.costs.ripple_of_sum),
    # which is nothing for the sigmas here: they are above 1000 for any budget.
    noise = settings.noise_in(slot)
    if settings.placement.by_coordinator:
        return noise
    if isinstance(noise, DiscreteLaplace):
        raise LocalProtocolError(
            "Laplace noise can be rehearsed only where the coordinator adds it; parties add it here."
        )
    return DiscreteGaussian(sigma=settings.placement.total_variance(noise) ** 0.5)
