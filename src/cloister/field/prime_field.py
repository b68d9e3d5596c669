"""Prime fields: signed integers in, exact sums and products, integers out; and which field a job needs.

An element is a ``uint64`` array with a leading axis of residues: one modulo q = 2^61 - 1, or two, modulo 2^61 - 1 and
2^61 - 31. Two residues stand for an integer modulo the product of the primes, about 2^122; every operation works on
each residue by itself, so that a code over the field is two codes over prime fields, with the same public points.

The field is chosen from public numbers, before anything is shared (SecFC, appendix A). Coordinates are integers with
|x| <= 2^(b-1). For a record x_i and a cluster S of c records,

    sum_{S} x - c x_i = sum_{i' in S, i' != i} (x_i' - x_i),

in each coordinate at most m - 1 differences (i is in S, or S leaves it out), each at most 2^b. So

    0 <= |sum_S x - c x_i|^2 <= D = d (m - 1)^2 4^b,

and D is reached: x_i at one corner of the cube, all others at the opposite one and in S. A sum of squares has no sign,
so it is read in 0..q-1 and q > D is enough; since D < d m^2 4^b, log2 q > log2 d + 2 log2 m + 2 b is too, which is the
paper's condition q >= 2 D without the factor 2, its room for a sign. Sums that are revealed have a sign:
|sum_S x| <= m 2^(b-1) must be at most (q - 1) / 2. Both are checked here in exact integers. For m > 1, D < 2^122 leaves
(m - 1) 2^b < 2^61, so that sums fit 64 bits with a sign in any field; for one record b <= 63 guarantees it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import isqrt, log2, prod

import numpy as np
from numpy.typing import ArrayLike

from cloister.crypto import Stream
from cloister.errors import ConfigError, LocalProtocolError, PrecisionError, RemoteProtocolError
from cloister.field import kernels
from cloister.field.distances import LARGEST_COUNT, Distances
from cloister.field.kernels import Words
from cloister.records import IntArray

LARGE_PRIMES = (2**61 - 1, 2**61 - 31)  # the two largest primes below 2^61


@dataclass(frozen=True, kw_only=True)
class Field:
    """The integers modulo one prime, or modulo the product of two, by their residues.

    Parameters
    ----------
    moduli
        One or two distinct primes, the larger one first: of :data:`LARGE_PRIMES`, or below 2^29. Small ones serve to
        check by exhaustion what is proved for all; of two, the larger must be less than twice the smaller.
    """

    moduli: tuple[int, ...] = LARGE_PRIMES[:1]

    def __post_init__(self) -> None:
        known = all(q in LARGE_PRIMES or (q <= kernels.LARGEST_SMALL_PRIME and is_small_prime(q)) for q in self.moduli)
        paired = len(self.moduli) == 1 or (
            len(self.moduli) == 2 and self.moduli[1] < self.moduli[0] < 2 * self.moduli[1]
        )
        if not (known and paired):
            raise ConfigError(
                "a field must have one prime, or two with the larger first and less than twice the smaller; each of "
                f"2^61 - 1 and 2^61 - 31, or below 2^29; got {self.moduli}. Use FIELD61 or FIELD122."
            )

    @property
    def order(self) -> int:
        """How many integers the field tells apart: the product of its primes."""
        return prod(self.moduli)

    @property
    def residues(self) -> int:
        """The length of the leading axis of elements."""
        return len(self.moduli)

    @property
    def words(self) -> Words:
        """The primes as 64-bit words."""
        return np.array(self.moduli, dtype=np.uint64)

    def zeros(self, *shape: int) -> Words:
        """Return elements that stand for 0."""
        return np.zeros((self.residues, *shape), dtype=np.uint64)

    def encode(self, values: IntArray) -> Words:
        """Reduce signed integers modulo each prime; integers that differ by less than the order stay distinct."""
        values = np.asarray(values, dtype=np.int64, order="C")
        elements = np.empty((self.residues, *values.shape), dtype=np.uint64)
        for modulus, row in zip(self.words, self._flatten(elements), strict=True):
            kernels.reduce_signed(values.reshape(-1), row, modulus)
        return elements

    def encode_integers(self, values: ArrayLike) -> Words:
        """Reduce Python integers of any size; for a few constants, not for records."""
        integers = np.asarray(values, dtype=object)
        return np.stack([(integers % modulus).astype(np.uint64) for modulus in self.moduli])

    def decode(self, elements: Words) -> IntArray:
        """Return the integers nearest zero that the elements stand for: sums of records, and whatever has a sign.

        Raises
        ------
        RemoteProtocolError
            If one needs more than 63 bits and a sign, which no sum in a field that was chosen for it does.
        """
        if self.residues == 1:
            (modulus,) = self.words
            signed: IntArray = np.array(elements[0], dtype=np.int64)
            signed[elements[0] > modulus >> np.uint64(1)] -= np.int64(modulus)
            return signed
        centred = np.empty(elements.shape[1:], dtype=np.int64)
        first, second = self._flatten(elements)
        outside = kernels.join_centred(first, second, self._garner, centred.reshape(-1))
        if outside:
            raise RemoteProtocolError(
                f"decoded sums must fit a sign and 63 bits; {outside} of {centred.size} do not. A share that was used "
                "is wrong; ask other clients."
            )
        return centred

    def decode_distances(self, elements: Words, *, largest: int | None = None) -> Distances:
        """Return the integers in 0..order-1 that the elements stand for, exactly.

        Parameters
        ----------
        elements
            (residues, ...): sums of squares, which are not negative, so that the whole order is room for them.
        largest
            What none can exceed in this job, :func:`largest_distance`.

        Raises
        ------
        RemoteProtocolError
            If one is larger than ``largest``: a reply that was used is wrong.
        """
        if self.residues == 1:
            distances = Distances(low=elements[0], high=None)
        else:
            high, low = (np.empty(elements.shape[1:], dtype=np.uint64) for _ in range(2))
            first, second = self._flatten(elements)
            kernels.join_residues(first, second, self._garner, high.reshape(-1), low.reshape(-1))
            distances = Distances(low=low, high=high)
        if largest is not None and (beyond := distances.count_beyond(largest)):
            raise RemoteProtocolError(
                f"decoded distances must be at most {largest}; {beyond} of {distances.low.size} are larger. A reply "
                "that was used is wrong; ask the clients again, or leave one out."
            )
        return distances

    def add(self, terms: Iterable[Words]) -> Words:
        """Return the sum of elements of equal shape; takes them one by one, so that none needs to be kept."""
        iterator = iter(terms)
        first = next(iterator, None)
        if first is None:
            raise LocalProtocolError("there must be at least one term to add up; got none.")
        total = np.array(first, dtype=np.uint64, order="C")
        for term in iterator:
            self.accumulate(total, term)
        return total

    def accumulate(self, total: Words, term: Words) -> None:
        """Add ``term`` to ``total`` in place."""
        self._change(total, term, kernels.add_elements)

    def deduct(self, total: Words, term: Words) -> None:
        """Subtract ``term`` from ``total`` in place."""
        self._change(total, term, kernels.subtract_elements)

    def scale(self, elements: Words, factor: Words) -> Words:
        """Return the elements times one constant, given by its residues."""
        scaled = np.empty(elements.shape, dtype=np.uint64)
        rows, out, factors = self._flatten(elements), self._flatten(scaled), np.ascontiguousarray(factor)
        for r, modulus in enumerate(self.words):
            kernels.scale_rows(rows[r : r + 1], factors[r : r + 1], out[r : r + 1], modulus)
        return scaled

    def uniform(self, stream: Stream, *shape: int) -> Words:
        """Draw elements exactly uniformly: the upper bits of 64-bit words, drawn again where they are not below q.

        With the large primes that happens once in 2^56 words or more rarely.
        """
        elements = np.empty((self.residues, *shape), dtype=np.uint64)
        for modulus, row in zip(self.moduli, self._flatten(elements), strict=True):
            fill_uniform(row, modulus, stream)
        return elements

    def check_received(self, elements: Words, shape: tuple[int, ...], *, what: str) -> Words:
        """Return what a peer sent as elements of this shape, every residue below its prime.

        Raises
        ------
        RemoteProtocolError
            If type, shape or a residue is wrong.
        """
        expected = (self.residues, *shape)
        if elements.dtype != np.uint64 or elements.shape != expected:
            raise RemoteProtocolError(
                f"{what} must be 64-bit words of shape {expected}; got {elements.dtype} of shape {elements.shape}."
            )
        if elements.size and (elements.reshape(self.residues, -1).max(axis=1) >= self.words).any():
            raise RemoteProtocolError(f"{what} must be below the primes {self.moduli}; some words are not.")
        return elements

    def _change(self, total: Words, term: Words, kernel: Callable[[Words, Words, np.uint64], None]) -> None:
        if total.shape != term.shape or not total.flags.c_contiguous:
            raise LocalProtocolError(
                f"elements must have one shape to be added, the total without gaps; got {total.shape} and {term.shape}."
            )
        for modulus, left, right in zip(self.words, self._flatten(total), self._flatten(term), strict=True):
            kernel(left, right, modulus)

    def _flatten(self, elements: Words) -> Words:
        """Return one row for each residue, without gaps; a view where the elements have none."""
        return np.ascontiguousarray(elements.reshape(self.residues, -1))

    @property
    def _garner(self) -> Words:
        """p, q and the inverse of p modulo q."""
        p, q = self.moduli
        return np.array([p, q, pow(p, -1, q)], dtype=np.uint64)


FIELD61 = Field(moduli=LARGE_PRIMES[:1])
FIELD122 = Field(moduli=LARGE_PRIMES)


def fill_uniform(out: Words, modulus: int, stream: Stream) -> None:
    """Fill a flat array with independent numbers, uniform on 0..modulus-1, by rejection."""
    shift = np.uint64(64 - modulus.bit_length())
    while out.size:
        rejected = kernels.shift_words(stream.words(out.size, np.uint64), shift, out, np.uint64(modulus))
        if rejected:
            accepted = out[out < modulus]
            out[: accepted.size] = accepted
        out = out[out.size - rejected :]


def is_small_prime(candidate: int) -> bool:
    """Decide primality by trial division, for candidates up to 2^29."""
    return candidate > 1 and all(candidate % divisor for divisor in range(2, isqrt(candidate) + 1))


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
    return distance <= field.order - 1 and 2 * total <= field.order - 1


def _check_sizes(dimensions: int, records: int, bits: int) -> None:
    if dimensions < 1 or not 1 <= records <= LARGEST_COUNT or not 1 <= bits <= MOST_BITS:
        raise ConfigError(
            f"there must be at least 1 column, 1 to {LARGEST_COUNT} records, and coordinates of 1 to {MOST_BITS} bits; "
            f"got {dimensions}, {records} and {bits}. Correct the numbers."
        )
