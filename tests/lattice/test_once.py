"""A mask is decrypted once, whatever comes with it."""

import hashlib

import numpy as np
import pytest

from cloister.errors import ConfigError, RemoteProtocolError
from cloister.lattice.once import DIGEST_BYTES, DecryptionGuard, digest_mask


def masks(*seeds):
    return np.stack([np.random.default_rng(seed).integers(0, 2**27, (2, 16)).astype(np.uint32) for seed in seeds])


def test_a_second_request_is_refused():
    guard = DecryptionGuard()
    guard.admit(masks(1, 2))
    guard.admit(masks(3))
    for repeated in (masks(1), masks(2), masks(3), masks(4, 2)):
        with pytest.raises(RemoteProtocolError, match="decrypted once"):
            guard.admit(repeated)
    assert guard.masks_spent == 3


def test_a_refused_request_is_not_remembered():
    guard = DecryptionGuard()
    guard.admit(masks(1))
    with pytest.raises(RemoteProtocolError, match="1 of 2"):
        guard.admit(masks(2, 1))
    guard.admit(masks(2))


def test_a_mask_twice_in_one_request_is_refused():
    guard = DecryptionGuard()
    with pytest.raises(RemoteProtocolError, match="1 of 3"):
        guard.admit(masks(1, 2, 1))
    assert guard.masks_spent == 0


def test_one_changed_residue_is_another_mask():
    guard = DecryptionGuard()
    first = masks(1)
    guard.admit(first)
    second = first.copy()
    second[0, 1, 15] ^= 1
    guard.admit(second)
    with pytest.raises(RemoteProtocolError):
        guard.admit(np.asfortranarray(second))


def test_memory_is_bounded_and_nothing_is_forgotten():
    guard = DecryptionGuard(masks_max=3)
    guard.admit(masks(1, 2))
    with pytest.raises(RemoteProtocolError, match="at most 3 masks; 2 are spent and 2 more"):
        guard.admit(masks(3, 4))
    guard.admit(masks(3))
    with pytest.raises(RemoteProtocolError, match="at most 3"):
        guard.admit(masks(4))
    with pytest.raises(RemoteProtocolError, match="decrypted once"):
        guard.admit(masks(1))
    with pytest.raises(ConfigError):
        DecryptionGuard(masks_max=0)


def test_known_digest():
    wanted = hashlib.blake2b(bytes([1, 0, 0, 0, 2, 1, 0, 0]), digest_size=16, person=b"cloister mask").digest()
    digest = digest_mask(np.array([[1, 258]], dtype=np.uint32))
    assert digest == wanted
    assert len(digest) == DIGEST_BYTES
