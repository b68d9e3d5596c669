"""The pads of SecFC's replies: they cancel over the responders, and hide everything else from the coordinator."""

import itertools

import numpy as np
import pytest
from scipy import stats

from cloister.crypto import derive_key
from cloister.field import Field
from cloister.protocols.secfc.holder import CirclePads
from cloister.protocols.secfc.labels import LabelBook
from cloister.protocols.secfc.messages import (
    BeginRounds,
    LabelNews,
    Measure,
)
from cloister.protocols.secfc.sharing import name_sum_share
from cloister.runtime import Fault, FaultKind
from cloister.wire import Array
from tests.protocols.secfc.sessions import OPENING, SecfcSession, drive, spread
from tests.sessions import split

ALPHA = 1e-6


def circle(clients, field, context=(), responders=None, told=None):
    """Every responder's pads; ``told`` gives single clients another context."""
    secrets = {pair: bytes([*pair]) * 16 for pair in itertools.combinations(range(1, clients + 1), 2)}
    numbers = responders or tuple(range(1, clients + 1))
    return {
        number: CirclePads(
            number=number,
            secrets={
                other: secrets[tuple(sorted((number, other)))] for other in range(1, clients + 1) if other != number
            },
            session=bytes(16),
            field=field,
        ).pad(numbers, (50, 2), *((told or {}).get(number, context)))
        for number in numbers
    }


@pytest.mark.parametrize("responders", [(1, 2, 3), (1, 3, 4), (1, 2, 4, 5), (2, 3, 4, 5, 6, 7)])
def test_pads_cancel_over_the_responders_and_over_no_fewer(responders):
    field = Field()
    pads = circle(7, field, responders=responders)
    assert not field.add(pads.values()).any()
    for size in range(1, len(responders)):
        for some in itertools.combinations(responders, size):
            assert np.count_nonzero(field.add([pads[number] for number in some])) == 100
    told = circle(7, field, responders=responders, told={responders[0]: (b"other labels",)})
    assert np.count_nonzero(field.add(told.values())) == 100


def test_pads_are_uniform_over_the_whole_field():
    """Over a small prime: every element equally often, the last one among them."""
    field = Field(moduli=(13,))
    counts = sum(np.bincount(circle(3, field, (at,))[1].ravel().astype(int), minlength=13) for at in range(200))
    assert len(counts) == 13
    assert stats.chisquare(counts).pvalue > ALPHA


def test_all_but_one_pads_are_jointly_uniform(monkeypatch):
    """Exhaustively over a small prime: with every keystream equally likely, so is every (pad_1, ..., pad_{R-1})."""
    field, clients = Field(moduli=(3,)), 4
    edges = [(1, 2), (2, 3), (3, 4), (4, 1)]
    seen = {}
    for values in itertools.product(range(3), repeat=len(edges)):
        chosen = dict(zip(edges, values, strict=True))
        monkeypatch.setattr(
            CirclePads,
            "_keystream",
            lambda self, first, second, shape, context, chosen=chosen: np.full(
                (1, 50, 2), chosen[first, second], dtype=np.uint64
            ),
        )
        pads = tuple(int(pad[0, 0, 0]) for pad in circle(clients, field).values())
        assert sum(pads) % 3 == 0
        seen[pads] = seen.get(pads, 0) + 1
    assert len(seen) == 27
    assert set(seen.values()) == {3}


def test_pads_are_fresh_in_every_attempt_and_round(monkeypatch):
    used, real = [], CirclePads._keystream

    def keep(self, first, second, shape, context):
        words = real(self, first, second, shape, context)
        used.append(((first, second), words.tobytes()))
        return words

    monkeypatch.setattr(CirclePads, "_keystream", keep)
    faults = [Fault(FaultKind.DELAY_REPLY, 2, OPENING + 3), Fault(FaultKind.DROP_REPLY, 3, OPENING + 5)]
    run, _ = SecfcSession(split(spread(20, 2, seed=1), 5), clusters=2, privacy=1).run(faults=faults)
    assert max(run.result.attempts) > 1
    for edge, words in used:
        ends = [(other, same) for other, same in used if same == words]
        assert len(ends) <= 2  # the two ends of an edge
        assert {other for other, _ in ends} == {edge}


def test_all_that_a_reply_depends_on_is_in_the_name_of_its_pad(monkeypatch):
    """Clients that were told different things must not cancel; nor may one pad meet two values."""
    names, real = [], CirclePads.pad

    def keep(self, responders, shape, *context):
        names.append((responders, *context))
        return real(self, responders, shape, *context)

    monkeypatch.setattr(CirclePads, "pad", keep)

    def name_of(owners=b"\x0f", codes=(1, 2, 3) * 4, version=1, attempt=1, responders=b"\x07", columns=(0, 1)):
        roles, _, _ = drive(SecfcSession([spread(3, 2, seed=s) for s in range(4)], seed=11), BeginRounds)
        roles[1].handle(BeginRounds(owners))
        codes = np.array(codes[: 3 * bin(owners[0]).count("1")], dtype=np.uint8)
        news = LabelNews(version, 0, Array.of(np.empty(0, np.uint32)), Array.of(codes))
        roles[1].handle(Measure(news, attempt, responders, columns))
        return names[-1]

    changes = [
        {"owners": b"\x0b"},
        {"owners": b"\x0d"},
        {"codes": (2, 1, 3) * 4},
        {"version": 2},
        {"attempt": 2},
        {"responders": b"\x0b"},
        {"columns": (0, 2)},
        {"columns": (0, 1, 2)},
    ]
    assert name_of() == name_of()
    assert len({name_of(), *(name_of(**change) for change in changes)}) == 1 + len(changes)


def test_pads_of_one_name_differ_between_sets_in_which_a_client_has_the_same_neighbours():
    """Two replies to different sets under one pad would show their difference to the coordinator."""
    field = Field()
    for client, sets in ((2, ((1, 2, 3), (1, 2, 3, 4), (1, 2, 3, 5))), (3, ((2, 3, 4), (1, 2, 3, 4, 5)))):
        pads = [circle(5, field, (b"labels", 1), responders=own)[client] for own in sets]
        for one, other in itertools.combinations(pads, 2):
            assert (one == other).mean() < 0.01


def test_the_mutant_whose_pads_do_not_depend_on_the_responders_is_noticed(monkeypatch):
    real = CirclePads._keystream

    def forget(self, first, second, shape, context):
        return real(self, first, second, shape, context[:-1])

    monkeypatch.setattr(CirclePads, "_keystream", forget)
    field = Field()
    one, other = (circle(5, field, (b"labels", 1), responders=own)[2] for own in ((1, 2, 3), (1, 2, 3, 4)))
    assert np.array_equal(one, other)


def test_no_two_boxes_with_sums_are_sealed_under_one_key():
    """All clients know the secret, so only the names tell the keys of boxes apart."""
    book = LabelBook(records=3, clusters=2)
    names = []
    for version, labels in enumerate(([0, 1, 1], [1, 0, 0]), start=1):
        book.keep(version, np.array(labels, dtype=np.int32))
        names += [
            name_sum_share(session, sender, owners, book)
            for session in (bytes(16), bytes([1] * 16))
            for sender in (1, 2)
            for owners in (b"\x03", b"\x07")
        ]
    assert len({derive_key(bytes(32), *name) for name in names}) == 16
