"""Jobs of the default protocol: what may be left out, what it stands for, and what is refused with line and key."""

from __future__ import annotations

import dataclasses
import math
import re
from pathlib import Path

import pytest

from cloister.columns import Column
from cloister.errors import ConfigError
from cloister.job import Budget, DataOptions, Job, JobParty, make_options
from cloister.job.options import known_options
from cloister.jobfile import parse_job
from cloister.jobfile.sections import choose_delta
from cloister.privacy.units import Unit
from cloister.protocols.synopsis.options import SynopsisOptions
from cloister.protocols.synopsis.settings import Knobs

SHORTEST = """\
name = "clinics"
[clusters]
k = 4
[columns]
age = { low = 18, high = 95 }
[budget]
epsilon = 1.0
[[parties]]
name = "north"
data = "north.csv"
[[parties]]
name = "harbour"
data = "harbour.csv"
[[parties]]
name = "valley"
data = "valley.csv"
"""


def test_the_shortest_job_is_a_synopsis() -> None:
    job = parse_job(SHORTEST)
    assert job == Job(
        name="clinics",
        k=4,
        columns=(Column(name="age", low=18, high=95),),
        parties=tuple(JobParty(name=name) for name in ("north", "harbour", "valley")),
        budget=Budget(epsilon=1.0, delta=1e-6),
    )
    assert (job.protocol, job.protocol.name) == (SynopsisOptions(), "synopsis")
    assert (job.choose_k, job.data) == (False, DataOptions())


def test_every_option_of_the_synopsis_is_read() -> None:
    text = SHORTEST.replace("k = 4", "choose_k = true\nk_max = 12").replace(
        "epsilon = 1.0", "epsilon = 1\nunit = 'client'"
    )
    text += (
        "[protocol]\nname = 'synopsis'\nplacement = 'shared'\ncolluding_max = 1\nmin_parties = 3\n"
        "fractional_bits = 12\nring = 64\n[data]\nrecords = 11_000\nmatch = 'name'\n[synopsis]\nrounds_min = 9\n"
        "rounds_max = 12\ncount_share = 0.1\n[ledger]\npath = 'books'\n"
    )
    job = parse_job(text)
    assert isinstance(job.protocol, SynopsisOptions)
    assert (job.k, job.choose_k) == (12, True)
    assert job.budget == Budget(epsilon=1.0, delta=1e-6, unit=Unit.CLIENT)
    assert job.protocol.knobs == Knobs(rounds_min=9, rounds_max=12, count_share=0.1)
    assert (job.data.records, job.protocol.ring, job.protocol.resolve_min_parties(3)) == (11_000, 64, 3)


@pytest.mark.parametrize(
    ("records", "delta"), [(None, 1e-6), (1, 1e-6), (1000, 1e-6), (10**7, 1 / (1e7 * math.log(1e7)))]
)
def test_delta_follows_from_what_is_public(records: int | None, delta: float) -> None:
    assert choose_delta(records) == pytest.approx(delta, rel=1e-12)
    text = SHORTEST if records is None else SHORTEST + f"[data]\nrecords = {records}\n"
    budget = parse_job(text).budget
    assert budget is not None
    assert budget.delta == choose_delta(records)
    written = parse_job(text.replace("epsilon = 1.0", "epsilon = 1.0\ndelta = 1e-4")).budget
    assert written is not None
    assert written.delta == 1e-4


# what is replaced, by what, the line, and words of the message in order
BROKEN: list[tuple[str, str, int | None, list[str]]] = [
    ("[budget]\nepsilon = 1.0\n", "", None, ["come with a [budget]", "synopsis without one", "epsilon = 1.0"]),
    ("epsilon = 1.0", "delta = 1e-6", 6, ["budget must have the key epsilon"]),
    ("epsilon = 1.0", "epsilon = 1.0\ndelta = 0", 8, ["budget.delta", "greater than 0", "delta = 1e-6."]),
    ("epsilon = 1.0", "epsilon = 1.0\nunit = 'person'", 8, ["budget.unit", "data.person", 'got "person"']),
    ("k = 4", "k = 0", 3, ["clusters.k ", "from 1 to 1000", "got 0"]),
    ("k = 4", "k = 1001", 3, ["clusters.k ", "from 1 to 1000"]),
    ("k = 4", "choose_k = true", 2, ["clusters must have the key k_max"]),
    ("k = 4", "choose_k = true\nk_max = 1", 4, ["clusters.k_max", "from 2 to 1000"]),
    ("k = 4", "choose_k = true\nk = 4", 4, ["clusters.k ", "left out with choose_k", "k_max"]),
    ("k = 4", "k = 4\nk_max = 9", 4, ["clusters.k_max", "come with choose_k = true"]),
    ("k = 4", "choose_k = 'yes'\nk = 4", 3, ["clusters.choose_k", "true or false"]),
    ("k = 4", "", 2, ["clusters must have the key k;"]),
    ("[budget]", "[data]\nrecords = 0\n[budget]", 7, ["data.records", "from 1", "got 0"]),
    ("[budget]", "[data]\nrecords = true\n[budget]", 7, ["data.records", "integer", "true"]),
    ("[budget]", "[data]\nrecord = 5\n[budget]", 7, ["data.record", 'mean "records"']),
    ("[budget]", "[synopsis]\nrounds = 5\n[budget]", 7, ["synopsis.rounds", "known key", "Did you mean"]),
    ("[budget]", "[synopsis]\nrounds_max = 4.0\n[budget]", 7, ["synopsis.rounds_max", "integer"]),
    (
        "[budget]",
        "[synopsis]\n\nrounds_max = 1\n[budget]",
        8,
        ["synopsis.rounds_max", "at least rounds_min", "rounds_max = 1"],
    ),
    ("[budget]", "[synopsis]\nrestarts = 3\ncells_max = 3\n[budget]", 8, ["synopsis.cells_max", "from 16"]),
    ("[budget]", "[synopsis]\ncount_share = 'x'\n[budget]", 7, ["synopsis.count_share", "number"]),
    ("[budget]", "[synopsis]\ncount_share = 1.5\n[budget]", 7, ["synopsis.count_share", "0.99"]),
    ("[budget]", "[synopsis]\nmoment_share = 0.99\n[budget]", 6, ["synopsis", "before the histogram"]),
    (
        "[budget]",
        "[protocol]\nplacement = 'local'\ncolluding_max = 1\n[budget]",
        8,
        ["protocol.colluding_max", "shared"],
    ),
    ("[budget]", "[protocol]\nplacement = 'cloud'\n[budget]", 7, ["protocol.placement", "aggregator, local, shared"]),
    ("[budget]", "[protocol]\nring = 16\n[budget]", 7, ["protocol.ring"]),
    ("[budget]", "[protocol]\nmin_parties = 4\n[budget]", 7, ["protocol.min_parties", "4 of 3"]),
    ("[budget]", "[protocol]\nname = 'synopsys'\n[budget]", 7, ["protocol.name", 'mean "synopsis"']),
    ("[budget]", "[protocol]\nrounds_max = 4\n[budget]", 7, ["protocol.rounds_max", "belongs in [synopsis]"]),
]


