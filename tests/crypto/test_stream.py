"""The keystream is ChaCha20, domains are separated, words cover the whole ring."""

import hashlib
import hmac

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from cloister.crypto import Stream, derive_key, encode_context, make_entropy
from cloister.errors import ConfigError

ALPHA = 1e-6


@pytest.mark.parametrize(
    ("key", "nonce", "skip", "block"),
    [
        (  # RFC 8439, A.1, test vector 1
            bytes(32),
            bytes(12),
            0,
            "76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7"
            "da41597c5157488d7724e03fb8d84a376a43b8f41518a11cc387b669b2ee6586",
        ),
        (  # RFC 8439, 2.3.2: block 1
            bytes(range(32)),
            bytes.fromhex("000000090000004a00000000"),
            64,
            "10f1e7e4d13b5915500fdd1fa32071c4c7d1f4c733c068030422aa9ac3d46c4e"
            "d2826446079faa0914c2d705d98b02a2b5129cd1de164eb9cbd083e8a2503c4e",
        ),
    ],
)
def test_keystream_known_answers(key, nonce, skip, block):
    stream = Stream(key, nonce)
    stream.bytes(skip)
    assert stream.bytes(64).hex() == block


def test_derive_key_is_hkdf_sha256():
    # RFC 5869 written out: extract, then one block of expand.
    info = encode_context("mask", b"session", 32)
    extracted = hmac.new(b"cloister/v1", b"secret", hashlib.sha256).digest()
    assert derive_key(b"secret", "mask", b"session", 32) == hmac.new(extracted, info + b"\x01", hashlib.sha256).digest()


contexts = st.lists(st.one_of(st.text(max_size=5), st.binary(max_size=5), st.integers(-(2**64), 2**64)), max_size=4)


@given(contexts, contexts)
def test_contexts_are_encoded_injectively(one, other):
    assert (encode_context(*one) == encode_context(*other)) == (
        [(type(x), x) for x in one] == [(type(x), x) for x in other]
    )


def decode_context(raw):
    """Read a context back; that this works for every context proves that no two have one encoding."""
    parts = []
    while raw:
        tag, size, raw = raw[:1], int.from_bytes(raw[1:5], "little"), raw[5:]
        part, raw = raw[:size], raw[size:]
        assert len(part) == size
        read = {b"b": bytes, b"s": bytes.decode, b"i": lambda part: int.from_bytes(part, "little", signed=True)}[tag]
        parts.append(read(part))
    return tuple(parts)


@given(contexts, st.binary(max_size=700))
def test_a_context_can_be_read_back(context, long):
    assert decode_context(encode_context(*context, long)) == (*context, long)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("ab", "c"), ("a", "bc")),
        (("a", "b"), ("ab",)),
        (("a", ""), ("a",)),
        (("a",), (b"a",)),
        ((1,), ((1).to_bytes(16, "little"),)),
        ((1,), ("\x01" + "\0" * 15,)),
        ((-1,), (2**64 - 1,)),
        ((b"x" * 256,), (b"", b"x" * 251)),
        ((b"s\x01\0\0\0a",), ("a",)),
        (("a", b"b"), (b"a", "b")),
    ],
)
def test_contexts_that_a_careless_encoding_would_confuse(one, other):
    assert encode_context(*one) != encode_context(*other)
    assert derive_key(b"secret", *one) != derive_key(b"secret", *other)
    parent = Stream.from_seed(9, "parent")
    assert parent.child(*one).bytes(32) != parent.child(*other).bytes(32)


def test_any_key_bit_changes_the_words():
    key = bytes(range(32))
    seen = {Stream(key).bytes(64)}
    for bit in range(256):
        flipped = bytearray(key)
        flipped[bit // 8] ^= 1 << (bit % 8)
        seen.add(Stream(bytes(flipped)).bytes(64))
    assert len(seen) == 257


@pytest.mark.parametrize("dtype", [np.uint32, np.uint64])
def test_words_are_uniform_over_the_whole_ring(dtype):
    words = Stream.from_seed(1, "uniform").words(1 << 18, dtype)
    bits = np.dtype(dtype).itemsize * 8
    for shift in (0, bits // 2, bits - 8):  # low, middle and high byte
        counts = np.bincount(((words >> dtype(shift)) & dtype(255)).astype(np.int64), minlength=256)
        assert stats.chisquare(counts).pvalue > ALPHA


@pytest.mark.parametrize(("dtype", "last"), [(np.uint32, 2**32 - 1), (np.uint64, 2**64 - 1)])
def test_the_rings_last_value_can_occur(dtype, last, monkeypatch):
    monkeypatch.setattr(Stream, "bytes", lambda self, count: b"\xff" * count)
    assert int(Stream(bytes(32)).words(1, dtype)[0]) == last


@given(st.integers(1, 2**63), st.integers(0, 50))
def test_integers_stay_below_high(high, count):
    values = Stream.from_seed(3, "integers").integers(high, count)
    assert values.shape == (count,)
    assert all(0 <= int(value) < high for value in values)


def test_integers_have_no_modulo_bias():
    high = 3 * 2**62  # a plain remainder would give [0, 2^62) twice the weight
    assert high > 2**63
    with pytest.raises(ValueError, match="high must be"):
        Stream.from_seed(1, "x").integers(high, 1)
    high = 3 * 2**61
    values = Stream.from_seed(5, "bias").integers(high, 30000)
    thirds = np.bincount((values // 2**61).astype(np.int64), minlength=3)
    assert stats.chisquare(thirds).pvalue > ALPHA


def test_uniform_and_normal_have_their_distributions():
    stream = Stream.from_seed(2, "moments")
    uniform = stream.uniform(200, 100)
    assert uniform.shape == (200, 100)
    assert uniform.min() >= 0
    assert uniform.max() < 1
    assert stats.kstest(uniform.ravel(), "uniform").pvalue > ALPHA
    assert stats.kstest(stream.normal(20000), "norm").pvalue > ALPHA


def test_no_word_makes_a_normal_number_that_is_not_finite():
    class Ends(Stream):
        def bytes(self, count):
            return bytes(count // 2) + b"\xff" * (count // 2)

    low, high = Ends(bytes(32)).normal(2)
    assert -9 < low < -8
    assert 8 < high < 9


def test_children_differ_and_do_not_advance_the_parent():
    parent = Stream.from_seed(9, "parent")
    first = parent.child("a").bytes(32)
    assert first == parent.child("a").bytes(32)
    assert first != parent.child("b").bytes(32)
    assert parent.bytes(32) == Stream.from_seed(9, "parent").bytes(32)
    assert sorted(parent.permutation(100)) == list(range(100))


def test_a_stream_refuses_short_keys():
    with pytest.raises(ValueError, match="32 bytes"):
        Stream(b"short")


def test_entropy_says_what_it_is_and_secure_mode_refuses_a_seed():
    assert not make_entropy("a").is_simulation
    assert make_entropy("a", seed=1).is_simulation
    assert make_entropy("a", seed=1).bytes(8) == make_entropy("a", seed=1).bytes(8)
    assert make_entropy("a", seed=1).bytes(8) != make_entropy("b", seed=1).bytes(8)
    assert make_entropy("a").bytes(16) != make_entropy("a").bytes(16)
    with pytest.raises(ConfigError, match="must have no seed"):
        make_entropy("a", seed=1, secure=True)
