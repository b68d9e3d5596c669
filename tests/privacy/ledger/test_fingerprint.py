"""A data set is recognised by its content, whatever its order, and by nobody without the salt."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from cloister.errors import ConfigError, DataError
from cloister.privacy.ledger.fingerprint import fingerprint_label, fingerprint_records

SALT = bytes(range(32))
TABLES = arrays(
    np.float64, st.tuples(st.integers(1, 12), st.integers(1, 3)), elements=st.sampled_from([-1.0, 0.0, 0.5])
)


class Batched:
    """Records in batches of given sizes."""

    def __init__(self, points, cuts=()):
        self.points, self.cuts = np.asarray(points, dtype=float), cuts

    def batches(self):
        yield from np.split(self.points, self.cuts)


def fingerprint(points, cuts=(), salt=SALT, columns=None):
    return fingerprint_records(Batched(points, cuts).batches(), salt=salt, columns=columns)


@given(points=TABLES, data=st.data())
def test_order_and_batches_do_not_matter(points, data):
    order = data.draw(st.permutations(range(len(points))))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(points)), max_size=4)))
    assert fingerprint(points[list(order)], cuts) == fingerprint(points)


@given(first=TABLES, second=TABLES)
def test_equal_exactly_for_equal_multisets(first, second):
    as_multiset = [sorted(map(tuple, table.tolist())) for table in (first, second)]
    equal = first.shape == second.shape and as_multiset[0] == as_multiset[1]
    assert (fingerprint(first) == fingerprint(second)) == equal


def test_duplicates_count():
    # With XOR instead of addition these would collide.
    table = [[0.25, 0.5]]
    seen = {fingerprint(table * copies) for copies in range(1, 6)}
    assert len(seen) == 5
    assert fingerprint([[0.1], [0.1], [0.7]]) != fingerprint([[0.3], [0.3], [0.7]])


def test_columns_are_not_interchangeable_and_shape_counts():
    assert fingerprint([[0.25, 0.5]]) != fingerprint([[0.5, 0.25]])
    assert fingerprint([[0.25, 0.5]]) != fingerprint([[0.25], [0.5]])


def test_zero_has_no_sign_and_memory_layout_does_not_matter():
    assert fingerprint([[0.0, -0.0]]) == fingerprint([[-0.0, 0.0]])
    points = np.arange(12.0).reshape(4, 3)
    assert fingerprint(np.asfortranarray(points)) == fingerprint(points)


def test_another_salt_gives_unrelated_fingerprints():
    other = bytes(32)
    assert fingerprint([[0.5]], salt=other) != fingerprint([[0.5]])
    assert fingerprint_label("patients", salt=other) != fingerprint_label("patients", salt=SALT)


def test_known_answer_written_out():
    """The definition, with integers and hashlib only."""
    import hashlib

    points = np.array([[0.5, -1.0], [0.5, -1.0], [0.0, 0.25]])
    hashes = [
        hashlib.blake2b(row.tobytes(), key=SALT, digest_size=32, person=b"cloister record").digest() for row in points
    ]
    total = sum(int.from_bytes(one, "little") for one in hashes) % 2**256
    message = total.to_bytes(32, "little") + (3).to_bytes(8, "little") + (2).to_bytes(8, "little")
    expected = hashlib.blake2b(message, key=SALT, digest_size=32, person=b"cloister table").hexdigest()
    assert fingerprint(points) == expected


def test_a_label_is_its_own_kind_of_fingerprint():
    label = fingerprint_label("patients", salt=SALT)
    assert len(label) == len(fingerprint([[0.5]])) == 64
    assert label == fingerprint_label("patients", salt=SALT) != fingerprint_label("customers", salt=SALT)
    with pytest.raises(ConfigError, match="label must not be empty"):
        fingerprint_label("  ", salt=SALT)


@given(points=TABLES)
def test_the_public_number_of_columns_changes_no_fingerprint(points):
    assert fingerprint(points, columns=points.shape[1]) == fingerprint(points)
    with pytest.raises(DataError, match="columns; got"):
        fingerprint(points, columns=points.shape[1] + 1)


def test_no_records_have_a_fingerprint_of_their_own():
    empty = fingerprint_records([], salt=SALT, columns=2)
    assert empty == fingerprint(np.zeros((0, 2)), columns=2) == fingerprint(np.zeros((0, 2)))
    others = {
        fingerprint_records([], salt=SALT, columns=3),
        fingerprint([[0.0, 0.0]]),
        fingerprint_records([], salt=bytes(32), columns=2),
    }
    assert len(others | {empty}) == 4


def test_refuses_nothing_to_hash_and_a_short_salt():
    with pytest.raises(DataError, match="must come with its number of columns"):
        fingerprint_records([], salt=SALT)
    with pytest.raises(ConfigError, match="salt must have 16 to 64 bytes; got 3"):
        fingerprint([[0.5]], salt=b"abc")


def test_refuses_batches_of_two_tables():
    class TwoTables:
        def batches(self):
            yield np.zeros((1, 2))
            yield np.zeros((1, 3))

    with pytest.raises(DataError, match="must have 2 columns; got 3"):
        fingerprint_records(TwoTables().batches(), salt=SALT)


def test_is_fast_enough_for_large_tables():
    points = np.random.default_rng(1).random((50_000, 2))
    start = time.process_time()
    fingerprint(points)
    assert 50_000 / (time.process_time() - start) > 50_000  # 1.2 million where this was written
