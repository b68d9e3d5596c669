"""The printed report: says what a reader needs, in plain text that fits 100 columns."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.report.examples import make_result

from cloister.data import Column
from cloister.privacy.accounting import Accountant
from cloister.privacy.card import PrivacyCard, make_card
from cloister.privacy.mechanisms import DiscreteGaussian, Release
from cloister.privacy.placement import Aggregator, Local, Placement
from cloister.privacy.units import Budget, LeakageTable, Sensitivity
from cloister.report.folder import write_result
from cloister.report.layout import (
    choose_noun,
    format_bytes,
    format_count,
    format_noisy_count,
    format_number,
    format_quantity,
    format_seconds,
    format_uncertain,
    format_value,
    make_console,
)
from cloister.report.result import Evaluation, KChoice, PartyTraffic, Result
from cloister.report.sizes import Sizes
from cloister.report.text import print_report


def render(result: Result, **options: Any) -> str:
    out = io.StringIO()
    print_report(result, make_console(out), **options)
    return out.getvalue()


def test_the_report_tells_everything(tmp_path: Path) -> None:
    result = make_result()
    text = render(result, folder=write_result(result, tmp_path / "r"))
    rows = [" ".join(line.split()) for line in text.splitlines()]
    assert "age systolic_bp bmi hba1c" in rows
    assert "cluster 1 72.00 160.0 26.50 5.80" in rows
    assert "this run 0.15 1.5000" in rows
    assert "one joint table, best of 10 starts 0.1 1" in rows
    assert "no party could" in text
    assert "coordinator not the centres (it sees masked numbers)" in rows
    assert "every party exactly the total of every cluster" in rows
    assert "What breaks it: the coordinator and one party put together what they saw." in rows
    assert "harbour 2.3 KiB 19.5 KiB 13 14 0" in rows
    assert "On the network regWAN100 the messages would take 1.23 s (simulated)." in rows
    assert "- A seed was given, so the masks are not secret." in rows
    assert str(tmp_path / "r" / "result.json") in text
    assert "\x1b" not in text


def test_what_was_not_computed_is_not_told() -> None:
    text = render(make_result(evaluation=None, network=None, notes=(), ring_bits=None))
    for word in ("Loss", "network", "Notes", "Written", "ring"):
        assert word not in text
    assert "no masks" in text


def rows_of(text: str) -> list[str]:
    return [" ".join(line.split()) for line in text.splitlines()]


def make_sizes(*clusters: float, noise: float = 0.0, total_noise: float = 0.0, unit: str = "records") -> Sizes:
    return Sizes(  # type: ignore[arg-type]
        unit=unit, clusters=clusters, noise=(noise,) * len(clusters), total=sum(clusters), total_noise=total_noise
    )


def test_sizes_say_how_much_of_them_is_noise_and_what_they_add_up_to() -> None:
    result = make_result(sizes=make_sizes(746.2, 0.0, 98_765.0, 100.0, noise=60.0, total_noise=130.0))
    rows = rows_of(render(result))
    assert "records age systolic_bp bmi hba1c" in rows
    assert "cluster 0 750 ± 60 33.00 116.0 23.50 5.20" in rows
    assert "cluster 1 fewer than 130 72.00 160.0 26.50 5.80" in rows
    assert "cluster 3 fewer than 230 29.00 120.0 23.00 10.40" in rows, "two deviations above what was found"
    said = " ".join(rows)
    assert "± is one standard deviation of the noise" in said
    assert "lost in the noise" in said
    assert "The sizes add up to 99,610 ± 130 records, but for rounding." in said
    clear = " ".join(rows_of(render(make_result(sizes=make_sizes(9.0, 9.0, 9.0, 9.0, noise=0.2)))))
    assert "9 ± 1" in clear
    assert "lost" not in clear
    exact = render(make_result(sizes=make_sizes(1, 2, 3, 4)))
    assert "The sizes add up to 10 records." in exact
    assert "±" not in exact


def test_where_the_number_of_records_is_lost_sizes_are_parts_of_all() -> None:
    shares = make_sizes(0.5, 0.4, 0.1, 0.0, noise=0.07, unit="share")
    rows = rows_of(render(make_result(sizes=shares)))
    assert "share age systolic_bp bmi hba1c" in rows
    assert "cluster 0 50 ± 7 % 33.00 116.0 23.50 5.20" in rows
    assert "cluster 2 less than 25 % 57.00 139.0 36.00 8.80" in rows
    assert "How many records there are is lost in the noise." in " ".join(rows)
    lost = make_result(sizes=make_sizes(0.5, 0.4, 0.1, 0.0, noise=0.6, unit="share"))
    rows = rows_of(render(lost))
    assert "cluster 0 lost in noise 33.00 116.0 23.50 5.20" in rows
    assert "Such a cluster may not be there at all, and the ± of its centre may be too small." in " ".join(rows)
    few = make_result(sizes=make_sizes(10.0, 10.0, 10.0, 10.0, noise=80.0, total_noise=150.0))
    assert "The sizes add up to fewer than 350 records." in " ".join(rows_of(render(few)))


def test_centres_carry_their_noise_in_digits_that_fit() -> None:
    noise = np.array([[0.141, 9.63, 0.05, 0.0001], [0.0, 1.0, 4.6, 0.3], [0.7, 0.7, 0.7, 0.7], [0.1, 0.1, 0.1, 0.1]])
    rows = rows_of(render(make_result(centre_noise=noise)))
    assert "cluster 0 33.00 ± 0.14 116 ± 10 23.50 ± 0.05 5.2000 ± 0.0001" in rows
    assert "cluster 1 72.0000 ± 0.0001 160.0 ± 1.0 26 ± 5 5.80 ± 0.30" in rows
    assert "the sampling of the records and the algorithm's own error come on top" in " ".join(rows)


@pytest.mark.parametrize(
    ("lost", "said"),
    [
        ({}, ""),
        ({(1, 2): 0.1}, "cluster 1 in bmi."),
        ({(1, 2): 0.0999}, ""),
        ({(0, 0): 0.2, (0, 3): 0.3, (2, 1): 0.11}, "cluster 0 in age, hba1c; cluster 2 in systolic_bp."),
        ({(3, i): 0.29 for i in range(4)}, "cluster 3 in every column."),
        ({(j, i): 0.15 for j in range(4) for i in range(4)}, "every centre, in every column."),
    ],
)
def test_centres_that_are_mostly_noise_are_named(lost: dict[tuple[int, int], float], said: str) -> None:
    """From a tenth of the column's range on."""
    shares = np.full((4, 4), 0.01)
    for place, share in lost.items():
        shares[place] = share
    ranges = np.array([column.high - column.low for column in make_result().columns])
    text = " ".join(rows_of(render(make_result(centre_noise=shares * ranges))))
    wanted = "MOSTLY NOISE, with ± of a tenth of the column's range or more: "
    assert (wanted + said in text) if said else ("MOSTLY NOISE" not in text)


