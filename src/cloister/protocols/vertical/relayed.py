"""A party that reaches the others through a relay: opens the session, opens and seals boxes, follows the stages.

What it does in a stage is up to the class that builds on it: :class:`~.party.VerticalParty` for a clustering,
:mod:`cloister.protocols.vertical.labels` for labels.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from cloister.aggregation import SeedHolder
from cloister.aggregation.seed_agreement import Ready
from cloister.crypto import Stream, open_keyed, seal_keyed
from cloister.errors import LocalProtocolError, RemoteProtocolError
from cloister.protocols.vertical.agreement import VerticalAgreement
from cloister.protocols.vertical.messages import Done, ExchangeKeys, Letter, Stage, Turn
from cloister.records import FloatArray, Records
from cloister.roles import Message, Seat


class Mail:
    """What a party seals and opens with.

    Parameters
    ----------
    number
        This party's.
    session
        Which session this is.
    seed
        Common to all parties.
    secrets
        What this party shares with each other one, by number.
    """

    def __init__(self, *, number: int, session: bytes, seed: bytes, secrets: Mapping[int, bytes]) -> None:
        self._number, self._session = number, session
        self._seed, self._secrets = seed, secrets

    def seal_post(self, content: bytes, stage: int) -> bytes:
        """Seal something for all parties; once per stage."""
        return seal_keyed(content, self._seed, "post", self._session, stage, self._number)

    def seal_letter(self, content: bytes, stage: int, recipient: int) -> Letter:
        """Seal something for one party; once per stage and recipient."""
        box = seal_keyed(content, self._secrets[recipient], "letter", self._session, stage, self._number, recipient)
        return Letter(self._number, recipient, stage, box)

    def open_posts(self, turn: Turn) -> dict[tuple[int, int], bytes]:
        """Open a turn's posts; by stage and author.

        Raises
        ------
        RemoteProtocolError
            If one is not what its author posted in that stage.
        """
        return {
            (post.stage, post.author): open_keyed(post.box, self._seed, "post", self._session, post.stage, post.author)
            for post in turn.posts
        }

    def open_letters(self, turn: Turn) -> dict[tuple[int, int], bytes]:
        """Open a turn's letters; by stage and sender.

        Raises
        ------
        RemoteProtocolError
            If one is not to us, or not what its sender wrote in that stage.
        """
        opened = {}
        for letter in turn.letters:
            secret = self._secrets.get(letter.sender)
            if letter.recipient != self._number or secret is None:
                raise RemoteProtocolError("a letter must come from another party and be addressed to us; one is not.")
            opened[letter.stage, letter.sender] = open_keyed(
                letter.box, secret, "letter", self._session, letter.stage, letter.sender, self._number
            )
        return opened


@dataclass(frozen=True, kw_only=True)
class Opened:
    """A turn's mail, opened: by stage and author, by stage and sender. Posts that we had before are not in it."""

    stage: Stage
    number: int
    members: tuple[int, ...]
    posts: Mapping[tuple[int, int], bytes]
    letters: Mapping[tuple[int, int], bytes]

    def list_latest(self) -> dict[int, bytes]:
        """Return letters by sender, where all must have been written in the stage before this one.

        Raises
        ------
        RemoteProtocolError
            If one was written earlier: it has been read.
        """
        if any(stage != self.number - 1 for stage, _ in self.letters):
            raise RemoteProtocolError("letters must come with our next turn, and once; some come late.")
        return {sender: raw for (_, sender), raw in sorted(self.letters.items())}


@dataclass(frozen=True, kw_only=True)
class Said:
    """What a party sends in its turn, before it is sealed."""

    post: bytes | None = None
    letters: Mapping[int, bytes] = field(default_factory=dict)


