"""Shamir shares: any threshold of them give the key back, fewer are independent of it."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from cloister.crypto import SHARE_BYTES, SeededEntropy, SystemEntropy, combine_shares, secret_sharing, split_secret
from cloister.crypto.secret_sharing import PRIME
from cloister.errors import LocalProtocolError, RemoteProtocolError


@given(st.binary(min_size=32, max_size=32), st.integers(1, 5), st.integers(0, 2), st.integers(0))
def test_any_threshold_of_shares_gives_the_secret_back(secret, threshold, more, seed):
    holders = [3 * number + 1 for number in range(threshold + more)]
    shares = split_secret(secret, threshold=threshold, holders=holders, entropy=SeededEntropy(seed % 2**64, "e"))
    assert list(shares) == holders
    for chosen in itertools.combinations(holders, threshold):
        assert combine_shares({number: shares[number] for number in chosen}) == secret


def test_largest_and_smallest_secrets():
    for secret in (bytes(32), b"\xff" * 32):
        shares = split_secret(secret, threshold=3, holders=[1, 2, 65535], entropy=SeededEntropy(1, "e"))
        assert combine_shares(shares) == secret


def test_fewer_than_the_threshold_are_independent_of_the_secret_exhaustively(monkeypatch):
    """Modulo 7: over all coefficients, any two of four shares with threshold 3 take every value equally often."""
    monkeypatch.setattr(secret_sharing, "PRIME", 7)
    for secret, places in itertools.product(range(7), itertools.combinations([1, 2, 3, 4], 2)):
        seen = [
            tuple(secret_sharing._evaluate([secret, *rest], at) for at in places)
            for rest in itertools.product(range(7), repeat=2)
        ]
        assert sorted(seen) == sorted(itertools.product(range(7), repeat=2))


def test_one_share_of_two_is_uniform_whatever_the_secret():
    for secret in (bytes(32), b"\xff" * 32):
        entropy = SeededEntropy(5, "uniform")
        shares = [split_secret(secret, threshold=2, holders=[1, 2], entropy=entropy)[1] for _ in range(4000)]
        places = np.array([int.from_bytes(share, "little") * 64 // PRIME for share in shares])
        assert stats.chisquare(np.bincount(places, minlength=64)).pvalue > 1e-6


class Counting:
    """The operating system's entropy; counts what is drawn."""

    is_simulation = False

    def __init__(self):
        self.drawn = []

    def bytes(self, count):
        self.drawn.append(SystemEntropy().bytes(count))
        return self.drawn[-1]


def interpolate(points):
    """The coefficients, lowest first, of the polynomial through (number, share) points, modulo the prime."""
    total = [0] * len(points)
    for x, share in points.items():
        basis, denominator = [1], 1
        for other in points:
            if other != x:
                basis = [(a * -other + b) % PRIME for a, b in zip([*basis, 0], [0, *basis], strict=True)]
                denominator = denominator * (x - other) % PRIME
        factor = int.from_bytes(share, "little") * pow(denominator, -1, PRIME)
        total = [(one + factor * another) % PRIME for one, another in zip(total, basis, strict=True)]
    return total


@pytest.mark.parametrize("threshold", [3, 4, 7])
def test_every_coefficient_is_drawn_on_its_own(threshold):
    """With equal coefficients two shares would do, whatever the threshold; with small ones, a search."""
    seen = []
    for _ in range(4):
        entropy = Counting()
        shares = split_secret(b"\x05" * 32, threshold=threshold, holders=range(1, threshold + 1), entropy=entropy)
        coefficients = interpolate(shares)
        assert coefficients[0] == int.from_bytes(b"\x05" * 32, "little")
        assert len(entropy.drawn) >= threshold - 1
        assert all(coefficient > PRIME >> 64 for coefficient in coefficients[1:])  # otherwise with a chance of 2^-64
        seen += coefficients[1:]
    assert len(set(seen)) == 4 * (threshold - 1)


@pytest.mark.parametrize("threshold", [3, 4, 7])
def test_one_share_less_than_the_threshold_is_not_the_secret(threshold):
    shares = split_secret(b"\x05" * 32, threshold=threshold, holders=range(1, 9), entropy=SystemEntropy())
    for places in itertools.combinations(shares, threshold - 1):
        few = {place: shares[place] for place in places}
        assert interpolate(few)[0] != int.from_bytes(b"\x05" * 32, "little")


def test_two_splits_of_one_secret_have_no_share_in_common():
    one, other = (split_secret(bytes(32), threshold=3, holders=range(1, 6), entropy=SystemEntropy()) for _ in range(2))
    assert not set(one.values()) & set(other.values())


def test_the_modulus_is_the_first_prime_above_every_key():
    def is_prime(number):  # Miller-Rabin; no composite passes all of these with more than a chance of 4^-20
        odd, twos = number - 1, 0
        while odd % 2 == 0:
            odd, twos = odd // 2, twos + 1
        return all(
            pow(base, odd, number) == 1 or any(pow(base, odd << i, number) == number - 1 for i in range(twos))
            for base in range(2, 22)
        )

    assert [offset for offset in range(1, 298) if is_prime(2**256 + offset)] == [297]
    assert PRIME == 2**256 + 297


@pytest.mark.parametrize(
    ("threshold", "holders", "size"), [(3, [1, 2], 32), (0, [1], 32), (1, [0, 1], 32), (2, [1, 1], 32), (1, [1], 31)]
)
def test_a_split_that_cannot_be_undone_is_refused(threshold, holders, size):
    with pytest.raises(LocalProtocolError, match="at least the threshold"):
        split_secret(bytes(size), threshold=threshold, holders=holders, entropy=SeededEntropy(1, "e"))


def test_bad_shares_are_refused():
    shares = split_secret(bytes(32), threshold=2, holders=[1, 2], entropy=SeededEntropy(1, "e"))
    for bad in [{}, {**shares, 2: b""}, {**shares, 2: b"\xff" * SHARE_BYTES}, {0: shares[1], 1: shares[2]}]:
        with pytest.raises(RemoteProtocolError, match="some are not"):
            combine_shares(bad)
    no_key = {1: (PRIME - 1).to_bytes(SHARE_BYTES, "little")}  # 2^256 + 296: below the prime, above every key
    with pytest.raises(RemoteProtocolError, match="do not give a key"):
        combine_shares(no_key)
