"""The coordinator of SecFC: relays sealed shares, decodes distances, moves labels, and never holds a record.

::

    opening    the common seed and signed session keys (aggregation.seed_agreement), then MeetPeers: clients' counts
    sharing    ExchangeShares 0..C: chunk c of every client, with the previous chunk of all others; BeginRounds
    rounds     Measure → 2l + 2t - 1 responders, with the labels as changes; a silent one: another set, fresh pads
    the end    RevealSums → l + t clients, if agreed;  Finish → all

A client that is silent before rounds begin is out; its records stay in if it had shared all of them. From then on, any
n - (2l + 2t - 1) clients may be silent in any round, different ones each time: silent ones are asked last.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from cloister.aggregation import pack_members
from cloister.aggregation.seed_agreement import Ready, agree_on_seed_and_keys
from cloister.crypto import Entropy, Stream
from cloister.errors import ConfigError, TooFewPartiesError
from cloister.field import largest_distance
from cloister.privacy.release import NoiseDuty, release
from cloister.protocols.secfc import messages
from cloister.protocols.secfc.agreement import Coding, SecfcAgreement
from cloister.protocols.secfc.labels import Labels, Partition, draw_labels, write_news
from cloister.protocols.secfc.layout import Layout, expect_count, expect_distances, expect_shares, expect_sums
from cloister.records import IntArray
from cloister.roles import Ask, Check, Coordinator, Message, Replies, expect, require_members
from cloister.wire import Array

_Reply = TypeVar("_Reply", bound=Message)


@dataclass(frozen=True, kw_only=True, eq=False)
class Outcome:
    """What the coordinator knows when it is done.

    Attributes
    ----------
    labels, counts
        The cluster of every record, and the size of each cluster.
    converged
        Whether the assignments repeated; if not, ``rounds_max`` was reached.
    rounds, separated
        How many assignments were made, and whether the 1/3 rule changed the clusters once.
    loss
        The sum of squared distances to the centres measured last, of coordinates in [-1, 1].
    owners
        Whose records these are, and how many, in the order of the indices; with membership private, who shared any.
    coding
        How they were coded.
    responders, attempts
        For every labelling that was measured: who was decoded together last, and how many sets were asked.
    revealed
        Whether the clients got the centres.
    """

    labels: Labels = field(repr=False)
    counts: IntArray
    converged: bool
    rounds: int
    separated: bool
    loss: float
    owners: tuple[messages.Holding, ...]
    coding: Coding
    responders: tuple[tuple[int, ...], ...]
    attempts: tuple[int, ...]
    revealed: bool


def coordinate_secfc(
    agreement: SecfcAgreement, *, entropy: Entropy, session: bytes, duty: NoiseDuty | None = None
) -> Coordinator[Outcome]:
    """Run one session.

    Parameters
    ----------
    agreement, session
        What was agreed, and which session this is.
    entropy
        For the random assignment that it starts from, and for coding noise.
    duty
        The source of noise on revealed centres, where that was agreed.

    Raises
    ------
    TooFewPartiesError
        If fewer than 2l + 2t - 1 clients are left; with membership private, if one leaves before all have shared.
    ConfigError, DataError, PrecisionError
        If the clients together, or those that share, have fewer records than clusters, or more than was declared or
        any field holds.
    RemoteProtocolError
        If distances cannot be what they decode to: a client that follows the protocol cannot cause this.
    """
    if (duty is None) != (agreement.budget is None):
        raise ConfigError(
            "a coordinator must have a noise duty if and only if noise on the centres was agreed on; it has "
            f"{'none' if duty is None else 'one'}."
        )
    return _Session(agreement, entropy, session, duty).run()


class _Session:
    """One session: who holds shares, who was silent, and which labels each client has."""

    def __init__(self, agreement: SecfcAgreement, entropy: Entropy, session: bytes, duty: NoiseDuty | None) -> None:
        self._agreement = agreement
        self._duty = duty
        self._entropy = entropy
        self._session = session
        self._silences: dict[int, int] = {}  # of each client that holds shares of all records
        self._known: dict[int, tuple[int, Labels]] = {}  # the labels that each is known to have, with their version
        self._steps = agreement.count_steps()  # as if one chunk held all records, until their number is known
        self._responders: list[tuple[int, ...]] = []
        self._attempts: list[int] = []

    def run(self) -> Coordinator[Outcome]:
        layout, introduced = yield from self._share()
        agreement, coding = self._agreement, layout.coding
        first = draw_labels(layout.records, agreement.clusters, Stream(self._entropy.bytes(32)))
        partition = Partition(coding.field, first, agreement.clusters)
        version = rounds = 0
        separated, pending, moved = False, agreement.separate_after is not None, True
        while moved and rounds < agreement.rounds_max:
            version += 1
            yield from self._measure(partition, version, layout)
            if pending and rounds == agreement.separate_after:
                pending = False
                separated = partition.separate()
                if separated:
                    continue
            moved = partition.assign()
            rounds += 1
        sums = yield from self._finish(partition.labels, version + 1, layout, introduced)
        return Outcome(
            labels=partition.labels,
            counts=partition.counts,
            converged=not moved,
            rounds=rounds,
            separated=separated,
            loss=partition.sum_squares() * coding.fixed_point.resolution**2,
            owners=layout.owners,
            coding=coding,
            responders=tuple(self._responders),
            attempts=tuple(self._attempts),
            revealed=bool(sums),
        )

    # --- sharing --------------------------------------------------------------------------------------------------

    def _share(self) -> Coordinator[tuple[Layout, tuple[int, ...]]]:
        """Returns whose records are clustered, and who can be told the result."""
        agreement = self._agreement
        needed = agreement.parties if agreement.union else agreement.replies
        keys = yield from agree_on_seed_and_keys(
            agreement=agreement.digest,
            directory=agreement.directory,
            session=self._session,
            members_min=needed,
            steps=self._steps,
        )
        met = yield self._ask(
            "introducing the clients to each other",
            {key.owner: messages.MeetPeers(keys) for key in keys},
            expect_count(agreement),
        )
        owners = tuple(
            messages.Holding(party, reply.records) for party, reply in _of_kind(met, messages.HeldRecords).items()
        )
        require_members(len(owners), needed, agreement.parties)
        layout = Layout.settle(owners, agreement)
        self._steps = agreement.count_steps(layout.chunks)
        kept, present = yield from self._exchange(layout, needed)
        bitmap = pack_members(kept, agreement.parties)
        answers = yield self._ask("beginning", dict.fromkeys(present, messages.BeginRounds(bitmap)), expect(Ready))
        self._silences = dict.fromkeys(_of_kind(answers, Ready), 0)
        require_members(len(self._silences), agreement.replies, agreement.parties)
        return layout.keep(kept), tuple(owner.party for owner in owners)

    def _exchange(self, layout: Layout, needed: int) -> Coordinator[tuple[tuple[int, ...], tuple[int, ...]]]:
        """Relay all chunks; returns who gave all its shares, and who has all of theirs."""
        present = kept = tuple(owner.party for owner in layout.owners)
        sealed: Mapping[int, messages.SealedShares] = {}
        for chunk in range(layout.chunks + 1):
            requests = {
                party: messages.ExchangeShares(layout.owners, layout.digest, chunk, _boxes_for(party, sealed))
                for party in present
            }
            answers = yield self._ask(
                f"exchanging shares, {min(chunk + 1, layout.chunks)} of {layout.chunks}",
                requests,
                expect_shares(chunk, layout),
            )
            sealed = _of_kind(answers, messages.SealedShares)
            present = tuple(sealed)
            kept = tuple(party for party in kept if party in sealed or not layout.count_in(party, chunk))
            least = needed if chunk < layout.chunks else self._agreement.replies
            require_members(len(present), least, self._agreement.parties)
        return kept, present

    # --- rounds ---------------------------------------------------------------------------------------------------

    def _measure(self, partition: Partition, version: int, layout: Layout) -> Coordinator[None]:
        """Bring all columns up to date; as many at a time as fit a message."""
        agreement, coding, attempt, silent = self._agreement, layout.coding, 0, set[int]()
        responders: tuple[int, ...] = ()
        while columns := partition.stale[: coding.columns_most]:
            attempt += 1
            responders = self._choose(agreement.replies, silent)
            bitmap = pack_members(responders, agreement.parties)
            news = self._news(version, partition.labels, responders)
            answers = yield self._ask(
                f"round {version}, {len(columns)} of {agreement.clusters} centres",
                {party: messages.Measure(news[party], attempt, bitmap, columns) for party in responders},
                expect_distances(layout, len(columns)),
            )
            replies = _of_kind(answers, messages.Measured)
            self._note(version, partition.labels, responders, replies, silent)
            if len(replies) == len(responders):
                shape = (coding.field.residues, layout.records, len(columns))
                total = coding.field.add(reply.values.to_numpy(np.uint64, *shape) for reply in replies.values())
                largest = largest_distance(dimensions=agreement.dimensions, records=layout.records, bits=coding.bits)
                partition.take(columns, coding.field.decode_distances(total, largest=largest))
        self._responders.append(responders)
        self._attempts.append(attempt)

    def _choose(self, count: int, silent: set[int]) -> tuple[int, ...]:
        """Return ``count`` clients that have not been silent in this round; those that rarely were come first."""
        free = sorted(set(self._silences) - silent, key=lambda party: (self._silences[party], party))
        require_members(len(free), count, self._agreement.parties)
        return tuple(sorted(free[:count]))

    def _news(self, version: int, labels: Labels, parties: tuple[int, ...]) -> dict[int, messages.LabelNews]:
        """Return the labels for each client, as changes since what it is known to have; made once for each version."""
        made: dict[int, messages.LabelNews] = {}
        news = {}
        for party in parties:
            base, known = self._known.get(party, (0, None))
            if base not in made:
                made[base] = write_news(version, labels, self._agreement.clusters, base, known)
            news[party] = made[base]
        return news

    def _note(
        self,
        version: int,
        labels: Labels,
        asked: tuple[int, ...],
        replies: Mapping[int, Message],
        silent: set[int],
    ) -> None:
        """Remember who answered; what a silent client holds is no longer known."""
        for party in asked:
            if party in replies:
                self._known[party] = (version, labels)
            else:
                silent.add(party)
                self._silences[party] += 1
                self._known.pop(party, None)

    # --- the end --------------------------------------------------------------------------------------------------

    def _finish(
        self, labels: Labels, version: int, layout: Layout, introduced: tuple[int, ...]
    ) -> Coordinator[tuple[messages.AddressedBox, ...]]:
        """Have the sums revealed, if agreed, and distribute the labels; return what revealed the sums."""
        agreement = self._agreement
        sums: tuple[messages.AddressedBox, ...] = ()
        if agreement.reveal_centres:
            sums = yield from self._reveal(labels, version, layout.coding)
        owners = pack_members((owner.party for owner in layout.owners), agreement.parties)
        news = self._news(version, labels, introduced)
        yield self._ask(
            "distributing the result",
            {party: messages.Finish(owners, news[party], sums) for party in introduced},
            expect(Ready),
        )
        return sums

    def _reveal(self, labels: Labels, version: int, coding: Coding) -> Coordinator[tuple[messages.AddressedBox, ...]]:
        """Ask l + t clients for their shares of the sums, and others in place of those that are silent."""
        silent, holders = set[int](), self._agreement.holders
        boxes: dict[int, bytes] = {}
        noise = self._share_noise(coding)
        while len(boxes) < holders:
            try:
                asked = self._choose(holders - len(boxes), silent | boxes.keys())
            except TooFewPartiesError:
                return ()  # the labels are still available
            news = self._news(version, labels, asked)
            answers = yield self._ask(
                f"{holders} clients reveal the centres to the others",
                {
                    party: messages.RevealSums(news[party], None if noise is None else noise[party - 1])
                    for party in asked
                },
                expect_sums(coding),
            )
            replies = _of_kind(answers, messages.SumShares)
            self._note(version, labels, asked, replies, silent)
            boxes.update({party: reply.box for party, reply in replies.items()})
        return tuple(messages.AddressedBox(party, box) for party, box in sorted(boxes.items()))

    def _share_noise(self, coding: Coding) -> tuple[Array, ...] | None:
        """Draw the noise on the sums, once, and code it as records are; each client's share of it.

        Privacy
        -------
        As `SecfcAgreement.price_noise`; what up to t clients hold of the noise is independent of it.
        """
        agreement, event = self._agreement, coding.noise_event
        if event is None or self._duty is None:
            return None
        drawn = release(np.zeros((agreement.clusters, agreement.dimensions), dtype=np.int64), event, duty=self._duty)
        shares = coding.code.share(coding.field.encode(drawn), Stream(self._entropy.bytes(32)))
        return tuple(Array.of(share) for share in shares)

    def _ask(self, label: str, requests: Mapping[int, Message], check: Check) -> Ask:
        return Ask(label=label, requests=requests, check=check, steps=self._steps)


def _of_kind(answers: Replies, kind: type[_Reply]) -> dict[int, _Reply]:
    """Return the replies by party number, without silent parties."""
    return {party: reply for party, reply in sorted(answers.items()) if isinstance(reply, kind)}


def _boxes_for(holder: int, sealed: Mapping[int, messages.SealedShares]) -> tuple[messages.AddressedBox, ...]:
    """Return what the others sealed for one client, each with its sender."""
    return tuple(
        messages.AddressedBox(owner, sent.box)
        for owner, reply in sealed.items()
        for sent in reply.boxes
        if sent.party == holder
    )
