"""Arrays on the wire: a dtype from an allow-list, a shape, and little-endian bytes. Nothing is ever unpickled."""

from __future__ import annotations

import math
from typing import Annotated, Any

import numpy as np
from msgspec import Meta, Struct
from numpy.typing import NDArray

from cloister.errors import RemoteProtocolError

# The position is the code on the wire: append only.
DTYPES: tuple[np.dtype[Any], ...] = tuple(np.dtype(code) for code in ("<u1", "<u4", "<u8", "<i4", "<i8", "<f4", "<f8"))
MAX_DIMENSIONS = 4

_Extent = Annotated[int, Meta(ge=0, le=2**40)]


class Array(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A numpy array as it travels; :meth:`of` and :meth:`to_numpy` convert."""

    code: Annotated[int, Meta(ge=0, lt=len(DTYPES))]
    shape: Annotated[tuple[_Extent, ...], Meta(max_length=MAX_DIMENSIONS)]
    data: bytes

    @classmethod
    def of(cls, array: NDArray[Any]) -> Array:
        """Pack an array; its dtype must be on the allow-list."""
        dtype = array.dtype.newbyteorder("<")
        if dtype not in DTYPES:
            raise TypeError(f"arrays on the wire must be one of {[d.str for d in DTYPES]}; got {array.dtype.str}")
        return cls(DTYPES.index(dtype), array.shape, array.astype(dtype, copy=False).tobytes())

    def to_numpy(self, dtype: type[np.generic], *shape: int) -> NDArray[Any]:
        """Unpack into an array that must have this dtype and shape; floats must be finite.

        Raises
        ------
        RemoteProtocolError
            If the bytes are anything else. Expected and got are public: they never show a value.
        """
        expected = np.dtype(dtype).newbyteorder("<")
        got = DTYPES[self.code]
        if got != expected or self.shape != shape:
            raise RemoteProtocolError(
                f"an array must be {expected.name} of shape {shape}; got {got.name} of shape {self.shape}."
            )
        wanted_bytes = math.prod(shape) * expected.itemsize
        if len(self.data) != wanted_bytes:
            raise RemoteProtocolError(
                f"an array of shape {shape} must have {wanted_bytes} bytes; got {len(self.data)}."
            )
        array = np.frombuffer(self.data, dtype=expected).reshape(shape).astype(dtype, copy=False)
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise RemoteProtocolError("numbers in a message must be finite; some are not.")
        return array
