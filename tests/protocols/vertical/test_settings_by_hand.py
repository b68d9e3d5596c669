"""Every number that follows from a vertical job's settings, against formulas written a second time; and limits."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from cloister.errors import ConfigError
from cloister.privacy.calibration import SLACK, rho_for
from cloister.privacy.placement import Shared
from cloister.privacy.units import Budget
from cloister.protocols.vertical.settings import ALICE, Knobs, Settings
from tests.protocols.vertical.tables import make

JOBS = [
    {"alice": alice, "encrypted": encrypted, "clusters": clusters, "epsilon": epsilon, "start": start, "n": n}
    for alice, encrypted in [
        ((0,), ((1,),)),
        ((), ((0, 1),)),
        ((0, 1), ((2, 3),)),
        ((0, 1, 2), ((3, 4, 5),)),
        ((0, 1, 2), ((3,), (4, 5))),
        ((0,), ((1,), (2, 3, 4), (5,))),
    ]
    for clusters, epsilon, start, n in [
        (2, 1.0, "synopsis", 400),
        (9, 4.0, "synopsis", 50_000),
        (9, 0.1, "random", 5_000),
        (51, 30.0, "synopsis", 10**6),
        (8, None, "synopsis", 3_000),
        (51, None, "random", 3_000),
    ]
]


def bins_of(columns: int, cells: int) -> tuple[int, ...]:
    """The axes' bins: as even as can be, the first ones longer, not more than ``cells`` in all."""
    least = int(cells ** (1 / columns) + 1e-9)
    longer = max(j for j in range(columns) if (least + 1) ** j * least ** (columns - j) <= cells)
    return tuple(least + (i < longer) for i in range(columns))


class ByHand:
    """The settings of docs/proofs/vertical.md and docs/study-vertical.md, computed anew; no `Settings` in sight."""

    def __init__(self, *, alice, encrypted, clusters, epsilon, start, n):
        self.alice, self.encrypted, self.k, self.exact = alice, encrypted, clusters, epsilon is None
        self.joint_start, self.n = start == "synopsis", n
        self.d = len(alice) + sum(map(len, encrypted))
        self.rounds = (10 if self.exact else 2) if self.joint_start else 10
        diagonal = math.sqrt(self.d)
        self.radius = diagonal * (min(0.75, 1 / clusters ** (1 / self.d)) if self.joint_start else 0.6)
        if not self.exact:
            self.split(Budget(epsilon=epsilon, delta=1e-6 * 15 / 16))
        self.bits = self.choose_bits()
        self.units = 2**self.bits
        self.weight = self.units if self.exact else math.ceil(self.radius * self.units)

    def split(self, noise_budget):
        everything = rho_for(noise_budget)
        self.flood = everything / 256
        rho = everything - self.flood
        self.makers = [*range(len(self.encrypted))]
        if self.joint_start and self.alice:
            self.makers.append(ALICE)
        grids = [maker for maker in self.makers if self.grid(maker)]
        means = [maker for maker in self.makers if not self.grid(maker)]
        self.books = {grid: 0.02 * rho / len(grids) for grid in grids} | {m: 0.2 * rho / len(means) for m in means}
        left = rho - sum(self.books.values())
        self.start = 0.6 * left if self.joint_start else 0.0
        each = (left - self.start) / self.rounds
        self.count, self.sum = 0.05 * each, 0.95 * each

    def columns(self, maker):
        return len(self.alice if maker == ALICE else self.encrypted[maker])

    def grid(self, maker):
        columns = self.columns(maker)
        if maker == ALICE:
            return columns <= 2
        return columns == 1 or (columns == 2 and (self.exact or self.k <= 8))

    def cells(self, holder):
        """m_h: 16 or 64 of a single holder, more for many clusters; 16 each of two, 8 each of three."""
        columns, holders = self.columns(holder), len(self.encrypted)
        if holders == 1:
            if self.k <= 8:
                m = 16 if columns == 1 else 64
            else:
                m = 256 if self.exact and (columns == 2 or self.k > 50) else 64
        else:
            m = {2: 16, 3: 8}[holders]
        return math.prod(bins_of(columns, m)) if self.grid(holder) else m

    def choose_bits(self):
        usual = 16 if self.exact else 8
        if len(self.encrypted) == 1:
            return usual
        longest = 1.0 if self.exact else max(self.radius, 1.0)
        return max(bits for bits in range(4, usual + 1) if bits == 4 or self.n * longest * 2**bits <= 2**25.5)

    def sigma(self, l2_squared, rho):
        return math.sqrt(l2_squared / 2 / rho) * SLACK

    def std(self, sigma):
        """Two holders, one of whom may tell: each adds the whole noise."""
        return max(math.sqrt(2) * sigma, 0.01)

    def start_cells(self):
        if not self.joint_start:
            return 1.0
        most = max(256, 16 * self.k)
        if self.exact:
            return most
        signal = self.n / self.std(self.sigma(1, self.start))
        return min(max((signal / 3) ** (2 * self.d / (2 + self.d)), 64, 8 * self.k), most)

    def groups(self, holder):
        columns, cells = self.columns(holder), self.cells(holder)
        if not self.grid(holder):
            return (min(cells, max(1, round(self.start_cells() ** (columns / self.d)))),)
        each = self.start_cells() ** (1 / self.d)
        return tuple(math.ceil(bins / max(1, round(bins / each))) for bins in bins_of(columns, cells))

    def all_groups(self):
        return math.prod(math.prod(self.groups(holder)) for holder in range(len(self.encrypted)))

    def alice_cells(self):
        if not (self.joint_start and self.alice):
            return 1
        wanted = max(2, round(self.start_cells() / self.all_groups()))
        return wanted if self.grid(ALICE) else min(wanted, 64)

    def residual(self):
        if len(self.encrypted) > 1 or not self.exact:
            return 0
        return 2 * self.units * math.ceil(math.sqrt(self.columns(0)))

    def largest(self):
        if self.exact:
            return self.n * self.units
        noisy = [self.sigma(2 * self.weight**2, self.sum), self.sigma(1, self.count)]
        noisy += [self.sigma(1, self.start)] if self.joint_start else []
        return self.n * self.weight + math.ceil(16 * max(map(self.std, noisy)))


