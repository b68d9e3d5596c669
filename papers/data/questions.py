"""Embedded Stack Overflow questions, and the federated data sets of FedDP-KMeans made from them (appendix G.1).

TensorFlow Federated's ``stackoverflow`` has the questions of each user with their tags; the paper embeds them with a
sentence model of 384 dimensions (Reimers and Gurevych 2019). Both need packages that Cloister does not; this reads
what they leave behind, a Parquet file or a folder of them, one row a question::

    user       string or integer   whose question it is
    tags       string              its tags with "|" between, as TensorFlow Federated writes them: "c#|github"
    embedding  list<float>         its embedding, of the same length everywhere

docs/reproduction-feddp.md has the few lines that write such files. They are read in a stream: only the rows that are
kept are ever in memory, so the whole of Stack Overflow may be given.

A client is a user with a question under one of two tags, and holds these questions only. The server holds 10 questions
of each tag, which are then no client's, and 1000 with neither.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.crypto import Stream
from cloister.errors import ConfigError, DataError, MissingExtraError
from cloister.records import FloatArray
from papers.data.partition import FederatedPoints, draw_rows, split_by_owner

TOPICS: tuple[tuple[str, str], ...] = (
    ("github", "pdf"),
    ("facebook", "hibernate"),
    ("plotting", "cookies"),
    ("machine-learning", "math"),
)
"""The paper's pairs of tags, in the order of figures 2, 7, 8 and 9."""
SERVER_EACH, SERVER_OTHER = 10, 1000

_COLUMNS = ("user", "tags", "embedding")
_BATCH_ROWS = 4096


@dataclass
class _Sample:
    """A uniform sample of rows seen in a stream: those with the smallest random keys."""

    most: int
    keys: NDArray[np.uint64] = field(default_factory=lambda: np.empty(0, dtype=np.uint64))
    rows: FloatArray | None = None

    def offer(self, rows: FloatArray, keys: NDArray[np.uint64]) -> None:
        """Consider more rows."""
        every = rows if self.rows is None else np.concatenate([self.rows, rows])
        keys = np.concatenate([self.keys, keys])
        chosen = np.argsort(keys, kind="stable")[: self.most]
        self.rows, self.keys = every[chosen], keys[chosen]


@dataclass(frozen=True, kw_only=True, eq=False)
class _Questions:
    """Some rows of a file."""

    users: NDArray[np.str_]
    tags: list[frozenset[str]]
    embeddings: FloatArray


@dataclass(frozen=True, kw_only=True, eq=False)
class _Lists:
    """The numbers of a column of lists, one list behind the other."""

    numbers: NDArray[Any]
    lengths_differ: bool


def load_questions(
    path: Path,
    topics: tuple[str, str],
    stream: Stream,
    *,
    server_each: int = SERVER_EACH,
    server_other: int = SERVER_OTHER,
) -> FederatedPoints:
    """Read embedded questions and deal those of two tags out to their users.

    Parameters
    ----------
    path
        A Parquet file, or a folder of them.
    topics
        Two tags.
    stream
        Draws what is at the server.
    server_each, server_other
        How many questions of each tag, and with neither tag, the server holds.

    Raises
    ------
    ConfigError
        If the tags are not two different ones.
    DataError
        If the files are not as described, or hold too few questions.
    MissingExtraError
        If pyarrow is not installed.
    """
    if len(set(topics)) != 2:
        raise ConfigError(f"topics must be two different tags; got {', '.join(topics)}.")
    others = _Sample(most=server_other)
    keys = stream.child("other")
    users: list[NDArray[np.str_]] = []
    first: list[NDArray[np.bool_]] = []
    kept: list[FloatArray] = []
    for questions in _read_questions(path):
        ours = np.array([not tags.isdisjoint(topics) for tags in questions.tags], dtype=np.bool_)
        others.offer(questions.embeddings[~ours], keys.words(int((~ours).sum()), np.uint64))
        users.append(questions.users[ours])
        first.append(np.array([topics[0] in tags for tags in questions.tags], dtype=np.bool_)[ours])
        kept.append(questions.embeddings[ours])
    points, of_first = np.concatenate(kept), np.concatenate(first)
    _, owners = np.unique(np.concatenate(users), return_inverse=True)
    rows = np.arange(len(points), dtype=np.int64)
    # A question with both tags counts for the first of them.
    public = np.concatenate(
        [
            draw_rows(stream.child(tag), rows[side], server_each, f"with the tag {tag}")
            for tag, side in zip(topics, (of_first, ~of_first), strict=True)
        ]
    )
    outside = np.empty((0, points.shape[1])) if others.rows is None else others.rows
    outside = outside[draw_rows(stream, np.arange(len(outside)), server_other, "with neither tag")]
    held = np.setdiff1d(rows, public, assume_unique=True)
    return FederatedPoints(
        points=points[held],
        clients=split_by_owner(owners[held].astype(np.int64)),
        server_points=np.concatenate([points[public], outside]),
        names=tuple(f"embedding {number}" for number in range(points.shape[1])),
    )


