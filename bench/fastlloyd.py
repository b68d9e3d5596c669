"""The marks of FastLloyd: CPU and bytes of a round, TimeSynth against the printed times, loss against version 2.

Rounds are those of real sessions (keys, masks, messages, both parties and the coordinator in one process, one thread);
drawing exact noise is timed apart. Run: ``python -m bench.fastlloyd``, some minutes, with ``--only round`` (or bytes,
timesynth, loss) for one part. Exit code 1 if a mark was missed. The papers' figures: ``python -m papers fastlloyd``.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Sequence

import numpy as np
from sklearn.cluster._k_means_lloyd import lloyd_iter_chunked_dense
from threadpoolctl import threadpool_limits

from bench.harness import make_parser, open_pool, run_sections
from bench.sets import KS, find_peers, find_set
from papers.fastlloyd.datasets import DataSet, DrawnSet, load_points
from papers.fastlloyd.printed import TABLE_3
from papers.fastlloyd.sessions import compute_round_trip_ms, count_traffic, time_rounds
from papers.fastlloyd.trials import Trial, score_trial
from papers.lab.products import Estimate

ROUND_MARKS_MS = {"s1": 1.3, "adult": 2.5, "birch2": 20.0}
AUTHORS_MS = {"s1": 12.5, "adult": 24.8, "birch2": 246.0}  # shared/peers/README.md, FastLloyd v2, everything
ITERATIONS, REPEATS = 40, 5
TIMESYNTH_MARK = 10.0
EPSILONS = (0.1, 0.5, 1.0, 2.0)
RUNS = 20
PEER = "fastlloyd_new_indep"


def time_sklearn_ms(data: DataSet) -> float:
    """One centralised Lloyd iteration of scikit-learn, one thread: the body of KMeans's loop."""
    points = np.ascontiguousarray(load_points(data))
    k = data.clusters
    centres = points[np.random.default_rng(1).choice(len(points), k, replace=False)].copy()
    weights, updated, shift = np.ones(len(points)), np.empty_like(centres), np.empty(k)
    mass, labels = np.empty(k), np.full(len(points), -1, dtype=np.int32)
    times = []
    with threadpool_limits(1, user_api="blas"):
        for _ in range(2 * ITERATIONS):
            started_s = time.process_time()
            lloyd_iter_chunked_dense(points, weights, centres, updated, mass, labels, shift, 1)
            times.append((time.process_time() - started_s) * 1e3)
    return statistics.median(times)


def print_rounds() -> list[str]:
    """CPU of a round; return the marks that were missed."""
    print(
        f"CPU ms of one round, both parties and coordinator: the median of {REPEATS} sessions of {ITERATIONS} rounds."
    )
    print("noise: drawing exact noise, apart; sklearn: one centralised Lloyd iteration, in the same run.")
    print(f"{'data':8}{'CPU ms':>9}{'noise':>8}{'mark':>7}{'':>6}{'authors':>9}{'faster':>8}{'sklearn':>9}{'ratio':>7}")
    missed = []
    for name, mark in ROUND_MARKS_MS.items():
        data = find_set(name)
        trials = [Trial(data=data, method="sound", run=run, epsilon=1.0) for run in range(REPEATS)]
        time_rounds(trials[0], iterations=2)
        costs = [cost for trial in trials for cost in time_rounds(trial, iterations=ITERATIONS)]
        cpu_ms = statistics.median(cost.cpu_ms for cost in costs)
        noise_ms = statistics.median(cost.noise_ms for cost in costs)
        sklearn_ms = time_sklearn_ms(data)
        verdict = "ok" if cpu_ms <= mark else "MISS"
        print(
            f"{name:8}{cpu_ms:9.3f}{noise_ms:8.3f}{mark:7.1f}{verdict:>6}{AUTHORS_MS[name]:9.1f}"
            f"{AUTHORS_MS[name] / cpu_ms:7.0f}x{sklearn_ms:9.3f}{cpu_ms / sklearn_ms:7.2f}"
        )
        if cpu_ms > mark:
            missed.append(f"{name}: {cpu_ms:.3f} ms a round, mark {mark}")
    return missed


