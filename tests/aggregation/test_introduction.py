"""How parties get their masks: once, after the seed, and among a quorum."""

import pytest

from cloister.aggregation.coordination import introduce
from cloister.aggregation.introduction import Introduction
from cloister.aggregation.messages import MeetPeers
from cloister.errors import RemoteProtocolError, TooFewPartiesError
from cloister.roles import Dropped
from tests.aggregation.sums import SESSION, make_seat, make_terms

TERMS = make_terms(4, 3)


def meet(left=lambda party, request: False, terms=TERMS):
    """Introduce four parties; returns who has masks, and the parties with the keys that they were told."""
    parties = {number: Introduction(seat=make_seat(number), terms=terms) for number in range(1, 5)}
    generator, keys = introduce(terms, session=SESSION, steps=4), ()
    ask = next(generator)
    while True:
        replies = {
            party: Dropped() if left(party, request) else parties[party].handle(request)
            for party, request in ask.requests.items()
        }
        keys = next((request.keys for request in ask.requests.values() if isinstance(request, MeetPeers)), keys)
        try:
            ask = generator.send(replies)
        except StopIteration as stop:
            return stop.value, parties, keys


def test_parties_meet_once_and_after_the_seed():
    present, parties, keys = meet()
    assert present == (1, 2, 3, 4)
    for party in parties.values():
        masks = party.masks
        with pytest.raises(RemoteProtocolError, match="must meet once, after the common seed"):
            party.handle(MeetPeers(keys))
        assert party.masks is masks
    with pytest.raises(RemoteProtocolError, match="must meet once, after the common seed"):
        Introduction(seat=make_seat(1), terms=TERMS).handle(MeetPeers(keys))


def test_parties_meet_a_quorum_or_nobody():
    def miss(*numbers):
        return lambda party, request: isinstance(request, MeetPeers) and party in numbers

    assert meet(miss(4))[0] == (1, 2, 3)
    with pytest.raises(TooFewPartiesError):
        meet(miss(3, 4))
    _, parties, keys = meet(miss(4))
    with pytest.raises(RemoteProtocolError, match="at least 3 parties must be introduced"):
        parties[4].handle(MeetPeers((keys[0], keys[3])))
    assert parties[4].masks is None
    parties[4].handle(MeetPeers(keys))
    assert parties[4].masks is not None
