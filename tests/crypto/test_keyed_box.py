"""Boxes under a shared secret: they open in their context only, and no bit of them can be changed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloister.crypto.keyed_box import TAG_BYTES, open_keyed, seal_keyed
from cloister.errors import RemoteProtocolError

SECRET = bytes(range(32))


@given(st.binary(max_size=100))
def test_a_box_opens_under_its_secret_in_its_context_only(plaintext):
    box = seal_keyed(plaintext, SECRET, "sum", 1, 2)
    assert len(box) == len(plaintext) + TAG_BYTES
    assert open_keyed(box, SECRET, "sum", 1, 2) == plaintext
    for secret, context in [(bytes(32), ("sum", 1, 2)), (SECRET, ("sum", 2, 1)), (SECRET, ("sum", 1)), (SECRET, ())]:
        with pytest.raises(RemoteProtocolError, match="sealed under the secret"):
            open_keyed(box, secret, *context)


@given(st.integers(0, 8 * (20 + TAG_BYTES) - 1))
def test_no_bit_can_be_changed(place):
    box = bytearray(seal_keyed(bytes(20), SECRET, 1))
    box[place // 8] ^= 1 << place % 8
    with pytest.raises(RemoteProtocolError):
        open_keyed(bytes(box), SECRET, 1)


@given(st.binary(max_size=80))
def test_garbage_is_not_a_box(garbage):
    with pytest.raises(RemoteProtocolError):
        open_keyed(garbage, SECRET, 1)


def test_contexts_have_independent_keystreams():
    boxes = {seal_keyed(bytes(32), SECRET, "sum", number) for number in range(50)}
    assert len(boxes) == 50
