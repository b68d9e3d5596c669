"""Job files: what a good one gives, and for each broken one the file, the line, the key and what to do."""

from __future__ import annotations

import dataclasses
import math
import tomllib
from pathlib import Path
from typing import Any

import pytest

from cloister.columns import Column
from cloister.data import sample_folder
from cloister.errors import ConfigError
from cloister.job import Budget, DataOptions, Job, JobParty, NoiseOptions, Setup, make_options
from cloister.jobfile import load_job, parse_job, parse_setup
from cloister.jobfile.template import TemplateParty, render_template
from cloister.privacy.units import Unit

GOOD = """\
name = "clinics"
[protocol]
name = "masked-sum-count"
iterations = 12
[clusters]
k = 2
[columns]
age = { low = 18, high = 95 }
"body mass" = { low = 14, high = 60.5 }
[[parties]]
name = "north"
data = "north.csv"
[[parties]]
name = "harbour"
data = "tables/harbour.csv"
"""


def test_a_good_job_is_read_with_defaults() -> None:
    job = parse_job(GOOD)
    assert job == Job(
        name="clinics",
        protocol=make_options("masked-sum-count", iterations=12),
        k=2,
        columns=(Column(name="age", low=18, high=95), Column(name="body mass", low=14, high=60.5)),
        parties=(JobParty(name="north"), JobParty(name="harbour")),
    )
    assert job.data == DataOptions(match="name", max_records=None)
    assert job.budget is None


def test_every_option_is_read() -> None:
    text = (
        GOOD.replace('name = "masked-sum-count"', 'name = "naive"').replace(
            "iterations = 12",
            "iterations = 3\ninitialisation = 'given'\nstart = [\n  [20, 15],\n  [30.5, 60.5],\n]\ntolerance = 1e-3\n"
            "fractional_bits = 20\nring = 64\nassignment = 'constrained-e-exclusive'\nsize_min = 2\nsize_max = 9\n"
            "memberships_max = 2\nmin_parties = 2",
        )
        + "[data]\nmatch = 'name'\nmax_records = 10_000\n[network]\nmodel = 'regWAN100'\n[run]\nseed = 7\n"
    )
    setup = parse_setup(text)
    protocol: Any = setup.job.protocol
    assert protocol.start == ((20, 15), (30.5, 60.5))
    assert (protocol.ring, protocol.memberships_max, protocol.tolerance) == (64, 2, 1e-3)
    assert setup.job.data == DataOptions(match="name", max_records=10_000)
    assert (setup.network, setup.seed) == ("regWAN100", 7)


