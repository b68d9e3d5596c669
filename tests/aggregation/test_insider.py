"""A party that lies together with the coordinator: it knows the seed, so it can make any box in anybody's name."""

import numpy as np
import pytest
from msgspec.structs import replace

from cloister.aggregation import pack_members
from cloister.aggregation.messages import Attempt, OpenTotal, PartyBox
from cloister.aggregation.own_masks import derive_mask_key, expand_mask
from cloister.aggregation.statements import Place, append_check_words, digest_body, state_attempt
from cloister.crypto.sealing import open_keyed, seal_keyed
from cloister.errors import RemoteProtocolError
from cloister.numeric import RING32, RING64
from tests.aggregation.sums import (
    ELSEWHERE,
    PLACE,
    SEED,
    SESSION,
    Coalition,
    identity,
    make_masks,
    make_seat,
    make_terms,
    pair_secret,
    vector_of,
)
from tests.aggregation.test_lying_coordinator import EVERYONE, FIRST, NEXT, SECOND, TERMS, Told, play


def forge(masks, plaintext, purpose, attempt, sender, detail=0):
    return PartyBox(sender, seal_keyed(plaintext, SEED, *masks.context(purpose, attempt, sender, detail)))


def reopen(masks, total, digest):
    """The openings of a total, made anew for another digest."""
    for one in total.openings:
        context = masks.context("opening", total.attempt, one.party, digest_body(total.body))
        key = open_keyed(one.box, SEED, *context)
        yield forge(masks, key, "opening", total.attempt, one.party, digest)


def test_another_total_with_forged_openings_is_refused_by_whoever_opened_one():
    told = Told()
    for party in EVERYONE:
        told.answer(party, FIRST)
    for party in EVERYONE:
        told.open(party, FIRST)
    true, masks = told.make_total(FIRST), told.states[6].masks
    body = bytes([true.body[0] ^ 1]) + true.body[1:]
    lie = replace(true, body=body, openings=tuple(reopen(masks, true, digest_body(body))))
    for party in EVERYONE:
        with pytest.raises(RemoteProtocolError, match="must be the one that we opened"):
            told.states[party].masks.read(lie, PLACE, 1)


def test_keys_and_shares_of_a_wrong_length_are_typed_errors():
    told = play(Told())
    true, masks = told.make_total(NEXT), told.states[1].masks
    digest, asked = digest_body(true.body), pack_members([5, 6], 6)
    for length in (0, 31, 33):
        forged = forge(masks, bytes(length), "opening", NEXT, 1, digest)
        with pytest.raises(RemoteProtocolError, match="key must have 32 bytes"):
            masks.read(replace(true, openings=(forged, *true.openings[1:])), PLACE, 1)
    for length in (0, 33, 65, 99):
        forged = forge(masks, bytes(length), "shares", NEXT, 1, asked)
        with pytest.raises(RemoteProtocolError, match=r"each must give 2 shares|shares must be"):
            masks.read(replace(true, restored=(forged, *true.restored[1:])), PLACE, 1)
    assert masks.read(true, PLACE, 1).elements == [111111]


def restore(change):
    """All but the fifth open; the first is then asked for shares with votes or shares that are changed."""
    told = Told()
    for party in EVERYONE[:5]:
        told.answer(party, SECOND)
    for party in EVERYONE[:4]:
        told.open(party, SECOND)
    masks = told.states[1].masks
    return told.states[1].after(change(masks, told.make_restore(1, SECOND, [5])))


def test_nobody_votes_in_the_name_of_others():
    """Three votes and one that another party has signed, or that is for something else: shares are not given."""
    statement = state_attempt(SESSION, PLACE, SECOND)
    for signature in (
        identity(6).sign("cloister opened", statement),
        identity(2).sign("cloister found", statement),
        identity(2).sign("cloister opened", state_attempt(SESSION, PLACE, FIRST)),
        bytes(64),
        b"",
    ):
        assert restore(lambda masks, request, signature=signature: swap(masks, request, signature)) is None
    true = identity(2).sign("cloister opened", statement)
    assert restore(lambda masks, request: swap(masks, request, true)) is not None


def swap(masks, request, signature):
    """The second vote with another signature in it."""
    return replace(request, votes=(request.votes[0], forge(masks, signature, "vote", SECOND, 2), *request.votes[2:]))


