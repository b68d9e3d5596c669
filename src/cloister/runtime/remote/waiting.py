"""Whom the coordinator waits for, and when that is told: work in proportion to what happens, however many wait."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from cloister.runtime.local import OnProgress, Progress
from cloister.runtime.remote.member import Member

_LISTED_ALWAYS = 50  # names; of more, a report is due when a fiftieth of them has come: all lists together stay short


class Waiting:
    """The members that one wait is still for.

    Parameters
    ----------
    members
        All members of the run; at first, all are waited for.
    on_progress
        Told who is waited for.

    Attributes
    ----------
    awaited
        Who is left, by name; up to date at any time.
    """

    def __init__(self, members: Sequence[Member], on_progress: OnProgress) -> None:
        self._on_progress = on_progress
        self._told: Progress | None = None
        self.begin(members, label="joining")

    def begin(self, members: Iterable[Member], *, label: str, step: int = 0, steps: int = 0) -> dict[str, Member]:
        """Wait for these; whoever comes is taken off what is returned."""
        self.awaited = {member.name: member for member in members}
        self._step, self._steps, self._label = step, steps, label
        self._due_at = len(self.awaited)
        return self.awaited

    def report(self) -> None:
        """Tell who is left, unless hardly anybody came since."""
        left = len(self.awaited)
        if left > _LISTED_ALWAYS and self._due_at < left:
            return
        self._due_at = left - left // _LISTED_ALWAYS
        progress = self.look()
        if progress != self._told:
            self._told = progress
            self._on_progress(progress)

    def look(self) -> Progress:
        """Return who is left now."""
        return Progress(step=self._step, steps=self._steps, label=self._label, waiting_for=tuple(self.awaited))
