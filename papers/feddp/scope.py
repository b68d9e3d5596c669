"""How much is run: as the paper, or a minute's worth; and where the real data sets are."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from cloister.errors import ConfigError
from cloister.privacy.units import Unit
from papers.data.census import EMPLOYMENT_CODES, find_state_files
from papers.data.questions import TOPICS
from papers.fastlloyd.scope import find_data
from papers.feddp.datasets import CensusSet, MixtureSet, QuestionSet
from papers.feddp.printed import RECOMMENDED_CLIENT, RECOMMENDED_RECORD
from papers.feddp.trials import Split


def _splits(*shares: tuple[float, float, float, float]) -> tuple[Split, ...]:
    return tuple(Split(projection=p, weights=w, sums=s, counts=c) for p, w, s, c in shares)


@dataclass(frozen=True, kw_only=True)
class FeddpScope:
    """Sizes of all experiments.

    Parameters
    ----------
    folktables, stackoverflow
        Where the real data sets are; None leaves their figures out.
    peers
        The folder with the measurements of the authors' code, or None.
    runs
        Runs of each setting; means are compared.
    epsilons
        Totals, at delta = 1e-6; those of the peers' file.
    steps, baseline_steps
        Rounds of FedDP-Lloyds that are tried after FedDP-Init, and after the baselines' starts.
    record_splits, client_splits
        Splits of the budget that are tried at each level; the first is the one that G.4 recommends.
    silo_clients, silo_records
        The mixture of the record level: 100 clients of 1000.
    device_clients, device_records
        The mixtures of the client level: figures 5, 2 and 6, 50 records each.
    dimensions
        Columns of all mixtures.
    server_other
        Points of other distributions that the server has of real data.
    note
        What was made smaller than in the paper, in words.
    """

    folktables: Path | None = None
    stackoverflow: Path | None = None
    peers: Path | None = None
    runs: int = 3
    epsilons: tuple[float, ...] = (0.1, 0.2, 0.4, 0.7, 1.0, 2.0)
    steps: tuple[int, ...] = (0, 1, 2)
    baseline_steps: tuple[int, ...] = (1, 3)
    record_splits: tuple[Split, ...] = _splits(
        RECOMMENDED_RECORD, (0.1, 0.1, 0.7, 0.1), (0.35, 0.1, 0.45, 0.1), (0.25, 0.25, 0.25, 0.25)
    )
    client_splits: tuple[Split, ...] = _splits(RECOMMENDED_CLIENT, (0.55, 0.1, 0.3, 0.05), (0.2, 0.2, 0.45, 0.15))
    silo_clients: int = 100
    silo_records: int = 1000
    device_clients: tuple[int, int, int] = (1000, 2000, 5000)
    device_records: int = 50
    dimensions: int = 100
    server_other: int = 1000
    note: str = "Sizes as in the paper; 3 runs of each setting, whose means are compared."

    @property
    def silo(self) -> MixtureSet:
        """The mixture of figure 1."""
        return MixtureSet(
            clients=self.silo_clients, records_each=self.silo_records, unit=Unit.RECORD, dimensions=self.dimensions
        )

    @property
    def devices(self) -> tuple[MixtureSet, ...]:
        """The mixtures of figures 5, 2 and 6."""
        return tuple(
            MixtureSet(clients=clients, records_each=self.device_records, unit=Unit.CLIENT, dimensions=self.dimensions)
            for clients in self.device_clients
        )

    @property
    def census(self) -> tuple[CensusSet, ...]:
        """The sets of figures 3, 1 and 4, in the tables' order; none without the files."""
        if self.folktables is None:
            return ()
        return tuple(
            CensusSet(folder=self.folktables, employment=each, server_other=self.server_other)
            for each in EMPLOYMENT_CODES
        )

    @property
    def questions(self) -> tuple[QuestionSet, ...]:
        """The sets of figures 2, 7, 8 and 9; none without the files."""
        if self.stackoverflow is None:
            return ()
        return tuple(
            QuestionSet(path=self.stackoverflow, topics=topics, server_other=self.server_other) for topics in TOPICS
        )


def make_feddp_scope(
    *,
    folktables: Path | None = None,
    stackoverflow: Path | None = None,
    quick: bool = False,
    runs: int | None = None,
) -> FeddpScope:
    """Choose the sizes; ``runs`` replaces the runs of a setting.

    Raises
    ------
    ConfigError
        If there would be fewer than two runs, or Stack Overflow's path is none.
    DataError
        If the folder given for folktables holds no file of a state.
    """
    if runs is not None and runs < 2:
        raise ConfigError(f"--runs must be at least 2, since one run has no interval; got {runs}.")
    if folktables is not None:
        find_state_files(folktables)
    if stackoverflow is not None and not stackoverflow.exists():
        raise ConfigError(
            f"--stackoverflow must be a Parquet file or a folder of them; {stackoverflow} is none. Leave it out."
        )
    data = find_data(None)
    scope = FeddpScope(
        folktables=folktables, stackoverflow=stackoverflow, peers=None if data is None else data.parent / "peers"
    )
    if quick:
        scope = replace(
            scope,
            runs=2,
            epsilons=(0.2, 1.0),
            steps=(0, 1),
            baseline_steps=(1,),
            record_splits=scope.record_splits[:2],
            client_splits=scope.client_splits[:2],
            silo_records=200,
            device_clients=(200, 400, 1000),
            note="A quick look: few runs and settings, 100 clients of 200 records, and 200, 400 and 1,000 of 50.",
        )
    if runs is not None:
        scope = replace(scope, runs=runs, note=f"{scope.note} All with {runs} runs by --runs.")
    return scope
