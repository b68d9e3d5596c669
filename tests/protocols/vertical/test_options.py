"""Vertical jobs: who does what where the job does not say, and what is refused with line and key."""

import dataclasses
from pathlib import Path

import pytest

from cloister.columns import Column
from cloister.errors import ConfigError
from cloister.job import Budget, DataOptions, Job, JobParty, OwnSide, make_options
from cloister.jobfile import parse_setup
from cloister.numeric import FixedPoint
from cloister.protocols.align.terms import NormalForm
from cloister.protocols.vertical.options import CODEBOOK_CELLS_MOST, assign_roles
from cloister.protocols.vertical.settings import BITS_LEAST, EXACT_BITS_MOST, NOISY_BITS_MOST, Settings
from cloister.sessions.tables import resolve_form

JOB = """\
name = "customers"
[clusters]
k = 4
[columns]
age = { low = 0, high = 120 }
income = { low = 0, high = 150 }
usage = { low = 0, high = 50 }
calls = { low = 0, high = 24 }
[data]
id = "customer"
[protocol]
name = "vertical"
[[parties]]
name = "telco"
data = "telco.csv"
columns = ["usage"]
[[parties]]
name = "bank"
data = "bank.csv"
columns = ["income", "age", "calls"]
"""
THREE = JOB.replace(', "calls"]', "]") + ('[[parties]]\nname = "shop"\ndata = "shop.csv"\ncolumns = ["calls"]\n')
FIVE = """\
name = "five"
[clusters]
k = 4
[protocol]
name = "vertical"
[data]
aligned = true
[columns]
""" + "".join(f"c{i} = {{ low = 0, high = 1 }}\n" for i in range(5))
FIVE += "".join(f'[[parties]]\nname = "p{i}"\ndata = "p{i}.csv"\ncolumns = ["c{i}"]\n' for i in range(5))


def read(text=JOB):
    return parse_setup(text, folder="/jobs", source_name="job.toml")


def parse(text=JOB):
    return read(text).job


def with_option(line, text=JOB):
    return text.replace('name = "vertical"\n', f'name = "vertical"\n{line}\n')


def test_two_parties_with_defaults():
    job = parse()
    roles = assign_roles(job)
    assert (roles.model, roles.computing, roles.encrypted) == ("two-party", 1, (0,))  # the bank has most columns
    assert (roles.key_holders, roles.threshold) == ((0,), 1)
    assert roles.colluding_max == 1  # each of the two adds all noise
    assert roles.columns == ((2,), (1, 0, 3))  # in the order of each party's table
    assert roles.labels == ()
    assert [column.name for column in job.find_columns(job.parties[1])] == ["income", "age", "calls"]
    assert job.protocol.grid == FixedPoint(16)
    assert job.budget is None


def test_three_parties_share_the_key_unless_they_say_otherwise():
    roles = assign_roles(parse(THREE))
    assert (roles.model, roles.computing, roles.encrypted) == ("collective", 1, (0, 2))
    assert (roles.key_holders, roles.threshold, roles.colluding_max) == ((0, 2), 2, 2)  # all but the one that computes
    four = FIVE.replace('[[parties]]\nname = "p4"\ndata = "p4.csv"\ncolumns = ["c4"]\n', "")
    some = assign_roles(parse(with_option("threshold = 2", four.replace('["c0"]', '["c0", "c4"]'))))
    assert (some.key_holders, some.threshold, some.colluding_max) == ((1, 2, 3), 2, 2)
    aided = assign_roles(parse(with_option("model = 'server-aided'", THREE)))
    assert (aided.computing, aided.key_holders) == (1, (2,))
    last = assign_roles(parse(with_option("model = 'server-aided'\ncomputing = 'shop'", THREE)))
    assert (last.computing, last.key_holders) == (2, (0,))  # the party after the last is the first
    named = assign_roles(parse(with_option("model = 'server-aided'\nkey_holder = 'telco'", THREE)))
    assert named.key_holders == (0,)


def test_a_party_without_columns_computes_and_needs_no_table():
    text = FIVE.replace('columns = ["c4"]', "columns = []").replace('data = "p4.csv"\n', "")
    text = text.replace('columns = ["c3"]', 'columns = ["c3", "c4"]')
    text = text.replace('[[parties]]\nname = "p0"\ndata = "p0.csv"\ncolumns = ["c0"]\n', "")
    job = parse(text.replace('columns = ["c1"]', 'columns = ["c0", "c1"]'))
    roles = assign_roles(job)
    assert [party.name for party in job.parties] == ["p1", "p2", "p3", "p4"]
    assert (roles.computing, roles.encrypted, roles.columns[3]) == (3, (0, 1, 2), ())
    assert job.find_columns(job.parties[3]) == ()


