"""Plans: what a job would do, cost and find, from public values alone, before any budget is spent.

Reading order: ``model`` (what a plan says), ``families`` (made-up records), ``trial`` (the algorithm on them),
``visibility`` (the smallest cluster), ``forecast`` (all cases of the synopsis), ``traffic`` (messages and bytes),
``draft`` (``plan``: from a job to a plan), ``description``, ``rounding``, ``advice`` and ``text`` (in words). For
vertical jobs: ``vertical_forecast``, ``vertical_traffic``, ``vertical_outline``, ``vertical_draft``, ``vertical_text``.
What the numbers mean: docs/plan.md.
"""

from cloister.planning.draft import plan
from cloister.planning.model import (
    Case,
    FamilyLoss,
    PartyBytes,
    Plan,
    Range,
    RoundNoise,
    Size,
    Traffic,
    VerticalOutline,
    VerticalParty,
)
from cloister.planning.text import print_plan

__all__ = [
    "Case",
    "FamilyLoss",
    "PartyBytes",
    "Plan",
    "Range",
    "RoundNoise",
    "Size",
    "Traffic",
    "VerticalOutline",
    "VerticalParty",
    "plan",
    "print_plan",
]
