"""A process's side of a session over pipes: read tasks, take a seat in each, answer until it is over.

One process serves session after session; in each it holds ONE role. It ends when its standard input does, so no process
outlives the hub. What it prints goes to standard error: the log of the role's owner, who is told there what others are
not.

A process that is killed and started anew takes its seat again. Where its task names a journal it goes on where it was
(:mod:`cloister.runtime.resuming`); without one it refuses what it is asked, and counts as silent.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO, Protocol, Self

from cloister.errors import (
    AbsentError,
    CloisterError,
    LocalProtocolError,
    RemoteProtocolError,
    TooFewPartiesError,
)
from cloister.runtime import pipe_messages as messages
from cloister.wire import CoordinatorEndpoint, PartyEndpoint


class Pipe:
    """The process's end of its two pipes."""

    def __init__(self, source: BinaryIO, sink: BinaryIO, *, limit_bytes: int = messages.LIMIT_BYTES) -> None:
        self._source, self._sink, self._limit_bytes = source, sink, limit_bytes

    @classmethod
    def claim(cls) -> Self:
        """Take standard input and output for messages; what is printed from now on goes to standard error."""
        sink = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        return cls(sys.stdin.buffer, sink)

    def receive(self) -> messages.PipeMessage | None:
        """Wait for a message; None: the hub is gone."""
        header = self._source.read(messages.HEADER_BYTES)
        if len(header) < messages.HEADER_BYTES:
            return None
        length = messages.read_length(header, self._limit_bytes)
        body = self._source.read(length)
        return messages.decode(body) if len(body) == length else None

    def send(self, message: messages.PipeMessage) -> None:
        """Send a message."""
        self._sink.write(messages.encode(message, self._limit_bytes))
        self._sink.flush()


@dataclass(frozen=True, kw_only=True)
class PipedRole:
    """A role in its seat.

    Attributes
    ----------
    endpoint
        A party's or the coordinator's.
    find
        Of a party: what it has found, from what the coordinator told at the end.
    end
        The session is over, and the role will not be asked again.
    close
        Wipes its keys.
    """

    endpoint: PartyEndpoint | CoordinatorEndpoint[Any]
    find: Callable[[Mapping[str, int | bool]], bytes] = lambda outcome: b""
    end: Callable[[], None] = lambda: None
    close: Callable[[], None] = lambda: None


class Opening(Protocol):
    """A role that has read its task, and waits for the directory."""

    @property
    def identity(self) -> bytes:
        """The public identity; empty for a coordinator."""

    def seat(self, directory: tuple[bytes, ...]) -> PipedRole:
        """Take the seat."""


def serve(open_role: Callable[[bytes], Opening], pipe: Pipe | None = None) -> None:
    """Serve one task after the other until the hub is gone.

    Parameters
    ----------
    open_role
        Makes a role from its task.
    pipe
        Standard input and output if left out.
    """
    pipe = pipe or Pipe.claim()
    message = pipe.receive()
    while message is not None:
        # Anything but a task is left over from a session that is over for this role.
        message = (
            _serve_session(pipe, message.body, open_role) if isinstance(message, messages.Task) else pipe.receive()
        )


def _serve_session(pipe: Pipe, task: bytes, open_role: Callable[[bytes], Opening]) -> messages.PipeMessage | None:
    """Serve one session; returns the message after it."""
    try:
        opening = open_role(task)
        pipe.send(messages.Hello(opening.identity))
        directory = pipe.receive()
        if not isinstance(directory, messages.Directory):
            return directory
        role = opening.seat(directory.identities)
        try:
            pipe.send(messages.Seated())
            if isinstance(role.endpoint, PartyEndpoint):
                return _serve_party(pipe, role, role.endpoint)
            return _serve_coordinator(pipe, role, role.endpoint)
        finally:
            role.close()
    except CloisterError as error:
        _tell_owner(error)
        pipe.send(messages.Failed.of(error))
        return pipe.receive()


def _tell_owner(error: CloisterError) -> None:
    why = error.why if isinstance(error, AbsentError) else None
    sys.stderr.write(f"cloister: {why or error}\n")
    sys.stderr.flush()


def _serve_party(pipe: Pipe, role: PipedRole, endpoint: PartyEndpoint) -> messages.PipeMessage | None:
    while True:
        message = pipe.receive()
        if isinstance(message, messages.Frame):
            try:
                reply: messages.PipeMessage = messages.Frame(endpoint.number, endpoint.receive(message.data))
            except RemoteProtocolError as error:
                _tell_owner(error)
                reply = messages.Refused()
            pipe.send(reply)
        elif isinstance(message, messages.Finish):
            pipe.send(messages.Found(role.find(message.outcome)))
            role.end()
            return pipe.receive()
        elif isinstance(message, messages.Abandon):
            role.end()
            raise TooFewPartiesError(message.reason)
        else:
            return message


def _serve_coordinator(pipe: Pipe, role: PipedRole, endpoint: CoordinatorEndpoint[Any]) -> messages.PipeMessage | None:
    while not endpoint.finished:
        frames = endpoint.frames()
        pipe.send(messages.Opened(endpoint.step, endpoint.ask.label, tuple(frames)))
        for party, data in frames.items():
            pipe.send(messages.Frame(party, data))
        message = pipe.receive()
        while isinstance(message, messages.Frame):
            pipe.send(_take_reply(endpoint, message))
            message = pipe.receive()
        if not isinstance(message, messages.Close):
            return message
        endpoint.close_step()
    pipe.send(messages.Ended(_list_counts(endpoint.result)))
    role.end()
    return pipe.receive()


def _take_reply(endpoint: CoordinatorEndpoint[Any], reply: messages.Frame) -> messages.PipeMessage:
    try:
        endpoint.receive(reply.party, reply.data)
    except RemoteProtocolError as error:
        return messages.Refused(str(error))
    return messages.Taken()


def _list_counts(outcome: Any) -> dict[str, int | bool]:
    """Return the counts and answers of an outcome; all else is the coordinator's (labels, say, or who holds what)."""
    if not hasattr(outcome, "__dataclass_fields__"):
        raise LocalProtocolError(f"an outcome must be a dataclass; got {type(outcome).__name__}.")
    values = {name: getattr(outcome, name) for name in outcome.__dataclass_fields__}
    return {name: value for name, value in values.items() if isinstance(value, int | bool)}
