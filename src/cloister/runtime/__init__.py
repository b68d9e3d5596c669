"""Runtimes move messages between roles. Here: all in one process, with a byte meter, a network model and faults."""

from cloister.runtime.faults import Fault, FaultKind
from cloister.runtime.local import LocalRun, OnProgress, Progress, Rejected, Traffic, ViewEntry, run_local
from cloister.runtime.network import NETWORKS, NetworkModel

__all__ = [
    "NETWORKS",
    "Fault",
    "FaultKind",
    "LocalRun",
    "NetworkModel",
    "OnProgress",
    "Progress",
    "Rejected",
    "Traffic",
    "ViewEntry",
    "run_local",
]
