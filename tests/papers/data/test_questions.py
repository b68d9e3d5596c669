"""Embedded questions become users as clients and other topics at the server (FedDP-KMeans G.1)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cloister.crypto import Stream
from cloister.errors import ConfigError, DataError
from papers.data import questions as stackoverflow_files
from papers.data.questions import TOPICS, load_questions

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


def write_table(path: Path, users: list[object], tags: list[object], embeddings: object) -> None:
    embeddings = embeddings.tolist() if isinstance(embeddings, np.ndarray) else embeddings
    table = pa.table({"user": users, "tags": tags, "embedding": pa.array(embeddings)})
    pq.write_table(table, path)


def write_questions(folder: Path, questions: int = 600, users: int = 40, width: int = 8, seed: int = 1) -> Path:
    """Two files; also used by the tests of the reproduction."""
    rng = np.random.default_rng(seed)
    folder.mkdir(parents=True, exist_ok=True)
    words = ["github", "pdf", "c#", "java|spring", "git|github", "pdf|github"]
    for number in range(2):
        write_table(
            folder / f"part-{number}.parquet",
            [f"user {user}" for user in rng.integers(users, size=questions // 2)],
            [words[word] for word in rng.integers(len(words), size=questions // 2)],
            rng.normal(size=(questions // 2, width)).astype(np.float32),
        )
    return folder


def load(path: Path, seed: int = 1, **sizes: int):
    return load_questions(path, ("github", "pdf"), Stream.from_seed(seed, "server"), **{"server_other": 50} | sizes)


def read_all(folder: Path) -> list[tuple[str, set[str], tuple[float, ...]]]:
    rows = [row for file in sorted(folder.glob("*.parquet")) for row in pq.read_table(file).to_pylist()]
    return [(row["user"], set(row["tags"].split("|")), tuple(row["embedding"])) for row in rows]


def test_clients_are_users_with_their_questions_of_the_topics(tmp_path: Path) -> None:
    folder = write_questions(tmp_path / "q")
    found = load(folder)
    wanted = {point: user for user, tags, point in read_all(folder) if tags & {"github", "pdf"}}
    public = {tuple(point) for point in found.server_points}
    assert len(found.points) == len(wanted) - 20
    for rows in found.clients:
        owners = {wanted[tuple(found.points[row])] for row in rows}
        assert len(owners) == 1
    held = {tuple(point) for point in found.points}
    assert held | (public & wanted.keys()) == wanted.keys()
    assert not held & public
    assert len(found.clients) == len({wanted[point] for point in held})


def test_the_server_has_ten_of_each_topic_and_others(tmp_path: Path) -> None:
    folder = write_questions(tmp_path / "q")
    tags = {point: tags for _, tags, point in read_all(folder)}
    kinds = [tags[tuple(point)] for point in load(folder).server_points]
    assert all("github" in each for each in kinds[:10])
    assert all(each == {"pdf"} for each in kinds[10:20])  # with both tags it counts for the first
    assert all(each.isdisjoint({"github", "pdf"}) for each in kinds[20:])
    assert len(kinds) == 70


def test_the_sample_of_others_is_uniform_over_the_stream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stackoverflow_files, "_BATCH_ROWS", 7)
    count = 60
    write_table(
        tmp_path / "q.parquet",
        list(range(count + 20)),
        ["github"] * 10 + ["pdf"] * 10 + ["c#"] * count,
        [[float(number)] for number in range(count + 20)],
    )
    drawn = np.concatenate([load(tmp_path, seed, server_other=6).server_points[20:, 0] for seed in range(300)])
    counts = np.bincount(drawn.astype(int) - 20, minlength=count)
    assert counts.sum() == 1800
    # each is drawn with probability 1/10: binomial(300, .1), mean 30, sd 5.2; 6 sd for 60 of them at 1e-6
    assert 30 - 6 * 5.2 < counts.min() <= counts.max() < 30 + 6 * 5.2


def test_the_paper_has_four_pairs() -> None:
    assert len(TOPICS) == 4
    with pytest.raises(ConfigError, match="two different tags"):
        load_questions(Path("nowhere"), ("pdf", "pdf"), Stream.from_seed(1, "server"))


@pytest.mark.parametrize(
    ("users", "tags", "embeddings", "words"),
    [
        ([1, None], ["pdf", "pdf"], [[1.0], [2.0]], "column user must have no gaps; it has 1"),
        ([1, 2], ["pdf", None], [[1.0], [2.0]], "column tags must have no gaps"),
        ([1, 2], [3, 4], [[1.0], [2.0]], "column tags must hold text"),
        ([1, 2], ["pdf", "pdf"], [1.0, 2.0], "column embedding must hold lists"),
        ([1, 2], ["pdf", "pdf"], [[1.0], [2.0, 3.0]], "every embedding must have the same length"),
        ([1, 2], ["pdf", "pdf"], [[1.0], [float("nan")]], "finite numbers"),
        ([1, 2], ["pdf", "pdf"], [[1.0], [2.0]], "must get 10 records with the tag github; there are 0"),
        ([], [], [], "column embedding must hold lists|must hold questions"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, users, tags, embeddings, words: str) -> None:
    write_table(tmp_path / "q.parquet", users, tags, embeddings)
    with pytest.raises(DataError, match=words):
        load(tmp_path / "q.parquet")


def test_files_that_are_none_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="it holds none"):
        load(tmp_path)
    (tmp_path / "q.parquet").write_bytes(b"PAR1 no PAR1")
    with pytest.raises(DataError, match="whole Parquet file"):
        load(tmp_path)
    pq.write_table(pa.table({"user": [1], "tags": ["pdf"]}), tmp_path / "q.parquet")
    with pytest.raises(DataError, match="embedding is missing"):
        load(tmp_path)