@pytest.mark.parametrize("held", [("a", "bc", "de"), ("abc", "", "de")])
def test_who_holds_nothing_computes_or_the_first_of_those_with_most(held):
    job = Job(
        name="five",
        k=2,
        columns=tuple(Column(name=name, low=0, high=1) for name in sorted("".join(held))),
        parties=tuple(JobParty(name=f"p{i}", columns=tuple(own)) for i, own in enumerate(held)),
        protocol=make_options("vertical"),
        data=DataOptions(aligned=True),
    )
    assert assign_roles(job).computing == 1


def test_every_option_is_read():
    text = with_option(
        "computing = 'telco'\nmodel = 'two-party'\ninitialisation = 'random'\n"
        "iterations = 7\ncells = 32\nresiduals = true\nfractional_bits = 15\noffset_bits = 12\n"
        "labels = ['bank', 'telco']\n[budget]\n"
        "epsilon = 2\n[ledger]\npath = 'books'"
    ).replace('id = "customer"', 'id = "customer"\nid_form = "integer"\nid_trim = true\nrecords = 5000')
    for party in ("telco", "bank"):
        text = text.replace(f'data = "{party}.csv"', f'data = "{party}.csv"\nalignment = "aligned/{party}.json"')
    setup = read(text)
    job, roles = setup.job, assign_roles(setup.job)
    assert (roles.computing, roles.labels, job.protocol.initialisation) == (0, (1, 0), "random")
    assert (job.protocol.cells, job.protocol.residuals, job.protocol.offset_bits) == (32, True, 12)
    assert (job.protocol.grid, job.protocol.iterations) == (FixedPoint(15), 7)
    assert resolve_form(job) == NormalForm(kind="integer", trim=True)
    folder = Path("/jobs")
    assert setup.own_side("bank") == OwnSide(
        data=folder / "bank.csv", alignment=folder / "aligned/bank.json", ledger=folder / "books/bank.ledger"
    )
    assert job.budget == Budget(epsilon=2.0, delta=1e-6)


def test_a_job_made_in_python_is_checked_too():
    job = parse()
    again = Job(
        name=job.name,
        k=4,
        columns=job.columns,
        parties=(JobParty(name="a", columns=("usage", "age")), JobParty(name="b", columns=("income", "calls"))),
        protocol=make_options("vertical"),
        data=DataOptions(aligned=True),
    )
    assert assign_roles(again).computing == 0
    with pytest.raises(ConfigError, match=r"parties\[0\]\.columns must be given"):
        dataclasses.replace(again, parties=(JobParty(name="a"), JobParty(name="b")))


