"""K-means over the tables of several parties: simulated in one process, or as one party of a session between them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_array

from cloister.columns import Column
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
from cloister.job import DataOptions, Job, JobParty, OwnSide, make_options
from cloister.records import FloatArray, IntArray


class _Several(Clusterer):
    """An estimator of several tables.

    ``fit`` takes a mapping from parties' names to tables, or a list of tables. The fit is a simulation: one process
    holds all tables. `join` takes part in a session between organisations instead.
    """

    labels_: Any

    def fit(self, X: Any, y: object = None) -> Self:
        """Cluster the records of all tables.

        Parameters
        ----------
        X
            A mapping from names to tables, or a list of tables.
        y
            Ignored.
        """
        tables = _name_tables(X)
        read, columns = self._read_all(tables)
        private, random_state = getattr(self, "private", True), getattr(self, "random_state", None)
        seed = choose_seed(private=private, random_state=random_state)
        sides = open_sides(self._find_accounts(tables))
        self._run(self._make_job(read, columns), read, sides, seed)
        self.labels_ = self._label(read)
        return self

    def _run(self, job: Job, tables: Mapping[str, FloatArray], sides: Mapping[str, OwnSide], seed: int | None) -> None:
        """Run the job and take its result over."""
        self._take(run_job(job, tables, sides=sides, seed=seed))

    def join(
        self,
        job_file: str | Path,
        *,
        keys: str,
        own: str | Path | None = None,
        table: Any = None,
        peers: Sequence[str | Path] = (),
        address: str | None = None,
        out: str | Path | None = None,
        consent: str | Path | None = None,
        deadline_s: float = 600.0,
    ) -> Self:
        """Take part in a session between organisations as one of its parties, as ``cloister party`` does.

        The job says what is clustered and how: of the estimator's parameters none is used. What the session finds is
        found in the same attributes as after `fit`; ``labels_`` is not, for `predict` labels the own records.

        Parameters
        ----------
        job_file
            The job that was agreed.
        keys
            Our keys: ``NAME.key``, or the name of keys in the default folder.
        own
            The file with our own side: where our table, our ledger and our policy are.
        table
            Our table, in place of a file.
        peers
            Public files of the others, or folders of them; by default beside our keys.
        address
            Where the coordinator listens; by default the job's.
        out
            The result folder; by default ``result-NAME``.
        consent
            What ``cloister join`` has written. Without it, whoever calls this agrees to the run.
        deadline_s
            How long to wait for whoever is slow.
        """
        from cloister.estimators.joining import join_session  # noqa: PLC0415 (gRPC is an extra)

        result = join_session(
            Path(job_file),
            keys=keys,
            own=None if own is None else Path(own),
            table=table,
            peers=[Path(peer) for peer in peers],
            address=address,
            out=None if out is None else Path(out),
            consent=None if consent is None else Path(consent),
            deadline_s=deadline_s,
        )
        self._take(result)
        self.n_features_in_ = len(result.columns)
        self.feature_names_in_ = np.array([column.name for column in result.columns], dtype=object)
        return self

    # --- what differs

    @abstractmethod
    def _read_all(self, tables: Mapping[str, Any]) -> tuple[dict[str, FloatArray], tuple[Column, ...]]:
        """Check the tables; return them as arrays, and all columns."""

    @abstractmethod
    def _make_job(self, tables: Mapping[str, FloatArray], columns: tuple[Column, ...]) -> Job:
        """Return the job that a fit runs."""

    @abstractmethod
    def _label(self, tables: Mapping[str, FloatArray]) -> Any:
        """Label the records that were clustered."""

    def _find_accounts(self, tables: Mapping[str, Any]) -> dict[str, Account]:
        """Return the parties' accounts, by name."""
        accounts = getattr(self, "accounts", None) or {}
        unknown = sorted(set(accounts) - set(tables))
        if unknown:
            raise ConfigError(f"accounts must be named after the parties; got {unknown[0]!r}, which is not one.")
        return dict(accounts)

    def _read(self, X: Any) -> FloatArray:
        self._check_fitted()
        return self._read_table(X, reset=False)


