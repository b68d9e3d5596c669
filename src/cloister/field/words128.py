"""128-bit words for the compiled loops: products of field elements are added up first and reduced once.

numba has no 128-bit integer, so a word travels as a pair (high, low) of 64-bit ones; the compiler turns a
:func:`multiply_add` into one widening multiplication and two additions.

A modulus is q = 2^61 - c with c < 2^5, or a prime below 2^29 (for exhaustive tests). :data:`LAZY_TERMS` products of two
elements and one element more always fit: 63 (2^61 - 1)^2 + 2^61 < 2^128, and for the small primes
63 (2^29)^2 + 2^29 < 2^64, so that their high word is 0.
"""

from __future__ import annotations

from typing import Any, Protocol, TypeVar

import numba
import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic

LAZY_TERMS = 63
PRIME_BITS = 61
LARGEST_SMALL_PRIME = 2**29 - 1

_Function = TypeVar("_Function")


class _Jit(Protocol):
    def __call__(self, function: _Function, /) -> _Function: ...


compile_loop: _Jit = numba.njit(nogil=True, cache=True, error_model="numpy")
# Inlined before types are known: a call that the compiler inlines later costs sharing a third of its speed.
compile_inline: _Jit = numba.njit(nogil=True, cache=True, error_model="numpy", inline="always")

_LIMB_MASK = np.uint64(2**PRIME_BITS - 1)
_ZERO, _THREE, _SHIFT = np.uint64(0), np.uint64(3), np.uint64(PRIME_BITS)
_TOP = np.uint64(1 << PRIME_BITS)


def _type_multiply_add(typing_context: Any, high: Any, low: Any, a: Any, b: Any) -> tuple[Any, Any]:
    """Declare ``multiply_add(high, low, a, b)``: (high, low) + a b modulo 2^128, as a pair."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        word, wide = ir.IntType(64), ir.IntType(128)
        upper, lower, left, right = (builder.zext(argument, wide) for argument in arguments)
        bits = ir.Constant(wide, 64)
        total = builder.add(builder.or_(builder.shl(upper, bits), lower), builder.mul(left, right))
        halves = [builder.trunc(builder.lshr(total, bits), word), builder.trunc(total, word)]
        return context.make_tuple(builder, signature.return_type, halves)

    return types.UniTuple(types.uint64, 2)(*[types.uint64] * 4), generate


multiply_add: Any = intrinsic(_type_multiply_add)


@compile_inline
def reduce_wide(high: Any, low: Any, modulus: Any) -> Any:
    """Return the 128-bit word modulo q, in 0..q-1.

    For q = 2^61 - c: 2^64 = 8 c, so the word is congruent to low + 8 c high < 2^64 + 2^72; the bits of that from 61 on
    count c each, which leaves less than 2^61 + 31 2^11 < 2 q; one subtraction of q at most remains.
    """
    if modulus <= np.uint64(LARGEST_SMALL_PRIME):
        return low % modulus
    c = _TOP - modulus
    high, low = multiply_add(_ZERO, low, high, c << _THREE)
    rest = (low & _LIMB_MASK) + c * ((high << _THREE) | (low >> _SHIFT))
    return rest - modulus if rest >= modulus else rest


@compile_inline
def multiply(a: Any, b: Any, modulus: Any) -> Any:
    """Return a b modulo q."""
    high, low = multiply_add(_ZERO, _ZERO, a, b)
    return reduce_wide(high, low, modulus)


@compile_inline
def add(a: Any, b: Any, modulus: Any) -> Any:
    """Return a + b modulo q; both below q."""
    total = a + b
    return total - modulus if total >= modulus else total


@compile_inline
def subtract(a: Any, b: Any, modulus: Any) -> Any:
    """Return a - b modulo q; both below q."""
    return a - b if a >= b else a + modulus - b