class RelayedParty:
    """One party of a session through a relay.

    Parameters
    ----------
    seat
        Its place in the session.
    agreement
        The public parameters.
    columns
        (n, d_h): this party's columns of all aligned records, in [-1, 1]; they never leave this object.
    """

    def __init__(self, seat: Seat, agreement: VerticalAgreement, columns: FloatArray) -> None:
        if len(columns) != agreement.settings.records:
            raise LocalProtocolError(
                f"a party must bring all {agreement.settings.records} aligned records; it brings {len(columns)}."
            )
        self.number = seat.number
        self._agreement = agreement
        self._columns = columns
        self._session = seat.session
        self._seed_holder = SeedHolder(
            number=seat.number,
            identity=seat.identity,
            directory=agreement.directory,
            agreement=agreement.digest,
            session=seat.session,
            entropy=seat.entropy,
        )
        self._entropy = seat.entropy
        self._private = Stream(seat.entropy.bytes(32))  # for errors, masks and floods; nobody else ever sees its key
        self._mail: Mail | None = None
        self._last_stage = -1
        self._posts: dict[tuple[int, int], bytes] = {}  # by stage and author, ours among them
        self._finished = False

    @property
    def finished(self) -> bool:
        """Whether this party has the result."""
        return self._finished

    def handle(self, request: Message) -> Message:
        """Answer one request; a request that breaks the protocol raises."""
        if isinstance(request, Turn):
            return self._take_turn(request)
        if isinstance(request, ExchangeKeys):
            return self._exchange_keys(request)
        return self._seed_holder.handle(request)

    def _exchange_keys(self, request: ExchangeKeys) -> Ready:
        seed = self._seed_holder.seed
        if seed is None or self._mail is not None or len(request.keys) != self._agreement.parties:
            raise RemoteProtocolError(
                "keys must be exchanged once, by all parties, after the seed was agreed on; got another order."
            )
        secrets = self._seed_holder.exchange_with_peers(request.keys)
        bound = self._agreement.bind(self._session)
        self._mail = Mail(number=self.number, session=bound, seed=seed, secrets=secrets)
        return Ready()

    def _take_turn(self, turn: Turn) -> Done:
        if self._mail is None:
            raise RemoteProtocolError("a turn must come after keys were exchanged; it does not.")
        stage = self._check_turn(turn)
        posts = self._mail.open_posts(turn)
        opened = Opened(
            stage=stage,
            number=turn.stage,
            members=turn.members,
            posts={place: raw for place, raw in sorted(posts.items()) if place not in self._posts},
            letters=self._mail.open_letters(turn),
        )
        kept = vars(self).copy()
        try:
            self._posts = {**self._posts, **opened.posts}
            said = self._act(opened)
        except RemoteProtocolError:
            vars(self).update(kept)
            raise
        if said.post is not None:
            self._posts = self._posts | {(turn.stage, self.number): said.post}
        self._last_stage = turn.stage
        return Done(
            None if said.post is None else self._mail.seal_post(said.post, turn.stage),
            tuple(self._mail.seal_letter(raw, turn.stage, to) for to, raw in sorted(said.letters.items())),
        )

    def _check_turn(self, turn: Turn) -> Stage:
        """Refuse a turn out of order; with a threshold a key holder may have missed some."""
        schedule = self._agreement.schedule
        if turn.stage >= len(schedule) or turn.stage <= self._last_stage:
            raise RemoteProtocolError(
                f"stages run from 0 to {len(schedule) - 1} and never back; got stage {turn.stage} after "
                f"{self._last_stage}."
            )
        may_miss = ("attend", "decrypt") if self._agreement.threshold is not None else ()
        skipped = [
            stage
            for stage in schedule[self._last_stage + 1 : turn.stage]
            if self.number in stage.members and stage.kind not in may_miss
        ]
        stage = schedule[turn.stage]
        named = set(turn.members)
        wanted = self._agreement.decryptors if stage.kind == "decrypt" else len(stage.members)
        fits = len(named) == len(turn.members) == wanted and named <= set(stage.members)
        if skipped or self.number not in named or not fits:
            raise RemoteProtocolError(
                f"stage {turn.stage} must be our turn, with those who take part in it and with none of ours left out "
                "before it; it is not."
            )
        self._check_boxes(turn)
        return stage

    def _check_boxes(self, turn: Turn) -> None:
        """Refuse boxes that no earlier stage provides for, and two of one place."""
        schedule = self._agreement.schedule
        posts = [(post.stage, post.author) for post in turn.posts]
        letters = [(letter.stage, letter.sender) for letter in turn.letters]
        if any(earlier >= turn.stage for earlier, _ in (*posts, *letters)):
            raise RemoteProtocolError(f"boxes must come from stages before {turn.stage}; some do not.")
        posted = all(schedule[at].posting and author in schedule[at].members for at, author in posts)
        written = all(self.number in schedule[at].readers_of(sender) for at, sender in letters)
        if not posted or not written or len({*posts}) < len(posts) or len({*letters}) < len(letters):
            raise RemoteProtocolError(
                "posts and letters must be those of the schedule, once each in a turn; some are not."
            )

    def _act(self, opened: Opened) -> Said:
        """Do what a stage asks for.

        What it refuses changes nothing: our attributes are put back. So they are replaced, never changed in place, and
        whatever cannot be put back (a draw, a charge, a step of the algorithm) comes after the last check.
        """
        raise NotImplementedError


def gather_columns(records: Records) -> FloatArray:
    """Return a party's columns of all aligned records, (n, d_h): every pass needs them all."""
    batches = list(records.batches())
    return np.concatenate(batches) if batches else np.empty((0, records.dimensions))
