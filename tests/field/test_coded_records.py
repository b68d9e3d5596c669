"""A whole round in the code equals the round over plain integers, for every set of clients that may decode it."""

import itertools

import numpy as np
import pytest

from cloister.crypto import Stream
from cloister.errors import LocalProtocolError, RemoteProtocolError
from cloister.field import (
    FIELD61,
    FIELD122,
    CodedRecords,
    LagrangeCode,
    choose_field,
    find_nearest,
    largest_distance,
    most_bits,
)
from tests.field.reference import exact_distances, exact_nearest


def coded_clients(field, records, *, clients, segments, privacy):
    code = LagrangeCode(field=field, clients=clients, segments=segments, privacy=privacy)
    shares = code.share(field.encode(records), Stream.from_seed(1, "noise"))
    return code, [CodedRecords(field, share) for share in shares]


def random_records(field, rows, dimensions, bits=None):
    bits = bits or most_bits(field, dimensions=dimensions, records=rows)
    return np.random.default_rng(1).integers(-(2 ** (bits - 1)), 2 ** (bits - 1) + 1, (rows, dimensions)), bits


@pytest.mark.parametrize("field", [FIELD61, FIELD122])
@pytest.mark.parametrize(
    ("clients", "segments", "privacy", "rows", "dimensions", "k"),
    [(3, 1, 1, 1, 1, 1), (6, 1, 2, 9, 5, 3), (7, 2, 1, 12, 7, 4), (8, 2, 2, 5, 130, 2)],
)
def test_a_round_is_exact_from_every_set_of_responders(field, clients, segments, privacy, rows, dimensions, k):
    records, bits = random_records(field, rows, dimensions)
    labels = np.random.default_rng(2).integers(0, k, rows).astype(np.int32)
    counts = np.bincount(labels, minlength=k)
    expected = exact_distances(records, labels, k)
    code, coded = coded_clients(field, records, clients=clients, segments=segments, privacy=privacy)
    sums = [one.sum_clusters(labels, k) for one in coded]
    largest = largest_distance(dimensions=dimensions, records=rows, bits=bits)
    for responders in itertools.combinations(range(1, clients + 1), code.replies):
        replies = [
            coded[j - 1].measure(sums[j - 1], counts, weight=code.weigh_client(responders, j)) for j in responders
        ]
        distances = field.decode_distances(field.add(replies), largest=largest)
        assert distances.to_integers().tolist() == expected
        assert find_nearest(distances, counts).tolist() == exact_nearest(expected, counts)
    unweighted = np.stack([coded[j - 1].measure(sums[j - 1], counts) for j in responders])
    assert field.decode_distances(code.combine_distances(responders, unweighted)).to_integers().tolist() == expected


@pytest.mark.parametrize("field", [FIELD61, FIELD122])
def test_the_extreme_distance_survives_the_whole_round(field):
    rows, dimensions = 4, 3
    bits = most_bits(field, dimensions=dimensions, records=rows)
    records = np.full((rows, dimensions), 2 ** (bits - 1), dtype=np.int64)
    records[0] *= -1
    labels, counts = np.array([1, 0, 0, 0], dtype=np.int32), np.array([3, 1])
    code, coded = coded_clients(field, records, clients=3, segments=1, privacy=1)
    replies = [
        one.measure(one.sum_clusters(labels, 2), counts, weight=code.weigh_client((1, 2, 3), j))
        for j, one in enumerate(coded, start=1)
    ]
    decoded = field.decode_distances(field.add(replies)).to_integers()
    assert decoded[0, 0] == largest_distance(dimensions=dimensions, records=rows, bits=bits)


