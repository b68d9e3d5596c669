"""One digit in four turns: of MNIST's files, or of the stand-in."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cloister.errors import ConfigError, DataError
from papers.data.digits import IMAGES, LABELS, load_mnist_digit, load_small_digit, rotate_images
from tests.papers.data.test_idx import pack


def write_mnist(folder: Path, images: np.ndarray, digits: np.ndarray) -> Path:
    (folder / IMAGES).write_bytes(pack(images))
    (folder / LABELS).write_bytes(pack(digits))
    return folder


def test_a_quarter_turn_brings_the_right_edge_to_the_top() -> None:
    sample = rotate_images(np.array([[[1, 2], [3, 4]]]))
    assert sample.points.tolist() == [[1, 2, 3, 4], [2, 4, 1, 3], [4, 3, 2, 1], [3, 1, 4, 2]]
    assert sample.labels.tolist() == [0, 1, 2, 3]
    assert np.array_equal(sample.centres, sample.points)


def test_only_images_of_the_digit_are_taken_and_pixels_are_scaled(tmp_path: Path) -> None:
    images = np.random.default_rng(0).integers(0, 256, (20, 5, 5)).astype(np.uint8)
    digits = (np.arange(20) % 10).astype(np.uint8)
    sample = load_mnist_digit(write_mnist(tmp_path, images, digits), 3)
    assert np.array_equal(sample.points[:2], images[[3, 13]].reshape(2, 25) / 255)
    assert sample.points.shape == (8, 25)
    assert np.bincount(sample.labels).tolist() == [2, 2, 2, 2]


def test_the_stand_in_has_all_four_turns_of_scikit_learns_images() -> None:
    sample = load_small_digit(2)
    assert sample.points.shape == (4 * 177, 64)
    assert sample.points.min() == 0.0
    assert sample.points.max() == 1.0
    assert sample.centres.shape == (4, 64)


@pytest.mark.parametrize(
    ("images", "digits", "words"),
    [
        (np.zeros((3, 4), np.uint8), np.zeros(3, np.uint8), "stack of images"),
        (np.zeros((3, 4, 4), np.uint8), np.zeros(2, np.uint8), "stack of images"),
        (np.zeros((3, 4, 4), np.int16), np.zeros(3, np.uint8), "stack of images"),
        (np.zeros((3, 4, 4), np.uint8), np.full(3, 10, np.uint8), "digits from 0 to 9"),
        (np.zeros((3, 4, 4), np.uint8), np.full(3, 7, np.uint8), "there are none"),
        (np.zeros((3, 4, 5), np.uint8), np.full(3, 2, np.uint8), "stack of squares"),
    ],
)
def test_files_that_do_not_fit_each_other_are_refused(tmp_path: Path, images, digits, words) -> None:
    with pytest.raises(DataError, match=words):
        load_mnist_digit(write_mnist(tmp_path, images, digits), 2)


def test_a_digit_is_from_0_to_9() -> None:
    with pytest.raises(ConfigError, match="from 0 to 9; got 10"):
        load_small_digit(10)
