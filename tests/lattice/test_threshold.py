"""t of n: any t holders decrypt, fewer know nothing, and wrong sets are refused."""

import itertools

import numpy as np
import pytest

from cloister.crypto import Stream, SystemEntropy
from cloister.errors import ConfigError, LocalProtocolError, RemoteProtocolError
from cloister.lattice import threshold
from cloister.lattice.decryption import DecryptionGuard, combine_decryptions
from cloister.lattice.ring import Ring
from cloister.lattice.threshold import (
    ThresholdKeys,
    evaluate_shares,
    find_lagrange_weights,
    share_threshold_decryption,
    split_keys,
)
from tests.lattice.test_collective import PARAMETERS, make_holders
from tests.lattice.test_decryption import make_answers

SMUDGE_BITS = 20


def make_threshold(needed, holders):
    keys, public = make_holders(holders)
    stream = Stream.from_seed(4, "split")
    sent = [split_keys(key, threshold=needed, holders=holders, stream=stream) for key in keys]
    received = [[shares[number] for shares in sent] for number in range(holders)]
    points = [ThresholdKeys(PARAMETERS, received[number], number=number, threshold=needed) for number in range(holders)]
    return keys, public, points


def share(key, batch, members, guard=None):
    stream = Stream.from_seed(key.number, "share")
    guard = guard or DecryptionGuard()
    return share_threshold_decryption(key, batch, members=members, smudge_bits=SMUDGE_BITS, stream=stream, guard=guard)


@pytest.mark.parametrize(("threshold", "holders"), [(1, 2), (2, 3), (3, 4), (4, 4)])
def test_every_large_enough_set_decrypts(threshold, holders):
    _, public, points = make_threshold(threshold, holders)
    integers = np.array([[2047, -2000], [-1, 300]])
    batch = make_answers(public, integers)
    for size in range(threshold, holders + 1):
        for members in itertools.combinations(range(holders), size):
            shares = [share(points[number], batch, members[::-1]) for number in members]
            assert combine_decryptions(batch, shares) == integers.ravel().tolist()


def test_the_points_interpolate_the_sum_of_the_secrets():
    keys, _, points = make_threshold(3, 4)
    ring = PARAMETERS.ring
    secret = ring.forward(ring.reduce(sum(key.ternary.astype(np.int64) for key in keys)))
    for members in itertools.combinations(range(4), 3):
        total = np.zeros_like(secret)
        for number in members:
            weights = find_lagrange_weights(PARAMETERS.primes, members, number)
            total = ring.add(total, ring.scale(points[number].points, weights))
        assert np.array_equal(total, secret)


@pytest.mark.parametrize("threshold", [2, 3])
def test_fewer_than_the_threshold_are_independent_of_the_secret_exhaustively(threshold):
    """Modulo 5, four holders: over all coefficients any t - 1 shares take every value equally often."""
    ring = Ring(2, (5,))
    for secret, places in itertools.product(range(5), itertools.combinations(range(1, 5), threshold - 1)):
        seen = []
        for rest in itertools.product(range(5), repeat=threshold - 1):
            coefficients = np.array([secret, *rest], dtype=np.uint32)[:, None, None] * np.ones(
                (1, 1, 2), dtype=np.uint32
            )
            seen.append(tuple(int(evaluate_shares(ring, coefficients, at)[0, 0]) for at in places))
        assert sorted(seen) == sorted(itertools.product(range(5), repeat=threshold - 1))


def test_known_shares_and_weights():
    ring = Ring(2, (97,))
    coefficients = np.array([[[5, 6]], [[7, 96]], [[11, 0]]], dtype=np.uint32)
    assert evaluate_shares(ring, coefficients, 3).tolist() == [[(5 + 7 * 3 + 11 * 9) % 97, (6 - 3) % 97]]
    # Holders 0, 1, 3 stand at 1, 2, 4: 2*4/((2-1)(4-1)), 1*4/((1-2)(4-2)), 1*2/((1-4)(2-4)).
    weights = [find_lagrange_weights([97], [0, 1, 3], number)[0] for number in (0, 1, 3)]
    assert weights == [8 * pow(3, -1, 97) % 97, -2 % 97, pow(3, -1, 97)]


def test_shares_of_one_secret_are_not_the_same_twice():
    keys, _ = make_holders(1)
    stream = Stream.from_seed(4, "split")
    first, second = (split_keys(keys[0], threshold=2, holders=2, stream=stream) for _ in range(2))
    assert first.shape == (2, 2, 2, 2048)
    assert (first == second).mean() < 1e-3
    assert (first[:, 0] == first[:, 1]).mean() < 1e-3


@pytest.mark.parametrize("members", [(0, 1), (0, 1, 1), (0, 1, 4), (-1, 0, 1), (1, 2, 3), (0, 0, 0, 0), ()], ids=str)
def test_wrong_sets_are_refused_and_not_remembered(members):
    _, public, points = make_threshold(3, 4)
    guard = DecryptionGuard()
    with pytest.raises(RemoteProtocolError, match="holders"):
        share(points[0], make_answers(public, np.array([[1, 2]])), members, guard)
    assert guard.masks_spent == 0


