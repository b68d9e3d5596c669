"""The audit: run a mechanism on two neighbouring inputs many times and refute its claim, or fail to.

The first half of the runs finds the event: a quarter fits the statistics, a quarter chooses among them. The second half
only counts. With several attacks, each is trained and only the most promising one is counted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.audit import bounds
from cloister.audit.bounds import Claim, Neighbour
from cloister.audit.events import Event, choose_event, prefer_first
from cloister.audit.power import find_power
from cloister.audit.statistics import check_outputs, fit_statistics
from cloister.crypto import Stream
from cloister.errors import ConfigError, LocalProtocolError
from cloister.records import FloatArray

FEWEST_RUNS = 400
_BATCH_NUMBERS = 1 << 22  # numbers of one batch: 32 MiB
_MOST_TRAINING_NUMBERS = 1 << 24  # kept in memory while fitting, per input and phase: 128 MiB

RunMechanism = Callable[[Neighbour, int, Stream], NDArray[Any]]
"""(which input, runs, randomness) -> (runs, entries): all that the adversary sees, one row a run, rows independent."""

OnProgress = Callable[[str, int, int], None]
"""(what is being run, runs done, runs in all): over the whole audit."""


@dataclass(frozen=True, kw_only=True)
class Attack:
    """A mechanism on one pair of neighbouring inputs.

    Parameters
    ----------
    name
        The pair in words: "a record at the corner, alone in its cluster".
    run
        Runs the mechanism.
    labels
        Names of the entries of its output.
    difference
        The exact difference of the two inputs' vectors before noise, if known; see
        :func:`~cloister.audit.statistics.fit_statistics`.
    most_at_once
        Ask for at most so many runs at a time, where a run is slow: progress is told after each lot.
    """

    name: str
    run: RunMechanism
    labels: tuple[str, ...] | None = None
    difference: FloatArray | None = None
    most_at_once: int | None = None


@dataclass(frozen=True, kw_only=True)
class JobUnderAudit:
    """A job's attacks, and what it claims; ``flaw`` says why the claim is false, where that is proved."""

    attacks: tuple[Attack, ...]
    claim: Claim
    flaw: str = ""


@dataclass(frozen=True, kw_only=True)
class AuditReport:
    """What the runs show. A lower bound refutes a claim or fails to; it never proves one."""

    claim: Claim
    confidence: float
    attack: str
    event: str
    """The event in words."""
    counts: bounds.EventCounts
    training_runs: int
    """Per input and attack, besides the counted ones."""
    epsilon_lower: float
    """With the stated confidence, the true epsilon at the claim's delta is at least this."""
    rho_lower: float
    """With the same confidence (the same event), the true rho is at least this."""
    epsilon_if_gaussian: float
    """An ESTIMATE that assumes Gaussian outputs; not part of the verdict."""
    caught_below: float | None
    """Noise below 1/x of what the claim needs would have been refuted nine times in ten; None if nothing would have
    been. Computed under the assumptions of :func:`~cloister.audit.power.find_power`."""

    @property
    def refutes_epsilon(self) -> bool:
        """Whether the pair (epsilon, delta) by itself is refuted."""
        return self.epsilon_lower > self.claim.epsilon

    @property
    def refutes_rho(self) -> bool:
        """Whether the claimed rho is refuted; the pair that was converted from it may still hold, but is unproved."""
        return self.claim.rho is not None and self.rho_lower > self.claim.rho

    @property
    def violates(self) -> bool:
        """Whether any part of the claim is refuted."""
        return self.refutes_epsilon or self.refutes_rho

    @property
    def verdict(self) -> str:
        """One line."""
        return "VIOLATES the claim" if self.violates else "is consistent with the claim"

    def text(self) -> str:
        """Plain words first, numbers second."""
        claim, counts = self.claim, self.counts
        if self.refutes_epsilon:
            remark = "its epsilon is larger than it says."
        elif self.refutes_rho:
            remark = "its rho is larger than it says, so nothing supports its epsilon."
        else:
            remark = "that is no proof, another attack might show more."
        largest = bounds.largest_certifiable_epsilon(
            counts.runs_likelier, delta=claim.delta, confidence=self.confidence
        )
        lines = [
            f"The release {self.verdict}: {remark}",
            f"  epsilon at delta {claim.delta:g}: at least {self.epsilon_lower:.4g}, claimed {claim.epsilon:.4g}",
        ]
        if claim.rho is not None:
            lines.append(f"  rho (zCDP): at least {self.rho_lower:.4g}, claimed {claim.rho:.4g}")
        lines += [
            f"  confidence: {self.confidence:.10g}",
            f"  neighbours: {self.attack}",
            f"  event: {self.event}",
            f"  happened in {counts.hits_likelier} of {counts.runs_likelier} runs there, "
            f"in {counts.hits_other} of {counts.runs_other} on the other input",
            f"  chosen on {self.training_runs} other runs per input; "
            f"this many runs can show at most epsilon {largest:.3g}",
        ]
        lines.append(f"  power: {self._describe_power()}")
        if claim.delta > 0:
            lines.append(f"  an estimate, if outputs were Gaussian: epsilon {self.epsilon_if_gaussian:.4g}")
        return "\n".join(lines)

    def _describe_power(self) -> str:
        if self.caught_below is None:
            return "none: so few runs refute nothing at this claim, not even missing noise"
        times = math.ceil(100 * self.caught_below) / 100
        return (
            f"would have caught noise below 1/{times:g} of what it should be, nine times in ten (computed, not\n"
            "    measured: for Gaussian noise, of which this adversary sees all, and the best event)"
        )


