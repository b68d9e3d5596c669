"""``cloister demo --network``: the clinics as four processes on this machine, with keys and TLS as between machines."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import IO

from cloister.errors import TooFewPartiesError

_LISTENING = "Listening on port "
_END_S = 10.0


def demo_network(job_file: Path, out: Path, *, as_json: bool = False) -> None:
    """Run the clinics: a coordinator and three parties, each with its own table, keys and folder.

    Parameters
    ----------
    job_file
        The sample's job, whose tables lie beside it.
    out
        The folder for the first clinic's result; all find the same.
    as_json
        Print that result as JSON.
    """
    from cloister.report.layout import make_console

    with tempfile.TemporaryDirectory(prefix="cloister-demo-") as name:
        folder = Path(name)
        names = prepare_clinics(job_file, folder)
        console = make_console(stderr=as_json)
        clinics = f"{len(names)} clinics ({', '.join(names)}) and a coordinator, each a process with keys of its own."
        console.print(clinics)
        console.print("They talk through one port of this machine, over TLS. Each clinic reads its own table only.")
        _run(folder, names, out, *(["--json"] if as_json else []))


def prepare_clinics(job_file: Path, folder: Path) -> list[str]:
    """Make everyone's keys, the job that names them, and each clinic's own side; returns the clinics' names."""
    from cloister.credentials import make_keys
    from cloister.job import COORDINATOR
    from cloister.jobfile import load_job

    names = [party.name for party in load_job(job_file).parties]
    keys = {name: make_keys(name, folder).public.fingerprint for name in (*names, COORDINATOR)}
    contract = job_file.read_text(encoding="utf-8").partition("[[parties]]")[0]
    lines = [contract, "[coordinator]", f'identity = "{keys[COORDINATOR]}"']
    for name in names:
        lines += ["[[parties]]", f'name = "{name}"', f'identity = "{keys[name]}"']
        table, ledger = job_file.parent / f"{name}.csv", folder / f"{name}.ledger"
        (folder / f"{name}.toml").write_text(f'data = "{table}"\nledger = "{ledger}"\n', encoding="utf-8")
    (folder / "job.toml").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return names


def _run(folder: Path, names: list[str], out: Path, *more: str) -> None:
    serving = _start(folder, "serve", "coordinator", "--listen", "127.0.0.1:0", "--quiet", stdout=subprocess.PIPE)
    assert serving.stdout is not None
    started = [serving]
    try:
        port = _read_port(serving.stdout)
        address = ("--address", f"127.0.0.1:{port}")
        for name in names[1:]:
            own = ("--own", f"{name}.toml", "--out", f"result-{name}", "--quiet", "--yes")
            started.append(_start(folder, "party", name, *address, *own, stdout=subprocess.DEVNULL))
        first = ("--own", f"{names[0]}.toml", "--out", str(out.resolve()), "--overwrite", "--yes", *more)
        started.append(_start(folder, "party", names[0], *address, *first))
        codes = [process.wait() for process in reversed(started)]
        if any(codes):
            raise TooFewPartiesError("all four processes must end well; one did not, and says why above.")
    finally:
        for process in started:
            if process.poll() is None:
                process.terminate()
                try:
                    process.wait(_END_S)
                except subprocess.TimeoutExpired:
                    process.kill()


def _start(folder: Path, command: str, keys: str, *more: str, stdout: int | None = None) -> subprocess.Popen[str]:
    line = [sys.executable, "-m", "cloister", command, "job.toml", "--keys", f"{keys}.key", *more]
    return subprocess.Popen(line, cwd=folder, stdout=stdout, text=True)


def _read_port(lines: IO[str]) -> int:
    for line in lines:
        if _LISTENING in line:
            return int(line.partition(_LISTENING)[2].split()[0])
    raise TooFewPartiesError("the coordinator must listen; its process ended, and says why above.")
