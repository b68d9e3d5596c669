"""What is known of a run at one of its ends: who is connected, what has passed, which step is open, who is awaited."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from cloister.runtime import Progress
from cloister.runtime.remote.events import Connected, Disconnected, Event, Left, Listening, Opened, Passed, Refused


@dataclass(kw_only=True, eq=False)
class Peer:
    """One other end: a party at the coordinator, the coordinator at a party."""

    name: str
    is_connected: bool = False
    has_left: bool = False
    connections: int = 0
    bytes_sent: int = 0
    bytes_received: int = 0
    messages_sent: int = 0
    messages_received: int = 0


class Board:
    """Adds up events.

    Parameters
    ----------
    job, role, version
        The job's name, who we are in it, and our version of Cloister.
    peers
        The names of the other ends.
    parties
        The names of all parties, any of which may be awaited.
    clock
        Seconds since some moment.

    Attributes
    ----------
    progress
        The open step, and who is awaited.
    session, steps
        The kind of session that is open; how many steps each kind has had so far.
    refusals
        How many connections were refused, by reason, and whether by the other end.
    """

    def __init__(
        self,
        *,
        job: str,
        role: str,
        version: str,
        peers: Iterable[str],
        parties: Iterable[str],
        clock: Callable[[], float],
    ) -> None:
        self.job, self.role, self.version = job, role, version
        self.peers = {name: Peer(name=name) for name in peers}
        self.parties = tuple(parties)
        self.progress = Progress(step=0, steps=0, label="starting", waiting_for=())
        self.session = ""
        self.steps: Counter[str] = Counter()
        self.refusals: Counter[tuple[str, bool]] = Counter()
        self.is_listening = False
        self._clock, self._began_s = clock, clock()
        self._last_step = -1

    @property
    def elapsed_s(self) -> float:
        """How long this process has been in the run."""
        return self._clock() - self._began_s

    @property
    def is_ready(self) -> bool:
        """Whether the coordinator listens; whether a party is connected."""
        return self.is_listening or any(peer.is_connected for peer in self.peers.values())

    def observe(self, event: Event) -> None:
        """Take note of an event."""
        match event:
            case Passed():
                self._count(event)
            case Progress():
                self._open_step(event)
            case Opened():
                self.session, self._last_step = event.kind, -1
            case Listening():
                self.is_listening = True
            case Refused():
                self.refusals[event.reason, event.by_peer] += 1
            case Connected() | Disconnected() | Left():
                self._note_peer(event)

    def _count(self, event: Passed) -> None:
        peer = self.peers[event.peer]
        if event.is_sent:
            peer.bytes_sent += event.size_bytes
            peer.messages_sent += 1
        else:
            peer.bytes_received += event.size_bytes
            peer.messages_received += 1

    def _open_step(self, progress: Progress) -> None:
        self.progress = progress
        if self.session and progress.steps and progress.step > self._last_step:
            self.steps[self.session] += 1 if self._last_step < 0 else progress.step - self._last_step
            self._last_step = progress.step

    def _note_peer(self, event: Connected | Disconnected | Left) -> None:
        peer = self.peers[event.peer]
        if isinstance(event, Connected):
            peer.connections += 1
        peer.is_connected = isinstance(event, Connected)
        peer.has_left = peer.has_left or isinstance(event, Left)
