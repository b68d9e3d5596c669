"""The rounds of a plan in one process, without messages: for studies, benchmarks and tests. Not for private records.

From the same start and noise, it computes what a session computes, bit for bit (a test compares them).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cloister.errors import ConfigError
from cloister.kmeans import Assignment, Unconstrained
from cloister.privacy.samplers import Sampler
from cloister.protocols.multiparty_lloyd.noise import NoisePlan
from cloister.protocols.multiparty_lloyd.rules import Rule
from cloister.records import FloatArray, IntArray, Records


@dataclass(frozen=True, kw_only=True, eq=False)
class Rehearsal:
    """What a rehearsal found."""

    centres: FloatArray
    history: tuple[FloatArray, ...]
    """The centres after each round."""
    totals: tuple[IntArray, ...]
    """The sum of each round, noise included."""


def rehearse(
    plan: NoisePlan | Rule,
    parts: Sequence[Records],
    start: FloatArray,
    *,
    rounds: int | None = None,
    sampler: Sampler | None = None,
    assignment: Assignment | None = None,
) -> Rehearsal:
    """Run a plan, or an exact rule for a number of rounds, on every party's records.

    Parameters
    ----------
    plan
        A plan with its noise, or an exact rule, which has none.
    parts
        Each party's records.
    start
        The first centres.
    rounds
        The number of rounds of an exact rule.
    sampler
        The source of all noise of a plan.
    assignment
        How records join clusters; by default to the nearest centre.
    """
    assignment = assignment or Unconstrained()
    rule: Rule = plan.rule if isinstance(plan, NoisePlan) else plan
    if isinstance(plan, NoisePlan):
        rounds = len(plan.targets)
    if rounds is None or (isinstance(plan, NoisePlan) and sampler is None):
        raise ConfigError("to be rehearsed, a plan must come with a sampler, and a rule with a number of rounds.")
    centres = start
    history: list[FloatArray] = []
    totals: list[IntArray] = []
    for round_ in range(1, rounds + 1):
        last = totals[-1] if totals else None
        exact = [rule.contribute(records, centres, round_, assignment, last) for records in parts]
        total = np.sum(exact, axis=0)
        if isinstance(plan, NoisePlan) and sampler is not None:
            total = total + _draw(plan, round_, total.size, sampler, len(parts)).reshape(total.shape)
        centres = rule.move(centres, total, round_=round_, members=len(parts), last=last)
        history.append(centres)
        totals.append(total)
    return Rehearsal(centres=centres, history=tuple(history), totals=tuple(totals))


def _draw(plan: NoisePlan, round_: int, entries: int, sampler: Sampler, parties: int) -> IntArray:
    """All noise of one round together."""
    target = plan.target_of(round_)
    if not plan.placement.each_party_draws:
        return sampler.draw(target, entries)
    share = plan.placement.mechanism_for_share(target)
    drawn: IntArray = np.sum([sampler.draw(share, entries) for _ in range(parties)], axis=0)
    return drawn
