"""Parties on different processors end with one result, for every family of protocols.

Each party's process is told to compute as another processor would: another kernel of OpenBLAS, no wide instructions in
NumPy and in libm, another target for Numba's compiled loops (one of them: everything is compiled anew for it, and kept
for the next run). The coordinator's is as this machine is.
"""

import os
import platform
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from msgspec import structs

from cloister.cli.role_process import RoleTask, read_report
from cloister.crypto import make_entropy
from cloister.errors import RemoteProtocolError, TooFewPartiesError
from cloister.jobfile import load_setup
from cloister.runtime import Fault, FaultKind
from cloister.runtime.pipes import Processes
from cloister.sessions import simulate
from tests.golden.tables import COLUMNS, HELD, PARTY_ROWS, write_tables

MODULE = "cloister.cli.role_process"
SETTINGS = {
    "as this machine is": {},
    "an old server": {
        "OPENBLAS_CORETYPE": "Nehalem",
        "NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4",
        "NUMBA_CPU_NAME": "nehalem",
        "NUMBA_CPU_FEATURES": "",
        "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-FMA",
    },
    "a server without wide instructions": {
        "OPENBLAS_CORETYPE": "Sandybridge",
        "NPY_DISABLE_CPU_FEATURES": "X86_V4",
    },
    "a server with the widest": {"OPENBLAS_CORETYPE": "SkylakeX"},
}
NEEDED = {"a server with the widest": "avx512f", "a server without wide instructions": "avx", "an old server": "sse4_2"}


def find_missing():
    """What this processor lacks of what the settings need."""
    try:
        flags = set(Path("/proc/cpuinfo").read_text().split())
    except OSError:
        return "a list of what it can do"
    return ", ".join(f"{feature} (for {name})" for name, feature in NEEDED.items() if feature not in flags)


pytestmark = pytest.mark.skipif(
    platform.machine() != "x86_64" or bool(find_missing()),
    reason=f"the settings are for x86-64 processors; this one is {platform.machine()} and lacks {find_missing()}",
)


def make_job(protocol, *, budget="", data="", section="", columns=2):
    lines = ['name = "mixed"', "[clusters]", "k = 3", "[protocol]", protocol]
    lines += ["[budget]", budget] if budget else []
    lines += ["[data]", data, section, "[columns]"]
    lines += [f"x{column} = {{ low = 0, high = 100 }}" for column in range(columns)]
    for party in PARTY_ROWS:
        lines += ["[[parties]]", f'name = "{party}"', f'data = "{party}.csv"']
    return "\n".join(lines) + "\n"


def make_vertical(protocol="", *, budget=""):
    parties = ("bank", "telco", "shop")
    lines = ['name = "mixed"', "[clusters]", "k = 3", "[protocol]", 'name = "vertical"', protocol]
    lines += ["[budget]", budget] if budget else []
    lines += ["[data]", "aligned = true", "records = 80", "[columns]"]
    lines += [f"{column} = {{ low = 0, high = 100 }}" for party in parties for column in HELD[party]]
    for party in parties:
        lines += ["[[parties]]", f'name = "{party}"', f'data = "aligned-{party}.csv"']
        lines += ["columns = [" + ", ".join(f'"{column}"' for column in HELD[party]) + "]"]
    return "\n".join(lines) + "\n"


