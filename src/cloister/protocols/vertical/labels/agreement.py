"""What all roles of a session for labels agree on: who is granted them, the centres, the cells of encrypted columns.

Slots hold numbers modulo t = 65537, and there must be room for a flood over all coefficients of all answers. A product
of plaintexts is reduced modulo t, and what is left over, a multiple k of t, becomes an error k (q mod t): with primes
as they come, by far the largest one. So primes are chosen for which q mod t is 1, 2 or 3 instead.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from functools import cache, cached_property
from itertools import count as count_up
from math import ceil, log, log2, prod

import msgspec
import numpy as np

from cloister.crypto import derive_key
from cloister.errors import ConfigError
from cloister.lattice.parameters import FAILURE_BITS, MODULUS_BITS_MAX, Parameters, bound_primes
from cloister.lattice.product_plan import DEGREE, JointLoad, ProductPlan, choose_product_plan
from cloister.lattice.ring import find_primes
from cloister.lattice.slots import SLOT_MODULUS, slot_error_bound
from cloister.protocols.vertical.agreement import VerticalAgreement
from cloister.protocols.vertical.codebook import Codebook
from cloister.protocols.vertical.layout import join_reps
from cloister.protocols.vertical.messages import Stage
from cloister.protocols.vertical.noise import STATISTICAL_BITS
from cloister.records import FloatArray
from cloister.wire import Array

# Degree and number of primes of up to 27 bits, in order of cost.
_LADDER = ((4096, 4), (8192, 5), (8192, 6), (8192, 7), (8192, 8))
_CANDIDATES = 400  # the largest primes: 80,000 pairs, about one for each residue modulo 65537
_FAILURE = FAILURE_BITS * log(2)


@dataclass(frozen=True, kw_only=True, eq=False)
class LabelsAgreement(VerticalAgreement):
    """The public parameters of one session for labels: roles, blocks and relay are those of a clustering.

    Parameters
    ----------
    settings
        Who holds which columns, and how many records there are; without a budget, and without residuals.
    reps
        For each encrypted holder the representatives of its cells, (m_h, d_h), in [-1, 1].
    centres
        (k, d), in [-1, 1] and the job's column order.
    granted
        The numbers of the parties that get labels.

    Raises
    ------
    ConfigError
        If a shape does not fit, nobody is granted labels, or the key is collective.
    """

    reps: tuple[FloatArray, ...] = field(repr=False)
    centres: FloatArray = field(repr=False)
    granted: tuple[int, ...]

    def __post_init__(self) -> None:
        if self.is_collective:
            raise ConfigError(
                "labels must have one key holder; got a collective key. Use model server-aided: whole polynomials are "
                "decrypted, which no protocol here does under a key of several."
            )
        everyone = set(range(1, self.parties + 1))
        if not self.granted or len(set(self.granted)) != len(self.granted) or not set(self.granted) <= everyone:
            raise ConfigError(f"labels must be granted to some parties, each once; got {self.granted}.")
        settings = self.settings
        if settings.budget is not None or settings.has_residuals:
            raise ConfigError("settings for labels must have neither a budget nor residuals; got some.")
        held = [len(columns) for columns in settings.columns_encrypted]
        if [own.ndim == 2 and own.shape[1] for own in self.reps] != held or not all(len(own) for own in self.reps):
            raise ConfigError(
                f"each encrypted holder must have cells in its own columns, {held}; got shapes "
                f"{[own.shape for own in self.reps]}. Use the codebooks of the same split of columns."
            )
        if self.centres.shape != (settings.clusters, settings.dimensions):
            raise ConfigError(
                f"centres must have the shape {(settings.clusters, settings.dimensions)}; got {self.centres.shape}."
            )
        super().__post_init__()

    @property
    def cells(self) -> tuple[int, ...]:
        """m_h of each encrypted holder."""
        return tuple(len(own) for own in self.reps)

    @property
    def bodies(self) -> int:
        """How many ciphertexts a record's place is in: one for each joint cell."""
        return prod(self.cells)

    @cached_property
    def joint_reps(self) -> FloatArray:
        """(m, d_B): the representatives of the joint cells."""
        return join_reps(self.reps)

    @cached_property
    def session_centres(self) -> FloatArray:
        """The centres with Alice's columns first, then the holders'."""
        return self.settings.layout.to_session(self.centres)

    @cached_property
    def digest(self) -> bytes:
        """SHA-256 of every field that the relay knows too: not of centres and cells, which it could guess and test."""
        names = self.__dataclass_fields__.keys() - {"reps", "centres"}
        agreed = {name: getattr(self, name) for name in names} | {"cells": self.cells}
        agreed |= {"parameters": self.parameters, "key_parameters": self.key_parameters}
        agreed |= {"levels": None if self.plan is None else self.plan.levels}
        return hashlib.sha256(msgspec.msgpack.encode(agreed, order="sorted")).digest()

    def bind(self, session: bytes) -> bytes:
        """Bind boxes to centres and cells: who holds others can open none."""
        found = msgspec.msgpack.encode([self.centres, *self.reps], enc_hook=Array.of)
        return derive_key(found, "finding of a session for labels", session)

    def codebook_of(self, holder: int) -> Codebook:
        """Return the cells of one encrypted holder, from 0."""
        reps = np.ascontiguousarray(self.reps[holder], dtype=np.float64)
        return Codebook(
            reps=reps, units=self.settings.units, residual_radius=0, variance=0.0, weights=np.ones(len(reps))
        )

    @cached_property
    def plan(self) -> ProductPlan | None:
        """How indicators of several holders are multiplied into those of joint cells; None where one holder has all."""
        if not self.is_joint:
            return None
        load = JointLoad(records=self.settings.records, cells=self.cells, sum_max=SLOT_MODULUS // 2)
        # One bit more than the flood needs for the plan's own bound: `error_bound` is less than twice that.
        hidden = choose_flood_bits(1.0, degree=DEGREE, records=self.settings.records)
        return choose_product_plan(load, smudge_distance_bits=1 + hidden)

    @cached_property
    def parameters(self) -> Parameters:
        """Of the ciphertexts that Alice computes with."""
        if self.plan is not None:
            return self.plan.final
        return choose_slot_parameters(cells=self.bodies, records=self.settings.records, public_key=not self.is_seeded)

    @property
    def error_bound(self) -> float:
        """A bound on the error of all N coefficients of a block before the flood, except with probability 2^-40."""
        if self.plan is None:
            return slot_error_bound(self.parameters, self.bodies, public_key=not self.is_seeded)
        # The plan bounds one coefficient; for N of them every tail is longer. Pads add delta m - q m / t once more.
        longer = (_FAILURE + log(2 * self.parameters.degree)) / (_FAILURE + log(2))
        return longer * self.plan.error_bound + SLOT_MODULUS / 2

    @property
    def smudge_bits(self) -> int:
        """How wide the flood is: all errors of a session are hidden to 2^-40."""
        return choose_flood_bits(self.error_bound, degree=self.parameters.degree, records=self.settings.records)

    @cached_property
    def schedule(self) -> tuple[Stage, ...]:
        """All stages: keys; for each part of the records uploads and then masking; decryption; reading."""
        alice, holders = (self.computing,), tuple(sorted(self.encrypted))
        stages = [Stage(kind="keys", index=0, members=self.key_holders, label="labels: making keys", posting=True)]
        for i in range(self.uploads):
            part = f"({i + 1} of {self.uploads})"
            label = f"labels: encrypting cells {part}"
            stages.append(Stage(kind="upload", index=i, members=holders, label=label, writers=holders, readers=alice))
            readers = {*self.key_holders, *(self.granted if i == self.uploads - 1 else ())}
            label = f"labels: masking {part}"
            stages.append(
                Stage(kind="mask", index=i, members=alice, label=label, writers=alice, readers=tuple(sorted(readers)))
            )
        keys, label = self.key_holders, "labels: decrypting"
        stages.append(Stage(kind="decrypt", index=0, members=keys, label=label, writers=keys, readers=self.granted))
        others = tuple(party for party in range(1, self.parties + 1) if party not in self.key_holders)
        stages.append(Stage(kind="close", index=0, members=others, label="labels: distributing"))
        return tuple(stages)


# --- parameters for slots ---------------------------------------------------------------------------------------------


@cache
def choose_slot_parameters(*, cells: int, records: int, public_key: bool) -> Parameters:
    """Return the cheapest parameters under which every label is right and there is room for the flood.

    Parameters
    ----------
    cells
        How many ciphertexts are added up for a label.
    records
        How many labels a session has.
    public_key
        Encrypted under a public key, not by the holder of the secret.

    Raises
    ------
    ConfigError
        No ring of the standard's table has the room.
    """
    for degree, prime_count in _LADDER:
        parameters = Parameters(
            degree=degree, primes=find_slot_primes(degree, prime_count), plaintext_modulus=SLOT_MODULUS
        )
        error = slot_error_bound(parameters, cells, public_key=public_key)
        flood_bits = choose_flood_bits(error, degree=degree, records=records)
        if 2.0**flood_bits + error < parameters.delta / 2:
            return parameters
    raise ConfigError(
        f"labels of {records} records in {cells} cells must fit a modulus of {MODULUS_BITS_MAX[DEGREE]} bits with "
        "their flood; they do not. Use fewer cells."
    )


def choose_flood_bits(error: float, *, degree: int, records: int) -> int:
    """Return b such that floods uniform on -2^b..2^b-1 hide errors up to ``error`` in all coefficients of a session.

    One coefficient is hidden to 2 error / 2^(b+1); there are N of them in each block. Together: 2^-40.
    """
    return ceil(log2(error)) + STATISTICAL_BITS + ceil(log2(count_coefficients(degree, records)))


def count_coefficients(degree: int, records: int) -> int:
    """Return how many coefficients all answers of a session have."""
    return -(-records // degree) * degree


@cache
def find_slot_primes(degree: int, count: int) -> tuple[int, ...]:
    """Return primes, 1 modulo 2N and within the table, whose product has the least remainder modulo t that was found.

    All but two are the largest there are; of the others, the first pair that fits.
    """
    candidates = find_primes(degree, _CANDIDATES, below=bound_primes(degree, count))
    fixed, others = candidates[: count - 2], candidates[count - 2 :]
    with_residue = {prime % SLOT_MODULUS: prime for prime in reversed(others)}
    base = prod(fixed) % SLOT_MODULUS
    pairs = (
        (first, second)
        for wanted in count_up(1)
        for first in others
        if (second := with_residue.get(wanted * pow(base * first, -1, SLOT_MODULUS) % SLOT_MODULUS, first)) != first
    )
    return (*fixed, *next(pairs))
