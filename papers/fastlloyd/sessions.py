"""What a round costs, in a real session: keys, masks, messages and noise, two parties and the coordinator together.

CPU of the whole process between two requests of the coordinator is one round: the parties unmask the last sum, move the
centres, assign and mask; the coordinator adds up and adds noise. Drawing the noise is timed apart, for it is exact and
takes longer than all the rest of a small round. Each round is one request to each party and one reply, so a network
adds two delays to it. On three machines the parties would work at the same time.
"""

from __future__ import annotations

import itertools
import time
from dataclasses import dataclass
from statistics import fmean

from cloister.crypto import Identity, SeededEntropy
from cloister.kmeans import Assignment
from cloister.privacy.mechanisms import Noise
from cloister.privacy.release import NoiseDuty
from cloister.privacy.samplers import ExactSampler, OnProgress
from cloister.protocols.guided_sums.coordinator import NoBooks
from cloister.protocols.multiparty_lloyd.agreement import Agreement
from cloister.protocols.multiparty_lloyd.coordinator import Outcome, coordinate
from cloister.protocols.multiparty_lloyd.messages import CODEC
from cloister.protocols.multiparty_lloyd.noise import NoisePlan
from cloister.protocols.multiparty_lloyd.party import LloydParty, LloydState
from cloister.records import ArrayRecords, FloatArray, IntArray
from cloister.roles import Coordinator, Seat
from cloister.runtime import NETWORKS, LocalRun, run_local
from papers.fastlloyd.datasets import DataSet, load_points
from papers.fastlloyd.trials import Method, Trial, TrialLab, cap_records, make_plan
from papers.lab.products import Estimate

_SESSION = bytes(16)
_PARTIES = 2


@dataclass(frozen=True, kw_only=True)
class RoundCost:
    """One round."""

    cpu_ms: float
    """Everything but the drawing of noise."""
    noise_ms: float


@dataclass(frozen=True, kw_only=True)
class Traffic:
    """Bytes of one party in one round, counted where frames pass."""

    up: float
    down: float
    ring_bits: int


@dataclass(frozen=True, kw_only=True)
class RoundTime:
    """Means over sessions, and bytes."""

    cpu_ms: Estimate
    noise_ms: Estimate
    traffic: Traffic


def measure_round(data: DataSet, method: Method, epsilon: float, sessions: int, lab: TrialLab, label: str) -> RoundTime:
    """Run this many sessions after a warm-up, and report each to the lab."""
    trials = [Trial(data=data, method=method, run=run, epsilon=epsilon) for run in range(sessions)]
    cpu_ms, noise_ms = [], []
    time_rounds(trials[0], iterations=2)  # compiled kernels are loaded, data is in memory
    for trial in trials:
        costs = time_rounds(trial)
        cpu_ms.append(fmean(cost.cpu_ms for cost in costs))
        noise_ms.append(fmean(cost.noise_ms for cost in costs))
        lab.tick(label)
    return RoundTime(cpu_ms=Estimate.of(cpu_ms), noise_ms=Estimate.of(noise_ms), traffic=count_traffic(trials[0]))


def compute_round_trip_ms(network: str) -> float:
    """What a network adds to a round: a request and a reply; the rows used here have no bandwidth and no jitter."""
    return 2.0 * NETWORKS[network].delay_ms


class _TimedSampler:
    """The exact sampler, with a watch."""

    is_simulation = False

    def __init__(self) -> None:
        self.spent_s = 0.0
        self._sampler = ExactSampler()

    def draw(self, mechanism: Noise, entries: int, on_progress: OnProgress | None = None) -> IntArray:
        started_s = time.process_time()
        drawn = self._sampler.draw(mechanism, entries, on_progress)
        self.spent_s += time.process_time() - started_s
        return drawn


@dataclass(frozen=True, kw_only=True)
class _Stamp:
    label: str
    process_s: float
    noise_s: float


