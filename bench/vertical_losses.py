"""How well a vertical session clusters: against exact Lloyd without noise, and the paper's table 4 with epsilon 1."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from sklearn.cluster import KMeans

from bench.sets import load_unit, round_to_grid
from bench.study_vertical import compare_with_lloyd, find_loss
from bench.vertical_sessions import Points, draw_clusters, run_session
from cloister.crypto import Stream, derive_key
from cloister.kmeans import cluster_sums
from cloister.privacy.mechanisms import Noise
from cloister.privacy.samplers import OnProgress
from cloister.privacy.simulation_sampler import SimulationSampler
from cloister.privacy.units import Budget
from cloister.protocols.vertical.rehearsal import rehearse_vertical
from cloister.protocols.vertical.settings import Settings
from papers.lab.products import Estimate

EXACT_MARK = 1.005
RUNS = 20
SYNTH_WIDTHS = (1, 1, 1, 2, 2, 2)
# Table 4 of the paper, in units where every column is in [0, 1]: a quarter of ours.
S1_PUBLISHED, S1_PLAINTEXT = 0.00566, 0.00286
SYNTH_PUBLISHED, SYNTH_PLAINTEXT = 0.0112, 0.0107


def split_columns(points: Points, clusters: int, *, bob: int, epsilon: float | None = None) -> Settings:
    """Settings of a session where Bob has the last columns."""
    n, d = points.shape
    return Settings(
        clusters=clusters,
        columns_alice=tuple(range(d - bob)),
        columns_encrypted=(tuple(range(d - bob, d)),),
        records=n,
        budget=None if epsilon is None else Budget(epsilon=epsilon, delta=1 / n),
    )


def print_exact_losses() -> list[str]:
    """Without noise; return the marks that were missed."""
    birch2 = round_to_grid(load_unit("birch2"))
    sets = (
        ("s1", round_to_grid(load_unit("s1")), 15, 1, None),
        ("adult", round_to_grid(load_unit("adult")), 3, 3, None),
        ("birch2", birch2, 100, 1, None),
        ("blobs", draw_clusters(60_000, 16, 5, spread=0.2), 5, 8, None),
        ("overlapping blobs", draw_clusters(60_000, 16, 8, spread=0.45), 8, 8, None),
        ("no structure", round_to_grid(np.random.default_rng(3).uniform(-1, 1, (30_000, 10))), 6, 5, None),
    )
    print(
        "Without noise, ten rounds from the joint histogram's start: loss over that of exact Lloyd from the same start,"
    )
    print(f"the worst of 3 starts; mark {EXACT_MARK:g}. Bob's columns decide through his cells; sums are exact.")
    print(f"{'data':20}{'n':>7}{'d':>4}{'Bob':>5}{'k':>5}{'cells':>7}{'ratio':>9}")
    missed = []
    for name, points, k, bob, cells in sets:
        settings = replace(split_columns(points, k, bob=bob), cells=cells)
        ratio = max(compare_with_lloyd(points, settings, seed) for seed in range(3))
        verdict = "ok" if ratio <= EXACT_MARK else "MISS"
        n, d = points.shape
        print(f"{name:20}{n:7}{d:4}{bob:5}{k:5}{settings.joint_cells:7}{ratio:9.5f} {verdict}", flush=True)
        if ratio > EXACT_MARK:
            missed.append(f"{name} without noise: {ratio:.5f} times exact Lloyd, mark {EXACT_MARK}")
    return missed


def draw_like_s1(number: int, *, width: float) -> Points:
    """10,000 records in 8 clusters in the plane; with ``width`` 1 as wide against their distances as S1's 15.

    The paper's own set is not published. S1's clusters have a standard deviation of 0.032 of the range.
    """
    rng = np.random.default_rng(number)
    spread = 0.032 * np.sqrt(15 / 8) * width
    centres: list[Points] = []
    while len(centres) < 8:
        centre = rng.uniform(0.1, 0.9, 2)
        if all(np.linalg.norm(centre - other) > 3.5 * spread / width for other in centres):
            centres.append(centre)
    points = np.array(centres)[rng.integers(0, 8, 10_000)] + rng.normal(0, spread, (10_000, 2))
    low, high = points.min(axis=0), points.max(axis=0)
    return round_to_grid(2 * (points - low) / (high - low) - 1)


def print_private_losses() -> list[str]:
    """Epsilon 1, delta 1/n; return the marks that were missed."""
    print(f"Epsilon 1, delta 1/n, k-means loss in [0, 1]^d, {RUNS} runs a set (rehearsals: the session's algorithm and")
    print("noise without encryption). Lloyd: scikit-learn, one random start, 20 runs; floor: its best of 10.")
    print(f"{'data':20}{'loss':>9} {'±':>8}{'floor':>9}{'Lloyd':>9}{'paper':>9}{'its plaintext':>15}")
    rows = [("s1", round_to_grid(load_unit("s1")), 15, S1_PUBLISHED, S1_PLAINTEXT)]
    rows += [
        (f"Synth #{i}, width {width}", draw_like_s1(i, width=width), 8, SYNTH_PUBLISHED, SYNTH_PLAINTEXT)
        for i, width in enumerate(SYNTH_WIDTHS, start=1)
    ]
    missed = []
    for name, points, k, published, plaintext in rows:
        settings = split_columns(points, k, bob=1, epsilon=1.0)
        loss = Estimate.of([find_loss(points, settings, seed) / 4 for seed in range(RUNS)])
        floor = _scale(KMeans(k, n_init=10, random_state=0).fit(points).inertia_, points)
        lloyd = np.mean(
            [
                _scale(
                    KMeans(k, n_init=1, init="random", random_state=s, algorithm="lloyd").fit(points).inertia_, points
                )
                for s in range(20)
            ]
        )
        mark = min(published, plaintext)
        verdict = "ok" if loss.mean <= mark else "MISS"
        print(
            f"{name:20}{loss.mean:9.5f} {loss.half_width:8.5f}{floor:9.5f}{lloyd:9.5f}{published:9.5f}"
            f"{plaintext:15.5f} {verdict}",
            flush=True,
        )
        if loss.mean > mark:
            missed.append(f"{name} at epsilon 1: {loss.mean:.5f}, the paper has {mark}")
    missed += _confirm_session(rows[0][1])
    print(
        "Synth: in the style of the paper's Synth-10000-8-2, which is not published; where Lloyd's column is below the"
    )
    print("paper's plaintext the set is easier than the paper's, and it is loss over floor that carries over.")
    print("HAR, Taxi, Bank and Loan of the same table are not at hand, and nothing is said about them.")
    return missed


def _scale(inertia: float, points: Points) -> float:
    return inertia / len(points) / 4


class _Recorder:
    """Draws noise, and keeps it."""

    is_simulation = True

    def __init__(self, sampler: SimulationSampler) -> None:
        self._sampler = sampler
        self.drawn: deque[tuple[Noise, np.ndarray]] = deque()

    def draw(self, mechanism: Noise, entries: int, on_progress: OnProgress | None = None) -> np.ndarray:
        noise = self._sampler.draw(mechanism, entries, on_progress)
        self.drawn.append((mechanism, noise))
        return noise


class _Player:
    """Hands out again what was drawn for sums; skips boxes of codebooks and floods, which a rehearsal has not."""

    is_simulation = True

    def __init__(self, drawn: Sequence[tuple[Noise, np.ndarray]]) -> None:
        self._drawn = deque(drawn)

    def draw(self, mechanism: Noise, entries: int, on_progress: OnProgress | None = None) -> np.ndarray:
        while True:
            found, noise = self._drawn.popleft()
            if found == mechanism and len(noise) == entries:
                return noise


def _confirm_session(points: Points) -> list[str]:
    """A real session on s1 must find what its rehearsal finds, bit for bit."""
    recorders = [_Recorder(SimulationSampler(Stream.from_seed(5, "noise", party))) for party in range(2)]
    budget = Budget(epsilon=1.0, delta=1 / len(points))
    found = run_session(points, ((0,), (1,)), clusters=15, budget=budget, samplers=recorders)
    party = found.parties[0]
    seed, session = party._seed_holder.seed, party._session  # what the parties have in common and nobody else
    assert seed is not None
    rehearsal = rehearse_vertical(
        found.agreement.settings,
        points,
        samplers=[_Player(recorder.drawn) for recorder in recorders],
        stream=Stream(derive_key(seed, "vertical stream", session)),
        codebooks=party.codebooks,
    )
    equal = np.array_equal(found.centres, rehearsal.finding.centres)
    loss = cluster_sums(points, found.centres).loss / len(points) / 4
    print(
        f"One real session on s1: loss {loss:.5f}; {'equal to its rehearsal, bit for bit' if equal else 'NOT EQUAL'}."
    )
    return [] if equal else ["a session on s1 must find what its rehearsal finds"]