def test_many_centres_that_are_mostly_noise_are_named_in_short() -> None:
    columns = tuple(Column(name=f"x{i}", low=0, high=1) for i in range(30))
    noise = np.full((50, 30), 0.5)
    noise[:, 0] = 0.0
    text = " ".join(rows_of(render(make_result(columns=columns, centres=noise, centre_noise=noise))))
    assert "cluster 0 in x1, x2, x3, x4, x5, x6, x7, x8, x9, x10 and 19 more columns; cluster 1" in text
    assert "; and 40 more clusters." in text


def test_one_of_a_thing_is_said_in_the_singular() -> None:
    party = PartyTraffic(name="a", bytes_sent=1, bytes_received=1, messages_sent=1, messages_received=0)
    text = render(
        make_result(
            centres=make_result().centres[:1],
            parties=(party,),
            rounds=1,
            sizes=make_sizes(1.2, noise=0.1, total_noise=0.1),
            evaluation=Evaluation(loss=1, reference_loss=1, empty_clusters=1),
        )
    )
    rows = rows_of(text)
    assert "clinics: 1 cluster over the records of 1 party (simulated)" in rows
    assert "a; protocol masked-sum-count; 1 round" in rows
    assert "The sizes add up to 1 ± 1 record, but for rounding." in " ".join(rows)
    assert "1 of 1 centres is nearest to no record: an empty cluster." in rows
    assert "in 1 message in total" in text


def card_of(*, placement: Placement, seeded: bool = False, epsilon: float = 2.0) -> PrivacyCard:
    accountant = Accountant(Budget(epsilon=epsilon, delta=1e-6))
    noise, sensitivity = DiscreteGaussian(sigma=20.0), Sensitivity(l1=3, l2_squared=5)
    accountant.charge(Release(name="round 1", mechanism=noise, sensitivity=sensitivity, entries=4))
    return make_card(
        accountant.spent(),
        budget=accountant.budget,
        placement=placement,
        leakage=LeakageTable(
            source="",
            rows=(),
            withstands=placement.withstands(masked_twice=False),
            breaks_if="The coordinator, once it sees the centres.",
        ),
        seeded=seeded,
    )


