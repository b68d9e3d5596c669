"""A party that talks to the others through a relay: opens the session, opens and seals its mail, keeps to the stages.

What it does in a stage is up to the class that builds on it: :class:`~.party.VerticalParty` for a clustering,
:mod:`cloister.protocols.vertical_labels` for labels.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from cloister.aggregation import SeedHolder
from cloister.aggregation.seed_agreement import Ready
from cloister.crypto import Entropy, Identity, Stream
from cloister.errors import LocalProtocolError, RemoteProtocolError
from cloister.protocols.vertical.agreement import VerticalAgreement
from cloister.protocols.vertical.mail import Mail
from cloister.protocols.vertical.messages import Done, Meet, Turn
from cloister.protocols.vertical.schedule import Stage
from cloister.records import FloatArray
from cloister.roles import Message


@dataclass(frozen=True, kw_only=True)
class Opened:
    """A turn's mail, opened: by stage and author, by stage and sender."""

    stage: Stage
    number: int
    members: tuple[int, ...]
    posts: Mapping[tuple[int, int], bytes]
    letters: Mapping[tuple[int, int], bytes]


@dataclass(frozen=True, kw_only=True)
class Said:
    """What a party has to say in its turn, before it is sealed."""

    post: bytes | None = None
    letters: Mapping[int, bytes] = field(default_factory=dict)


class RelayedParty:
    """One party of a session through a relay.

    Parameters
    ----------
    number
        This party's number, from 1.
    agreement
        The public parameters.
    columns
        (n, d_h): this party's columns of all aligned records, in [-1, 1]; they never leave this object.
    identity, entropy, session
        Who we are, where our keys come from, which session this is.
    """

    def __init__(
        self,
        *,
        number: int,
        agreement: VerticalAgreement,
        columns: FloatArray,
        identity: Identity,
        entropy: Entropy,
        session: bytes,
    ) -> None:
        if len(columns) != agreement.settings.records:
            raise LocalProtocolError(
                f"a party must bring all {agreement.settings.records} aligned records; it brings {len(columns)}."
            )
        self.number = number
        self._agreement = agreement
        self._columns = columns
        self._session = session
        self._seed_holder = SeedHolder(
            number=number,
            identity=identity,
            directory=agreement.directory,
            agreement=agreement.digest,
            session=session,
            entropy=entropy,
        )
        self._entropy = entropy
        self._private = Stream(entropy.bytes(32))  # errors, masks and floods: nobody else ever sees its key
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
        if isinstance(request, Meet):
            return self._meet(request)
        return self._seed_holder.handle(request)

    def _meet(self, request: Meet) -> Ready:
        seed = self._seed_holder.seed
        if seed is None or self._mail is not None or len(request.keys) != self._agreement.parties:
            raise RemoteProtocolError(
                "parties meet once, all of them, after the seed was agreed on; got another order."
            )
        secrets = self._seed_holder.exchange_with_peers(request.keys)
        self._mail = Mail(number=self.number, session=self._session, seed=seed, secrets=secrets)
        return Ready()

    def _take_turn(self, turn: Turn) -> Done:
        if self._mail is None:
            raise RemoteProtocolError("a turn must come after the parties have met; it does not.")
        stage = self._check_turn(turn)
        opened = Opened(
            stage=stage,
            number=turn.stage,
            members=turn.members,
            posts=self._mail.open_posts(turn),
            letters=self._mail.open_letters(turn),
        )
        said = self._act(opened)
        if said.post is not None:
            self._posts[turn.stage, self.number] = said.post
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
        if skipped or self.number not in stage.members or not set(turn.members) <= set(stage.members):
            raise RemoteProtocolError(
                f"stage {turn.stage} must be our turn, with none of ours left out before it; it is not."
            )
        stages = [*(post.stage for post in turn.posts), *(letter.stage for letter in turn.letters)]
        if any(earlier >= turn.stage for earlier in stages):
            raise RemoteProtocolError(f"boxes must come from stages before {turn.stage}; some do not.")
        return stage

    def _act(self, opened: Opened) -> Said:
        """Do what a stage asks for."""
        raise NotImplementedError
