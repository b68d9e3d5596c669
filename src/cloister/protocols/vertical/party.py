"""What every party of a clustering does: make its codebook, read posts, follow the algorithm on totals."""

from __future__ import annotations

import hashlib

import numpy as np

from cloister.crypto import Stream, derive_key
from cloister.errors import DivergedError, LocalProtocolError, RemoteProtocolError
from cloister.privacy.release import NoiseDuty
from cloister.protocols.vertical.agreement import VerticalAgreement
from cloister.protocols.vertical.algorithm import VerticalFinding, run_vertical
from cloister.protocols.vertical.codebook import Codebook, Codebooks
from cloister.protocols.vertical.codebook_makers import make_alice_codebook, make_holder_codebook
from cloister.protocols.vertical.contents import (
    Prepared,
    decode_prepared,
    encode,
    pack_codebook,
    unpack_codebook,
    unpack_totals,
)
from cloister.protocols.vertical.query import Query
from cloister.protocols.vertical.relayed import Opened, RelayedParty, Said
from cloister.protocols.vertical.settings import ALICE
from cloister.records import FloatArray, IntArray
from cloister.roles import Seat

DIGEST_BYTES = 16


class VerticalParty(RelayedParty):
    """One party; :class:`~.computing.ComputingParty` and :class:`~.holder.HolderParty` say what is done in each stage.

    Parameters
    ----------
    seat, agreement, columns
        As :class:`~.relayed.RelayedParty`.
    duty
        This party's own books and source of noise; None in an exact session.
    """

    def __init__(
        self, seat: Seat, agreement: VerticalAgreement, columns: FloatArray, *, duty: NoiseDuty | None = None
    ) -> None:
        super().__init__(seat, agreement, columns)
        if (duty is None) != self._agreement.settings.is_exact:
            raise LocalProtocolError("a party must have books if and only if there is a budget; it differs.")
        self._duty = duty
        self._own_codebook: Codebook | None = None
        self._prepared: dict[int, Prepared] = {}
        self._follower: Follower | None = None

    @property
    def finding(self) -> VerticalFinding:
        """The result, once the session has finished."""
        if not self._finished or self._follower is None or self._follower.finding is None:
            raise LocalProtocolError("the session must be finished before anything is found; it is not.")
        return self._follower.finding

    @property
    def centres(self) -> FloatArray:
        """The centres, in [-1, 1]^d and the job's column order, once the session has finished."""
        return self.finding.centres

    @property
    def released_totals(self) -> tuple[IntArray, ...]:
        """The noisy numbers of each pass that this party has read."""
        return () if self._follower is None else tuple(self._follower.totals)

    @property
    def codebooks(self) -> Codebooks:
        """All parties' codebooks."""
        if self._follower is None:
            raise RemoteProtocolError("codebooks must have come before they are used; they have not.")
        return self._follower.codebooks

    def _act(self, opened: Opened) -> Said:
        """Do what a stage asks for."""
        if opened.stage.kind == "prepare":
            return self._prepare()
        self._read_posts(opened)
        return self._do(opened)

    def _do(self, opened: Opened) -> Said:
        """Do what a stage asks of this kind of party."""
        raise NotImplementedError

    # Codebooks.

    def _prepare(self) -> Said:
        """Make our codebook; where records are read for it, it is charged first."""
        agreement = self._agreement
        stream = self._private.child("codebook")
        if self.number == agreement.computing:
            own = make_alice_codebook(agreement.settings, self._columns, duty=self._duty, stream=stream)
        elif self.number in agreement.encrypted:
            place = agreement.encrypted.index(self.number)
            own = make_holder_codebook(agreement.settings, place, self._columns, duty=self._duty, stream=stream)
        else:
            own = None
        prepared = Prepared(None if own is None else pack_codebook(own), self._commit())
        self._own_codebook = own
        self._prepared = {self.number: prepared}
        return Said(post=encode(prepared))

    def _commit(self) -> bytes | None:
        """A commitment to coins, where a party tosses them."""
        return None

    def _read_posts(self, opened: Opened) -> None:
        """Take codebooks and totals out of the posts, and keep the rest.

        Posts that we already have are skipped: the relay repeats them until it knows that we have them.
        """
        fresh = {place: raw for place, raw in opened.posts.items() if place not in self._posts}
        self._posts.update(fresh)
        for (stage, author), raw in sorted(fresh.items()):
            kind = self._agreement.schedule[stage].kind
            if kind == "prepare":
                self._prepared[author] = decode_prepared(raw)
                self._start_following()
            elif kind in ("compute", "finish") and author == self._agreement.computing:
                self._follow(raw)

    def _start_following(self) -> None:
        """Begin the algorithm once everyone's codebook is here."""
        if len(self._prepared) == self._agreement.parties:
            seed = self._seed_holder.seed
            assert seed is not None
            stream = Stream(derive_key(seed, "vertical stream", self._session))
            self._follower = Follower(self._agreement, self._gather_codebooks(), stream)

    def _gather_codebooks(self) -> Codebooks:
        agreement = self._agreement
        holders = tuple(self._gather(party, place) for place, party in enumerate(agreement.encrypted))
        return Codebooks(alice=self._gather(agreement.computing, ALICE), holders=holders)

    def _gather(self, party: int, place: int) -> Codebook:
        """One party's codebook: ours, or what it posted."""
        if party == self.number:
            assert self._own_codebook is not None
            return self._own_codebook
        posted = self._prepared[party].codebook
        if posted is None:
            raise RemoteProtocolError(f"party {party} must post its codebook; it did not.")
        return unpack_codebook(posted, self._agreement.settings, place)

    # The algorithm.

    def _follow(self, raw: bytes) -> None:
        """Read the totals of the pass that we know of last."""
        follower = self._require_follower()
        most = self._agreement.parameters.plaintext_modulus
        follower.follow(unpack_totals(raw, length=follower.query.length, most=most))

    def _require_follower(self) -> Follower:
        if self._follower is None:
            raise RemoteProtocolError("every party must have prepared before this stage; not all have.")
        return self._follower


