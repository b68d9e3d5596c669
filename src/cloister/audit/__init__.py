"""Empirical privacy audit: refute a claim with a certificate, or fail to. See docs/audit.md.

Reading order: :mod:`~cloister.audit.bounds` (what is claimed, and what one event proves),
:mod:`~cloister.audit.events` (the one event that is counted), :mod:`~cloister.audit.statistics` (what could tell two
inputs apart), :mod:`~cloister.audit.power` (what could have been caught), :mod:`~cloister.audit.harness` (the audit),
:mod:`~cloister.audit.one_run` (many canaries, one run), :mod:`~cloister.audit.worst_cases` (neighbours to try). Whole
jobs: :mod:`~cloister.audit.attack`; the attacks are in the packages of their protocols. What is not a release:
:mod:`~cloister.audit.whole_view`.
"""

from cloister.audit.bounds import Claim, Neighbour
from cloister.audit.harness import Attack, AuditReport, JobUnderAudit, audit
from cloister.audit.one_run import OneRunReport, audit_one_run
from cloister.audit.worst_cases import NeighbourPair, WorstRecord, entry_labels, exact_pair, worst_records

__all__ = [
    "Attack",
    "AuditReport",
    "Claim",
    "JobUnderAudit",
    "Neighbour",
    "NeighbourPair",
    "OneRunReport",
    "WorstRecord",
    "audit",
    "audit_one_run",
    "entry_labels",
    "exact_pair",
    "worst_records",
]
