"""The job file: who takes part, which columns within which public bounds, which protocol with which options.

Reading order: ``model`` (what a job is), ``defaults`` and ``vertical_roles`` (what it means where it says nothing),
``checks``, ``protocol_checks`` with one module for each protocol, ``budget_checks`` (what must hold), ``reader`` and
``sections`` (from TOML), ``key_lines`` (on which line a key stands), ``problems`` (how a broken rule is told),
``template`` (a new job file).
"""

from __future__ import annotations

from cloister.job.model import (
    AssignmentName,
    DataOptions,
    Job,
    JobParty,
    ProtocolName,
    ProtocolOptions,
    Starter,
)
from cloister.job.reader import load_job, parse_job
from cloister.privacy.units import Budget
from cloister.protocols.synopsis.settings import Knobs

__all__ = [
    "AssignmentName",
    "Budget",
    "DataOptions",
    "Job",
    "JobParty",
    "Knobs",
    "ProtocolName",
    "ProtocolOptions",
    "Starter",
    "load_job",
    "parse_job",
]
