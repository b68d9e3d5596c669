"""Who learns what from an alignment. The arguments are in docs/proofs/align.md; test_align_leakage.py tries them."""

from __future__ import annotations

from collections.abc import Mapping

from cloister.protocols.align.terms import Mode
from cloister.protocol import LeakageTable, Learns, Row

_BREAKS_IF = (
    "The coordinator and any one party together: they know which parties hold the record at each place, and with that "
    "party's IDs which of these other parties hold. IDs that the party does not hold stay hidden even then. Parties "
    "alone, all but one of them, learn what sizes, count and their own places imply about the last one, and no more."
)


def _row(role: str, value: str, meaning: str, learns: Learns) -> Row:
    return Row(role=role, value=value, meaning=meaning, learns=learns)


_COORDINATOR = (
    _row("coordinator", "sizes", "how many IDs each party brought", Learns.EXACT),
    _row("coordinator", "overlaps", "how many IDs each group of parties has in common", Learns.EXACT),
    _row("coordinator", "ids", "the IDs, and the rows that they stand in", Learns.NOTHING),
    _row("coordinator", "holders", "which single party holds the record at a place of the final order", Learns.NOTHING),
)
_SIZES = _row("party", "sizes", "how many IDs each party brought", Learns.EXACT)

LEAKAGE: Mapping[Mode, LeakageTable] = {
    Mode.INTERSECTION: LeakageTable(
        source="SecFC 6; Meadows 1986; docs/proofs/align.md",
        rows=(
            *_COORDINATOR,
            _SIZES,
            _row("party", "count", "how many IDs all parties have in common", Learns.EXACT),
            _row("party", "places", "which of its IDs all parties hold, and their places", Learns.OWN),
            _row("party", "ids", "IDs that it does not hold, and who of several holds the rest", Learns.NOTHING),
        ),
        breaks_if=_BREAKS_IF,
    ),
    Mode.UNION: LeakageTable(
        source="SecFC 6 and appendix B; docs/proofs/align.md",
        rows=(
            *_COORDINATOR,
            _SIZES,
            _row("party", "count", "how many different IDs there are in all", Learns.EXACT),
            _row("party", "places", "the places of its IDs in a common random order", Learns.OWN),
            _row("party", "ids", "IDs that it does not hold, and who else holds those that it does", Learns.NOTHING),
        ),
        breaks_if=_BREAKS_IF + " With two parties, sizes and count tell both how many IDs they share.",
    ),
}
