"""Rotated digits: every image of one digit, turned by 0, 90, 180 and 270 degrees; the turn is the cluster (SecFC 5.2).

MNIST is read from its IDX files. Where they are not at hand, scikit-learn's embedded digits (UCI, 8 x 8 pixels, some
180 images of each) stand in; they are another data set, and whoever shows results of them has to say so.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits

from cloister.data.synthetic import Sample
from cloister.errors import ConfigError, DataError
from cloister.records import FloatArray
from papers.data.idx import find_idx, read_idx

TURNS = 4
IMAGES = "train-images-idx3-ubyte"
LABELS = "train-labels-idx1-ubyte"
_DIGITS = 10
_LARGEST_PIXEL = 255.0  # of MNIST
_LARGEST_SMALL_PIXEL = 16.0  # of scikit-learn's


def load_mnist_digit(folder: Path, digit: int) -> Sample:
    """Read one digit's training images of MNIST and turn them.

    Parameters
    ----------
    folder
        Holds ``train-images-idx3-ubyte`` and ``train-labels-idx1-ubyte``, gzipped or not.
    digit
        0 to 9.

    Returns
    -------
    Sample
        Pixels in [0, 1]; labels are the turns.
    """
    images, digits = (read_idx(find_idx(folder, name)) for name in (IMAGES, LABELS))
    if images.ndim != 3 or images.dtype != np.uint8 or digits.shape != images.shape[:1] or digits.dtype != np.uint8:
        raise DataError(
            f"{IMAGES} must hold a stack of images of bytes and {LABELS} one byte for each; they hold shapes "
            f"{images.shape} and {digits.shape}. Fetch them again."
        )
    if digits.size and int(digits.max()) >= _DIGITS:
        raise DataError(f"{LABELS} must hold digits from 0 to 9; it holds others. Fetch it again.")
    return _turn_digit(images, digits, digit, _LARGEST_PIXEL)


def load_small_digit(digit: int) -> Sample:
    """Turn one digit of scikit-learn's embedded 8 x 8 images; as :func:`load_mnist_digit`."""
    found = load_digits()
    return _turn_digit(np.asarray(found.images), np.asarray(found.target), digit, _LARGEST_SMALL_PIXEL)


def rotate_images(images: NDArray[Any]) -> Sample:
    """Return all images in all four turns, one turn behind the other.

    Parameters
    ----------
    images
        (n, side, side).

    Returns
    -------
    Sample
        (4 n, side^2) points, the number of quarter turns as labels, and the turns' means as centres.
    """
    if images.ndim != 3 or images.shape[1] != images.shape[2] or not len(images):
        raise DataError(f"images must be a stack of squares, at least one; got shape {images.shape}. Crop or pad them.")
    pixels = images.astype(np.float64)
    turned: list[FloatArray] = [np.rot90(pixels, turn, axes=(1, 2)).reshape(len(images), -1) for turn in range(TURNS)]
    return Sample(
        points=np.concatenate(turned),
        labels=np.repeat(np.arange(TURNS, dtype=np.int64), len(images)),
        centres=np.stack([each.mean(axis=0) for each in turned]),
    )


def _turn_digit(images: NDArray[Any], digits: NDArray[Any], digit: int, largest_pixel: float) -> Sample:
    if not 0 <= digit < _DIGITS:
        raise ConfigError(f"digit must be from 0 to 9; got {digit}.")
    chosen = images[digits == digit]
    if not len(chosen):
        raise DataError(f"there must be images of the digit {digit}; there are none. Use the whole set.")
    return rotate_images(chosen.astype(np.float64) / largest_pixel)
