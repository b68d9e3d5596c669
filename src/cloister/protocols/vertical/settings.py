"""The public values of a vertical clustering: who holds which columns, the budget, how large numbers can get.

Everything here follows from the job alone, so every role computes the same before a record is read: the split of the
budget, the number of rounds and of cells, and the largest sum, from which the plaintext modulus is chosen.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from math import ceil, log2, prod, sqrt
from typing import Final, Literal

from cloister.errors import ConfigError
from cloister.privacy.calibration import SLACK, rho_for
from cloister.privacy.mechanisms import DiscreteGaussian, Mechanism, Noise
from cloister.privacy.placement import Shared
from cloister.privacy.units import Budget, Unit
from cloister.protocols.guided_sums.settings import require
from cloister.protocols.vertical.layout import Layout, cut_axes

DEFAULT = "Leave it out for the default."
VERTICAL: Final = "vertical"
"""The protocol's name, in jobs, in results and on the wire."""
CLUSTERS_MOST, HOLDERS_MOST, CELLS_MOST, DIMENSIONS_MOST = 100, 3, 1024, 2000
BITS_LEAST, EXACT_BITS_MOST = 4, 20  # `round_to_length` takes vectors up to 2^20
NOISY_BITS_MOST = 12  # noise hides finer steps
GRID_COLUMNS = 2
"""Up to this many columns, a codebook is a grid in a box around the records; beyond, it is a small private k-means."""
ALICE: Final = -1
"""The computing party's number among the makers of codebooks; encrypted holders count from 0."""
_NOISE_REACH = 16  # standard deviations that all noise on a number exceeds with a probability below 2^-180
_FEW_CLUSTERS, _MANY_CLUSTERS = 8, 50
_EXACT_ROUNDS = 10
_ALICE_CELLS_MOST = 64  # where they are made by a private k-means, which more cells would only blur
_CELL_SIGNAL = 3.0  # records over noise that a cell of the joint histogram should have
_STD_LEAST = 0.01  # with a budget that hides nothing, integer noise is nearly always 0, and the algorithm divides by it
_JOINT_SUM_BITS = 25.5  # sums over joint cells must stay below 2^26: their plaintext modulus is a prime of 27 bits
_RANDOM_ROUNDS = 10  # as published
RANDOM_RADIUS = 0.6
"""Of the first round from random centres, as a part of sqrt(d): half the domain's diagonal."""

Start = Literal["synopsis", "random"]


@dataclass(frozen=True, kw_only=True)
class Knobs:
    """Advanced settings. The defaults were tuned on synthetic families (docs/study-vertical.md); few need others.

    Parameters
    ----------
    box_share
        Part of the budget for the boxes of all grids together; 0: grids on the whole of [-1, 1], which read no record.
    codebook_share
        Part of the budget for all codebooks together that are made by a private k-means.
    start_share
        Part of what is then left for the joint histogram; the rest goes to the rounds of Lloyd's algorithm.
    count_share
        Part of a round for its counts; the rest is for the sums of offsets.
    start_cells_least, start_cells_most
        How many cells the joint histogram has at least, where the codebooks allow it, and at most.
    radius_factor
        The radius that offsets are clipped to, in standard deviations of a cluster, where noise is moderate.
    restarts
        How often the cells are clustered from another start.
    """

    box_share: float = 0.02
    codebook_share: float = 0.2
    start_share: float = 0.6
    count_share: float = 0.05
    start_cells_least: int = 64
    start_cells_most: int = 256
    radius_factor: float = 1.0
    restarts: int = 20

    def __post_init__(self) -> None:
        for name in ("codebook_share", "start_share", "count_share"):
            value = getattr(self, name)
            require(1e-4 <= value <= 0.9, name, "from 0.0001 to 0.9", value, DEFAULT)
        require(0 <= self.box_share <= 0.5, "box_share", "from 0 to 0.5", self.box_share, DEFAULT)
        first = self.box_share + self.codebook_share
        require(first <= 0.95, "box_share and codebook_share", "at most 0.95 together", first, "Lower one of them.")
        require(
            2 <= self.start_cells_least <= self.start_cells_most <= 4096,
            "start_cells_least and start_cells_most",
            "2 to 4096, in order",
            (self.start_cells_least, self.start_cells_most),
            DEFAULT,
        )
        require(0.1 <= self.radius_factor <= 10, "radius_factor", "from 0.1 to 10", self.radius_factor, DEFAULT)
        require(1 <= self.restarts <= 1000, "restarts", "from 1 to 1000", self.restarts, DEFAULT)


