"""Messages in chunks arrive whole, in bounded memory, whatever a sender claims."""

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloister.errors import RemoteProtocolError
from cloister.runtime.remote import chunks
from cloister.runtime.remote.chunks import CHUNK_BYTES, Assembler, split

LIMIT = 8 * CHUNK_BYTES


@pytest.mark.parametrize("head", [0, 10, 3000, CHUNK_BYTES - 3])
@pytest.mark.parametrize("length", [0, 1, CHUNK_BYTES - 13, CHUNK_BYTES - 12, CHUNK_BYTES + 1, 3 * CHUNK_BYTES])
def test_a_message_and_its_frame_arrive_whole(head, length):
    message, frame = bytes(range(256)) * (head // 256) + bytes(head % 256), b"\7" * length
    assembler, pieces = Assembler(), list(split(message, frame))
    assert all(len(piece) == CHUNK_BYTES + 1 for piece in pieces[:-1])
    assert len(pieces) <= 2 + (length + head) // CHUNK_BYTES
    assert [assembler.feed(piece, LIMIT) for piece in pieces] == [None] * (len(pieces) - 1) + [(message, frame)]
    assert assembler.feed(b"\0\4\0\0next", LIMIT) == (b"next", b"")


@given(st.lists(st.tuples(st.binary(max_size=20), st.binary(max_size=2000)), max_size=5), st.integers(24, 700))
def test_any_messages_in_a_row(sent, size):
    old, chunks.CHUNK_BYTES = chunks.CHUNK_BYTES, size
    try:
        assembler = Assembler()
        got = [assembler.feed(piece, 5000) for both in sent for piece in split(*both)]
    finally:
        chunks.CHUNK_BYTES = old
    assert [both for both in got if both is not None] == sent


@pytest.mark.parametrize("chunk", [b"\0", b"\0\0\0", b"\0\5\0\0four", b"\0\0\0\xff" + bytes(100)])
def test_a_message_that_is_not_in_its_first_chunk_is_refused(chunk):
    """Whatever length it claims; nothing is put aside for it."""
    with pytest.raises(RemoteProtocolError, match="first chunk"):
        Assembler().feed(chunk, LIMIT)


@pytest.mark.parametrize(
    "chunk", [b"", b"\2rest", b"\1too short to go on", b"\1" + bytes(CHUNK_BYTES + 1), b"\0" + bytes(CHUNK_BYTES + 1)]
)
def test_what_is_no_chunk_is_refused(chunk):
    with pytest.raises(RemoteProtocolError, match="full chunks"):
        Assembler().feed(chunk, LIMIT)


def test_nothing_beyond_the_limit_is_kept():
    assembler, full = Assembler(), b"\1" + bytes(CHUNK_BYTES)
    tracemalloc.start()
    try:
        for _ in range(3):
            assert assembler.feed(bytes(full), 3 * CHUNK_BYTES) is None
        with pytest.raises(RemoteProtocolError, match="at most"):
            assembler.feed(bytes(full), 3 * CHUNK_BYTES)
        assert tracemalloc.get_traced_memory()[1] < 8 * CHUNK_BYTES
    finally:
        tracemalloc.stop()


def test_a_long_message_is_cut_as_it_is_sent():
    """Its chunks are not all there at once."""
    message = bytes(64 * CHUNK_BYTES)
    tracemalloc.start()
    try:
        for _ in split(b"head", message):
            pass
        assert tracemalloc.get_traced_memory()[1] < 4 * CHUNK_BYTES
    finally:
        tracemalloc.stop()
