"""k-FED finds well separated clusters when it starts well; its card says that it has no privacy."""

from __future__ import annotations

import io

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cloister.crypto import Stream
from cloister.errors import ConfigError
from cloister.privacy.units import Unit
from cloister.report.card_text import print_card
from cloister.report.layout import make_console
from papers.data.partition import split_by_label
from papers.lab.k_fed import centre_separation, cluster_locally, group_centres, k_fed, write_k_fed_card
from papers.lab.scores import matched_accuracy

CLUSTERS = 9


@pytest.fixture(scope="module")
def blobs() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    labels = np.repeat(np.arange(CLUSTERS), 60)
    centres = np.stack(np.meshgrid([-1.0, 0.0, 1.0], [-1.0, 0.0, 1.0]), axis=-1).reshape(-1, 2)
    return centres[labels] + rng.normal(0, 0.03, (len(labels), 2)), labels


def accuracy(blobs, local_k: int, variant, seed: int = 1) -> float:
    points, truth = blobs
    parts = split_by_label(truth, 9, local_k, Stream.from_seed(seed, "split"))
    fit = k_fed([points[rows] for rows in parts], CLUSTERS, local_k, Stream.from_seed(seed, "k-fed"), variant=variant)
    assert [len(own) for own in fit.labels] == [len(rows) for rows in parts]
    return matched_accuracy(truth[np.concatenate(parts)], np.concatenate(fit.labels))


@pytest.mark.parametrize("local_k", [1, 2, 3])
def test_repaired_it_finds_the_clusters_where_its_theorem_holds(blobs, local_k) -> None:
    """k' up to sqrt k."""
    assert [accuracy(blobs, local_k, "repaired", seed) for seed in range(5)] == [1.0] * 5


def test_random_starts_merge_clusters_that_good_ones_tell_apart(blobs) -> None:
    described = [accuracy(blobs, 2, "described", seed) for seed in range(8)]
    repaired = [accuracy(blobs, 2, "repaired", seed) for seed in range(8)]
    assert np.mean(described) < 0.9
    assert repaired == [1.0] * 8


def test_a_label_is_the_group_of_the_local_centre_and_a_centre_the_mean_of_its_group(blobs) -> None:
    points, truth = blobs
    parts = split_by_label(truth, 6, 3, Stream.from_seed(0, "split"))
    fit = k_fed([points[rows] for rows in parts], CLUSTERS, 3, Stream.from_seed(0, "k-fed"), variant="repaired")
    groups: dict[int, list[np.ndarray]] = {}
    for rows, sent, labels in zip(parts, fit.local_centres, fit.labels, strict=True):
        own = ((points[rows][:, None] - sent) ** 2).sum(axis=2).argmin(axis=1)
        for number, centre in enumerate(sent):
            (label,) = set(labels[own == number].tolist())
            groups.setdefault(label, []).append(centre)
    for label, centres in groups.items():
        assert fit.centres[label] == pytest.approx(np.mean(centres, axis=0))


def test_the_server_starts_from_the_client_with_most_centres_and_goes_farthest_first() -> None:
    sent = [np.array([[0.1]]), np.array([[0.0], [1.0]]), np.array([[10.0]]), np.array([[5.0], [10.2]])]
    groups = group_centres(sent, 4, Stream.from_seed(0, "server"), variant="repaired")
    # from client 2: 0 and 1; the farthest is 10.2, then 5
    assert groups.labels.tolist() == [0, 0, 1, 2, 3, 2]
    assert groups.centres[:, 0] == pytest.approx([0.05, 1.0, 10.1, 5.0])


@settings(max_examples=60, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 4), min_size=1, max_size=6),
    k=st.integers(1, 6),
    seed=st.integers(0, 1000),
)
def test_every_repaired_group_has_a_centre_if_there_are_enough_different_ones(sizes, k, seed) -> None:
    rng = np.random.default_rng(seed)
    sent = [rng.uniform(-1, 1, (size, 2)) for size in sizes]
    if sum(sizes) < k:
        with pytest.raises(ConfigError, match=f"they send {sum(sizes)}"):
            group_centres(sent, k, Stream.from_seed(seed, "server"), variant="repaired")
        return
    groups = group_centres(sent, k, Stream.from_seed(seed, "server"), variant="repaired")
    assert set(groups.labels.tolist()) == set(range(k))


@pytest.mark.parametrize("variant", ["described", "repaired"])
def test_the_same_stream_gives_the_same_clusters_and_another_one_others(blobs, variant) -> None:
    points, _ = blobs
    runs = [cluster_locally(points, 5, Stream.from_seed(seed, "x"), variant=variant) for seed in (1, 1, 2)]
    assert np.array_equal(runs[0].centres, runs[1].centres)
    assert not np.array_equal(runs[0].centres, runs[2].centres)


@pytest.mark.parametrize("variant", ["described", "repaired"])
def test_a_client_with_few_records_sends_fewer_centres(variant) -> None:
    found = cluster_locally(np.array([[0.0], [1.0]]), 5, Stream.from_seed(0, "x"), variant=variant)
    assert sorted(found.centres[:, 0].tolist()) == [0.0, 1.0]


def test_no_clients_no_records_and_no_clusters_are_refused() -> None:
    stream = Stream.from_seed(0, "x")
    with pytest.raises(ConfigError, match="number of clients must be at least 1"):
        k_fed([], 2, 1, stream, variant="repaired")
    with pytest.raises(ConfigError, match="number of records of a client must be at least 1"):
        k_fed([np.empty((0, 2))], 1, 1, stream, variant="repaired")
    with pytest.raises(ConfigError, match="local_k must be at least 1"):
        k_fed([np.zeros((3, 2))], 1, 0, stream, variant="described")


def test_centre_separation_follows_the_one_third_rule() -> None:
    points = np.array([[0.0], [0.24], [0.26], [0.5], [0.9], [1.1]])
    moved = centre_separation(points, np.array([[0.0], [1.0], [5.0]]))
    # 0.24 is clearly of centre 0 (0.24 <= 0.76 / 3), 0.26 is not; 1.1 is clearly of 1; centre 5 has none and stays.
    np.testing.assert_allclose(moved[:, 0], [0.12, 1.0, 5.0])


def test_centre_separation_with_one_centre_is_the_mean_and_chunks_change_nothing() -> None:
    points = np.random.default_rng(0).uniform(-1, 1, (9001, 2))
    np.testing.assert_allclose(centre_separation(points, np.zeros((1, 2)))[0], points.mean(axis=0))


@pytest.mark.parametrize("unit", list(Unit))
def test_the_card_of_k_fed_promises_nothing(unit: Unit) -> None:
    card = write_k_fed_card(unit)
    assert not card.private
    assert card.is_weak
    assert not card.releases
    assert card.plain_words.startswith("This result as a whole is not differentially private.")
    assert "exact means of its clusters" in card.plain_words


def test_the_card_can_be_printed() -> None:
    text = io.StringIO()
    print_card(write_k_fed_card(Unit.RECORD), make_console(text), ran="simulated")
    words = " ".join(text.getvalue().split())
    assert "not differentially private. Nothing in it is protected" in words
    assert "Noise: Nobody." in words