BUDGET = "[budget]\nepsilon = 1.0\ndelta = 1e-6\n"
# From "iterations" to "[clusters]", a private protocol with something wrong: the replacement, the line, words.
PRIVATE: list[tuple[str, int, list[str]]] = [
    ("", 3, ["protocol.name", "come with a [budget]", "epsilon = 1.0"]),
    (BUDGET.replace("1e-6", "0"), 7, ["budget.delta", "greater than 0 with this noise", "delta = 1e-6"]),
    (BUDGET + "unit = 'person'\n", 8, ["budget.unit", "come with data.person", "[data] person = "]),
    (BUDGET + "unit = 'client'\n", 8, ["budget.unit", '"record"', "cannot hide a whole client", "synopsis"]),
    (BUDGET.replace("1.0", "-1"), 6, ["budget.epsilon", "from 1e-06 to 1e+06", "-1"]),
    ("noise = 'uniform'\n" + BUDGET, 5, ["protocol.noise", "gaussian, laplace"]),
    ("norm_bound = 0\n" + BUDGET, 5, ["protocol.norm_bound", "greater than 0"]),
    (
        "assignment = 'constrained-non-exclusive'\nsize_min = 3\n" + BUDGET,
        5,
        ["protocol.assignment", "does not take it"],
    ),
    ("placement = 'cloud'\n" + BUDGET, 5, ["protocol.placement", "one of aggregator, joint, local, shared", "cloud"]),
    ("masks = 'twice'\n" + BUDGET, 5, ["protocol.masks", "one of common, double", "twice"]),
    ("colluding_max = 1\n" + BUDGET, 5, ["protocol.colluding_max", "shared", "Remove"]),
    ("placement = 'shared'\ncolluding_max = 2\n" + BUDGET, 6, ["protocol.colluding_max", "from 1 to 1"]),
    (BUDGET + "[ledger]\npath = ''\n", 9, ["ledger.path", "folder"]),
]
# what is replaced, by what, the line, and words of the message in order
BROKEN: list[tuple[str, str, int | None, list[str]]] = [
    (
        "age = { low = 18, high = 95 }",
        "age = { low = 95, high = 18 }",
        8,
        ["columns.age.high", "low = 95, high = 18", "Swap"],
    ),
    ("age = { low = 18, high = 95 }", "age = { low = 18, high = 18 }", 8, ["columns.age.high", "greater than low"]),
    ("age = { low = 18, high = 95 }", "age = { low = '18', high = 95 }", 8, ["columns.age.low", "number", '"18"']),
    ("age = { low = 18, high = 95 }", "age = { low = nan, high = 95 }", 8, ["columns.age.low", "finite", "nan"]),
    ("age = { low = 18, high = 95 }", "age = { low = -1e308, high = 1e308 }", 8, ["columns.age", "finite"]),
    ("age = { low = 18, high = 95 }", "age = { low = true, high = 95 }", 8, ["columns.age.low", "got true"]),
    (
        "age = { low = 18, high = 95 }",
        "age = {}",
        8,
        ["columns.age", "two people's records", "low and high for column age"],
    ),
    ("age = { low = 18, high = 95 }", "age = { low = 3 }", 8, ["columns.age", "no high", "not public"]),
    ("age = { low = 18, high = 95 }", "age = { low = 3, hihg = 4 }", 8, ["columns.age.hihg", 'mean "high"']),
    ("age = { low = 18, high = 95 }", "age = [18, 95]", 8, ["columns.age", "a list of 2", "Write:"]),
    ('"body mass" = { low', "\n\n'body mass' = { lo", 11, ['columns."body mass".lo', 'mean "low"']),
    ("[columns]\nage = { low = 18, high = 95 }\n", "", None, ["columns", "public bounds", "two people's"]),
    ("k = 2", "k = 0", 6, ["clusters.k", "from 1 to", "got 0"]),
    ("k = 2", "k = 2.0", 6, ["clusters.k", "integer", "2.0"]),
    ("k = 2", "k = true", 6, ["clusters.k", "integer", "true"]),
    ("k = 2", "K = 2", 6, ["clusters.K", 'mean "k"']),
    ("k = 2", "", 5, ["clusters", "key k"]),
    ("[clusters]\nk = 2\n", "k = 2\n", 5, ["protocol.k", "known key of [protocol]", "belongs in [clusters]"]),
    ("[clusters]", "[cluster]", 5, ["cluster", 'mean "clusters"']),
    ("[clusters]\nk = 2\n", "", None, ["the job must have the key clusters"]),
    ("[protocol]\n", "[[protocol]]\n", 2, ["protocol", "a table", "a list of 1"]),
    ('"masked-sum-count"', '"masked-sum-cout"', 3, ["protocol.name", 'mean "masked-sum-count"']),
    ('name = "masked-sum-count"\n', "", 3, ["protocol.iterations", "masked-sum-count", "got synopsis", "remove it"]),
    ("iterations = 12", "iterations = 0", 4, ["protocol.iterations", "from 1 to 10000", "got 0"]),
    ("iterations = 12", "iterations = 10001", 4, ["protocol.iterations", "10001"]),
    ("iterations = 12", "iteratoins = 12", 4, ["protocol.iteratoins", 'mean "iterations"']),
    ("iterations = 12", "tolerance = 0.1", 4, ["protocol.tolerance", "come with the protocol naive", "remove it"]),
    ("iterations = 12", "norm_bound = 1", 4, ["protocol.norm_bound", "come with the protocol mask-noise-average"]),
    ("iterations = 12", "placement = 'local'", 4, ["protocol.placement", "synopsis", "got masked-sum-count"]),
    ("iterations = 12", "fractional_bits = 31", 4, ["protocol.fractional_bits", "1 to 30", "31"]),
    ("iterations = 12", "ring = 48", 4, ["protocol.ring", '32, 64, "auto"', "48"]),
    ("iterations = 12", "ring = '64'", 4, ["protocol.ring", '32, 64, "auto"; got "64".']),
    ("iterations = 12", "min_parties = 1", 4, ["protocol.min_parties", "at least 2"]),
    ("iterations = 12", "min_parties = 3", 4, ["protocol.min_parties", "3 of 2 parties"]),
    ("iterations = 12", "initialisation = 'given'", 2, ["protocol.start", "2 rows of 2 numbers", "no start"]),
    ("iterations = 12", "start = [[20, 20], [30, 30]]", 4, ["protocol.start", 'initialisation = "given"']),
    (
        "iterations = 12",
        "initialisation = 'given'\nstart = [[20, 20]]",
        5,
        ["protocol.start", "clusters.k = 2", "got 1"],
    ),
    (
        "iterations = 12",
        "initialisation = 'given'\nstart = [\n # one\n [20, 20],\n [30],\n]",
        8,
        ["protocol.start[1]", "2 numbers", "got 1"],
    ),
    (
        "iterations = 12",
        "initialisation = 'given'\nstart = [\n [20, 20],\n [30,\n 61],\n]",
        8,
        ["protocol.start[1][1]", "column body mass, 14 to 60.5", "original units"],
    ),
    ("iterations = 12", "initialisation = 'given'\nstart_by = 'parties'", 5, ["protocol.start_by", "left out"]),
    ("iterations = 12", "start_by = 'server'", 4, ["protocol.start_by", "coordinator, parties"]),
    ("iterations = 12", "assignment = 'constrained'", 4, ["protocol.assignment", "Did you mean"]),
    ("iterations = 12", "assignment = 'constrained-exclusive'\nsize_min = 2", 4, ["protocol.assignment", "size_max"]),
    ("iterations = 12", "size_min = 2", 4, ["protocol.size_min", '"unconstrained"', "no limits"]),
    (
        "iterations = 12",
        "assignment = 'constrained-exclusive'\nsize_min = 9\nsize_max = 2",
        5,
        ["protocol.size_min", "at most size_max"],
    ),
    (
        "iterations = 12",
        "assignment = 'distance-constrained'\nalpha_min = 1.25\nalpha_max = 1.25\nradius = 0",
        7,
        ["protocol.radius", "greater than 0"],
    ),
    (
        "iterations = 12",
        "assignment = 'constrained-e-exclusive'\nalpha_min = 2\nalpha_max = 2\nmemberships_max = 3",
        7,
        ["protocol.memberships_max", "from 1 to 2", "got 3"],
    ),
    (
        "iterations = 12",
        "assignment = 'constrained-exclusive'\nalpha_min = 0.5\nalpha_max = 2",
        5,
        ["protocol.alpha_min", "at least 1"],
    ),
    ('name = "harbour"', 'name = "north"', 14, ["parties[1].name", "unique", "parties[0]"]),
    ('name = "harbour"', 'name = "coordinator"', 14, ["parties[1].name", "coordinator"]),
    ('name = "harbour"', "name = 5", 14, ["parties[1].name", "printable text", "5"]),
    ('name = "harbour"', 'name = " harbour"', 14, ["parties[1].name", "blank"]),
    ('data = "tables/harbour.csv"', "", 13, ["parties[1]", "key data"]),
    ('data = "tables/harbour.csv"', 'date = "harbour.csv"', 15, ["parties[1].date", 'mean "data"']),
    ('data = "tables/harbour.csv"', 'data = ""', 15, ["parties[1].data", "be a path"]),
    ('[[parties]]\nname = "harbour"\ndata = "tables/harbour.csv"\n', "", 10, ["parties", "at least 2", "got 1"]),
    ('name = "clinics"', 'name = "the clinics"', 1, ["name", "letters, digits", '"the clinics"']),
    ('name = "clinics"', 'nmae = "clinics"', 1, ["nmae", 'mean "name"']),
    ("[clusters]", "[data]\nmatch = 'nam'\n[clusters]", 6, ["data.match", 'mean "name"']),
    ("[clusters]", "[data]\nmax_records = 0\n[clusters]", 6, ["data.max_records", "got 0"]),
    ("[clusters]", "[run]\nseed = -1\n[clusters]", 6, ["run.seed", "from 0", "-1"]),
    ("[clusters]", "[network]\nname = 'LAN'\n[clusters]", 6, ["network.name", "known key (model)"]),
    ("[clusters]", BUDGET + "[clusters]", 5, ["budget", "exact aggregates", "remove [budget]", "mask-noise-average"]),
    ("[clusters]", BUDGET.replace("1.0", "0") + "[clusters]", 6, ["budget.epsilon", "from 1e-06 to 1e+06"]),
    ("[clusters]", BUDGET.replace("1e-6", "1") + "[clusters]", 7, ["budget.delta", "less than 1"]),
    ("[clusters]", "[run]\nsecure = true\nseed = 7\n[clusters]", 7, ["run.seed", "left out in secure mode", "7"]),
    ('name = "north"', 'name = "../north"', 11, ["parties[0].name", "without /", "ledger file"]),
    ("[clusters]", "[run]\nsecure = 1\n[clusters]", 6, ["run.secure", "true or false"]),
    ("[clusters]", BUDGET + "unit = 'row'\n[clusters]", 8, ["budget.unit", "record, person, client"]),
    ("[clusters]", "[ledger]\npath = 'l.jsonl'\n[clusters]", 5, ["ledger", "[budget]"]),
    ("iterations = 12", "iterations = ", 4, ["valid TOML"]),
    ("iterations = 12", "iterations = 12\niterations = 13", 5, ["valid TOML"]),
    ("iterations = 12", "iterations = " + "9" * 5000, None, ["TOML"]),
]