@pytest.mark.parametrize("job", JOBS, ids=lambda job: "-".join(map(str, job.values())))
def test_every_public_number_is_the_one_that_is_computed_by_hand(job):
    own, hand = make(job["n"], **{key: value for key, value in job.items() if key != "n"}), ByHand(**job)
    assert own.dimensions == hand.d
    assert own.rounds_made == hand.rounds
    assert [own.cells_of(holder) for holder in range(len(hand.encrypted))] == [
        hand.cells(holder) for holder in range(len(hand.encrypted))
    ]
    assert own.joint_cells == math.prod(hand.cells(holder) for holder in range(len(hand.encrypted)))
    assert (own.precision_bits, own.units, own.weight_max) == (hand.bits, hand.units, hand.weight)
    assert own.radius_most == pytest.approx(hand.radius)
    assert own.start_cells == pytest.approx(hand.start_cells())
    assert [own.groups_of(h) for h in range(len(hand.encrypted))] == [
        hand.groups(h) for h in range(len(hand.encrypted))
    ]
    assert own.alice_cells == hand.alice_cells()
    assert own.residual_most == hand.residual()
    assert own.sum_max == pytest.approx(hand.largest(), rel=1e-9)
    shapes = {party: own.shape_of(party) for party in (*range(len(hand.encrypted)), ALICE)}
    for party, shape in shapes.items():
        wanted = hand.alice_cells() if party == ALICE else hand.cells(party)
        bins = bins_of(hand.columns(party), wanted) if own.is_grid(party) and hand.columns(party) and wanted > 1 else ()
        made = party != ALICE or bool(hand.joint_start and hand.alice)
        assert (shape.columns, shape.bins) == ((hand.columns(party), bins) if made else (0, ()))
        assert shape.cells == (math.prod(bins) if bins else wanted)
    histogram = shapes[ALICE].cells * hand.all_groups() if hand.joint_start else 0
    assert own.histogram_length == histogram
    rounds = (hand.k * (hand.d + 1),) * hand.rounds
    assert own.lengths == ((histogram, *rounds) if hand.joint_start else rounds)