def print_bytes() -> list[str]:
    """Bytes per party and round, with the cap on records declared; return the marks that were missed."""
    print("Bytes of one party in one round, counted at the codec, envelope included; allowed: 4 k (d + 1) + 64.")
    print(f"{'data':8}{'ring':>6}{'up':>8}{'down':>8}{'allowed':>9}")
    missed = []
    for name, k in KS.items():
        data = find_set(name)
        traffic = count_traffic(Trial(data=data, method="sound", run=0, epsilon=1.0))
        allowed = 4 * k * (load_points(data).shape[1] + 1) + 64
        held = max(traffic.up, traffic.down) <= allowed
        verdict = "ok" if held else "MISS"
        print(f"{name:8}{traffic.ring_bits:6}{traffic.up:8.0f}{traffic.down:8.0f}{allowed:9} {verdict}")
        if not held:
            missed.append(f"{name}: {traffic.up:.0f} and {traffic.down:.0f} bytes, allowed {allowed}")
    return missed


def print_timesynth() -> list[str]:
    """TimeSynth with 100,000 records, everything; return the marks that were missed."""
    lan_ms = compute_round_trip_ms("fastlloyd-LAN")
    print(
        f"TimeSynth, 100,000 records: CPU with noise sampling, and {lan_ms:g} ms of LAN; mark: {TIMESYNTH_MARK:g} times"
    )
    print("faster than printed (FastLloyd table 3, algorithm 1 on an M2 Max).")
    print(f"{'k':>3}{'d':>3}{'CPU ms':>9}{'noise':>8}{'total':>8}{'printed':>9}{'faster':>8}")
    missed = []
    for row in TABLE_3:
        if row.data != "TimeSynth" or row.records != 100_000:
            continue
        data = DrawnSet(family="TimeSynth", clusters=row.clusters, dimensions=row.dimensions, records=row.records)
        trials = [Trial(data=data, method="sound", run=run, epsilon=1.0) for run in range(REPEATS)]
        time_rounds(trials[0], iterations=2)
        costs = [cost for trial in trials for cost in time_rounds(trial)]
        cpu_ms = statistics.fmean(cost.cpu_ms for cost in costs)
        noise_ms = statistics.fmean(cost.noise_ms for cost in costs)
        total_ms = cpu_ms + noise_ms + lan_ms
        faster = row.time_ms / total_ms
        verdict = "ok" if faster >= TIMESYNTH_MARK else "MISS"
        print(
            f"{row.clusters:3}{row.dimensions:3}{cpu_ms:9.3f}{noise_ms:8.3f}{total_ms:8.2f}{row.time_ms:9.2f}"
            f"{faster:7.1f}x {verdict}"
        )
        if faster < TIMESYNTH_MARK:
            missed.append(f"TimeSynth k={row.clusters} d={row.dimensions}: {faster:.1f} times, mark {TIMESYNTH_MARK:g}")
    return missed


def print_losses() -> list[str]:
    """Loss of the sound default against FastLloyd's second version; return the marks that were missed."""
    print(f"NICV of the sound default, {RUNS} runs, n private, delta = 1/(n ln n); v2: {PEER} of shared/peers.")
    print(f"{'data':8}{'eps':>5}{'loss':>10} {'±':>9}{'v2':>10}{'ratio':>7}")
    peers = find_peers()
    cells = [(name, epsilon) for name in KS for epsilon in EPSILONS]
    trials = [
        Trial(data=find_set(name), method="sound", run=run, epsilon=epsilon)
        for name, epsilon in cells
        for run in range(RUNS)
    ]
    with open_pool() as pool:
        scores = dict(zip(trials, pool.map(score_trial, trials, together=RUNS), strict=True))
    missed = []
    for name, epsilon in cells:
        loss = Estimate.of(
            [score.loss for trial, score in scores.items() if (trial.data.name, trial.epsilon) == (name, epsilon)]
        )
        peer = peers.get((name, PEER, epsilon))
        if peer is None:
            print(f"{name:8}{epsilon:5g}{loss.mean:10.5f} {loss.half_width:9.5f}{'-':>10}")
            missed.append(f"{name} at epsilon {epsilon:g}: there is nothing to compare with")
            continue
        mark = peer.loss
        verdict = "ok" if loss.mean <= mark else "MISS"
        print(
            f"{name:8}{epsilon:5g}{loss.mean:10.5f} {loss.half_width:9.5f}{mark:10.5f}{loss.mean / mark:7.3f} {verdict}"
        )
        if loss.mean > mark:
            missed.append(f"{name} at epsilon {epsilon:g}: {loss.mean:.5f}, v2 has {mark:.5f}")
    return missed


SECTIONS = {"round": print_rounds, "bytes": print_bytes, "timesynth": print_timesynth, "loss": print_losses}


def main(arguments: Sequence[str] = ()) -> int:
    """Print the tables; 0 if the marks hold."""
    options = make_parser("fastlloyd", "The marks of FastLloyd.", SECTIONS).parse_args(arguments)
    return run_sections(SECTIONS, options.only)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
