"""Identities and session keys: known answers, and every way to tamper is noticed."""

import pytest

from cloister.crypto import (
    Identity,
    SeededEntropy,
    SessionKey,
)
from cloister.errors import RemoteProtocolError

SESSION = bytes(range(16))


class FixedEntropy:
    is_simulation = True

    def __init__(self, hexadecimal):
        self._bytes = bytes.fromhex(hexadecimal)

    def bytes(self, count):
        assert count == len(self._bytes)
        return self._bytes


def key(label):
    return SessionKey(SeededEntropy(1, label))


def test_ed25519_known_answer():  # RFC 8032, 7.1, test 1
    identity = Identity(FixedEntropy("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60"))
    assert identity.public_bytes.hex() == "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"


def test_x25519_known_answer():  # RFC 7748, 6.1
    alice = SessionKey(FixedEntropy("77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a"))
    bob = "de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f"
    assert alice.public_bytes.hex() == "8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a"
    shared = "4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742"
    assert alice.exchange(bytes.fromhex(bob)).hex() == shared


@pytest.mark.parametrize("point", [bytes(32), b"\x01" + bytes(31), b"short", bytes(33)])
def test_points_of_small_order_and_wrong_length_are_refused(point):
    with pytest.raises(RemoteProtocolError, match="large order"):
        key("a").exchange(point)


def test_a_session_key_is_bound_to_identity_session_and_owner():
    identity, other = Identity(SeededEntropy(1, "me")), Identity(SeededEntropy(1, "you"))
    signed = identity.sign_session_key(key("s"), SESSION, owner=2)
    signed.verify(identity.public_bytes, SESSION)
    for bad, who, session in [
        (signed, other.public_bytes, SESSION),
        (signed, identity.public_bytes, bytes(16)),
        (type(signed)(3, signed.public_key, signed.signature), identity.public_bytes, SESSION),
        (type(signed)(2, key("t").public_bytes, signed.signature), identity.public_bytes, SESSION),
        (type(signed)(2, signed.public_key, bytes(64)), identity.public_bytes, SESSION),
        (type(signed)(2, signed.public_key[:-1], signed.signature), identity.public_bytes, SESSION),
        (type(signed)(2, signed.public_key, b""), identity.public_bytes, SESSION),
    ]:
        with pytest.raises(RemoteProtocolError):
            bad.verify(who, session)


def test_a_signed_key_of_small_order_is_refused_when_it_is_verified():
    identity = Identity(SeededEntropy(1, "me"))

    class SmallOrder:
        public_bytes = bytes(32)

    signed = identity.sign_session_key(SmallOrder(), SESSION, owner=1)
    with pytest.raises(RemoteProtocolError, match="large order"):
        signed.verify(identity.public_bytes, SESSION)
