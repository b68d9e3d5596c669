"""Predicted errors of products against measured ones, at the points of X^N + 1 where the bounds are stated."""

import numpy as np
import pytest

from cloister.crypto import Stream
from cloister.lattice.levels import switch_level
from cloister.lattice.parameters import Parameters
from cloister.lattice.product_noise import TAIL, ProductNoise
from cloister.lattice.products import encrypt_lsb, multiply
from cloister.lattice.relinearisation import make_relinearisation_key, relinearise
from tests.lattice.test_collective import make_holders
from tests.lattice.test_collective_relinearisation import make_key
from tests.lattice.test_products import SEED, draw_messages

PARAMETERS = Parameters.make(4096, 4, 65537)  # four primes, as the collective key of the other tests
SLACK = 2.0**8  # bounds hold for 2^40 sessions and any weights; they must not be vacuous


def normalise(keys, batch):
    """v / t as floats (C, N), from the sum of the secrets."""
    ring = batch.parameters.ring
    secret = ring.forward(ring.reduce(sum(key.ternary[0].astype(np.int64) for key in keys)))
    rest = ring.inverse(ring.subtract(batch.bodies, ring.multiply(batch.masks, secret)))
    return ring.to_integers(np.moveaxis(rest, -2, -1)).astype(float) / batch.parameters.plaintext_modulus


def measure_reach(polynomials):
    """Largest |g(zeta)| over the roots of X^N + 1: a Fourier transform after a twist."""
    degree = polynomials.shape[1]
    return np.abs(np.fft.fft(polynomials * np.exp(1j * np.pi * np.arange(degree) / degree))).max()


@pytest.mark.parametrize("count", [1, 3])
def test_errors_reach_no_further_than_predicted(count):
    keys, public = make_holders(count, secrets=1, parameters=PARAMETERS)
    stream = Stream.from_seed(3, "encrypt")
    noise = ProductNoise(degree=4096, plaintext_modulus=65537, key_holders=count, polynomials=32)
    left, right = (encrypt_lsb(public, draw_messages(PARAMETERS, 2, seed), stream) for seed in (4, 5))
    fresh = noise.uploaded_reach(1)
    assert measure_reach(normalise(keys, left)) < fresh < SLACK * measure_reach(normalise(keys, left))
    dropped = float(PARAMETERS.primes[3])
    left, right = switch_level(left, 3), switch_level(right, 3)
    uploaded = noise.uploaded_reach(dropped)
    assert measure_reach(normalise(keys, left)) < uploaded < SLACK * measure_reach(normalise(keys, left))
    key = make_key_for(keys, stream)
    product = relinearise(multiply(left, right, np.array([[0, 0], [1, 1]])), key)
    reach = noise.product_reach(uploaded, uploaded, 3)
    measured = measure_reach(normalise(keys, product))
    assert measured < reach < SLACK**2 * measured
    lower = switch_level(product, 2)
    divided = noise.divided_reach(reach, float(PARAMETERS.primes[2]))
    measured = measure_reach(normalise(keys, lower))
    assert measured < divided < SLACK**2 * measured


def make_key_for(keys, stream):
    """One holder's key, or the collective one, for these primes and this plaintext modulus."""
    if len(keys) == 1:
        return make_relinearisation_key(keys[0], seed=SEED, stream=stream)
    return make_key(keys, PARAMETERS)


@pytest.mark.parametrize("count", [1, 3])
def test_the_error_of_relinearisation_is_within_its_proxy(count):
    """Relinearise products with small phases: what is then seen is the digits' error alone."""
    keys, public = make_holders(count, secrets=1, parameters=PARAMETERS)
    stream = Stream.from_seed(3, "encrypt")
    noise = ProductNoise(degree=4096, plaintext_modulus=65537, key_holders=count, polynomials=32)
    messages = draw_messages(PARAMETERS, 1)
    batch = multiply(*(encrypt_lsb(public, messages, stream) for _ in range(2)), np.array([[0, 0]]))
    after = relinearise(batch, make_key_for(keys, stream))
    ring = PARAMETERS.ring
    secret = ring.forward(ring.reduce(sum(key.ternary[0].astype(np.int64) for key in keys)))
    square = ring.multiply(ring.multiply(secret, secret), batch.squares)
    before = ring.add(ring.subtract(batch.bodies, ring.multiply(batch.masks, secret)), square)
    change = ring.subtract(ring.subtract(after.bodies, ring.multiply(after.masks, secret)), before)
    errors = ring.to_integers(np.moveaxis(ring.inverse(change), -2, -1)).astype(float) / 65537
    assert not (errors % 1).any()
    proxy = noise.relinearisation_proxy(4)
    assert errors.std() < proxy < SLACK * errors.std()
    assert np.abs(errors).max() < TAIL * proxy
