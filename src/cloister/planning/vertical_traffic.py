"""Messages and bytes of a vertical session: the real relay, and parties whose boxes hold nothing but their own length.

How long a box is follows from public values alone, so the session is run with boxes of eight bytes that say how long
the real ones are. Order, addressees and envelopes are the session's own; only contents are computed here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from cloister.aggregation import SeedHolder
from cloister.aggregation.seed_agreement import Ready
from cloister.crypto import Identity, Stream
from cloister.crypto.sealing import TAG_BYTES
from cloister.lattice.coin_toss import TOSS_BYTES
from cloister.lattice.packing import count_bytes
from cloister.lattice.primes import PRIME_BITS
from cloister.planning.model import PartyBytes
from cloister.protocols.synopsis.box import Box
from cloister.protocols.vertical.agreement import VerticalAgreement
from cloister.protocols.vertical.codebook import Codebook, grid_codebook
from cloister.protocols.vertical.coordinator import coordinate_vertical
from cloister.protocols.vertical.messages import CODEC, Done, Letter, Meet, Turn
from cloister.protocols.vertical.parcels import KeysParcel, Prepared, encode, pack_codebook, pack_share
from cloister.protocols.vertical.party import DIGEST_BYTES
from cloister.protocols.vertical.public_keys import SEED_BYTES
from cloister.protocols.vertical.schedule import Stage
from cloister.protocols.vertical.settings import ALICE, Settings
from cloister.roles import Message
from cloister.runtime import run_local
from cloister.wire.codec import SESSION_BYTES

_COMMITMENT_BYTES = 32
_LENGTH_BYTES = 8
_TOTAL_BITS = 64
_BYTE, _SHORT = 2**8, 2**16


def forecast_vertical(agreement: VerticalAgreement) -> tuple[PartyBytes, ...]:
    """Return what each party sends and receives if nobody drops out, in the order of their numbers.

    It is what a run counts, to the last byte, where all codebooks are grids without residuals. After a private k-means
    the joint histogram may have a few numbers less; a residual's radius takes a byte or two less where it is small.
    """
    stream = Stream.from_seed(0, "traffic of a vertical session")
    numbers = range(1, agreement.parties + 1)
    identities = [Identity(stream.child("identity", number)) for number in numbers]
    agreement = replace(agreement, directory=tuple(identity.public_bytes for identity in identities))
    session = bytes(SESSION_BYTES)
    contents = Contents(agreement)
    parties = [
        _Dummy(
            contents,
            number,
            SeedHolder(
                number=number,
                identity=identity,
                directory=agreement.directory,
                agreement=agreement.digest,
                session=session,
                entropy=stream.child("party", number),
            ),
        )
        for number, identity in zip(numbers, identities, strict=True)
    ]
    run = run_local(coordinate_vertical(agreement, session=session), parties, codec=CODEC, session=session, threads=1)
    return tuple(
        PartyBytes(
            bytes_up=run.traffic[party.number].bytes_sent + party.more_up,
            bytes_down=run.traffic[party.number].bytes_received + party.more_down,
            messages_up=run.traffic[party.number].messages_sent,
            messages_down=run.traffic[party.number].messages_received,
        )
        for party in parties
    )


class _Dummy:
    """A party that says how long its boxes would be, and counts what they would have added to its messages."""

    def __init__(self, contents: Contents, number: int, seed_holder: SeedHolder) -> None:
        self.number = number
        self.more_up = self.more_down = 0
        self._contents = contents
        self._seed_holder = seed_holder

    def handle(self, request: Message) -> Message:
        """Answer with lengths."""
        if isinstance(request, Meet):
            return Ready()
        if not isinstance(request, Turn):
            return self._seed_holder.handle(request)
        self.more_down += _count_more([post.box for post in request.posts])
        self.more_down += _count_more([letter.box for letter in request.letters])
        said = self._contents.of(self.number, request.stage)
        post = None if said.post is None else _write_length(said.post)
        letters = tuple(
            Letter(self.number, recipient, request.stage, _write_length(said.letter)) for recipient in said.recipients
        )
        self.more_up += _count_more([*([] if post is None else [post]), *(letter.box for letter in letters)])
        return Done(post, letters)


def _write_length(content: int) -> bytes:
    """A box that says how long the real one is, its tag included."""
    return (content + TAG_BYTES).to_bytes(_LENGTH_BYTES, "big")


def _count_more(boxes: Iterable[bytes]) -> int:
    """By how many bytes the real boxes are longer, with what MessagePack writes before them."""
    lengths = [int.from_bytes(box, "big") for box in boxes]
    return sum(length + _count_header(length) - _LENGTH_BYTES - _count_header(_LENGTH_BYTES) for length in lengths)


def _count_header(length: int) -> int:
    """MessagePack's bin 8, bin 16 and bin 32: a byte, and the length in one, two or four."""
    return 2 if length < _BYTE else 3 if length < _SHORT else 5


@dataclass(frozen=True, kw_only=True)
class _Lengths:
    """What a party has to say in its turn, in bytes before it is sealed; every recipient gets as much."""

    post: int | None = None
    letter: int = 0
    recipients: tuple[int, ...] = ()


