"""Folds that belong to records: a record's fold is its own coin, so another record that comes or goes moves nobody."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.model_selection import BaseCrossValidator

from cloister.crypto import Stream, SystemEntropy
from cloister.errors import ConfigError
from cloister.records import IntArray


class RecordFolds(BaseCrossValidator):  # type: ignore[misc]
    """Cross-validation in which each record's fold is drawn by itself, from the operating system's entropy.

    Splitters that go by position move other records when one is removed: training tables then differ by hundreds of
    records, and no fit's promise is about that. Folds are therefore not of equal size, and there is no seed: with one,
    positions would decide again.

    Parameters
    ----------
    n_splits
        The number of folds, at least 2.
    """

    def __init__(self, n_splits: int = 5) -> None:
        if isinstance(n_splits, bool) or not isinstance(n_splits, int | np.integer) or n_splits < 2:
            raise ConfigError(f"n_splits must be an integer of at least 2; got {n_splits!r}.")
        self.n_splits = int(n_splits)

    def __repr__(self) -> str:
        return f"RecordFolds({self.n_splits})"

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return the number of folds."""
        return self.n_splits

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[tuple[IntArray, IntArray]]:
        """Yield the rows to fit on and the rows that are held out, for each fold; new coins each time.

        Privacy
        -------
        Given all other records' coins, adding a record adds it to one held-out part and to all training parts but one,
        and changes nothing else (docs/proofs/search.md).
        """
        if groups is not None:
            raise ConfigError("groups must be left out: here every record has a coin of its own.")
        folds = toss_folds(len(X), self.n_splits)
        for fold in range(self.n_splits):
            yield np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)


def toss_folds(records: int, folds: int) -> IntArray:
    """Return each record's fold."""
    return Stream(SystemEntropy().bytes(32)).integers(folds, records)