class _ByRows(_Several):
    """Every party has the same columns of records of its own."""

    bounds: Any

    def _read_all(self, tables: Mapping[str, Any]) -> tuple[dict[str, FloatArray], tuple[Column, ...]]:
        read = {name: self._read_table(table, reset=not i) for i, (name, table) in enumerate(tables.items())}
        return read, make_columns(self.bounds, name_columns(self, self.n_features_in_))

    def _label(self, tables: Mapping[str, FloatArray]) -> dict[str, IntArray]:
        return {name: self._measure(table).argmin(axis=1).astype(np.int32) for name, table in tables.items()}


class FederatedKMeans(_ByRows):
    """Differentially private k-means over the records of several parties, none of which shares its records.

    Parameters
    ----------
    n_clusters
        k; with ``choose_k`` the most it may be.
    epsilon, delta, unit
        What one fit may cost, for one ``"record"`` or one ``"client"``, that is a party's whole table.
    bounds
        Public bounds of the columns in original units: a pair for all, a pair for each, or a mapping by name.
    choose_k
        Let the fit choose the number of clusters.
    accounts
        What fits are charged to: an `Account` by party's name; who is not in it keeps none.
    private, random_state
        As in `KMeans`.

    Attributes
    ----------
    labels_
        By party's name: the cluster of each of its records, for that party alone. Pickles leave them out.
    cluster_centers_, cluster_centers_noise_, cluster_sizes_, cluster_sizes_noise_, privacy_card_, result_, n_iter_
        As in `KMeans`.
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        unit: str = "record",
        bounds: Any = None,
        choose_k: bool = False,
        accounts: Mapping[str, Account] | None = None,
        private: bool = True,
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.epsilon = epsilon
        self.delta = delta
        self.unit = unit
        self.bounds = bounds
        self.choose_k = choose_k
        self.accounts = accounts
        self.private = private
        self.random_state = random_state

    def _make_job(self, tables: Mapping[str, FloatArray], columns: tuple[Column, ...]) -> Job:
        return Job(
            name=type(self).__name__,
            k=read_count(self.n_clusters),
            choose_k=self.choose_k,
            columns=columns,
            parties=tuple(JobParty(name=name) for name in tables),
            budget=make_budget(self),
        )


class SecureKMeans(_ByRows):
    """Exact k-means over the records of several parties: Lloyd's algorithm on masked sums. Not differentially private.

    The centres are those of one joint table from the same start: what users of k-means expect. The coordinator learns
    nothing; every party learns the sums and counts of each round over all parties, which can reveal records of small
    clusters. Lloyd over coded shares (``secfc`` in a job file) hides these sums from parties, and shows all distances
    to the coordinator.

    Parameters
    ----------
    n_clusters
        k.
    bounds
        Public bounds of the columns, which fix the grid of the sums: as in `FederatedKMeans`.
    init
        ``"random"``, drawn by the parties without looking at records, so often a poor one; or k rows in original units,
        such as the ``cluster_centers_`` of a `FederatedKMeans`.
    max_iter
        Rounds of Lloyd's algorithm; all of them are run.
    n_init
        Sessions, each from another start, of which the best is kept; with a given start, one. Only a simulation, which
        has all records, can compare them.

    Attributes
    ----------
    labels_
        By party's name: the cluster of each of its records, for that party alone. Pickles leave them out.
    cluster_centers_, result_, n_iter_
        As in `KMeans`. ``privacy_card_`` is None: nothing is promised of what the centres themselves reveal.
    """

    def __init__(
        self, n_clusters: int = 8, *, bounds: Any = None, init: Any = "random", max_iter: int = 20, n_init: int = 10
    ) -> None:
        self.n_clusters = n_clusters
        self.bounds = bounds
        self.init = init
        self.max_iter = max_iter
        self.n_init = n_init

    def _run(self, job: Job, tables: Mapping[str, FloatArray], sides: Mapping[str, OwnSide], seed: int | None) -> None:
        if self.n_init < 1:
            raise ConfigError(f"n_init must be at least 1; got {self.n_init}.")
        everything, found = np.vstack(list(tables.values())), []
        for _ in range(self.n_init if isinstance(self.init, str) else 1):
            super()._run(job, tables, sides, seed)
            found.append((self.score(everything), self.result_))
        self._take(max(found, key=lambda one: one[0])[1])

    def _make_job(self, tables: Mapping[str, FloatArray], columns: tuple[Column, ...]) -> Job:
        masks = "double" if len(tables) > 2 else "common"
        start: dict[str, Any] = {"initialisation": "random"}
        if not isinstance(self.init, str):
            rows = np.asarray(self.init, dtype=np.float64).tolist()
            start = {"initialisation": "given", "start": rows}
        elif self.init != "random":
            raise ConfigError(f'init must be "random" or k rows of numbers; got {self.init!r}.')
        return Job(
            name=type(self).__name__,
            k=read_count(self.n_clusters),
            columns=columns,
            parties=tuple(JobParty(name=name) for name in tables),
            protocol=make_options("masked-sum-count", iterations=read_count(self.max_iter), masks=masks, **start),
        )


class VerticalKMeans(_Several):
    """Differentially private k-means of records whose columns are at different parties, under encryption.

    Row i is the same record in every table. How many records there are is public.

    Parameters
    ----------
    n_clusters
        k, at least 2.
    epsilon, delta
        What one fit may cost.
    bounds
        Public bounds of all columns, by name, or in the order of the parties' columns.
    accounts, private, random_state
        As in `FederatedKMeans`.

    Attributes
    ----------
    labels_
        The cluster of each record: for whoever holds all its columns, so for this simulation alone. Pickles leave it
        out.
    cluster_centers_, cluster_centers_noise_, cluster_sizes_, cluster_sizes_noise_, privacy_card_, result_, n_iter_
        As in `KMeans`. Columns are in the order of the parties.
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        bounds: Any = None,
        accounts: Mapping[str, Account] | None = None,
        private: bool = True,
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.accounts = accounts
        self.private = private
        self.random_state = random_state

    def _read_all(self, tables: Mapping[str, Any]) -> tuple[dict[str, FloatArray], tuple[Column, ...]]:
        read = {name: check_array(table, dtype=np.float64, order="C") for name, table in tables.items()}
        self._held = {name: _list_names(name, tables[name], table.shape[1]) for name, table in read.items()}
        names = [column for held in self._held.values() for column in held]
        self.n_features_in_ = len(names)
        if all(hasattr(table, "columns") for table in tables.values()):
            self.feature_names_in_ = np.array(names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        return read, make_columns(self.bounds, names)

    def _make_job(self, tables: Mapping[str, FloatArray], columns: tuple[Column, ...]) -> Job:
        return Job(
            name=type(self).__name__,
            k=read_count(self.n_clusters),
            columns=columns,
            parties=tuple(JobParty(name=name, columns=tuple(self._held[name])) for name in tables),
            protocol=make_options("vertical"),
            data=DataOptions(aligned=True),
            budget=make_budget(self),
        )

    def _label(self, tables: Mapping[str, FloatArray]) -> IntArray:
        labels: IntArray = self._measure(np.hstack(list(tables.values()))).argmin(axis=1).astype(np.int32)
        return labels

    def _read(self, X: Any) -> FloatArray:
        self._check_fitted()
        if isinstance(X, Mapping):
            if set(X) != set(self._held):
                raise ConfigError(f"records must have a table of each of {', '.join(self._held)}, and no other.")
            X = np.hstack([check_array(X[name], dtype=np.float64) for name in self._held])
            joined: FloatArray = check_array(X)
            return joined
        return self._read_table(X, reset=False)


def _name_tables(X: Any) -> dict[str, Any]:
    """Return tables by party's name: party1, party2, ... of a list."""
    if isinstance(X, Mapping):
        tables = dict(X)
    elif isinstance(X, list | tuple):
        tables = {f"party{number}": table for number, table in enumerate(X, start=1)}
    else:
        raise ConfigError(
            f"fit takes a mapping from names to tables, or a list of tables; got {type(X).__name__}. One table alone "
            "is clustered by cloister.KMeans."
        )
    if len(tables) < 2:
        raise ConfigError(f"there must be two tables or more; got {len(tables)}. One alone: cloister.KMeans.")
    return tables


def _list_names(party: str, table: Any, count: int) -> list[str]:
    """Return a table's column names: a frame's own; those of an array are named after the party."""
    names = getattr(table, "columns", None)
    return [f"{party}_{i}" for i in range(count)] if names is None else [str(name) for name in names]
