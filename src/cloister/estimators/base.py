"""What all estimators have in common: what a result becomes, and what is said of new records."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from cloister.columns import to_unit
from cloister.crypto import SystemEntropy
from cloister.errors import ConfigError
from cloister.job import Budget, Job, OwnSide, Setup
from cloister.numeric import FixedPoint
from cloister.privacy.units import Unit
from cloister.records import FloatArray, IntArray
from cloister.report.result import Result
from cloister.sessions import simulate

_SEEDS = 2**31 - 1
_TYPES = (np.float64, np.float32)


class NotPrivateWarning(UserWarning):
    """A fit whose noise comes from a seed: whoever knows the seed can take it away."""


class Clusterer(ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """An estimator that clusters with a job.

    Distances are those in which records were clustered: each column scaled to [-1, 1] by its released spread or by its
    bounds, values outside clipped. Only ``cluster_centers_`` and what stands beside them are in original units.
    """

    n_clusters: int
    labels_: IntArray
    result_: Result

    # --- what a fit leaves

    def _take(self, result: Result) -> None:
        """Take over what a result says."""
        self.result_ = result
        self.cluster_centers_ = np.array(result.centres)
        self.cluster_centers_noise_ = None if result.centre_noise is None else np.array(result.centre_noise)
        self.cluster_sizes_ = self.cluster_sizes_noise_ = None
        if result.sizes is not None:
            self.cluster_sizes_ = np.array(result.sizes.clusters)
            self.cluster_sizes_noise_ = np.array(result.sizes.noise)
        self.privacy_card_ = result.card
        self.n_iter_ = result.rounds
        self._unit_centres = to_unit(result.centres, result.coordinates)

    def __getstate__(self) -> dict[str, Any]:
        """Leave the labels out of pickles: they are as private as the records, and a fitted model is passed on."""
        state: dict[str, Any] = dict(super().__getstate__())
        state.pop("labels_", None)
        return state

    @property
    def _n_features_out(self) -> int:
        return int(self.cluster_centers_.shape[0])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        tags.non_deterministic = getattr(self, "private", True)
        return tags

    # --- new records

    @abstractmethod
    def _read(self, X: Any) -> FloatArray:
        """Check new records and return them as one array."""

    def predict(self, X: Any) -> IntArray:
        """Return the cluster of each record. Labels are as private as the records: for whoever holds these."""
        labels: IntArray = self._measure(self._read(X)).argmin(axis=1).astype(np.int32)
        return labels

    def transform(self, X: Any) -> FloatArray:
        """Return each record's distance to each centre, in the space that was clustered."""
        read = self._read(X)
        distances: FloatArray = np.sqrt(self._measure(read)).astype(read.dtype, copy=False)
        return distances

    def score(self, X: Any, y: object = None, sample_weight: Any = None) -> float:
        """Return minus the sum of squared distances to the nearest centre, in the space that was clustered.

        It is exact, so it is not private: for the owner of the records alone, and never part of a result. In a search
        over parameters, scores on held-out records must be paid for: use `cloister.search`.
        """
        read = self._read(X)
        weights = 1.0 if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        return -float((self._measure(read).min(axis=1) * weights).sum())

    def _scale(self, read: FloatArray) -> FloatArray:
        """Return records as they were clustered: in [-1, 1]^d, clipped, on the grid."""
        unit: FloatArray = to_unit(read, self.result_.coordinates)
        return FixedPoint(self.result_.fractional_bits).quantise(np.clip(unit, -1.0, 1.0))

    def _measure(self, read: FloatArray) -> FloatArray:
        """Return squared distances to all centres in the space that was clustered, (n, k)."""
        unit = self._scale(read)
        return np.stack([((unit - centre) ** 2).sum(axis=1) for centre in self._unit_centres], axis=1)

    # --- parts of a fit

    def _read_table(self, X: Any, *, reset: bool) -> FloatArray:
        table: FloatArray = validate_data(self, X, reset=reset, dtype=_TYPES, order="C", accept_sparse=False)
        return table

    def _check_fitted(self) -> None:
        check_is_fitted(self, "cluster_centers_")


def choose_seed(*, private: bool, random_state: Any) -> int | None:
    """Return the seed of a run that is not private; None for one that is."""
    if private:
        if random_state is not None:
            raise ConfigError(
                "random_state must be left out of a private fit; got one. Whoever knows a seed can take the noise "
                "away: remove it, or write private=False for a test or a study."
            )
        return None
    warnings.warn(
        "private=False: the noise comes from a seed, so this result protects nobody.", NotPrivateWarning, stacklevel=3
    )
    if random_state is None:
        return int.from_bytes(SystemEntropy().bytes(4), "big") % _SEEDS
    return int(check_random_state(random_state).randint(_SEEDS))


def read_count(number: Any) -> Any:
    """Return an integer as a job takes it, also one of NumPy's, as grids have; anything else as it is."""
    return int(number) if isinstance(number, np.integer) else number


def open_sides(accounts: Mapping[str, Any]) -> dict[str, OwnSide]:
    """Return where parties' ledgers are, by name; each must be the one that its account was made with."""
    for name, account in accounts.items():
        if not hasattr(account, "open_side"):
            raise ConfigError(
                f"the account of {name} must be a cloister.Account; got {type(account).__name__}. Write: Account(path, "
                "name of the data)"
            )
    return {name: account.open_side() for name, account in accounts.items()}


def run_job(
    job: Job, tables: Mapping[str, FloatArray], *, sides: Mapping[str, OwnSide] | None = None, seed: int | None = None
) -> Result:
    """Run a job on tables in memory."""
    setup = Setup(job=job, own=dict(sides or {}), seed=seed)
    return simulate(setup, sources=tables, evaluate=False)


def name_columns(estimator: Any, count: int) -> list[str]:
    """Return the names of the columns that were seen: a frame's own, or x0, x1, ... of an array."""
    names = getattr(estimator, "feature_names_in_", None)
    return [f"x{i}" for i in range(count)] if names is None else [str(name) for name in names]


def make_budget(estimator: Any) -> Budget:
    """Return an estimator's budget."""
    return Budget(epsilon=estimator.epsilon, delta=estimator.delta, unit=getattr(estimator, "unit", Unit.RECORD))
