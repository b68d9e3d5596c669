"""IDX files are read as written, packed or not, and refused otherwise; digits are turned."""

from __future__ import annotations

import gzip
import math
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cloister.errors import ConfigError, DataError
from papers.data import digits as idx_files
from papers.data.digits import IMAGES, LABELS, find_idx, load_mnist_digit, load_small_digit, read_idx, rotate_images

CODES = {"u1": 8, "i1": 9, "i2": 11, "i4": 12, "f4": 13, "f8": 14}


def pack(array: np.ndarray) -> bytes:
    """The format, written down again."""
    kind = array.dtype.str.lstrip("<>|=")
    head = bytes([0, 0, CODES[kind], array.ndim]) + b"".join(length.to_bytes(4, "big") for length in array.shape)
    return head + array.astype(array.dtype.newbyteorder(">")).tobytes()


GOOD = pack(np.arange(24, dtype=np.uint8).reshape(2, 3, 4))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    kind=st.sampled_from(sorted(CODES)),
    shape=st.lists(st.integers(0, 4), min_size=1, max_size=4),
    packed=st.booleans(),
    seed=st.integers(0, 99),
)
def test_what_is_written_is_read(tmp_path: Path, kind, shape, packed, seed) -> None:
    raw = np.random.default_rng(seed).integers(-100, 100, math.prod(shape))
    array = raw.astype(kind).reshape(shape)
    path = tmp_path / "file"  # no suffix: the content decides
    path.write_bytes(gzip.compress(pack(array)) if packed else pack(array))
    found = read_idx(path)
    assert found.dtype == np.dtype(kind)
    assert np.array_equal(found, array)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "must begin as an IDX file"),
        (b"\0\1" + GOOD[2:], "must begin as an IDX file"),
        (b"\0\0\x0a" + GOOD[3:], "must begin as an IDX file"),
        (b"\0\0\x08\0" + GOOD[4:], "must begin as an IDX file"),
        (b"\0\0\x08\5" + GOOD[4:], "must begin as an IDX file"),
        (GOOD[:9], "must have 16 bytes of header; it has 9"),
        (GOOD[:-1], "must have 40 bytes by its header, for an array of shape (2, 3, 4); it has 39"),
        (GOOD + b"\0", "it has 41"),
        (b"\0\0\x08\4" + b"\xff" * 16, f"must have {20 + (2**32 - 1) ** 4} bytes"),
        (gzip.compress(GOOD)[:-9], "whole if it is gzipped"),
        (gzip.compress(GOOD)[:12] + b"\xff" * 40, "whole if it is gzipped"),
    ],
    ids=["empty", "magic", "type", "no-axes", "axes", "header", "short", "long", "overflow", "cut-gzip", "bad-gzip"],
)
def test_other_files_are_refused(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "file.idx"
    path.write_bytes(content)
    with pytest.raises(DataError) as caught:
        read_idx(path)
    assert words in str(caught.value)
    assert str(path) in str(caught.value)


def test_a_packed_file_is_not_unpacked_beyond_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(idx_files, "LARGEST_BYTES", 1000)
    path = tmp_path / "bomb.gz"
    path.write_bytes(gzip.compress(pack(np.zeros(2 * 10**7, dtype=np.uint8))))
    tracemalloc.start()
    try:
        with pytest.raises(DataError, match="at most 1000 bytes unpacked"):
            read_idx(path)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak_bytes < 10**6


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="readable file"):
        read_idx(tmp_path / "nothing")
    with pytest.raises(DataError, match=r"must hold images or images\.gz; it holds neither"):
        find_idx(tmp_path, "images")
    (tmp_path / "images.gz").write_bytes(b"")
    assert find_idx(tmp_path, "images").name == "images.gz"
    (tmp_path / "images").write_bytes(b"")
    assert find_idx(tmp_path, "images").name == "images"


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
