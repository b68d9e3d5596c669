"""Sessions: from a job to running roles, for one party, for the coordinator, or for everybody.

Reading order: ``tables`` (one party's table), ``alignment`` (a session of its own that comes first), ``assembly`` (who
sits where), ``simulation`` (everybody in one process).
"""

from cloister.sessions.alignment import Aligned, align_job
from cloister.sessions.simulation import OnLabels, OnRecords, label_records, simulate
from cloister.sessions.tables import OnTable

__all__ = [
    "Aligned",
    "OnLabels",
    "OnRecords",
    "OnTable",
    "align_job",
    "label_records",
    "simulate",
]