def audit(
    attacks: Attack | Sequence[Attack],
    *,
    claim: Claim,
    stream: Stream,
    runs: int = 100_000,
    confidence: float = bounds.DEFAULT_CONFIDENCE,
    on_progress: OnProgress | None = None,
) -> AuditReport:
    """Try to refute a privacy claim.

    Parameters
    ----------
    attacks
        One or more pairs of neighbours to try; the best on training runs is counted.
    claim
        What to refute.
    stream
        Randomness for the runs; the same stream gives the same report if the mechanism draws from it alone.
    runs
        Per input: half train (each attack), half are counted (the chosen attack).
    confidence
        Probability that the reported bounds hold, whatever the mechanism is.
    on_progress
        Told of every batch; raising from it stops the audit.

    Returns
    -------
    AuditReport

    Raises
    ------
    ConfigError
        If there are too few runs, no attack, or the confidence is not inside (0, 1).

    Privacy
    -------
    Nothing here is private: outputs of both inputs are looked at. Audit with made-up records, never with
    those of people.
    """
    chosen = (attacks,) if isinstance(attacks, Attack) else tuple(attacks)
    if not chosen:
        raise ConfigError("an audit must have at least one attack; got none.")
    if runs < FEWEST_RUNS:
        raise ConfigError(f"an audit must have at least {FEWEST_RUNS} runs per input; got {runs}.")
    if not 0 < confidence < 1:
        raise ConfigError(f"confidence must lie between 0 and 1; got {confidence}. Try 0.999999.")
    trained = runs // 4
    counted = runs - 2 * trained
    meter = _Meter(total=2 * (2 * trained * len(chosen) + counted), on_progress=on_progress)
    sources = [_Source(attack, stream.child("attack", number), meter) for number, attack in enumerate(chosen)]
    events = [_train(source, claim, trained, counted, confidence) for source in sources]
    event = prefer_first(events)
    source = sources[events.index(event)]
    hits = {side: sum(event.hits(batch) for batch in source.batches("count", side, counted)) for side in Neighbour}
    counts = event.counts(hits=hits, runs=counted)
    return AuditReport(
        claim=claim,
        confidence=confidence,
        attack=source.attack.name,
        event=f"{event.statistic.words} >= {event.threshold:.6g} (standardised), {event.likelier.value} the record",
        counts=counts,
        training_runs=2 * trained,
        epsilon_lower=bounds.epsilon_lower_bound(counts, delta=claim.delta, confidence=confidence),
        rho_lower=bounds.rho_lower_bound(counts, confidence=confidence),
        epsilon_if_gaussian=bounds.estimate_gaussian_epsilon(counts, delta=claim.delta),
        caught_below=find_power(claim, runs=counted, confidence=confidence),
    )


class _Meter:
    """Counts runs over the whole audit."""

    def __init__(self, *, total: int, on_progress: OnProgress | None) -> None:
        self._total = total
        self._on_progress = on_progress
        self._done = 0

    def add(self, label: str, runs: int) -> None:
        self._done += runs
        if self._on_progress is not None:
            self._on_progress(label, min(self._done, self._total), self._total)


class _Source:
    """Fresh outputs of one attack, in batches, each from its own child stream."""

    def __init__(self, attack: Attack, stream: Stream, meter: _Meter) -> None:
        self.attack = attack
        self._stream = stream
        self._meter = meter
        self._shape: tuple[int, str] | None = None

    def batches(self, phase: str, side: Neighbour, runs: int) -> Iterator[NDArray[Any]]:
        done = 0
        while done < runs:
            # The first batch is small: only its output says how many entries a run has.
            size = min(runs - done, max(1, _BATCH_NUMBERS // self._shape[0]) if self._shape else 256)
            size = min(size, self.attack.most_at_once or size)
            outputs = self.attack.run(side, size, self._stream.child(phase, side.value, done))
            outputs = check_outputs(outputs, runs=size)
            if self._shape not in (None, (outputs.shape[1], outputs.dtype.kind)):
                raise LocalProtocolError(
                    "a mechanism under audit must return as many numbers, of one type, in every run."
                )
            self._shape = (outputs.shape[1], outputs.dtype.kind)
            done += size
            self._meter.add(f"{self.attack.name}: {phase}, {side.value} the record", size)
            yield outputs

    def gather(self, phase: str, side: Neighbour, runs: int) -> NDArray[Any]:
        """Keep a phase's outputs, as many as fit in memory."""
        kept: list[NDArray[Any]] = []
        for batch in self.batches(phase, side, runs):
            kept.append(batch)
            if sum(part.size for part in kept) >= _MOST_TRAINING_NUMBERS:
                break
        return np.concatenate(kept)


def _train(source: _Source, claim: Claim, runs: int, counted: int, confidence: float) -> Event:
    """Fit the statistics on one quarter of the runs, choose the event on another."""
    attack = source.attack
    statistics = fit_statistics(
        source.gather("fit", Neighbour.WITHOUT, runs),
        source.gather("fit", Neighbour.WITH, runs),
        labels=attack.labels,
        difference=attack.difference,
    )
    return choose_event(
        statistics,
        source.gather("choose", Neighbour.WITHOUT, runs),
        source.gather("choose", Neighbour.WITH, runs),
        claim=claim,
        counted_runs=counted,
        confidence=confidence,
    )
