"""Run a job in one process: every party's role on its own table, the coordinator's role, real messages between them.

The roles are the ones that a deployment would run. What only a simulator can do is kept apart and labelled: it holds
every table, so it can compute the loss over all records and compare it with k-means on one joint table.

Reading order: ``stage`` (what every protocol is given), ``lloyd`` and ``synopsis`` (how each family is played on it),
``play`` (``simulate``: from a job to a result).
"""

from __future__ import annotations

from cloister.simulation.lloyd import make_agreement, make_assignment
from cloister.simulation.play import simulate
from cloister.simulation.stage import OnLabels, OnTable
from cloister.simulation.synopsis import make_settings
from cloister.simulation.vertical_labels import predict_vertical

__all__ = [
    "OnLabels",
    "OnTable",
    "make_agreement",
    "make_assignment",
    "make_settings",
    "predict_vertical",
    "simulate",
]
