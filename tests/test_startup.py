"""Commands that need no large library load none; ``bench/startup.py`` measures what that saves."""

from __future__ import annotations

import json
import os
import subprocess
import sys

from bench.startup import IMPORTS, fill_bounds, list_commands, prepare

from tests.agreement.test_record import RunOnDisk
from tests.test_layers import LARGE

SCRIPT = """
import json, sys
large, commands = map(json.loads, sys.argv[1:])
from cloister import Job
print(json.dumps(["import", 0, [name for name in large if name in sys.modules]]), file=sys.stderr)
from cloister.cli import main
for words in commands:
    sys.argv = ["cloister", *words]
    code = 0
    try:
        main()
    except SystemExit as end:
        code = end.code or 0
    print(json.dumps([words[0], code, [name for name in large if name in sys.modules]]), file=sys.stderr)
"""


def run_in_one_process(commands, folder):
    """Run commands one after the other; returns each one's exit code and the large libraries loaded by then."""
    line = [sys.executable, "-c", SCRIPT, json.dumps(sorted(LARGE)), json.dumps(commands)]
    environment = {**os.environ, "XDG_DATA_HOME": str(folder / "data")}
    done = subprocess.run(line, cwd=folder, env=environment, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stderr.splitlines() if line.startswith("[")]


def test_commands_load_no_large_library(tmp_path):
    preparing = prepare(tmp_path)
    assert run_in_one_process(preparing, tmp_path) == [[words[0], 0, []] for words in [["import"], *preparing]]
    fill_bounds(tmp_path)
    run = RunOnDisk(tmp_path)
    commands = sorted(list_commands(run.folder), key=lambda words: words[0] == "check")
    *quiet, (last, code, loaded) = run_in_one_process(commands, tmp_path)
    assert quiet == [[words[0], 0, []] for words in [["import"], *commands[:-1]]]
    # It needs gRPC to ask the coordinator, and nobody listens.
    assert (last, code, loaded) == ("check", 8, ["grpc"])


def test_what_serve_and_party_load_has_no_large_library():
    code, _ = IMPORTS["what serve and party load"]
    subprocess.run([sys.executable, "-c", f"import sys; {code}; assert not {LARGE!r} & set(sys.modules)"], check=True)