def _read_questions(path: Path) -> Iterator[_Questions]:
    """Yield batches of all files; a width that differs from the first one is refused."""
    try:
        import pyarrow  # noqa: PLC0415 (optional)
        import pyarrow.parquet  # noqa: PLC0415
    except ImportError:
        raise MissingExtraError("reading Stack Overflow's questions", "pyarrow", "parquet") from None
    files = sorted(path.glob("*.parquet")) if path.is_dir() else [path]
    if not files:
        raise DataError(f"{path} must be a Parquet file or hold some; it holds none. See docs/reproduction-feddp.md.")
    width: int | None = None
    for file in files:
        try:
            for batch in pyarrow.parquet.ParquetFile(file).iter_batches(batch_size=_BATCH_ROWS, columns=list(_COLUMNS)):
                questions = _convert_batch(batch, file)
                width = questions.embeddings.shape[1] if width is None else width
                if questions.embeddings.shape[1] != width:
                    raise _refuse_lengths(file)
                yield questions
        except (pyarrow.ArrowException, OSError):
            raise DataError(f"{file} must be a whole Parquet file; it is not. Write it again.") from None
    if width is None:
        raise DataError(f"{path} must hold questions; it holds none. See docs/reproduction-feddp.md.")


def _convert_batch(batch: Any, file: Path) -> _Questions:
    """Return one batch as arrays; what is missing or of unequal length is refused with its column's name."""
    if missing := [name for name in _COLUMNS if name not in batch.schema.names]:
        raise DataError(f"{file} must have the columns {', '.join(_COLUMNS)}; {', '.join(missing)} is missing.")
    for name in _COLUMNS:
        if gaps := batch.column(name).null_count:
            raise DataError(f"{file}: column {name} must have no gaps; it has {gaps}. Leave such rows out.")
    users, tags = (batch.column(name).to_pylist() for name in ("user", "tags"))
    if not all(isinstance(text, str) for text in tags):
        raise DataError(f"{file}: column tags must hold text; it does not. Write tags with | between.")
    values = _flatten_lists(batch.column("embedding"))
    if values is None:
        raise DataError(f"{file}: column embedding must hold lists of numbers; it does not. Write it again.")
    if values.lengths_differ:
        raise _refuse_lengths(file)
    points = values.numbers.astype(np.float64).reshape(len(users), -1)
    if not np.isfinite(points).all():
        raise DataError(f"{file}: column embedding must hold finite numbers; some are not. Leave such rows out.")
    return _Questions(
        users=np.array([str(user) for user in users], dtype=np.str_),
        tags=[frozenset(text.split("|")) for text in tags],
        embeddings=points,
    )


def _flatten_lists(column: Any) -> _Lists | None:
    """Return all numbers of a column of lists, or None where it holds something else."""
    import pyarrow.compute  # noqa: PLC0415 (optional)

    types = pyarrow.types
    kinds = (types.is_list, types.is_large_list, types.is_fixed_size_list)
    if not any(is_kind(column.type) for is_kind in kinds) or not types.is_floating(column.type.value_type):
        return None
    lengths = pyarrow.compute.list_value_length(column).to_numpy(zero_copy_only=False)
    return _Lists(
        numbers=column.flatten().to_numpy(zero_copy_only=False),
        lengths_differ=len(lengths) > 0 and bool((lengths != lengths[0]).any() or lengths[0] == 0),
    )


def _refuse_lengths(file: Path) -> DataError:
    return DataError(f"{file}: every embedding must have the same length; some have another. Write it again.")
