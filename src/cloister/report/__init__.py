"""Results: what a run returns, the folder it is kept in, and how it is shown and used.

Reading order: ``result``, ``folder``, ``text`` with ``card_text`` and ``layout``, ``picture``, ``labels``.
"""

from __future__ import annotations

from cloister.report.folder import check_destination, read_result, write_result
from cloister.report.result import Evaluation, KChoice, Learned, NetworkTime, PartyTraffic, Result

__all__ = [
    "Evaluation",
    "KChoice",
    "Learned",
    "NetworkTime",
    "PartyTraffic",
    "Result",
    "check_destination",
    "read_result",
    "write_result",
]
