"""Masked sums are exact for every set of dropouts, masks are independent and separated by their purpose."""

import hashlib
import hmac
import itertools
import struct
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from cloister.aggregation import MaskSchedule, masked_sum, pack_members, unpack_members
from cloister.errors import LocalProtocolError, RemoteProtocolError
from cloister.numeric import RING32, RING64

SEED, SESSION = bytes(32), bytes(16)


def schedule(*, seed=SEED, session=SESSION, ring=RING32, parties=3):
    return MaskSchedule(seed, session=session, ring=ring, parties=parties)


def masked_round(values, members, *, ring=RING32, round_=1):
    """One round with only ``members`` arriving; party p contributes values[p - 1]."""
    masks = schedule(ring=ring, parties=len(values))
    total = ring.sum([masks.mask(ring.encode(np.array(values[m - 1])), round_, m) for m in members])
    return masks, total


def unmask(masks, total, members, *, parties, round_=1):
    """Take off the masks of exactly these members."""
    return total - masks.sum_masks(round_, pack_members(members, parties), len(total))


@pytest.mark.parametrize("parties", range(1, 7))
@pytest.mark.parametrize("ring", [RING32, RING64])
def test_every_dropout_set_gives_the_exact_sum_of_who_stayed(parties, ring):
    values = [[10**p, -(10**p), p] for p in range(parties)]  # each party in its own digit: a 2 is a double count
    for size in range(1, parties + 1):
        for members in itertools.combinations(range(1, parties + 1), size):
            masks, masked = masked_round(values, members, ring=ring)
            total = unmask(masks, masked, members, parties=parties)
            assert ring.decode(total).tolist() == np.sum([values[m - 1] for m in members], axis=0).tolist()


@given(st.integers(1, 40), st.data())
def test_larger_groups_too(parties, data):
    numbers = st.integers(-(2**20), 2**20)
    values = [data.draw(st.lists(numbers, min_size=2, max_size=2)) for _ in range(parties)]
    members = data.draw(st.sets(st.integers(1, parties), min_size=1))
    round_ = data.draw(st.integers(1, 2**30))
    masks, masked = masked_round(values, members, round_=round_)
    total = unmask(masks, masked, members, parties=parties, round_=round_)
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


def test_rounds_may_differ_in_length():
    masks = schedule()
    for round_, length in enumerate([5, 1, 600], start=1):
        masked = RING32.sum([masks.mask(RING32.encode(np.full(length, m)), round_, m) for m in (1, 3)])
        assert RING32.decode(unmask(masks, masked, (1, 3), parties=3, round_=round_)).tolist() == [4] * length


@pytest.mark.parametrize("values", [np.zeros(3, np.int64), np.zeros(3, np.uint64), np.zeros((3, 1), np.uint32)])
def test_only_vectors_of_ring_elements_are_masked(values):
    """In a wider word a sum does not wrap around: its carry would tell of the value under the mask."""
    with pytest.raises(LocalProtocolError, match="uint32 words"):
        schedule().mask(values, 1, 1)


@pytest.mark.parametrize(("members", "streams"), [(range(1, 41), 2), (range(1, 40), 2), ([7], 2), ([1, 2, 5, 40], 6)])
def test_unmasking_costs_two_streams_for_each_run_of_members(members, streams, monkeypatch):
    masks, masked = masked_round([[number] for number in range(40)], members)
    started = []

    class Counted(masked_sum.Stream):
        def __init__(self, key, nonce):
            started.append(nonce)
            super().__init__(key, nonce)

    monkeypatch.setattr(masked_sum, "Stream", Counted)
    unmask(masks, masked, members, parties=40)
    assert len(started) == streams


class Spelled(MaskSchedule):
    """Masks from given numbers f(0), ..., f(M) in place of keystreams."""

    def __init__(self, spelled):
        super().__init__(SEED, session=SESSION, ring=RING32, parties=len(spelled) - 1)
        self.spelled = spelled

    def _potential(self, round_, index, length):
        return np.full(length, self.spelled[index], np.uint32)


@pytest.mark.parametrize("parties", [1, 2, 3, 4])
@pytest.mark.parametrize("values", [(0, 0, 0, 0), (3, 1, 2, 1)])
def test_masked_vectors_of_all_parties_are_jointly_uniform(parties, values):
    """Exhaustively modulo 4, a quotient of the ring: over all f, every view (c_1, ..., c_M) comes up equally often."""
    views = Counter()
    for spelled in itertools.product(range(4), repeat=parties + 1):
        masks = Spelled(spelled)
        sent = [masks.mask(np.array([values[p - 1]], np.uint32), 1, p) for p in range(1, parties + 1)]
        views[tuple(int(vector[0]) % 4 for vector in sent)] += 1
    assert views == dict.fromkeys(itertools.product(range(4), repeat=parties), 4)


