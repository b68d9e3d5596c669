"""Ciphertexts with the message in the low bits: products, factors, and the way back to ordinary ciphertexts."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cloister.crypto import Stream
from cloister.errors import LocalProtocolError
from cloister.lattice.encryption import decrypt
from cloister.lattice.keys import SecretKeys, make_public_keys
from cloister.lattice.parameters import Parameters
from cloister.lattice.products import LsbBatch, encrypt_lsb, multiply, scaling_factor, to_scaled
from tests.lattice import slow_products

SEED = bytes(range(32))
PARAMETERS = Parameters.make(2048, 2, 257)


def make_keys(parameters=PARAMETERS, secrets=1, seed=1):
    stream = Stream.from_seed(seed, "keys")
    keys = SecretKeys.generate(parameters, secrets, stream)
    return keys, make_public_keys(keys, seed=SEED, stream=stream)


def draw_messages(parameters, count, seed=2):
    t = parameters.plaintext_modulus
    return np.random.default_rng(seed).integers(-(t // 2), t // 2 + t % 2, (count, parameters.degree))


def lift(batch_or_parameters, residues_ntt):
    """Lists of integers from elements (C, L, N) in NTT form."""
    ring = batch_or_parameters.parameters.ring
    return [slow_products.lift(ring.primes, rows) for rows in ring.inverse(residues_ntt)]


def phases(keys, batch):
    """The centred polynomials body - mask s."""
    secret, q = keys.ternary[0].tolist(), batch.parameters.modulus
    pairs = zip(lift(batch, batch.masks), lift(batch, batch.bodies), strict=True)
    return [slow_products.phase(mask, body, secret, q) for mask, body in pairs]


@pytest.mark.parametrize("t", [2, 3, 257, 1 << 12, 1 << 33])
def test_what_is_encrypted_is_the_factor_times_the_message_in_the_low_bits(t):
    parameters = Parameters.make(2048, 2, t)
    keys, public = make_keys(parameters)
    messages = draw_messages(parameters, 2)
    batch = encrypt_lsb(public, messages, Stream.from_seed(3, "encrypt"), factor=t - 1)
    for phase, message in zip(phases(keys, batch), messages.tolist(), strict=True):
        errors = [(v + m) % t for v, m in zip(phase, message, strict=True)]
        assert not any(errors)
        assert max(abs(v) for v in phase) < t * 2000


def test_two_encryptions_of_one_message_differ():
    _, public = make_keys()
    stream = Stream.from_seed(3, "encrypt")
    first, second = (encrypt_lsb(public, draw_messages(PARAMETERS, 1), stream) for _ in range(2))
    assert (first.masks == second.masks).mean() < 1e-3
    assert (first.bodies == second.bodies).mean() < 1e-3


def test_a_product_agrees_with_the_slow_one():
    _, public = make_keys()
    stream = Stream.from_seed(3, "encrypt")
    left = encrypt_lsb(public, draw_messages(PARAMETERS, 2, 4), stream, factor=5)
    right = encrypt_lsb(public, draw_messages(PARAMETERS, 2, 5), stream, factor=7)
    pairs = np.array([[0, 1], [1, 0], [1, 1]])
    batch = multiply(left, right, pairs)
    q = PARAMETERS.modulus
    a, b, c, d = (
        lift(x, y) for x, y in ((left, left.masks), (left, left.bodies), (right, right.masks), (right, right.bodies))
    )
    got = [lift(batch, part) for part in (batch.masks, batch.bodies, batch.squares)]
    for place, (i, j) in enumerate(pairs):
        crossed = slow_products.add(slow_products.negacyclic(a[i], d[j], q), slow_products.negacyclic(c[j], b[i], q), q)
        assert got[0][place] == crossed
        assert got[1][place] == slow_products.negacyclic(b[i], d[j], q)
        assert got[2][place] == slow_products.negacyclic(a[i], c[j], q)
    assert batch.factor == 35


@pytest.mark.parametrize("t", [257, 256, 1 << 20, 65537])
def test_scaled_ciphertexts_decrypt_as_ordinary_ones(t):
    parameters = Parameters.make(2048, 2, t)
    keys, public = make_keys(parameters)
    messages = draw_messages(parameters, 2)
    stream = Stream.from_seed(3, "encrypt")
    scaled = to_scaled(encrypt_lsb(public, messages, stream, factor=scaling_factor(parameters)))
    assert scaled.bodies.shape == (2, 1, 2, 2048)
    assert np.array_equal(decrypt(keys, scaled.masks, scaled.bodies)[:, 0], messages)


@settings(deadline=None, max_examples=15)
@given(st.integers(2, 1 << 24))
def test_scaling_is_exact_for_every_plaintext_modulus_prime_to_q(t):
    """t^-1 v = v / t + (q / t) m modulo q: times t, both sides are v + q m."""
    q = PARAMETERS.modulus
    if any(t % prime == 0 for prime in PARAMETERS.primes):
        return
    factor = -q % t
    for message, error in ((0, 5), (1, -3), (t // 2, 1000)):
        v = factor * message % t + t * error
        scaled = pow(t, -1, q) * v % q
        assert (t * scaled - v - q * message) % (t * q) == 0


def test_a_wrong_factor_is_refused_not_decrypted_wrongly():
    _, public = make_keys()
    batch = encrypt_lsb(public, draw_messages(PARAMETERS, 1), Stream.from_seed(3, "encrypt"), factor=3)
    with pytest.raises(LocalProtocolError, match="factor"):
        to_scaled(batch)


def test_misuse_is_refused():
    _, two = make_keys(secrets=2)
    stream = Stream.from_seed(3, "encrypt")
    with pytest.raises(LocalProtocolError, match="one secret"):
        encrypt_lsb(two, draw_messages(PARAMETERS, 1), stream)
    _, public = make_keys()
    batch = encrypt_lsb(public, draw_messages(PARAMETERS, 1), stream)
    with pytest.raises(LocalProtocolError, match="masks and bodies"):
        replace(batch, bodies=batch.bodies[:, :1])
    other = Parameters(degree=2048, primes=PARAMETERS.primes[:1], plaintext_modulus=257)
    lower = LsbBatch(parameters=other, masks=batch.masks[:, :1], bodies=batch.bodies[:, :1], factor=1)
    with pytest.raises(LocalProtocolError, match="one modulus"):
        multiply(batch, lower, np.array([[0, 0]]))