def test_a_private_job_is_read() -> None:
    text = GOOD.replace("masked-sum-count", "mask-noise-average").replace("[clusters]", BUDGET + "[clusters]")
    job = parse_job(text)
    assert job.budget == Budget(epsilon=1.0, delta=1e-6, unit=Unit.RECORD)
    assert isinstance(job.protocol, NoiseOptions)
    assert job.protocol.placement is None
    assert job.protocol.resolve_placement(len(job.parties)) == "local"


def test_a_delta_that_is_not_written_follows_from_the_noise_and_from_public_numbers() -> None:
    text = GOOD.replace("masked-sum-count", "mask-noise-average").replace("[clusters]", BUDGET + "[clusters]")
    text = text.replace("delta = 1e-6", "")
    assert parse_job(text).budget == Budget(epsilon=1.0, delta=1e-6)
    laplace = text.replace("iterations = 12", "iterations = 12\nnoise = 'laplace'")
    assert parse_job(laplace).budget == Budget(epsilon=1.0, delta=0.0)
    declared = "[data]\nrecords = 10_000_000\n" + BUDGET.replace("delta = 1e-6\n", "") + "[clusters]"
    job = parse_job(GOOD.replace("masked-sum-count", "synopsis").replace("iterations = 12\n[clusters]", declared))
    assert job.budget is not None
    assert job.budget.delta == pytest.approx(1 / (1e7 * math.log(1e7)))


