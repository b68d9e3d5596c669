"""The report as a page: says what the printed one says, escapes names, makes no request, and reads without a script."""

from __future__ import annotations

import json
import re
from datetime import date
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace
from tests.report.examples import COLUMNS, make_result
from tests.report.test_report_text import card_of

from cloister.columns import Column, count_days
from cloister.privacy.card import PrivacyCard
from cloister.privacy.placement import Shared
from cloister.report.page.build import make_fragment, make_page
from cloister.report.page.html import Html, tag
from cloister.report.page.marks import Scale
from cloister.report.page.view import look_at
from cloister.report.result import Evaluation, KChoice, Learned, Result
from cloister.report.sizes import Sizes

VOID = {"br", "input", "link", "meta"}


class Reader(HTMLParser):
    """Reads a page strictly: every element that opens closes, in order."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.names: list[str] = []
        self.attributes: list[tuple[str, str, str | None]] = []
        self.texts: list[str] = []
        self.feed(page)
        self.close()
        assert not self.open

    def handle_starttag(self, name: str, attributes: list[tuple[str, str | None]]) -> None:
        self.names.append(name)
        self.attributes += [(name, key, value) for key, value in attributes]
        if name not in VOID:
            self.open.append(name)

    def handle_endtag(self, name: str) -> None:
        assert self.open.pop() == name

    def handle_data(self, text: str) -> None:
        if not {"script", "style"} & set(self.open):
            self.texts.append(text)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).split())


def make_sizes(*clusters: float, noise: float = 40.0) -> Sizes:
    total = float(sum(clusters))
    return Sizes(
        unit="records", clusters=clusters, noise=(noise,) * len(clusters), total=total, total_noise=noise * 0.5
    )


def make_private_card() -> PrivacyCard:
    return replace(card_of(placement=Shared(parties=3, colluding_max=1)), epsilon=1.0, budget_epsilon=1.0)


def make_private(**changes: Any) -> Result:
    values = {
        "card": make_private_card(),
        "sizes": make_sizes(1500.0, 3000.0, 2500.0, 500.0),
        "centre_noise": np.full((4, 4), 0.25),
        "evaluation": None,
        "seeded": False,
        "transcript_sha256": None,
        "notes": (),
    }
    return make_result(**(values | changes))


def test_the_page_says_what_a_reader_asks():
    text = Reader(make_page(make_private(), commands=("cloister run job.toml",))).text
    for said in (
        "Simulated on one machine: whoever ran it could read every table.",
        "4 clusters over the records of 3 organisations: north, harbour, valley",
        "1,500 ± 40 records",
        "All clusters together: 7,500 ± 20 records.",
        "72.00 ± 0.25",
        "A belief of 50 % that someone's record is in it can grow to at most 74 %.",
        "Running again costs again: twice is about 1.45.",
        "What breaks it",
        "A private report holds no exact loss",
        "cloister run job.toml",
    ):
        assert said in text, said
    assert text.index("The groups") < text.index("What is promised") < text.index("How it ran")


def test_every_number_of_a_centre_has_its_noise():
    text = Reader(make_page(make_private())).text
    table = text[text.index("All numbers") : text.index("What is promised")]
    assert table.count("±") >= 4 * 4 + 4 + 4 + 1


def test_names_are_never_markup():
    evil = '"><script>alert(1)</script>'
    columns = (Column(name=evil, low=18, high=95), *COLUMNS[1:])
    leakage = (Learned(role=evil, what=evil, how="exactly", note=evil),)
    page = make_page(
        make_private(columns=columns, leakage=leakage, notes=(evil,), breaks_if=evil), job=evil, commands=(evil,)
    )
    read = Reader(page)
    assert read.names.count("script") == 2
    assert evil in read.text
    places = re.search(r'<script type="application/json" id="places">(.*?)</script>', page)
    assert places is not None
    assert json.loads(places[1])["columns"][0]["name"] == evil


def test_what_is_not_made_here_is_escaped():
    assert tag("p", "a < b", Html("<b>"), title='"') == '<p title="&quot;">a &lt; b<b></p>'
    assert tag("input", disabled=True, hidden=False, value=None) == "<input disabled>"


@pytest.mark.parametrize("page", [make_page(make_private()), make_fragment(make_private())])
def test_the_page_makes_no_request(page):
    for name, key, value in Reader(page).attributes:
        assert key not in {"src", "srcset", "action", "data", "ping", "background"}, (name, key)
        assert not key.startswith("on"), (name, key)
        if key == "href":
            assert value is not None
            assert value.startswith("#")
    assert "url(" not in page.replace("url(#inside)", "")
    assert "@import" not in page
    assert "http" not in re.sub(r"http-equiv|http://www\.w3\.org/2000/svg", "", page)


STATES = {
    "exact": {
        "card": None,
        "centre_noise": None,
        "sizes": None,
        "evaluation": Evaluation(loss=0.2, reference_loss=0.1),
    },
    "no sizes": {"sizes": None},
    "shares": {"sizes": Sizes(unit="share", clusters=(0.1, 0.2, 0.3, 0.4), noise=(0.01,) * 4, total=1, total_noise=0)},
    "no records": {"sizes": make_sizes(0.0, 0.0, 0.0, 0.0)},
    "no noise": {"centre_noise": None, "sizes": make_sizes(1.0, 2.0, 3.0, 4.0, noise=0.0)},
    "all noise": {"centre_noise": np.full((4, 4), 70.0), "sizes": make_sizes(1.0, 2.0, 3.0, 4.0)},
    "a choice": {"curve": tuple(KChoice(k=k, loss=1 / k, score=-abs(k - 4.0)) for k in range(2, 30))},
    "one k tried": {"curve": (KChoice(k=4, loss=0.1, score=1.0),)},
    "one cluster": {"centres": [[33.0, 116, 23.5, 5.2]], "centre_noise": np.ones((1, 4)), "sizes": make_sizes(7000.0)},
    "one column": {
        "columns": COLUMNS[:1],
        "centres": [[33.0], [40.0], [50.0], [60.0]],
        "centre_noise": np.ones((4, 1)),
    },
    "weak": {"card": replace(make_private_card(), epsilon=12.0, budget_epsilon=12.0, private=False)},
    "as published": {"card": replace(make_private_card(), private=False, flaw="Its proof is wrong.")},
    "seeded": {"card": replace(make_private_card(), private=False), "seeded": True},
}


@pytest.mark.parametrize("state", STATES)
def test_every_state_is_a_page(state):
    result = make_private(**STATES[state])
    read = Reader(make_page(result))
    for key, value in ((key, value) for _, key, value in read.attributes):
        assert value is None or ("nan" not in value.split() and "inf" not in value.split()), (key, value)
    assert "nan" not in read.text.split()
    assert ("A belief of 50 %" in read.text) is (result.card is not None and result.card.private)
    assert ("Choosing k" in read.text) is (state == "a choice")
    assert Reader(make_fragment(result)).text


def test_a_false_guarantee_is_not_lived_up():
    text = Reader(make_page(make_private(**STATES["as published"]))).text
    assert "that claim is false" in text
    assert "Claimed: epsilon" in text
    assert "Running again" not in text


def test_large_results_make_small_pages():
    rng = np.random.default_rng(1)
    columns = tuple(Column(name=f"column number {i}", low=-10, high=10) for i in range(60))
    centres, noise = rng.uniform(-9, 9, (100, 60)), rng.uniform(0.1, 1, (100, 60))
    sizes = make_sizes(*rng.uniform(100, 1000, 100).tolist())
    page = make_page(make_private(columns=columns, centres=centres, centre_noise=noise, sizes=sizes))
    assert len(page.encode()) < 1_000_000
    assert "more columns are in the table" in Reader(page).text


def test_a_cluster_that_may_be_noise_says_so():
    noise = np.full((4, 4), 0.25)
    noise[2] = 30.0
    result = make_private(centre_noise=noise, sizes=make_sizes(1500.0, 3000.0, 2500.0, 20.0))
    clusters = {cluster.number: cluster for cluster in look_at(result).clusters}
    assert clusters[3].is_lost
    assert not clusters[0].is_lost
    assert not clusters[2].traits
    text = Reader(make_page(result)).text
    assert "May not be there: its size is lost in the noise." in text
    assert "Mostly noise in at least one column." in text


def test_no_column_is_named_for_a_difference_that_is_noise():
    centres = np.array([[50.0, 150, 30, 8], [50.5, 190, 30, 8], [50.2, 110, 30, 8], [49.8, 150, 30, 8]])
    view = look_at(make_private(centres=centres, centre_noise=np.full((4, 4), 0.3)))
    assert {i for cluster in view.clusters for i in cluster.traits} == {1}


def test_the_mean_of_all_has_at_least_the_noise_that_it_shows():
    """Noise on sums and counts, as rounds of Lloyd's algorithm have it; the stated deviation is never far too small."""
    rng = np.random.default_rng(5)
    true_counts, true_means = np.array([1500.0, 3000.0, 2500.0, 500.0]), np.array([30.0, 70.0, 55.0, 20.0])
    counts = true_counts + rng.normal(0, 30, (4000, 4))
    sums = true_counts * true_means + rng.normal(0, 900, (4000, 4))
    means = sums.sum(axis=1) / counts.sum(axis=1)
    centre_noise = np.sqrt(900**2 + true_means**2 * 30**2) / true_counts
    columns = (Column(name="x", low=0, high=100),)
    sizes = Sizes(unit="records", clusters=tuple(true_counts), noise=(30.0,) * 4, total=7500.0, total_noise=60.0)
    view = look_at(
        make_private(columns=columns, centres=true_means[:, None], centre_noise=centre_noise[:, None], sizes=sizes)
    )
    assert view.means is not None
    assert view.mean_noise is not None
    assert view.means[0] == pytest.approx(true_counts @ true_means / 7500)
    assert means.std() * 0.95 < view.mean_noise[0] < 3 * means.std()


