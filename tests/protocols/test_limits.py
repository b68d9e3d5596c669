"""Limits of public values: both ends of each range are in it, and nothing beyond."""

from __future__ import annotations

import pytest

from cloister.errors import ConfigError, PrecisionError
from cloister.privacy.units import Budget, Unit
from cloister.protocols.multiparty_lloyd.agreement import Agreement
from cloister.protocols.synopsis.settings import Knobs, Settings

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


def test_a_synopsis_is_of_records_or_of_clients():
    for unit in Unit:
        budget = Budget(epsilon=1.0, delta=1e-6, unit=unit)
        if unit in (Unit.RECORD, Unit.CLIENT):
            assert Settings(**GUIDED | {"budget": budget}).client_level == (unit is Unit.CLIENT)
        else:
            with pytest.raises(ConfigError, match=r"budget\.unit must be record or client"):
                Settings(**GUIDED | {"budget": budget})


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