# what is replaced, by what, the line, and words of the message
BROKEN = [
    ('["usage"]', '["usage", "age"]', 20, ["parties[1].columns[1]", '"age", which parties[0] has already']),
    ('["usage"]', '["usage", "usage"]', 16, ["parties[0].columns[1]", "once"]),
    ('["usage"]', '["usag"]', 16, ["parties[0].columns[0]", 'mean "usage"']),
    ('["usage"]', "[7]", 16, ["parties[0].columns[0]", "one of [columns]", "7"]),
    ('["usage"]', '"usage"', 16, ["parties[0].columns", "list of names"]),
    ('columns = ["usage"]\n', "", 13, ["parties[0].columns must be given", 'columns = ["age"]']),
    (', "calls"]', "]", 8, ["columns.calls", "among the columns of one party", "delete it"]),
    ('["income", "age", "calls"]', "[]", 5, ["columns.age", "among the columns of one party"]),
    ("k = 4", "k = 1", 3, ["clusters.k", "from 2 to 100", "got 1"]),
    ("k = 4", "k = 101", 3, ["clusters.k", "from 2 to 100"]),
    ("k = 4", "choose_k = true\nk_max = 5", 3, ["clusters.choose_k", "synopsis"]),
    ('id = "customer"', "", 9, ["data must say which rows", 'id = "COLUMN"', "aligned = true"]),
    ('[data]\nid = "customer"\n', "", None, ["data must say which rows"]),
    ('id = "customer"', "aligned = false", 9, ["data must say which rows"]),
    ('id = "customer"', "aligned = 1", 10, ["data.aligned", "true or false"]),
    ('id = "customer"', 'id = "customer"\naligned = true', 10, ["data.id", "left out with aligned"]),
    ('id = "customer"', "aligned = true\nid_trim = true", 11, ["data.id_trim", "come with id"]),
    ('id = "customer"', 'id = "age"', 10, ["data.id", "not be a column that is clustered"]),
    ('id = "customer"', 'id = "customer"\nid_form = "number"', 11, ["data.id_form", "integer, raw, text"]),
    ('id = "customer"', 'id = "c"\nid_form = "raw"\nid_trim = true', 12, ["data.id_trim", "text or integer"]),
    ('id = "customer"', 'id = "c"\nid_form = "raw"\nid_ignore_case = true', 12, ["data.id_ignore_case", "text IDs"]),
    ('id = "customer"', 'id = "c"\nmax_records = 9', 11, ["data.max_records", "public"]),
    ('"telco.csv"', '"telco.csv"\nalignment = "t.json"', 18, ["parties[1].alignment", "every party or for none"]),
    ('data = "bank.csv"\n', "", 17, ["parties[1] must have the key data"]),
    ('name = "vertical"', 'name = "verticle"', 12, ["protocol.name", 'mean "vertical"']),
]
# a line in [protocol], at line 13, and words
OPTIONS = [
    ("computing = 'bnak'", ["protocol.computing", 'mean "bank"']),
    ("model = 'three-party'", ["protocol.model", "collective, server-aided, two-party"]),
    ("model = 'server-aided'", ["protocol.model", "at least three parties", "got 2"]),
    ("key_holder = 'bank'", ["protocol.key_holder", 'model = "server-aided"', '"two-party"']),
    ("threshold = 2", ["protocol.threshold", 'model = "collective"']),
    ("colluding_max = 1", ["protocol.colluding_max", 'model = "collective"']),
    ("initialisation = 'sphere-packing'", ["protocol.initialisation", "random, synopsis"]),
    ("iterations = 0", ["protocol.iterations", "from 1 to 100"]),
    ("cells = 1", ["protocol.cells", "from 2 to 256"]),
    ("cells = 'many'", ["protocol.cells", "from 2 to 256"]),
    ("residuals = 'yes'", ["protocol.residuals", "true or false"]),
    ("offset_bits = 3", ["protocol.offset_bits", "from 4 to 20"]),
    ("offset_bits = 18", ["protocol.offset_bits", "at most fractional_bits = 16"]),
    ("labels = 'bank'", ["protocol.labels", "be a list"]),
    ("labels = ['shop']", ["protocol.labels[0]", "telco, bank"]),
    ("labels = ['bank', 'bank']", ["protocol.labels[1]", "once"]),
    ("placement = 'shared'", ["protocol.placement", "does not take it"]),
    ("min_parties = 2", ["protocol.min_parties", "does not take it"]),
    ("ring = 64", ["protocol.ring", "does not take it"]),
    ("sample = 3", ["protocol.sample", "It belongs in [feddp]"]),
]


@pytest.mark.parametrize(("old", "new", "line", "words"), BROKEN)
def test_what_does_not_hold_is_told_with_its_line(old, new, line, words):
    assert old in JOB
    with pytest.raises(ConfigError) as caught:
        parse(JOB.replace(old, new, 1))
    where = "job.toml: " if line is None else f"job.toml:{line}: "
    assert str(caught.value).startswith(where), caught.value
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize(("option", "words"), OPTIONS)
def test_options_that_do_not_fit_are_told_with_their_line(option, words):
    with pytest.raises(ConfigError) as caught:
        parse(with_option(option))
    assert str(caught.value).startswith("job.toml:13: "), caught.value
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("model = 'two-party'", "protocol.model must have two parties"),
        ("model = 'server-aided'\nkey_holder = 'bank'", "protocol.key_holder must not be the party that computes"),
        ("threshold = 1", "protocol.threshold must be an integer of at least 2"),
        ("threshold = 'two'", "protocol.threshold must be an integer of at least 2"),
        ("colluding_max = 'one'", "protocol.colluding_max must be an integer of at least 1"),
        ("colluding_max = 0", "protocol.colluding_max must be an integer of at least 1"),
        ("labels = ['tellco']", 'Did you mean "telco"?'),
        ("threshold = 3", "protocol.threshold must be an integer from 2 to 2"),
        ("colluding_max = 3", "protocol.colluding_max must be at most threshold = 2"),
        ("colluding_max = 1", "protocol.colluding_max must come with a [budget]"),
        ("cells = 33", "at most 1024 joint cells; got 33, or 1089 joint ones. Write 32 at most"),
        ("residuals = true", "protocol.residuals must be false with several encrypted parties"),
        ("[budget]\nepsilon = 1\ndelta = 0", "budget.delta must be greater than 0 with this noise of vertical"),
        (
            "[budget]\nepsilon = 1\nunit = 'client'",
            'budget.unit must be "record" or "person" with the protocol vertical',
        ),
        ("[ledger]\npath = 'books'", "ledger must come with a [budget]"),
    ],
)
def test_roles_of_three_that_do_not_fit_are_refused(option, words):
    with pytest.raises(ConfigError) as caught:
        parse(with_option(option, THREE))
    assert words in str(caught.value)


