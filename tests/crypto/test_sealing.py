"""Sealed boxes: they open for their reader in their context only, and no bit of them can be changed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloister.crypto import (
    OVERHEAD_BYTES,
    TAG_BYTES,
    SeededEntropy,
    SessionKey,
    SystemEntropy,
    open_box,
    open_keyed,
    seal_box,
    seal_keyed,
)
from cloister.errors import RemoteProtocolError

SECRET = bytes(range(32))


def key(label):
    return SessionKey(SeededEntropy(1, label))


@given(st.binary(max_size=200))
def test_boxes_open_for_their_recipient_only(plaintext):
    alice, bob, eve = key("alice"), key("bob"), key("eve")
    box = seal_box(plaintext, sender=alice, recipient=bob.public_bytes, context=("seed", 1), entropy=SystemEntropy())
    assert len(box) == len(plaintext) + OVERHEAD_BYTES
    assert open_box(box, recipient=bob, sender=alice.public_bytes, context=("seed", 1)) == plaintext
    for recipient, sender, context in [
        (eve, alice, ("seed", 1)),
        (bob, eve, ("seed", 1)),
        (bob, alice, ("seed", 2)),
    ]:
        with pytest.raises(RemoteProtocolError):
            open_box(box, recipient=recipient, sender=sender.public_bytes, context=context)


def test_every_box_has_a_key_of_its_own():
    """The same text to the same recipient in the same context: two boxes have no byte string in common."""
    alice, bob = key("alice"), key("bob")
    boxes = [
        seal_box(bytes(64), sender=alice, recipient=bob.public_bytes, context=("seed", 1), entropy=SystemEntropy())
        for _ in range(2)
    ]
    heads, bodies = zip(*((box[:32], box[32:]) for box in boxes), strict=True)
    assert len({*heads, alice.public_bytes, bob.public_bytes}) == 4
    assert len(set(bodies)) == 2
    blocks = [body[i : i + 16] for body in bodies for i in range(0, 64, 16)]
    assert len(set(blocks)) == 8


@given(st.integers(0), st.integers(0, 7))
def test_no_bit_of_a_box_can_be_changed(place, bit):
    alice, bob = key("alice"), key("bob")
    box = bytearray(
        seal_box(b"s" * 32, sender=alice, recipient=bob.public_bytes, context=(), entropy=SeededEntropy(2, "e"))
    )
    place %= len(box)
    box[place] ^= 1 << bit
    with pytest.raises(RemoteProtocolError):
        open_box(bytes(box), recipient=bob, sender=alice.public_bytes, context=())


@given(st.binary(max_size=80))
def test_garbage_is_not_a_box(garbage):
    with pytest.raises(RemoteProtocolError):
        open_box(garbage, recipient=key("bob"), sender=key("alice").public_bytes, context=())


@given(st.binary(max_size=100))
def test_a_keyed_box_opens_under_its_secret_in_its_context_only(plaintext):
    box = seal_keyed(plaintext, SECRET, "sum", 1, 2)
    assert len(box) == len(plaintext) + TAG_BYTES
    assert open_keyed(box, SECRET, "sum", 1, 2) == plaintext
    for secret, context in [(bytes(32), ("sum", 1, 2)), (SECRET, ("sum", 2, 1)), (SECRET, ("sum", 1)), (SECRET, ())]:
        with pytest.raises(RemoteProtocolError, match="sealed under the secret"):
            open_keyed(box, secret, *context)


@given(st.integers(0, 8 * (20 + TAG_BYTES) - 1))
def test_no_bit_of_a_keyed_box_can_be_changed(place):
    box = bytearray(seal_keyed(bytes(20), SECRET, 1))
    box[place // 8] ^= 1 << place % 8
    with pytest.raises(RemoteProtocolError):
        open_keyed(bytes(box), SECRET, 1)


@given(st.binary(max_size=80))
def test_garbage_is_not_a_keyed_box(garbage):
    with pytest.raises(RemoteProtocolError):
        open_keyed(garbage, SECRET, 1)


def test_contexts_have_independent_keystreams():
    boxes = {seal_keyed(bytes(32), SECRET, "sum", number) for number in range(50)}
    assert len(boxes) == 50