def test_a_holder_answers_for_one_set():
    _, public, points = make_threshold(2, 3)
    batch = make_answers(public, np.array([[1, 2]]))
    guard = DecryptionGuard()
    share(points[0], batch, (0, 1), guard)
    with pytest.raises(RemoteProtocolError, match="decrypted once"):
        share(points[0], batch, (0, 2), guard)


def test_shares_for_different_sets_do_not_combine():
    _, public, points = make_threshold(2, 3)
    batch = make_answers(public, np.array([[1, 2]]))
    assert combine_decryptions(batch, [share(points[0], batch, (0, 1)), share(points[2], batch, (0, 2))]) != [1, 2]


def test_thresholds_outside_the_holders():
    keys, _ = make_holders(1)
    for needed, holders in ((0, 2), (3, 2)):
        with pytest.raises(ConfigError, match="threshold"):
            split_keys(keys[0], threshold=needed, holders=holders, stream=Stream.from_seed(1, "x"))
    shares = split_keys(keys[0], threshold=1, holders=1, stream=Stream.from_seed(1, "x"))
    with pytest.raises(LocalProtocolError):
        ThresholdKeys(PARAMETERS, list(shares), number=1, threshold=1)


def test_malformed_key_shares_name_their_sender():
    keys, _ = make_holders(1)
    shares = split_keys(keys[0], threshold=2, holders=2, stream=Stream.from_seed(1, "x"))
    bad = shares[0] | np.uint32(1 << 31)
    for wrong in (bad, shares[0][:1], shares[0].astype(np.int64)):
        with pytest.raises(RemoteProtocolError, match="holder 1"):
            ThresholdKeys(PARAMETERS, [shares[0], wrong], number=0, threshold=2)


def test_closed_keys_are_zero_and_refused():
    _, public, points = make_threshold(2, 2)
    with points[0] as key:
        held = key.points
        assert held.any()
    assert not held.any()
    with pytest.raises(LocalProtocolError, match="closed"):
        share(points[0], make_answers(public, np.array([[1, 2]])), (0, 1))
    assert "closed=True" in repr(points[0])
    with pytest.raises(TypeError):
        points[1].__reduce__()


# --- where the coefficients come from -----------------------------------------------------------------------------


def interpolate_with_equal_coefficients(ring, first, second):
    """f(1) = s + 2 c and f(2) = s + 6 c if both coefficients are c: then 2 s = 3 f(1) - f(2)."""
    half = np.array([pow(2, -1, prime) for prime in PARAMETERS.primes], dtype=np.uint32)
    three = ring.residues_of(3)
    return ring.scale(ring.subtract(ring.scale(first, three), second), half)


def find_coefficients(ring, shares):
    """The coefficients of x and x^2, from three shares: differences of f(1), f(2), f(3)."""
    first, second, third = shares[:3]
    half = np.array([pow(2, -1, prime) for prime in PARAMETERS.primes], dtype=np.uint32)
    squared = ring.scale(ring.add(ring.subtract(third, second), ring.subtract(first, second)), half)
    linear = ring.subtract(ring.subtract(second, first), ring.scale(squared, ring.residues_of(3)))
    return linear, squared


def draw_coefficients(stream):
    (key,), _ = make_holders(1, secrets=2)
    shares = split_keys(key, threshold=3, holders=4, stream=stream)
    return key, shares, find_coefficients(PARAMETERS.ring, shares)


def test_every_coefficient_of_every_power_and_secret_is_drawn_on_its_own():
    """With three of four to decrypt: two shares do not give the secret, as they would if both coefficients were one."""
    ring = PARAMETERS.ring
    key, shares, coefficients = draw_coefficients(SystemEntropy())
    assert not np.array_equal(interpolate_with_equal_coefficients(ring, shares[0], shares[1]), key.ntt)
    drawn = [own[secret] for own in coefficients for secret in range(key.count)]
    drawn += [own[secret] for own in draw_coefficients(SystemEntropy())[2] for secret in range(key.count)]
    for one, other in itertools.combinations(drawn, 2):
        assert (one == other).mean() < 1e-3
    for own in drawn:
        assert len(np.unique(own[0])) > 0.99 * PARAMETERS.degree  # of 2^26 values
        assert own[0].max() > 0.99 * PARAMETERS.primes[0]


def test_the_mutant_with_equal_coefficients_gives_the_secret_to_two(monkeypatch):
    real = threshold.expand_uniform

    def always_the_first(parameters, key, what, power, number):
        return real(parameters, key, what, 1, number)

    monkeypatch.setattr(threshold, "expand_uniform", always_the_first)
    key, shares, (linear, squared) = draw_coefficients(SystemEntropy())
    assert np.array_equal(linear, squared)
    assert np.array_equal(interpolate_with_equal_coefficients(PARAMETERS.ring, shares[0], shares[1]), key.ntt)