@pytest.mark.parametrize(("low", "high"), [(18, 95), (-1, 1), (0, 1e-6), (-1e9, 1e12), (4.05, 4.06), (0, 7)])
def test_ticks_are_round_and_inside(low, high):
    ticks = Scale(low, high, 0, 1).ticks()
    assert 2 <= len(ticks) <= 6
    assert len({text for _, text in ticks}) == len(ticks)
    assert all(low - 1e-9 * (high - low) <= number <= high + 1e-9 * (high - low) for number, _ in ticks)


def test_dates_and_levels_have_axes_of_their_own():
    texts = [
        text for _, text in Scale(count_days(date(2020, 1, 1)), count_days(date(2024, 1, 1)), 0, 1, "date").ticks()
    ]
    assert texts[0] == "2020-01-01"
    assert texts[-1] == "2024-01-01"
    assert [text for _, text in Scale(0, 1, 0, 1, "level").ticks()] == ["0 %", "20 %", "40 %", "60 %", "80 %", "100 %"]


def test_a_part_of_an_axis_is_drawn_where_all_of_it_would_be_empty():
    wide = (Column(name="creatinine", low=0, high=10_000),)
    view = look_at(make_private(columns=wide, centres=[[50.0], [60.0], [90.0], [400.0]], centre_noise=np.ones((4, 1))))
    low, high = view.find_range(0)
    assert 0 <= low < 48
    assert 402 < high < 1000
    spread = look_at(make_private(columns=wide, centres=[[50.0], [60.0], [90.0], [9000.0]], centre_noise=None))
    assert spread.find_range(0) == (0, 10_000)


