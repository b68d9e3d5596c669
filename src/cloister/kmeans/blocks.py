"""The compiled half of the kernel: one pass over a range of rows, in blocks that stay in the nearest cache.

For each block of ``BLOCK`` records:

1. *transpose* it, so that one feature of all its records lies together and the compiler vectorises over records;
2. *measure* it: ``|x - c|^2`` for four centres and four features at a time; keep the least and its centre. Ties go to
   the lowest index;
3. *reduce* it, record by record: radius, loss, sums and counts.

Distances are sums of squared differences. The usual ``|x|^2 - 2 x.c + |c|^2`` would save a subtraction per product, for
which processors have units to spare, and would lose the small distances to cancellation.

A block is always processed whole, with stale rows after the last record, and the only floating-point freedom given to
the compiler is the fused multiply-add. So a distance is the same expression in the same vector code wherever its record
lies: label and distance depend on nothing but the record and the centres.

Centres come padded to a multiple of four with centres at infinity, which never win; features to a multiple of two
with zeros.

The kernel computes on one block while the next is on its way from memory: it asks for cache lines (`prefetch`) that it
will read later. Without this the processor's own prefetching stops at each block, and a pass over data larger than the
cache takes a quarter longer.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.compiled import Compile, make_instruction
from cloister.late import load_late
from cloister.records import FloatArray, IntArray

ir = load_late("llvmlite.ir")
types = load_late("numba.types")

LINE_BYTES = 64
# Block, transposed block and a little more fit the nearest cache (32 KiB) up to 24 features. A multiple of any vector.
BLOCK = 64
# A little more than a power of two: otherwise the rows of the transposed block compete for one cache set.
STRIDE = BLOCK + 8
CENTRE_TILE = 4
# Up to so many numbers (clusters times columns), a pass for each is faster than a scattered addition for each record.
FEW_SUMS = 48
FEATURE_PAD = 2


def _type_prefetch(typing_context: Any, address: Any) -> tuple[Any, Any]:
    """Declare ``prefetch(address)``: a hint that never faults, whatever the address."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        byte_pointer, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        function = builder.module.declare_intrinsic(
            "llvm.prefetch",
            [byte_pointer],
            ir.FunctionType(ir.VoidType(), [byte_pointer, number, number, number]),
        )
        pointer = builder.inttoptr(arguments[0], byte_pointer)
        builder.call(function, [pointer, number(0), number(3), number(1)])  # to read, keep near, data
        return context.get_dummy_value()

    return types.void(types.uintp), generate


prefetch = make_instruction(_type_prefetch)

_compile = Compile(fastmath={"contract"})
# Sums may be reordered inside a block, which every block then does alike; nothing that decides a label is compiled so.
_compile_sums = Compile(fastmath={"contract", "reassoc", "nsz"})


@_compile
def _transpose(points: NDArray[Any], first: int, rows: int, block: NDArray[Any]) -> None:
    """Write the records first..first+rows-1 as columns of the block."""
    dimensions = points.shape[1]
    fours = rows // 4 * 4
    for r in range(0, fours, 4):
        i0 = np.uintp(first + r)
        i1 = np.uintp(first + r + 1)
        i2 = np.uintp(first + r + 2)
        i3 = np.uintp(first + r + 3)
        for f in range(dimensions):
            quad = block[f * STRIDE + r : f * STRIDE + r + 4]
            quad[0] = points[i0, f]
            quad[1] = points[i1, f]
            quad[2] = points[i2, f]
            quad[3] = points[i3, f]
    for r in range(fours, rows):
        i = np.uintp(first + r)
        for f in range(dimensions):
            block[np.uintp(f * STRIDE + r)] = points[i, f]


@_compile
def _start(distances: NDArray[Any]) -> None:
    """Set the squared distances to four centres to zero."""
    for r in range(CENTRE_TILE * STRIDE):
        distances[r] = 0.0


