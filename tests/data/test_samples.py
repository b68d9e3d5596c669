"""The embedded clinics: the committed files come from the generator, and k-means finds their segments."""

import tomllib

import numpy as np
import pytest
from sklearn.cluster import KMeans

from cloister.crypto import Stream
from cloister.data import open_table, parse_bounds, sample_folder, to_original
from cloister.data.samples import generate_clinics, write_clinics
from cloister.errors import ConfigError
from cloister.kmeans import lloyd, sphere_packing


@pytest.fixture(scope="module")
def job():
    return tomllib.loads((sample_folder() / "job.toml").read_text())


@pytest.fixture(scope="module")
def tables(job):
    columns = parse_bounds(job["columns"])
    return [open_table(sample_folder() / party["data"], columns) for party in job["parties"]]


def test_the_committed_files_are_what_the_generator_writes(tmp_path):
    write_clinics(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(generate_clinics())
    for path in tmp_path.iterdir():
        assert path.read_bytes() == (sample_folder() / path.name).read_bytes()


def test_the_job_names_the_files_and_their_columns(job, tables):
    assert [party["name"] for party in job["parties"]] == ["north", "harbour", "valley"]
    assert [table.check().records for table in tables] == [5000, 3500, 2500]
    assert all(sum(table.check().clipped) == 0 for table in tables)


def test_any_start_among_the_records_finds_the_four_segments(job, tables):
    points = np.concatenate([batch for table in tables for batch in table.batches()])
    expected = [[29, 120, 23, 10.4], [33, 116, 23.5, 5.2], [57, 139, 36, 8.8], [72, 160, 26.5, 5.8]]
    for seed in range(5):
        fitted = KMeans(job["clusters"]["k"], init="k-means++", n_init=1, random_state=seed).fit(points)
        centres = to_original(fitted.cluster_centers_, tables[0].columns)
        np.testing.assert_allclose(centres[np.argsort(centres[:, 0])], expected, atol=2.0)


def test_most_sphere_packing_starts_find_the_segments(tables):
    points = np.concatenate([batch for table in tables for batch in table.batches()])
    best = KMeans(4, n_init=10, random_state=0).fit(points).inertia_
    starts = [sphere_packing(Stream.from_seed(seed, "start"), 4, 4) for seed in range(20)]
    losses = [lloyd(points, start, iterations=12).loss for start in starts]
    assert sum(loss < 1.01 * best for loss in losses) >= 16


def test_an_unknown_sample_is_refused():
    for name in ("hospitals", "..", ""):
        with pytest.raises(ConfigError, match="'clinics'"):
            sample_folder(name)
