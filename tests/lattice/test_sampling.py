import hashlib
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from cloister.crypto import Stream
from cloister.lattice.parameters import Parameters
from cloister.lattice.ring import Ring
from cloister.lattice.sampling import (
    ERROR_MAX,
    ERROR_STD,
    ERROR_TABLE,
    draw_errors,
    draw_ternary,
    expand_masks,
    expand_uniform,
)
from tests.lattice import reference

ALPHA = 1e-6
PARAMETERS = Parameters.make(2048, 2, 2**20)
KEY = bytes(range(32))


class Script:
    """A stream whose bytes are given."""

    is_simulation = True

    def __init__(self, raw):
        self.raw = raw

    def bytes(self, count):
        out, self.raw = self.raw[:count], self.raw[count:]
        assert len(out) == count
        return out


def digest(array):
    return hashlib.sha256(np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<")).tobytes()).hexdigest()[:32]


def test_masks_are_known_and_agree_with_the_reference():
    masks = expand_masks(PARAMETERS, KEY, 5, 3)
    assert digest(masks) == "afb3cdb9a44688758c2618c89ed90fb4"
    expected = reference.expand(PARAMETERS.primes, 2048, KEY, 3, "lattice masks", 5)
    assert masks.tolist() == expected


def test_polynomials_are_known_and_agree_with_the_reference():
    polynomial = expand_uniform(PARAMETERS, KEY, "public key")
    assert digest(polynomial) == "913b831f5d1167400f0454dcdd0f7d41"
    assert (
        polynomial.tolist() == reference.expand(PARAMETERS.primes, 2048, KEY, 1, "lattice polynomial", "public key")[0]
    )


def test_fewer_masks_are_the_first_of_more_and_other_labels_give_others():
    masks = expand_masks(PARAMETERS, KEY, 5, 4)
    assert np.array_equal(masks[:2], expand_masks(PARAMETERS, KEY, 5, 2))
    others = [expand_masks(PARAMETERS, KEY, 6, 4), expand_masks(PARAMETERS, KEY[::-1], 5, 4)]
    others.append(np.stack([expand_uniform(PARAMETERS, KEY, 5)] * 4))
    for other in others:
        assert np.mean(masks == other) < 1e-3


def test_masks_are_uniform_over_all_residues_including_the_last():
    """A tiny prime far below its power of two: most words are rejected, and every residue is equally frequent."""
    ring = Ring(256, (7681,))
    tiny = SimpleNamespace(ring=ring, degree=256, primes=ring.primes)
    values = expand_masks(tiny, KEY, 0, 3000).ravel()
    counts = np.bincount(values, minlength=7681)
    assert counts.size == 7681
    assert counts[-1] > 0
    assert stats.chisquare(counts).pvalue > ALPHA


def test_full_size_masks_are_uniform():
    values = expand_masks(PARAMETERS, KEY, 1, 200)
    for row, prime in enumerate(PARAMETERS.primes):
        assert values[:, row].max() < prime
        counts = np.histogram(values[:, row], bins=64, range=(0, prime))[0]
        assert stats.chisquare(counts).pvalue > ALPHA


def test_errors_are_known_and_agree_with_the_reference():
    stream = Stream.from_seed(7, "errors")
    words = np.frombuffer(Stream.from_seed(7, "errors").bytes(8 * 3000), dtype="<u8")
    errors = draw_errors(stream, 3000)
    assert errors[:12].tolist() == [-4, 2, 3, -5, 1, -1, -2, 0, -2, -6, -5, 1]
    tails = reference.gaussian_tails("3.2", ERROR_MAX)
    assert errors.tolist() == [reference.draw_error(int(word), tails) for word in words]


def test_extreme_words_give_extreme_errors():
    raw = b"".join(word.to_bytes(8, "little") for word in (0, 1, 2**64 - 2, 2**64 - 1))
    low, minus_low, high, minus_high = draw_errors(Script(raw), 4).tolist()
    assert low == minus_low == 0
    assert high == -minus_high
    assert ERROR_MAX - 3 <= high <= ERROR_MAX


def test_table_never_gives_more_tail_than_the_gaussian_and_hardly_less():
    for entry, tail in zip(ERROR_TABLE.tolist(), reference.gaussian_tails("3.2", ERROR_MAX), strict=True):
        given = Fraction(2**63 - entry, 2**63)
        assert given <= tail < given + Fraction(1, 2**63)


def test_nothing_worth_2_to_the_64_is_cut():
    tails = reference.gaussian_tails("3.2", ERROR_MAX + 1)
    assert tails[ERROR_MAX] < Fraction(1, 2**64)


def test_errors_follow_their_law():
    errors = draw_errors(Stream.from_seed(11, "law"), 500, 1000).ravel().astype(int)
    tails = [1.0] + [float(t) for t in reference.gaussian_tails("3.2", ERROR_MAX)]
    sizes = [tails[k] - tails[k + 1] for k in range(ERROR_MAX)]
    cut = 14
    law = np.array([sizes[abs(k)] / (1 if k == 0 else 2) for k in range(-cut, cut + 1)])
    counts = np.bincount(np.clip(errors, -cut, cut) + cut, minlength=2 * cut + 1)
    law[0] = law[-1] = tails[cut] / 2
    assert stats.chisquare(counts, law / law.sum() * errors.size).pvalue > ALPHA
    assert errors.std() == pytest.approx(ERROR_STD, rel=0.01)


def test_ternary_is_uniform_and_rejects_only_the_255():
    assert draw_ternary(Script(bytes([0, 1, 2, 3, 254, 255, 255, 4, 7])), 7).tolist() == [-1, 0, 1, -1, 1, 0, 0]
    counts = np.bincount(draw_ternary(Stream.from_seed(3, "t"), 300, 1000).ravel() + 1)
    assert stats.chisquare(counts).pvalue > ALPHA
    assert draw_ternary(Script(b""), 0, 5).shape == (0, 5)
