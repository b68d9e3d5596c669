"""The lattice's arithmetic: transforms, encryption, and the sums of one round, on one thread and on two.

The marks, on one core: a transform at N = 4096 in about 7 us a prime (checked at 10); a round of vertical k-means at
100,000 records, 16 cells and 5 clusters (49 blocks of 2048, 96 rows of weights each) in at most 80 ms, all sums;
encrypting these records, two numbers each, in at most 350 ms. Results of the round are checked against plain integers.
Times are CPU times, the least of several runs, because other programs that share the machine only ever add to them; for
two threads they are wall times, which they are not robust to.

Run: ``python -m bench.lattice``
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from cloister.crypto import Stream
from cloister.lattice.encryption import encrypt_public, encrypt_seeded
from cloister.lattice.keys import SecretKeys, make_public_keys
from cloister.lattice.packing import pack_residues, unpack_residues
from cloister.lattice.parameters import Parameters
from cloister.lattice.ring import Ring, find_primes
from cloister.lattice.sampling import expand_masks
from cloister.lattice.weighted_sums import Products, WeightedSums

REPEATS = 12
TRANSFORM_MARK_US = 10.0
ROUND_MARK_S = 0.080
ENCRYPT_MARK_S = 0.350
BLOCKS = 49
CELLS = 16
ACTIVE = 3  # clusters that can take records of a cell
SEED = bytes(32)


@dataclass(frozen=True, kw_only=True)
class Times:
    """One thread's CPU time and the wall time of two threads that each do the same, in seconds."""

    one: float
    two: float


def measure(work: Callable[[], object]) -> Times:
    """Take the least of several runs."""
    work()
    ones, twos = [], []
    with ThreadPoolExecutor(2) as pool:
        for _ in range(REPEATS):
            start = time.process_time()
            work()
            ones.append(time.process_time() - start)
            start = time.perf_counter()
            for future in [pool.submit(work) for _ in range(2)]:
                future.result()
            twos.append((time.perf_counter() - start) / 2)
    return Times(one=min(ones), two=min(twos))


def show(name: str, times: Times, scale: float, unit: str, mark: float | None = None) -> bool:
    """Print one line; return whether the mark was missed."""
    missed = mark is not None and times.one > mark
    verdict = "" if mark is None else f"   mark {mark * scale:g} {unit}: {'MISSED' if missed else 'met'}"
    print(f"{name:<58} {times.one * scale:9.2f} {times.two * scale:9.2f} {unit}{verdict}")
    return missed


def bench_transforms() -> bool:
    """Time forward and inverse transforms of one polynomial modulo one prime, in batches."""
    missed = False
    for degree in (2048, 4096, 8192):
        ring = Ring(degree, find_primes(degree, 2))
        x = ring.reduce(np.random.default_rng(1).integers(-(2**40), 2**40, (50, degree)))
        mark = TRANSFORM_MARK_US * 1e-6 if degree == 4096 else None
        for name, function in (("forward", ring.forward), ("inverse", ring.inverse)):
            times = measure(lambda function=function, x=x: function(x))  # type: ignore[misc]
            each = Times(one=times.one / 100, two=times.two / 100)
            missed |= show(f"{name} transform, N = {degree}, one prime", each, 1e6, "us", mark)
    return missed


def bench_round() -> bool:
    """Time a block's encryption and a block's part of a round, and say what all blocks take."""
    parameters = Parameters.make(2048, 2, 2**24)
    ring, degree = parameters.ring, parameters.degree
    stream, rng = Stream.from_seed(7, "bench"), np.random.default_rng(2)
    keys = SecretKeys.generate(parameters, 2, stream)
    public = make_public_keys(keys, seed=SEED, stream=stream)
    messages = rng.integers(-5, 6, (CELLS, 2, degree))
    bodies = encrypt_seeded(keys, messages, seed=SEED, block=0, stream=stream)
    masks = expand_masks(parameters, SEED, 0, CELLS)
    rows = CELLS * ACTIVE
    counts = (rng.random((rows, degree)) < 1 / ACTIVE).astype(np.int32)
    offsets = counts * rng.integers(-256, 257, (rows, degree), dtype=np.int32)
    mask_of, into = np.tile(np.arange(CELLS), ACTIVE), np.repeat(np.arange(ACTIVE), CELLS)

    products_of = Products(
        weights=np.concatenate([counts, offsets]),
        row_of=np.arange(2 * rows),
        source_of=np.tile(mask_of, 2),
        first_target=np.arange(2 * rows + 1),
        into=np.concatenate([into, ACTIVE + into]),
        factors=np.ones(2 * rows, dtype=np.int64),
    )
    first = np.ascontiguousarray(bodies[:, 0])

    def run_round() -> np.ndarray:
        sums = WeightedSums(ring, 2 * ACTIVE)
        sums.add(masks, first, products_of)
        return sums.finish()[1]

    each = (counts[:, None].astype(object) * first[mask_of]).sum(axis=-1)
    expected = np.array([each[into == i].sum(axis=0) for i in range(ACTIVE)]) % np.array(ring.primes, dtype=object)
    if not np.array_equal(run_round()[:ACTIVE], expected):
        raise AssertionError("a round's sums must be those of plain integers")
    missed = False
    products = 2 * rows * 2
    times = measure(run_round)
    show("multiply-accumulate, N = 2048, one prime, body sums too", _scaled(times, 1 / products), 1e6, "us")
    missed |= show(
        "round: 100,000 records, 16 cells, 3 active clusters", _scaled(times, BLOCKS), 1e3, "ms", ROUND_MARK_S
    )
    times = measure(lambda: encrypt_seeded(keys, messages, seed=SEED, block=0, stream=stream.child("bench")))
    show("encrypt one cell of a block, two numbers, secret key", _scaled(times, 1 / CELLS), 1e6, "us")
    missed |= show("encrypt 100,000 records, 16 cells, two numbers", _scaled(times, BLOCKS), 1e3, "ms", ENCRYPT_MARK_S)
    times = measure(lambda: encrypt_public(public, messages, stream.child("bench")))
    show("encrypt one cell of a block, two numbers, public key", _scaled(times, 1 / CELLS), 1e6, "us")
    times = measure(lambda: expand_masks(parameters, SEED, 0, CELLS))
    show("expand one mask, N = 2048, two primes", _scaled(times, 1 / CELLS), 1e6, "us")
    raw = pack_residues(bodies, parameters.primes)
    show(
        "pack a megabyte", _scaled(measure(lambda: pack_residues(bodies, parameters.primes)), 1e6 / len(raw)), 1e3, "ms"
    )
    times = measure(lambda: unpack_residues(raw, parameters, bodies.shape))
    show("unpack a megabyte", _scaled(times, 1e6 / len(raw)), 1e3, "ms")
    return missed


def _scaled(times: Times, factor: float) -> Times:
    """Return both times multiplied."""
    return Times(one=times.one * factor, two=times.two * factor)


def main() -> int:
    """Print all times; 1 if a mark was missed."""
    print(f"{'':<58} {'one CPU':>9} {'two each':>9}")
    missed = bench_transforms()
    missed |= bench_round()
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