@pytest.mark.parametrize("ring", [RING32, RING64])
def test_the_last_value_of_the_ring_is_a_mask_too(ring, monkeypatch):
    last = 2**ring.bits - 1

    class Ends:
        """f(1) is the ring's last value and every other f is 0: the masks are -1, 1, 0."""

        def __init__(self, key, nonce):
            self._value = last if int.from_bytes(nonce[8:], "little") == 1 else 0

        def words(self, count, dtype):
            return np.full(count, self._value, dtype)

    monkeypatch.setattr(masked_sum, "Stream", Ends)
    assert [schedule(ring=ring).mask_of(1, party, 2).tolist() for party in (1, 2, 3)] == [[last] * 2, [1] * 2, [0] * 2]
    for members in ([1], [2], [1, 2], [1, 3], [2, 3], [1, 2, 3]):
        masks, masked = masked_round([[5], [6], [7]], members, ring=ring)
        total = unmask(masks, masked, members, parties=3)
        assert total.tolist() == [sum(4 + m for m in members)]


def test_masks_are_separated_by_seed_session_round_party_and_ring():
    base = schedule()
    views = {
        base.mask_of(1, 1, 8).tobytes(),
        base.mask_of(1, 2, 8).tobytes(),
        base.mask_of(2, 1, 8).tobytes(),
        base.mask_of(2**32 + 1, 1, 8).tobytes(),  # no wrap-around of the round
        schedule(session=b"\x01" + bytes(15)).mask_of(1, 1, 8).tobytes(),
        schedule(seed=b"\x01" + bytes(31)).mask_of(1, 1, 8).tobytes(),
        schedule(ring=RING64).mask_of(1, 1, 4).tobytes(),
    }
    assert len(views) == 7
    assert base.mask_of(1, 1, 8).tobytes() in views  # and each is reproducible


def test_any_seed_bit_changes_the_mask():
    seen = {schedule().mask_of(1, 1, 4).tobytes()}
    for bit in range(256):
        seed = bytearray(SEED)
        seed[bit // 8] ^= 1 << (bit % 8)
        seen.add(schedule(seed=bytes(seed)).mask_of(1, 1, 4).tobytes())
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


def slow_mask(seed, session, bits, round_, party, length):
    """The schedule written out: HKDF of the seed, ChaCha20 with nonce (round, index), differences."""
    info = b"s\x04\0\0\0mask" + b"b\x10\0\0\0" + session + b"i\x10\0\0\0" + bits.to_bytes(16, "little")
    extracted = hmac.new(b"cloister/v1", seed, hashlib.sha256).digest()
    key = hmac.new(extracted, info + b"\x01", hashlib.sha256).digest()

    def potential(index):
        nonce = round_.to_bytes(8, "little") + index.to_bytes(4, "little")
        blocks = [chacha20_block(key, counter, nonce) for counter in range(length * bits // 512 + 1)]
        stream = b"".join(struct.pack("<16I", *block) for block in blocks)
        width = bits // 8
        return [int.from_bytes(stream[at : at + width], "little") for at in range(0, length * width, width)]

    return [(f - g) % 2**bits for f, g in zip(potential(party), potential(party - 1), strict=True)]


@pytest.mark.parametrize("ring", [RING32, RING64])
def test_masks_agree_with_an_independent_implementation(ring):
    """The schedule is part of the protocol: two implementations must meet in every bit."""
    seed, session = bytes(range(32)), bytes(range(16))
    masks = schedule(seed=seed, session=session, ring=ring, parties=6)
    slow = {party: slow_mask(seed, session, ring.bits, 7, party, 20) for party in range(1, 7)}
    for party, mask in slow.items():
        assert masks.mask_of(7, party, 20).tolist() == mask
    for members in ([1, 2, 3, 4, 5, 6], [2, 3], [1, 3, 4, 6]):
        masked = ring.sum([np.array([(m + x) % 2**ring.bits for x in slow[m]], ring.dtype) for m in members])
        total = unmask(masks, masked, members, parties=6, round_=7)
        assert total.tolist() == [sum(members)] * 20


@pytest.mark.parametrize("ring", [RING32, RING64])
def test_masked_vectors_are_uniform_whatever_is_inside(ring):
    masks = schedule(ring=ring)
    for value in (0, 1, ring.largest):
        vector = masks.mask(ring.encode(np.full(1 << 16, value)), 1, 1)
        high = (vector >> ring.dtype(ring.bits - 8)).astype(np.int64)
        assert stats.chisquare(np.bincount(high, minlength=256)).pvalue > 1e-6
