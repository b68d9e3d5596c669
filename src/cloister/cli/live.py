"""What ``cloister serve`` and ``cloister party`` show meanwhile: a live view on a terminal, plain lines elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from cloister.cli.ledger_report import format_epsilon
from cloister.report.progress import PlainLines, name_some

if TYPE_CHECKING:
    from cloister.deployment.watch import Board, Peer, Watch
    from cloister.job import Job
    from cloister.privacy.ledger import LedgerSession
    from cloister.runtime.remote.events import Connected, Disconnected, Event, Refused

_MOST_ROWS = 12
_REFRESHES_A_S = 4
_REASONS = {
    "BROKEN": "it said what may not be said at that point of a connection. Compare versions of Cloister.",
    "CROWDED": "too many others had not said who they are. If it goes on, somebody floods the port.",
    "SILENT": "whoever called did not say in time who they are.",
    "CERTIFICATE": "its certificate is not known here, or has expired. If a party is missing, get its newest NAME.pub.",
    "NO_CERTIFICATE": "it has no certificate for TLS, so it is no party.",
    "HANDSHAKE": "what it said was not TLS as parties speak it.",
}


class RunView:
    """One process's run, as its operator sees it.

    Parameters
    ----------
    watch
        What is known of the run.
    job
        The job.
    console
        The console for standard error.
    """

    def __init__(self, watch: Watch, job: Job, console: Console) -> None:
        from cloister.deployment.watch import Limiter

        self._board, self._job, self._console = watch.board, job, console
        self._lines = PlainLines(partial(console.print, soft_wrap=True))
        self._limiter = Limiter()
        self._ledger, self._why = "", "never told"
        self.is_charged = self._is_over = False

    def note_ledger(self, session: LedgerSession) -> None:
        """Take note of what our ledger holds before the job."""
        state = session.state()
        spent = f"epsilon {format_epsilon(state.before)} spent before this job"
        self._ledger = "none is charged: seeded" if state.seeded else spent

    def observe(self, event: Event) -> None:
        """Print what the operator should know at once; without a terminal, all that happens."""
        from cloister.runtime import Progress
        from cloister.runtime.remote.events import Connected, Disconnected, Left, Passed, Refused, Unreachable

        match event:
            case Refused():
                self._say_refusal(event)
            case Unreachable() if event.why != self._why and not self._is_over:
                self._why = event.why
                self._say(f"the {event.peer} cannot be reached now, and is called again. {event.why}".strip())
            case Left():
                self._say(f"{event.peer} has left.")
            case Passed(kind="Reply", is_sent=True) if self._board.session == "clustering":
                self.is_charged = True
            case Progress() if not self._console.is_terminal:
                self._lines.show(event)
            case Passed(kind="Over" | "Abandon" | "Withdraw"):
                self._is_over = True
            case Connected() | Disconnected() if not self._console.is_terminal:
                self._say_connection(event)

    def _say_connection(self, event: Connected | Disconnected) -> None:
        from cloister.runtime.remote.events import Connected

        if self._is_over or not self._limiter.allow(monotonic()):
            return
        who = event.peer if event.peer in self._board.parties else "the coordinator"
        if isinstance(event, Connected):
            self._say(f"{who} is connected, with Cloister {event.program}.")
        else:
            self._say(f"{who} is cut off, and may come back.")

    def _say_refusal(self, event: Refused) -> None:
        from cloister.runtime.remote.messages import Refusal

        is_told = event.peer not in self._board.peers or event.peer in self._board.parties or event.reason == "RATE"
        if not is_told or not self._limiter.allow(monotonic()):  # at a party, its own error says so
            return
        text = _REASONS.get(event.reason) or Refusal[event.reason].text
        if event.by_peer:
            self._say(f"{event.peer} does not accept us: {text}")
        else:
            self._say(f"refused {event.peer or 'a caller'}: {text}")

    def _say(self, text: str) -> None:
        self._console.print(f"cloister: {text}", soft_wrap=True)

    # --- live ---------------------------------------------------------------------------------------------------------

    def render(self) -> Group:
        """Draw the run; readable from 60 columns on."""
        board, now = self._board, self._board.progress
        minutes, seconds = divmod(int(board.elapsed_s), 60)
        parts = [board.job, board.role, *([board.session] if board.session else []), f"{minutes:02}:{seconds:02}"]
        lines = [Text(" · ".join(parts), style="bold"), Text(_describe_step(board))]
        if now.waiting_for:
            lines.append(Text(f"waiting for {name_some(now.waiting_for)}"))
        if self._job.budget is not None and board.role in board.parties:
            charged = "charged" if self.is_charged else "nothing charged yet"
            lines.append(Text(f"budget epsilon {self._job.budget.epsilon:g}: {charged}"))
            lines.append(Text(f"ledger {self._ledger or 'not opened yet'}"))
        return Group(*lines, self._draw_peers())

    def _draw_peers(self) -> Table:
        from cloister.report.layout import format_bytes

        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
        table.add_column("who", overflow="ellipsis", no_wrap=True, max_width=20)
        table.add_column("is", no_wrap=True)
        for heading in ("received", "sent"):
            table.add_column(heading, justify="right", no_wrap=True)
        waiting = set(self._board.progress.waiting_for)
        peers = sorted(self._board.peers.values(), key=lambda one: (one.name not in waiting, one.is_connected))
        for peer in peers[:_MOST_ROWS]:
            passed = format_bytes(peer.bytes_received), format_bytes(peer.bytes_sent)
            table.add_row(Text(peer.name), _describe_peer(peer, awaited=peer.name in waiting), *passed)
        if len(peers) > _MOST_ROWS:
            here = sum(peer.is_connected for peer in peers)
            table.add_row(f"and {len(peers) - _MOST_ROWS} more", f"{here} connected", "", "")
        return table


def _describe_peer(peer: Peer, *, awaited: bool) -> Text:
    if peer.has_left:
        return Text("has left", style="red")
    if not peer.is_connected:
        return Text("cut off" if peer.connections else "not here yet", style="yellow")
    return Text("awaited", style="yellow") if awaited else Text("connected", style="green")


def _describe_step(board: Board) -> str:
    now = board.progress
    return f"step {now.step + 1} of {now.steps}: {now.label}" if now.steps else now.label


@contextmanager
def show_run(
    watch: Watch, job: Job, console: Console, *, quiet: bool = False, log: str | None = None
) -> Iterator[RunView]:
    """Show a run until the block ends: live on a terminal, else line by line.

    Parameters
    ----------
    watch, job
        What is known of the run, and its job.
    console
        The console for standard error.
    quiet
        Show nothing.
    log
        Where the log goes: a live view leaves standard error to it.

    Yields
    ------
    RunView
        To be told of our ledger.
    """
    view = RunView(watch, job, console)
    if not quiet:
        watch.add(view.observe)
    if quiet or log == "-" or not console.is_terminal:
        yield view
        return
    with Live(get_renderable=view.render, console=console, refresh_per_second=_REFRESHES_A_S, transient=True):
        yield view
