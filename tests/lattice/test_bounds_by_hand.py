"""Every bound of docs/proofs/lattice.md and joint-cells.md, written a second time, and the cheapest choices."""

from __future__ import annotations

import itertools
import math

import pytest

from cloister.lattice import noise
from cloister.lattice.noise import choose_parameters, choose_switch_bits
from cloister.lattice.parameters import MODULUS_BITS_MAX, Load, Parameters
from cloister.lattice.product_plan import JointLoad, ProductNoise, choose_product_plan
from cloister.lattice.products import scaling_factor
from cloister.lattice.sampling import ERROR_STD

S = ERROR_STD
LOADS = [
    Load(sum_max=1000, terms=500, weight_max=30),
    Load(sum_max=10**6, terms=10**5, weight_max=256, public_key=True, failure_bits=60),
    Load(sum_max=2**20, terms=7000, weight_max=90, key_holders=5, public_key=True),
]
PARAMETERS = [Parameters.make(2048, 2, 4096), Parameters.make(8192, 5, 2**22)]


@pytest.mark.parametrize("load", LOADS, ids=str)
@pytest.mark.parametrize("parameters", PARAMETERS, ids=["small", "large"])
def test_bounds_of_answers(parameters, load):
    n, h, x = parameters.degree, load.key_holders, load.failure_bits * math.log(2)
    tail = math.sqrt(2 * (x + math.log(2)))
    assert load.tail == pytest.approx(tail)
    assert load.plaintext_modulus == next(2**b for b in range(64) if 2**b > 2 * load.sum_max)
    norm = math.sqrt(load.terms) * load.weight_max
    fresh = tail * S * norm
    if load.public_key:
        fresh += 2 * tail * math.sqrt(2 * (x + math.log(2 * n))) * S * math.sqrt(h * n * 2 / 3) * norm
    assert noise.error_bound(parameters, load) == pytest.approx(fresh)
    spread = math.sqrt(1 + 2 * math.sqrt(x / n) + 2 * x / n)
    again = tail * (spread * (S * S * math.sqrt(h * n) + S * math.sqrt(2 / 3 * h * n)) + S)
    assert noise.rerandomisation_bound(parameters, load) == pytest.approx(again)
    assert noise.answer_error_bound(parameters, load) == pytest.approx(fresh + again)
    longer = (x + math.log(2000)) / (x + math.log(2))
    assert noise.answer_error_bound(parameters, load, coefficients=1000) == pytest.approx(longer * (fresh + again))
    room = 7 / 8 * parameters.delta / 2 - (fresh + again)
    assert noise.flood_reach_max(parameters, load) == pytest.approx(room)
    assert noise.flood_std_max(parameters, load) == pytest.approx(max(0.0, room) / 9)
    hints = 10 * spread * math.sqrt(3 * n * h * (S * S + 2 / 3))
    assert noise.hint_flood_std_min(parameters, load, secrets=3) == pytest.approx(hints)
    assert noise.statistical_flood_bits(parameters, load, 33) == 33 + math.ceil(math.log2(fresh + again))
    moved = 0.5 + len(parameters.primes) * 2.0 ** (45 - 64)
    switched = moved * (1 + tail * math.sqrt(2 / 3 * h * n))
    assert noise.switching_bound(parameters, load, 45) == pytest.approx(switched)
    share = parameters.delta / parameters.modulus / 16
    fits = [bits for bits in range(1, 61) if noise.switching_bound(parameters, load, bits) <= share * 2**bits]
    assert choose_switch_bits(parameters, load) == fits[0]


@pytest.mark.parametrize("flood", [{}, {"flood_std_min": 2.0**30}, {"flood_distance_bits": 40}])
@pytest.mark.parametrize("load", LOADS, ids=str)
def test_the_first_rung_that_has_the_room_is_chosen(load, flood):
    found = choose_parameters(load, **flood)
    for degree, primes in noise._LADDER:
        if load.plaintext_modulus > 2 ** (min(27 * primes, MODULUS_BITS_MAX[degree]) - 3):
            continue
        parameters = Parameters.make(degree, primes, load.plaintext_modulus)
        reach = 9 * flood.get("flood_std_min", 0.0)
        if "flood_distance_bits" in flood:
            reach = max(reach, 2.0 ** noise.statistical_flood_bits(parameters, load, 40))
        if noise.flood_reach_max(parameters, load) > reach:
            break
    assert (found.degree, len(found.primes)) == (degree, primes)


def test_the_ladder_has_moduli_from_53_to_214_bits():
    made = [Parameters.make(degree, primes, 4) for degree, primes in noise._LADDER]
    assert [one.modulus_bits for one in made] == [53, 81, 106, 135, 162, 189, 214]
    assert [one.degree for one in made] == [2048, 4096, 4096, 8192, 8192, 8192, 8192]


