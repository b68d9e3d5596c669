"""Mutants that were drawn once and are proved to change nothing that matters, each with its proof."""

import re

EQUIVALENT: dict[str, str] = {}


def without_place(mutant: str) -> str:
    """Return a mutant's name without its line and column, which change with every edit above it."""
    return re.sub(r":\d+:\d+ ", " ", mutant, count=1)
