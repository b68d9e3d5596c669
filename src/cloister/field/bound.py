"""Which field a job needs: a bound from public numbers, checked before anything is shared (SecFC, appendix A).

Coordinates are integers with |x| <= 2^(b-1). For a record x_i and a cluster S of c records,

    sum_{S} x - c x_i = sum_{i' in S, i' != i} (x_i' - x_i),

in each coordinate at most m - 1 differences (i is in S, or S leaves it out), each at most 2^b. So

    0 <= |sum_S x - c x_i|^2 <= D = d (m - 1)^2 4^b,

and D is reached: x_i at one corner of the cube, all others at the opposite one and in S. A sum of squares has no sign,
so it is read in 0..q-1 and q > D is enough; since D < d m^2 4^b, log2 q > log2 d + 2 log2 m + 2 b is too, which is the
paper's condition q >= 2 D with the factor 2, its room for a sign, saved. Sums that are revealed have a sign:
|sum_S x| <= m 2^(b-1) must be at most (q - 1) / 2. Both are checked here in exact integers. For m > 1, D < 2^122 leaves
(m - 1) 2^b < 2^61, so that sums fit 64 bits with a sign in any field; for one record b <= 63 sees to it.
"""

from __future__ import annotations

from math import log2

from cloister.errors import ConfigError, PrecisionError
from cloister.field.distances import LARGEST_COUNT
from cloister.field.prime_field import FIELD61, FIELD122, Field

MOST_BITS = 63  # coordinates are 64-bit integers with a sign


def largest_distance(*, dimensions: int, records: int, bits: int) -> int:
    """Return D = d (m - 1)^2 4^b, the largest |sum_S x - |S| x_i|^2 of any data; reached, not only a bound."""
    _check_sizes(dimensions, records, bits)
    return dimensions * (records - 1) ** 2 << 2 * bits


def largest_sum(*, records: int, bits: int) -> int:
    """Return m 2^(b-1), the largest magnitude of one coordinate of a sum of records."""
    _check_sizes(1, records, bits)
    return records << bits - 1


def choose_field(
    *, dimensions: int, records: int, bits: int, allowed: tuple[Field, ...] = (FIELD61, FIELD122)
) -> Field:
    """Return the first allowed field in which no distance and no sum of records can overflow.

    Parameters
    ----------
    dimensions
        d, the number of columns.
    records
        m, the number of records of all clients together, or a public cap on it.
    bits
        b: coordinates are integers with magnitude at most 2^(b-1). Coordinates in [-1, 1] with f fractional bits have
        b = f + 1.
    allowed
        Fields to choose from, in order of preference.

    Raises
    ------
    PrecisionError
        If none is large enough; the message has the numbers.
    """
    distance = largest_distance(dimensions=dimensions, records=records, bits=bits)
    total = largest_sum(records=records, bits=bits)
    for field in allowed:
        if _fits(field, distance, total):
            return field
    widest = max(allowed, key=lambda field: field.order)
    most = most_bits(widest, dimensions=dimensions, records=records)
    remedy = f"Use at most {most} bits" if most else "Use fewer columns"
    raise PrecisionError(
        f"squared distances must stay below the field's order, about 2^{log2(widest.order):.1f}, and sums of records "
        f"below half of it; {records} records of {dimensions} coordinates of {bits} bits allow "
        f"2^{log2(max(distance, 1)):.1f} and 2^{log2(total):.1f}. {remedy}, or fewer records."
    )


def most_bits(field: Field, *, dimensions: int, records: int) -> int:
    """Return the largest b for which nothing can overflow in the field; 0 if even 1 is too large."""
    fitting = (
        bits
        for bits in range(MOST_BITS, 0, -1)
        if _fits(
            field,
            largest_distance(dimensions=dimensions, records=records, bits=bits),
            largest_sum(records=records, bits=bits),
        )
    )
    return next(fitting, 0)


def _fits(field: Field, distance: int, total: int) -> bool:
    """Whether distances are distinct in 0..order-1, and sums in the range around zero."""
    return distance <= field.order - 1 and 2 * total <= field.order - 1


def _check_sizes(dimensions: int, records: int, bits: int) -> None:
    """Refuse numbers that are no sizes."""
    if dimensions < 1 or not 1 <= records <= LARGEST_COUNT or not 1 <= bits <= MOST_BITS:
        raise ConfigError(
            f"there must be at least 1 column, 1 to {LARGEST_COUNT} records, and coordinates of 1 to {MOST_BITS} bits; "
            f"got {dimensions}, {records} and {bits}. Correct the numbers."
        )
