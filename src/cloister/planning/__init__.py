"""Plans: what a job would do, cost and find, from public values alone, before any budget is spent.

What every protocol's plan has in common, and what protocols build theirs from. Reading order: ``model`` (what a plan
says), ``plan`` (from a job to a plan), ``families`` (made-up records), ``trials`` (how much is tried, and against what),
``visibility`` (the smallest cluster), ``traffic`` (a hollow session), ``advice`` and ``text`` (in words). What the
numbers mean: docs/plan.md.
"""

from cloister.planning.model import Case, FamilyLoss, PartyBytes, PartyLink, Plan, Range, RoundNoise, Size, Traffic
from cloister.planning.plan import plan
from cloister.planning.text import print_plan

__all__ = [
    "Case",
    "FamilyLoss",
    "PartyBytes",
    "PartyLink",
    "Plan",
    "Range",
    "RoundNoise",
    "Size",
    "Traffic",
    "plan",
    "print_plan",
]
