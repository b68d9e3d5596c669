"""Thoughts: the same totals lead to the same question, shared or not."""

from contextlib import nullcontext
from dataclasses import replace
from threading import Lock

import numpy as np
import pytest

from cloister.errors import (
    LocalProtocolError,
)
from cloister.protocols.synopsis import (
    Knobs,
    SharedThinking,
)
from cloister.protocols.synopsis.pipeline import run_synopsis
from tests.harness import blobs, split
from tests.protocols.synopsis_session import (
    COUNTED,
    Session,
    count_thrice,
    counting,
    counting_rounds,
)

POINTS = {d: blobs(300, d, 3, seed=5) for d in (1, 2, 7)}


def test_parties_that_share_thoughts_run_the_algorithm_once_and_find_the_same():
    runs = []

    def counted(settings, stream):
        runs.append(1)
        return (yield from run_synopsis(settings, stream))

    _, alone = Session(split(POINTS[2], 4)).run()
    _, shared = Session(split(POINTS[2], 4), pipeline=counted, share_thoughts=True).run()
    assert len(runs) == 1
    assert all(np.array_equal(party.centres, alone[0].centres) for party in shared)
    assert shared[0].released_totals[0] is shared[3].released_totals[0]


def test_threads_may_share_thoughts():
    session = Session(split(POINTS[2], 6))
    session.shared = SharedThinking(guard=Lock(), pipeline=run_synopsis)
    _, parties = session.run(threads=4)
    _, alone = Session(split(POINTS[2], 6)).run()
    assert all(np.array_equal(party.centres, alone[0].centres) for party in parties)


def test_whoever_reads_other_totals_thinks_for_itself():
    session = counting()
    thought = SharedThinking(guard=nullcontext(), pipeline=count_thrice).begin(session.settings, bytes(32))
    lengths = [slot.length for slot in session.settings.slots]

    def follow(values):
        found = thought
        for value, length in zip(values, lengths, strict=True):
            total = np.zeros(length, dtype=np.int64)
            total[0] = value
            found = found.follow(total)
        return found.answer.weights.tolist()

    base = list(range(1, len(lengths) + 1))
    expected = [1.0, 3.0, float(len(lengths))]
    assert follow(base) == follow(base) == expected
    for place in range(len(lengths)):
        other = [*base]
        other[place] = 1000
        rounds = counting_rounds(session.settings)
        assert follow(other) == [1000.0 if rounds[i] == place else x for i, x in enumerate(expected)]
        assert follow(base) == expected


@pytest.mark.parametrize("fault", ["too many", "too few", "too long"])
def test_an_algorithm_that_does_not_keep_to_its_slots_is_stopped(fault):
    def wrong(settings, stream):
        asking = count_thrice(replace(settings, knobs=Knobs(rounds_min=1, rounds_max=1)), stream)
        if fault == "too many":
            asking = count_thrice(replace(settings, knobs=Knobs(rounds_min=1, rounds_max=9)), stream)
        query = next(asking)
        while True:
            total = yield replace(query, length=10**7) if fault == "too long" else query
            try:
                query = asking.send(total)
            except StopIteration as stop:
                return stop.value

    with pytest.raises(LocalProtocolError, match="this is a bug"):
        Session(COUNTED[:2], pipeline=wrong, silent=True).run()
