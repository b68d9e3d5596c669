"""Where a user's files are by default: in the data folder. Ledgers, one for each party that the user acts for."""

from __future__ import annotations

import os
from pathlib import Path

UNDECLARED = "undeclared"
"""The data set of every table whose owner declares none: all of them together, so that a new file is no new account."""


def find_data_folder() -> Path:
    """Return ``$XDG_DATA_HOME/cloister``, or ``~/.local/share/cloister``. Nothing is created."""
    chosen = os.environ.get("XDG_DATA_HOME", "")
    folder = Path(chosen) if Path(chosen).is_absolute() else Path.home() / ".local" / "share"
    return folder / "cloister"


def default_ledger(party: str) -> Path:
    """Return ``PARTY.ledger`` in the data folder. Nothing is created."""
    return find_data_folder() / f"{party}.ledger"
