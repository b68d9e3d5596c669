"""IDX files, the format of MNIST: arrays of numbers behind a short header, gzipped or not.

::

    bytes 0-1   zero
    byte  2     type: 8 = uint8, 9 = int8, 11 = int16, 12 = int32, 13 = float32, 14 = float64
    byte  3     number of axes
    4 each      the lengths of the axes, big-endian
    the rest    the numbers, big-endian, last axis fastest

What the header says must be what the file holds, to the byte; nothing larger than a limit is unpacked.
"""

from __future__ import annotations

import gzip
import math
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.errors import DataError

LARGEST_BYTES = 2**30
"""Unpacked size above which a file is refused: MNIST's largest has 47 MB."""

_TYPES = {8: "u1", 9: "i1", 11: ">i2", 12: ">i4", 13: ">f4", 14: ">f8"}
_MOST_AXES = 4
_GZIP_MAGIC = b"\x1f\x8b"


def read_idx(path: Path) -> NDArray[Any]:
    """Read an IDX file.

    Parameters
    ----------
    path
        The file; whether it is gzipped is seen from its first bytes, not from its name.

    Returns
    -------
    array
        In the machine's byte order, of the shape that the header gives; not to be written to.

    Raises
    ------
    DataError
        If the file cannot be read, is no IDX file, or holds more or fewer bytes than its header says.
    """
    content = _read_bytes(path)
    if len(content) < 4 or content[:2] != b"\0\0" or content[2] not in _TYPES or not 1 <= content[3] <= _MOST_AXES:
        raise DataError(
            f"{path} must begin as an IDX file does: two zero bytes, a known type and 1 to {_MOST_AXES} axes; it does "
            "not. Give the original file."
        )
    kind, axes = np.dtype(_TYPES[content[2]]), content[3]
    header_bytes = 4 + 4 * axes
    if len(content) < header_bytes:
        raise DataError(
            f"{path} must have {header_bytes} bytes of header; it has {len(content)} in all. Fetch it again."
        )
    shape = tuple(np.frombuffer(content, dtype=">u4", count=axes, offset=4).tolist())
    wanted_bytes = header_bytes + math.prod(shape) * kind.itemsize  # Python's integers: no header can overflow it
    if len(content) != wanted_bytes:
        raise DataError(
            f"{path} must have {wanted_bytes} bytes by its header, for an array of shape {shape}; it has "
            f"{len(content)}. Fetch it again."
        )
    values = np.frombuffer(content, dtype=kind, offset=header_bytes).reshape(shape)
    return values.astype(kind.newbyteorder("="), copy=False)


def find_idx(folder: Path, name: str) -> Path:
    """Return the file of this name in a folder, plain or with ``.gz``.

    Raises
    ------
    DataError
        If neither is there.
    """
    for path in (folder / name, folder / f"{name}.gz"):
        if path.is_file():
            return path
    raise DataError(f"{folder} must hold {name} or {name}.gz; it holds neither. Put MNIST's files there.")


def _read_bytes(path: Path) -> bytes:
    """Return the content, unpacked; refuses what is too large before it is in memory."""
    try:
        with path.open("rb") as file:
            packed = file.read(2) == _GZIP_MAGIC
            file.seek(0)
            if packed:
                with gzip.open(file) as unpacked:
                    content = unpacked.read(LARGEST_BYTES + 1)
            else:
                content = file.read(LARGEST_BYTES + 1)
    except (OSError, EOFError, zlib.error):
        raise DataError(f"{path} must be a readable file, whole if it is gzipped; it is not. Fetch it again.") from None
    if len(content) > LARGEST_BYTES:
        raise DataError(f"{path} must hold at most {LARGEST_BYTES} bytes unpacked; it holds more. Use a smaller file.")
    return content
