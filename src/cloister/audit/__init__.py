"""Empirical privacy audit: refute a claim with a certificate, or fail to. See docs/audit.md.

Reading order: :mod:`~cloister.audit.bounds` (what one event proves), :mod:`~cloister.audit.claims`,
:mod:`~cloister.audit.statistics` and :mod:`~cloister.audit.digits` (what could tell two inputs apart),
:mod:`~cloister.audit.events` (the one event that is counted), :mod:`~cloister.audit.harness` (the audit),
:mod:`~cloister.audit.one_run` (many canaries, one run), :mod:`~cloister.audit.worst_cases` (neighbours to try).
Whole jobs: :mod:`~cloister.audit.end_to_end`, :mod:`~cloister.audit.adversary`, then
:mod:`~cloister.audit.lloyd_sessions` with :mod:`~cloister.audit.assignment_chain` (one record that moves k clusters),
or :mod:`~cloister.audit.synopsis_sessions` with :mod:`~cloister.audit.matched_filter`, or
:mod:`~cloister.audit.vertical_sessions` with :mod:`~cloister.audit.vertical_views` (two sides that know different
noise) and :mod:`~cloister.audit.vertical_errors` (low bits of answers).
"""

from cloister.audit.bounds import (
    DEFAULT_CONFIDENCE,
    EventCounts,
    epsilon_lower_bound,
    estimate_gaussian_epsilon,
    largest_certifiable_epsilon,
    rho_lower_bound,
)
from cloister.audit.claims import Claim, Neighbour
from cloister.audit.harness import Attack, AuditReport, audit
from cloister.audit.one_run import (
    Guesses,
    OneRunReport,
    audit_one_run,
    one_run_epsilon_lower_bound,
    one_run_p_value,
)
from cloister.audit.worst_cases import NeighbourPair, WorstRecord, entry_labels, exact_pair, worst_records

__all__ = [
    "DEFAULT_CONFIDENCE",
    "Attack",
    "AuditReport",
    "Claim",
    "EventCounts",
    "Guesses",
    "Neighbour",
    "NeighbourPair",
    "OneRunReport",
    "WorstRecord",
    "audit",
    "audit_one_run",
    "entry_labels",
    "epsilon_lower_bound",
    "estimate_gaussian_epsilon",
    "exact_pair",
    "largest_certifiable_epsilon",
    "one_run_epsilon_lower_bound",
    "one_run_p_value",
    "rho_lower_bound",
    "worst_records",
]