BUDGET = "epsilon = 8.0\ndelta = 1e-6"
SHARED = 'placement = "shared"\ncolluding_max = 1\n'
RING = 'topology = "ring"\n'
JOBS = {
    "naive": make_job('name = "naive"\niterations = 3'),
    "masked sums": make_job('name = "masked-sum-count"\niterations = 3'),
    "masked centroids": make_job('name = "masked-centroid"\niterations = 3'),
    "mask-noise-average": make_job('name = "mask-noise-average"\niterations = 3\n' + SHARED, budget=BUDGET),
    "FastLloyd": make_job('name = "fastlloyd"\niterations = 3\n' + SHARED, budget=BUDGET, columns=COLUMNS),
    "FastLloyd, ring": make_job('name = "fastlloyd"\niterations = 3\n' + RING + SHARED, budget=BUDGET),
    "FastLloyd, joint noise": make_job(
        'name = "fastlloyd"\niterations = 2\nnoise = "laplace"\nplacement = "joint"\n' + RING, budget=BUDGET
    ),
    "SecFC": make_job('name = "secfc"\niterations = 4'),
    "vertical": make_vertical("cells = 3\niterations = 1"),
    "vertical with a budget": make_vertical("cells = 3\niterations = 1", budget=BUDGET),
    "vertical with a budget, joint cells": make_vertical(
        'model = "server-aided"\ncells = 3\niterations = 1\ncomputing = "bank"\nkey_holder = "shop"', budget=BUDGET
    ),
    "synopsis": make_job('name = "synopsis"', budget=BUDGET, section="[synopsis]\ncells_max = 30"),
    "synopsis, noise of its own at each": make_job(
        'name = "synopsis"\nplacement = "local"', budget=BUDGET, section="[synopsis]\ncells_max = 30"
    ),
    "FedDP": make_job('name = "feddp"', budget=BUDGET, data='server = "server.csv"'),
    "FedDP, as published": make_job(
        'name = "feddp"\nvariant = "published"', budget=BUDGET, data='server = "server.csv"'
    ),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("tables")
    write_tables(made)
    return made


def list_environments(request):
    """The coordinator's, then the parties'."""
    kept = request.config.rootpath / ".pytest_cache" / "numba"
    threads = dict.fromkeys(("OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS", "OMP_NUM_THREADS"), "1")
    return [
        {**threads, **chosen, **({"NUMBA_CACHE_DIR": str(kept)} if "NUMBA_CPU_NAME" in chosen else {})}
        for chosen in SETTINGS.values()
    ]


@pytest.fixture(scope="module")
def processes(request):
    with Processes(list_environments(request), module=MODULE) as opened:
        yield opened


COMPUTE = """
import hashlib
import math
import numpy as np
x = np.linspace(-3, 3, 5000).reshape(50, 100) ** 3
of_libm = np.array([one ** 2 + math.exp(one / 30) for one in x.ravel().tolist()])
for array in (x @ x.T, np.exp(x / 30), of_libm):
    print(hashlib.sha256(array.tobytes()).hexdigest())
"""


def test_the_settings_do_compute_differently(request):
    found = [
        subprocess.run(
            [sys.executable, "-c", COMPUTE], env={**os.environ, **own}, capture_output=True, check=True, text=True
        ).stdout.split()
        for own in list_environments(request)
    ]
    products, exponentials, of_libm = (set(column) for column in zip(*found, strict=True))
    assert len(products) == 4
    assert len(exponentials) >= 2
    assert len(of_libm) >= (2 if platform.libc_ver()[0] == "glibc" else 1)


def make_tasks(path, seed, journals=None):
    """What each process is told: the contract, its own table, and where its journal is."""
    setup, text = load_setup(path), path.read_text()
    session = make_entropy("session", seed=seed).bytes(16)
    shared = {"job": text, "folder": str(path.parent), "session": session, "seed": seed}
    parties = [
        RoleTask(**shared, party=party.name, data=str(setup.own_side(party.name).data)) for party in setup.job.parties
    ]
    tasks = [RoleTask(**shared), *parties]
    if journals is not None:
        kept = [{"journal": str(journals / str(number)), "journal_key": bytes(32)} for number in range(len(tasks))]
        tasks = [structs.replace(task, **own) for task, own in zip(tasks, kept, strict=True)]
    return [task.encode() for task in tasks]


@pytest.mark.parametrize("name", JOBS)
def test_parties_on_different_processors_end_with_one_result(name, processes, folder):
    path = folder / "job.toml"
    path.write_text(JOBS[name])
    for seed in (1, None):
        run = processes.run(make_tasks(path, seed))
        assert run.failures == {}
        assert run.rejected == ()
        reports = [read_report(body) for _, body in sorted(run.found.items())]
        assert len(reports) == 3
        assert reports[0].centres is not None
        assert all(report.centres == reports[0].centres for report in reports)
        assert all(report.cluster_records == reports[0].cluster_records for report in reports)


def test_over_pipes_a_job_ends_as_in_one_process(processes, folder):
    path = folder / "job.toml"
    path.write_text(JOBS["masked sums"])
    setup = load_setup(path)
    run = processes.run(make_tasks(path, 5))
    centres = read_report(run.found[1]).centres
    found = setup.job.to_original(centres.to_numpy(np.float64, *centres.shape))
    assert np.array_equal(found, simulate(setup, seed=5, evaluate=False).centres)


# --- kills --------------------------------------------------------------------------------------------------------

BROKEN = {
    "the coordinator is killed": Fault(FaultKind.CRASH, 0, 6),
    "a party is killed before it is asked": Fault(FaultKind.CRASH, 1, 6),
    "a party is killed after it has answered": Fault(FaultKind.CRASH_AFTER, 2, 6),
    "a party is started anew without memory": Fault(FaultKind.RESTART, 3, 6),
}


@pytest.mark.parametrize("name", BROKEN)
def test_whoever_is_killed_everybody_ends_with_one_result_or_a_typed_error(name, processes, folder):
    path = folder / "job.toml"
    path.write_text(JOBS["synopsis"])
    run = processes.run(make_tasks(path, None), faults=[BROKEN[name]])
    reports = [read_report(body) for body in run.found.values()]
    finished = [report.centres for report in reports if report.centres is not None]
    assert all(centres == finished[0] for centres in finished)
    assert finished or run.failures
    assert all(isinstance(error, TooFewPartiesError | RemoteProtocolError) for error in run.failures.values())
    # Nobody is charged twice for anything, whatever is asked again.
    assert all(len(set(report.charged)) == len(report.charged) for report in reports)
    assert set(run.found) | set(run.failures) >= {1, 2, 3}


RESUMED = {
    "a party before it opens": Fault(FaultKind.RESTART, 3, 6),
    "a party after it has opened": Fault(FaultKind.RESTART_AFTER, 2, 6),
    "the leader before it reads a total": Fault(FaultKind.RESTART, 1, 7),
    "the leader after it has stated a question": Fault(FaultKind.RESTART_AFTER, 1, 7),
    "the coordinator before it asks": Fault(FaultKind.RESTART, 0, 5),
    "the coordinator before it adds up": Fault(FaultKind.RESTART_AFTER, 0, 5),
}


@pytest.mark.parametrize("name", RESUMED)
def test_whoever_is_killed_and_has_a_journal_goes_on_and_nobody_misses_it(name, processes, folder, tmp_path):
    """Real kills, each process under another setting; tests/runtime/test_resuming.py has every step."""
    path = folder / "job.toml"
    path.write_text(JOBS["synopsis"])
    run = processes.run(make_tasks(path, None, tmp_path), faults=[RESUMED[name]])
    assert run.failures == {}
    assert not any(run.missed.values())
    reports = [read_report(body) for body in run.found.values()]
    assert len(reports) == 3
    assert all(report.centres == reports[0].centres is not None for report in reports)
    assert all(len(set(report.charged)) == len(report.charged) for report in reports)
    until = time.monotonic() + 15
    while any(tmp_path.iterdir()) and time.monotonic() < until:  # a role wipes its journal when it has told its result
        time.sleep(0.05)
    assert not any(tmp_path.iterdir())