def test_the_card_asks_what_it_answers() -> None:
    local = " ".join(rows_of(render(make_result(card=card_of(placement=Local(parties=3))))))
    assert "Who could remove it: nobody: each party knows only its own noise" in local
    single = " ".join(rows_of(render(make_result(card=card_of(placement=Aggregator(), epsilon=1e6)))))
    assert "Who could remove it: the coordinator, which knows it." in single
    assert "1,000,000" in single, "the budget, without a power of ten"


def test_a_study_is_not_followed_by_a_promise() -> None:
    study = " ".join(rows_of(render(make_result(card=card_of(placement=Aggregator(), seeded=True)))))
    assert "this result protects nobody" in study
    assert "protected against" not in study
    assert "Not promised" not in study
    assert "WARNING: The noise came from a seed" in study


def test_noisy_sizes_are_shown_where_columns_go_down() -> None:
    columns = tuple(Column(name=f"x{i}", low=0, high=1) for i in range(12))
    result = make_result(columns=columns, centres=np.full((2, 12), 0.5), sizes=make_sizes(500.0, 40.0, noise=5.0))
    rows = rows_of(render(result))
    assert "records 500 ± 5 40 ± 5" in rows
    assert "x11 0.500 0.500" in rows


def test_the_choice_of_k_is_printed_near_what_was_chosen() -> None:
    curve = tuple(KChoice(k=k, loss=1 / k, score=-abs(k - 4.0)) for k in range(2, 101))
    text = render(make_result(curve=curve))
    rows = rows_of(text)
    assert "Choice of k: 4, of 2 to 100" in rows
    assert "4 0.25 -0 chosen" in rows or "4 0.25 0 chosen" in rows
    assert text.count("chosen") == 1
    assert "5 0.2 -1" in rows
    assert "and 79 others: see result.json" in rows
    assert "Choice of k" not in render(make_result())


def test_many_parties_are_named_in_short() -> None:
    parties = tuple(
        PartyTraffic(name=f"client {i}", bytes_sent=1, bytes_received=1, messages_sent=1, messages_received=1)
        for i in range(2000)
    )
    text = render(make_result(parties=parties))
    assert "client 19 and 1,980 more; protocol" in " ".join(text.split())
    assert "client 20" not in text


@pytest.mark.parametrize(("k", "d"), [(1, 1), (3, 30), (200, 2), (60, 70)])
def test_any_shape_fits_the_width(k: int, d: int) -> None:
    columns = tuple(Column(name=f"a rather long name for column {i}", low=0, high=1) for i in range(d))
    result = make_result(columns=columns, centres=np.full((k, d), 0.5))
    large = replace(result, sizes=make_sizes(*[1e12] * k, noise=1e12), centre_noise=np.full((k, d), 0.123456))
    assert max(len(line.rstrip()) for line in render(large).splitlines()) <= 100
    text = render(result)
    assert max(len(line.rstrip()) for line in text.splitlines()) <= 100
    assert len(text.splitlines()) < 600
    if max(k, d) > 40:
        assert "see centres.csv" in text


def test_names_are_printed_as_they_are() -> None:
    party = PartyTraffic(name="[bold]:smile:[/]", bytes_sent=1, bytes_received=1, messages_sent=1, messages_received=1)
    text = render(make_result(parties=(party,), notes=("[link=x]y",)))
    assert text.count("[bold]:smile:[/]") == 2
    assert "[link=x]y" in text


@pytest.mark.parametrize(
    ("value", "low", "high", "expected"),
    [
        (45.2345, 18, 95, "45.23"),
        (132.44, 80, 220, "132.4"),
        (0.123456, 0, 1, "0.123"),
        (123456.7, 0, 1e6, "123,457"),
        (-0.00001, -1, 1, "0.000"),
        (1.23456e-12, 0, 1e-11, "1.235e-12"),
        (1.5e200, 0, 1e201, "1.5e+200"),
    ],
)
def test_digits_follow_the_public_range(value: float, low: float, high: float, expected: str) -> None:
    assert format_value(value, Column(name="x", low=low, high=high)) == expected


