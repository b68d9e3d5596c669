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
from tests.golden.tables import write_tables
from tests.runtime.jobs import JOBS, LONG, RUN

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
    "the oldest": {"OPENBLAS_CORETYPE": "Prescott"},
}
NEEDED = {"a server with the widest": "avx512f", "a server without wide instructions": "avx", "an old server": "sse4_2"}


THREADS = ("OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS", "OMP_NUM_THREADS")


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


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("tables")
    write_tables(made)
    return made


def list_environments(request, turn=0):
    """The coordinator's, then three parties': in five turns each setting is each role's, the leader's among them."""
    kept = request.config.rootpath / ".pytest_cache" / "numba"
    own = [{**dict.fromkeys(THREADS, "1"), **chosen} for chosen in SETTINGS.values()]
    for environment in own:
        if "NUMBA_CPU_NAME" in environment:
            environment["NUMBA_CACHE_DIR"] = str(kept)
    return (own[-turn:] + own[:-turn])[:4]


@pytest.fixture(scope="module", params=range(len(SETTINGS)) if LONG else (0,))
def processes(request):
    with Processes(list_environments(request, request.param), module=MODULE) as opened:
        yield opened


COMPUTE = """
import hashlib
import math
import numba
import numpy as np
numbers = [one / 777 for one in range(-2500, 2500)]
x = np.array(numbers).reshape(50, 100)

@numba.njit(fastmath=True)
def add_up(array):
    total = 0.0
    for place in range(len(array)):
        total += array[place] * array[place]
    return total

of_libm = [math.exp(one) for one in numbers], [one ** 2 for one in numbers]
columns = x @ x.T, np.exp(x), of_libm, add_up(np.array(numbers))
print(*(hashlib.sha256(np.array(column).tobytes()).hexdigest() for column in columns))
"""
"""Products of BLAS; NumPy's exponentials; libm's, and squares, which are its ``pow``; a sum that Numba may reorder.

All of numbers that come from one division, which is correctly rounded everywhere."""
KNOBS = (
    {"OPENBLAS_CORETYPE": "Nehalem"},
    {"NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4"},
    {"GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-FMA"},
    {"NUMBA_CPU_NAME": "nehalem", "NUMBA_CPU_FEATURES": ""},
)
"""Of an old server, what each changes: one column of the four."""


def compute(environment):
    line, threads = [sys.executable, "-c", COMPUTE], dict.fromkeys(THREADS, "1")
    environment = {**os.environ, **threads, **environment}
    return subprocess.run(line, env=environment, capture_output=True, check=True, text=True).stdout.split()


def test_every_setting_changes_what_it_is_for_and_nothing_else():
    """Else a job could pass because no processor was another one."""
    old, *others = [setting for setting in SETTINGS.values() if setting]
    assert {name: value for knob in KNOBS for name, value in knob.items()} == old
    plain = compute({})
    of_knobs, of_others = [compute(knob) for knob in KNOBS], [compute(setting) for setting in others]
    for place, (knob, columns) in enumerate(zip(KNOBS, of_knobs, strict=True)):
        if platform.libc_ver()[0] == "glibc" or "GLIBC_TUNABLES" not in knob:
            assert [number for number, column in enumerate(columns) if column != plain[number]] == [place]
    assert len({columns[0] for columns in (plain, of_knobs[0], *of_others)}) == len(SETTINGS)


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


@pytest.mark.parametrize("name", RUN)
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
