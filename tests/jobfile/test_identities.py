"""Identities in a job file: part of the contract, each its own, everyone's or no one's."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cloister.crypto import Identity, Stream, write_fingerprint
from cloister.errors import ConfigError
from cloister.job import Job, JobCoordinator, JobParty
from cloister.jobfile import parse_job, parse_setup

KEYS = [write_fingerprint(Identity(Stream(bytes([i]) * 32)).public_bytes) for i in range(3)]
TEXT = f"""\
name = "clinics"
[clusters]
k = 2
[budget]
epsilon = 1.0
[columns]
age = {{ low = 18, high = 95 }}
[coordinator]
identity = "{KEYS[0]}"
address = "cluster.example.org:7400"
[[parties]]
name = "north"
identity = "{KEYS[1]}"
[[parties]]
name = "harbour"
identity = "{KEYS[2]}"
"""


def test_identities_are_read() -> None:
    job = parse_job(TEXT)
    assert job.parties == tuple(
        JobParty(name=n, identity=k) for n, k in zip(("north", "harbour"), KEYS[1:], strict=True)
    )
    assert job.coordinator == JobCoordinator(identity=KEYS[0], address="cluster.example.org:7400")
    assert parse_setup(TEXT).job == job
    keys = [job.coordinator.public_key, *(party.public_key for party in job.parties)]
    assert [write_fingerprint(key) for key in keys] == KEYS


def strip(job: Job) -> Job:
    return replace(job, parties=tuple(JobParty(name=p.name) for p in job.parties), coordinator=JobCoordinator())


def test_the_digest_covers_who_and_not_where() -> None:
    job = parse_job(TEXT)
    other = write_fingerprint(Identity(Stream(bytes([9]) * 32)).public_bytes)
    swapped = TEXT.replace(KEYS[1], "?").replace(KEYS[2], KEYS[1]).replace("?", KEYS[2])
    others = [TEXT, swapped, *(TEXT.replace(key, other) for key in KEYS)]
    assert len({strip(job).digest, *(parse_job(text).digest for text in others)}) == 6
    assert parse_job(TEXT.replace("cluster.example.org:7400", "[::1]:1")).digest == job.digest


def test_jobs_without_identities_keep_their_digest() -> None:
    """It holds nothing of identities; recorded again when the synopsis got new settings."""
    assert strip(parse_job(TEXT)).digest.hex() == "3dbc26c43d6054a29c29d755f622451ac3a30e33c5f19e50814cc1ba4130a796"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (KEYS[1], KEYS[1][:-1], "job:13: parties[0].identity: an identity must be ed25519: and 56"),
        (
            KEYS[2],
            KEYS[2][:-1] + ("a" if KEYS[2][-1] != "a" else "b"),
            "job:16: parties[1].identity: an identity must end",
        ),
        (KEYS[2], KEYS[1], "job:16: parties[1].identity must be an identity of its own; got that of parties[0]"),
        (KEYS[2], KEYS[0], "job:9: coordinator.identity must be an identity of its own; got that of parties[1]"),
        (f'identity = "{KEYS[2]}"', "", "job:14: parties[1].identity must be given for everyone"),
        (f'identity = "{KEYS[0]}"', "", "job:8: coordinator.identity must be given for everyone"),
        (
            f'[coordinator]\nidentity = "{KEYS[0]}"\naddress = "cluster.example.org:7400"',
            "",
            "must be given for everyone",
        ),
        (f'"{KEYS[0]}"', "7", "job:9: coordinator.identity must be printable text"),
        (f'"{KEYS[1]}"', "true", "job:13: parties[0].identity must be printable text"),
        ("address", "adress", 'job:10: coordinator.adress must be a known key (identity, address); got "adress". Did'),
        ("org:7400", "org", "job:10: coordinator.address must be a host and a port, host:port"),
        ("org:7400", "org:0", "job:10: coordinator.address"),
        ("org:7400", "org:70000", "job:10: coordinator.address"),
        ("cluster.example.org:7400", "http://a:1", "job:10: coordinator.address"),
        ('"cluster.example.org:7400"', "7400", "job:10: coordinator.address"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(old: str, new: str, message: str) -> None:
    assert old in TEXT
    with pytest.raises(ConfigError) as error:
        parse_job(TEXT.replace(old, new))
    assert message in str(error.value)


def test_a_job_without_identities_names_nobody() -> None:
    job = strip(parse_job(TEXT))
    for one in (job.coordinator, job.parties[0]):
        with pytest.raises(ConfigError, match="must name the identity"):
            _ = one.public_key