@_compile
def _start_with_two_features(block: NDArray[Any], centres: NDArray[Any], j: int, distances: NDArray[Any]) -> None:
    """Set the squared distances to centres j..j+3 to the terms of the first two features."""
    a0, b0 = centres[j, 0], centres[j, 1]
    a1, b1 = centres[j + 1, 0], centres[j + 1, 1]
    a2, b2 = centres[j + 2, 0], centres[j + 2, 1]
    a3, b3 = centres[j + 3, 0], centres[j + 3, 1]
    for r in range(BLOCK):
        a = block[r]
        b = block[STRIDE + r]
        distances[r] = (a - a0) ** 2 + (b - b0) ** 2
        distances[STRIDE + r] = (a - a1) ** 2 + (b - b1) ** 2
        distances[2 * STRIDE + r] = (a - a2) ** 2 + (b - b2) ** 2
        distances[3 * STRIDE + r] = (a - a3) ** 2 + (b - b3) ** 2


@_compile
def _add_four_features(panel: NDArray[Any], centres: NDArray[Any], j: int, f: int, distances: NDArray[Any]) -> None:
    """Add the terms of features f..f+3 to the squared distances to centres j..j+3."""
    a0, b0, c0, d0 = centres[j, f], centres[j, f + 1], centres[j, f + 2], centres[j, f + 3]
    a1, b1, c1, d1 = centres[j + 1, f], centres[j + 1, f + 1], centres[j + 1, f + 2], centres[j + 1, f + 3]
    a2, b2, c2, d2 = centres[j + 2, f], centres[j + 2, f + 1], centres[j + 2, f + 2], centres[j + 2, f + 3]
    a3, b3, c3, d3 = centres[j + 3, f], centres[j + 3, f + 1], centres[j + 3, f + 2], centres[j + 3, f + 3]
    for r in range(BLOCK):
        a = panel[r]
        b = panel[STRIDE + r]
        c = panel[2 * STRIDE + r]
        d = panel[3 * STRIDE + r]
        distances[r] += (a - a0) ** 2 + (b - b0) ** 2 + (c - c0) ** 2 + (d - d0) ** 2
        distances[STRIDE + r] += (a - a1) ** 2 + (b - b1) ** 2 + (c - c1) ** 2 + (d - d1) ** 2
        distances[2 * STRIDE + r] += (a - a2) ** 2 + (b - b2) ** 2 + (c - c2) ** 2 + (d - d2) ** 2
        distances[3 * STRIDE + r] += (a - a3) ** 2 + (b - b3) ** 2 + (c - c3) ** 2 + (d - d3) ** 2


@_compile
def _select(j: int, distances: NDArray[Any], least: NDArray[Any], nearest: NDArray[Any]) -> None:
    """Keep the least of the distances so far and those to centres j..j+3; ties stay as they are."""
    for r in range(BLOCK):
        low = least[r]
        label = nearest[r]
        q = distances[r]
        label = j if q < low else label
        low = q if q < low else low
        q = distances[STRIDE + r]
        label = j + 1 if q < low else label
        low = q if q < low else low
        q = distances[2 * STRIDE + r]
        label = j + 2 if q < low else label
        low = q if q < low else low
        q = distances[3 * STRIDE + r]
        label = j + 3 if q < low else label
        low = q if q < low else low
        least[r] = low
        nearest[r] = label


