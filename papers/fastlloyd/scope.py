"""How much is run: as the papers, or a minute's worth; and where the data is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import cloister
from cloister.errors import ConfigError
from papers.fastlloyd.datasets import CLUSTERS, FileSet


@dataclass(frozen=True, kw_only=True)
class Scope:
    """Sizes of all experiments.

    Parameters
    ----------
    data
        The folder with the papers' files, or None.
    runs
        Runs of a point in FastLloyd's figures and the thesis's figures (20 there).
    ablation_runs
        Runs of a cell in thesis tables 8.2 to 8.5 (10 there).
    grid_runs, grid_sets, sizes
        Figures 5 and 6: runs on each of so many data sets a cell (20 and 3 there), and the k and d of the cells.
    sessions
        Sessions that a time is taken from (20 there).
    epsilons, thesis_epsilons
        The horizontal axes of figures 3, 4 and 7, and of 8.5 to 8.7.
    party_counts
        Parties whose loss is measured without a server; the exact formula takes all of 2 to 100.
    time_records
        The sizes of TimeSynth in table 3.
    samples
        Files of which only so many records are used.
    silhouette_records
        A silhouette is taken on at most so many records, always the same ones.
    note
        What was made smaller than in the papers, in words.
    """

    data: Path | None
    runs: int = 20
    ablation_runs: int = 10
    grid_runs: int = 4
    grid_sets: int = 3
    sizes: tuple[int, ...] = tuple(range(2, 21, 2))
    sessions: int = 10
    epsilons: tuple[float, ...] = (0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0)
    thesis_epsilons: tuple[float, ...] = (0.25, 0.5, 1.0, 2.0, 4.0)
    party_counts: tuple[int, ...] = (2, 3, 5, 10, 30, 100)
    time_records: tuple[int, ...] = (10_000, 100_000)
    samples: Mapping[str, int] = field(default_factory=dict)
    silhouette_records: int = 2_000
    note: str = (
        "As the papers, but for figures 5 and 6 (4 runs on each data set, not 20), the times (10 sessions, not 20) "
        "and silhouettes (on 2,000 records)."
    )

    def find_sets(self, names: Sequence[str]) -> tuple[FileSet, ...]:
        """The sets of these names whose files are there."""
        return tuple(
            FileSet(name=name, path=self.data / f"{name}.txt", clusters=CLUSTERS[name], most=self.samples.get(name))
            for name in names
            if self.data is not None and (self.data / f"{name}.txt").is_file()
        )

    def explain_missing(self, names: Sequence[str]) -> tuple[str, ...]:
        """One sentence for each set that is left out."""
        if self.data is None:
            return (f"{', '.join(names)}: left out, no data folder was found. Give one with --data.",)
        return tuple(
            f"{name}: left out, {self.data / f'{name}.txt'} is missing."
            for name in names
            if not (self.data / f"{name}.txt").is_file()
        )


def make_scope(data: Path | None, *, quick: bool = False, runs: int | None = None) -> Scope:
    """Choose the sizes; ``runs`` replaces all numbers of runs."""
    if runs is not None and runs < 2:
        raise ConfigError(f"--runs must be at least 2, since one run has no interval; got {runs}.")
    scope = Scope(data=data)
    if quick:
        scope = Scope(
            data=data,
            runs=3,
            ablation_runs=2,
            grid_runs=2,
            grid_sets=1,
            sizes=(2, 8, 14),
            sessions=2,
            epsilons=(0.05, 0.25, 1.0, 2.0),
            thesis_epsilons=(0.5, 4.0),
            party_counts=(2, 10, 100),
            samples={"birch2": 2_500, "adult": 5_000},
            silhouette_records=500,
            note="A quick look: few runs and cells, 2,500 records of birch2 and 5,000 of adult.",
        )
    if runs is None:
        return scope
    changed = {name: getattr(scope, name) for name in scope.__dataclass_fields__}
    changed |= {"runs": runs, "ablation_runs": runs, "grid_runs": runs, "sessions": runs}
    changed["note"] = f"{scope.note} All with {runs} runs by --runs."
    return Scope(**changed)


def find_data(given: Path | None) -> Path | None:
    """The folder of data sets: the one given, or ``../shared/data`` beside where we are or the repository."""
    if given is not None:
        if not given.is_dir():
            raise ConfigError(f"--data must be a folder with data sets; {given} is none. Leave it out to search.")
        return given
    repository = Path(cloister.__file__).resolve().parents[2]
    for place in (Path.cwd(), repository):
        folder = place.parent / "shared" / "data"
        if folder.is_dir():
            return folder
    return None