@pytest.mark.parametrize(
    ("value", "deviation", "finest", "expected"),
    [
        (3260.0, 141.0, 0, "3,260 ± 140"),
        (3264.0, 39.0, 0, "3,260 ± 40"),
        (11_018.0, 354.0, 0, "11,020 ± 350"),
        (11_018.0, 356.0, 0, "11,000 ± 400"),
        (11_018.0, 99.6, 0, "11,020 ± 100"),
        (9.4, 0.2, 0, "9 ± 1"),
        (-0.04, 0.28, -4, "-0.04 ± 0.28"),
        (-0.004, 0.28, -4, "0.00 ± 0.28"),
        (32.953, 0.0661, -4, "32.95 ± 0.07"),
        (32.953, 0.0, -3, "32.953 ± 0.001"),
        (5.0, 1e9, 0, "0 ± 1,000,000,000"),
    ],
)
def test_digits_fit_the_noise(value: float, deviation: float, finest: int, expected: str) -> None:
    assert format_uncertain(value, deviation, finest=finest) == expected


@given(st.floats(0, 1e6), st.floats(1e-6, 1e12))
def test_a_number_and_its_noise_end_at_the_same_place_and_are_near_the_truth(value: float, deviation: float) -> None:
    number, noise = format_uncertain(value, deviation, finest=-9).replace(",", "").split(" ± ")
    assert len(number.partition(".")[2]) == len(noise.partition(".")[2])
    assert 1 <= len(noise.replace(".", "").strip("0")) <= 2
    assert float(noise) == pytest.approx(deviation, rel=0.15)
    assert abs(float(number) - value) <= 0.16 * deviation


@given(st.floats(0, 1e9), st.floats(0, 1e9), st.floats(0, 1e9))
def test_fewer_than_is_never_below_what_was_seen(seen: float, deviation: float, more: float) -> None:
    text = format_noisy_count(seen, deviation, seen + more)
    if text.startswith("fewer than"):
        assert int(text.removeprefix("fewer than ").replace(",", "")) > seen


def test_units_are_readable() -> None:
    assert [format_count(n) for n in (0, 0.7, 999.6, 1234.5, 98_765, 1e9)] == [
        "0",
        "1",
        "1,000",
        "1,230",
        "98,800",
        "1,000,000,000",
    ]
    assert [format_noisy_count(n, 60.0) for n in (0, 119, 120, 12_345)] == [
        "fewer than 130",
        "fewer than 240",
        "120 ± 60",
        "12,340 ± 60",
    ]
    assert format_noisy_count(50.0, 60.0, 99.0) == "fewer than 100"
    assert format_noisy_count(1234.4, 0.0) == "1,234"
    assert [format_number(n) for n in (1.0, 0.123456789, 999.5, 2800.4, 1e6, -5e4, 1e-7)] == [
        "1",
        "0.123457",
        "999.5",
        "2,800",
        "1,000,000",
        "-50,000",
        "1e-07",
    ]
    assert [format_quantity(n, "party", "parties") for n in (0, 1, 2000)] == ["0 parties", "1 party", "2,000 parties"]
    assert [choose_noun(n, "record") for n in (0.2, 0.9, 1.4, 1.6)] == ["records", "record", "record", "records"]
    assert [format_bytes(n) for n in (0, 1023, 1024, 5 * 2**30)] == ["0 B", "1023 B", "1.0 KiB", "5.0 GiB"]
    assert [format_seconds(s) for s in (0.0123, 1.2345, 12345.6)] == ["12.3 ms", "1.23 s", "12,346 s"]


@pytest.mark.parametrize(
    ("protocol", "remedy", "hidden"),
    [
        ("masked-sum-count", "run again, change initialisation", "masks over the ring of 32-bit integers"),
        ("secfc", "Another start finds less: run again.", "shares and pads in a prime field"),
        ("vertical", "More cells for the encrypted columns", "masks over the ring"),
        ("from another registry", "Another start finds less", "masks over the ring"),
    ],
)
def test_what_helps_and_what_hides_follow_from_the_protocol(protocol: str, remedy: str, hidden: str) -> None:
    text = " ".join(render(make_result(protocol=protocol)).split())
    assert remedy in text
    assert hidden in text


@pytest.mark.parametrize(("protocol", "scaled"), [("mask-noise-average", True), ("synopsis", False)])
def test_noise_is_told_in_unit_scaling_where_it_is_on_the_records_grid(protocol: str, scaled: bool) -> None:
    text = render(make_result(protocol=protocol, card=card_of(placement=Aggregator())))
    assert ("Sensitivity and scale in unit scaling" in text) is scaled