def time_rounds(trial: Trial, *, iterations: int | None = None) -> list[RoundCost]:
    """Run one session; return what each round after the first cost (the first has the start in it)."""
    points = load_points(trial.data)
    plan, assignment = make_plan(trial, *points.shape, iterations=iterations)
    assert isinstance(plan, NoisePlan)
    sampler = _TimedSampler()
    stamps: list[_Stamp] = []
    _run(trial, plan, assignment, points, sampler=sampler, stamps=stamps)
    first = next(number for number, stamp in enumerate(stamps) if stamp.label.startswith("round "))
    rounds = stamps[first : first + len(plan.targets) + 1]
    costs = []
    for before, after in itertools.pairwise(rounds):
        noise_s = after.noise_s - before.noise_s
        whole_s = after.process_s - before.process_s
        costs.append(RoundCost(cpu_ms=(whole_s - noise_s) * 1e3, noise_ms=noise_s * 1e3))
    return costs[1:] or costs


def count_traffic(trial: Trial) -> Traffic:
    """Bytes of a round: the slope between a short and a long session, on a few records, since messages do not grow."""
    points = load_points(trial.data)
    few = points[: 2 * trial.data.clusters + 2]
    counted = []
    for iterations in (3, 7):
        plan, _ = make_plan(trial, *points.shape, iterations=iterations)
        assert isinstance(plan, NoisePlan)
        run, agreement = _run(trial, plan, None, few, sampler=_TimedSampler(), stamps=[], records=len(points))
        counted.append(run.traffic[1])
    short, long = counted
    return Traffic(
        up=(long.bytes_sent - short.bytes_sent) / 4,
        down=(long.bytes_received - short.bytes_received) / 4,
        ring_bits=agreement.ring.bits,
    )


def _run(
    trial: Trial,
    plan: NoisePlan,
    assignment: Assignment | None,
    points: FloatArray,
    *,
    sampler: _TimedSampler,
    stamps: list[_Stamp],
    records: int | None = None,
) -> tuple[LocalRun[Outcome], Agreement]:
    """One session with two parties, every other record each."""
    identities = [Identity(SeededEntropy(trial.run, f"identity {number}")) for number in (1, 2)]
    sound = trial.method == "sound"
    agreement = Agreement(
        variant="fastlloyd"
        if sound
        else "average-mask-noise"
        if plan.rule.width == points.shape[1]
        else "mask-noise-average",
        parties=_PARTIES,
        clusters=trial.data.clusters,
        dimensions=points.shape[1],
        iterations=len(plan.targets),
        max_records=cap_records(records or len(points), _PARTIES),
        noise=plan,
        directory=tuple(identity.public_bytes for identity in identities),
    )
    duty = NoiseDuty(charger=NoBooks(), sampler=sampler)
    parties = [
        LloydParty(
            seat=Seat(
                number=number,
                identity=identities[number - 1],
                entropy=SeededEntropy(trial.run, f"party {number}"),
                session=_SESSION,
            ),
            agreement=agreement,
            state=LloydState(
                agreement=agreement,
                records=ArrayRecords(points[number - 1 :: _PARTIES]),
                assignment=assignment,
                duty=duty,
            ),
        )
        for number in (1, 2)
    ]
    inner = coordinate(agreement, entropy=SeededEntropy(trial.run, "coordinator"), session=_SESSION, duty=duty)
    run = run_local(_stamp(inner, sampler, stamps), parties, codec=CODEC, session=_SESSION, threads=1)
    return run, agreement


def _stamp(inner: Coordinator[Outcome], sampler: _TimedSampler, stamps: list[_Stamp]) -> Coordinator[Outcome]:
    """The coordinator itself, with the time of each of its requests written down."""
    ask = next(inner)
    while True:
        stamps.append(_Stamp(label=ask.label, process_s=time.process_time(), noise_s=sampler.spent_s))
        replies = yield ask
        try:
            ask = inner.send(replies)
        except StopIteration as finished:
            outcome: Outcome = finished.value
            return outcome
