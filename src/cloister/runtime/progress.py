"""What a runtime tells whoever watches: which step, and whom it waits for. Never a value."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Progress:
    """One step has been opened or answered."""

    step: int
    """Steps finished so far."""
    steps: int
    """Steps expected in all."""
    label: str
    waiting_for: tuple[str, ...]
    """Names of the parties that have not answered this step."""


OnProgress = Callable[[Progress], None]
"""Called at every step; raising from it stops the run."""
