"""Mutants that were drawn once and are proved to change nothing that matters, each with its proof."""

import re

_ZEROS = '__import__("cloister.crypto", fromlist=["Stream"]).Stream(bytes(32))'

EQUIVALENT: dict[str, str] = {
    "src/cloister/kmeans/blocks.py _measure shift_index '(min(offset + share, ahead_bytes) + 1)'": (
        "This is where lines of memory end that are fetched ahead of their use. A prefetch changes no value and never "
        "faults, whatever its address."
    ),
    "src/cloister/protocols/synopsis/histogram.py denoise_histogram skip_clip '(grid.cells)'": (
        "The two differ only where there is one cell: its threshold is then 0 or positive. As `least` is 1, that cell "
        "is kept by either."
    ),
    "src/cloister/protocols/feddp/reduction.py simplify_server skip_clip '(rounds * len(points))'": (
        "There are at least two rounds (`count_simplify_rounds`) and at least one point, so the product is at least 2."
    ),
    f"src/cloister/protocols/multiparty_lloyd/plan.py _hollow_star fix_entropy 'entropy={_ZEROS}'": (
        "A hollow session is run to count bytes. The coordinator draws nothing but where Lloyd's algorithm starts, "
        "from the constant seed 0 anyway, and the length of no message depends on it."
    ),
    f"src/cloister/protocols/multiparty_lloyd/attack.py LloydSessions._run_once fix_entropy 'entropy={_ZEROS}'": (
        "The coordinator draws nothing but where Lloyd's algorithm starts (`Agreement.draw_start`), and in an audit "
        'that is "given" (`attack_rounds`).'
    ),
    "src/cloister/protocols/vertical/computing.py ComputingParty._read_decryptions forget_state 'pass'": (
        "In every schedule a turn of the computing party that reads decryptions either computes the next answer, which "
        "replaces the old one, or is its last. A turn that is refused restores the party as it was."
    ),
    "src/cloister/protocols/secfc/labels.py Partition.take negate_condition "
    "'(self._high is not None or distances.high is not None)'": (
        "Both are there or neither: there where the field has more than one residue, in `__init__` as in "
        "the distances that the field reads."
    ),
    "src/cloister/lattice/weighted_sums.py _find_run shift_index '(weights.size - 1)'": (
        "The run decides only how many products are added before a reduction, and every run gives the same sum while "
        "the 64-bit word does not overflow. A run of weights other than the last adds up to at most "
        "run (bits + 1) 2^27 <= 2^62 in absolute value, and the last adds at most 2^31 2^27 = 2^58: below 2^63."
    ),
    f"src/cloister/protocols/vertical/traffic.py _make_session fix_entropy 'entropy={_ZEROS}'": (
        "A hollow session is run to count bytes. Its keys follow from the constant seed 0 anyway, nobody else sees it, "
        "and every message's length follows from the agreement alone."
    ),
    "src/cloister/lattice/sampling.py _invert shift_index '(words.size + 1)'": (
        "One pass more is made only where the number of words is a multiple of a pass's; there `count` is 0, and every "
        "loop in it is empty."
    ),
    "src/cloister/privacy/costs.py rho_of_epsilon drop_term '(2)'": (
        "Where the search for an upper end begins. From 2, too, it is doubled until it does not fit, `fits` behind "
        "it, and the bisection ends as near to the only root."
    ),
}


def without_place(mutant: str) -> str:
    """Return a mutant's name without its line and column, which change with every edit above it."""
    return re.sub(r":\d+:\d+ ", " ", mutant, count=1)
