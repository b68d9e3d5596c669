"""How much is run: as the paper, or a minute's worth; and where MNIST is."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from cloister.errors import ConfigError
from papers.data.digits import IMAGES, LABELS
from papers.data.idx import find_idx
from papers.secfc.datasets import DigitSet, MixtureSet


@dataclass(frozen=True, kw_only=True)
class Setting:
    """Sizes of a mixture (5.1): k, n and m, and the k' that are run."""

    clusters: int
    clients: int
    records: int
    local_clusters: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class TimedSize:
    """One point of figure 1; the defaults are the paper's (5.1)."""

    clients: int = 10
    dimensions: int = 20
    records: int = 1_000

    @property
    def data(self) -> MixtureSet:
        """What is clustered: k = 4, sigma = 1."""
        return MixtureSet(clusters=4, records=self.records, deviation=1.0, dimensions=self.dimensions)


@dataclass(frozen=True, kw_only=True)
class SecfcScope:
    """Sizes of all experiments.

    Parameters
    ----------
    mnist
        The folder with MNIST's files; None for the stand-in.
    runs
        Runs of each cell (10 in the paper).
    protocol_runs
        How many of them are real sessions; the others are the same algorithm in one place.
    settings
        The mixtures of tables 1 and 2.
    digits, digit_clients, digit_local_clusters
        Of table 3.
    sessions
        How many sessions a time is taken from.
    timed_clients, timed_dimensions, timed_records
        The axes of figure 1; the text does not print them.
    note
        What was made smaller than in the paper, in words.
    """

    mnist: Path | None
    runs: int = 10
    protocol_runs: int = 1
    settings: tuple[Setting, ...] = (
        Setting(clusters=4, clients=10, records=10_000, local_clusters=(1, 2, 4)),
        Setting(clusters=16, clients=16, records=16_384, local_clusters=(1, 2, 4, 16)),
    )
    digits: tuple[int, ...] = (2, 3)
    digit_clients: int = 10
    digit_local_clusters: tuple[int, ...] = (1, 2, 4)
    sessions: int = 5
    timed_clients: tuple[int, ...] = (5, 10, 20, 30, 40, 50)
    timed_dimensions: tuple[int, ...] = (10, 20, 50, 100, 200)
    timed_records: tuple[int, ...] = (500, 1_000, 2_000, 5_000, 10_000)
    note: str = "Sizes as in the paper; of the runs of a SecFC cell one is a real session."

    def find_digits(self) -> tuple[DigitSet, ...]:
        """The sets of table 3."""
        return tuple(DigitSet(digit=digit, mnist=self.mnist) for digit in self.digits)


def make_secfc_scope(mnist: Path | None, *, quick: bool = False, runs: int | None = None) -> SecfcScope:
    """Choose the sizes; ``runs`` replaces the runs of a cell and the sessions of a time.

    Raises
    ------
    ConfigError
        If there would be fewer than two runs, or the folder given for MNIST is none.
    DataError
        If it does not hold MNIST's training images and labels.
    """
    if runs is not None and runs < 2:
        raise ConfigError(f"--runs must be at least 2, since one run has no spread; got {runs}.")
    if mnist is not None:
        if not mnist.is_dir():
            raise ConfigError(f"--mnist must be a folder with MNIST's IDX files; {mnist} is none. Leave it out.")
        for name in (IMAGES, LABELS):
            find_idx(mnist, name)
    scope = SecfcScope(mnist=mnist)
    if quick:
        scope = SecfcScope(
            mnist=mnist,
            runs=2,
            settings=tuple(
                replace(setting, records=records)
                for setting, records in zip(scope.settings, (2_000, 4_096), strict=True)
            ),
            sessions=2,
            timed_clients=(5, 10, 20),
            timed_dimensions=(10, 20, 100),
            timed_records=(500, 1_000, 5_000),
            note="A quick look: few runs and points, mixtures of 2,000 (k = 4) and 4,096 (k = 16) records.",
        )
    if runs is not None:
        scope = replace(scope, runs=runs, sessions=runs, note=f"{scope.note} All with {runs} runs by --runs.")
    return scope
