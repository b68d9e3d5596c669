"""Plans: what a job would do, cost and find, from public values alone, before any budget is spent.

``plan`` makes a plan from a job, ``text`` prints it. How its numbers are found is in :mod:`cloister.forecast`
and in each protocol's package; what they mean: docs/plan.md.
"""

from cloister.planning.plan import Plan, plan
from cloister.planning.text import describe_forecast, print_plan

__all__ = ["Plan", "describe_forecast", "plan", "print_plan"]
