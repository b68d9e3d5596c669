"""Metrics against scikit-learn, by hand, and at their edges."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics as reference

from cloister.crypto import Stream
from cloister.errors import ConfigError
from cloister.records import ArrayRecords
from papers.lab.scores import (
    adjusted_rand,
    bcss,
    davies_bouldin,
    dunn,
    empty_clusters,
    fowlkes_mallows,
    matched_accuracy,
    nicv,
    normalised_mutual_information,
    silhouette,
    wcss,
)


def labelled(seed: int = 0, n: int = 300, k: int = 4) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    labels = generator.integers(0, k, n)
    return generator.normal(size=(n, 3)) + 3 * generator.normal(size=(k, 3))[labels], labels


@given(seed=st.integers(0, 2**32), n=st.integers(1, 80), k=st.integers(1, 9))
@settings(deadline=None)
def test_within_and_between_make_the_total(seed: int, n: int, k: int) -> None:
    generator = np.random.default_rng(seed)
    points, labels = generator.uniform(-1, 1, (n, 2)), generator.integers(0, k, n)
    means = np.array([points[labels == j].mean(axis=0) if (labels == j).any() else [9.0, 9.0] for j in range(k)])
    total = ((points - points.mean(axis=0)) ** 2).sum()
    assert wcss(points, means, labels) + bcss(points, labels) == pytest.approx(total, rel=1e-9, abs=1e-12)


def test_wcss_and_nicv_use_the_nearest_centre_unless_told() -> None:
    points, centres = np.array([[0.0], [1.0], [4.0]]), np.array([[0.0], [3.0]])
    assert wcss(points, centres) == wcss(ArrayRecords(points), centres) == 2.0
    assert nicv(points, centres) == pytest.approx(2 / 3)
    assert wcss(points, centres, np.array([1, 1, 0])) == 9 + 4 + 16
    assert nicv(points, centres, np.array([1, 1, 0])) == pytest.approx(29 / 3)


def test_separation_indices_agree_with_scikit_learn() -> None:
    points, labels = labelled()
    assert silhouette(points, labels) == pytest.approx(reference.silhouette_score(points, labels))
    assert davies_bouldin(points, labels) == pytest.approx(reference.davies_bouldin_score(points, labels))


def test_dunn_by_hand_and_by_definition() -> None:
    assert dunn(np.array([[0.0], [1.0], [4.0], [6.0]]), np.array([0, 0, 1, 1])) == 3.0 / 2.0
    points, labels = labelled(n=60)
    distances = reference.pairwise_distances(points)
    same = labels[:, None] == labels
    expected = distances[~same].min() / distances[same].max()
    assert dunn(points, labels) == pytest.approx(expected)


def test_dunn_does_not_depend_on_the_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    points, labels = labelled()
    whole = dunn(points, labels)
    monkeypatch.setattr("papers.lab.scores._PAIRS_AT_ONCE", 1000)
    assert dunn(points, labels) == whole


def test_sampled_indices_are_near_the_full_ones_and_follow_the_stream() -> None:
    points, labels = labelled(n=2000)
    full = silhouette(points, labels)

    def sampled(seed: int) -> float:
        return silhouette(points, labels, stream=Stream.from_seed(seed, "s"), sample_size=500)

    assert sampled(1) == sampled(1) != sampled(2)
    assert sampled(1) == pytest.approx(full, abs=0.1)
    assert dunn(points, labels, stream=Stream.from_seed(1, "d"), sample_size=100) >= dunn(points, labels)
    for index in (silhouette, dunn):
        with pytest.raises(ConfigError, match="sample_size=500 records need a stream"):
            index(points, labels, sample_size=500)


def test_edges_have_the_documented_values() -> None:
    points = np.array([[0.0], [1.0], [2.0]])
    one, alone = np.zeros(3, dtype=int), np.arange(3)
    assert (silhouette(points, one), davies_bouldin(points, one), dunn(points, one)) == (0.0, math.inf, 0.0)
    assert (silhouette(points, alone), davies_bouldin(points, alone), dunn(points, alone)) == (0.0, 0.0, math.inf)
    assert dunn(np.zeros((4, 1)), np.array([0, 0, 1, 1])) == 0.0
    assert silhouette(points, np.array([0, 0, 7])) == pytest.approx(reference.silhouette_score(points, [0, 0, 7]))


@pytest.mark.parametrize("metric", [silhouette, davies_bouldin, dunn, bcss])
def test_labels_and_points_are_checked(metric) -> None:
    points = np.zeros((3, 1))
    for labels in (np.zeros(2, dtype=int), np.zeros(3), np.array([0, 1, -1])):
        with pytest.raises(ConfigError, match="labels"):
            metric(points, labels)
    with pytest.raises(ConfigError, match="at least 1; got 0"):
        metric(np.empty((0, 1)), np.empty(0, dtype=int))


def test_wcss_refuses_labels_without_a_centre() -> None:
    with pytest.raises(ConfigError, match="less than the number of centres, 2; got up to 2"):
        wcss(np.zeros((1, 1)), np.zeros((2, 1)), np.array([2]))
    with pytest.raises(ConfigError, match="at least 1; got 0"):
        nicv(np.empty((0, 1)), np.zeros((2, 1)))


@given(seed=st.integers(0, 2**32), n=st.integers(2, 60), k=st.integers(1, 5))
@settings(max_examples=40, deadline=None)
def test_agreement_is_that_of_scikit_learn_and_blind_to_names(seed: int, n: int, k: int) -> None:
    generator = np.random.default_rng(seed)
    truth, labels = generator.integers(0, 3, n), generator.integers(0, k, n)
    assert adjusted_rand(truth, labels) == pytest.approx(reference.adjusted_rand_score(truth, labels))
    assert normalised_mutual_information(truth, labels) == pytest.approx(
        reference.normalized_mutual_info_score(truth, labels)
    )
    assert fowlkes_mallows(truth, labels) == pytest.approx(reference.fowlkes_mallows_score(truth, labels))
    names = np.array(["e", "d", "c", "b", "a"])[labels]
    for measure in (adjusted_rand, normalised_mutual_information, fowlkes_mallows, matched_accuracy):
        assert measure(truth, names) == pytest.approx(measure(truth, labels))
    assert adjusted_rand(truth, truth) == matched_accuracy(truth, truth) == 1.0


def test_matched_accuracy_by_hand() -> None:
    assert matched_accuracy([0, 0, 1, 1, 2, 2], [5, 5, 3, 3, 3, 4]) == 5 / 6
    assert matched_accuracy([0, 0, 0, 0], [0, 1, 2, 3]) == 1 / 4  # one class can have one cluster only
    assert matched_accuracy([0, 1, 2, 3], [0, 0, 0, 0]) == 1 / 4
    # The best matching gives up the largest overlap: (0-b, 1-a) has 5 + 4, (0-a, 1-b) has 6 + 0.
    assert matched_accuracy([0] * 11 + [1] * 4, ["a"] * 6 + ["b"] * 5 + ["a"] * 4) == 9 / 15


def test_agreement_needs_the_same_records() -> None:
    for pair in (([0, 1], [0]), ([], []), ([[0]], [[0]])):
        with pytest.raises(ConfigError, match="same length"):
            adjusted_rand(*pair)


def test_empty_clusters_is_a_ratio() -> None:
    assert empty_clusters(np.array([3, 0, 1, 0])) == 0.5
    with pytest.raises(ConfigError):
        empty_clusters(np.array([], dtype=int))