def test_masks_that_add_up_to_zero_leave_the_sum_and_hide_each_reply():
    field = choose_field(dimensions=4, records=10, bits=17)
    records, _ = random_records(field, 10, 4, bits=17)
    labels = np.arange(10, dtype=np.int32) % 2
    counts = np.array([5, 5])
    code, coded = coded_clients(field, records, clients=5, segments=1, privacy=2)
    masks = [field.uniform(Stream.from_seed(j, "mask"), 10, 2) for j in range(4)]
    last = field.zeros(10, 2)
    for mask in masks:
        field.deduct(last, mask)
    plain, masked = [], []
    for j, (one, mask) in enumerate(zip(coded, [*masks, last], strict=True), start=1):
        weight = code.weigh_client(range(1, 6), j)
        plain.append(one.measure(one.sum_clusters(labels, 2), counts, weight=weight))
        masked.append(one.measure(one.sum_clusters(labels, 2), counts, weight=weight, mask=mask))
        assert not (plain[-1] == masked[-1]).any()
    assert (field.add(plain) == field.add(masked)).all()


def test_some_columns_can_be_measured_alone():
    records, _ = random_records(FIELD61, 8, 3)
    labels, counts = np.arange(8, dtype=np.int32) % 4, np.full(4, 2)
    _, (one, *_) = coded_clients(FIELD61, records, clients=3, segments=1, privacy=1)
    sums = one.sum_clusters(labels, 4)
    whole = one.measure(sums, counts)
    assert (one.measure(sums[:, [3, 1]], counts[[3, 1]]) == whole[:, :, [3, 1]]).all()


def test_records_without_a_cluster_count_nowhere_and_empty_clusters_sum_to_zero():
    records, _ = random_records(FIELD61, 3, 2)
    _, (one, *_) = coded_clients(FIELD61, records, clients=3, segments=1, privacy=1)
    sums = one.sum_clusters(np.array([-1, 2, -1], dtype=np.int32), 3)
    assert not sums[:, :2].any()
    assert (sums[:, 2] == one.shares[:, 1]).all()
    assert not one.measure(sums[:, :1], np.array([0])).any()


def test_shares_of_zeros_add_up_to_shares_of_the_record():
    # Appendix B: who does not hold a record shares zeros for it, and the clients add what they receive.
    code = LagrangeCode(field=FIELD61, clients=5, segments=2, privacy=1)
    held = np.array([[1, -2, 3, 4]])
    sent = [
        code.share(FIELD61.encode(held if owner == 2 else 0 * held), Stream.from_seed(owner, "noise"))
        for owner in range(5)
    ]
    received = np.stack([FIELD61.add(shares[client] for shares in sent) for client in (0, 2, 4)])
    assert FIELD61.decode(code.reveal((1, 3, 5), received, 4)).tolist() == held.tolist()


def test_a_wrong_reply_is_noticed_by_the_bound():
    records, _ = random_records(FIELD61, 6, 2, bits=8)
    labels, counts = np.zeros(6, dtype=np.int32), np.array([6])
    code, coded = coded_clients(FIELD61, records, clients=3, segments=1, privacy=1)
    replies = [
        one.measure(one.sum_clusters(labels, 1), counts, weight=code.weigh_client((1, 2, 3), j))
        for j, one in enumerate(coded, start=1)
    ]
    replies[1] = FIELD61.uniform(Stream.from_seed(1, "wrong"), 6, 1)
    with pytest.raises(RemoteProtocolError, match="6 of 6 are larger"):
        FIELD61.decode_distances(FIELD61.add(replies), largest=largest_distance(dimensions=2, records=6, bits=8))


def test_arguments_that_do_not_fit_are_a_bug_here():
    one = CodedRecords(FIELD61, FIELD61.zeros(4, 3))
    counts = np.array([2, 2])
    with pytest.raises(LocalProtocolError, match="shares must be"):
        CodedRecords(FIELD122, FIELD61.zeros(4, 3))
    for labels in ([0, 1], [0, 1, 2, 0], [0, -2, 0, 1]):
        with pytest.raises(LocalProtocolError, match="one label for each of 4 records, from -1 to 1"):
            one.sum_clusters(np.array(labels, dtype=np.int32), 2)
    for sums, mask in ((FIELD61.zeros(3, 3), None), (FIELD61.zeros(2, 3), FIELD61.zeros(2, 4))):
        with pytest.raises(LocalProtocolError, match="must come with 2 counts"):
            one.measure(sums, counts, mask=mask)
