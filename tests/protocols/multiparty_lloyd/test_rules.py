"""Sums of records as integers: what one record adds is exact, whatever the records are and however many."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cloister.kmeans import Unconstrained
from cloister.numeric import FixedPoint
from cloister.protocols.fastlloyd.sound import SoundSettings
from cloister.protocols.multiparty_lloyd.rules import sum_on_grid
from cloister.records import ArrayRecords

WEIGHT = 3


def total_of(points, centres, bits=16):
    return sum_on_grid(ArrayRecords(points), centres, Unconstrained(), FixedPoint(bits), WEIGHT)


@settings(deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 4), st.integers(1, 5))
def test_one_record_changes_one_cluster_by_its_own_integers_even_off_the_grid(seed, dimensions, clusters):
    rng = np.random.default_rng(seed)
    points = rng.uniform(-1.2, 1.2, (rng.integers(1, 40), dimensions))
    centres = rng.uniform(-1, 1, (clusters, dimensions))
    place = rng.integers(0, len(points))
    change = total_of(points, centres) - total_of(np.delete(points, place, axis=0), centres)
    (touched,) = np.flatnonzero(change.any(axis=1))
    expected = np.rint(np.clip(points[place], -1, 1) * 2**16)
    assert change[touched].tolist() == [*expected, WEIGHT]


class Many:
    """More records than a double counts on a fine grid."""

    dimensions = 1

    def __init__(self, batches):
        self._batches = batches

    def batches(self):
        for _ in range(self._batches):
            yield np.ones((2**20, 1))


def test_no_number_of_records_stops_a_party():
    """With 30 fractional bits a double is exact up to 2^23 records: one more must not tell neighbours apart."""
    total = sum_on_grid(Many(9), np.zeros((1, 1)), Unconstrained(), FixedPoint(30), WEIGHT)
    assert total.tolist() == [[9 * 2**50, WEIGHT * 9 * 2**20]]


@pytest.mark.parametrize("rounds", [1, 12, 5000])
def test_radii_never_vanish(rounds):
    radii = SoundSettings(clusters=3, dimensions=2, parties=2, max_records=9, iterations=rounds).radii
    assert len(radii) == rounds
    assert min(radii) > 0.03
