"""From a job file, key files and one's own side to ONE end that is ready to connect."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from cloister.credentials import find_keys, find_public_files, load_keys
from cloister.credentials.directory import list_public_files
from cloister.deployment.ends import End
from cloister.deployment.keys import find_role, list_peers, make_end
from cloister.errors import ConfigError, PolicyError
from cloister.job import COORDINATOR, Job, OwnSide, Setup, find_policy
from cloister.jobfile import load_own_side, load_party_setup, load_policy
from cloister.runtime.remote.hub import Deadlines


def open_end(
    job: Job,
    keys: str,
    peers: Sequence[Path] | None,
    deadlines: Deadlines,
    own_side: Path | None = None,
    hosts: Sequence[Path] = (),
) -> tuple[str, End]:
    """Read our keys, the others' public files and what our policy revokes; return who we are, and what we hold."""
    path = find_keys(keys)
    own = load_keys(path)
    role = find_role(job, own)
    found = find_public_files(list_peers(job, role), peers or [path.parent], may_miss=bool(hosts))
    hosting = list_public_files(hosts)
    policy = find_policy(OwnSide() if own_side is None else load_own_side(own_side))
    revoked = () if policy is None else load_policy(policy).revoked
    if role == COORDINATOR and (gone := [party.name for party in job.parties if party.identity in revoked]):
        raise PolicyError(
            f"{policy}: the coordinator's own policy must not revoke the job's parties; it revokes {', '.join(gone)}. "
            "Ask them for a job with their new identities."
        )
    return role, make_end(job, own, found, deadlines=deadlines, revoked=revoked, hosts=hosting)


def read_own_setup(job_file: Path, job: Job, role: str, own: Path | None, *, has_table: bool = False) -> Setup:
    """Read our own side, which our policy allows to take part; ``has_table`` says that the table is at hand."""
    if role == COORDINATOR:
        raise ConfigError("a party must use its own keys; these are the coordinator's. Run: cloister serve")
    holds = next(job.find_columns(one) for one in job.parties if one.name == role)
    if own is None and holds and not has_table:
        raise ConfigError(
            f'party {role!r} must say where its table is; it did not. Write data = "..." to a file and name it: '
            "--own own.toml"
        )
    return load_party_setup(job_file, role, own)


def read_address(job: Job) -> str:
    """Return where the job says that the coordinator listens."""
    if job.coordinator.address is None:
        raise ConfigError(
            'the job must say where the coordinator listens; it does not. Write address = "host:port" in '
            "[coordinator], or give --address HOST:PORT."
        )
    return job.coordinator.address
