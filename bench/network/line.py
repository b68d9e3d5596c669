"""The clinics over a long line: a namespace for each of four machines, 100 ms there and back, one packet in 100 lost.

Then the same with a partition in the middle that heals after longer than keep-alives wait. It takes what
`tests.deployment.namespaces.find_missing` names.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from tests.deployment.namespaces import Network, find_missing

from cloister.cli.network_demo import prepare_clinics
from cloister.data import sample_folder

_DELAY_S, _LOSS, _CUT_S, _PORT = 0.05, 0.01, 20.0, 7400
_LINES = {"loopback between namespaces": (0.0, 0.0, 0.0), "100 ms, 1 % lost": (_DELAY_S, _LOSS, 0.0),
          "the same, cut off for 20 s": (_DELAY_S, _LOSS, _CUT_S)}  # fmt: skip
_PATIENCE_S = 120.0


def line() -> list[str]:
    """Run the clinics over each line, and print how long the last party took."""
    missing = find_missing()
    if missing:
        print(f"not measured: {missing}")
        return []
    failed = []
    for what, (delay_s, loss, cut_s) in _LINES.items():
        for seed in range(3 if not cut_s else 1):
            with tempfile.TemporaryDirectory() as folder:
                result_s, end_s, lost, passed = _run(Path(folder), delay_s, loss, cut_s, seed)
            print(
                f"{what}: last party's result after {result_s:.1f} s, everybody's end after {end_s:.1f} s; {lost} of "
                f"{lost + passed} packets lost (load of the machine {os.getloadavg()[0]:.1f})",
                flush=True,
            )
            if result_s > _PATIENCE_S:
                failed.append(what)
    return failed


def _run(folder: Path, delay_s: float, loss: float, cut_s: float, seed: int) -> tuple[float, float, int, int]:
    """Run the coordinator and three clinics, each on its machine."""
    names = prepare_clinics(sample_folder("clinics") / "job.toml", folder)
    last, log = names[-1], folder / "hub.log"
    with Network(("hub", *names), delay_s=delay_s, loss=loss, seed=seed) as network, ExitStack() as running:
        address = f"{network.find_address('hub')}:{_PORT}"

        def start(place: str, *words: str) -> subprocess.Popen[bytes]:
            inside = ("ip", "netns", "exec", network.find_place(place), sys.executable, "-m", "cloister")
            environment = os.environ | {"XDG_DATA_HOME": str(folder / place)}
            process = running.enter_context(
                subprocess.Popen([*inside, *words], cwd=folder, env=environment, stdout=subprocess.DEVNULL)
            )
            running.callback(process.kill)
            return process

        def take_part(name: str) -> subprocess.Popen[bytes]:
            own = ("--own", f"{name}.toml", "--out", f"result-{name}", "--yes", "--quiet")
            return start(name, "party", "job.toml", "--keys", f"{name}.key", *own, "--address", address)

        hub = ("--keys", "coordinator.key", "--listen", f"0.0.0.0:{_PORT}", "--quiet", "--log", str(log))
        processes = [start("hub", "serve", "job.toml", *hub), *map(take_part, names[:-1])]
        _wait(lambda: _count(log, "consented") == len(names) - 1)
        started_s = time.monotonic()
        processes.append(take_part(last))
        if cut_s:
            _wait(lambda: _count(log, "step") >= 4)
            network.cut = {last}
            time.sleep(cut_s)
            network.cut = set()
        _wait((folder / f"result-{last}" / "result.json").exists)
        result_s = time.monotonic() - started_s
        assert [process.wait() for process in processes] == [0] * len(processes)
        return result_s, time.monotonic() - started_s, network.lost, network.passed


def _count(log: Path, event: str) -> int:
    lines = log.read_text().splitlines() if log.exists() else []
    return sum(json.loads(line)["event"] == event for line in lines if line.endswith("}"))


def _wait(holds) -> None:
    until_s = time.monotonic() + _PATIENCE_S
    while not holds():
        assert time.monotonic() < until_s, "the clinics must get on; they do not"
        time.sleep(0.01)
