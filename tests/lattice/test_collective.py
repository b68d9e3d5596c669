"""Collective keys: the joint coin toss, the public key, and the relinearisation key made in two rounds."""

import hashlib
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloister.crypto import SeededEntropy, Stream, SystemEntropy
from cloister.errors import LocalProtocolError, RemoteProtocolError
from cloister.lattice.collective import (
    RelinearisationHolder,
    RoundShare,
    add_round_shares,
    combine_public_shares,
    combine_relinearisation_key,
    combine_tosses,
    draw_toss,
    make_public_share,
)
from cloister.lattice.decryption import DecryptionGuard, combine_decryptions, share_decryption
from cloister.lattice.keys import SecretKeys
from cloister.lattice.lwe import LweBatch
from cloister.lattice.parameters import Parameters
from cloister.lattice.products import encrypt_lsb, multiply, scaling_factor, to_scaled
from cloister.lattice.relinearisation import relinearise, switch_level
from cloister.lattice.threshold import ThresholdKeys, share_threshold_decryption, split_keys
from tests.lattice import slow_products
from tests.lattice.test_products import draw_messages, lift

SESSION = b"session"
SEED = bytes(range(32))
PARAMETERS = Parameters.make(2048, 2, 1 << 12)
PRODUCTS = Parameters.make(4096, 4, 257)
LEVEL = 2
STREAM = "relinearisation"


def toss_all(count, session=SESSION):
    return [draw_toss(session, number, SeededEntropy(number, "toss")) for number in range(count)]


def combine(tosses, session=SESSION):
    return combine_tosses(session, [toss.commitment for toss in tosses], [toss.opening for toss in tosses])


def count_coins(tosses):
    """How many openings differ, and in how many places bytes differ from the first."""
    openings = np.array([list(toss.opening) for toss in tosses])
    return len(np.unique(openings, axis=0)), int(min(len(np.unique(row)) for row in openings))


def test_coins_are_256_bits_of_the_system_and_no_two_are_alike():
    """600 of them: with 8 bits of chance most would be alike."""
    tosses = [draw_toss(SESSION, 0, SystemEntropy()) for _ in range(600)]
    different, least = count_coins(tosses)
    assert different == 600
    assert least > 16  # different bytes in one opening
    assert len({toss.commitment for toss in tosses}) == 600
    assert {len(toss.opening) for toss in tosses} == {32}


@pytest.mark.parametrize(
    "mutant", [lambda: SystemEntropy().bytes(1) * 32, lambda: SystemEntropy().bytes(1) + bytes(31)]
)
def test_mutants_that_toss_eight_bits_are_noticed(mutant):
    class Few:
        def bytes(self, count):
            return mutant()

    different, least = count_coins([draw_toss(SESSION, 0, Few()) for _ in range(600)])
    assert different <= 256
    assert least <= 16


def test_known_answers():
    def part(tag, raw):
        return tag + len(raw).to_bytes(4, "little") + raw

    openings = [bytes(32), bytes(range(32))]
    numbers = [number.to_bytes(16, "little") for number in range(3)]
    commitments = [
        hashlib.sha256(
            part(b"s", b"coin toss commitment") + part(b"b", SESSION) + part(b"i", numbers[place]) + part(b"b", opening)
        ).digest()
        for place, opening in enumerate(openings)
    ]
    wanted = hashlib.sha256(
        part(b"s", b"coin toss")
        + part(b"b", SESSION)
        + part(b"i", numbers[2])
        + b"".join(part(b"b", opening) for opening in openings)
    ).digest()
    assert combine_tosses(SESSION, commitments, openings) == wanted


def test_every_party_and_the_session_change_the_seed():
    tosses = toss_all(3)
    seeds = {combine(tosses), combine(toss_all(3, b"other"), b"other"), combine(toss_all(2))}
    for number in range(3):
        other = list(tosses)
        other[number] = draw_toss(SESSION, number, SeededEntropy(99, "other"))
        seeds.add(combine(other))
    assert len(seeds) == 6


