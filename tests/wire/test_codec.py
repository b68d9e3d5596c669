"""Round trips, good and bad vectors, "accepted or RemoteProtocolError, nothing else"."""

import contextlib
import math

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from cloister.aggregation.messages import Answered, Attempt, Total
from cloister.aggregation.seed_agreement import OpenSession, Ready
from cloister.errors import LocalProtocolError, RemoteProtocolError
from cloister.protocols.multiparty_lloyd.messages import CODEC, MaskedRound, NaiveRound
from cloister.wire import Array, Codec
from cloister.wire.codec import DTYPES

SESSION = bytes(range(16))


def frame_of(message, *, step=3, sender=0):
    return CODEC.encode(message, session=SESSION, step=step, sender=sender)


@given(
    st.sampled_from(DTYPES).flatmap(
        lambda dtype: hnp.arrays(
            dtype,
            hnp.array_shapes(max_dims=4, max_side=4),
            elements={"allow_nan": False, "allow_infinity": False} if dtype.kind == "f" else None,
        )
    )
)
def test_arrays_come_back_as_they_went(array):
    packed = msgspec.msgpack.decode(msgspec.msgpack.encode(Array.of(array)), type=Array)
    back = packed.to_numpy(array.dtype.type, *array.shape)
    assert back.dtype == array.dtype
    assert np.array_equal(back, array)


def test_big_endian_and_strided_arrays_travel_little_endian_and_contiguous():
    array = np.arange(6, dtype=">u4").reshape(2, 3)[:, ::2]
    assert Array.of(array).to_numpy(np.uint32, 2, 2).tolist() == [[0, 2], [3, 5]]
    assert Array.of(array).data == bytes.fromhex("00000000 02000000 03000000 05000000")


@pytest.mark.parametrize("array", [np.array(["a"]), np.array([None]), np.array([1j]), np.array([1], dtype=np.float16)])
def test_dtypes_off_the_list_do_not_travel(array):
    with pytest.raises(TypeError, match="must be one of"):
        Array.of(array)


@pytest.mark.parametrize(
    ("packed", "problem"),
    [
        (Array(1, (3,), bytes(12)), "shape"),
        (Array(1, (2, 1), bytes(8)), "shape"),
        (Array(2, (2,), bytes(16)), "uint64"),
        (Array(1, (2,), bytes(7)), "must have 8 bytes; got 7"),
        (Array(1, (2,), b""), "must have 8 bytes; got 0"),
    ],
)
def test_arrays_of_another_kind_are_refused(packed, problem):
    with pytest.raises(RemoteProtocolError, match=problem):
        packed.to_numpy(np.uint32, 2)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_floats_on_the_wire_must_be_finite(bad):
    with pytest.raises(RemoteProtocolError, match="finite"):
        Array.of(np.array([0.0, bad])).to_numpy(np.float64, 2)


def test_a_known_frame():
    """Changing the wire format without changing its version must fail here."""
    total = Total(Attempt(2, 1, b"\x03"), np.array([1, 2**32 - 1], dtype="<u4").tobytes())
    frame = frame_of(MaskedRound(Attempt(3, 1, b""), (total,)), step=5)
    assert frame.hex() == (
        "96 01 a5 6c6c6f7964 c410 000102030405060708090a0b0c0d0e0f 05 00"
        "94 05 93 03 01 c400 91 94 93 02 01 c401 03 c408 01000000 ffffffff 90 90 c0"
    ).replace(" ", "")


def test_round_trip_through_the_envelope():
    message = NaiveRound(4, Array.of(np.zeros((2, 2))))
    envelope = CODEC.open(frame_of(message, step=9), session=SESSION, sender=0)
    assert (envelope.step, envelope.sender) == (9, 0)
    assert CODEC.request(envelope.body) == message


@pytest.mark.parametrize(
    ("frame", "problem"),
    [
        (b"", "envelope"),
        (b"\xc1", "envelope"),
        (b"\x96\x01", "envelope"),
        (msgspec.msgpack.encode([1, "lloyd", SESSION, 0, 0]), "envelope"),
        (msgspec.msgpack.encode([1, "lloyd", SESSION, 0, 0, [3], "extra"]), "envelope"),
        (msgspec.msgpack.encode([2, "lloyd", SESSION, 0, 0, [3]]), "wire version"),
        (msgspec.msgpack.encode([1, "other", SESSION, 0, 0, [3]]), "protocol"),
        (msgspec.msgpack.encode([1, "lloyd", bytes(16), 0, 0, [3]]), "session"),
        (msgspec.msgpack.encode([1, "lloyd", SESSION[:-1], 0, 0, [3]]), "envelope"),
        (msgspec.msgpack.encode([1, "lloyd", SESSION, -1, 0, [3]]), "envelope"),
        (msgspec.msgpack.encode([1, "lloyd", SESSION, 2**31, 0, [3]]), "envelope"),
        (msgspec.msgpack.encode([1, "lloyd", SESSION, 0, 5, [3]]), "sender"),
        (msgspec.msgpack.encode([True, "lloyd", SESSION, 0, 0, [3]]), "envelope"),
        (msgspec.msgpack.encode({"version": 1}), "envelope"),
        (b"\x91" * 100_000, "envelope"),
    ],
)
def test_bad_envelopes_are_refused(frame, problem):
    with pytest.raises(RemoteProtocolError, match=problem):
        CODEC.open(frame, session=SESSION, sender=0)


@pytest.mark.parametrize(
    "body",
    [
        [],
        [99],
        ["OpenSession", b""],
        [1],
        [1, "text instead of bytes"],
        [1, b"", "extra"],
        [5, 0, [], None],
        [5, 2**20, [], None],
        [5, 1, [[1, b"", [7, [2], b""]]], None],
        [5, 1, [[1, b"", [1, [-2], b""]]], None],
        [5, 1, [[1, b"", [1, [1, 1, 1, 1, 1], b"1234"]]], None],
        [5, 1, [[1, b"", [1, [2**41], b""]]], None],
        [4, 1, None],
        None,
        3,
    ],
)
def test_bad_requests_are_refused(body):
    with pytest.raises(RemoteProtocolError, match="request"):
        CODEC.request(msgspec.Raw(msgspec.msgpack.encode(body)))


def test_replies_are_not_requests():
    body = msgspec.Raw(msgspec.msgpack.encode(Answered(bytes(4))))
    assert isinstance(CODEC.reply(body), Answered)
    with pytest.raises(RemoteProtocolError):
        CODEC.request(body)


@given(st.binary(max_size=300))
def test_any_bytes_are_accepted_or_refused(data):
    for parse in (
        lambda: CODEC.open(data, session=SESSION, sender=0),
        lambda: CODEC.request(msgspec.Raw(data)),
        lambda: CODEC.reply(msgspec.Raw(data)),
    ):
        with contextlib.suppress(RemoteProtocolError):
            parse()


def test_oversized_frames_are_refused_on_both_sides():
    small = Codec("lloyd", requests=OpenSession, replies=Ready, limit_bytes=100)
    with pytest.raises(LocalProtocolError, match="at most 100 bytes"):
        small.encode(OpenSession(bytes(100)), session=SESSION, step=0, sender=0)
    with pytest.raises(RemoteProtocolError, match="at most 100 bytes; got 101"):
        small.open(bytes(101), session=SESSION, sender=0)


def test_errors_never_quote_what_was_received():
    canary = "CANARY-4711"
    body = msgspec.Raw(msgspec.msgpack.encode([1, canary]))
    with pytest.raises(RemoteProtocolError) as caught:
        CODEC.request(body)
    assert canary not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__
