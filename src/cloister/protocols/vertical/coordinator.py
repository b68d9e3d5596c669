"""The coordinator of a vertical session: a relay. It runs the stages and carries boxes that it cannot read.

It learns who takes part, the stages, the length of every box, and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from cloister.aggregation.seed_agreement import Ready, agree_on_seed_and_keys
from cloister.errors import RemoteProtocolError, TooFewPartiesError
from cloister.protocols.vertical.agreement import VerticalAgreement
from cloister.protocols.vertical.messages import Done, ExchangeKeys, Letter, Post, Stage, Turn
from cloister.roles import Ask, Coordinator, Message, expect


@dataclass(frozen=True, kw_only=True)
class RelayOutcome:
    """What the relay knows at the end."""

    stages: int
    decryptors: tuple[tuple[int, ...], ...]
    """Who decrypted each answer."""


class _Undelivered:
    """Boxes in transit: what each party has not confirmed yet.

    A party that missed its turn gets the same boxes in its next one. Of answers to decrypt, only the last is kept:
    the others have been decrypted without it.
    """

    def __init__(self, parties: int) -> None:
        self._posts: dict[int, list[Post]] = {party: [] for party in range(1, parties + 1)}
        self._letters: dict[int, dict[tuple[int, int | str], Letter]] = {party: {} for party in range(1, parties + 1)}

    def take(self, party: int, reply: Done, number: int, stage: Stage) -> None:
        """Accept what a party did in its turn."""
        if reply.post is not None:
            post = Post(party, number, reply.post)
            for other, waiting in self._posts.items():
                if other != party:
                    waiting.append(post)
        for letter in reply.letters:
            self._letters[letter.recipient][party, stage.kind if stage.kind == "compute" else number] = letter

    def hand_out(self, party: int, *, stage: int, members: tuple[int, ...]) -> Turn:
        """Return everything that is waiting for a party."""
        return Turn(stage, members, tuple(self._posts[party]), tuple(self._letters[party].values()))

    def confirm(self, party: int) -> None:
        """Forget what was sent to a party: it has answered."""
        self._posts[party].clear()
        self._letters[party].clear()


def coordinate_vertical(agreement: VerticalAgreement, *, session: bytes) -> Coordinator[RelayOutcome]:
    """Run one session.

    Raises
    ------
    TooFewPartiesError
        If a party that a stage needs does not answer. With a threshold, decryption only needs the agreed number of
        key holders, out of those that have just said that they are present. A party that is absent at the
        end does not get the result.
    """
    parties = agreement.parties
    schedule = agreement.schedule
    steps = agreement.steps
    keys = yield from agree_on_seed_and_keys(
        agreement=agreement.digest,
        directory=agreement.directory,
        session=session,
        members_min=parties,
        steps=steps,
    )
    answers = yield Ask(
        label="exchanging keys",
        requests=dict.fromkeys(range(1, parties + 1), ExchangeKeys(keys)),
        check=expect(Ready),
        steps=steps,
    )
    _require_all([p for p, reply in answers.items() if not isinstance(reply, Ready)], "exchanging keys")
    boxes = _Undelivered(parties)
    decryptors: list[tuple[int, ...]] = []
    present = agreement.key_holders
    for number, stage in enumerate(schedule):
        members = present[: agreement.decryptors] if stage.kind == "decrypt" else stage.members
        turns: dict[int, Message] = {party: boxes.hand_out(party, stage=number, members=members) for party in members}
        answers = yield Ask(label=stage.label, requests=turns, check=_check_done(number, stage), steps=steps)
        done = {party: reply for party, reply in sorted(answers.items()) if isinstance(reply, Done)}
        if stage.kind == "attend":
            present = tuple(done)
            if len(present) < agreement.decryptors:
                raise TooFewPartiesError(
                    f"at least {agreement.decryptors} of {len(agreement.key_holders)} key holders must be present to "
                    f"decrypt; got {len(present)}. Run the job again when they are reachable."
                )
        elif stage.kind != "close" or agreement.threshold is None:
            _require_all([party for party in members if party not in done], stage.label)
        if stage.kind == "decrypt":
            decryptors.append(members)
        for party in done:
            boxes.confirm(party)
        for party, reply in done.items():
            boxes.take(party, reply, number, stage)
    return RelayOutcome(stages=len(schedule), decryptors=tuple(decryptors))


def _require_all(missing: list[int], label: str) -> None:
    if missing:
        raise TooFewPartiesError(
            f"every party must answer while {label}; {'party' if len(missing) == 1 else 'parties'} "
            f"{', '.join(map(str, missing))} did not. Whatever was released has been paid for. Run the job again."
        )


def _check_done(number: int, stage: Stage) -> Callable[[int, Message], None]:
    def check(party: int, reply: Message) -> None:
        if not isinstance(reply, Done):
            raise RemoteProtocolError(f"party {party} must answer with Done; got {type(reply).__name__}.")
        recipients = [letter.recipient for letter in reply.letters]
        own = all(letter.sender == party and letter.stage == number for letter in reply.letters)
        if not own or sorted(recipients) != sorted(stage.readers_of(party)) or (reply.post is None) is stage.posting:
            raise RemoteProtocolError(
                f"party {party} must write its own letters while {stage.label}, one to each that the schedule names, "
                "and post where it says so; it did not."
            )

    return check
