"""The traffic of a vertical session, counted with a hollow one: real relay, seals and stages, but boxes of zeros."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np

from cloister.crypto import Identity, Stream
from cloister.forecast.model import PartyBytes
from cloister.forecast.traffic import HOLLOW_SESSION, HollowSession, extend, measure
from cloister.lattice.collective import TOSS_BYTES, RoundShare
from cloister.lattice.lwe import LweBatch, SmallLweBatch
from cloister.lattice.ntt import Residues
from cloister.lattice.packing import pack_residues
from cloister.protocols.vertical.agreement import VerticalAgreement
from cloister.protocols.vertical.algorithm import VerticalFinding
from cloister.protocols.vertical.contents import (
    COMMITMENT_BYTES,
    SEED_BYTES,
    Asked,
    PostedCodebook,
    PostedKeys,
    Prepared,
    encode,
    pack_answer,
    pack_result,
    pack_round_share,
    pack_share,
    pack_totals,
)
from cloister.protocols.vertical.coordinator import coordinate_vertical
from cloister.protocols.vertical.messages import CODEC, Stage
from cloister.protocols.vertical.query import HISTOGRAM
from cloister.protocols.vertical.relayed import Opened, RelayedParty, Said
from cloister.protocols.vertical.settings import ALICE, Settings
from cloister.protocols.vertical.stated import StatedHistogram, StatedRound
from cloister.records import IntArray
from cloister.report.sizes import fit_sizes
from cloister.roles import Seat
from cloister.wire import Array


def measure_links(agreement: VerticalAgreement) -> tuple[PartyBytes, ...]:
    """Return what each party's link carries if nobody drops out, in the order of their numbers.

    It is what a run counts, to the last byte. Sessions with one and two uploads, and with one and two rounds, tell what
    each further one adds; that a stage's number takes a byte more from the 128th on is left out.
    """

    def measure_rounds(rounds: int) -> tuple[PartyBytes, ...]:
        first = measure(_make_session(agreement, uploads=1, rounds=rounds))
        if agreement.uploads == 1:
            return first
        return extend(first, measure(_make_session(agreement, uploads=2, rounds=rounds)), agreement.uploads)

    rounds = agreement.settings.rounds_made
    return measure_rounds(1) if rounds == 1 else extend(measure_rounds(1), measure_rounds(2), rounds)


@dataclass(frozen=True, kw_only=True)
class _Abridged(VerticalAgreement):
    """The same session without most of its uploads and rounds: only the first few and the last remain."""

    uploads_left: int
    rounds_left: int

    @cached_property
    def schedule(self) -> tuple[Stage, ...]:
        return tuple(stage for stage in super().schedule if self._has(stage))

    def _has(self, stage: Stage) -> bool:
        if stage.kind == "upload":
            return stage.index >= self.uploads - self.uploads_left
        return stage.index < len(self.queries) - self.settings.rounds_made + self.rounds_left


def _make_session(agreement: VerticalAgreement, *, uploads: int, rounds: int) -> HollowSession:
    stream = Stream.from_seed(0, "traffic of a vertical session")
    identities = [Identity(stream.child("identity", number)) for number in range(1, agreement.parties + 1)]
    same: dict[str, Any] = {field.name: getattr(agreement, field.name) for field in fields(VerticalAgreement)}
    same["directory"] = tuple(identity.public_bytes for identity in identities)
    abridged = _Abridged(**same, uploads_left=uploads, rounds_left=rounds)
    return HollowSession(
        coordinator=coordinate_vertical(abridged, session=HOLLOW_SESSION),
        parties=[
            _HollowParty(
                Seat(
                    number=number,
                    identity=identity,
                    entropy=stream.child("party", number),
                    session=HOLLOW_SESSION,
                ),
                abridged,
                np.empty((agreement.settings.records, 0)),
            )
            for number, identity in enumerate(identities, start=1)
        ],
        codec=CODEC,
    )


class _HollowParty(RelayedParty):
    """Sends only zeros, as many as the real party would."""

    def _act(self, opened: Opened) -> Said:
        actions: dict[str, Callable[[Opened], Said]] = {
            "prepare": self._prepare,
            "reveal": lambda _: Said(post=bytes(TOSS_BYTES)),
            "keys": self._make_keys,
            "relinearise": self._share_product_key,
            "combine": self._share_product_key,
            "upload": self._upload,
            "compute": self._compute,
            "decrypt": self._decrypt,
            "finish": self._finish,
        }
        action = actions.get(opened.stage.kind)
        return Said() if action is None else action(opened)

    def _prepare(self, _: Opened) -> Said:
        agreement = self._agreement
        codebook = None
        if self.number == agreement.computing:
            codebook = _imagine_codebook(agreement.settings, ALICE)
        elif self.number in agreement.encrypted:
            codebook = _imagine_codebook(agreement.settings, agreement.encrypted.index(self.number))
        commits = agreement.is_collective and self.number in agreement.key_holders
        return Said(post=encode(Prepared(codebook, bytes(COMMITMENT_BYTES) if commits else None)))

    def _make_keys(self, _: Opened) -> Said:
        agreement, primes = self._agreement, self._agreement.key_parameters.primes
        key = pack_residues(self._zeros(1), primes)
        if not agreement.is_collective:
            product_key = pack_residues(self._zeros(len(primes)), primes) if agreement.is_joint else None
            return Said(post=encode(PostedKeys(bytes(SEED_BYTES), key, product_key)))
        others = () if agreement.threshold is None else set(agreement.key_holders) - {self.number}
        return Said(post=encode(PostedKeys(None, key)), letters=dict.fromkeys(others, key))

    def _share_product_key(self, _: Opened) -> Said:
        zeros = self._zeros(len(self._agreement.key_parameters.primes))
        return Said(post=pack_round_share(self._agreement, RoundShare(first=zeros, second=zeros)))

    def _zeros(self, count: int) -> Residues:
        """So many polynomials modulo the keys' modulus."""
        parameters = self._agreement.key_parameters
        return np.zeros((count, len(parameters.primes), parameters.degree), dtype=np.uint32)

    def _upload(self, opened: Opened) -> Said:
        agreement = self._agreement
        if self.number not in agreement.encrypted:
            return Said()
        size = agreement.upload_bytes(agreement.encrypted.index(self.number), opened.stage.index)
        return Said(letters={agreement.computing: bytes(size)})

    def _compute(self, opened: Opened) -> Said:
        """The answer to all who hold keys, and the totals of the pass before to everyone."""
        agreement, parameters = self._agreement, self._agreement.parameters
        length = agreement.settings.lengths[opened.stage.index]
        places, shape = np.arange(length), (length, len(parameters.primes), parameters.degree)
        batch: LweBatch | SmallLweBatch
        if agreement.is_collective:
            batch = LweBatch(
                parameters=parameters,
                masks=np.zeros(shape, dtype=np.uint32),
                bodies=np.zeros(shape[:2], dtype=np.uint32),
                mask_of=places,
                secret_of=np.zeros_like(places),
            )
        else:
            batch = SmallLweBatch(
                parameters=parameters,
                bits=agreement.switch_bits,
                masks=np.zeros((length, parameters.degree), dtype=np.uint64),
                bodies=np.zeros(length, dtype=np.uint64),
                mask_of=places,
                secret_of=np.zeros_like(places),
            )
        scale = None if agreement.settings.is_exact else 1.0
        is_histogram = agreement.queries[opened.stage.index] == HISTOGRAM
        stated = StatedHistogram(scale) if is_histogram else StatedRound(scale, scale, scale, scale)
        answer = encode(Asked(stated, pack_answer(batch)))
        totals = None if opened.stage.index == 0 else pack_totals(self._count_zeros(opened.stage.index - 1))
        return Said(post=totals, letters=dict.fromkeys(agreement.key_holders, answer))

    def _decrypt(self, opened: Opened) -> Said:
        agreement, parameters = self._agreement, self._agreement.parameters
        length = agreement.settings.lengths[opened.stage.index]
        letter = pack_totals(self._count_zeros(opened.stage.index))
        if agreement.is_collective:
            share = np.zeros((length, len(parameters.primes)), dtype=np.uint32)
            letter = pack_share(share, parameters, opened.members)
        return Said(letters={agreement.computing: letter})

    def _finish(self, _: Opened) -> Said:
        settings = self._agreement.settings
        k, d = settings.clusters, settings.dimensions
        asked = sum(stage.kind == "compute" for stage in self._agreement.schedule)
        nothing = VerticalFinding(
            centres=np.zeros((k, d)),
            centre_noise=None if settings.is_exact else np.zeros((k, d)),
            sizes=fit_sizes(np.zeros(k), np.zeros(k)),
            rounds=0,
        )
        return Said(post=encode(pack_result(self._count_zeros(asked - 1), nothing)))

    def _count_zeros(self, index: int) -> IntArray:
        """The totals of a pass."""
        return np.zeros(self._agreement.settings.lengths[index], dtype=np.int64)


def _imagine_codebook(settings: Settings, party: int) -> PostedCodebook:
    """A codebook as long as the real one; residuals have no bound where sums are exact."""
    shape = settings.shape_of(party)
    unbounded = settings.is_exact and settings.has_residuals and party != ALICE
    return PostedCodebook(
        Array.of(np.zeros((shape.cells, shape.columns))),
        Array.of(np.zeros(shape.cells)),
        0.0,
        None if unbounded else 0.0,
        shape.bins,
    )
