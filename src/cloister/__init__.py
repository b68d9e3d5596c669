"""Cloister: k-means over records that belong to several organisations, without anyone handing their records over.

>>> from cloister import load_job, simulate
>>> result = simulate(load_job("job.toml"))        # doctest: +SKIP
>>> result.centres                                 # doctest: +SKIP

The names below are loaded when they are first used, so that ``import cloister`` is quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cloister.data import Column, open_table, sample_folder
    from cloister.errors import CloisterError
    from cloister.job import Budget, DataOptions, Job, JobParty, ProtocolOptions, load_job
    from cloister.planning import Plan, plan
    from cloister.privacy.units import Unit
    from cloister.protocols.synopsis import Knobs
    from cloister.report import Result, read_result, write_result
    from cloister.simulation import simulate

_HOMES = {
    "Budget": "cloister.job",
    "CloisterError": "cloister.errors",
    "Column": "cloister.data",
    "DataOptions": "cloister.job",
    "Job": "cloister.job",
    "JobParty": "cloister.job",
    "Knobs": "cloister.protocols.synopsis",
    "Plan": "cloister.planning",
    "ProtocolOptions": "cloister.job",
    "Result": "cloister.report",
    "Unit": "cloister.privacy.units",
    "load_job": "cloister.job",
    "open_table": "cloister.data",
    "plan": "cloister.planning",
    "read_result": "cloister.report",
    "sample_folder": "cloister.data",
    "simulate": "cloister.simulation",
    "write_result": "cloister.report",
}

__all__ = [
    "Budget",
    "CloisterError",
    "Column",
    "DataOptions",
    "Job",
    "JobParty",
    "Knobs",
    "Plan",
    "ProtocolOptions",
    "Result",
    "Unit",
    "load_job",
    "open_table",
    "plan",
    "read_result",
    "sample_folder",
    "simulate",
    "write_result",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'cloister' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
