"""Cloister: k-means over the records of several organisations, without any of them sharing its records.

>>> from cloister import load_setup, simulate
>>> result = simulate(load_setup("job.toml"))      # doctest: +SKIP
>>> result.centres                                 # doctest: +SKIP

`load_job` reads only what all parties agree on; `load_setup` also reads where each party's table is. The names below
are loaded on first use, so that ``import cloister`` is quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cloister.columns import Column
    from cloister.data import open_table, sample_folder
    from cloister.errors import CloisterError
    from cloister.estimators import (
        Account,
        FederatedKMeans,
        KMeans,
        RecordFolds,
        SecureKMeans,
        VerticalKMeans,
        search,
    )
    from cloister.job import Budget, DataOptions, Job, JobParty, OwnSide, Setup, make_options
    from cloister.jobfile import load_job, load_setup
    from cloister.planning import Plan, plan
    from cloister.privacy.units import Unit
    from cloister.report import Result, read_result, write_result
    from cloister.sessions import simulate

__all__ = [
    "Account",
    "Budget",
    "CloisterError",
    "Column",
    "DataOptions",
    "FederatedKMeans",
    "Job",
    "JobParty",
    "KMeans",
    "OwnSide",
    "Plan",
    "RecordFolds",
    "Result",
    "SecureKMeans",
    "Setup",
    "Unit",
    "VerticalKMeans",
    "load_job",
    "load_setup",
    "make_options",
    "open_table",
    "plan",
    "read_result",
    "sample_folder",
    "search",
    "simulate",
    "write_result",
]
_MODULES = {
    "cloister.columns": ("Column",),
    "cloister.data": ("open_table", "sample_folder"),
    "cloister.errors": ("CloisterError",),
    "cloister.estimators": (
        "Account",
        "FederatedKMeans",
        "KMeans",
        "RecordFolds",
        "SecureKMeans",
        "VerticalKMeans",
        "search",
    ),
    "cloister.job": ("Budget", "DataOptions", "Job", "JobParty", "OwnSide", "Setup", "make_options"),
    "cloister.jobfile": ("load_job", "load_setup"),
    "cloister.planning": ("Plan", "plan"),
    "cloister.privacy.units": ("Unit",),
    "cloister.report": ("Result", "read_result", "write_result"),
    "cloister.sessions": ("simulate",),
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return import_module("importlib.metadata").version("cloister")
    for module, names in _MODULES.items():
        if name in names:
            return getattr(import_module(module), name)
    raise AttributeError(f"module 'cloister' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
