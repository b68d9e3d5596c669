"""The cached algorithm: the same totals lead to the same query, shared between parties or not."""

from contextlib import nullcontext
from dataclasses import replace
from threading import Lock

import numpy as np
import pytest

from cloister.errors import LocalProtocolError
from cloister.protocols.guided_sums import AlgorithmCache
from cloister.protocols.synopsis import Knobs, run_synopsis
from tests.protocols.guided_sums.sessions import COUNTED, count_thrice, counting_rounds
from tests.protocols.synopsis.sessions import SYNOPSIS, Session, counting
from tests.sessions import blobs, split

POINTS = {d: blobs(300, d, 3, seed=5) for d in (1, 2, 7)}


def test_parties_that_share_a_cache_run_the_algorithm_once_and_find_the_same():
    runs = []

    def counted(settings, stream):
        runs.append(1)
        return (yield from run_synopsis(settings, stream))

    _, alone = Session(split(POINTS[2], 4)).run()
    _, shared = Session(split(POINTS[2], 4), algorithm=counted, share_cache=True).run()
    assert len(runs) == 1
    assert all(np.array_equal(party.centres, alone[0].centres) for party in shared)
    assert shared[0].released_totals[0] is shared[3].released_totals[0]


def test_threads_may_share_a_cache():
    session = Session(split(POINTS[2], 6))
    session.cache = SYNOPSIS.make_cache(session.agreed, Lock())
    _, parties = session.run(threads=4)
    _, alone = Session(split(POINTS[2], 6)).run()
    assert all(np.array_equal(party.centres, alone[0].centres) for party in parties)


def test_whoever_reads_other_totals_gets_a_run_of_its_own():
    session = counting()
    state = AlgorithmCache(lock=nullcontext(), pipeline=count_thrice).begin(session.settings, bytes(32))
    lengths = [slot.length for slot in session.settings.slots]

    def follow(values):
        found = state
        for value, length in zip(values, lengths, strict=True):
            total = np.zeros(length, dtype=np.int64)
            total[0] = value
            found = found.advance(total)
        return found.output.weights.tolist()

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
        Session(COUNTED[:2], algorithm=wrong, silent=True).run()
