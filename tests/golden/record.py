"""Record what the golden jobs give, and tell where it differs from ``golden.json``.

    python -m tests.golden.record                  # run all jobs, print what differs
    python -m tests.golden.record vertical         # only the jobs whose names begin so
    python -m tests.golden.record --write          # record all jobs anew
    python -m tests.golden.record --write naive    # record only these anew

Run it in the repository's root; ``PYTHONPATH=elsewhere/src`` runs another Cloister. Only the command line and the job
file are used, nothing inside. A commit that changes a message, a default or a transcript on purpose records the jobs
that it changes anew, and says so.

Jobs run in a subprocess whose floating-point code is pinned: numba, NumPy and OpenBLAS compute as on a Haswell
processor, in one thread, so that numbers are equal, to the last bit, on every x86-64 processor with AVX2.

A job's record is flat: ``result.card.epsilon`` is a key. Sentences stand once, under ``texts``, and records refer to
them. Of what ``plan``, ``audit`` and ``ledger`` print only the numbers are kept, in order.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from tests.golden.jobs import JOBS

ROOT = Path(__file__).parents[2]
GOLDEN = Path(__file__).with_name("golden.json")
LIBRARIES = ("numpy", "scipy", "numba", "scikit-learn", "opendp", "ortools", "dp-accounting")
PINNED = {
    "NUMBA_CPU_NAME": "haswell",
    "NUMBA_CPU_FEATURES": "",  # what a Haswell has, and not what this processor has besides
    "OPENBLAS_CORETYPE": "Haswell",
    "PYTHONWARNINGS": "ignore::ImportWarning",  # NumPy's, of features that this processor lacks anyway
    "CLOISTER_TRACEBACK": "1",
} | dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
Record = dict[str, Any]


def list_versions() -> dict[str, str]:
    """Return the minor versions of Python and of the libraries that floats may depend on."""
    versions = {"python": ".".join(map(str, sys.version_info[:2]))}
    for library in LIBRARIES:
        try:
            versions[library] = ".".join(version(library).split(".")[:2])
        except PackageNotFoundError:
            versions[library] = "none"
    return versions


def record(names: Sequence[str]) -> dict[str, Record]:
    """Run jobs in a pinned subprocess."""
    from numpy._core._multiarray_umath import __cpu_dispatch__ as features

    beyond = [feature for feature in features if feature.startswith("AVX512") or feature == "X86_V4"]
    environment = os.environ | PINNED | {"NPY_DISABLE_CPU_FEATURES": " ".join(beyond)}
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "record.json")
        command = [sys.executable, "-m", "tests.golden.commands", str(out), *names]
        if subprocess.run(command, env=environment, cwd=ROOT, check=False).returncode:
            raise RuntimeError("the golden jobs must run; they did not. Standard error says why.")
        return json.loads(out.read_text())


def list_differences(expected: Record, got: Record, texts: dict[str, str]) -> list[str]:
    """Return a line for each key of a job's record that differs, and for each place in a list."""

    def show(value: Any) -> str:
        return repr(texts.get(value, value)) if isinstance(value, str) else repr(value)

    lines = []
    for key in sorted(expected.keys() | got.keys()):
        old, new = expected.get(key, "nothing"), got.get(key, "nothing")
        if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
            pairs = {f"{key}[{place}]": pair for place, pair in enumerate(zip(old, new, strict=True))}
        else:
            pairs = {key: (old, new)}
        lines += [f"{at}: got {show(b)}, expected {show(a)}" for at, (a, b) in pairs.items() if a != b]
    return lines


def main() -> int:
    """Run the command line above."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--write", action="store_true", help="record anew")
    parser.add_argument("beginnings", nargs="*", default=[""], metavar="JOB")
    given = parser.parse_args()
    names = [name for name in JOBS if name.startswith(tuple(given.beginnings))]
    if not names:
        parser.error(f"a golden job's name must begin so; got {', '.join(given.beginnings)}. See tests/golden/jobs.py.")
    golden = {"jobs": {}, "texts": {}, "versions": list_versions()}
    golden |= json.loads(GOLDEN.read_text()) if GOLDEN.exists() else {}
    if given.write and len(names) < len(JOBS) and golden["versions"] != list_versions():
        parser.error(f"golden.json must be of the libraries here; got {golden['versions']}. Record all jobs anew.")
    fresh = record(names)
    texts = golden["texts"] | fresh.pop("texts")
    differing = 0
    for name in names:
        lines = list_differences(golden["jobs"].get(name, {}), fresh[name], texts)
        differing += bool(lines)
        print(*([f"{name}: {len(lines)} differences", *lines] if lines else [f"{name}: equal"]), sep="\n  ")  # noqa: T201
    if given.write:
        _write({"jobs": {name: (golden["jobs"] | fresh)[name] for name in JOBS}, "texts": texts})
    return 0 if given.write else min(differing, 1)


def _write(golden: dict[str, Any]) -> None:
    """Write the golden file: a key a line, texts that nothing refers to left out."""
    used = json.dumps(golden["jobs"])
    golden["texts"] = {reference: text for reference, text in golden["texts"].items() if f'"{reference}"' in used}
    golden["versions"] = list_versions()
    text = json.dumps(golden, indent=1, sort_keys=True, ensure_ascii=False)
    text = re.sub(r"\[\n[^\[\]{}]*\]", lambda found: " ".join(found[0].split()), text)  # a list a line
    GOLDEN.write_text(text + "\n")


if __name__ == "__main__":
    sys.exit(main())
