"""Worst-case neighbours reach the declared sensitivity and never pass it."""

import numpy as np
import pytest

from cloister.audit import entry_labels, exact_pair, worst_records
from cloister.errors import ConfigError
from cloister.numeric import FixedPoint
from cloister.privacy.encoder import SumCountEncoder


def encoder(dimensions, norm_bound=None):
    return SumCountEncoder(
        dimensions=dimensions, fixed_point=FixedPoint(16), count_weight=40_000, norm_bound=norm_bound
    )


@pytest.mark.parametrize("dimensions", [1, 2, 10, 100])
@pytest.mark.parametrize("norm_bound", [None, 70_000])
@pytest.mark.parametrize(("clusters", "rounds"), [(1, 1), (2, 3), (5, 2)])
def test_every_round_stays_within_the_sensitivity_and_the_first_record_reaches_it(
    dimensions, norm_bound, clusters, rounds
):
    code = encoder(dimensions, norm_bound)
    for number, record in enumerate(worst_records(dimensions, clusters=clusters, rounds=rounds)):
        pair = exact_pair(record, code, clusters=clusters)
        by_round = (pair.exact_with - pair.exact_without).reshape(rounds, -1).astype(object)
        squares = (by_round**2).sum(axis=1)
        assert max(squares) <= code.sensitivity.l2_squared
        assert np.abs(by_round).sum(axis=1).max() <= code.sensitivity.l1
        if number == 0:
            assert min(squares) >= 0.999 * code.sensitivity.l2_squared


def test_a_record_alone_touches_only_its_cluster_and_one_moves():
    records = worst_records(2, clusters=3, rounds=4)
    assert records[0].clusters == (0, 0, 0, 0)
    assert records[-1].clusters == (0, 1, 2, 0)
    pair = exact_pair(records[-1], encoder(2), clusters=3)
    slots = pair.exact_with.reshape(4, 3, 3)
    assert np.argwhere(slots.any(axis=2)).tolist() == [[0, 0], [1, 1], [2, 2], [3, 0]]
    assert slots[1, 1].tolist() == [65536, 65536, 40_000]
    assert not pair.exact_without.any()


def test_labels_follow_the_layout():
    labels = entry_labels(2, clusters=2, rounds=2)
    assert len(labels) == len(set(labels)) == 12
    assert labels[2] == "round 1, cluster 1, count"
    assert labels[9] == "round 2, cluster 2, sum 1"


def test_sizes_must_be_positive():
    with pytest.raises(ConfigError, match="at least 1"):
        worst_records(2, clusters=0, rounds=1)
