"""What all roles of a vertical session agree on: every public parameter, one digest, and what follows from them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from functools import cached_property
from math import ceil, log2, prod, sqrt
from typing import Literal

import msgspec

from cloister.aggregation.seed_agreement import STEPS as SEED_STEPS
from cloister.lattice.noise import (
    choose_parameters,
    choose_switch_bits,
    flood_std_max,
    hint_flood_std_min,
    statistical_flood_bits,
)
from cloister.lattice.packing import count_bytes
from cloister.lattice.parameters import FAILURE_BITS, Load, Parameters
from cloister.lattice.product_plan import JointLoad, ProductPlan, choose_product_plan
from cloister.lattice.ring import PRIME_BITS
from cloister.privacy.samplers import MAX_SCALE
from cloister.protocols.guided_sums.settings import require
from cloister.protocols.vertical.messages import LIMIT_BYTES, Stage, list_stages
from cloister.protocols.vertical.noise import (
    BOUNDS_OF_PAIR,
    CHARGED_BITS_MOST,
    ERRORS_FAILURE_BITS,
    STATISTICAL_BITS,
    STATISTICAL_BITS_MOST,
    ChargedFlood,
    Flood,
    StatisticalFlood,
    least_charged_std,
)
from cloister.protocols.vertical.query import HISTOGRAM
from cloister.protocols.vertical.settings import Settings
from cloister.wire import Array

Model = Literal["two-party", "server-aided", "collective"]
MODELS: tuple[Model, ...] = ("two-party", "server-aided", "collective")
_UPLOAD_BYTES = 8 * 2**20  # of one holder's ciphertexts in one message: what a relay holds at a time


@dataclass(frozen=True, kw_only=True)
class VerticalAgreement:
    """The public parameters of one session; equal on every side or it does not open.

    Parameters
    ----------
    settings
        The algorithm's.
    model
        Two parties; several that encrypt to one key holder, which must not collude with the computing party; or a key
        that the other parties share.
    computing
        The number of the party that computes on ciphertexts: Alice.
    encrypted
        The numbers of the parties whose columns are encrypted, in the order of ``settings.columns_encrypted``.
    key_holders
        The numbers of those who hold the key, or a share of it.
    threshold
        How many of the key holders decrypt an answer; None: all.
    directory
        The parties' public identities, in order.
    context
        Whatever else must be agreed (columns and bounds, the digest of the alignment), as text.
    """

    settings: Settings
    model: Model
    computing: int
    encrypted: tuple[int, ...]
    key_holders: tuple[int, ...]
    threshold: int | None = None
    directory: tuple[bytes, ...] = field(repr=False)
    context: str = ""

    def __post_init__(self) -> None:
        everyone = set(range(1, self.parties + 1))
        others = everyone - {self.computing}
        require(self.model in MODELS, "model", f"one of {', '.join(MODELS)}", repr(self.model))
        require(self.computing in everyone, "computing", "one of the parties", self.computing)
        held = len(self.settings.columns_encrypted)
        require(
            len(set(self.encrypted)) == len(self.encrypted) == held and set(self.encrypted) <= others,
            "encrypted",
            f"{held} different parties other than the computing one",
            self.encrypted,
        )
        keys = {"two-party": 1, "server-aided": 1, "collective": self.parties - 1}[self.model]
        require(
            len(set(self.key_holders)) == len(self.key_holders) == keys and set(self.key_holders) <= others,
            "key_holders",
            f"{keys} of the parties other than the computing one",
            self.key_holders,
        )
        require(
            self.model != "two-party" or self.parties == 2,
            "parties",
            "two in a two-party session",
            self.parties,
            "Use model server-aided or collective.",
        )
        require(
            not self.is_collective or len(self.key_holders) >= 2,
            "key holders",
            "at least two where the key is collective",
            len(self.key_holders),
            "Use model two-party.",
        )
        if self.threshold is not None:
            require(self.is_collective, "threshold", "left out unless the key is collective", self.threshold)
            require(
                2 <= self.threshold <= len(self.key_holders),
                "threshold",
                f"from 2 to the number of key holders, {len(self.key_holders)}",
                self.threshold,
            )
        holders, placement = 1 + self.decryptors, self.settings.placement
        require(
            placement.parties == holders,
            "placement",
            f"shares of noise by {holders}: the computing party and each that decrypts",
            placement.parties,
        )
        self.flood  # noqa: B018 (raises now rather than in the session)
        require(
            self.largest_message_bytes <= LIMIT_BYTES,
            "the largest message",
            f"at most {LIMIT_BYTES >> 20} MiB",
            f"one of {self.largest_message_bytes >> 20} MiB",
            "Use fewer clusters, columns or cells, or leave residuals out.",
        )

    @property
    def parties(self) -> int:
        """How many take part."""
        return len(self.directory)

    @property
    def is_collective(self) -> bool:
        """Whether no party alone holds the key."""
        return self.model == "collective"

    @property
    def is_joint(self) -> bool:
        """Whether cells are products of several holders' cells."""
        return len(self.encrypted) > 1

    @property
    def is_seeded(self) -> bool:
        """Whether the holder of the columns is the holder of the key: it then sends seeds instead of masks."""
        return not self.is_collective and not self.is_joint and self.encrypted == self.key_holders

    @property
    def decryptors(self) -> int:
        """How many key holders decrypt an answer."""
        return len(self.key_holders) if self.threshold is None else self.threshold

    @property
    def bodies(self) -> int:
        """How many ciphertexts a record's place is in: one per cell; with residuals, one more per column."""
        features = self.settings.layout.encrypted_count if self.settings.has_residuals else 0
        return self.settings.joint_cells * (1 + features)

    @property
    def queries(self) -> tuple[str, ...]:
        """The names of all passes over the encrypted records, in order."""
        histogram = (HISTOGRAM,) if self.settings.start == "synopsis" else ()
        return (*histogram, *(f"Lloyd round {t + 1}" for t in range(self.settings.rounds_made)))

    @property
    def _rare_events(self) -> int:
        """How many events a session has that each count as delta: a flood that shows something, a bound that fails."""
        floods = 0 if self._pays_flood else 1 + self._smudgers
        return self.answers * (floods + BOUNDS_OF_PAIR)

    @cached_property
    def distance_bits(self) -> int:
        """B: each rare event has a probability below 2^-b, so that all together take what is kept of delta."""
        if self.settings.budget is None:
            return STATISTICAL_BITS
        left = max(self.settings.rare_delta - 2.0**-ERRORS_FAILURE_BITS, 2.0**-200)
        bits = max(STATISTICAL_BITS, ceil(log2(self._rare_events / left)))
        most = CHARGED_BITS_MOST if self._pays_flood else STATISTICAL_BITS_MOST
        least = self._rare_events * 2.0**-most / self.settings.delta_share
        require(bits <= most, "delta", f"at least about {least:.2g} here", self.settings.budget.delta, "Raise delta.")
        return bits

    @property
    def rare_delta(self) -> float:
        """What rare events add to delta; `Settings.rare_delta` is kept for it. 0 without a budget."""
        if self.settings.budget is None:
            return 0.0
        errors = 2.0**-ERRORS_FAILURE_BITS if self._pays_flood else 0.0
        return self._rare_events * 2.0**-self.distance_bits + errors

    @property
    def _failure_bits(self) -> int:
        """Of each of the sixteen events that one number's bounds rest on."""
        return self.distance_bits + FAILURE_BITS - STATISTICAL_BITS

    @cached_property
    def load(self) -> Load:
        """What the answers add up."""
        return Load(
            sum_max=self.settings.sum_max,
            terms=self.settings.records * self.bodies,
            weight_max=self.settings.weight_max,
            key_holders=len(self.key_holders),
            public_key=not self.is_seeded,
            failure_bits=self._failure_bits,
        )

    @cached_property
    def plan(self) -> ProductPlan | None:
        """How indicators of several holders are multiplied into those of joint cells; None where one holder has all."""
        if not self.is_joint:
            return None
        settings = self.settings
        load = JointLoad(
            records=settings.records,
            cells=tuple(settings.cells_of(holder) for holder in range(len(self.encrypted))),
            sum_max=settings.sum_max,
            factor_max=settings.weight_max,
            key_holders=len(self.key_holders),
            failure_bits=self._failure_bits,
        )
        return choose_product_plan(load, smudge_distance_bits=self.distance_bits, smudgers=1 + self._smudgers)

    @cached_property
    def parameters(self) -> Parameters:
        """The parameters of the ciphertexts that Alice computes with: the smallest for every sum and its flood."""
        if self.plan is not None:
            return self.plan.final
        if self._pays_flood:
            chosen = choose_parameters(self.load, flood_std_min=self._least_flood_std)
            # A flood this narrow would expose too much of what re-randomises an answer.
            hint_std = hint_flood_std_min(chosen, self.load, secrets=1)
            if flood_std_max(chosen, self.load) >= hint_std:
                return chosen
            return choose_parameters(self.load, flood_std_min=max(self._least_flood_std, 2 * hint_std))
        # Each key holder's smudge hides as much as Alice's flood does, and all of them are added to it.
        return choose_parameters(self.load, flood_distance_bits=self.distance_bits + self._smudgers.bit_length())

    @property
    def key_parameters(self) -> Parameters:
        """The parameters of the keys: if cells are joint, with more primes, which products use up."""
        return self.parameters if self.plan is None else self.plan.parameters

    @property
    def _smudgers(self) -> int:
        """How many parties add noise of their own to a decryption that nobody sees alone."""
        return self.decryptors if self.is_collective else 0

    @cached_property
    def flood(self) -> Flood:
        """What hides the errors of the ciphertexts in an answer."""
        if self._pays_flood:
            std = min(flood_std_max(self.parameters, self.load), MAX_SCALE)
            require(
                std >= self._least_flood_std,
                "the flood",
                f"able to have a deviation of 2^{log2(self._least_flood_std):.1f}, the least that its budget pays for",
                f"2^{log2(std):.1f} at most",
                "Use fewer fractional bits, cells or rounds, or a larger epsilon.",
            )
            return ChargedFlood(std=std, bodies=self.bodies)
        return StatisticalFlood(bits=self.smudge_bits)

    @property
    def smudge_bits(self) -> int:
        """How wide noise must be to hide an answer's errors; under a collective key each holder adds as much."""
        if self.plan is not None:
            return ceil(log2(self.plan.error_bound)) + self.distance_bits
        return statistical_flood_bits(self.parameters, self.load, self.distance_bits)

    @property
    def _pays_flood(self) -> bool:
        return self.settings.budget is not None and self.is_seeded

    @property
    def _least_flood_std(self) -> float:
        weight = sqrt(1 + 2 * (self.settings.weight_max + self.settings.residual_most) ** 2)
        return least_charged_std(
            bodies=self.bodies, weight_max=weight, queries=len(self.queries), rho=self.settings.flood_rho
        )

    @property
    def switch_bits(self) -> int:
        """The bits of a coefficient of an answer on its way to the one key holder."""
        return choose_switch_bits(self.parameters, self.load)

    @property
    def longest_answer(self) -> int:
        """The most numbers in one answer: of a round, or of the joint histogram."""
        settings = self.settings
        numbers = settings.clusters * (settings.dimensions + 1)
        if settings.start != "synopsis":
            return numbers
        groups = prod(prod(settings.groups_of(holder)) for holder in range(len(self.encrypted)))
        return max(numbers, settings.alice_cells * groups)

    @property
    def answers(self) -> int:
        """How many numbers are decrypted in a session."""
        return sum(self.settings.lengths)

    @property
    def largest_message_bytes(self) -> int:
        """About the largest message: an answer to all key holders, or the encrypted cells of some blocks."""
        parameters = self.parameters
        bits = PRIME_BITS * len(parameters.primes) if self.is_collective else self.switch_bits
        answer = self.longest_answer * parameters.degree * bits // 8 * len(self.key_holders)
        return max(answer, self._block_bytes * self.blocks_in_upload * len(self.encrypted))

    # Blocks.

    @property
    def block_records(self) -> int:
        """Records in one ciphertext."""
        return self.parameters.degree

    @property
    def blocks(self) -> int:
        """How many ciphertexts hold all records of one cell."""
        return -(-self.settings.records // self.block_records)

    @property
    def blocks_in_upload(self) -> int:
        """Blocks in one message."""
        return max(1, _UPLOAD_BYTES // self._block_bytes)

    def half_bytes(self, holder: int) -> int:
        """Return the bytes of the masks, or of the bodies, of one block of a holder's, from 0."""
        polynomials = self.bodies * len(self.parameters.primes)
        if self.plan is not None:
            polynomials = self.plan.load.cells[holder] * self.plan.holder_level(holder)
        return count_bytes(polynomials * self.block_records, PRIME_BITS)

    def upload_bytes(self, holder: int, upload: int) -> int:
        """Return the bytes of one message of a holder's."""
        return (1 if self.is_seeded else 2) * self.half_bytes(holder) * len(self.blocks_of(upload))

    @property
    def _block_bytes(self) -> int:
        """The ciphertexts of one block, of the holder with most."""
        largest = max(map(self.half_bytes, range(len(self.encrypted))))
        return largest if self.is_seeded else 2 * largest

    @property
    def uploads(self) -> int:
        """Messages that each holder of encrypted columns sends."""
        return -(-self.blocks // self.blocks_in_upload)

    def blocks_of(self, upload: int) -> range:
        """The blocks in one message."""
        first = upload * self.blocks_in_upload
        return range(first, min(first + self.blocks_in_upload, self.blocks))

    def records_of(self, block: int) -> slice:
        """The records in one block; the last one may be short."""
        first = block * self.block_records
        return slice(first, min(first + self.block_records, self.settings.records))

    # The session.

    @cached_property
    def schedule(self) -> tuple[Stage, ...]:
        """All stages."""
        return list_stages(
            parties=self.parties,
            computing=self.computing,
            key_holders=self.key_holders,
            encrypted=self.encrypted,
            uploads=self.uploads,
            queries=self.queries,
            collective=self.is_collective,
            threshold=self.threshold is not None,
            joint=self.is_joint,
        )

    @property
    def steps(self) -> int:
        """All steps of a session, those that agree on a seed and exchange keys included."""
        return SEED_STEPS + 1 + len(self.schedule)

    @cached_property
    def digest(self) -> bytes:
        """SHA-256 of every field, and of the primes that follow from them.

        Scales of noise follow from the fields too, but in floating point: on another processor or library their last
        bits may differ. They are stated, and whoever is told one accepts what is at least its own.
        """
        agreed = {name: getattr(self, name) for name in self.__dataclass_fields__}
        agreed |= {"parameters": self.parameters, "levels": None if self.plan is None else self.plan.levels}
        agreed |= {"key_parameters": self.key_parameters}
        return hashlib.sha256(msgspec.msgpack.encode(agreed, order="sorted", enc_hook=Array.of)).digest()

    def bind(self, session: bytes) -> bytes:
        """Return what boxes between parties are bound to: the session, and what they hold that the relay does not."""
        return session
