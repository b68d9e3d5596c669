"""How much is run: as the paper, or a minute's worth; on mixtures, and on real data where it is given."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from cloister.privacy.units import Unit
from papers.data.census import EMPLOYMENT_CODES, find_state_files
from papers.data.questions import TOPICS
from papers.feddp.datasets import CensusSet, MixtureSet, QuestionSet
from papers.feddp.printed import RECOMMENDED_CLIENT, RECOMMENDED_RECORD
from papers.feddp.published import Split
from papers.lab import paper


def _splits(*shares: tuple[float, float, float, float]) -> tuple[Split, ...]:
    return tuple(Split(projection=p, weights=w, sums=s, counts=c) for p, w, s, c in shares)


@dataclass(frozen=True, kw_only=True)
class Scope(paper.Scope):
    """Sizes of all experiments.

    Parameters
    ----------
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
    """

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

    @property
    def folktables(self) -> Path | None:
        """The folder ``folktables`` of the data, if it is there."""
        return self._find("folktables")

    @property
    def stackoverflow(self) -> Path | None:
        """The folder ``stackoverflow`` of the data, if it is there."""
        return self._find("stackoverflow")

    def _find(self, name: str) -> Path | None:
        folder = None if self.data is None else self.data / name
        return folder if folder is not None and folder.is_dir() else None

    def check(self) -> None:
        """A folder ``folktables`` must hold files of states."""
        if self.folktables is not None:
            find_state_files(self.folktables)

    def shrink(self) -> Scope:
        """Few runs and settings, smaller mixtures."""
        return replace(
            self,
            runs=2,
            epsilons=(0.2, 1.0),
            steps=(0, 1),
            baseline_steps=(1,),
            record_splits=self.record_splits[:2],
            client_splits=self.client_splits[:2],
            silo_records=200,
            device_clients=(200, 400, 1000),
            note="A quick look: few runs and settings, 100 clients of 200 records, and 200, 400 and 1,000 of 50.",
        )