@pytest.mark.parametrize("holders", [1, 3])
def test_bounds_of_products(holders):
    own = ProductNoise(degree=8192, plaintext_modulus=65537, key_holders=holders, polynomials=40, failure_bits=50)
    n, t, root = 8192, 65537, math.sqrt(8192)
    x = 50 * math.log(2) + math.log(40 * n / 2)
    spread = math.sqrt(1 + math.sqrt(2 * x) + x)
    assert own.spread == pytest.approx(spread)
    assert own.reach(3.0) == pytest.approx(3 * root * spread)
    assert own.tail == pytest.approx(math.sqrt(2 * math.log(2) * 51))
    secret, error = (math.sqrt(v * holders) * root * spread for v in (2 / 3, S * S))
    assert own.secret_reach == pytest.approx(secret)
    assert own.key_error_reach == pytest.approx(error)
    fresh = math.sqrt(2 / 3 * error**2 + S * S * (1 + secret**2))
    rounding = math.sqrt((1 + secret**2) / 12)
    assert own.fresh_proxy == pytest.approx(fresh)
    assert own.rounding_proxy == pytest.approx(rounding)
    assert own.message_reach == n / 2
    digits = math.sqrt(4 / 12) * 2**27 * (error if holders == 1 else 2 * error * (secret + 1))
    assert own.relinearisation_proxy(4) == pytest.approx(digits)
    assert own.uploaded_proxy(1) == pytest.approx(fresh)
    divided = math.sqrt((fresh / 1e6) ** 2 + rounding**2)
    assert own.uploaded_proxy(1e6) == pytest.approx(divided)
    assert own.uploaded_reach(1e6) == pytest.approx(divided * root * spread + n / 2)
    assert own.product_reach(5.0, 7.0, 4) == pytest.approx(t * 35 + digits * root * spread)
    assert own.divided_reach(1e9, 1e3) == pytest.approx(1e6 + rounding * root * spread)
    found = own.answer_bound(
        left=9e4,
        divisor_right=1e6,
        divisor=1e8,
        prime_count=4,
        weight_norm=300.0,
        left_cells=8,
        right_cells=5,
        blocks=3,
    )
    drawn = own.tail * divided * math.sqrt(5) + math.sqrt(n * 3) / 2 * 5
    both = own.tail * math.sqrt(40)
    wanted = 300 * ((t * 9e4 * 8 * drawn + both * digits) / 1e8 + both * rounding)
    assert found == pytest.approx(wanted)


@pytest.mark.parametrize("cells", [(8, 8), (4, 6, 5)])
@pytest.mark.parametrize("holders", [1, 2])
@pytest.mark.parametrize("smudge", [0, 20])
def test_a_plan_is_the_cheapest_of_all_chains_with_the_room(cells, holders, smudge):
    load = JointLoad(records=20_000, cells=cells, sum_max=2**17, factor_max=40, key_holders=holders)
    assert load.blocks == 3
    products = cells[0] * cells[1] + (math.prod(cells) if len(cells) == 3 else 0)
    assert load.noise.polynomials == 3 * (sum(cells) + products)
    plan = choose_product_plan(load, smudge_distance_bits=smudge, smudgers=2)
    t = load.plaintext_modulus
    primes = plan.parameters.primes

    def rest(level):
        return float(math.prod(primes[level:]))

    own, levels = load.noise, plan.levels
    left = own.uploaded_reach(rest(levels[0]))
    if len(cells) == 3:
        reach = own.product_reach(left, own.uploaded_reach(rest(levels[0])), levels[0])
        left = own.divided_reach(reach, math.prod(primes[levels[1] : levels[0]]))
    answer = own.answer_bound(
        left=left,
        divisor_right=rest(levels[-2]),
        divisor=float(math.prod(primes[levels[-1] : levels[-2]])),
        prime_count=levels[-2],
        weight_norm=40 * t / 2 * math.sqrt(3 * 8192),
        left_cells=math.prod(cells[:-1]),
        right_cells=cells[-1],
        blocks=3,
    )
    single = Load(sum_max=load.sum_max, terms=1, weight_max=1, key_holders=holders)
    again = noise.rerandomisation_bound(plan.final, single)
    assert plan.error_bound == pytest.approx(answer + again + t / 2)
    assert plan.flood_reach_max == pytest.approx(7 / 8 * plan.final.delta / 2 - plan.error_bound)
    assert plan.holder_factor(1) == 1
    divided = math.prod(primes[levels[-1] : levels[0]])
    assert plan.holder_factor(0) == scaling_factor(plan.final) * divided % t
    cheaper = []
    for top in range(len(cells), 9):
        for chosen in itertools.combinations(range(top, 0, -1), len(cells)):
            made = type(plan)(load=load, parameters=Parameters.make(8192, top, t), levels=chosen)
            if t > math.prod(made.parameters.primes[: chosen[-1]]) // 4:
                continue
            needed = 2 * 2.0 ** (math.ceil(math.log2(made.error_bound)) + smudge) if smudge else 0.0
            if made.flood_reach_max > needed:
                counts = [math.prod(cells[: place + 2]) for place in range(len(cells) - 1)]
                work = sum(count * level**2 for count, level in zip(counts, chosen, strict=False))
                cheaper.append((chosen[-1], work, top, chosen))
    assert min(cheaper)[3] == levels
    assert min(cheaper)[2] == len(primes)
