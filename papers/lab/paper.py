"""What a paper is: artefacts, the trials they are made of, and sizes; and how it is reproduced.

An artefact is one figure or table. It names the seeded trials and the timed sessions that it needs; when those are run
it makes a table, a picture where the paper has one, and a summary with our numbers beside the printed ones.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Generic, Self, TypeVar

from rich.console import Console

from cloister.errors import ConfigError, MissingExtraError
from cloister.report.layout import make_console
from cloister.runtime import OnProgress
from papers.lab.products import Product, print_product, write_product
from papers.lab.trials import Lab, ScoreT, TrialT, open_executor

SUMMARY = "summary.txt"


@dataclass(frozen=True, kw_only=True)
class Scope(ABC):
    """How much is run, and on which data; a paper adds its own sizes. The defaults are those of the paper.

    Parameters
    ----------
    data
        The folder of data sets (:func:`papers.data.files.find_data`), or None.
    runs
        Runs of a point or a cell.
    note
        What was made smaller than in the paper, in words.
    """

    data: Path | None = None
    runs: int
    note: str

    @property
    def peers(self) -> Path | None:
        """The folder beside the data where measurements of the authors' own code may be."""
        return None if self.data is None else self.data.parent / "peers"

    @abstractmethod
    def shrink(self) -> Self:
        """Return the sizes of a quick look."""

    def repeat(self, runs: int) -> Self:
        """Return the same with another number of runs."""
        return replace(self, runs=runs)

    def check(self) -> None:  # noqa: B027 (most papers have nothing to refuse)
        """Refuse data that is there but cannot be used, before hours of work and not after."""


ScopeT = TypeVar("ScopeT", bound=Scope)


@dataclass(frozen=True, kw_only=True)
class Artefact(ABC, Generic[ScopeT, TrialT, ScoreT]):
    """One figure or table.

    Parameters
    ----------
    name
        What ``--only`` and the files call it.
    title
        What it shows, and where the paper has it.
    """

    name: str
    title: str

    def list_trials(self, scope: ScopeT) -> Sequence[TrialT]:
        """Every trial that it needs, none if it only times sessions."""
        return ()

    def count_sessions(self, scope: ScopeT) -> int:
        """How many sessions are timed while it is made."""
        return 0

    @abstractmethod
    def make(self, scope: ScopeT, lab: Lab[TrialT, ScoreT]) -> Product:
        """Make it from trials that are done, and time what is to be timed."""


@dataclass(frozen=True, kw_only=True)
class Paper(Generic[ScopeT, TrialT, ScoreT]):
    """An evaluation to run again.

    Parameters
    ----------
    title
        What the summary calls it.
    artefacts
        In the order in which they are made.
    scope
        Everything at full size.
    score_trial, order, together
        As :class:`~papers.lab.trials.Lab` has them.
    needs
        Optional packages of the extra ``papers``, each with what it is needed for.
    """

    title: str
    artefacts: tuple[Artefact[ScopeT, TrialT, ScoreT], ...]
    scope: ScopeT
    score_trial: Callable[[TrialT], ScoreT]
    order: Callable[[TrialT], Any]
    together: int = 1
    needs: dict[str, str] = field(default_factory=dict)

    def choose_artefacts(self, names: Sequence[str] | None) -> tuple[Artefact[ScopeT, TrialT, ScoreT], ...]:
        """Return the artefacts of these names, or all of them; in their own order."""
        known = {artefact.name: artefact for artefact in self.artefacts}
        if names is None:
            return self.artefacts
        unknown = [name for name in names if name not in known]
        if unknown or not names:
            got = ", ".join(unknown) or "none"
            raise ConfigError(f"--only must name artefacts; got {got}. Known are: {', '.join(known)}.")
        return tuple(artefact for artefact in self.artefacts if artefact.name in names)

    def choose_scope(self, data: Path | None, *, quick: bool = False, runs: int | None = None) -> ScopeT:
        """Return the sizes of a run; ``runs`` replaces all numbers of runs."""
        if runs is not None and runs < 2:
            raise ConfigError(f"--runs must be at least 2, since one run has no interval; got {runs}.")
        scope = replace(self.scope, data=data)
        scope.check()
        if quick:
            scope = scope.shrink()
        if runs is not None:
            scope = replace(scope.repeat(runs), note=f"{scope.note} All with {runs} runs by --runs.")
        return scope

    def reproduce(
        self,
        names: Sequence[str] | None,
        scope: ScopeT,
        *,
        folder: Path,
        processes: int,
        console: Console,
        on_progress: OnProgress,
    ) -> tuple[Path, ...]:
        """Make artefacts one after another and return the files that were written.

        Each is written and printed as soon as it is made, and stays when a later one fails or is stopped.

        Parameters
        ----------
        names
            Which artefacts; None for all.
        scope
            How much is run.
        folder
            Where CSV files, pictures and ``summary.txt`` go; made if it is not there, files of the same names
            replaced.
        processes
            How many run trials; times are taken in this process, while the others are idle.
        console
            Where the summaries are printed.
        on_progress
            Told after each trial and session.
        """
        artefacts = self.choose_artefacts(names)
        self._require_packages()
        _make_folder(folder)
        listed = {artefact.name: artefact.list_trials(scope) for artefact in artefacts}
        trials = {trial for each in listed.values() for trial in each}
        steps = len(trials) + sum(artefact.count_sessions(scope) for artefact in artefacts)
        written: list[Path] = []
        with open_executor(processes) as executor, (folder / SUMMARY).open("w", encoding="utf-8") as file:
            lab = Lab(
                self.score_trial,
                order=self.order,
                together=self.together,
                steps=steps,
                executor=executor,
                on_progress=on_progress,
            )
            consoles = (console, make_console(file))
            for each in consoles:
                each.print(f"{self.title}, reproduced. {scope.note}")
            for artefact in artefacts:
                lab.measure(artefact.name, listed[artefact.name])
                product = artefact.make(scope, lab)
                written += write_product(artefact.name, product, folder)
                for each in consoles:
                    print_product(artefact.title, product, each)
                file.flush()
        return (*written, folder / SUMMARY)

    def _require_packages(self) -> None:
        """Refuse before hours of work, not after."""
        if find_spec("matplotlib") is None:
            raise MissingExtraError("drawing figures", "matplotlib", "report")
        for package, purpose in self.needs.items():
            if find_spec(package) is None:
                raise MissingExtraError(purpose, package, "papers")


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(
            f"--out must be a folder; {folder} cannot be made ({error.strerror}). Choose another."
        ) from None
