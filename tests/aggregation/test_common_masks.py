"""Common masks: a round is answered once, in one attempt, and nothing has to be opened."""

import numpy as np
import pytest
from msgspec.structs import replace

from cloister.aggregation import pack_members
from cloister.aggregation.messages import Attempt, OpenTotal, PartyBox, Total
from cloister.aggregation.statements import write_words
from cloister.errors import RemoteProtocolError
from cloister.numeric import RING32
from tests.aggregation.sums import PLACE, make_masks, make_terms, vector_of

TERMS = make_terms(4, 3, masks="common")


def never():
    raise AssertionError("what is refused must not be charged")


def test_a_round_is_answered_once_and_in_one_attempt():
    masks = make_masks(TERMS, 1)
    masks.answer(Attempt(2, 1, b""), PLACE, lambda: vector_of(1))
    for wrong in (Attempt(2, 1, b""), Attempt(1, 1, b""), Attempt(3, 2, b""), Attempt(3, 1, b"\x0f")):
        with pytest.raises(RemoteProtocolError, match="must be of a round after 2, in one attempt"):
            masks.check(wrong, PLACE)
        with pytest.raises(RemoteProtocolError, match="must be of a round after 2, in one attempt"):
            masks.answer(wrong, PLACE, never)
    with pytest.raises(RemoteProtocolError, match="are not opened"):
        masks.handle(OpenTotal(Attempt(2, 1, b""), bytes(32)))
    masks.answer(Attempt(3, 1, b""), PLACE, lambda: vector_of(1))


def test_only_a_total_over_a_quorum_with_nothing_to_open_is_read():
    def total(numbers):
        replies = [make_masks(TERMS, n).answer(Attempt(1, 1, b""), PLACE, lambda n=n: vector_of(n)) for n in numbers]
        body = write_words(RING32.sum([words_of(reply.vector) for reply in replies]))
        return Total(Attempt(1, 1, pack_members(numbers, 4)), body)

    reader, true = make_masks(TERMS, 4), total((1, 2, 3))
    for wrong in (
        total((1, 2)),
        replace(true, attempt=replace(true.attempt, number=2)),
        replace(true, openings=(PartyBox(1, b""),)),
        replace(true, restored=(PartyBox(1, b""),)),
    ):
        with pytest.raises(RemoteProtocolError, match="must be over at least 3 parties, in one attempt, with nothing"):
            reader.read(wrong, PLACE, 1)
    assert reader.read(true, PLACE, 1).elements == [111]


def words_of(raw):
    return np.frombuffer(raw, np.uint32)