@dataclass(frozen=True, kw_only=True)
class CodebookShape:
    """How large a party's codebook is; ``bins`` where it is a grid, else empty."""

    cells: int
    columns: int
    bins: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The settings of one vertical clustering.

    Parameters
    ----------
    clusters
        k, from 2 to 100.
    columns_alice
        Which of the job's columns the computing party holds; may be none.
    columns_encrypted
        Which of them each encrypted column holder has; one to three holders, each with at least one.
    records
        n, public: every party learns it from the alignment.
    budget
        What all releases together may cost, ``delta > 0``; None: exact sums, no noise and no privacy of the centres.
    placement
        Who adds noise; two parties: ``Shared(parties=2, colluding_max=1)``.
    start
        "synopsis": a joint histogram and a clustering of its cells. "random": centres far apart, as published.
    rounds
        Rounds of Lloyd's algorithm; None chooses from public values.
    cells
        m, the cells of each encrypted holder's codebook; None chooses from public values.
    residuals
        Whether a single holder encrypts where in their cells its records are; None: only without a budget.
    fractional_bits
        P: offsets are counted in units of 2^-P; None: 8 with a budget, 16 without, fewer with several encrypted
        holders of many records, whose sums must stay below 2^26.
    flood_share
        Part of the budget kept for what decryption noise reveals. It is reserved here and spent by the session.
    delta_share
        Part of delta kept for what happens rarely: floods that leave something visible, bounds that fail.
    knobs
        Advanced settings.
    """

    clusters: int
    columns_alice: tuple[int, ...]
    columns_encrypted: tuple[tuple[int, ...], ...]
    records: int
    budget: Budget | None = None
    placement: Shared = field(default_factory=lambda: Shared(parties=2, colluding_max=1))
    start: Start = "synopsis"
    rounds: int | None = None
    cells: int | None = None
    residuals: bool | None = None
    fractional_bits: int | None = None
    flood_share: float = 2.0**-8
    delta_share: float = 2.0**-4
    knobs: Knobs = field(default_factory=Knobs)

    def __post_init__(self) -> None:
        require(2 <= self.clusters <= CLUSTERS_MOST, "clusters", f"from 2 to {CLUSTERS_MOST}", self.clusters)
        holders = len(self.columns_encrypted)
        require(
            1 <= holders <= HOLDERS_MOST,
            "encrypted column holders",
            f"from 1 to {HOLDERS_MOST}",
            holders,
            "Let fewer parties hold columns.",
        )
        self.layout  # noqa: B018 (raises now if columns overlap or are missing)
        require(self.dimensions <= DIMENSIONS_MOST, "columns", f"at most {DIMENSIONS_MOST}", self.dimensions)
        require(1 <= self.records < 2**32, "records", "from 1 to 2^32 - 1", self.records)
        require(self.start in ("synopsis", "random"), "start", '"synopsis" or "random"', repr(self.start))
        require(self.rounds is None or 1 <= self.rounds <= 100, "rounds", "from 1 to 100", self.rounds, DEFAULT)
        require(self.cells is None or 2 <= self.cells <= 256, "cells", "from 2 to 256", self.cells, DEFAULT)
        bits_most = EXACT_BITS_MOST if self.is_exact else NOISY_BITS_MOST
        bits, span = self.precision_bits, f"from {BITS_LEAST} to {bits_most}"
        require(BITS_LEAST <= bits <= bits_most, "fractional_bits", span, bits, DEFAULT)
        for name in ("flood_share", "delta_share"):
            value = getattr(self, name)
            require(1e-6 <= value <= 0.5, name, "from 0.000001 to 0.5", value, DEFAULT)
        require(
            self.joint_cells <= CELLS_MOST,
            "the product of the holders' numbers of cells",
            f"at most {CELLS_MOST}",
            self.joint_cells,
            "Lower cells.",
        )
        if self.residuals and holders > 1:
            raise ConfigError(
                f"residuals need a single encrypted column holder; got {holders}. Leave residuals out: the sums are "
                "then of the cells' middles."
            )
        if self.budget is not None:
            what_to_do = "Set unit to record: a party holds columns here, not records of its own."
            one = self.budget.unit is not Unit.CLIENT and self.budget.most_records == 1
            require(one, "unit", '"record", or "person" with one record each', self.budget.unit.value, what_to_do)
            self.rho  # noqa: B018 (raises now if delta is 0)

    @cached_property
    def layout(self) -> Layout:
        """Whose columns are where."""
        return Layout(alice=self.columns_alice, encrypted=self.columns_encrypted)

    @property
    def dimensions(self) -> int:
        """d, over all parties."""
        return self.layout.dimensions

    @property
    def is_exact(self) -> bool:
        """Whether sums are released as they are."""
        return self.budget is None

    @property
    def precision_bits(self) -> int:
        """P."""
        if self.fractional_bits is not None:
            return self.fractional_bits
        usual = 16 if self.is_exact else 8
        if len(self.columns_encrypted) == 1:
            return usual
        longest = 1.0 if self.is_exact else max(self.radius_most, 1.0)
        return int(min(max(_JOINT_SUM_BITS - log2(self.records * longest), BITS_LEAST), usual))

    @property
    def units(self) -> int:
        """How many units there are in 1: 2^P."""
        return 1 << self.precision_bits

    @property
    def has_residuals(self) -> bool:
        """Whether the holder encrypts residuals beside its indicators."""
        if len(self.columns_encrypted) > 1:
            return False
        return self.is_exact if self.residuals is None else self.residuals

    def is_grid(self, party: int) -> bool:
        """Whether a party's codebook is a grid.

        A holder's grid of two columns has eight cells along each: too wide for many clusters. Alice's cells are not
        encrypted and may be more. Without a budget a grid of more cells is used instead, which reads no record.
        """
        if party == ALICE:
            return len(self.columns_alice) <= GRID_COLUMNS
        columns = len(self.columns_encrypted[party])
        return columns == 1 or (columns <= GRID_COLUMNS and (self.is_exact or self.clusters <= _FEW_CLUSTERS))

    def cells_of(self, holder: int) -> int:
        """m_h: the cells of one encrypted holder's codebook."""
        columns = len(self.columns_encrypted[holder])
        wanted = self.cells
        if wanted is None:
            single = 16 if columns == 1 else 64
            if self.clusters > _FEW_CLUSTERS:
                finer = columns == GRID_COLUMNS or self.clusters > _MANY_CLUSTERS
                single = 256 if self.is_exact and finer else 64
            wanted = {1: single, 2: 16, 3: 8}[len(self.columns_encrypted)]
        return prod(cut_axes(columns, wanted)) if self.is_grid(holder) else wanted

    @property
    def joint_cells(self) -> int:
        """m: the cells of all encrypted columns together."""
        return prod(self.cells_of(holder) for holder in range(len(self.columns_encrypted)))

    @property
    def rounds_made(self) -> int:
        """T: rounds of Lloyd's algorithm."""
        if self.rounds is not None:
            return self.rounds
        if self.start == "random":
            return _RANDOM_ROUNDS
        return _EXACT_ROUNDS if self.is_exact else 2

    # The budget.

    @property
    def noise_budget(self) -> Budget:
        """What noise has to keep to: all of epsilon, and of delta what is not kept for rare events."""
        if self.budget is None:
            raise ConfigError("an exact clustering has no budget to split; set one for a private result.")
        return replace(self.budget, delta=self.budget.delta - self.rare_delta)

    @property
    def rare_delta(self) -> float:
        """The most that rare events may add to delta; 0 without a budget."""
        return 0.0 if self.budget is None else self.budget.delta * self.delta_share

    @cached_property
    def rho(self) -> float:
        """What all releases of the algorithm may cost together, in zCDP; the flood's part is not in it."""
        return rho_for(self.noise_budget) * (1.0 - self.flood_share)

    @property
    def flood_rho(self) -> float:
        """What is kept for the noise of decryption."""
        return self.rho / (1.0 - self.flood_share) * self.flood_share

    @property
    def codebook_makers(self) -> tuple[int, ...]:
        """Who makes a codebook: the holders, and Alice where there is a joint histogram and she has columns."""
        with_alice = self.start == "synopsis" and self.columns_alice
        return (*((ALICE,) if with_alice else ()), *range(len(self.columns_encrypted)))

    def codebook_rho_of(self, party: int) -> float:
        """What one party's codebook may cost: the box of a grid, or a k-means."""
        alike = sum(self.is_grid(other) == self.is_grid(party) for other in self.codebook_makers)
        return self.rho * (self.knobs.box_share if self.is_grid(party) else self.knobs.codebook_share) / alike

    @property
    def codebooks_rho(self) -> float:
        """What all codebooks together may cost."""
        return sum(map(self.codebook_rho_of, self.codebook_makers))

    @property
    def start_rho(self) -> float:
        """What the joint histogram may cost; 0 where there is none."""
        return (self.rho - self.codebooks_rho) * self.knobs.start_share if self.start == "synopsis" else 0.0

    @property
    def round_rho(self) -> float:
        """What one round of Lloyd's algorithm may cost, sums and counts together."""
        return (self.rho - self.codebooks_rho - self.start_rho) / self.rounds_made

    @property
    def sum_rho(self) -> float:
        """The part of a round for its sums."""
        return self.round_rho * (1.0 - self.knobs.count_share)

    @property
    def count_rho(self) -> float:
        """The part of a round for its counts."""
        return self.round_rho * self.knobs.count_share

    @property
    def replacement_rho(self) -> float:
        """The maximum cost of changing the values of a record that is known to be there (docs/proofs/vertical.md).

        A record that stays in its cluster moves the sums by up to twice the longest offset and no count; one that
        changes clusters moves two sums by one offset each, and two counts. Codebooks: twice any release's norm.
        """
        moved = max(4 * self.sum_rho, 2 * self.sum_rho + 2 * self.count_rho)
        return 4 * self.codebooks_rho + 2 * self.start_rho + self.rounds_made * moved

    # The joint histogram.

    @property
    def start_cells(self) -> float:
        """W: about how many cells the joint histogram should have; 1 where there is none.

        The error of a smooth density in d dimensions, bias against noise, is least at this number (as in the synopsis).
        """
        if self.start != "synopsis":
            return 1.0
        most = max(self.knobs.start_cells_most, 16 * self.clusters)
        if self.is_exact:
            return float(most)
        d, signal = self.dimensions, self.records / self.total_std(self.sigma_for(1, self.start_rho))
        wanted = (signal / _CELL_SIGNAL) ** (2 * d / (2 + d))
        return float(min(max(wanted, self.knobs.start_cells_least, 8 * self.clusters), most))

    def groups_of(self, holder: int) -> tuple[int, ...]:
        """How many groups one encrypted holder's cells form: along each column of a grid, or in all."""
        columns, cells = len(self.columns_encrypted[holder]), self.cells_of(holder)
        if not self.is_grid(holder):
            return (min(cells, max(1, round(self.start_cells ** (columns / self.dimensions)))),)
        wanted = self.start_cells ** (1 / self.dimensions)
        return tuple(ceil(bins / max(1, round(bins / wanted))) for bins in cut_axes(columns, cells))

    @property
    def alice_cells(self) -> int:
        """The most cells that Alice sorts her columns into for the joint histogram; 1 where she makes no codebook."""
        if ALICE not in self.codebook_makers:
            return 1
        groups = prod(prod(self.groups_of(holder)) for holder in range(len(self.columns_encrypted)))
        wanted = max(2, round(self.start_cells / groups))
        return wanted if self.is_grid(ALICE) else min(wanted, _ALICE_CELLS_MOST)

    def shape_of(self, party: int) -> CodebookShape:
        """Return the size of the codebook of a holder, from 0, or of ``ALICE``."""
        if party != ALICE:
            columns, cells = len(self.columns_encrypted[party]), self.cells_of(party)
        elif ALICE in self.codebook_makers:
            columns, cells = len(self.columns_alice), self.alice_cells
        else:
            return CodebookShape(cells=1, columns=0)
        if not self.is_grid(party):
            return CodebookShape(cells=cells, columns=columns)
        bins = cut_axes(columns, cells)
        return CodebookShape(cells=prod(bins), columns=columns, bins=bins)

    @property
    def histogram_length(self) -> int:
        """How many numbers the joint histogram has at most; 0 where there is none."""
        if self.start != "synopsis":
            return 0
        groups = prod(prod(self.groups_of(holder)) for holder in range(len(self.columns_encrypted)))
        return self.shape_of(ALICE).cells * groups

    @property
    def lengths(self) -> tuple[int, ...]:
        """How many numbers each pass asks for."""
        histogram = (self.histogram_length,) if self.start == "synopsis" else ()
        return (*histogram, *[self.clusters * (self.dimensions + 1)] * self.rounds_made)

    # Noise and sizes of numbers.

    def sigma_for(self, l2_squared: int, rho: float) -> float:
        """The noise with which a vector of this squared norm costs rho: l2_squared / 2 sigma^2."""
        return sqrt(l2_squared / (2 * rho)) * SLACK

    def share_of(self, sigma: float) -> Noise:
        """What each holder of noise adds."""
        return self.placement.mechanism_for_share(DiscreteGaussian(sigma=sigma))

    def released_mechanism(self, sigma: float) -> Mechanism:
        """What the accountant is charged for."""
        return self.placement.released_mechanism(DiscreteGaussian(sigma=sigma))

    def total_std(self, sigma: float | None) -> float:
        """The standard deviation of all noise on a total."""
        if sigma is None:
            return 0.0
        return max(float(self.placement.total_variance(DiscreteGaussian(sigma=sigma)) ** 0.5), _STD_LEAST)

    @property
    def radius_most(self) -> float:
        """No offset, of Alice's columns or of the encrypted ones, is longer than this where there is a budget."""
        d = self.dimensions
        return sqrt(d) * (RANDOM_RADIUS if self.start == "random" else min(0.75, 1.0 / self.clusters ** (1 / d)))

    @property
    def weight_max(self) -> int:
        """The largest integer that multiplies an encrypted number."""
        return self.units if self.is_exact else ceil(self.radius_most * self.units)

    @property
    def residual_most(self) -> int:
        """The largest norm of residuals that a codebook may declare, in units; 0 where there are none."""
        if not self.has_residuals:
            return 0
        if self.is_exact:
            return 2 * self.units * ceil(sqrt(len(self.columns_encrypted[0])))
        return ceil(self.radius_most * self.units)

    @property
    def sum_max(self) -> int:
        """The largest magnitude of a number that is decrypted, noise included; the plaintext modulus is above twice it.

        A column of an exact sum is at most 2^P a record. A clipped one is at most a constant and a residual.
        """
        if self.is_exact:
            return self.records * self.units
        longest = self.weight_max + self.residual_most
        l2_squared = self.weight_max**2 + longest**2
        sigmas = [self.sigma_for(l2_squared, self.sum_rho), self.sigma_for(1, self.count_rho)]
        if self.start == "synopsis":
            sigmas.append(self.sigma_for(1, self.start_rho))
        return self.records * longest + ceil(_NOISE_REACH * max(map(self.total_std, sigmas)))
