"""What plans, cards, reports and pictures claim: the same for one job, and never more than is proved.

Which published variants are private is written down here once more, from docs/proofs/published-fastlloyd.md, section 4,
and docs/proofs/published-feddp.md, so that the code is not compared with itself.
"""

from __future__ import annotations

import io
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import get_args

import pytest

from cloister.job import OwnSide, Setup
from cloister.jobfile import parse_setup
from cloister.planning import Plan, plan, print_plan
from cloister.privacy.units import Noisy
from cloister.protocols.fastlloyd.published import Preset
from cloister.report import picture
from cloister.report.layout import make_console
from cloister.report.result import Result, encode_result
from cloister.report.text import print_report
from cloister.sessions import simulate
from tests.golden.jobs import JOBS
from tests.golden.tables import write_tables

PRESETS = get_args(Preset)
assert len(PRESETS) == 5, "without presets nothing below would run"
ASSIGNMENTS = {
    "": "",
    "unconstrained": "",
    "constrained-exclusive": "alpha_min = 3\nalpha_max = 3",
    "constrained-non-exclusive": "alpha_min = 3",
    "constrained-e-exclusive": "alpha_min = 3\nalpha_max = 3\nmemberships_max = 2",
    "distance-constrained": "alpha_min = 3\nalpha_max = 3\nradius = 1.5",
}
UNFOLDED = 'postprocess = ["none", "none", "none"]'
PLACED = ("", 'placement = "local"', 'topology = "ring"\nplacement = "shared"')


def is_proved(preset: str, assignment: str, post: str) -> bool:
    """Section 4: no constraints; released centres besides folded or truncated, which they are by default."""
    unconstrained = assignment == "unconstrained" or (preset == "sulloyd" and not assignment)
    return unconstrained and not (preset in ("published", "amn") and post == UNFOLDED)


def describe(preset: str, assignment: str, more: str) -> str:
    """A published variant on the tables of the golden jobs."""
    text = JOBS["fastlloyd-published"].replace('variant = "published"', f'variant = "{preset}"\n{more}')
    if assignment:
        text = text.replace("[budget]", f'assignment = "{assignment}"\n{ASSIGNMENTS[assignment]}\n[budget]')
    return text


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tables")
    write_tables(path)
    return path


def read(text: str, folder: Path) -> Setup:
    """Read a job without its seed, and without anybody's ledger."""
    setup = parse_setup(text.replace("[run]\nseed = 11\n", ""), folder=folder)
    return replace(setup, own={name: OwnSide(data=side.data) for name, side in setup.own.items()})


def print_both(planned: Plan, result: Result) -> tuple[str, str]:
    """Return the plan and the report, each as one line of text."""
    texts = []
    for printer, one in ((print_plan, planned), (print_report, result)):
        out = io.StringIO()
        printer(one, make_console(out))
        texts.append(" ".join(out.getvalue().split()))
    return texts[0], texts[1]


def check_claims(setup: Setup, *, proved: bool) -> None:
    planned, result = plan(setup, quick=True, records=setup.job.data.records or 150), simulate(setup)
    card = result.card
    assert card is not None
    said, reported = print_both(planned, result)
    title, written = picture._title(result), encode_result(result).decode()
    assert planned.noisy is card.noisy is (Noisy.PRIVATE if proved else Noisy.UNPROVED)
    assert planned.withstands == card.protects_against
    assert card.private is proved
    for text in (said, reported, written):
        assert ("with DP noise" in text) is proved
        assert ("with noise that proves nothing" in text) is not proved
    assert ("NOT PRIVATE" in said[:200]) is ("Nobody is protected" in said) is not proved
    assert ("is at most" in card.plain_words) is ("; differentially private, epsilon" in title) is proved
    assert ("DOES NOT HOLD" in title) is ("claim is false" in reported) is not proved


@pytest.mark.parametrize("assignment", ASSIGNMENTS)
@pytest.mark.parametrize("preset", PRESETS)
def test_a_published_variant_of_fastlloyd_claims_what_is_proved_of_it(preset, assignment, folder):
    posts = ("", UNFOLDED) if preset in ("published", "amn") else ("",)
    for post, placed in product(posts, PLACED):
        if placed and (post or assignment not in ("", "unconstrained")):
            continue
        setup = read(describe(preset, assignment, f"{post}\n{placed}"), folder)
        check_claims(setup, proved=is_proved(preset, assignment, post))


@pytest.mark.parametrize("name", [name for name in JOBS if name.startswith("feddp-published")])
def test_feddp_as_published_is_private(name, folder):
    check_claims(read(JOBS[name], folder), proved=True)


WORTH = {
    "synopsis-shared": Noisy.PRIVATE,
    "synopsis-client": Noisy.PRIVATE,
    "synopsis-person": Noisy.PRIVATE,
    "mask-noise-average-ring-joint": Noisy.PRIVATE,
    "mask-noise-average-ring-shared": Noisy.PRIVATE,
    "fastlloyd-local": Noisy.PRIVATE,
    "secfc-budget": Noisy.PARTLY,
    "vertical-budget": Noisy.TOO_LITTLE,  # epsilon 8 for a record more is 14.6 for other values of one that is there
    "vertical-threshold": Noisy.TOO_LITTLE,
}


@pytest.mark.parametrize("name", WORTH)
def test_a_plan_and_a_card_say_the_same_of_a_job(name, folder):
    setup = read(JOBS[name], folder)
    records = 80 if name.startswith("vertical") else 150
    planned, result = plan(setup, quick=True, records=records), simulate(setup)
    assert result.card is not None
    said, reported = print_both(planned, result)
    assert planned.noisy is result.card.noisy is WORTH[name]
    assert planned.breaks_if == result.card.breaks_if
    assert planned.withstands == result.card.protects_against or name == "secfc-budget"
    assert bool(planned.not_private) is ("NOT " in said[:120]) is (WORTH[name] is not Noisy.PRIVATE)
    assert result.card.private is (WORTH[name] is Noisy.PRIVATE)
    assert WORTH[name].value in [row.how for row in result.leakage]
    assert "(simulated)" in reported


@pytest.mark.parametrize("name", ["naive", "masked-sum-count", "masked-centroid", "secfc", "vertical-two-party"])
def test_a_plan_without_a_budget_says_first_that_nothing_is_private(name, folder):
    planned = plan(read(JOBS[name], folder), quick=True, records=80)
    out = io.StringIO()
    print_plan(planned, make_console(out))
    assert out.getvalue().splitlines()[1].startswith("  NOT DIFFERENTIALLY PRIVATE: ")


def test_a_seed_in_a_job_is_said_first(folder):
    planned = plan(parse_setup(JOBS["fastlloyd-gaussian"], folder=folder), quick=True, records=150)
    assert (planned.noisy, planned.not_private[:25]) == (Noisy.SEEDED, "NOT PRIVATE: the job has ")
