"""Mutants that were drawn once and are proved to change nothing that matters, each with its proof."""

import re

EQUIVALENT: dict[str, str] = {
    "src/cloister/lattice/weighted_sums.py _find_run shift_index '(weights.size - 1)'": (
        "The run decides only how many products are added before a reduction, and every run gives the same sum while "
        "the 64-bit word does not overflow. A run of weights other than the last adds up to at most "
        "run (bits + 1) 2^27 <= 2^62 in absolute value, and the last adds at most 2^31 2^27 = 2^58: below 2^63."
    ),
    "src/cloister/protocols/vertical/traffic.py _make_session fix_entropy "
    '\'entropy=__import__("cloister.crypto", fromlist=["Stream"]).Stream(bytes(32))\'': (
        "A hollow session is run to count bytes. Its keys follow from the constant seed 0 anyway, nobody else sees it, "
        "and every message's length follows from the agreement alone."
    ),
}


def without_place(mutant: str) -> str:
    """Return a mutant's name without its line and column, which change with every edit above it."""
    return re.sub(r":\d+:\d+ ", " ", mutant, count=1)
