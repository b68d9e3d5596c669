import hashlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cloister.crypto import Stream
from cloister.errors import ConfigError
from cloister.lattice.encryption import decrypt, encrypt_public, encrypt_seeded
from cloister.lattice.keys import SecretKeys, make_public_keys
from cloister.lattice.parameters import Parameters
from cloister.lattice.sampling import ERROR_MAX, expand_masks
from tests.lattice import reference
from tests.lattice.answers import quotient_is_small

PARAMETERS = Parameters.make(2048, 2, 2**20)
KEYS = SecretKeys.generate(PARAMETERS, 2, Stream.from_seed(7, "keys"))
PUBLIC = make_public_keys(KEYS, seed=b"p" * 32, stream=Stream.from_seed(7, "public"))
SEED = b"m" * 32


def draw_messages(count, seed=0, secrets=2, degree=2048, t=2**20):
    return np.random.default_rng(seed).integers(-t // 2, t // 2, (count, secrets, degree))


def test_bodies_are_known():
    messages = np.arange(2 * 2 * 2048).reshape(2, 2, 2048)
    bodies = encrypt_seeded(KEYS, messages, seed=SEED, block=9, stream=Stream.from_seed(7, "encrypt"))
    assert hashlib.sha256(bodies.astype("<u4").tobytes()).hexdigest()[:32] == "f787783ef4b0e1eb0a45d93c3928abe9"


@pytest.mark.parametrize("public", [False, True])
def test_the_reference_decrypts(public):
    messages = draw_messages(1)
    if public:
        masks, bodies = encrypt_public(PUBLIC, messages, Stream.from_seed(8, "encrypt"))
    else:
        bodies = encrypt_seeded(KEYS, messages, seed=SEED, block=0, stream=Stream.from_seed(8, "encrypt"))
        masks = expand_masks(PARAMETERS, SEED, 0, 1)
    mask = reference.polynomial_from_residues(PARAMETERS.ring.inverse(masks[0]), PARAMETERS.primes)
    for s in range(2):
        body = reference.polynomial_from_residues(bodies[0, s], PARAMETERS.primes)
        secret = [int(x) for x in KEYS.ternary[s]]
        # The reference multiplies by the secret, zeros skipped, so it goes first.
        q = PARAMETERS.modulus
        noisy = reference.subtract(body, reference.multiply(secret, mask, q), q)
        errors = [
            reference.centre(v - PARAMETERS.delta * int(m), q) for v, m in zip(noisy, messages[0, s], strict=True)
        ]
        assert 0 < max(map(abs, errors)) <= (ERROR_MAX if not public else 2000)
        assert reference.round_plain(noisy, PARAMETERS.primes, 2**20) == messages[0, s].tolist()


@settings(deadline=None, max_examples=12)
@given(st.integers(0, 3), st.sampled_from([2, 3, 1000, 65537, 2**30]), st.integers(0, 2**32), st.booleans())
def test_decryption_undoes_encryption(shape, t, seed, public):
    degree, primes = [(2048, 2), (4096, 3), (4096, 4), (8192, 8)][shape]
    parameters = Parameters.make(degree, primes, t)
    stream = Stream.from_seed(seed, "test")
    keys = SecretKeys.generate(parameters, 2, stream)
    messages = draw_messages(2, seed, degree=degree, t=t)
    if public:
        public_keys = make_public_keys(keys, seed=SEED, stream=stream)
        masks, bodies = encrypt_public(public_keys, messages, stream)
    else:
        masks = expand_masks(parameters, SEED, 3, 2)
        bodies = encrypt_seeded(keys, messages, seed=SEED, block=3, stream=stream)
    assert np.array_equal((decrypt(keys, masks, bodies) - messages) % t, np.zeros_like(messages))


def test_masks_under_a_public_key_have_an_error_of_their_own():
    masks, _ = encrypt_public(PUBLIC, draw_messages(1), Stream.from_seed(1, "x"))
    assert not quotient_is_small(PARAMETERS, masks[0], PUBLIC.mask)
    u = PARAMETERS.ring.forward(PARAMETERS.ring.reduce(np.ones(2048, dtype=np.int64)))
    assert quotient_is_small(PARAMETERS, PARAMETERS.ring.multiply(u, PUBLIC.mask), PUBLIC.mask)


def test_ciphertexts_add_and_messages_are_exact_modulo_t():
    ring = PARAMETERS.ring
    x, y = draw_messages(2, 1), draw_messages(2, 2)
    a, b = (encrypt_public(PUBLIC, m, Stream.from_seed(i, "add")) for i, m in enumerate((x, y)))
    total = decrypt(KEYS, ring.add(a[0], b[0]), ring.add(a[1], b[1]))
    assert np.array_equal(total, (x + y + 2**19) % 2**20 - 2**19)


def test_extreme_messages_do_not_overflow():
    messages = np.full((1, 2, 2048), -(2**63))
    messages[0, 1] = 2**63 - 1
    bodies = encrypt_seeded(KEYS, messages, seed=SEED, block=0, stream=Stream.from_seed(1, "x"))
    errors = PARAMETERS.ring.subtract(
        bodies,
        PARAMETERS.ring.inverse(PARAMETERS.ring.multiply(expand_masks(PARAMETERS, SEED, 0, 1)[:, None], KEYS.ntt)),
    )
    numbers = PARAMETERS.ring.to_integers(np.moveaxis(errors, -2, -1))
    for s, message in enumerate((-(2**63), 2**63 - 1)):
        rest = [reference.centre(int(v) - PARAMETERS.delta * message, PARAMETERS.modulus) for v in numbers[0, s]]
        assert max(map(abs, rest)) <= ERROR_MAX


def test_another_key_mask_or_block_decrypts_to_noise():
    messages = np.zeros((1, 2, 2048), dtype=np.int64)
    bodies = encrypt_seeded(KEYS, messages, seed=SEED, block=0, stream=Stream.from_seed(1, "x"))
    other = SecretKeys.generate(PARAMETERS, 2, Stream.from_seed(9, "keys"))
    for keys, masks in (
        (other, expand_masks(PARAMETERS, SEED, 0, 1)),
        (KEYS, expand_masks(PARAMETERS, SEED, 1, 1)),
        (KEYS, expand_masks(PARAMETERS, b"n" * 32, 0, 1)),
    ):
        assert np.mean(decrypt(keys, masks, bodies) == 0) < 0.01


def test_equal_messages_under_equal_masks_differ_only_by_errors_of_other_secrets():
    """Each secret's body must look fresh: the same message and mask under two secrets share nothing."""
    bodies = encrypt_seeded(
        KEYS, np.zeros((1, 2, 2048), dtype=np.int64), seed=SEED, block=0, stream=Stream.from_seed(1, "x")
    )
    difference = PARAMETERS.ring.subtract(bodies[0, 0], bodies[0, 1])
    assert np.histogram(difference[0], bins=8)[0].min() > 180


def test_wrong_arguments_are_refused():
    stream = Stream.from_seed(1, "x")
    with pytest.raises(ConfigError, match=r"int64 \(C, 2, 2048\)"):
        encrypt_seeded(KEYS, np.zeros((1, 1, 2048), dtype=np.int64), seed=SEED, block=0, stream=stream)
    with pytest.raises(ConfigError, match=r"int64 \(C, 2, 2048\); got float64"):
        encrypt_public(PUBLIC, np.zeros((1, 2, 2048)), stream)
    with pytest.raises(ConfigError, match="32 bytes"):
        encrypt_seeded(KEYS, np.zeros((1, 2, 2048), dtype=np.int64), seed=b"", block=0, stream=stream)
