"""What one process shows its operator of a run: a log, metrics, its health, and a live view.

Reading order: :mod:`.board` (what is known, from events), :mod:`.log`, :mod:`.metrics`, :mod:`.http` (the port of the
last two), :mod:`.watch` (all of it, opened and closed with the run). Nothing here holds more than the events of
:mod:`cloister.runtime.remote.events` do, and the clock; docs/proofs/views.md has each field.
"""

from cloister.deployment.watch.board import Board, Peer
from cloister.deployment.watch.log import EventLog, Limiter, open_log
from cloister.deployment.watch.watch import Watch

__all__ = ["Board", "EventLog", "Limiter", "Peer", "Watch", "open_log"]
