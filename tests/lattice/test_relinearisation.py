"""Relinearisation: the same plaintext without the part times s^2, at every level of one key."""

from dataclasses import replace

import numpy as np
import pytest

from cloister.crypto import Stream
from cloister.errors import LocalProtocolError
from cloister.lattice.levels import switch_level
from cloister.lattice.parameters import Parameters
from cloister.lattice.products import encrypt_lsb, multiply
from cloister.lattice.relinearisation import make_relinearisation_key, relinearise
from tests.lattice import slow_products
from tests.lattice.test_products import SEED, draw_messages, lift, make_keys, phases

PARAMETERS = Parameters.make(4096, 3, 257)


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
