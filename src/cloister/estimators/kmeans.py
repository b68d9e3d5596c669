"""Private k-means of one table: for a single organisation that publishes centres."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.utils.validation import _check_sample_weight

from cloister.columns import Column
from cloister.crypto import Stream, SystemEntropy
from cloister.errors import ConfigError
from cloister.estimators.account import Account
from cloister.estimators.base import (
    Clusterer,
    choose_seed,
    make_budget,
    name_columns,
    open_sides,
    read_count,
    run_job,
)
from cloister.estimators.bounds import make_columns
from cloister.job import Job, JobParty
from cloister.records import FloatArray

OWNER = "owner"
"""The only party's name, in results."""


class KMeans(Clusterer):
    """Differentially private k-means of one table: the synopsis, with noise that its owner adds once.

    What is promised is on ``privacy_card_``: against whoever sees the centres, nothing against the owner.

    Parameters
    ----------
    n_clusters
        k; with ``choose_k`` the most it may be.
    epsilon, delta
        What one fit may cost.
    bounds
        Public bounds of the columns in original units: a pair for all, a pair for each, or a mapping by name, with
        ``"private"`` for a pair that nobody knows. None: nobody knows any; a part of the budget finds them.
    choose_k
        Let the fit choose the number of clusters.
    weight_max
        The largest weight that a record may have; public. See `fit`.
    account
        What fits are charged to; None: every fit stands alone, and nothing adds them up.
    private
        False takes the noise from a seed, for tests and studies: the result protects nobody, and says so.
    random_state
        The seed; only with ``private=False``.

    Attributes
    ----------
    cluster_centers_, cluster_centers_noise_
        In original units, (k, d); and the standard deviations of the noise in them.
    cluster_sizes_, cluster_sizes_noise_
        About how many records each cluster has, weighted by ``weight_max``; and the standard deviations of their noise.
    privacy_card_
        What is promised, and what it cost.
    labels_
        The cluster of each record: for the owner alone. Pickles leave it out.
    result_
        The whole result, as ``cloister.simulate`` returns it. It contains no record, no label and no exact loss, so
        there is no ``inertia_``.
    n_iter_
        Rounds of Lloyd's algorithm.
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        bounds: Any = None,
        choose_k: bool = False,
        weight_max: float = 1.0,
        account: Account | None = None,
        private: bool = True,
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.choose_k = choose_k
        self.weight_max = weight_max
        self.account = account
        self.private = private
        self.random_state = random_state

    def fit(self, X: Any, y: object = None, sample_weight: Any = None) -> Self:
        """Cluster the records of one table, and charge the account.

        Parameters
        ----------
        X
            The table: an array or a frame, of at least one record. Cells must be finite numbers.
        y
            Ignored.
        sample_weight
            From 0 to ``weight_max``; others are refused. A record of weight w takes part with probability
            w / ``weight_max``, by a coin of its own, so its contributions are scaled by that in the mean.

        Privacy
        -------
        Neighbours: one record added or removed. A coin depends on the record's own weight alone, so tables that differ
        by a record still do, or are equal (docs/proofs/search.md, claim 1). Then: docs/proofs/synopsis.md, claim 11.
        """
        table = self._read_table(X, reset=True)
        columns = make_columns(self.bounds, name_columns(self, table.shape[1]))
        seed = choose_seed(private=self.private, random_state=self.random_state)
        kept = table
        if sample_weight is not None:
            kept = table[_toss(table, sample_weight, self.weight_max, seed)]
        sides = open_sides({} if self.account is None else {OWNER: self.account})
        result = run_job(self.make_job(columns), {OWNER: kept}, sides=sides, seed=seed)
        self._take(result)
        self.labels_ = self._measure(table).argmin(axis=1).astype(np.int32)
        return self

    def make_job(self, columns: tuple[Column, ...]) -> Job:
        """Return the job that a fit runs."""
        return Job(
            name=type(self).__name__,
            k=read_count(self.n_clusters),
            choose_k=self.choose_k,
            columns=columns,
            parties=(JobParty(name=OWNER),),
            budget=make_budget(self),
        )

    def _read(self, X: Any) -> FloatArray:
        self._check_fitted()
        return self._read_table(X, reset=False)


def _toss(table: FloatArray, sample_weight: Any, weight_max: float, seed: int | None) -> Any:
    """Return which records take part: each by a coin of its own, with probability weight / weight_max."""
    weights = _check_sample_weight(sample_weight, table, dtype=np.float64)
    if not (weight_max > 0 and np.isfinite(weight_max)):
        raise ConfigError(
            f"weight_max must be a positive number; got {weight_max}. It is public: choose it beforehand."
        )
    if not ((weights >= 0) & (weights <= weight_max)).all():
        raise ConfigError(
            f"sample weights must be from 0 to weight_max = {weight_max:g}; some are not. Raise weight_max, from what "
            "is known without looking at the records, or clip the weights."
        )
    stream = Stream(SystemEntropy().bytes(32)) if seed is None else Stream.from_seed(seed, "weights")
    return stream.uniform(len(weights)) < weights / weight_max