@_compile
def _measure(
    block: NDArray[Any],
    centres: NDArray[Any],
    distances: NDArray[Any],
    least: NDArray[Any],
    nearest: NDArray[Any],
    ahead: int,
    ahead_bytes: int,
) -> None:
    """Find each record's nearest centre and squared distance in a transposed block.

    Meanwhile fetch the bytes that come next: a share after each tile, since few can be under way at once.
    """
    tiles = centres.shape[0] // CENTRE_TILE
    share = -(-ahead_bytes // (tiles * LINE_BYTES)) * LINE_BYTES
    features = centres.shape[1]
    for r in range(BLOCK):
        least[r] = np.inf
        nearest[r] = 0
    for j in range(0, centres.shape[0], CENTRE_TILE):
        if features % 4 == FEATURE_PAD:
            _start_with_two_features(block, centres, j, distances)
        else:
            _start(distances)
        for f in range(features % 4, features, 4):
            _add_four_features(block[f * STRIDE :], centres, j, f, distances)
        _select(j, distances, least, nearest)
        offset = j // CENTRE_TILE * share
        for line in range(offset, min(offset + share, ahead_bytes), LINE_BYTES):
            prefetch(np.uintp(ahead + line))


@_compile
def _reduce(
    points: NDArray[Any],
    first: int,
    rows: int,
    least: NDArray[Any],
    nearest: NDArray[Any],
    squared_radii: FloatArray,
    sums: FloatArray,
    counts: IntArray,
    labels: NDArray[np.int32],
    squared_distances: FloatArray,
) -> tuple[float, int]:
    """Add a block's records to their clusters; return its loss and how many records lie too far out."""
    loss = 0.0
    excluded = 0
    keep_labels = labels.shape[0] > 0
    for r in range(rows):
        # Unsigned: a signed index costs a test whether it counts from the end.
        i = np.uintp(first + r)
        j = np.uintp(nearest[r])
        distance = np.float64(least[r])
        if keep_labels:
            labels[i] = j
            squared_distances[i] = distance
        if distance > squared_radii[j]:
            excluded += 1
        else:
            loss += distance
            counts[j] += 1
            record = points[i]
            total = sums[j]
            for f in range(points.shape[1]):
                total[f] += record[f]
    return loss, excluded


@_compile_sums
def _reduce_few(
    block: NDArray[Any],
    dimensions: int,
    least: NDArray[Any],
    nearest: NDArray[Any],
    sums: FloatArray,
    counts: IntArray,
) -> float:
    """Add a whole block to few clusters: one pass over the transposed block for each sum, as vectors, no scattering."""
    loss = 0.0
    for r in range(BLOCK):
        loss += np.float64(least[r])
    for j in range(sums.shape[0]):
        members = 0
        for r in range(BLOCK):
            members += nearest[r] == j
        counts[j] += members
        for f in range(dimensions):
            total = 0.0
            for r in range(BLOCK):
                total += np.float64(block[f * STRIDE + r]) if nearest[r] == j else 0.0
            sums[j, f] += total
    return loss


@_compile
def reduce_chunks(
    points: NDArray[Any],
    first_chunk: int,
    last_chunk: int,
    chunk_rows: int,
    centres: NDArray[Any],
    squared_radii: FloatArray,
    nearest: NDArray[Any],
    sums: FloatArray,
    counts: IntArray,
    losses: FloatArray,
    excluded: IntArray,
    labels: NDArray[np.int32],
    squared_distances: FloatArray,
) -> None:
    """Process the chunks first_chunk..last_chunk-1, each into its own row of the outputs.

    ``centres`` are padded, in the type of the points. ``nearest`` is scratch of ``BLOCK`` integers as wide as the
    points' numbers, so that one vector holds as many of either. ``labels`` and ``squared_distances`` are filled unless
    they are empty.
    """
    block = np.zeros(centres.shape[1] * STRIDE, points.dtype)
    distances = np.empty(CENTRE_TILE * STRIDE, points.dtype)
    least = np.empty(BLOCK, points.dtype)
    # Sums of this thread's own: rows of the outputs share cache lines with those that other threads write.
    own_sums = np.empty(sums.shape[1:])
    own_counts = np.empty(counts.shape[1], np.int64)
    row_bytes = points.shape[1] * points.itemsize
    few = own_sums.size <= FEW_SUMS and labels.shape[0] == 0 and bool(np.isinf(squared_radii).all())
    for chunk in range(first_chunk, last_chunk):
        own_sums[:] = 0.0
        own_counts[:] = 0
        own_loss = 0.0
        own_excluded = 0
        end = min((chunk + 1) * chunk_rows, points.shape[0])
        for first in range(chunk * chunk_rows, end, BLOCK):
            rows = min(BLOCK, end - first)
            _transpose(points, first, rows, block)
            ahead = points.ctypes.data + (first + BLOCK) * row_bytes
            _measure(block, centres, distances, least, nearest, ahead, BLOCK * row_bytes)
            if few and rows == BLOCK:
                own_loss += _reduce_few(block, points.shape[1], least, nearest, own_sums, own_counts)
                continue
            loss, outside = _reduce(
                points,
                first,
                rows,
                least,
                nearest,
                squared_radii,
                own_sums,
                own_counts,
                labels,
                squared_distances,
            )
            own_loss += loss
            own_excluded += outside
        sums[chunk] = own_sums
        counts[chunk] = own_counts
        losses[chunk] = own_loss
        excluded[chunk] = own_excluded
