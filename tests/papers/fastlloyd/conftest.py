"""Six small files under the papers' names, and a scope that takes seconds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from papers.fastlloyd.datasets import CLUSTERS, Scope

SHAPES = {"iris": (90, 4), "s1": (240, 2), "birch2": (500, 2), "lsun": (120, 2), "house": (120, 3), "adult": (200, 6)}


def write_files(folder: Path, seed: int = 5) -> Path:
    """Write blobs of the right dimensions, with some unit of measurement."""
    folder.mkdir(parents=True)
    rng = np.random.default_rng(seed)
    for name, (n, d) in SHAPES.items():
        centres = rng.uniform(0, 100, (CLUSTERS[name], d))
        np.savetxt(folder / f"{name}.txt", centres[rng.integers(len(centres), size=n)] + rng.normal(0, 3, (n, d)))
    return folder


def make_tiny_scope(data: Path | None) -> Scope:
    return Scope(
        data=data,
        runs=2,
        ablation_runs=2,
        grid_runs=2,
        grid_sets=1,
        sizes=(2, 3),
        sessions=2,
        epsilons=(0.5, 1.0),
        thesis_epsilons=(1.0, 4.0),
        party_counts=(2, 3),
        time_records=(),
        silhouette_records=80,
        note="Tiny.",
    )


@pytest.fixture(scope="session")
def data_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_files(tmp_path_factory.mktemp("shared") / "data")


@pytest.fixture(scope="session")
def tiny(data_folder: Path) -> Scope:
    return make_tiny_scope(data_folder)
