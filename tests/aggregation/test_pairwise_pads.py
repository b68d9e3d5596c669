"""Pads cancel over exactly the members they were made for, and hide a vector from all who do not know the secret."""

import itertools

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from cloister.aggregation.pairwise_pads import PairwisePads, derive_mask_key, expand_mask
from cloister.crypto import derive_key
from cloister.errors import LocalProtocolError
from cloister.numeric import RING32, RING64, Ring

SESSION = bytes(16)


def secret(i, j, seed=0):
    return derive_key(b"test", seed, min(i, j), max(i, j))


def pads_of(parties, ring=RING32, session=SESSION, seed=0):
    return {
        i: PairwisePads(
            number=i,
            secrets={j: secret(i, j, seed) for j in range(1, parties + 1) if j != i},
            session=session,
            ring=ring,
        )
        for i in range(1, parties + 1)
    }


@given(st.sampled_from([RING32, RING64]), st.integers(2, 6), st.data())
def test_pads_cancel_over_the_members(ring: Ring, parties, data):
    members = data.draw(st.sets(st.integers(1, parties), min_size=2))
    pads = pads_of(parties, ring)
    total = ring.sum([pads[i].pad(members, 5, 3, 1) for i in sorted(members)])
    assert total.dtype == ring.dtype
    assert not total.any()


@pytest.mark.parametrize("parties", [3, 4])
def test_no_smaller_set_of_pads_cancels(parties):
    pads = pads_of(parties)
    everyone = range(1, parties + 1)
    for size in range(1, parties):
        for some in itertools.combinations(everyone, size):
            assert RING32.sum([pads[i].pad(everyone, 8, 1, 1) for i in some]).any()


def test_parties_that_were_told_different_things_do_not_cancel():
    pads = pads_of(3)
    for other in [((1, 2), 1, 1), ((1, 2, 3), 2, 1), ((1, 2, 3), 1, 2)]:
        members, *context = other
        assert (
            pads[1].pad((1, 2, 3), 8, 1, 1) + pads[2].pad(members, 8, *context) + pads[3].pad((1, 2, 3), 8, 1, 1)
        ).any()
    assert (pads_of(2)[1].pad((1, 2), 8) + pads_of(2, session=bytes(15) + b"1")[2].pad((1, 2), 8)).any()


def test_known_answer_against_plain_chacha20():
    """The lower number adds the keystream, the higher subtracts it."""
    key = derive_key(secret(1, 2), "pairwise pad", SESSION, 32, 1, 2, 7, 4, 2, 1, 2)
    stream = Cipher(ChaCha20(key, bytes(16)), mode=None).encryptor().update(bytes(40))
    words = np.frombuffer(stream, "<u4")
    assert np.array_equal(pads_of(2)[1].pad((1, 2), 10, 7, 4), words)
    assert np.array_equal(pads_of(2)[2].pad((1, 2), 10, 7, 4), -words)


def test_pads_are_uniform_and_fresh_in_every_attempt():
    rounds = [pads_of(2)[1].pad((1, 2), 256, round_, attempt) for round_ in range(20) for attempt in range(2)]
    counts = np.bincount(np.concatenate(rounds).view(np.uint8), minlength=256)
    assert stats.chisquare(counts).pvalue > 1e-6
    assert len({pad.tobytes() for pad in rounds}) == 40


def test_strangers_have_no_pad():
    for members in [(2, 3), (1, 9)]:
        with pytest.raises(LocalProtocolError, match="share a secret"):
            pads_of(3)[1].pad(members, 4)


def test_own_masks_differ_by_owner_and_attempt_and_are_uniform():
    keys = [derive_mask_key(bytes(32), SESSION, owner, attempt) for owner in range(8) for attempt in range(8)]
    assert len(set(keys)) == 64
    words = np.concatenate([expand_mask(key, 64, RING64) for key in keys])
    assert stats.chisquare(np.bincount(words.view(np.uint8), minlength=256)).pvalue > 1e-6
