"""Events as a structured log: one JSON object on a line, through Python's logger ``cloister``.

A log has names that the job has, versions, kinds, reasons and numbers of steps. Times are whole seconds: finer ones
would say more of how long roles work than anybody needs who reads a log. A flood of connections cannot fill a disk:
lines about them are left out beyond thirty a minute, and counted.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TextIO

import msgspec

from cloister.errors import CloisterError, ConfigError, own_error
from cloister.runtime import Progress
from cloister.runtime.remote.events import (
    Connected,
    Disconnected,
    Event,
    Left,
    Listening,
    Opened,
    Passed,
    Refused,
    Unreachable,
)

LOGGER = logging.getLogger("cloister")
LOGGER.addHandler(logging.NullHandler())
_FIELDS = "cloister"
_BURST, _BURST_S = 30, 60.0  # lines about connections, in so much time
_PATIENCE_S = 10.0
_TOLD = {"Consent": "consented", "Seated": "seated", "Declined": "declined", "Done": "confirmed"}
_HEARD = {"Abandon": "abandoned", "Over": "over"}


class Limiter:
    """Allows thirty lines a minute about connections, so that a flood of them fills no disk and no screen.

    Attributes
    ----------
    dropped
        How many were not allowed since one last was.
    """

    def __init__(self) -> None:
        self._began_s, self._lines, self.dropped = 0.0, 0, 0

    def allow(self, now_s: float) -> bool:
        """Whether a line may be written now."""
        if now_s - self._began_s >= _BURST_S:
            self._began_s, self._lines = now_s, 0
        if self._lines >= _BURST:
            self.dropped += 1
            return False
        self._lines, self.dropped = self._lines + 1, 0
        return True


class EventLog:
    """Writes events to the logger.

    Parameters
    ----------
    role
        Who we are in the job.
    """

    def __init__(self, role: str) -> None:
        self._role = role
        self._step = ("", -1, "")
        self._session = ""
        self._awaited_s = 0.0
        self._named_s = 0.0
        self._limiter = Limiter()

    def write(self, what: str, level: int = logging.INFO, **fields: object) -> None:
        """Write one line."""
        LOGGER.log(level, what, extra={_FIELDS: {"role": self._role, **fields}})

    def observe(self, event: Event, now_s: float) -> None:
        """Write down an event, if it belongs into a log."""
        match event:
            case Progress():
                self._note_step(event, now_s)
            case Opened():
                self._session = event.kind
                self.write("session", kind=event.kind)
            case Listening():
                self.write("listening", port=event.port)
            case Left():
                self.write("left", logging.WARNING, peer=event.peer)
            case Passed():
                self._note_message(event)
            case Connected() | Disconnected() | Refused() | Unreachable():
                self._note_connection(event, now_s)

    def end(self, error: BaseException | None) -> None:
        """Write down how our part ended: what an error says may be about our own table, so only its class is told."""
        if error is None:
            self.write("ended", outcome="done")
        elif isinstance(error, CloisterError):
            wrong = own_error(error)
            self.write("ended", logging.ERROR, outcome=type(wrong).__name__, exit_code=wrong.exit_code)
        else:
            self.write("ended", logging.ERROR, outcome="failed" if isinstance(error, Exception) else "stopped")

    def _note_message(self, event: Passed) -> None:
        what = _TOLD.get(event.kind) or _HEARD.get(event.kind)
        if what is not None:
            self.write(what, peer=event.peer)

    def _note_connection(self, event: Connected | Disconnected | Refused | Unreachable, now_s: float) -> None:
        dropped = self._limiter.dropped
        if not self._limiter.allow(now_s):
            return
        if dropped:
            self.write("left out", logging.WARNING, lines=dropped)
        if isinstance(event, Connected):
            self.write("connected", peer=event.peer, program=event.program)
        elif isinstance(event, Disconnected):
            self.write("disconnected", peer=event.peer)
        elif isinstance(event, Unreachable):
            self.write("unreachable", logging.WARNING, peer=event.peer, why=event.why or None)
        else:
            by = "peer" if event.by_peer else "us"
            self.write("refused", logging.WARNING, peer=event.peer or None, reason=event.reason, by=by)

    def _note_step(self, progress: Progress, now_s: float) -> None:
        """Write down a step when it opens, and whom it waits for when that takes long."""
        step = (self._session, progress.step, progress.label)
        if step != self._step:
            self._step, self._awaited_s, self._named_s = step, now_s, now_s
            if progress.steps:
                self.write("step", session=self._session, step=step[1], steps=progress.steps, label=step[2])
            else:
                self.write("phase", session=self._session or None, label=step[2])
        elif progress.waiting_for and now_s - self._named_s >= _PATIENCE_S:
            self._named_s = now_s
            waited = round(now_s - self._awaited_s)
            self.write("waiting", logging.WARNING, step=progress.step, seconds=waited, parties=progress.waiting_for)


class _Lines(logging.StreamHandler[TextIO]):
    """A disk that is full, say, ends the log and not the run."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 (logging's name)
        """Lose the line."""


class _JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="seconds")
        fields = getattr(record, _FIELDS, {})
        said = {name: value for name, value in fields.items() if value is not None}
        line = {"time": at, "level": record.levelname.lower(), "event": str(record.msg), **said}
        return msgspec.json.encode(line).decode()


@contextmanager
def open_log(path: str | None) -> Iterator[None]:
    """Send the log to a file, which is appended to, or with ``-`` to standard error, until the block ends.

    Raises
    ------
    ConfigError
        If the file cannot be written.
    """
    if path is None:
        yield
        return
    handler = _Lines(_open(path))
    handler.setFormatter(_JsonLines())
    handler.addFilter(lambda record: hasattr(record, _FIELDS))
    before = LOGGER.level
    LOGGER.addHandler(handler)
    LOGGER.setLevel(logging.INFO)
    try:
        yield
    finally:
        LOGGER.removeHandler(handler)
        LOGGER.setLevel(before)
        if path != "-":
            with suppress(OSError):  # a full disk, say
                handler.stream.close()


def _open(path: str) -> TextIO:
    if path == "-":
        return sys.stderr
    try:
        return Path(path).open("a", encoding="utf-8", buffering=1)
    except OSError as error:
        raise ConfigError(
            f"the log must go to a writable file; got {path}: {error.strerror}. Choose another with --log, or - for "
            "standard error."
        ) from None
