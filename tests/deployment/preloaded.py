"""What the fork server has done before it forks processes of Cloister: everything that each of them would do again.

Commands are parsed once, for the parser loads much, and small jobs are simulated: what they import and compile is then
there. gRPC is imported and not started: it does not survive a fork.
"""

import gc
import os
import tempfile
from pathlib import Path

import grpc.aio
import typer

import cloister.deployment.record
import cloister.report.text
from cloister.cli import app
from cloister.jobfile import load_setup
from cloister.sessions import simulate
from tests.deployment import doomed
from tests.golden.tables import write_tables
from tests.runtime.jobs import JOBS

LOADED = (grpc.aio, cloister.deployment.record, cloister.report.text, doomed)
SIMULATED = ("masked sums", "mask-noise-average", "FastLloyd", "vertical with a budget", "synopsis", "SecFC")


def prepare():
    command = typer.main.get_command(app)
    for name, words in (("serve", "job.toml --keys a"), ("party", "job.toml --keys a --own b")):
        command.commands[name].make_context(name, words.split())
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_DATA_HOME"] = folder  # for ledgers; each process gets its own
        write_tables(Path(folder))
        path = Path(folder) / "job.toml"
        for name in SIMULATED:
            path.write_text(JOBS[name])
            simulate(load_setup(path), evaluate=False)
    gc.collect()
    gc.freeze()


prepare()
