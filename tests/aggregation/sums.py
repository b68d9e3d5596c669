"""Parties of a secure sum without a network, and a coalition that pools every frame it ever saw."""

from __future__ import annotations

import hashlib
from copy import copy
from dataclasses import replace
from functools import cache

import numpy as np

from cloister.aggregation import SumTerms, pack_members
from cloister.aggregation.common_masks import CommonMasks
from cloister.aggregation.double_masks import _VOTE, DoubleMasks
from cloister.aggregation.messages import Attempt, Opened, OpenTotal, PartyBox, RestoreMasks
from cloister.aggregation.own_masks import derive_mask_key, expand_mask
from cloister.aggregation.statements import Place, state_attempt
from cloister.crypto import Identity, SeededEntropy, Stream
from cloister.crypto.sealing import open_keyed, seal_keyed
from cloister.crypto.secret_sharing import SHARE_BYTES, combine_shares
from cloister.errors import RemoteProtocolError
from cloister.numeric import RING32
from cloister.roles import Seat

SEED, SESSION = bytes(range(32)), bytes(range(16))
PLACE = Place(link=b"link", subject=b"what is asked")
ELSEWHERE = Place(link=b"another link", subject=b"what is asked")


@cache
def identity(number):
    return Identity(SeededEntropy(5, f"identity {number}"))


def pair_secret(one, other):
    return hashlib.sha256(bytes(sorted((one, other)))).digest()


def make_terms(parties, members_min, colluding_max=0, **options):
    directory = tuple(identity(number).public_bytes for number in range(1, parties + 1))
    return SumTerms(
        **{"digest": b"job", "ring": RING32, "directory": directory} | options,
        members_min=members_min,
        colluding_max=colluding_max,
    )


class CopiedEntropy:
    """Seeded bytes whose copies go on alike, each on its own."""

    is_simulation = True

    def __init__(self, label):
        self.label, self.drawn = label, 0

    def bytes(self, count):
        self.drawn += 1
        return Stream.from_seed(3, self.label, self.drawn).bytes(count)


def make_seat(number, session=SESSION):
    return Seat(number=number, identity=identity(number), entropy=CopiedEntropy(f"party {number}"), session=session)


def make_masks(terms, number, seat=None):
    seat = seat or make_seat(number)
    if not terms.double:
        return CommonMasks(seat=seat, terms=terms, seed=SEED)
    secrets = {other: pair_secret(number, other) for other in range(1, terms.parties + 1) if other != number}
    return DoubleMasks(seat=seat, terms=terms, seed=SEED, pair_secrets=secrets)


def vector_of(number):
    """Party l has 10^(l - 1): a digit of a sum says how often it is in it."""
    return np.array([10 ** (number - 1)], dtype=np.uint32)


