"""Levels: ciphertexts are divided exactly, keys are restricted to the same secrets."""

import numpy as np
import pytest

from cloister.crypto import Stream
from cloister.errors import LocalProtocolError
from cloister.lattice.encryption import decrypt, encrypt_public
from cloister.lattice.levels import parameters_at, restrict_public_keys, restrict_secret_keys, switch_level
from cloister.lattice.parameters import Parameters
from cloister.lattice.products import encrypt_lsb
from tests.lattice import slow_products
from tests.lattice.test_products import draw_messages, lift, make_keys, phases

PARAMETERS = Parameters.make(4096, 4, 257)


def encrypt(t=257, factor=1):
    parameters = Parameters.make(4096, 4, t)
    keys, public = make_keys(parameters)
    messages = draw_messages(parameters, 2)
    return keys, messages, encrypt_lsb(public, messages, Stream.from_seed(3, "encrypt"), factor=factor)


@pytest.mark.parametrize("kept", [3, 2])
@pytest.mark.parametrize("t", [2, 257, 1 << 20])
def test_division_agrees_with_the_slow_one(kept, t):
    _, _, batch = encrypt(t)
    lower = switch_level(batch, kept)
    q, divisor = batch.parameters.modulus, batch.parameters.modulus // lower.parameters.modulus
    for before, after in ((batch.masks, lower.masks), (batch.bodies, lower.bodies)):
        wanted = [slow_products.divide(polynomial, q, divisor, t) for polynomial in lift(batch, before)]
        assert lift(lower, after) == wanted


@pytest.mark.parametrize("kept", [4, 3, 2, 1])
@pytest.mark.parametrize("t", [257, 256])
def test_the_plaintext_is_kept_and_the_factor_says_by_what_it_was_divided(kept, t):
    keys, messages, batch = encrypt(t, factor=5)
    lower = switch_level(batch, kept)
    dropped = batch.parameters.modulus // lower.parameters.modulus
    assert lower.factor * dropped % t == 5
    for phase, message in zip(phases(keys, lower), messages.tolist(), strict=True):
        assert all((v - lower.factor * m) % t == 0 for v, m in zip(phase, message, strict=True))


def test_the_error_shrinks_to_the_rounding():
    """v / t has the deviation sqrt((1 + |s|^2) / 12) after division, whatever it was before."""
    keys, _, batch = encrypt(1 << 20)
    predicted = np.sqrt((1 + (keys.ternary[0].astype(int) ** 2).sum()) / 12)
    before, after = (np.array(phases(keys, x), dtype=float).std() / 2**20 for x in (batch, switch_level(batch, 2)))
    assert before > 10 * predicted
    assert abs(after / predicted - 1) < 0.1


def test_restricted_keys_belong_together():
    keys, public = make_keys(PARAMETERS)
    with restrict_secret_keys(keys, 2) as secret:
        restricted = restrict_public_keys(public, 2)
        assert np.array_equal(restricted.mask, public.mask[:2])
        messages = draw_messages(restricted.parameters, 1)[:, None]
        masks, bodies = encrypt_public(restricted, messages, Stream.from_seed(3, "encrypt"))
        assert np.array_equal(decrypt(secret, masks, bodies), messages)
    assert keys.ternary.any(), "closing the copy leaves the key"


def test_levels_outside_the_chain():
    _, _, batch = encrypt()
    for count in (0, 5):
        with pytest.raises(LocalProtocolError):
            switch_level(batch, count)
        with pytest.raises(LocalProtocolError):
            parameters_at(PARAMETERS, count)
