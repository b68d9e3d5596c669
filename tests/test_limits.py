"""Limits of public values: both ends of each range are in it, and nothing beyond; and what sizes follow from them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cloister.aggregation.terms import least_quorum
from cloister.crypto import SeededEntropy, Stream
from cloister.crypto.secret_sharing import PRIME, combine_shares, split_secret
from cloister.errors import ConfigError, LocalProtocolError, PrecisionError, RemoteProtocolError
from cloister.field import FIELD61, LagrangeCode
from cloister.field.prime_field import most_bits
from cloister.joint_noise import JointLaplace
from cloister.numeric import RING32, RING64, FixedPoint, find_reach
from cloister.privacy.encoder import SumCountEncoder
from cloister.privacy.mechanisms import DiscreteGaussian, DiscreteGaussianSum, DiscreteLaplace
from cloister.privacy.placement import Shared
from cloister.privacy.simulation_sampler import SimulationSampler
from cloister.privacy.units import Budget, PersonBudget, Sensitivity, Unit
from cloister.protocols.align.terms import Mode, NormalForm
from cloister.protocols.align.terms import Terms as Aligned
from cloister.protocols.multiparty_lloyd.agreement import Agreement
from cloister.protocols.serverless.terms import JointNoise
from cloister.protocols.serverless.terms import Terms as Sum
from cloister.protocols.synopsis.settings import Knobs, Settings
from tests.aggregation.sums import make_terms

LLOYD = {
    "variant": "masked-sum-count",
    "parties": 3,
    "clusters": 2,
    "dimensions": 2,
    "iterations": 4,
    "max_records": 1000,
    "directory": tuple(bytes([i] * 32) for i in range(3)),
}
NAIVE = LLOYD | {"variant": "naive", "start_by": "coordinator"}
GUIDED = {"clusters": 3, "dimensions": 2, "budget": Budget(epsilon=1.0, delta=1e-6), "parties": 2}


@pytest.mark.parametrize(
    ("make", "base", "name", "least", "most"),
    [
        (Agreement, LLOYD, "clusters", 1, None),
        (Agreement, LLOYD, "dimensions", 1, None),
        (Agreement, LLOYD, "iterations", 1, 2**20 - 1),
        (Agreement, LLOYD, "members_min", 1, 3),
        (Agreement, LLOYD | {"fractional_bits": 1}, "max_records", 1, 2**31),
        (Agreement, NAIVE, "tolerance", 0.0, 1e308),
        (Settings, GUIDED, "clusters", 1, 1000),
        (Settings, GUIDED | {"choose_k": True}, "clusters", 2, 1000),
        (Settings, GUIDED, "dimensions", 1, 2000),
        (Settings, GUIDED, "records", 1, None),
        (Settings, GUIDED, "parties", 1, None),
        (Knobs, {}, "cells_max", 16, 10**6),
        (Knobs, {}, "rounds_min", 1, 8),
        (Knobs, {}, "rounds_max", 2, 50),
        (Knobs, {}, "restarts", 1, 1000),
        (Knobs, {}, "count_share", 1e-4, 0.95 - 0.36),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_both_ends_are_in_the_range_and_nothing_beyond(make, base, name, least, most):
    step = 1e-3 if isinstance(least, float) else 1
    for value in (least, most):
        if value is not None:
            assert getattr(make(**base | {name: value}), name) == value
    for value in (least - step, None if most is None else (most + step if most < 1e300 else float("inf"))):
        if value is not None:
            with pytest.raises(ConfigError, match=r"must|leave"):
                make(**base | {name: value})


def test_what_a_lloyd_session_must_agree_on():
    with pytest.raises(ConfigError, match="directory must be one identity for each party"):
        Agreement(**LLOYD | {"directory": LLOYD["directory"][:2]})
    for name in ("variant", "initialisation", "start_by"):
        with pytest.raises(ConfigError, match=f"{name} must be one of"):
            Agreement(**LLOYD | {name: "other"})
    with pytest.raises(ConfigError, match="tolerance must be 0"):
        Agreement(**LLOYD | {"tolerance": 0.1})
    with pytest.raises(ConfigError, match="naive must start"):
        Agreement(**NAIVE | {"start_by": "parties"})
    with pytest.raises(ConfigError, match="must come with a noise plan"):
        Agreement(**LLOYD | {"variant": "mask-noise-average"})
    with pytest.raises(ConfigError, match="start must be empty"):
        Agreement(**LLOYD | {"start": ((0.0, 0.0), (0.1, 0.1))})
    given = LLOYD | {"initialisation": "given"}
    Agreement(**given | {"start": ((-1.0, 1.0), (0.1, 0.1))})
    for start in (((0.0, 0.0),), ((0.0,), (0.1,)), ((0.0, 0.0), (0.1, 0.1), (0.2, 0.2))):
        with pytest.raises(ConfigError, match="start must have 2 rows of 2 numbers"):
            Agreement(**given | {"start": start})
    with pytest.raises(ConfigError, match="within the public bounds"):
        Agreement(**given | {"start": ((0.0, 1.0001), (0.1, 0.1))})
    Agreement(**LLOYD | {"max_records": 2**31, "fractional_bits": 21})
    with pytest.raises(PrecisionError, match=r"below 2\^53"):
        Agreement(**LLOYD | {"max_records": 2**31, "fractional_bits": 22})


def test_a_synopsis_is_of_records_of_persons_or_of_clients():
    for unit in (Unit.RECORD, Unit.CLIENT):
        budget = Budget(epsilon=1.0, delta=1e-6, unit=unit)
        assert Settings(**GUIDED | {"budget": budget}).client_level == (unit is Unit.CLIENT)
    persons = Settings(**GUIDED | {"budget": PersonBudget(epsilon=1.0, delta=1e-6)})
    assert not persons.client_level
    assert persons.noise_std > 0
    with pytest.raises(ConfigError, match="must say how many records of each count"):
        _ = replace(persons, budget=Budget(epsilon=1.0, delta=1e-6, unit=Unit.PERSON)).noise_std


@pytest.mark.parametrize(
    ("k", "d", "cells"), [(3, 5, 6000), (3, 6, 6000), (2, 100, 6000), (50, 100, 6000), (50, 9, 16)]
)
def test_axes_and_slots_of_a_synopsis(k, d, cells):
    public = Settings(**GUIDED | {"clusters": k, "dimensions": d, "knobs": Knobs(cells_max=cells)})
    axes = min(d, 2 * k, {6000: 13, 16: 5}[cells]) if d > 5 else 0
    assert public.grid_axes_most == axes
    slots = [(slot.name, slot.length) for slot in public.slots]
    before = [("number of records", 1)]
    if d > 5:
        before += [("sum and number of all records", d + 1), ("histogram of distances from the middle", 24)]
        before += [("sums and second moments", d + d * (d + 1) // 2)]
    else:
        before += [("histogram of each column", 16 * d)]
    rounds = [(f"Lloyd round {t}", k * (d + 2)) for t in range(1, 9)]
    assert slots == [*before, ("histogram", cells), *rounds]


TWO = {"digest": b"", "directory": (b"a", b"b"), "rounds": 1, "length": 2, "ring": RING32, "members_min": 2}
ALIGN = {"mode": Mode.UNION, "directory": (b"a", b"b")}
POINT = FixedPoint(4)


def shared(**options):
    return Shared(**{"parties": 4, "colluding_max": 1} | options)


@pytest.mark.parametrize(
    ("make", "name", "least", "most"),
    [
        (lambda **o: Sum(**TWO | o), "rounds", 1, 2**20 - 1),
        (lambda **o: Sum(**TWO | o), "members_min", 2, 2),
        (lambda **o: Aligned(**ALIGN | o), "part_elements", 1, 2**20),
        (
            lambda **o: JointLaplace(**{"scale": 1.0, "entries": 3, "parties": 2, "ring": RING64} | o),
            "parties",
            2,
            None,
        ),
        (
            lambda **o: JointLaplace(**{"scale": 1.0, "entries": 3, "parties": 2, "ring": RING64} | o),
            "entries",
            1,
            None,
        ),
        (shared, "parties", 2, None),
        (shared, "colluding_max", 0, 3),
        (shared, "quorum", 2, 4),
        (
            lambda **o: SumCountEncoder(**{"dimensions": 2, "fixed_point": POINT, "count_weight": 3} | o),
            "dimensions",
            1,
            None,
        ),
        (
            lambda **o: SumCountEncoder(**{"dimensions": 2, "fixed_point": POINT, "count_weight": 3} | o),
            "count_weight",
            1,
            None,
        ),
        (lambda **o: Budget(**{"epsilon": 1.0} | o), "epsilon", 1e-6, 1e6),
        (lambda **o: Budget(**{"epsilon": 1.0} | o), "delta", 0.0, 1 - 1e-9),
        (lambda **o: DiscreteGaussianSum(**{"sigma": 1.0, "shares": 2} | o), "shares", 1, None),
        (FixedPoint, "fractional_bits", 1, 30),
        (
            lambda **o: LagrangeCode(**{"field": FIELD61, "clients": 9, "segments": 2, "privacy": 2} | o),
            "segments",
            1,
            3,
        ),
        (
            lambda **o: LagrangeCode(**{"field": FIELD61, "clients": 9, "segments": 2, "privacy": 2} | o),
            "privacy",
            1,
            3,
        ),
        (
            lambda **o: LagrangeCode(**{"field": FIELD61, "clients": 9, "segments": 2, "privacy": 2} | o),
            "clients",
            7,
            None,
        ),
        (lambda bits: most_bits(FIELD61, dimensions=1, records=bits), "bits", 1, 2**32 - 1),
        (lambda bits: most_bits(FIELD61, dimensions=bits, records=1), "bits", 1, None),
        (lambda bits: find_reach(bits, 4), "bits", 2.0 + 1e-9, 2**50),
    ],
)
def test_both_ends_of_other_ranges(make, name, least, most):
    step = 1e-8 if isinstance(least, float) else 1
    for value in (least, least if most is None else most):
        make(**{name: value})
    for value in (least - step, least - step if most is None else most * (1 + 1e-6) if step < 1 else most + step):
        with pytest.raises(ConfigError):
            make(**{name: value})


@pytest.mark.parametrize("make", [lambda x: DiscreteGaussian(sigma=x), lambda x: DiscreteLaplace(scale=x)])
def test_scales_of_noise_are_positive_and_finite(make):
    make(1e-300)
    for scale in (0.0, -1.0, float("inf"), float("nan")):
        with pytest.raises(ConfigError, match="must"):
            make(scale)


def test_noise_that_could_leave_64_bits_is_refused():
    sampler = SimulationSampler(Stream.from_seed(1, "limits"))
    for scale, fits in ((2.0**40, True), (2.0**40 * (1 + 1e-9), False)):
        for mechanism in (DiscreteGaussian(sigma=scale), DiscreteGaussianSum(sigma=scale / 2, shares=4)):
            if fits:
                assert len(sampler.draw(mechanism, 1)) == 1
            else:
                with pytest.raises(PrecisionError, match=r"at most 2\^40"):
                    sampler.draw(mechanism, 1)
    assert len(sampler.draw(DiscreteGaussian(sigma=1.0), 0)) == 0
    with pytest.raises(ConfigError, match="at least 0"):
        sampler.draw(DiscreteGaussian(sigma=1.0), -1)


@pytest.mark.parametrize(
    ("l1", "l2_squared", "fits"), [(0, 0, True), (3, 9, True), (3, 3, True), (3, 2, False), (3, 10, False)]
)
def test_norms_of_integer_vectors(l1, l2_squared, fits):
    if fits:
        Sensitivity(l1=l1, l2_squared=l2_squared)
        return
    with pytest.raises(ConfigError, match="integer vectors"):
        Sensitivity(l1=l1, l2_squared=l2_squared)


@pytest.mark.parametrize(
    ("kind", "trim", "case", "fits"),
    [
        ("text", True, True, True),
        ("integer", True, False, True),
        ("integer", False, True, False),
        ("raw", False, False, True),
        ("raw", True, False, False),
        ("raw", False, True, False),
        ("other", False, False, False),
    ],
)
def test_forms_of_ids(kind, trim, case, fits):
    if fits:
        NormalForm(kind=kind, trim=trim, ignore_case=case)
        return
    with pytest.raises(ConfigError):
        NormalForm(kind=kind, trim=trim, ignore_case=case)


@pytest.mark.parametrize(("n", "t"), [(2, 0), (5, 1), (6, 1), (9, 4), (300, 100)])
def test_what_follows_from_the_terms_of_a_sum(n, t):
    """2q > n + t; and the bytes of what travels, part by part."""
    quorum = next(q for q in range(1, n + 2) if 2 * q > n + t)
    assert least_quorum(n, t) == quorum
    for ring, words in ((RING32, 4), (RING64, 2)):
        terms = make_terms(n, quorum, t, ring=ring)
        assert terms.check_words == words
        assert terms.body_bytes(10) == (10 + words) * ring.bits // 8
        shares = (t + 1) * (33 * n + 16 + 8) if quorum < n else 0
        assert terms.opening_bytes == n * (32 + 16 + 8) + shares + n // 8 + 32 + 64
        assert terms.vote_bytes == n * (64 + 16 + 8)
        assert terms.restorers == t + 1
        assert replace(terms, masks="common").opening_bytes == n // 8 + 64
        assert not replace(terms, restores=False).shares_masks
    for members in (quorum - 1, n + 1):
        with pytest.raises(ConfigError, match="no two sums of a round"):
            make_terms(n, members, t)


def test_what_follows_from_the_terms_of_a_ring():
    terms = Sum(**TWO | {"length": 10})
    assert terms.words == 14
    assert terms.vector_box_bytes == 14 * 4 + 16
    room = 64 * 2**20 - 4096 - terms.sums.vote_bytes
    assert terms.backlog_max == room // (72 + terms.sums.opening_bytes)
    assert terms.steps == 3 + 1 + (2 + 2) + 2
    largest = (room - terms.sums.opening_bytes - 16) // 4 - 4
    assert Sum(**TWO | {"length": largest}).backlog_max == 1
    with pytest.raises(ConfigError, match="one round's sum must fit"):
        Sum(**TWO | {"length": largest + 1})


@pytest.mark.parametrize("parties", [2, 40])
def test_what_joint_noise_takes_fits_a_message_to_the_byte(parties, monkeypatch):
    given = {
        "directory": tuple(bytes([i]) for i in range(parties)),
        "members_min": parties,
        "joint": JointNoise(scale=8.0),
    }
    terms = Sum(**TWO | given | {"length": 500})
    plan = terms.plan_noise(parties)
    opened = (parties - 1) * (max(plan.opening_bytes) + 16 + 8) + terms.vector_box_bytes
    assert (opened > plan.dealt_bytes) == (parties == 40)
    needed = max(plan.dealt_bytes, opened) + 4096
    monkeypatch.setattr("cloister.protocols.serverless.terms.DEFAULT_LIMIT_BYTES", needed)
    Sum(**TWO | given | {"length": 500})
    monkeypatch.setattr("cloister.protocols.serverless.terms.DEFAULT_LIMIT_BYTES", needed - 1)
    with pytest.raises(ConfigError, match="what is dealt and opened"):
        Sum(**TWO | given | {"length": 500})


def test_parts_of_an_alignment():
    terms = Aligned(**ALIGN | {"directory": (b"a", b"b", b"c"), "part_elements": 10})
    assert [terms.count_parts(n) for n in (0, 1, 10, 11, 20, 21)] == [0, 1, 1, 2, 2, 3]
    assert [terms.slice_part(part, 25) for part in range(3)] == [slice(0, 10), slice(10, 20), slice(20, 25)]
    assert [terms.count_part_bytes(part, 25) for part in range(3)] == [320, 320, 160]
    assert [[terms.owner_at(party, hop) for hop in range(3)] for party in (1, 2, 3)] == [
        [1, 3, 2],
        [2, 1, 3],
        [3, 2, 1],
    ]
    assert all(terms.carrier_at(terms.owner_at(p, h), h) == p for p in (1, 2, 3) for h in range(3))
    others = [
        replace(terms, mode=Mode.INTERSECTION),
        replace(terms, form=NormalForm(trim=True)),
        replace(terms, form=NormalForm(ignore_case=True)),
        replace(terms, form=NormalForm(kind="raw")),
        replace(terms, part_elements=11),
        replace(terms, directory=(b"a", b"b", b"d")),
    ]
    assert len({terms.digest, *(other.digest for other in others)}) == 7


def test_shares_of_secrets():
    entropy = SeededEntropy(1, "shares")
    secret = bytes(range(32))
    for threshold, holders in ((1, [1]), (3, [1, 5, 9]), (2, [1, 2, 3, 4])):
        shares = split_secret(secret, threshold=threshold, holders=holders, entropy=entropy)
        assert combine_shares({number: shares[number] for number in holders[:threshold]}) == secret
    for wrong in ({"secret": bytes(31)}, {"threshold": 0}, {"threshold": 4}, {"holders": [0, 1, 2]}):
        given = {"secret": secret, "threshold": 2, "holders": [1, 2, 3]} | wrong
        with pytest.raises(LocalProtocolError, match="must be split"):
            split_secret(given["secret"], threshold=given["threshold"], holders=given["holders"], entropy=entropy)
    good = split_secret(secret, threshold=2, holders=[1, 2], entropy=entropy)
    for wrong in ({}, {0: good[1], 1: good[2]}, good | {2: good[2][:-1]}, good | {2: PRIME.to_bytes(33, "little")}):
        with pytest.raises(RemoteProtocolError, match="shares must be"):
            combine_shares(wrong)
    assert len(combine_shares({1: (2**256 - 1).to_bytes(33, "little")})) == 32
    with pytest.raises(RemoteProtocolError, match="do not give a key"):
        combine_shares({1: (2**256).to_bytes(33, "little")})
