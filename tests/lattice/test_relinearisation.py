"""Relinearisation and levels: the plaintext without the part times s^2, divided exactly, at every level of one key."""

import math
from dataclasses import replace

import numpy as np
import pytest

from cloister.crypto import Stream
from cloister.errors import LocalProtocolError
from cloister.lattice.encryption import decrypt, encrypt_public
from cloister.lattice.keys import restrict_public_keys, restrict_secret_keys
from cloister.lattice.parameters import Parameters, parameters_at
from cloister.lattice.products import encrypt_lsb, multiply
from cloister.lattice.relinearisation import make_relinearisation_key, relinearise, switch_level
from tests.lattice import slow_products
from tests.lattice.test_products import SEED, draw_messages, lift, make_keys, phases

PARAMETERS = Parameters.make(4096, 3, 257)
CHAIN = Parameters.make(4096, 4, 257)


def make_product(level=3):
    keys, public = make_keys(PARAMETERS)
    stream = Stream.from_seed(3, "encrypt")
    key = make_relinearisation_key(keys, seed=SEED, stream=stream)
    messages = [draw_messages(PARAMETERS, 1, seed) for seed in (4, 5)]
    left, right = (switch_level(encrypt_lsb(public, message, stream), level) for message in messages)
    return keys, key, messages, multiply(left, right, np.array([[0, 0]]))


@pytest.mark.parametrize("level", [3, 2])
def test_it_agrees_with_the_slow_one(level):
    _, key, _, product = make_product(level)
    batch = relinearise(product, key)
    primes = product.parameters.primes
    rows = [lift(product, np.ascontiguousarray(part[:level, :level])) for part in (key.masks, key.bodies)]
    mask, body, square = (lift(product, part)[0] for part in (product.masks, product.bodies, product.squares))
    wanted = slow_products.relinearise(mask, body, square, *rows, primes)
    assert (lift(batch, batch.masks)[0], lift(batch, batch.bodies)[0]) == wanted


@pytest.mark.parametrize("level", [3, 2])
def test_products_decrypt_to_the_product_of_the_plaintexts(level):
    keys, key, messages, product = make_product(level)
    t = PARAMETERS.plaintext_modulus
    batch = relinearise(product, key)
    wanted = slow_products.negacyclic(messages[0][0].tolist(), messages[1][0].tolist(), t)
    assert [v % t for v in phases(keys, batch)[0]] == [batch.factor * m % t for m in wanted]


def test_the_key_encrypts_the_square_of_the_secret_in_one_row_a_digit():
    keys, key, _, _ = make_product()
    secret, q, t = keys.ternary[0].tolist(), PARAMETERS.modulus, PARAMETERS.plaintext_modulus
    square = slow_products.negacyclic(secret, secret, q)
    masks, bodies = (lift(key, part) for part in (key.masks, key.bodies))
    for digit, prime in enumerate(PARAMETERS.primes):
        gadget = q // prime * pow(q // prime, -1, prime)
        message = [gadget * x for x in square]
        rest = slow_products.phase(masks[digit], slow_products.add(bodies[digit], [-x for x in message], q), secret, q)
        errors = np.array([x // t for x in rest])
        assert not any(x % t for x in rest)
        assert np.abs(errors).max() < 35
        assert abs(errors.std() / 3.2 - 1) < 0.1


def test_a_wrong_key_gives_a_wrong_product():
    keys, _, messages, product = make_product()
    other, _ = make_keys(PARAMETERS, seed=9)
    wrong = make_relinearisation_key(other, seed=SEED, stream=Stream.from_seed(1, "x"))
    t = PARAMETERS.plaintext_modulus
    batch = relinearise(product, wrong)
    wanted = slow_products.negacyclic(messages[0][0].tolist(), messages[1][0].tolist(), t)
    assert np.mean([v % t == batch.factor * m % t for v, m in zip(phases(keys, batch)[0], wanted, strict=True)]) < 0.05


def test_misuse_is_refused():
    _, key, _, product = make_product()
    two, _ = make_keys(PARAMETERS, secrets=2)
    with pytest.raises(LocalProtocolError, match="one secret"):
        make_relinearisation_key(two, seed=SEED, stream=Stream.from_seed(1, "x"))
    with pytest.raises(LocalProtocolError, match="relinearisation key must be"):
        replace(key, masks=key.masks[:2])
    other = Parameters(degree=4096, primes=PARAMETERS.primes[::-1], plaintext_modulus=257)
    with pytest.raises(LocalProtocolError, match="first ones"):
        relinearise(replace(product, parameters=other), key)


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


@pytest.mark.parametrize("kept", [3, 2])
@pytest.mark.parametrize("past", [0, 1])
def test_division_rounds_to_the_nearest_on_both_sides_of_the_middle(kept, past):
    """What is left over is (P - 1) / 2, or one more, in every coefficient; P is the product of what is dropped."""
    _, _, batch = encrypt()
    t, primes = batch.parameters.plaintext_modulus, batch.parameters.primes
    divisor = math.prod(primes[kept:])
    constant = np.zeros(batch.parameters.degree, dtype=object)
    constant[0] = t * (divisor // 2 + past)
    middle = batch.parameters.ring.forward(np.array([constant % prime for prime in primes], dtype=np.uint32))
    lower = switch_level(replace(batch, bodies=np.repeat(middle[None], len(batch.bodies), axis=0)), kept)
    wanted = slow_products.divide(constant.tolist(), batch.parameters.modulus, divisor, t)
    assert lift(lower, lower.bodies)[0] == wanted


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
    keys, public = make_keys(CHAIN)
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
            parameters_at(CHAIN, count)
