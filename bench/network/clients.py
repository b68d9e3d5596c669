"""A client-level job with thousands of clients, hosted by two processes: the commands of a real run, on loopback.

Each client has its own identity, table and ledger, greets, consents and answers for itself. The two processes of the
pool share one certificate. Time is that of all processes together; the disk syncs each ledger.
"""

from __future__ import annotations

import csv
import math
import os
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cloister.credentials import make_identity, make_keys
from cloister.crypto import write_fingerprint

COUNTS, POOL = (2000, 5000), 2
_RECORDS = 20
_CLI = (sys.executable, "-m", "cloister")


@dataclass(frozen=True)
class Spent:
    """What a run took: seconds on the clock, CPU seconds and peak memory of the coordinator and of the pool."""

    clients: int
    finished: int
    wall_s: float
    coordinator_s: float
    pool_s: float
    coordinator_mb: float
    pool_mb: float


def clients(counts: tuple[int, ...] = COUNTS) -> list[str]:
    """Runs with more and more clients, and how the cost grows."""
    runs = []
    for count in counts:
        with tempfile.TemporaryDirectory() as folder:
            make_job(Path(folder), count)
            runs.append(run_job(Path(folder), count))
        one = runs[-1]
        print(
            f"{one.clients:,} clients: {one.finished:,} finished; {one.wall_s:.0f} s, CPU {one.coordinator_s:.1f} s at "
            f"the coordinator and {one.pool_s:.1f} s in the pool; at most {one.coordinator_mb:.0f} MB "
            f"and {one.pool_mb:.0f} MB in its largest process",
            flush=True,
        )
    if len(runs) > 1:
        few, many = runs[-2:]
        grown = math.log((many.coordinator_s + many.pool_s) / (few.coordinator_s + few.pool_s))
        print(f"CPU grows with the number of clients to the power {grown / math.log(many.clients / few.clients):.2f}")
    return [f"{one.clients:,} clients" for one in runs if one.finished < one.clients]


def make_job(folder: Path, count: int) -> None:
    """Write a job, and keys and a table for each client."""
    generator = np.random.default_rng(1)  # the tables are made up, and the same in every run
    keys, data = folder / "keys", folder / "data"
    data.mkdir()
    host, coordinator = (make_keys(name, folder) for name in ("host", "coordinator"))
    assert host.public.identity != coordinator.public.identity
    lines = [
        'name = "clients"\n[clusters]\nk = 2\n[columns]\nx = { low = 0, high = 1 }\ny = { low = 0, high = 1 }',
        '[budget]\nepsilon = 4.0\ndelta = 1e-6\nunit = "client"',
        f'[coordinator]\nidentity = "{coordinator.public.fingerprint}"\naddress = "127.0.0.1:7400"',
    ]
    for number in range(count):
        name = f"client{number:05d}"
        identity = make_identity(name, keys)
        lines.append(f'[[parties]]\nname = "{name}"\nidentity = "{write_fingerprint(identity.public_bytes)}"')
        centres = np.array([[0.2, 0.2], [0.8, 0.8]])[generator.integers(0, 2, _RECORDS)]
        points = np.clip(centres + generator.normal(scale=0.05, size=(_RECORDS, 2)), 0, 1)
        np.savetxt(data / f"{name}.csv", points, fmt="%.4f", delimiter=",", header="x,y", comments="")
    (folder / "job.toml").write_text("\n".join(lines) + "\n")


def run_job(folder: Path, count: int) -> Spent:
    """Run the coordinator and the pool."""
    environment = os.environ | {"XDG_DATA_HOME": str(folder / "own")}
    started_s = time.perf_counter()
    hosts = ("--keys", "coordinator.key", "--hosts", "host.pub", "--listen", "127.0.0.1:0", "--quiet")
    with subprocess.Popen(
        [*_CLI, "serve", "job.toml", *hosts], cwd=folder, env=environment, stdout=subprocess.PIPE, text=True
    ) as serving:
        assert serving.stdout is not None
        port = re.search(r"port (\d+)", serving.stdout.readline())
        assert port is not None, "the coordinator did not start"
        places = ("--keys", "keys", "--data", "data", "--host", "host.key", "--ledgers", "ledgers")
        options = ("--address", f"127.0.0.1:{port[1]}", "--processes", str(POOL), "--yes", "--quiet")
        # its children are the pool: their time is in what the command has used, their memory in a file of each
        pool = subprocess.Popen(
            [*_CLI, "clients", "job.toml", *places, *options], cwd=folder, env=environment, stdout=subprocess.DEVNULL
        )
        _, _, pool_used = os.wait4(pool.pid, 0)
        _, _, coordinator_used = os.wait4(serving.pid, 0)
        serving.returncode = pool.returncode = 0
    wall_s = time.perf_counter() - started_s
    finished = 0
    if (folder / "result-clients").exists():
        with (folder / "result-clients" / "clients.csv").open(newline="") as file:
            finished = sum(row["outcome"] == "finished" for row in csv.DictReader(file))
    return Spent(
        clients=count,
        finished=finished,
        wall_s=wall_s,
        coordinator_s=coordinator_used.ru_utime + coordinator_used.ru_stime,
        pool_s=pool_used.ru_utime + pool_used.ru_stime,
        coordinator_mb=coordinator_used.ru_maxrss / 1024,
        pool_mb=pool_used.ru_maxrss / 1024,
    )
