"""The algorithm: one party runs it, one query for each slot, and nobody else needs it."""

from dataclasses import replace

import numpy as np
import pytest

from cloister.errors import AbsentError, LocalProtocolError
from cloister.protocols.synopsis.pipeline import run_synopsis
from cloister.protocols.synopsis.settings import Knobs
from tests.protocols.guided_sums.sessions import COUNTED, count_thrice
from tests.protocols.synopsis.sessions import Session
from tests.sessions import blobs, split

POINTS = {d: blobs(300, d, 3, seed=5) for d in (1, 2, 7)}


def never(settings, stream):
    raise AssertionError("a party that does not lead must not run the algorithm")
    yield


def test_one_party_runs_the_algorithm_and_all_find_the_same():
    runs = []

    def counted(settings, stream):
        runs.append(1)
        return (yield from run_synopsis(settings, stream))

    _, alone = Session(split(POINTS[2], 4)).run()
    session = Session(split(POINTS[2], 4), algorithm=counted)
    _, parties = session.run([session.party(1), *(session.party(n, algorithm=never) for n in (2, 3, 4))])
    assert len(runs) == 1
    assert all(np.array_equal(party.centres, alone[0].centres) for party in parties)
    assert [len(party.released_totals) for party in parties] == [len(session.settings.slots), 0, 0, 0]


def test_parties_may_run_in_threads():
    _, parties = Session(split(POINTS[2], 6)).run(threads=4)
    _, alone = Session(split(POINTS[2], 6)).run()
    assert all(np.array_equal(party.centres, alone[0].centres) for party in parties)


@pytest.mark.parametrize("fault", ["too many", "too few", "too long", "another kind"])
def test_an_algorithm_that_does_not_keep_to_its_slots_is_stopped(fault):
    def wrong(settings, stream):
        rounds = {"too many": 9, "too few": 1}.get(fault, settings.knobs.rounds_max)
        other = replace(settings, knobs=replace(settings.knobs, rounds_min=1, rounds_max=rounds))
        asking = count_thrice(other, stream)
        query, first = next(asking), None
        while True:
            first = first or query
            if fault == "too long":
                query = replace(query, length=10**7, l2_squared=1)
            total = yield first if fault == "another kind" and query.length and query is not first else query
            try:
                query = asking.send(total if len(total) else np.zeros(query.length, dtype=np.int64))
            except StopIteration as stop:
                return stop.value

    with pytest.raises(AbsentError) as caught:
        Session(COUNTED[:2], algorithm=wrong, silent=True, knobs=Knobs(cells_max=16, rounds_min=1, rounds_max=3)).run()
    assert isinstance(caught.value.why, LocalProtocolError)
    assert "this is a bug" in str(caught.value.why)
