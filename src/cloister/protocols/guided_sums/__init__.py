"""Guided sums: rounds of integer vectors that are added up under masks, each round's question found by every party.

What a private algorithm on horizontally split records needs, whatever it computes: every party runs the same algorithm
on the totals that have been released, and so knows what to measure next; the answer is a sum over its records, in
integers, whose largest contribution by one unit is known exactly; noise has one scale for the whole session, and a
round's weight in the budget is how large contributions are in it (`PURSE`). Whoever adds up, or adds the noise, learns
nothing of what a round is for. Protocols on it: :mod:`cloister.protocols.synopsis`, :mod:`cloister.protocols.feddp`;
each has its own wire name.

Reading order: :mod:`.settings`, :mod:`.query`, :mod:`.agreement`, :mod:`.messages`, :mod:`.thinking`, :mod:`.party`,
:mod:`.coordinator`, :mod:`.rehearsal`. Steps that algorithms share: :mod:`.size`, :mod:`.moments` with :mod:`.exact`
and :mod:`.subspace`, :mod:`.denoising`, :mod:`.refinement` with :mod:`.shrinkage` and :mod:`.swaps`; :mod:`.bounding`
where the unit is a whole party.
"""

from cloister.protocols.guided_sums.agreement import Agreement, envelope_of
from cloister.protocols.guided_sums.coordinator import NoBooks, Outcome, coordinate
from cloister.protocols.guided_sums.party import GuidedParty
from cloister.protocols.guided_sums.query import Asking, Query
from cloister.protocols.guided_sums.rehearsal import Rehearsal
from cloister.protocols.guided_sums.settings import PURSE, GuidedSettings, Slot
from cloister.protocols.guided_sums.thinking import SharedThinking

__all__ = [
    "PURSE",
    "Agreement",
    "Asking",
    "GuidedParty",
    "GuidedSettings",
    "NoBooks",
    "Outcome",
    "Query",
    "Rehearsal",
    "SharedThinking",
    "Slot",
    "coordinate",
    "envelope_of",
]