@given(st.integers(0, 2), st.integers(0, 255))
def test_any_changed_bit_of_an_opening_is_refused_and_the_party_named(number, bit):
    tosses = toss_all(3)
    openings = [toss.opening for toss in tosses]
    changed = bytearray(openings[number])
    changed[bit // 8] ^= 1 << bit % 8
    openings[number] = bytes(changed)
    with pytest.raises(RemoteProtocolError, match=f"party {number}") as caught:
        combine_tosses(SESSION, [toss.commitment for toss in tosses], openings)
    assert bytes(changed).hex() not in str(caught.value)


@given(st.binary(max_size=40), st.binary(max_size=40))
def test_any_bytes_are_refused_and_nothing_else_is_raised(commitment, opening):
    with pytest.raises(RemoteProtocolError, match="party 0"):
        combine_tosses(SESSION, [commitment], [opening])


def test_a_copied_commitment_cannot_be_opened_under_another_number():
    first, second = toss_all(2)
    with pytest.raises(RemoteProtocolError, match="party 1"):
        combine_tosses(SESSION, [first.commitment, first.commitment], [first.opening, first.opening])
    with pytest.raises(RemoteProtocolError, match="party 0"):
        combine([second, first])
    with pytest.raises(RemoteProtocolError):
        combine([first, second], b"another session")


def test_openings_wait_for_all_commitments():
    tosses = toss_all(2)
    with pytest.raises(LocalProtocolError, match="1 openings for 2"):
        combine_tosses(SESSION, [toss.commitment for toss in tosses], [tosses[0].opening])
    with pytest.raises(LocalProtocolError):
        combine_tosses(SESSION, [], [])


def test_a_printed_toss_shows_no_opening():
    toss = toss_all(1)[0]
    assert repr(toss.opening) not in repr(toss)


def make_holders(count, secrets=2, parameters=PARAMETERS):
    stream = Stream.from_seed(count, "holders")
    keys = [SecretKeys.generate(parameters, secrets, stream) for _ in range(count)]
    shares = [make_public_share(key, seed=SEED, stream=stream) for key in keys]
    return keys, combine_public_shares(parameters, SEED, shares)


def test_the_public_key_is_the_sum_of_the_shares_and_an_encryption_of_zero():
    keys, public = make_holders(3, secrets=1)
    ring = PARAMETERS.ring
    total = ring.reduce(sum(key.ternary.astype(np.int64) for key in keys))
    rest = ring.inverse(ring.subtract(public.bodies, ring.multiply(public.mask, ring.forward(total))))
    errors = ring.to_integers(np.moveaxis(rest, -2, -1)).astype(float)
    assert np.abs(errors).max() < 9 * 3.2 * np.sqrt(3)
    assert abs(errors.var() / (3 * 3.2**2) - 1) < 0.25


def test_malformed_public_shares():
    _, public = make_holders(1)
    with pytest.raises(RemoteProtocolError, match="holder 1"):
        combine_public_shares(PARAMETERS, SEED, [public.bodies, public.bodies[:1]])
    with pytest.raises(LocalProtocolError):
        combine_public_shares(PARAMETERS, SEED, [])


def make_key(keys, parameters=PRODUCTS):
    holders = [
        RelinearisationHolder(key, seed=SEED, stream=Stream.from_seed(number, STREAM))
        for number, key in enumerate(keys)
    ]
    first = add_round_shares(parameters, [holder.share_first() for holder in holders])
    second = add_round_shares(parameters, [holder.share_second(first) for holder in holders])
    return combine_relinearisation_key(parameters, first, second)


def make_answer(public, key):
    """Coefficient 0 of a product, as an ordinary answer at a lower level; and what it must decrypt to."""
    t, stream = PRODUCTS.plaintext_modulus, Stream.from_seed(3, "encrypt")
    left, right = (draw_messages(PRODUCTS, 1, seed) for seed in (4, 5))
    dropped = PRODUCTS.primes[LEVEL] * PRODUCTS.primes[LEVEL + 1]
    lower = Parameters(degree=4096, primes=PRODUCTS.primes[:LEVEL], plaintext_modulus=t)
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
    keys, public = make_holders(count, secrets=1, parameters=PRODUCTS)
    batch, wanted = make_answer(public, make_key(keys))
    shares = [
        share_decryption(key, batch, smudge_bits=20, stream=Stream.from_seed(n, "s"), guard=DecryptionGuard())
        for n, key in enumerate(keys)
    ]
    assert combine_decryptions(batch, shares) == wanted


def test_products_decrypt_under_the_threshold_key():
    keys, public = make_holders(3, secrets=1, parameters=PRODUCTS)
    batch, wanted = make_answer(public, make_key(keys))
    sent = [split_keys(key, threshold=2, holders=3, stream=Stream.from_seed(7, "split")) for key in keys]
    for members in ((0, 1), (2, 0), (1, 2)):
        shares = []
        for number in members:
            points = ThresholdKeys(PRODUCTS, [part[number] for part in sent], number=number, threshold=2)
            stream, guard = Stream.from_seed(number, "s"), DecryptionGuard()
            shares.append(
                share_threshold_decryption(points, batch, members=members, smudge_bits=20, stream=stream, guard=guard)
            )
        assert combine_decryptions(batch, shares) == wanted


def test_the_key_encrypts_the_square_of_the_sum():
    keys, _ = make_holders(2, secrets=1, parameters=PRODUCTS)
    key = make_key(keys)
    secret, q, t = sum(key.ternary[0].astype(int) for key in keys).tolist(), PRODUCTS.modulus, 257
    square = slow_products.negacyclic(secret, secret, q)
    prime = PRODUCTS.primes[1]
    gadget = q // prime * pow(q // prime, -1, prime)
    mask, body = lift(key, key.masks)[1], lift(key, key.bodies)[1]
    rest = slow_products.phase(mask, slow_products.add(body, [-gadget * x for x in square], q), secret, q)
    assert not any(x % t for x in rest)
    errors = np.array([x // t for x in rest])
    # s e0 + u e1: 2 N coefficients of variance (2 * 2/3)(2 * 3.2^2).
    assert abs(errors.std() / np.sqrt(2 * 4096 * (4 / 3) * 2 * 3.2**2) - 1) < 0.15


def test_shares_show_no_secret_row():
    """Without the error or the mask a share would be a multiple of the secret; two runs must have nothing in common."""
    keys, _ = make_holders(1, secrets=1, parameters=PRODUCTS)
    runs = [
        RelinearisationHolder(keys[0], seed=SEED, stream=Stream.from_seed(number, STREAM)).share_first()
        for number in (1, 2)
    ]
    assert (runs[0].first == runs[1].first).mean() < 1e-3
    assert (runs[0].second == runs[1].second).mean() < 1e-3


def test_each_round_once_and_in_order():
    keys, _ = make_holders(1, secrets=1, parameters=PRODUCTS)
    holder = RelinearisationHolder(keys[0], seed=SEED, stream=Stream.from_seed(1, STREAM))
    nothing = np.zeros((len(PRODUCTS.primes), len(PRODUCTS.primes), 4096), dtype=np.uint32)
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
    two, _ = make_holders(1, secrets=2, parameters=PRODUCTS)
    with pytest.raises(LocalProtocolError, match="one secret"):
        RelinearisationHolder(two[0], seed=SEED, stream=Stream.from_seed(1, STREAM))


def test_malformed_shares_name_their_holder():
    keys, _ = make_holders(1, secrets=1, parameters=PRODUCTS)
    good = RelinearisationHolder(keys[0], seed=SEED, stream=Stream.from_seed(1, STREAM)).share_first()
    for bad in (replace(good, second=good.second[:1]), replace(good, first=good.first | np.uint32(1 << 31))):
        with pytest.raises(RemoteProtocolError, match="holder 1"):
            add_round_shares(PRODUCTS, [good, bad])
    with pytest.raises(LocalProtocolError):
        add_round_shares(PRODUCTS, [])