def test_categories_are_shown_as_shares_of_their_levels():
    columns = (COLUMNS[0], Column.category("ward", ("a", "b", "<c>")), Column.boolean("smoker"))
    centres = np.array(
        [[33.0, 0.5, 0.3, 0.2, 0.1], [72, 0.1, 0.1, 0.8, 0.9], [50, 1.1, -0.1, 0, 0.5], [60, 0, 0.9, 0, 0.5]]
    )
    result = make_private(columns=columns, centres=centres, centre_noise=np.full((4, 5), 0.02))
    page = make_page(result)
    read = Reader(page)
    assert page.count('class="level l0"') == 4
    assert "cluster 1: <c> 80.0 ± 2.0 %" in read.text
    assert "ward=<c>" in read.text
    for key, value in ((key, value) for _, key, value in read.attributes):
        assert not (key in {"x", "width"} and value is not None and value.startswith("-")), (key, value)


def test_an_audit_is_shown_with_its_power():
    audit = {"claim": {"epsilon": 1.0, "delta": 1e-6}, "violates": False, "epsilon_lower": 0.41, "caught_below": 2.314}
    text = Reader(make_page(make_private(), audit=audit)).text
    assert "does not refute the claim; that is no proof" in text
    assert "noise below 1/2.31 of what it should be" in text