class Follower:
    """The algorithm as one party runs it, on totals that all parties have in common.

    Parameters
    ----------
    agreement
        The public parameters.
    codebooks
        All parties'.
    stream
        Common to all parties.
    """

    def __init__(self, agreement: VerticalAgreement, codebooks: Codebooks, stream: Stream) -> None:
        self._agreement = agreement
        self.codebooks = codebooks
        self._asking = run_vertical(agreement.settings, codebooks, stream)
        self._query: Query | None = next(self._asking)
        self.totals: list[IntArray] = []
        self.finding: VerticalFinding | None = None
        self._check_name()

    @property
    def query(self) -> Query:
        """What to add up next."""
        if self._query is None:
            raise RemoteProtocolError("no totals must come after the last pass; some did.")
        return self._query

    @property
    def digest(self) -> bytes:
        """The digest of the next query: parties that derive a different one from the same totals notice it."""
        content = self.codebooks.to_bytes() + self.query.to_bytes()
        return hashlib.blake2b(content, digest_size=DIGEST_BYTES).digest()

    def follow(self, total: IntArray) -> None:
        """Take the next totals."""
        self.totals.append(np.array(total, dtype=np.int64))
        try:
            self._query = self._asking.send(self.totals[-1])
        except StopIteration as stop:
            self._query, self.finding = None, stop.value
        self._check_name()

    def _check_name(self) -> None:
        """Check that the algorithm follows the agreed passes, which are public."""
        names, done = self._agreement.queries, len(self.totals)
        expected = names[done] if done < len(names) else None
        if expected != (None if self._query is None else self._query.name):
            raise LocalProtocolError(f"pass {done + 1} must be {expected}; it is another: this is a bug.")


def raise_diverged() -> None:
    """Stop because parties derived different queries from the same totals."""
    raise DivergedError(
        "all parties must derive the same query from the same totals; they did not. What was released has been paid "
        "for; there is no result. Run the same version of Cloister and of its numeric libraries on the same kind of "
        "processor everywhere."
    )
