"""Runs of real processes with faults, twenty of them; a thousand more, and every step: ``python -m bench.faults``."""

import asyncio
from random import Random

import pytest

from tests.deployment.doomed import MUTANTS
from tests.deployment.faulted import EVERY_STEP_OF, FaultedRuns, Plan
from tests.privacy.ledger.faults import find_vfs

pytestmark = pytest.mark.skipif(find_vfs() is None, reason="needs SQLite as a shared library")
_TOGETHER = 8
SEEDS = (*range(19), 72)
"""In the last one the coordinator is stopped while it says farewell."""


async def run_all(runs, calls):
    places = asyncio.Semaphore(_TOGETHER)

    async def run(call):
        async with places:
            return await call(runs)

    ended = await asyncio.gather(*map(run, calls), return_exceptions=True)
    if errors := [one for one in ended if isinstance(one, Exception)]:
        raise ExceptionGroup("findings", errors)
    return [kind for one in ended for kind in one]


@pytest.fixture(scope="module")
def runs():
    with FaultedRuns() as runs:
        yield runs


def test_whatever_fails_a_run_ends_with_one_result_or_typed_errors_and_one_charge(runs):
    struck = asyncio.run(run_all(runs, [lambda runs, seed=seed: runs.run(seed) for seed in SEEDS]))
    assert len(set(struck)) > 5


KILLS = [("after", 2), ("found", 0), ("paid", 0), ("message", 17), ("disk cut", -12, 0)]


@pytest.mark.parametrize("mutant", MUTANTS)
def test_mutants_are_noticed(runs, mutant, monkeypatch):
    """One kill of one party each; steps of its disk are counted from the last one."""
    steps, _, _ = asyncio.run(runs.measure(EVERY_STEP_OF))

    def call(kind, number, *seed):
        plan = Plan(deadline_s=8)
        plan.dooms["north"].append((kind, number + steps["north"]["disk"] * (number < 0), *seed))
        return lambda runs: runs.run_plan(EVERY_STEP_OF, plan, Random(1))

    monkeypatch.setattr(runs, "mutant", mutant)
    with pytest.raises(ExceptionGroup) as raised:
        asyncio.run(run_all(runs, [call(*kill) for kill in KILLS]))
    assert all(isinstance(error, AssertionError) for error in raised.value.exceptions)
