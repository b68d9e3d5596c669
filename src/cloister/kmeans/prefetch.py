"""A prefetch instruction for compiled code: ask for a cache line now, read it later.

The kernel computes on one block while the next is on its way from memory. Without this the processor's own prefetching
stops at each block, and a pass over data larger than the cache takes a quarter longer.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic

LINE_BYTES = 64


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


prefetch: Any = intrinsic(_type_prefetch)
