"""Guided sums: rounds of integer vectors that are added up under masks; every party derives each round's query itself.

This is what private algorithms on horizontally split records need, whatever they compute. Every party runs the same
algorithm on the totals that have been released, and so knows what to measure next. Its answer is a sum over its
records, in integers, and the most that one unit can add to it is known exactly. Noise has one scale for the whole
session; the size of contributions in a round is its weight in the budget (`BUDGET_UNITS`). Whoever adds up, or adds
the noise, learns nothing about the purpose of a round. Protocols built on it, each with its own wire name:
:mod:`cloister.protocols.synopsis`, :mod:`cloister.protocols.feddp`.

Reading order: :mod:`.settings`, :mod:`.query`, :mod:`.agreement`, :mod:`.messages`, :mod:`.algorithm`, :mod:`.party`,
:mod:`.coordinator`. Steps that algorithms share: :mod:`.statistics`, :mod:`.postprocessing`, :mod:`.refinement`.
"""

from cloister.protocols.guided_sums.agreement import Agreement, envelope_of
from cloister.protocols.guided_sums.algorithm import AlgorithmCache, Rehearsal, rehearse
from cloister.protocols.guided_sums.coordinator import GuidedOutcome, NoBooks, coordinate
from cloister.protocols.guided_sums.party import GuidedParty
from cloister.protocols.guided_sums.query import Asking, Query
from cloister.protocols.guided_sums.settings import BUDGET_UNITS, GuidedSettings, Slot

__all__ = [
    "BUDGET_UNITS",
    "Agreement",
    "AlgorithmCache",
    "Asking",
    "GuidedOutcome",
    "GuidedParty",
    "GuidedSettings",
    "NoBooks",
    "Query",
    "Rehearsal",
    "Slot",
    "coordinate",
    "envelope_of",
    "rehearse",
]
