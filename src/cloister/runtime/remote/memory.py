"""Memory of long frames: kept for the next one, rather than given back to the system and asked for again.

By default glibc maps every block of more than some megabytes anew, and the system clears it page by page at the first
touch: for frames of 32 MiB that took longer than putting them together. What is kept is bounded, and reused.
"""

from __future__ import annotations

import ctypes
from contextlib import suppress
from functools import cache

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # of mallopt(3)
_BLOCK_BYTES, _KEPT_BYTES = 2**27, 2**27


@cache
def keep_memory() -> None:
    """Have the C library keep up to 128 MiB of freed memory; does nothing where it is not glibc."""
    with suppress(OSError, AttributeError):
        library = ctypes.CDLL(None)
        library.mallopt(_MMAP_THRESHOLD, _BLOCK_BYTES)
        library.mallopt(_TRIM_THRESHOLD, _KEPT_BYTES)
