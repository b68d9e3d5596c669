import copy

import numpy as np
import pytest

from cloister.crypto import Stream
from cloister.errors import ConfigError, LocalProtocolError
from cloister.lattice.encryption import encrypt_seeded
from cloister.lattice.keys import PublicKeys, SecretKeys, make_public_keys
from cloister.lattice.parameters import Parameters
from cloister.lattice.sampling import ERROR_MAX
from tests.lattice import reference

PARAMETERS = Parameters.make(2048, 2, 2**16)


def make(count=2, label="keys"):
    return SecretKeys.generate(PARAMETERS, count, Stream.from_seed(1, label))


def test_secrets_are_ternary_and_their_ntt_form_is_theirs():
    keys = make(3)
    assert keys.count == 3
    assert set(np.unique(keys.ternary)) == {-1, 0, 1}
    back = PARAMETERS.ring.inverse(keys.ntt)
    assert np.array_equal(back, PARAMETERS.ring.reduce(keys.ternary))
    assert not np.array_equal(keys.ternary[0], keys.ternary[1])


def test_closed_keys_are_zero_and_refuse_use():
    keys = make()
    ternary, ntt = keys.ternary, keys.ntt
    with keys:
        assert ternary.any()
    assert not ternary.any()
    assert not ntt.any()
    for use in (
        lambda: keys.ntt,
        lambda: keys.ternary,
        lambda: make_public_keys(keys, seed=bytes(32), stream=Stream.from_seed(1, "x")),
        lambda: encrypt_seeded(
            keys, np.zeros((1, 2, 2048), dtype=np.int64), seed=bytes(32), block=0, stream=Stream.from_seed(1, "x")
        ),
    ):
        with pytest.raises(LocalProtocolError, match="these were closed"):
            use()
    keys.close()


def test_keys_are_closed_when_a_block_fails():
    keys = make()
    ternary = keys.ternary
    with pytest.raises(ZeroDivisionError), keys:
        raise ZeroDivisionError
    assert not ternary.any()


def test_nothing_secret_is_shown_or_copied():
    keys = make()
    assert repr(keys) == "SecretKeys(count=2, closed=False)"
    with pytest.raises(TypeError, match="not to be copied"):
        copy.deepcopy(keys)


def test_public_keys_encrypt_zero():
    keys = make()
    public = make_public_keys(keys, seed=b"s" * 32, stream=Stream.from_seed(2, "errors"))
    mask = reference.polynomial_from_residues(PARAMETERS.ring.inverse(public.mask), PARAMETERS.primes)
    for s in range(2):
        body = reference.polynomial_from_residues(public.coefficients[s], PARAMETERS.primes)
        secret = [int(x) for x in keys.ternary[s]]
        product = reference.multiply(secret, mask, PARAMETERS.modulus)
        errors = [
            reference.centre(v, PARAMETERS.modulus) for v in reference.subtract(body, product, PARAMETERS.modulus)
        ]
        assert max(map(abs, errors)) <= ERROR_MAX
        assert 2.9 < np.std(errors) < 3.5


def test_wrong_shapes_and_seeds_are_refused():
    with pytest.raises(ConfigError, match="at least one secret"):
        make(0)
    with pytest.raises(ConfigError, match=r"shape \(S, 2048\)"):
        SecretKeys(PARAMETERS, np.zeros((1, 1024), dtype=np.int8))
    with pytest.raises(ConfigError, match="32 bytes; got 5"):
        make_public_keys(make(), seed=b"short", stream=Stream.from_seed(2, "errors"))
    with pytest.raises(ConfigError, match="public keys must have shape"):
        PublicKeys(parameters=PARAMETERS, seed=bytes(32), bodies=np.zeros((1, 3, 2048), dtype=np.uint32))