def test_votes_of_parties_that_do_not_exist_are_typed_errors():
    for stranger in (7, 60000):
        assert (
            restore(
                lambda masks, request, stranger=stranger: replace(
                    request, votes=(*request.votes, forge(masks, bytes(64), "vote", SECOND, stranger))
                )
            )
            is None
        )


def test_a_member_that_deals_a_share_of_a_wrong_length_is_named():
    """Else the helper would send a box of a wrong length, and be left out in its place."""
    context = (SESSION, "mask share", 1, 2, SECOND.members, 5)
    for length in (0, 32, 34):
        box = PartyBox(5, seal_keyed(bytes(length), pair_secret(1, 5), *context))
        assert restore(lambda masks, request, box=box: replace(request, shares=(box,))) is None


def test_check_words_follow_from_the_seed_and_the_statement():
    """Whoever does not know the seed cannot make the words fit."""
    words = {
        append_check_words(vector_of(1), seed, statement, RING32)[1:].tobytes()
        for seed in (SEED, bytes(32))
        for statement in (b"one", b"other")
    }
    assert len(words) == 4


# --- who may ask what, and whom ---------------------------------------------------------------------------------------


def test_a_sum_with_parties_that_were_not_introduced_is_neither_answered_nor_read():
    masks = make_masks(TERMS, 1)
    masks._known = frozenset((1, 2, 3, 4))
    for members in ((1, 2, 3, 4, 5), EVERYONE):
        with pytest.raises(RemoteProtocolError, match="parties that were introduced"):
            masks.answer(Attempt(1, 1, pack_members(members, 6)), PLACE, lambda: vector_of(1))
    with pytest.raises(RemoteProtocolError, match="parties that were introduced"):
        masks.read(play(Told()).make_total(NEXT), PLACE, 1)


def test_a_party_that_has_entered_nothing_answers_and_opens_nothing():
    masks = make_masks(TERMS, 1)
    for refused in (lambda: masks.require_entered(FIRST), lambda: masks.handle(OpenTotal(FIRST, bytes(32)))):
        with pytest.raises(RemoteProtocolError, match="came out of turn"):
            refused()


# --- what boxes and masks are bound to --------------------------------------------------------------------------------


def test_every_box_has_a_context_of_its_own():
    masks = make_masks(TERMS, 1)
    other = make_masks(TERMS, 1, make_seat(1, bytes(16)))
    attempts = (FIRST, SECOND, replace(FIRST, number=2), replace(FIRST, round=2), replace(FIRST, members=b"\x2f"))
    contexts = [
        one.context(purpose, attempt, sender, detail)
        for one in (masks, other)
        for purpose in ("opening", "vote", "shares")
        for attempt in attempts
        for sender in (1, 2)
        for detail in (0, bytes(32), b"\x3f")
    ]
    assert len({*contexts}) == len(contexts) == 2 * 3 * 5 * 2 * 3
    dealt = [
        one._shares._context(attempt, own=False, other=sender)
        for one in (masks, other)
        for attempt in attempts
        for sender in (2, 3)
    ]
    assert len({*dealt}) == len(dealt) == 2 * 5 * 2


def test_a_statement_is_of_one_session_attempt_and_place():
    attempts = (FIRST, SECOND, replace(FIRST, number=2), replace(FIRST, round=2), replace(FIRST, members=b"\x2f"))
    places = (PLACE, ELSEWHERE, Place(link=PLACE.link, subject=b"another"))
    cases = [(session, place, attempt) for session in (SESSION, bytes(16)) for place in places for attempt in attempts]
    assert len({state_attempt(*case) for case in cases}) == len(cases)


def test_entropy_that_repeats_opens_no_other_statement():
    """A machine that is rolled back draws its secrets again: then a mask is still that of one statement."""
    coalition = Coalition(make_terms(3, 2))
    keys = set()
    for members in ({1, 2}, {1, 3}, {1, 2, 3}):
        rolled_back = Coalition(make_terms(3, 2), parties=coalition._parties)
        rolled_back.ask(1, rolled_back.attempt(1, members))
        keys |= {frame.mask_key for frame in rolled_back.frames.values()}
    assert len(keys) == 3


def test_pads_and_masks_of_the_two_rings_share_no_bytes():
    one, other = make_masks(make_terms(3, 2), 1), make_masks(make_terms(3, 2, ring=RING64), 1)
    assert one._pads.pad((1, 2), 8, b"statement").tobytes() != other._pads.pad((1, 2), 4, b"statement").tobytes()
    key = derive_mask_key(b"secret", b"statement")
    assert np.unique(expand_mask(key, 100, RING32)).size == 100
