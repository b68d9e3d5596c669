"""Which numbers are squares modulo p = 2^255 - 19: the only arithmetic of the hash that is too slow in plain Python.

Euler's criterion costs 150 microseconds a number with Python's ``pow``, three times a scalar multiplication. The binary
algorithm for the Jacobi symbol on four 64-bit words costs three. Its time depends on the number, which comes from
a party's own ID and is tested on that party's own machine.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

PRIME = 2**255 - 19

_ONE, _THREE, _SEVEN, _ZERO = np.uint64(1), np.uint64(3), np.uint64(7), np.uint64(0)
_SHIFT = np.uint64(63)
_LOW, _MIDDLE, _HIGH = np.uint64(2**64 - 19), np.uint64(2**64 - 1), np.uint64(2**63 - 1)  # the words of p


def are_squares(numbers: list[int]) -> NDArray[np.bool_]:
    """Tell for each number from 1 to p - 1 whether it is a square modulo p."""
    words = np.frombuffer(b"".join(number.to_bytes(32, "little") for number in numbers), dtype="<u8")
    found = np.empty(len(numbers), dtype=np.bool_)
    _fill_squares(words.astype(np.uint64, copy=False).reshape(-1, 4), found)
    return found


@numba.njit(cache=True, nogil=True)  # type: ignore[misc, untyped-decorator, unused-ignore]
def _fill_squares(words: Any, found: Any) -> None:
    """Jacobi symbol (a / p): strip twos, (2/b) = -1 iff b = 3, 5 mod 8; swap, reciprocity; subtract."""
    for at in range(len(words)):
        a0, a1, a2, a3 = words[at, 0], words[at, 1], words[at, 2], words[at, 3]
        b0, b1, b2, b3 = _LOW, _MIDDLE, _MIDDLE, _HIGH
        square = True
        while a0 | a1 | a2 | a3:
            while not a0 & _ONE:
                a0 = (a0 >> _ONE) | (a1 << _SHIFT)
                a1 = (a1 >> _ONE) | (a2 << _SHIFT)
                a2 = (a2 >> _ONE) | (a3 << _SHIFT)
                a3 = a3 >> _ONE
                if (b0 & _SEVEN) in (3, 5):
                    square = not square
            less = a3 < b3 or (
                a3 == b3 and (a2 < b2 or (a2 == b2 and (a1 < b1 or (a1 == b1 and a0 < b0))))
            )  # both odd now
            if less:
                a0, b0, a1, b1, a2, b2, a3, b3 = b0, a0, b1, a1, b2, a2, b3, a3
                if a0 & b0 & _THREE == _THREE:
                    square = not square
            borrow0 = _ONE if a0 < b0 else _ZERO
            borrow1 = _ONE if a1 < b1 or (a1 == b1 and borrow0) else _ZERO
            borrow2 = _ONE if a2 < b2 or (a2 == b2 and borrow1) else _ZERO
            a0 = a0 - b0
            a1 = a1 - b1 - borrow0
            a2 = a2 - b2 - borrow1
            a3 = a3 - b3 - borrow2
        found[at] = square
