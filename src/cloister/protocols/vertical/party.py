"""What every party of a clustering does: make its codebook, read what is posted, keep the result."""

from __future__ import annotations

from collections.abc import Mapping

from cloister.errors import LocalProtocolError, RemoteProtocolError
from cloister.privacy.release import NoiseDuty
from cloister.protocols.vertical.agreement import VerticalAgreement
from cloister.protocols.vertical.algorithm import VerticalFinding
from cloister.protocols.vertical.codebook import Codebook, Codebooks
from cloister.protocols.vertical.codebook_makers import make_alice_codebook, make_holder_codebook
from cloister.protocols.vertical.contents import (
    Prepared,
    check_prepared,
    decode_prepared,
    encode,
    pack_codebook,
    unpack_codebook,
)
from cloister.protocols.vertical.relayed import Opened, RelayedParty, Said
from cloister.protocols.vertical.settings import ALICE
from cloister.records import FloatArray, IntArray
from cloister.roles import Seat


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
        self._codebooks: Codebooks | None = None
        self._totals: tuple[IntArray, ...] = ()
        self._found: VerticalFinding | None = None

    @property
    def finding(self) -> VerticalFinding:
        """The result, once the session has finished."""
        if not self._finished or self._found is None:
            raise LocalProtocolError("the session must be finished before anything is found; it is not.")
        return self._found

    @property
    def centres(self) -> FloatArray:
        """The centres, in [-1, 1]^d and the job's column order, once the session has finished."""
        return self.finding.centres

    @property
    def released_totals(self) -> tuple[IntArray, ...]:
        """The noisy numbers of each pass that this party has read."""
        return self._totals

    @property
    def codebooks(self) -> Codebooks:
        """All parties' codebooks; they come with our first turn after they were made."""
        if self._codebooks is None:
            raise LocalProtocolError("codebooks must have come before they are used; they have not.")
        return self._codebooks

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
        """Take what is new out of the posts. What all have prepared comes together, with our first turn after it."""
        schedule = self._agreement.schedule
        posted = {author: raw for (stage, author), raw in opened.posts.items() if schedule[stage].kind == "prepare"}
        if self._codebooks is None:
            if len(posted) != self._agreement.parties - 1:
                raise RemoteProtocolError("what all parties prepared must come before anything else; some is missing.")
            prepared = {author: decode_prepared(raw) for author, raw in posted.items()}
            for author, own in prepared.items():
                check_prepared(own, self._agreement, author)
            self._prepared = self._prepared | prepared
            self._codebooks = self._gather_codebooks(self._prepared)
        self._read_progress({n: raw for (n, author), raw in opened.posts.items() if self._is_progress(n, author)})

    def _is_progress(self, stage: int, author: int) -> bool:
        """Whether a post is the computing party's, with totals or with the result."""
        return author == self._agreement.computing and self._agreement.schedule[stage].kind in ("compute", "finish")

    def _read_progress(self, posts: Mapping[int, bytes]) -> None:
        """Read the totals and the result that the computing party posted, by stage."""

    def _gather_codebooks(self, prepared: Mapping[int, Prepared]) -> Codebooks:
        agreement = self._agreement

        def gather(party: int, place: int) -> Codebook:
            """One party's codebook: ours, or what it posted."""
            if party == self.number:
                assert self._own_codebook is not None
                return self._own_codebook
            posted = prepared[party].codebook
            assert posted is not None  # `check_prepared` has seen to it
            return unpack_codebook(posted, agreement.settings, place)

        holders = tuple(gather(party, place) for place, party in enumerate(agreement.encrypted))
        return Codebooks(alice=gather(agreement.computing, ALICE), holders=holders)