class Contents:
    """How long everything is that parties tell each other.

    Parameters
    ----------
    agreement
        The public parameters.
    """

    def __init__(self, agreement: VerticalAgreement) -> None:
        self._agreement = agreement
        settings = agreement.settings
        first = (count_histogram(settings),) if settings.start == "synopsis" else ()
        self._numbers = (*first, *[settings.clusters * (settings.dimensions + 1)] * settings.rounds_made)

    @property
    def numbers(self) -> tuple[int, ...]:
        """How many numbers each pass asks for."""
        return self._numbers

    def of(self, party: int, stage_number: int) -> _Lengths:
        """Return what one party says in one stage."""
        stage = self._agreement.schedule[stage_number]
        counts: dict[str, Callable[[int, Stage], _Lengths]] = {
            "prepare": lambda party, _: _Lengths(post=self._count_prepared(party)),
            "reveal": lambda *_: _Lengths(post=TOSS_BYTES),
            "keys": lambda party, _: self._count_keys(party),
            "relinearise": lambda *_: _Lengths(post=2 * self._count_key_residues(squared=True)),
            "combine": lambda *_: _Lengths(post=2 * self._count_key_residues(squared=True)),
            "upload": self._count_cells,
            "compute": lambda _, stage: self._count_answer(stage),
            "decrypt": lambda _, stage: self._count_decryption(stage),
            "finish": lambda *_: _Lengths(post=self._count_totals(len(self._numbers) - 1)),
        }
        count = counts.get(stage.kind)
        return _Lengths() if count is None else count(party, stage)

    def count_upload(self, party: int, upload: int) -> int:
        """Return the bytes of one message of encrypted cells."""
        agreement = self._agreement
        if agreement.plan is None:
            residues, halves = agreement.bodies * len(agreement.parameters.primes), 1 if agreement.is_seeded else 2
        else:
            holder = agreement.encrypted.index(party)
            residues, halves = agreement.plan.load.cells[holder] * agreement.plan.holder_level(holder), 2
        block = halves * count_bytes(residues * agreement.block_records, PRIME_BITS)
        return block * len(agreement.blocks_of(upload))

    def _count_cells(self, party: int, stage: Stage) -> _Lengths:
        if party not in self._agreement.encrypted:
            return _Lengths()
        return _Lengths(letter=self.count_upload(party, stage.index), recipients=(self._agreement.computing,))

    def _count_prepared(self, party: int) -> int:
        """A codebook of zeros and a commitment."""
        agreement = self._agreement
        commits = agreement.is_collective and party in agreement.key_holders
        parcel = None
        if party == agreement.computing or party in agreement.encrypted:
            maker = ALICE if party == agreement.computing else agreement.encrypted.index(party)
            parcel = pack_codebook(imagine_codebook(agreement.settings, maker))
        return len(encode(Prepared(parcel, bytes(_COMMITMENT_BYTES) if commits else None)))

    def _count_keys(self, party: int) -> _Lengths:
        agreement = self._agreement
        one = self._count_key_residues()
        if not agreement.is_collective:
            product_key = bytes(self._count_key_residues(squared=True)) if agreement.is_joint else None
            return _Lengths(post=len(encode(KeysParcel(bytes(SEED_BYTES), bytes(one), product_key))))
        others = tuple(holder for holder in agreement.key_holders if holder != party)
        return _Lengths(
            post=len(encode(KeysParcel(None, bytes(one)))),
            letter=one,
            recipients=() if agreement.threshold is None else others,
        )

    def _count_key_residues(self, *, squared: bool = False) -> int:
        """One polynomial modulo q, or one for each prime."""
        parameters = self._agreement.key_parameters
        count = len(parameters.primes)
        return count_bytes(count * parameters.degree * (count if squared else 1), PRIME_BITS)

    def _count_answer(self, stage: Stage) -> _Lengths:
        """The answer, with a digest of its question, to all who hold keys; the totals of the last pass, to everyone."""
        agreement, parameters, numbers = self._agreement, self._agreement.parameters, self._numbers[stage.index]
        bits, words = PRIME_BITS, numbers * len(parameters.primes)
        if not agreement.is_collective:
            bits, words = agreement.switch_bits, numbers
        return _Lengths(
            post=self._count_totals(stage.index - 1),
            letter=DIGEST_BYTES + count_bytes(words * parameters.degree, bits) + count_bytes(words, bits),
            recipients=agreement.key_holders,
        )

    def _count_decryption(self, stage: Stage) -> _Lengths:
        agreement, numbers = self._agreement, self._numbers[stage.index]
        letter = count_bytes(numbers, _TOTAL_BITS)
        if agreement.is_collective:
            share = np.zeros((numbers, len(agreement.parameters.primes)), dtype=np.uint32)
            letter = len(pack_share(share, agreement.parameters, agreement.key_holders[: agreement.decryptors]))
        return _Lengths(letter=letter, recipients=(agreement.computing,))

    def _count_totals(self, index: int) -> int | None:
        """The totals of a pass; None before the first."""
        return None if index < 0 else count_bytes(self._numbers[index], _TOTAL_BITS)


def imagine_codebook(settings: Settings, party: int) -> Codebook:
    """Return a codebook of one party as large as the real one; ``party`` is a holder's number, or ``ALICE``."""
    if party == ALICE:
        columns = len(settings.columns_alice) if ALICE in settings.codebook_makers else 0
        cells, residuals = settings.alice_cells if settings.start == "synopsis" else 1, False
    else:
        columns, cells = len(settings.columns_encrypted[party]), settings.cells_of(party)
        residuals = settings.has_residuals
    if settings.is_grid(party) or not columns:
        box = Box(low=np.full(columns, -1.0), high=np.full(columns, 1.0))
        return grid_codebook(settings, box, cells=cells, residuals=residuals)
    radius = None if settings.is_exact else settings.residual_most
    return Codebook(
        reps=np.zeros((cells, columns)),
        units=settings.units,
        residual_radius=radius if residuals else 0,
        variance=0.0,
        weights=np.ones(cells),
    )


def count_histogram(settings: Settings) -> int:
    """Return how many numbers the joint histogram has at most."""
    groups = prod(prod(settings.groups_of(holder)) for holder in range(len(settings.columns_encrypted)))
    return imagine_codebook(settings, ALICE).cells * groups
