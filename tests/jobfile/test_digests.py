"""What enters a job's digest: what all agree on, and nothing about how one party reads its own table."""

from dataclasses import replace

import msgspec
import pytest

from cloister.columns import Column
from cloister.errors import ConfigError
from cloister.jobfile import parse_job

JOB = """name = "clinics"
[budget]
epsilon = 1.0
[clusters]
k = 2
[columns]
age = { low = 0, high = 100 }
sex = { levels = ["f", "m"] }
[[parties]]
name = "a"
[[parties]]
name = "b"
"""
DIGEST = "d6e8c44599a3fdebfcab538afe08d3ef9f202d8165831c8112fd198da9679298"


def test_the_digest_of_a_job_without_new_keys_is_the_one_it_always_had():
    exact = JOB.replace("[budget]\nepsilon = 1.0\n", '[protocol]\nname = "masked-sum-count"\n')
    numbers = parse_job(exact.replace('sex = { levels = ["f", "m"] }\n', ""))
    assert numbers.digest.hex() == DIGEST


def test_how_a_party_finds_its_columns_is_not_agreed_on():
    job = parse_job(JOB)
    assert parse_job(JOB + '[data]\nmatch = "order"\n').digest == job.digest


@pytest.mark.parametrize(
    "other",
    [
        Column.category("sex", ["m", "f"]),
        Column.category("sex", ["f", "m"], weight=2),
        Column.category("sex", ["f", "m", "other"]),
        Column.boolean("sex"),
        Column(name="sex", low=0, high=1),
        Column(name="sex", low=0, high=1, kind="date"),
    ],
)
def test_levels_weights_and_kinds_are_agreed_on(other):
    job = parse_job(JOB)
    assert replace(job, columns=(job.columns[0], other)).digest != job.digest
    assert msgspec.msgpack.encode(other.list_agreed())


def test_a_column_and_a_level_have_different_names():
    with pytest.raises(ConfigError, match=r'columns\."sex=m" must not be named as column=level'):
        parse_job(JOB.replace("age =", '"sex=m" ='))
    assert parse_job(JOB.replace("age =", '"sex=f" =')).dimensions == 2  # two levels have one coordinate
