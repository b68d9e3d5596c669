"""The job file: who takes part, which columns within which public bounds, which protocol with which options.

Reading order: ``model`` (what a job is), ``checks`` (what must hold), ``reader`` (from TOML), ``key_lines``
(on which line a key stands), ``problems`` (how a broken rule is told).
"""

from __future__ import annotations

from cloister.job.model import (
    AssignmentName,
    DataOptions,
    Job,
    JobParty,
    ProtocolOptions,
    Starter,
)
from cloister.job.reader import load_job, parse_job
from cloister.privacy.units import Budget

__all__ = [
    "AssignmentName",
    "Budget",
    "DataOptions",
    "Job",
    "JobParty",
    "ProtocolOptions",
    "Starter",
    "load_job",
    "parse_job",
]
