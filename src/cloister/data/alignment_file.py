"""Alignments on disk: one JSON file a party, written whole or not at all, read with a limit on its size."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from cloister.errors import ConfigError
from cloister.protocols.align.alignment import Alignment, decode_alignment, encode_alignment

MAX_FILE_BYTES = 2**30


def load_alignment(path: str | Path) -> Alignment:
    """Read one party's alignment.

    Raises
    ------
    ConfigError
        If it cannot be read or is none.
    """
    path = Path(path)
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise ConfigError(
            f"the alignment must be a readable file; got {path}: {error.strerror or type(error).__name__}. "
            "'cloister align' writes one for each party."
        ) from None
    if len(raw) > MAX_FILE_BYTES:
        raise ConfigError(f"an alignment must have at most {MAX_FILE_BYTES} bytes; {path} has more. Is it a table?")
    return decode_alignment(raw, str(path))


def save_alignment(alignment: Alignment, path: str | Path, *, overwrite: bool = False) -> None:
    """Write one party's alignment, for that party's eyes: its owner may read the file, and nobody else.

    Raises
    ------
    ConfigError
        If the file exists and is not to be replaced, or the disk refuses.
    """
    path = Path(path)
    if path.exists() and not overwrite:
        raise ConfigError(f"an alignment must go to a new file; {path} exists. Choose another place, or --overwrite.")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, fresh = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)  # readable by its owner only
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(encode_alignment(alignment))
            Path(fresh).replace(path)
        finally:
            Path(fresh).unlink(missing_ok=True)
    except OSError as error:
        raise ConfigError(
            f"the alignment must go to a place that can be written; got {path}: "
            f"{error.strerror or type(error).__name__}. Choose another place."
        ) from None
