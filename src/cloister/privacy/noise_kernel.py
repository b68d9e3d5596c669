"""The compiled loops of exact noise: every proposal that 64-bit words decide for certain, and nothing else.

The kernel knows exp(-y) as an interval of proved width, about 2^-45. It keeps or drops a proposal only where the whole
interval gives the same answer, and stops at any other, which ``proposals`` then decides. So it is exact, whatever the
width. Integers only: no floating-point number is computed. The bounds are claims 5 and 6 of docs/proofs/exact-noise.md.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.field.kernels import Words, compile_inline, compile_loop, multiply_add
from cloister.privacy.exponentials import WORD_BITS, floor_exponential
from cloister.privacy.proposals import EXPONENT_BITS, WORDS, Constants
from cloister.records import IntArray

GAP = 1 << 18
"""In 2^-63: the kernel's lower bound of a probability is at most this far below it. Claim 5 proves half of it."""

_ZERO, _ONE, _GAP = np.uint64(0), np.uint64(1), np.uint64(GAP)
_WHOLE, _WHOLE_MOST = np.uint64(EXPONENT_BITS), np.uint64(64)
_BYTE, _REST = np.uint64(255), np.uint64((1 << 16) - 1)
_FIRST, _SECOND, _THIRD, _FOURTH = np.uint64(40), np.uint64(32), np.uint64(24), np.uint64(16)


@cache
def tabulate_exponentials() -> NDArray[np.uint64]:
    """Return rows of floor(2^64 exp(-i 2^-8j)), for the byte i of an exponent that counts 2^-8j; 1 is 2^64 - 1."""
    rows = [
        [(1 << WORD_BITS) - 1, *(floor_exponential(Fraction(i, 1 << 8 * place), WORD_BITS) for i in range(1, count))]
        for place, count in enumerate((64, 256, 256, 256, 256))
    ]
    return np.array([row + [0] * (256 - len(row)) for row in rows], dtype=np.uint64)


@compile_inline
def multiply_high(a: Any, b: Any) -> Any:
    """Return floor(a b / 2^64)."""
    return multiply_add(_ZERO, _ZERO, a, b)[0]


@compile_loop
def bound_probability(
    offset: np.uint64,
    run: np.uint64,
    width: np.uint64,
    is_gaussian: np.uint64,
    scaling: np.uint64,
    factor: np.uint64,
    constant: np.uint64,
    table: NDArray[np.uint64],
) -> Any:
    """Return an integer between 2^63 exp(-exponent) - GAP and 2^63 exp(-exponent)."""
    if is_gaussian:
        scaled = (offset + width * run) << scaling
        exponent = multiply_high(multiply_high(scaled, scaled), factor) + constant - (run << _WHOLE)
    else:
        exponent = multiply_high(offset << scaling, factor) + constant
    whole = exponent >> _WHOLE
    if whole >= _WHOLE_MOST:
        return _ZERO
    bound = multiply_high(table[0, whole], table[1, (exponent >> _FIRST) & _BYTE])
    bound = multiply_high(bound, table[2, (exponent >> _SECOND) & _BYTE])
    bound = multiply_high(bound, table[3, (exponent >> _THIRD) & _BYTE])
    bound = multiply_high(bound, table[4, (exponent >> _FOURTH) & _BYTE])
    # exp(-r) >= 1 - r for the rest r < 2^-32, less one unit.
    return multiply_high(bound, ~((exponent & _REST) << _FOURTH)) >> _ONE


@compile_loop
def fill_decided(
    words: Words,
    at: int,
    thresholds: Words,
    width: np.uint64,
    unfair: np.uint64,
    is_gaussian: np.uint64,
    scaling: np.uint64,
    factor: np.uint64,
    constant: np.uint64,
    shift: np.uint64,
    table: Words,
    samples: IntArray,
    filled: int,
) -> tuple[int, int]:
    """Decide proposals from word ``at`` on; return where the words stand and how many samples there are.

    It ends when ``samples`` is full, when fewer than three words are left, or at a proposal that stays open.
    """
    runs = np.uint64(thresholds.size)
    while filled < samples.size and at + WORDS <= words.size:
        offset, rest = multiply_add(_ZERO, _ZERO, words[at], width)
        if rest < unfair:
            at += WORDS
            continue
        uniform, run = words[at + 1], _ZERO
        while run < runs and uniform < thresholds[run]:
            run += _ONE
        if run == runs or uniform == thresholds[run]:
            break
        coin, is_negative = words[at + 2] >> _ONE, words[at + 2] & _ONE
        bound = bound_probability(offset, run, width, is_gaussian, scaling, factor, constant, table)
        if coin < bound:
            magnitude = np.int64((offset + width * run) >> shift)
            if magnitude != 0 or not is_negative:
                samples[filled] = -magnitude if is_negative else magnitude
                filled += 1
        elif coin < bound + _GAP:
            break
        at += WORDS
    return at, filled


@compile_loop
def thin_left(words: Words, left: IntArray, kept: IntArray, shares: np.uint64, done: int) -> int:
    """Keep each cycle of a random permutation of ``left`` things with 1 / shares; return how many entries are done.

    One word gives a cycle's length and whether it is kept, as one integer below things times shares. Where that product
    could pass 2^64, the second word decides. Words that would favour small numbers are dropped.
    """
    at, most = 0, ~_ZERO // shares
    while done < left.size:
        while left[done] > 0:
            if at + 2 > words.size:
                return done
            things = np.uint64(left[done])
            is_joint = things <= most
            places = things * shares if is_joint else things
            place, rest = multiply_add(_ZERO, _ZERO, words[at], places)
            at += 1
            if rest < places and rest < (_ZERO - places) % places:  # 2^64 mod places, seldom needed
                continue
            if is_joint:
                cycle, share = place // shares, place % shares
            else:
                cycle = place
                share, rest = multiply_add(_ZERO, _ZERO, words[at], shares)
                at += 1
                if rest < (_ZERO - shares) % shares:
                    continue
            left[done] -= np.int64(cycle) + 1
            if share == _ZERO:
                kept[done] += np.int64(cycle) + 1
        done += 1
    return done


def fill(words: Words, at: int, constants: Constants, samples: IntArray, filled: int) -> tuple[int, int]:
    """Call :func:`fill_decided`."""
    return fill_decided(words, at, *constants, tabulate_exponentials(), samples, filled)