@pytest.mark.parametrize(
    "job", [job for job in JOBS if job["epsilon"]], ids=lambda job: "-".join(map(str, job.values()))
)
def test_every_part_of_the_budget_is_the_one_that_is_computed_by_hand(job):
    own, hand = make(job["n"], **{key: value for key, value in job.items() if key != "n"}), ByHand(**job)
    assert sorted(own.codebook_makers) == sorted(hand.makers)
    assert own.rare_delta == pytest.approx(1e-6 / 16)
    assert own.flood_rho == pytest.approx(hand.flood)
    assert {maker: own.codebook_rho_of(maker) for maker in hand.makers} == pytest.approx(hand.books)
    assert own.codebooks_rho == pytest.approx(sum(hand.books.values()))
    assert own.start_rho == pytest.approx(hand.start)
    assert (own.sum_rho, own.count_rho) == pytest.approx((hand.sum, hand.count))
    assert own.round_rho == pytest.approx(hand.sum + hand.count)
    assert own.sigma_for(7, hand.sum) == pytest.approx(hand.sigma(7, hand.sum), rel=1e-12)
    assert own.total_std(3.0) == pytest.approx(math.sqrt(2) * 3.0)
    assert own.total_std(1e-3) == 0.01


def test_residuals_of_a_private_job_reach_as_far_as_an_offset():
    own = make(100, encrypted=[(1, 2)], residuals=True)
    assert own.residual_most == own.weight_max
    longest = 2 * own.weight_max
    noise = own.total_std(own.sigma_for(own.weight_max**2 + longest**2, own.sum_rho))
    assert own.sum_max == 100 * longest + math.ceil(16 * noise)


GOOD = {
    "clusters": 3,
    "columns_alice": (0,),
    "columns_encrypted": ((1,),),
    "records": 100,
    "budget": Budget(epsilon=1.0, delta=1e-6),
}
EXACT = {"budget": None}
THREE = {"columns_encrypted": ((1,), (2,), (3,))}


@pytest.mark.parametrize(
    ("base", "name", "least", "most", "step"),
    [
        ({}, "clusters", 2, 100, 1),
        ({}, "records", 1, 2**32 - 1, 1),
        ({}, "rounds", 1, 100, 1),
        ({}, "cells", 2, 256, 1),
        ({}, "fractional_bits", 4, 12, 1),
        (EXACT, "fractional_bits", 4, 20, 1),
        ({}, "flood_share", 1e-6, 0.5, 1e-9),
        ({}, "delta_share", 1e-6, 0.5, 1e-9),
        (THREE, "cells", 2, 10, 1),
    ],
)
def test_both_ends_of_a_range_are_in_it_and_nothing_beyond(base, name, least, most, step):
    for value in (least, most):
        assert getattr(Settings(**GOOD | base | {name: value}), name) == value
    for value in (least - step, most + step):
        with pytest.raises(ConfigError, match=r"cells must be|must be from .*; got"):
            Settings(**GOOD | base | {name: value})


def test_so_many_columns_and_no_more():
    def hold(d):
        return Settings(**GOOD | {"columns_encrypted": (tuple(range(1, d)),)})

    assert hold(2000).dimensions == 2000
    with pytest.raises(ConfigError, match="columns must be at most 2000; got 2001"):
        hold(2001)


@pytest.mark.parametrize(
    ("name", "least", "most", "step"),
    [
        ("start_share", 1e-4, 0.9, 1e-9),
        ("count_share", 1e-4, 0.9, 1e-9),
        ("codebook_share", 1e-4, 0.9, 1e-9),
        ("box_share", 0, 0.5, 1e-9),
        ("radius_factor", 0.1, 10, 1e-9),
        ("restarts", 1, 1000, 1),
        ("start_cells_least", 2, 256, 1),
        ("start_cells_most", 64, 4096, 1),
    ],
)
def test_both_ends_of_a_knob_are_in_its_range_and_nothing_beyond(name, least, most, step):
    for value in (least, most):
        Knobs(**{name: value})
    for value in (least - step, most + step):
        with pytest.raises(ConfigError, match=f"{name}.* must be"):
            Knobs(**{name: value})


def test_codebooks_leave_a_part_of_the_budget():
    Knobs(box_share=0.5, codebook_share=0.45)
    with pytest.raises(ConfigError, match=r"at most 0\.95 together"):
        Knobs(box_share=0.5, codebook_share=0.451)


def test_more_who_decrypt_add_to_the_noise_and_its_least_stays():
    own = replace(make(100), placement=Shared(parties=4, colluding_max=1))
    assert own.total_std(30.0) == pytest.approx(30.0 * math.sqrt(4 / 3), rel=1e-6)
    assert own.total_std(None) == 0.0