@pytest.mark.parametrize(
    ("name", "options", "starter"),
    [
        ("naive", {}, "coordinator"),
        ("masked-centroid", {}, "parties"),
        ("masked-centroid", {"start_by": "coordinator"}, "coordinator"),
    ],
)
def test_who_starts_follows_from_the_protocol(name: str, options: dict[str, Any], starter: str) -> None:
    protocol: Any = make_options(name, **options)
    assert protocol.starter == starter


@pytest.mark.parametrize(("inserted", "line", "words"), PRIVATE, ids=[f"{text[:30]!r}" for text, _, _ in PRIVATE])
def test_a_broken_private_job_is_told_with_line_and_key(inserted: str, line: int, words: list[str]) -> None:
    text = GOOD.replace("masked-sum-count", "mask-noise-average").replace("[clusters]", inserted + "[clusters]")
    with pytest.raises(ConfigError) as caught:
        parse_setup(text, source_name="job.toml")
    message = str(caught.value)
    assert message.startswith(f"job.toml:{line}: "), message
    for word in words:
        assert word in message, message


@pytest.mark.parametrize(("old", "new", "line", "words"), BROKEN, ids=[f"{new[:40]!r}" for _, new, _, _ in BROKEN])
def test_a_broken_job_is_told_with_line_and_key(old: str, new: str, line: int | None, words: list[str]) -> None:
    text = GOOD.replace(old, new)
    if "columns" in words[0] and line is None:
        text = text.replace('"body mass" = { low = 14, high = 60.5 }\n', "")
    assert text != GOOD
    with pytest.raises(ConfigError) as caught:
        parse_setup(text, source_name="job.toml")
    message = str(caught.value)
    assert type(caught.value) is ConfigError
    assert message.startswith("job.toml:" if line is None else f"job.toml:{line}: "), message
    position = 0
    for word in words:
        assert word in message[position:], message
        position = message.index(word, position)


