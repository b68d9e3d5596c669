"""The relinearisation key of a collective secret: products decrypt under the collective and the threshold key."""

from dataclasses import replace

import numpy as np
import pytest

from cloister.crypto import Stream
from cloister.errors import LocalProtocolError, RemoteProtocolError
from cloister.lattice.collective import combine_decryptions, share_decryption
from cloister.lattice.collective_relinearisation import (
    RelinearisationHolder,
    RoundShare,
    add_round_shares,
    combine_relinearisation_key,
)
from cloister.lattice.levels import switch_level
from cloister.lattice.lwe import LweBatch
from cloister.lattice.once import DecryptionGuard
from cloister.lattice.parameters import Parameters
from cloister.lattice.products import encrypt_lsb, multiply, scaling_factor, to_scaled
from cloister.lattice.relinearisation import relinearise
from cloister.lattice.threshold import ThresholdKeys, share_threshold_decryption, split_keys
from tests.lattice import slow_products
from tests.lattice.test_collective import SEED, make_holders
from tests.lattice.test_products import draw_messages, lift

PARAMETERS = Parameters.make(4096, 4, 257)
LEVEL = 2
STREAM = "relinearisation"


def make_key(keys, parameters=PARAMETERS):
    holders = [
        RelinearisationHolder(key, seed=SEED, stream=Stream.from_seed(number, STREAM))
        for number, key in enumerate(keys)
    ]
    first = add_round_shares(parameters, [holder.share_first() for holder in holders])
    second = add_round_shares(parameters, [holder.share_second(first) for holder in holders])
    return combine_relinearisation_key(parameters, first, second)


def make_answer(public, key):
    """Coefficient 0 of a product, as an ordinary answer at a lower level; and what it must decrypt to."""
    t, stream = PARAMETERS.plaintext_modulus, Stream.from_seed(3, "encrypt")
    left, right = (draw_messages(PARAMETERS, 1, seed) for seed in (4, 5))
    dropped = PARAMETERS.primes[LEVEL] * PARAMETERS.primes[LEVEL + 1]
    lower = Parameters(degree=4096, primes=PARAMETERS.primes[:LEVEL], plaintext_modulus=t)
    factor = scaling_factor(lower) * dropped % t
    pairs = np.array([[0, 0]])
    product = multiply(encrypt_lsb(public, left, stream, factor=factor), encrypt_lsb(public, right, stream), pairs)
    scaled = to_scaled(switch_level(relinearise(product, key), LEVEL))
    batch = LweBatch(
        parameters=lower,
        masks=lower.ring.inverse(scaled.masks),
        bodies=np.ascontiguousarray(scaled.bodies[:, 0, :, 0]),
        mask_of=np.array([0]),
        secret_of=np.array([0]),
    )
    wanted = slow_products.negacyclic(left[0].tolist(), right[0].tolist(), t)[0]
    return batch, [slow_products.centre(wanted, t)]


@pytest.mark.parametrize("count", [1, 2, 3])
def test_products_decrypt_under_the_collective_key(count):
    keys, public = make_holders(count, secrets=1, parameters=PARAMETERS)
    batch, wanted = make_answer(public, make_key(keys))
    shares = [
        share_decryption(key, batch, smudge_bits=20, stream=Stream.from_seed(n, "s"), guard=DecryptionGuard())
        for n, key in enumerate(keys)
    ]
    assert combine_decryptions(batch, shares) == wanted


def test_products_decrypt_under_the_threshold_key():
    keys, public = make_holders(3, secrets=1, parameters=PARAMETERS)
    batch, wanted = make_answer(public, make_key(keys))
    sent = [split_keys(key, threshold=2, holders=3, stream=Stream.from_seed(7, "split")) for key in keys]
    for members in ((0, 1), (2, 0), (1, 2)):
        shares = []
        for number in members:
            points = ThresholdKeys(PARAMETERS, [part[number] for part in sent], number=number, threshold=2)
            stream, guard = Stream.from_seed(number, "s"), DecryptionGuard()
            shares.append(
                share_threshold_decryption(points, batch, members=members, smudge_bits=20, stream=stream, guard=guard)
            )
        assert combine_decryptions(batch, shares) == wanted


def test_the_key_encrypts_the_square_of_the_sum():
    keys, _ = make_holders(2, secrets=1, parameters=PARAMETERS)
    key = make_key(keys)
    secret, q, t = sum(key.ternary[0].astype(int) for key in keys).tolist(), PARAMETERS.modulus, 257
    square = slow_products.negacyclic(secret, secret, q)
    prime = PARAMETERS.primes[1]
    gadget = q // prime * pow(q // prime, -1, prime)
    mask, body = lift(key, key.masks)[1], lift(key, key.bodies)[1]
    rest = slow_products.phase(mask, slow_products.add(body, [-gadget * x for x in square], q), secret, q)
    assert not any(x % t for x in rest)
    errors = np.array([x // t for x in rest])
    # s e0 + u e1: 2 N coefficients of variance (2 * 2/3)(2 * 3.2^2).
    assert abs(errors.std() / np.sqrt(2 * 4096 * (4 / 3) * 2 * 3.2**2) - 1) < 0.15


def test_shares_show_no_secret_row():
    """Without the error or the mask a share would be a multiple of the secret; two runs must have nothing in common."""
    keys, _ = make_holders(1, secrets=1, parameters=PARAMETERS)
    runs = [
        RelinearisationHolder(keys[0], seed=SEED, stream=Stream.from_seed(number, STREAM)).share_first()
        for number in (1, 2)
    ]
    assert (runs[0].first == runs[1].first).mean() < 1e-3
    assert (runs[0].second == runs[1].second).mean() < 1e-3


def test_each_round_once_and_in_order():
    keys, _ = make_holders(1, secrets=1, parameters=PARAMETERS)
    holder = RelinearisationHolder(keys[0], seed=SEED, stream=Stream.from_seed(1, STREAM))
    nothing = np.zeros((len(PARAMETERS.primes), len(PARAMETERS.primes), 4096), dtype=np.uint32)
    with pytest.raises(LocalProtocolError, match="follows the first"):
        holder.share_second(RoundShare(first=nothing, second=nothing))
    total = holder.share_first()
    with pytest.raises(LocalProtocolError, match="first round once"):
        holder.share_first()
    with pytest.raises(RemoteProtocolError, match="sum of the first round"):
        holder.share_second(replace(total, first=total.first | np.uint32(1 << 31)))
    holder.share_second(total)
    for again in (lambda: holder.share_second(total), holder.share_first):
        with pytest.raises(LocalProtocolError):
            again()
    two, _ = make_holders(1, secrets=2, parameters=PARAMETERS)
    with pytest.raises(LocalProtocolError, match="one secret"):
        RelinearisationHolder(two[0], seed=SEED, stream=Stream.from_seed(1, STREAM))


def test_malformed_shares_name_their_holder():
    keys, _ = make_holders(1, secrets=1, parameters=PARAMETERS)
    good = RelinearisationHolder(keys[0], seed=SEED, stream=Stream.from_seed(1, STREAM)).share_first()
    for bad in (replace(good, second=good.second[:1]), replace(good, first=good.first | np.uint32(1 << 31))):
        with pytest.raises(RemoteProtocolError, match="holder 1"):
            add_round_shares(PARAMETERS, [good, bad])
    with pytest.raises(LocalProtocolError):
        add_round_shares(PARAMETERS, [])
