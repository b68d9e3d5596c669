"""Loops that numba compiles, when they first run: numba takes long to load, and most commands run none.

A compiled function is kept on disk, so that only the first process after an installation compiles it. It uses neither
numba's threads nor the interpreter lock: the callers bring the threads.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from threading import RLock
from types import FunctionType
from typing import Any, TypeVar, cast

from cloister.late import load_late

numba = load_late("numba")
extending = load_late("numba.extending")

Function = TypeVar("Function", bound=Callable[..., Any])
_LOCK = RLock()


class _Kernel:
    """Is called like a function, and compiles it before the first call."""

    def __init__(self, function: Any, compiler: Callable[[Any], Any]) -> None:
        self._function = function
        self._compiler = compiler
        self._compiled: Any = None
        update_wrapper(self, function)

    def __call__(self, *arguments: Any) -> Any:
        return (self._compiled or self.compile())(*arguments)

    def compile(self) -> Any:
        with _LOCK:
            if self._compiled is None:
                self._compiled = self._compiler(_with_compiled_names(self._function))
        return self._compiled


def _with_compiled_names(function: Any) -> FunctionType:
    """Return the function with each kernel that it calls replaced by what numba knows: its compiled form."""
    known = dict(function.__globals__)
    for name in function.__code__.co_names:
        if isinstance(known.get(name), _Kernel):
            known[name] = known[name].compile()
    return FunctionType(function.__code__, known, function.__name__, function.__defaults__)


class Compile:
    """A decorator for loops that numba compiles when they first run, with its options in addition to ours."""

    def __init__(self, **options: Any) -> None:
        self._options = options

    def __call__(self, function: Function) -> Function:
        """Return what is called like the function."""
        return cast(Function, _Kernel(function, self._compile))

    def _compile(self, function: Any) -> Any:
        return numba.njit(nogil=True, cache=True, error_model="numpy", **self._options)(function)


compile_loop = Compile()
compile_inline = Compile(inline="always")
"""For what loops call in their innermost part: inlined before types are known. A call that the compiler inlines later
costs the sharing of secrets a third of its speed."""


def make_instruction(declare: Callable[..., Any]) -> Any:
    """Return a function for kernels to call, made of the compiler's own instructions as ``declare`` says."""
    return _Kernel(declare, _declare)


def _declare(function: Any) -> Any:
    return extending.intrinsic(function)
