"""Between organisations on different processors: alignment, clustering and labels end with one result at all."""

import os
import subprocess
import sys

import pytest

from tests.deployment.processes import COORDINATOR, NAMES, Processes
from tests.deployment.test_processes import VERTICAL, check_end
from tests.golden.tables import HELD
from tests.runtime.jobs import LONG
from tests.runtime.test_processors import SETTINGS, find_missing

pytestmark = pytest.mark.skipif(not LONG or bool(find_missing()), reason="takes minutes; set CLOISTER_LONG=1")
UNION = """
name = "processes"
[clusters]
k = 3
[protocol]
name = "secfc"
iterations = 4
[data]
id = "id"
[columns]
x0 = { low = 0, high = 100 }
x1 = { low = 0, high = 100 }
"""
PAIR = ("bank", "telco")
JOBS = {
    "vertical, private": (VERTICAL, PAIR, HELD),
    "vertical, exact, labels for both": (
        VERTICAL.replace('["telco"]', '["bank", "telco"]').replace("[budget]\nepsilon = 8.0\ndelta = 1e-6\n", ""),
        PAIR,
        HELD,
    ),
    "SecFC, over the union": (UNION, NAMES, None),
}


class Started(subprocess.Popen):
    """A process that is started anew, not forked: processors are told apart when libraries are loaded."""

    def join(self, timeout_s=None):
        self.wait(timeout_s)

    @property
    def exitcode(self):
        return self.returncode

    def close(self):
        """Nothing is left to close."""


class StartedAnew(Processes):
    def launch(self, command, environment, doom, out, told):
        with out.with_suffix(".out").open("w") as said, out.with_suffix(".err").open("w") as errors:
            return Started(
                [sys.executable, "-m", "cloister", *command],
                cwd=self.folder, env={**os.environ, **environment}, stdout=said, stderr=errors,
            )  # fmt: skip


@pytest.mark.parametrize("turn", range(2))
@pytest.mark.parametrize("name", JOBS)
def test_every_session_of_a_run_ends_with_one_result(name, turn, tmp_path):
    contract, names, held = JOBS[name]
    settings = list(SETTINGS.values())[1 : len(names) + 1]
    settings = {COORDINATOR: {}, **dict(zip(names, settings[turn:] + settings[:turn], strict=True))}
    with StartedAnew(tmp_path, contract, names, held=held) as processes:
        for one, setting in settings.items():
            processes.start(one, env=setting)
        processes.wait_all(300)
        check_end(processes, charged=False)
        granted = [name for name in names if f'"{name}"' in contract.partition("labels = ")[2].partition("\n")[0]]
        assert [name for name in names if (tmp_path / f"result-{name}" / f"labels-{name}.csv").exists()] == granted
