"""Real processes of one job: key files, a job that names them, an own side for each party, and who is started how."""

from __future__ import annotations

import multiprocessing
import time
from pathlib import Path

from cloister.credentials import make_keys
from tests.deployment import doomed
from tests.golden.tables import write_tables

CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["tests.deployment.preloaded"])
COORDINATOR = "coordinator"
NAMES = ("north", "harbour", "valley")
JOB = """
name = "processes"
[clusters]
k = 3
[protocol]
name = "mask-noise-average"
iterations = 4
{protocol}
[budget]
epsilon = 8.0
delta = 1e-6
[columns]
x0 = {{ low = 0, high = 100 }}
x1 = {{ low = 0, high = 100 }}
"""
EXACT = """
name = "processes"
[clusters]
k = 3
[protocol]
name = "masked-sum-count"
iterations = 4
[columns]
x0 = { low = 0, high = 100 }
x1 = { low = 0, high = 100 }
"""


class Processes:
    """A context manager; on the way out nobody is left running."""

    def __init__(self, folder: Path, contract: str, names=NAMES, deadline=60, held=None):
        self.folder, self.names, self.deadline = folder, names, deadline
        self.running, self.out, self.started = {}, {}, []
        write_tables(folder)
        keys = {name: make_keys(name, folder).public.fingerprint for name in (*names, COORDINATOR)}
        lines = [contract, "[coordinator]", f'identity = "{keys[COORDINATOR]}"']
        for name in names:
            lines += ["[[parties]]", f'name = "{name}"', f'identity = "{keys[name]}"']
            if held is not None:
                lines.append("columns = [" + ", ".join(f'"{column}"' for column in held[name]) + "]")
            own = f'data = "{name}.csv"\n' + (f'ledger = "{name}.ledger"\n' if "[budget]" in contract else "")
            (folder / f"{name}.toml").write_text(own)
        (folder / "job.toml").write_text("\n".join(lines) + "\n")
        self.port = 0

    def __enter__(self):
        return self

    def __exit__(self, *error):
        for process in self.started:
            process.kill()
            process.join()
            process.close()

    def start(self, name, **options):
        """Start a process, as `start_process`; wait until the coordinator listens."""
        self.start_process(name, **options)
        until_s = time.monotonic() + 60
        while name == COORDINATOR and self.read_port() is None:
            assert time.monotonic() < until_s, self.read_errors(name)
            time.sleep(0.02)

    def start_process(self, name, *, doom=None, env=None, address=None, more=(), yes=True, told=None):
        """Start the coordinator or a party; ``doom`` is when it kills itself, ``told`` where it says what passes."""
        shared = ["job.toml", "--keys", f"{name}.key", "--deadline", str(self.deadline), "--quiet"]
        if name == COORDINATOR:
            command = ["serve", *shared, "--listen", f"127.0.0.1:{self.port}", *more]
        else:
            where = address or f"127.0.0.1:{self.port}"
            own = ["--own", f"{name}.toml", "--out", f"result-{name}", "--overwrite"]
            command = ["party", *shared, *own, "--address", where, *(["--yes"] if yes else []), *more]
        environment = {
            "XDG_DATA_HOME": str(self.folder / f"data-{name}"),
            "CLOISTER_TRACEBACK": "1",
            **(env or {}),
        }
        out = self.folder / f"{name}-{len(self.started)}"
        process = self.launch(command, environment, doom, out, told)
        self.running[name] = process
        self.out[name] = out
        self.started.append(process)

    def launch(self, command, environment, doom, out, told):
        own = (str(self.folder), command, environment, doom, str(out), told)
        process = CONTEXT.Process(target=doomed.run, args=own)
        process.start()
        return process

    def read_port(self, name=COORDINATOR):
        """Return the port on which the coordinator listens, once it has said so; None before."""
        said = self.out[name].with_suffix(".out")
        text = said.read_text() if said.exists() else ""
        if not text.endswith("\n"):
            return None
        self.port = int(text.partition("Listening on port ")[2].split()[0])
        return self.port

    def start_all(self, dooms=None, **options):
        for name in (COORDINATOR, *self.names):
            self.start(name, doom=(dooms or {}).get(name), **options)

    def has_begun(self, name):
        """Whether a message passed at its last process; one that is stopped before that leaves all as it was."""
        return self.out[name].with_suffix(".begun").exists()

    def wait(self, name, timeout_s=120):
        """Wait until a process has ended; returns its exit code and what it said on standard error."""
        self.running[name].join(timeout_s)
        return self.running[name].exitcode, self.read_errors(name)

    def read_errors(self, name):
        return self.out[name].with_suffix(".err").read_text()

    def wait_all(self, timeout_s=120):
        codes = {name: self.wait(name, timeout_s) for name in self.running}
        assert all(code == 0 for code, _ in codes.values()), codes
        return codes
