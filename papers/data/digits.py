"""Rotated digits: every image of one digit, turned by 0, 90, 180 and 270 degrees; the turn is the cluster (SecFC 5.2).

MNIST is read from its IDX files. Where they are not available, scikit-learn's embedded digits (UCI, 8 x 8 pixels, some
180 images of each) replace them; they are another data set, and results on them must say so.

IDX is an array of numbers behind a short header, gzipped or not::

    bytes 0-1   zero
    byte  2     type: 8 = uint8, 9 = int8, 11 = int16, 12 = int32, 13 = float32, 14 = float64
    byte  3     number of axes
    4 each      the lengths of the axes, big-endian
    the rest    the numbers, big-endian, last axis fastest

What the header says must be what the file holds, to the byte; nothing larger than a limit is unpacked.
"""

from __future__ import annotations

import gzip
import math
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits

from cloister.errors import ConfigError, DataError
from cloister.forecast.families import Sample
from cloister.records import FloatArray

TURNS = 4
IMAGES = "train-images-idx3-ubyte"
LABELS = "train-labels-idx1-ubyte"
LARGEST_BYTES = 2**30
"""Unpacked size above which a file is refused: MNIST's largest has 47 MB."""

_TYPES = {8: "u1", 9: "i1", 11: ">i2", 12: ">i4", 13: ">f4", 14: ">f8"}
_MOST_AXES = 4
_GZIP_MAGIC = b"\x1f\x8b"
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
    """Return all images in all four rotations, one after the other.

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


def read_idx(path: Path) -> NDArray[Any]:
    """Read an IDX file.

    Parameters
    ----------
    path
        The file; whether it is gzipped is seen from its first bytes, not from its name.

    Returns
    -------
    array
        In the machine's byte order, of the shape that the header gives; not to be written to.

    Raises
    ------
    DataError
        If the file cannot be read, is no IDX file, or holds more or fewer bytes than its header says.
    """
    content = _read_bytes(path)
    if len(content) < 4 or content[:2] != b"\0\0" or content[2] not in _TYPES or not 1 <= content[3] <= _MOST_AXES:
        raise DataError(
            f"{path} must begin as an IDX file does: two zero bytes, a known type and 1 to {_MOST_AXES} axes; it does "
            "not. Give the original file."
        )
    kind, axes = np.dtype(_TYPES[content[2]]), content[3]
    header_bytes = 4 + 4 * axes
    if len(content) < header_bytes:
        raise DataError(
            f"{path} must have {header_bytes} bytes of header; it has {len(content)} in total. Fetch it again."
        )
    shape = tuple(np.frombuffer(content, dtype=">u4", count=axes, offset=4).tolist())
    wanted_bytes = header_bytes + math.prod(shape) * kind.itemsize  # Python's integers: no header can overflow it
    if len(content) != wanted_bytes:
        raise DataError(
            f"{path} must have {wanted_bytes} bytes by its header, for an array of shape {shape}; it has "
            f"{len(content)}. Fetch it again."
        )
    values = np.frombuffer(content, dtype=kind, offset=header_bytes).reshape(shape)
    return values.astype(kind.newbyteorder("="), copy=False)


def find_idx(folder: Path, name: str) -> Path:
    """Return the file of this name in a folder, plain or with ``.gz``.

    Raises
    ------
    DataError
        If neither is there.
    """
    for path in (folder / name, folder / f"{name}.gz"):
        if path.is_file():
            return path
    raise DataError(f"{folder} must hold {name} or {name}.gz; it holds neither. Put MNIST's files there.")


def _read_bytes(path: Path) -> bytes:
    """Return the content, unpacked; refuses what is too large before it is in memory."""
    try:
        with path.open("rb") as file:
            packed = file.read(2) == _GZIP_MAGIC
            file.seek(0)
            if packed:
                with gzip.open(file) as unpacked:
                    content = unpacked.read(LARGEST_BYTES + 1)
            else:
                content = file.read(LARGEST_BYTES + 1)
    except (OSError, EOFError, zlib.error):
        raise DataError(f"{path} must be a readable file, whole if it is gzipped; it is not. Fetch it again.") from None
    if len(content) > LARGEST_BYTES:
        raise DataError(f"{path} must hold at most {LARGEST_BYTES} bytes unpacked; it holds more. Use a smaller file.")
    return content
