"""A6 and A7: masked sums are exact for every set of dropouts, and masks are separated by session, round and party."""

import hashlib
import hmac
import itertools
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from cloister.aggregation import MaskSchedule, pack_members, sum_masked, unpack_members
from cloister.errors import RemoteProtocolError
from cloister.numeric import RING32, RING64

SEED, SESSION = bytes(32), bytes(16)


def schedule(*, seed=SEED, session=SESSION, ring=RING32, length=4, parties=3):
    return MaskSchedule(seed, session=session, ring=ring, length=length, parties=parties)


def masked_round(values, members, *, ring=RING32, round_=1):
    """One round with only ``members`` arriving; party p contributes values[p - 1]."""
    masks = schedule(ring=ring, length=len(values[0]), parties=len(values))
    vectors = {m: masks.mask(ring.encode(np.array(values[m - 1])), round_, m) for m in members}
    return masks, sum_masked(vectors, ring, round_=round_, parties=len(values))


@pytest.mark.parametrize("parties", range(1, 7))
@pytest.mark.parametrize("ring", [RING32, RING64])
def test_every_dropout_set_gives_the_exact_sum_of_who_stayed(parties, ring):
    values = [[10**p, -(10**p), p] for p in range(parties)]  # each party in its own digit: a 2 is a double count
    for size in range(1, parties + 1):
        for members in itertools.combinations(range(1, parties + 1), size):
            masks, aggregate = masked_round(values, members, ring=ring)
            total, seen = masks.unmask(aggregate, members_min=1)
            assert seen == members
            assert ring.decode(total).tolist() == np.sum([values[m - 1] for m in members], axis=0).tolist()


@given(st.integers(1, 40), st.data())
def test_larger_groups_too(parties, data):
    numbers = st.integers(-(2**20), 2**20)
    values = [data.draw(st.lists(numbers, min_size=2, max_size=2)) for _ in range(parties)]
    members = data.draw(st.sets(st.integers(1, parties), min_size=1))
    masks, aggregate = masked_round(values, members, round_=data.draw(st.integers(1, 2**30)))
    total, _ = masks.unmask(aggregate, members_min=1)
    assert RING32.decode(total).tolist() == np.sum([values[m - 1] for m in members], axis=0).tolist()


@given(st.integers(1, 70), st.data())
def test_member_bitmaps_round_trip(parties, data):
    members = data.draw(st.sets(st.integers(1, parties)))
    bitmap = pack_members(members, parties)
    assert len(bitmap) == (parties + 7) // 8
    assert unpack_members(bitmap, parties) == tuple(sorted(members))


@pytest.mark.parametrize(("bitmap", "parties"), [(b"", 1), (b"\x01\x00", 8), (b"\x08", 3), (b"\xff\x02", 9)])
def test_bad_bitmaps_are_refused(bitmap, parties):
    with pytest.raises(RemoteProtocolError, match="bitmap"):
        unpack_members(bitmap, parties)


def test_sums_over_too_few_parties_stay_masked():
    masks, aggregate = masked_round([[1], [2], [3]], [2])
    with pytest.raises(RemoteProtocolError, match="at least 2 parties to be unmasked; got 1"):
        masks.unmask(aggregate, members_min=2)


def test_masks_are_separated_by_seed_session_round_party_and_ring():
    base = schedule(length=8)
    views = {
        base.mask_of(1, 1).tobytes(),
        base.mask_of(1, 2).tobytes(),
        base.mask_of(2, 1).tobytes(),
        base.mask_of(2**32 + 1, 1).tobytes(),  # no wrap-around of the round
        schedule(length=8, session=b"\x01" + bytes(15)).mask_of(1, 1).tobytes(),
        schedule(length=8, seed=b"\x01" + bytes(31)).mask_of(1, 1).tobytes(),
        schedule(length=4, ring=RING64).mask_of(1, 1).tobytes(),
    }
    assert len(views) == 7
    assert base.mask_of(1, 1).tobytes() in views  # and each is reproducible


def test_any_seed_bit_changes_the_mask():
    seen = {schedule().mask_of(1, 1).tobytes()}
    for bit in range(256):
        seed = bytearray(SEED)
        seed[bit // 8] ^= 1 << (bit % 8)
        seen.add(schedule(seed=bytes(seed)).mask_of(1, 1).tobytes())
    assert len(seen) == 257


def chacha20_block(key, counter, nonce):
    """RFC 8439, 2.3, written out in Python integers."""

    def rotate(x, n):
        return (x << n | x >> (32 - n)) & 0xFFFFFFFF

    state = [
        *struct.unpack("<4I", b"expand 32-byte k"),
        *struct.unpack("<8I", key),
        counter,
        *struct.unpack("<3I", nonce),
    ]
    w = list(state)
    for _ in range(10):
        for a, b, c, d in [
            (0, 4, 8, 12),
            (1, 5, 9, 13),
            (2, 6, 10, 14),
            (3, 7, 11, 15),
            (0, 5, 10, 15),
            (1, 6, 11, 12),
            (2, 7, 8, 13),
            (3, 4, 9, 14),
        ]:
            for x, y, z, n in [(a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)]:
                w[x] = (w[x] + w[y]) & 0xFFFFFFFF
                w[z] = rotate(w[z] ^ w[x], n)
    return [(x + y) & 0xFFFFFFFF for x, y in zip(w, state, strict=True)]


def test_masks_agree_with_an_independent_implementation():
    """The schedule is part of the protocol: HKDF of the seed, then ChaCha20 blocks with (round, party) as nonce."""
    seed, session = bytes(range(32)), bytes(range(16))
    info = b"s\x04\0\0\0mask" + b"b\x10\0\0\0" + session + b"i\x10\0\0\0" + (32).to_bytes(16, "little")
    extracted = hmac.new(b"cloister/v1", seed, hashlib.sha256).digest()
    key = hmac.new(extracted, info + b"\x01", hashlib.sha256).digest()
    nonce = (7).to_bytes(8, "little") + (2).to_bytes(4, "little")
    expected = chacha20_block(key, 0, nonce) + chacha20_block(key, 1, nonce)
    assert schedule(seed=seed, session=session, length=32).mask_of(7, 2).tolist() == expected


@pytest.mark.parametrize("ring", [RING32, RING64])
def test_masked_vectors_are_uniform_whatever_is_inside(ring):
    masks = schedule(ring=ring, length=1 << 16)
    for value in (0, 1, ring.largest):
        vector = masks.mask(ring.encode(np.full(1 << 16, value)), 1, 1)
        high = (vector >> ring.dtype(ring.bits - 8)).astype(np.int64)
        assert stats.chisquare(np.bincount(high, minlength=256)).pvalue > 1e-6
