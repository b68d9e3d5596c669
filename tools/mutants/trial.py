"""One mutant on trial: planted in a copy of the tree, tested there, and taken out again.

The working tree is never touched. Every run of the tests has a limit of time and of memory, and is a fork of this
process, which has loaded the large libraries once and never loads Cloister.

Compiled kernels are kept between runs. Numba recognises by its time and size from which text of a file a kernel was
made, but not from which text of other files: a mutant's kernels, and those that call them, are its own.
"""

from __future__ import annotations

import difflib
import os
import re
import resource
import select
import shutil
import signal
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import chain, repeat
from pathlib import Path
from typing import NoReturn

import numba
import pytest

from tools.mutants.choice import find_users, rank_tests

_COPIED = ("src", "tests", "papers", "tools", "bench", "docs", "pyproject.toml", "README.md", "SECURITY.md", "Makefile")
_MEMORY_BYTES = 12 * 2**30  # of addresses: compilers and libraries map much more than they use
_FAILED = re.compile(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", re.MULTILINE)  # the names of parameters have spaces
_TOOK = re.compile(r"^took (\S+) (\S+)$", re.MULTILINE)
_OURS = ("cloister", "tests", "tools", "papers", "bench")  # a fork loads the copy's
_FIRST_CHUNKS, _CHUNK = (2, 4), 6  # files of tests in one process: first those that will tell, without loading others


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What became of a mutant: killed, survived, or timeout."""

    id: str
    status: str
    by: str
    seconds: float
    difference: str


class Copy:
    """A copy of the tree, with one mutant in it at a time."""

    def __init__(self, root: Path, *, limit_s: float, wide_s: float) -> None:
        self.root = Path(tempfile.mkdtemp(prefix="cloister-mutants-"))
        for name in _COPIED:
            source = root / name
            if source.is_dir():
                shutil.copytree(source, self.root / name, ignore=shutil.ignore_patterns("__pycache__"))
            elif source.exists():
                shutil.copy2(source, self.root / name)
        self._limit_s, self._wide_s = limit_s, wide_s
        self._sound: dict[str, bool] = {}
        self._seconds: dict[str, float] = {}  # that a file of tests takes
        self._planted_so_far = 0
        self._kernels = self.root / ".numba"

    def close(self) -> None:
        """Remove the copy."""
        shutil.rmtree(self.root, ignore_errors=True)

    def try_mutant(
        self, name: str, path: str, changed: bytes, *, names: str = "", first: Sequence[str] = ()
    ) -> Verdict:
        """Plant a mutant and run the near tests and then the others, until one fails that passes without it."""
        started, started_cpu = time.monotonic(), _count_seconds()
        original = (self.root / path).read_bytes()
        near, far = rank_tests(self.root, path, names, first)
        chunks = [
            chunk
            for tests in (near[: len(first)], near[len(first) :], far)
            for chunk in _cut(self._put_quick_first(tests))
        ]
        status, by = "survived", ""
        while chunks and status == "survived":
            if _count_seconds() - started_cpu > self._wide_s:
                by = f"{sum(map(len, chunks))} files of far tests were left out: no time"
                break
            with self._planted(path, original, changed):
                status, by = self._run(chunks[0])
            if status == "timeout" and len(chunks[0]) > 1:
                chunks[:1] = [[test] for test in chunks[0]]  # too much at once, or one that does not end
                status = "survived"
            elif status != "survived" and not self._is_sound(by, whole=status == "timeout"):
                status, by = "survived", ""  # that test has noticed nothing: once more without it
            else:
                chunks.pop(0)
        return self._judge(name, status, by, started, path, original, changed)

    def _put_quick_first(self, ranked: Sequence[str]) -> list[str]:
        """Try a file later that is known to take long, by as many times its rank."""
        costs = {test: (i + 2) * (1 + self._seconds.get(test, 2.0)) for i, test in enumerate(ranked)}
        return sorted(ranked, key=costs.__getitem__)

    def _judge(
        self, name: str, status: str, by: str, started: float, path: str, original: bytes, changed: bytes
    ) -> Verdict:
        before, after = (text.decode().splitlines() for text in (original, changed))
        difference = "\n".join(difflib.unified_diff(before, after, path, path, lineterm="", n=1))
        seconds = round(time.monotonic() - started, 1)
        return Verdict(id=name, status=status, by=by, seconds=seconds, difference=difference)

    @contextmanager
    def _planted(self, path: str, original: bytes, changed: bytes) -> Iterator[None]:
        """Keep a mutant in the copy; its time differs from every other's, or its kernels would be taken for theirs."""
        file, kept = self.root / path, self._kernels
        times = file.stat()
        self._planted_so_far += 1
        file.write_bytes(changed)
        os.utime(file, (times.st_atime, times.st_mtime + 2 * self._planted_so_far))
        if kept.exists() and b"cloister.compiled" in original:
            self._kernels = self.root / ".numba of a mutant"
            shutil.copytree(kept, self._kernels, copy_function=os.link)
            for user in find_users(self.root, path):
                for kernel in self._kernels.rglob(f"{Path(user).stem}.*"):
                    kernel.unlink()
        try:
            yield
        finally:
            file.write_bytes(original)
            os.utime(file, (times.st_atime, times.st_mtime))
            if self._kernels != kept:
                shutil.rmtree(self._kernels)
                self._kernels = kept

    def _is_sound(self, test: str, *, whole: bool) -> bool:
        """Whether a test passes without any mutant, or a file can be read (``whole``: passes); if not, leave it out."""
        if test.split("::", 1)[0] in self._seconds and not whole:
            return True  # all of its file passed once, with another mutant somewhere
        if test not in self._sound or whole:
            only_read = [] if whole or "::" in test else ["--collect-only"]
            self._sound[test] = self._run([test, *only_read])[0] == "survived"
        return self._sound[test]

    def _run(self, tests: Sequence[str]) -> tuple[str, str]:
        """Run tests up to the first failure; return the verdict and the test that decided."""
        tests = [test for test in tests if self._sound.get(test, True)]
        left_out = [f"--deselect={test}" for test, is_sound in self._sound.items() if not is_sound and "::" in test]
        if not tests:
            return "survived", ""
        with tempfile.TemporaryFile() as said:
            child = os.fork()
            if child == 0:
                self._become_pytest(said.fileno(), [*left_out, *tests])
            try:
                pidfd = os.pidfd_open(child)
                ended, _, _ = select.select([pidfd], [], [], self._limit_s)
                os.close(pidfd)
            finally:  # also where somebody stops this command
                _kill_group(child)
                _, status = os.waitpid(child, 0)
            if not ended:
                return "timeout", " ".join(tests)
            said.seek(0)
            output = said.read().decode(errors="replace")
        if os.waitstatus_to_exitcode(status) in (0, 5):  # 5: all were left out
            self._seconds |= {test: float(seconds) for test, seconds in _TOOK.findall(output)}
            return "survived", ""
        failed = _FAILED.search(output)
        return "killed", failed[1] if failed else tests[0]

    def _become_pytest(self, output: int, arguments: Sequence[str]) -> NoReturn:
        """In a fork: run the copy's tests and end."""
        code = 3
        try:
            os.setsid()
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
            for own, given in ((0, os.open(os.devnull, os.O_RDONLY)), (1, output), (2, output)):
                os.dup2(given, own)
            sys.stdout, sys.stderr = open(1, "w"), open(2, "w")  # noqa: SIM115 (until the fork ends)
            for name in [name for name in sys.modules if name.split(".")[0] in _OURS]:
                del sys.modules[name]
            os.chdir(self.root)
            paths = [str(self.root / "src"), str(self.root)]
            sys.path[:0] = paths
            sys.dont_write_bytecode = True
            os.environ |= {
                "PYTHONPATH": os.pathsep.join(paths),
                "PYTHONDONTWRITEBYTECODE": "1",
                "NUMBA_CACHE_DIR": str(self._kernels),
            }
            numba.config.reload_config()
            options = ["-x", "-n", "0", "-p", "no:cacheprovider", "--tb=no", "-rfE"]
            code = int(pytest.main([*options, *arguments], plugins=[_Clock()]))
            sys.stdout.flush()
        finally:
            os._exit(code)


class _Clock:
    """Says in the end how long each file of tests took."""

    def __init__(self) -> None:
        self._seconds: defaultdict[str, float] = defaultdict(float)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._seconds[report.nodeid.split("::")[0]] += report.duration

    def pytest_unconfigure(self) -> None:
        print(*(f"\ntook {test} {seconds:.3f}" for test, seconds in self._seconds.items()))


def _count_seconds() -> float:
    """The processors' seconds of all forks so far: what is tried does not depend on what else the machine does."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _kill_group(child: int) -> None:
    """End a fork and whatever it started."""
    for kill in (os.killpg, os.kill):
        with suppress(ProcessLookupError):
            kill(child, signal.SIGKILL)


def _cut(tests: Sequence[str]) -> Iterator[Sequence[str]]:
    first = 0
    for length in chain(_FIRST_CHUNKS, repeat(_CHUNK)):
        if first >= len(tests):
            return
        yield tests[first : first + length]
        first += length