@pytest.mark.parametrize(("old", "new", "line", "words"), BROKEN, ids=[f"{new[:40]!r}" for _, new, _, _ in BROKEN])
def test_a_broken_job_is_told_with_line_and_key(old: str, new: str, line: int | None, words: list[str]) -> None:
    text = SHORTEST.replace(old, new)
    assert text != SHORTEST
    with pytest.raises(ConfigError) as caught:
        parse_job(text, source_name="job.toml")
    message = str(caught.value)
    assert message.startswith("job.toml:" if line is None else f"job.toml:{line}: "), message
    position = 0
    for word in words:
        assert word in message[position:], message
        position = message.index(word, position)


TAKEN = {"fractional_bits", "ring", "min_parties", "placement", "masks", "colluding_max", "honest_fraction", "knobs"}


def test_every_other_option_of_a_protocol_is_refused_and_the_ones_that_take_it_are_named() -> None:
    assert set(SynopsisOptions.__struct_fields__) == TAKEN
    takers: dict[str, list[str]] = {}
    for name, options in known_options().items():
        for key in set(options.__struct_fields__) - TAKEN - {options.facts.section}:
            takers.setdefault(key, []).append(name)
    for key, names in takers.items():
        with pytest.raises(ConfigError, match=rf"^protocol\.{key} must come with the protocol {names[0]}"):
            make_options("synopsis", **{key: 1})


def test_an_option_of_another_protocol_is_told_with_its_line() -> None:
    with pytest.raises(ConfigError, match=r"^job\.toml:7: protocol\.variant must come with the protocol feddp"):
        parse_job(SHORTEST.replace("[budget]", "[protocol]\nvariant = 'tight'\n[budget]"), source_name="job.toml")


@pytest.mark.parametrize("protocol", ["masked-sum-count", "mask-noise-average"])
@pytest.mark.parametrize(
    ("section", "key"),
    [
        ("[data]\nrecords = 5\n", r"data\.records"),
        ("[synopsis]\nrestarts = 5\n", "synopsis"),
        ("", r"clusters\.choose_k"),
    ],
)
def test_options_of_the_synopsis_are_refused_with_other_protocols(protocol: str, section: str, key: str) -> None:
    text = SHORTEST + f"[protocol]\nname = '{protocol}'\n" + section
    if not section:
        text = text.replace("k = 4", "choose_k = true\nk_max = 4")
    with pytest.raises(ConfigError, match=rf"{key} must come with the protocol synopsis.*; got {protocol}"):
        parse_job(text)


def test_a_job_made_in_python_must_write_its_delta() -> None:
    """There a missing delta reads 0, pure privacy, which must not quietly become something weaker."""
    with pytest.raises(ConfigError, match=r"budget\.delta must be greater than 0"):
        dataclasses.replace(parse_job(SHORTEST), budget=Budget(epsilon=1.0, delta=0.0))


def test_too_many_columns_are_refused() -> None:
    columns = tuple(Column(name=f"x{i}", low=0, high=1) for i in range(2001))
    with pytest.raises(ConfigError, match="must have at most 2000 coordinates with the protocol synopsis; got 2001"):
        dataclasses.replace(parse_job(SHORTEST), columns=columns)


PAGE = (Path(__file__).parents[3] / "docs" / "job-file.md").read_text()


def test_documented_defaults_of_the_synopsis_are_the_real_ones() -> None:
    rows = [line.split(" | ") for line in PAGE.split("advanced settings")[1].split("## ")[0].splitlines()]
    told: dict[str, str] = {}
    for row in rows:
        if row[0].startswith("| `"):
            told |= zip(re.findall(r"`(\w+)`", row[0]), row[-1].rstrip(" |").split(", "), strict=True)
    assert {key: float(value) for key, value in told.items()} == dataclasses.asdict(Knobs())