def test_more_encrypted_column_holders_than_joint_cells_are_for_are_refused():
    with pytest.raises(ConfigError) as caught:
        parse(FIVE)
    assert "parties must have columns at no more than 3 besides the one that computes; got 4" in str(caught.value)
    assert "comparisons under encryption, which do not exist yet" in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (
            'data = "shop.csv"\ncolumns = ["calls"]',
            "columns = []",
            "parties[2].columns must have at least one column, unless it computes or holds a key",
        ),
        ('data = "shop.csv"\ncolumns = ["calls"]', "columns = []\ndata = 'x.csv'", "parties[2].data must be left out"),
    ],
)
def test_a_party_without_columns_must_compute_and_nothing_else(old, new, words):
    text = THREE.replace(old, new).replace('"age"]', '"age", "calls"]')
    if "data" not in words:
        text = with_option("computing = 'bank'\nmodel = 'server-aided'\nkey_holder = 'telco'", text)
    with pytest.raises(ConfigError) as caught:
        parse(text)
    assert words in str(caught.value)


def test_one_holder_of_all_columns_needs_nobody():
    text = JOB.replace('data = "telco.csv"\ncolumns = ["usage"]', "columns = []").replace('"age",', '"age", "usage",')
    with pytest.raises(ConfigError, match="columns at two or more of them; got 1"):
        parse(text)


def test_alignments_need_the_id_column_and_exclude_a_common_order():
    files = JOB
    for party in ("telco", "bank"):
        files = files.replace(f'"{party}.csv"', f'"{party}.csv"\nalignment = "{party}.json"')
    with pytest.raises(ConfigError, match="data must say which rows of the tables belong together"):
        parse(files.replace('id = "customer"', ""))
    with pytest.raises(ConfigError, match=r"parties\[0\]\.alignment must be left out with aligned = true"):
        parse(files.replace('id = "customer"', "aligned = true"))


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (
            "alignment = 'x.json'",
            r"job\.toml:15: parties\[0\]\.alignment must come with the protocol .*vertical",
        ),
        ("columns = ['age']", r"job\.toml:15: parties\[0\]\.columns must come with the protocol vertical"),
    ],
)
def test_other_protocols_do_not_take_a_partys_columns(line, words):
    text = JOB.replace("vertical", "naive").replace('id = "customer"\n', "").replace('columns = ["usage"]\n', "")
    text = text.replace('columns = ["income", "age", "calls"]\n', "").replace('"telco.csv"', f'"telco.csv"\n{line}')
    parse(text.replace(f"{line}\n", ""))
    with pytest.raises(ConfigError, match=words):
        parse(text)
    with pytest.raises(ConfigError, match=r"data\.aligned must come with the protocol vertical"):
        parse(text.replace(f"{line}\n", "").replace("[data]\n", "[data]\naligned = true\n"))


def test_a_misplaced_key_is_sent_to_every_section_that_takes_it():
    with pytest.raises(ConfigError, match=r"It belongs in \[protocol\] or \[network\]\."):
        parse(JOB + "[run]\nmodel = 'collective'\n")


def test_noise_leaves_room_for_fewer_bits():
    with pytest.raises(ConfigError, match=r"job\.toml:13: protocol\.offset_bits must be at most 12 with a \[budget\]"):
        parse(with_option("offset_bits = 16") + "[budget]\nepsilon = 1\n")
    assert parse(with_option("offset_bits = 16")).protocol.offset_bits == 16


@pytest.mark.parametrize("epsilon", [None, 1.0])
def test_the_protocol_takes_what_the_job_may_say(epsilon):
    """The limits told with a line here are those of the protocol's own settings."""
    budget = None if epsilon is None else Budget(epsilon=epsilon, delta=1e-6)
    most = EXACT_BITS_MOST if budget is None else NOISY_BITS_MOST

    def make(**options):
        return Settings(
            clusters=4, columns_alice=(0,), columns_encrypted=((1,),), records=100, budget=budget, **options
        )

    for bits in (BITS_LEAST, most):
        make(rounds=100, cells=CODEBOOK_CELLS_MOST, fractional_bits=bits)
    for option in (
        {"rounds": 101},
        {"cells": CODEBOOK_CELLS_MOST + 1},
        {"fractional_bits": BITS_LEAST - 1},
        {"fractional_bits": most + 1},
    ):
        with pytest.raises(ConfigError):
            make(**option)