def test_deep_nesting_is_refused_and_does_not_crash() -> None:
    with pytest.raises(ConfigError, match="deeply"):
        parse_job("x = " + "[" * 100_000)


def test_files_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        load_job(tmp_path / "missing.toml")
    with pytest.raises(ConfigError, match="directory"):
        load_job(tmp_path)
    latin = tmp_path / "latin.toml"
    latin.write_bytes(b'name = "x"\n# caf\xe9\n')
    with pytest.raises(ConfigError, match=r"latin\.toml:2: .*UTF-8"):
        load_job(latin)


def test_a_byte_order_mark_and_windows_line_ends_are_read(tmp_path: Path) -> None:
    path = tmp_path / "job.toml"
    path.write_bytes(b"\xef\xbb\xbf" + GOOD.replace("\n", "\r\n").encode())
    assert load_job(path) == parse_job(GOOD)
    path.write_bytes(GOOD.replace("k = 2", "k = 0").replace("\n", "\r\n").encode())
    with pytest.raises(ConfigError, match=r"job\.toml:6: clusters\.k"):
        load_job(path)


def test_the_embedded_sample_is_a_good_job() -> None:
    job = load_job(sample_folder("clinics") / "job.toml")
    assert job.name == "clinics"
    assert len(job.parties) == 3


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"k": True}, r"clusters\.k must be an integer"),
        ({"columns": ()}, "columns must have at least one"),
        ({"columns": (Column(name="a", low=0, high=1),) * 2}, r"columns\.a must be named once; got 2 times"),
        ({"parties": ()}, "parties must be at least 1; got 0"),
        ({"protocol": make_options("naive", iterations=0)}, r"protocol\.iterations must be an integer from 1"),
        ({"protocol": make_options("naive", start_by="parties")}, r"protocol\.start_by must be one of coordinator"),
        ({"data": DataOptions(records=1.5)}, r"data\.records must be an integer"),
    ],
)
def test_a_job_made_in_python_is_checked_alike(changes: dict[str, Any], message: str) -> None:
    job = parse_job(GOOD)
    with pytest.raises(ConfigError, match=message):
        dataclasses.replace(job, **changes)


def test_a_setup_made_in_python_is_checked_alike() -> None:
    with pytest.raises(ConfigError, match=r"run\.seed must be an integer"):
        Setup(job=parse_job(GOOD), seed=2**63)


def test_a_template_parses_up_to_the_first_bound_and_then_runs() -> None:
    columns = ["age", 'a "quoted" = name', "x.y", "# z"]
    text = render_template(name="new", k=3, columns=columns, parties=[TemplateParty(name="n", data="n.csv")])
    line = text.splitlines().index(next(row for row in text.splitlines() if row.startswith("age"))) + 1
    with pytest.raises(ConfigError, match=rf"^job\.toml:{line}: columns\.age .*Fill in low and high for column age"):
        parse_job(text, source_name="job.toml")
    assert list(tomllib.loads(text)["columns"]) == columns
    filled = parse_job(text.replace("= {}", "= { low = 0, high = 1 }"))
    assert [column.name for column in filled.columns] == columns
    assert [party.name for party in filled.parties] == ["n", "second"]
