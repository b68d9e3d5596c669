"""Where ledgers are by default: in the user's data folder, one file for each party that the user acts for."""

from __future__ import annotations

import os
from pathlib import Path

UNDECLARED = "undeclared"
"""The data set of every table whose owner declares none: all of them together, so that a new file is no new account."""


def default_ledger(party: str) -> Path:
    """Return ``$XDG_DATA_HOME/cloister/PARTY.ledger``, or the same below ``~/.local/share``. Nothing is created."""
    chosen = os.environ.get("XDG_DATA_HOME", "")
    folder = Path(chosen) if Path(chosen).is_absolute() else Path.home() / ".local" / "share"
    return folder / "cloister" / f"{party}.ledger"
