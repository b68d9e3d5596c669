"""Parties of a secure sum without a network, and a coalition that pools every frame it ever saw."""

from __future__ import annotations

import hashlib
from functools import cache

import numpy as np

from cloister.aggregation import SumTerms, pack_members
from cloister.aggregation.common_masks import CommonMasks
from cloister.aggregation.double_masks import _VOTE, DoubleMasks
from cloister.aggregation.messages import Answered, Attempt, Opened, OpenTotal, PartyBox, Restored, RestoreMasks
from cloister.aggregation.own_masks import derive_mask_key
from cloister.aggregation.statements import Place, state_attempt
from cloister.crypto import Identity, SeededEntropy
from cloister.crypto.sealing import open_keyed, seal_keyed
from cloister.crypto.secret_sharing import SHARE_BYTES, combine_shares
from cloister.errors import RemoteProtocolError
from cloister.numeric import RING32
from cloister.roles import Seat
from tests.sessions import SESSION

SEED = bytes(range(32))
PLACE = Place(link=b"link", subject=b"what is asked")


@cache
def identity(number):
    return Identity(SeededEntropy(5, f"identity {number}"))


def pair_secret(one, other):
    return hashlib.sha256(bytes(sorted((one, other)))).digest()


def make_terms(parties, members_min, colluding_max=0, **options):
    directory = tuple(identity(number).public_bytes for number in range(1, parties + 1))
    return SumTerms(
        digest=b"job",
        directory=directory,
        ring=RING32,
        members_min=members_min,
        colluding_max=colluding_max,
        **options,
    )


def make_seat(number, seed=3):
    entropy = SeededEntropy(seed, f"party {number}")
    return Seat(number=number, identity=identity(number), entropy=entropy, session=SESSION)


def make_masks(terms, number, seed=3):
    seat = make_seat(number, seed)
    if not terms.double:
        return CommonMasks(seat=seat, terms=terms, seed=SEED)
    secrets = {other: pair_secret(number, other) for other in range(1, terms.parties + 1) if other != number}
    return DoubleMasks(seat=seat, terms=terms, seed=SEED, pair_secrets=secrets)


def vector_of(number):
    """Party l has 10^(l - 1): a digit of a sum says how often it is in it."""
    return np.array([10 ** (number - 1)], dtype=np.uint32)


class Coalition:
    """A coordinator that asks what it likes, and parties that tell it all they know; it keeps every frame.

    What it cannot compute it holds as unknowns: own masks that were neither opened nor restored, and pads between two
    honest parties under one statement. `find_readable` says which sums of honest vectors follow from what it holds.
    """

    def __init__(self, terms, colluders=(), seed=3):
        self.terms, self.colluders = terms, frozenset(colluders)
        self.honest = [number for number in range(1, terms.parties + 1) if number not in self.colluders]
        self.masks = {number: make_masks(terms, number, seed) for number in self.honest}
        self.answers: dict[tuple[int, Attempt], Answered] = {}
        self.opened: dict[tuple[int, Attempt], Opened] = {}
        self.shares: dict[tuple[int, Attempt], dict[int, bytes]] = {}
        self.true_keys: dict[tuple[int, Attempt], bytes] = {}

    # --- what it asks

    def attempt(self, number, members, round_=1):
        return Attempt(round_, number, pack_members(members, self.terms.parties))

    def ask(self, party, attempt, place=PLACE):
        """Ask for an answer; returns whether it came."""
        try:
            self.answers[party, attempt] = self.masks[party].answer(attempt, place, lambda: vector_of(party))
        except RemoteProtocolError:
            return False
        entered = self.masks[party]._entered
        self.true_keys[party, attempt] = derive_mask_key(entered.mask_secret, entered.statement)
        for dealt in self.answers[party, attempt].shares:
            if dealt.party in self.colluders:
                context = (SESSION, "mask share", attempt.round, attempt.number, attempt.members, party)
                share = open_keyed(dealt.box, pair_secret(party, dealt.party), *context)
                self.shares.setdefault((party, attempt), {})[dealt.party] = share
        return True

    def ask_to_open(self, party, attempt):
        try:
            self.opened[party, attempt] = self.masks[party].handle(OpenTotal(attempt, bytes(32)))
        except RemoteProtocolError:
            return False
        return True

    def ask_to_restore(self, party, attempt, silent):
        """Ask with all votes there are: those of honest parties, and one of each that colludes."""
        members = members_of(attempt, self.terms)
        boxes = {number: reply.vote for (number, of), reply in self.opened.items() if of == attempt}
        boxes |= {number: self.forge_vote(number, attempt) for number in self.colluders & {*members}}
        shares = tuple(
            PartyBox(owner, box.box)
            for owner in silent
            for box in self.answers[owner, attempt].shares
            if box.party == party
        )
        votes = tuple(PartyBox(number, boxes[number]) for number in sorted(boxes))
        asked = pack_members(silent, self.terms.parties)
        try:
            reply = self.masks[party].handle(RestoreMasks(attempt, asked, votes, shares))
        except RemoteProtocolError:
            return False
        assert isinstance(reply, Restored)
        context = (SESSION, "shares", attempt.round, attempt.number, attempt.members, party, asked)
        joined = open_keyed(reply.box, SEED, *context)
        for at, owner in enumerate(silent):
            share = joined[at * SHARE_BYTES : (at + 1) * SHARE_BYTES]
            self.shares.setdefault((owner, attempt), {})[party] = share
        return True

    def forge_vote(self, number, attempt):
        signature = identity(number).sign(_VOTE, SESSION, state_attempt(SESSION, PLACE, attempt))
        context = (SESSION, "vote", attempt.round, attempt.number, attempt.members, number, 0)
        return seal_keyed(signature, SEED, *context)

    # --- what it knows

    def knows_mask(self, party, attempt):
        """Whether it has the key of a party's mask: opened, or from a secret that enough shares of any attempt give."""
        if (party, attempt) in self.opened:
            return True
        statement = state_attempt(SESSION, PLACE, attempt)
        for (owner, _), shares in self.shares.items():
            if owner == party and len(shares) >= max(1, self.terms.restorers):
                some = dict(list(shares.items())[: max(1, self.terms.restorers)])
                if derive_mask_key(combine_shares(some), statement) == self.true_keys[party, attempt]:
                    return True
        return False

    def find_readable(self, own_masks=True):
        """The sums of honest vectors that it can read: for each a dictionary from (party, attempt) to a coefficient.

        A combination of answers is readable if all unknowns cancel in it.
        """
        rows = sorted(self.answers, key=lambda key: (key[1].round, key[1].number, key[1].members, key[0]))
        unknowns: dict[tuple, int] = {}
        entries = []
        for row, (party, attempt) in enumerate(rows):
            if own_masks and not self.knows_mask(party, attempt):
                entries.append((row, unknowns.setdefault(("own", party, attempt), len(unknowns)), 1))
            for other in members_of(attempt, self.terms):
                if other != party and other not in self.colluders:
                    pad = ("pad", *sorted((party, other)), attempt)
                    entries.append((row, unknowns.setdefault(pad, len(unknowns)), 1 if other > party else -1))
        matrix = np.zeros((len(rows), len(unknowns) + 1))
        for row, column, sign in entries:
            matrix[row, column] = sign
        left, values, _ = np.linalg.svd(matrix)
        rank = int((values > 1e-9).sum())
        return [dict(zip(rows, combination, strict=True)) for combination in left[:, rank:].T]


def members_of(attempt, terms):
    return [n for n in range(1, terms.parties + 1) if attempt.members[(n - 1) // 8] >> ((n - 1) % 8) & 1]
