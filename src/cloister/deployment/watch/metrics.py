"""A board as metrics, in Prometheus' text format 0.0.4, and as a health report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from cloister.deployment.watch.board import Board

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
METRICS = {  # name: type, help; docs/deploy.md lists the same
    "cloister_info": ("gauge", "Always 1; the job, who this process is in it, and its version."),
    "cloister_run_seconds": ("gauge", "How long this process has been in the run."),
    "cloister_ready": ("gauge", "1 if the coordinator listens, or the party is connected to it."),
    "cloister_connected": ("gauge", "1 if the other end is connected."),
    "cloister_left": ("gauge", "1 if the party has withdrawn."),
    "cloister_reconnects_total": ("counter", "Connections of the other end after its first."),
    "cloister_bytes_total": ("counter", "Bytes of messages, without TLS."),
    "cloister_messages_total": ("counter", "Messages."),
    "cloister_refusals_total": ("counter", "Connections refused, by reason; by us, or by the other end."),
    "cloister_steps_total": ("counter", "Steps opened, by kind of session."),
    "cloister_step": ("gauge", "The step that is open in this session."),
    "cloister_steps_expected": ("gauge", "Steps that this session has at most, as far as is known."),
    "cloister_waiting": ("gauge", "1 if the party is awaited in the open step; a party hears of at most 20."),
}
Sample = tuple[str, Mapping[str, str], float]


def write_metrics(board: Board) -> bytes:
    """Return all metrics."""
    lines: list[str] = []
    seen = ""
    for name, labels, value in _list_samples(board):
        if name != seen:
            kind, text = METRICS[name]
            lines += [f"# HELP {name} {text}", f"# TYPE {name} {kind}"]
            seen = name
        inside = ",".join(f'{label}="{_escape(text)}"' for label, text in labels.items())
        lines.append(f"{name}{{{inside}}} {value:.15g}" if inside else f"{name} {value:.15g}")
    return ("\n".join(lines) + "\n").encode()


def write_health(board: Board) -> bytes:
    """Return whether this end is ready, which step is open, and who is awaited, as JSON; that it answers, it lives."""
    now = board.progress
    return msgspec.json.encode(
        {
            "alive": True,
            "ready": board.is_ready,
            "job": board.job,
            "role": board.role,
            "session": board.session,
            "step": now.step,
            "steps": now.steps,
            "label": now.label,
            "waiting": now.waiting_for,
        }
    )


def _list_samples(board: Board) -> Iterator[Sample]:
    peers = list(board.peers.values())
    yield "cloister_info", {"job": board.job, "role": board.role, "version": board.version}, 1
    yield "cloister_run_seconds", {}, int(board.elapsed_s)
    yield "cloister_ready", {}, board.is_ready
    yield from (("cloister_connected", {"peer": one.name}, one.is_connected) for one in peers)
    yield from (("cloister_left", {"peer": one.name}, one.has_left) for one in peers)
    yield from (("cloister_reconnects_total", {"peer": one.name}, max(0, one.connections - 1)) for one in peers)
    for name, sent, received in (
        ("cloister_bytes_total", "bytes_sent", "bytes_received"),
        ("cloister_messages_total", "messages_sent", "messages_received"),
    ):
        for one in peers:
            yield name, {"peer": one.name, "direction": "sent"}, getattr(one, sent)
            yield name, {"peer": one.name, "direction": "received"}, getattr(one, received)
    yield from _list_refusals(board)
    yield from (("cloister_steps_total", {"session": kind}, count) for kind, count in sorted(board.steps.items()))
    yield "cloister_step", {}, board.progress.step
    yield "cloister_steps_expected", {}, board.progress.steps
    yield from _list_waiting(board.parties, set(board.progress.waiting_for))


def _list_refusals(board: Board) -> Iterator[Sample]:
    for (reason, by_peer), count in sorted(board.refusals.items()):
        yield "cloister_refusals_total", {"reason": reason, "by": "peer" if by_peer else "us"}, count


def _list_waiting(parties: Iterable[str], waiting: set[str]) -> Iterator[Sample]:
    yield from (("cloister_waiting", {"party": name}, name in waiting) for name in parties)


def _escape(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