def members_of(attempt, terms):
    return [n for n in range(1, terms.parties + 1) if attempt.members[(n - 1) // 8] >> ((n - 1) % 8) & 1]


# --- parties that are asked once --------------------------------------------------------------------------------------


class State:
    """A real party after some requests. What follows from a request is computed once and kept."""

    def __init__(self, masks, reply=None):
        self.masks, self.reply = masks, reply
        self._next: dict[object, State | None] = {}

    def after(self, request, place=PLACE):
        """Return its state after a request (`Attempt`: to answer it), or None where it refuses.

        A party that refuses must be left as it was.
        """
        key = (request, place)
        if key not in self._next:
            masks = copy(self.masks)
            masks._seat = replace(masks._seat, entropy=copy(masks._seat.entropy))
            try:
                reply = self._ask(masks, request, place)
            except RemoteProtocolError:
                assert vars(masks) | {"_seat": None} == vars(self.masks) | {"_seat": None}
                assert masks._seat.entropy.drawn == self.masks._seat.entropy.drawn
                self._next[key] = None
            else:
                self._next[key] = State(masks, reply)
        return self._next[key]

    @staticmethod
    def _ask(masks, request, place):
        if isinstance(request, Attempt):
            return masks.answer(request, place, lambda: vector_of(masks._seat.number))
        return masks.handle(request)


class Frame:
    """An answer, and what hides the vector in it: the real keys and keystreams, by which unknowns are told apart."""

    def __init__(self, masks, reply):
        entered, number = masks._entered, masks._seat.number
        self.reply, self.statement, self.secret = reply, entered.statement, entered.mask_secret
        self.members = entered.members
        self.mask_key = derive_mask_key(self.secret, self.statement)
        self.hidden = bool(expand_mask(self.mask_key, 2, RING32).any())
        self.pads = {
            other: (masks._pads._keystream(other, 2, self.statement).tobytes(), 1 if other > number else -1)
            for other in self.members
            if other != number
        }


class Parties:
    """The parties of one kind of session before anything was asked, with all that was computed of what follows."""

    def __init__(self, terms):
        self.terms = terms
        self.started = {number: State(make_masks(terms, number)) for number in range(1, terms.parties + 1)}

        self._made: dict[tuple, object] = {}

    def frame_of(self, state):
        return self._once(("frame", id(state)), lambda: Frame(state.masks, state.reply))  # states are kept

    # What parties tell that know the seed and their own secrets, whatever they were asked.

    def open_box(self, box, *context):
        insider = self.started[1].masks
        return self._once((box, *context), lambda: open_keyed(box, SEED, *insider.context(*context)))

    def open_share(self, holder, box, attempt):
        return self._once((holder, box, attempt), lambda: self.started[holder].masks._shares.open(box, attempt))

    def forge_vote(self, number, attempt, place):
        return self._once((number, attempt, place), lambda: self._forge_vote(number, attempt, place))

    def _forge_vote(self, number, attempt, place):
        signature = identity(number).sign(_VOTE, state_attempt(SESSION, place, attempt))
        return seal_keyed(signature, SEED, *self.started[number].masks.context("vote", attempt, number))

    def _once(self, key, make):
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]


# --- the coalition ----------------------------------------------------------------------------------------------------


class Coalition:
    """A coordinator that asks what it likes, and parties that tell it all they know; it keeps every frame.

    What it cannot compute it holds as unknowns: own masks that were neither opened nor restored, and pads between two
    honest parties. `find_readable` says which sums of honest vectors follow from what it holds.

    Parameters
    ----------
    places
        Parties that stand elsewhere than the others: they were told other totals, or asked something else.
    """

    def __init__(self, terms, colluders=(), parties=None, places=None):
        self.terms, self.colluders = terms, frozenset(colluders)
        self.honest = [number for number in range(1, terms.parties + 1) if number not in self.colluders]
        self._parties = parties or Parties(terms)
        self.states = dict(self._parties.started)
        self._places, self._place = places or {}, PLACE
        self.frames: dict[tuple[int, Attempt], Frame] = {}
        self.opened: dict[tuple[int, Attempt], Opened] = {}
        self.keys: set[bytes] = set()
        self.shares: dict[tuple[int, Attempt], dict[int, bytes]] = {}

    @property
    def masks(self):
        return {number: state.masks for number, state in self.states.items()}

    @property
    def answers(self):
        return {key: frame.reply for key, frame in self.frames.items()}

    # --- what it asks

    def attempt(self, number, members, round_=1):
        return Attempt(round_, number, pack_members(members, self.terms.parties))

    def place_of(self, party):
        return self._places.get(party, self._place)

    def stand_at(self, place):
        """Have all parties go on from somewhere."""
        self._places, self._place = {}, place

    def copy(self):
        """Return a coalition that goes on from here on its own."""
        other = copy(self)
        other.states, other.frames, other.opened = self.states.copy(), self.frames.copy(), self.opened.copy()
        other.keys, other.shares = self.keys.copy(), {key: shares.copy() for key, shares in self.shares.items()}
        return other

    def tell(self, party, request):
        """Send a request; returns the reply, or None if the party refuses."""
        state = self.states[party].after(request, self.place_of(party))
        if state is None:
            return None
        self.states[party] = state
        reply = state.reply
        if isinstance(request, Attempt):
            self._keep_answer(party, request, state)
        elif isinstance(request, OpenTotal):
            self._keep_opening(party, request, reply)
        else:
            self._keep_shares(party, request, reply)
        return reply

    def ask(self, party, attempt):
        return self.tell(party, attempt) is not None

    def ask_to_open(self, party, attempt):
        return self.tell(party, OpenTotal(attempt, bytes(32))) is not None

    def ask_to_restore(self, party, attempt, silent):
        """Ask with all votes that can fit: those of honest parties at the same place, and one of each that colludes."""
        place = self.place_of(party)
        boxes = {
            number: reply.vote
            for (number, of), reply in self.opened.items()
            if of == attempt and self.place_of(number) == place
        }
        forgers = self.colluders & {*members_of(attempt, self.terms)}
        boxes |= {number: self._parties.forge_vote(number, attempt, place) for number in forgers}
        shares = tuple(
            PartyBox(owner, box.box)
            for owner in silent
            for box in self.frames[owner, attempt].reply.shares
            if box.party == party
        )
        votes = tuple(PartyBox(number, boxes[number]) for number in sorted(boxes))
        request = RestoreMasks(attempt, pack_members(silent, self.terms.parties), votes, shares)
        return self.tell(party, request) is not None

    # --- what it keeps

    def _keep_answer(self, party, attempt, state):
        self.frames[party, attempt] = self._parties.frame_of(state)
        for dealt in state.reply.shares:
            if dealt.party in self.colluders:
                share = self._parties.open_share(dealt.party, PartyBox(party, dealt.box), attempt)
                self.shares.setdefault((party, attempt), {})[dealt.party] = share

    def _keep_opening(self, party, request, reply):
        self.opened[party, request.attempt] = reply
        self.keys.add(self._parties.open_box(reply.box, "opening", request.attempt, party, request.digest))

    def _keep_shares(self, party, request, reply):
        joined = self._parties.open_box(reply.box, "shares", request.attempt, party, request.silent)
        for at, share in enumerate(request.shares):
            cut = joined[at * SHARE_BYTES : (at + 1) * SHARE_BYTES]
            self.shares.setdefault((share.party, request.attempt), {})[party] = cut

    # --- what it knows

    def find_secrets(self):
        """The secrets that the shares it has give, each of the attempt of any round."""
        needed = max(1, self.terms.restorers)
        return {combine(tuple(sorted(s.items())[:needed])) for s in self.shares.values() if len(s) >= needed}

    def find_readable(self):
        """The sums of honest vectors that it can read: for each a dictionary from (party, attempt) to a coefficient.

        A combination of answers is readable if all unknowns cancel in it.
        """
        secrets = self.find_secrets()
        rows = {}
        for (party, attempt), frame in self.frames.items():
            if party in self.colluders:
                continue
            row = {pad: sign for other, (pad, sign) in frame.pads.items() if other not in self.colluders}
            if frame.hidden and frame.mask_key not in self.keys and frame.secret not in secrets:
                row[frame.mask_key] = 1
            rows[party, attempt] = row
        return combine_to_zero(rows)


@cache
def combine(shares):
    return combine_shares(dict(shares))


PRIME = 2**31 - 1


def combine_to_zero(rows):
    """A basis of the combinations of rows in which every unknown cancels; rows are dictionaries of coefficients."""
    left = {key: dict(row) for key, row in rows.items()}
    holders: dict[object, set] = {}
    for key, row in left.items():
        for unknown in row:
            holders.setdefault(unknown, set()).add(key)
    alone = [unknown for unknown, keys in holders.items() if len(keys) == 1]
    while alone:  # a row with an unknown of its own is in no combination
        for key in holders[alone.pop()]:
            for unknown in left.pop(key):
                holders[unknown] = holders[unknown] - {key}
                if len(holders[unknown]) == 1:
                    alone.append(unknown)
    return _eliminate(left)


def _eliminate(rows):
    """Gauss's elimination modulo a prime, each row with its own combination behind it."""
    pivots: list[tuple[object, dict, dict]] = []
    found = []
    for key, row in rows.items():
        value, combination = dict(row), {key: 1}
        for unknown, pivot, made_of in pivots:
            factor = -value.get(unknown, 0) % PRIME
            if factor:
                _add(value, pivot, factor)
                _add(combination, made_of, factor)
        if value:
            unknown = next(iter(value))
            inverse = pow(value[unknown], -1, PRIME)
            pivots.append((unknown, _scale(value, inverse), _scale(combination, inverse)))
        else:
            found.append(combination)
    return found


def _add(to, what, factor):
    for key, value in what.items():
        to[key] = (to.get(key, 0) + factor * value) % PRIME
        if not to[key]:
            del to[key]


def _scale(row, factor):
    return {key: value * factor % PRIME for key, value in row.items()}
