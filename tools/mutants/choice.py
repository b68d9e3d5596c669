"""Which mutants are tried, and which tests try them: both are the same for the same sources and the same seed."""

from __future__ import annotations

import ast
import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import zip_longest
from pathlib import Path

from tools.mutants.operators import Mutant, find_mutants, is_python

UNITS = (
    "privacy",
    "aggregation",
    "crypto",
    "wire",
    "lattice",
    "protocols",
    "numeric.py",
    "kmeans",
    "joint_noise",
    "field",
    "sessions",
    "roles.py",
)
"""What is mutated: below src/cloister."""
# Golden files notice every change of a byte, right or wrong: they kill everything and say nothing.
_LEFT_OUT = ("tests/golden/", "tests/papers/", "tests/tools/", "tests/test_documentation.py", "tests/test_readme.py")
_NEAR = 6  # from so many points on, a file of tests is tried in the first stage
_FEW = 6  # files of tests: a name that no more have tells which are near


def draw_mutants(root: Path, seed: str, count: int) -> list[Mutant]:
    """Draw mutants: every operator in turn, each in an order that depends on the seed and on nothing else."""
    by_operator: dict[str, list[Mutant]] = defaultdict(list)
    for unit in UNITS:
        place = root / "src" / "cloister" / unit
        for path in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
            for mutant in find_mutants(root, path):
                by_operator[mutant.operator].append(mutant)
    orders = [
        sorted(group, key=lambda mutant: hashlib.sha256(f"{seed}\n{mutant.id}".encode()).digest())
        for group in by_operator.values()
    ]
    drawn: list[Mutant] = []
    taken: set[tuple[str, int]] = set()
    for one in (mutant for turn in zip_longest(*orders) for mutant in turn if mutant is not None):
        if len(drawn) == count:
            break
        if (one.path, one.line) not in taken and is_python(one.apply((root / one.path).read_bytes())):
            taken.add((one.path, one.line))  # at most one on a line: otherwise they are often the same fault
            drawn.append(one)
    return drawn


def rank_tests(root: Path, path: str, names: str, first: Sequence[str] = ()) -> tuple[list[str], list[str]]:
    """Return the files of tests that are near a mutated place, and the others that reach it by imports.

    Parameters
    ----------
    root
        The tree's root.
    path, names
        The mutated file, and the names around the mutant and on its line. A name that many tests have tells nothing.
    first
        Tests to try before all others.
    """
    first = [test for test in first if (root / test).exists()]
    reaching = {test: text for test, text in _read_tests(root).items() if test in _find_reaching(root, path)}
    stem, unit = Path(path).stem, path.split("/")[2:-1] or [Path(path).stem]
    package = ".".join(["cloister", *unit])
    points: Counter[str] = Counter()
    for test, text in reaching.items():
        is_beside = test.startswith("/".join(["tests", *unit]) + "/")
        is_named = f"{package}.{stem}" in text or re.search(rf"from {package} import .*\b{stem}\b", text)
        points[test] = 4 * is_beside + 2 * (package in text) + 3 * bool(is_named)
        points[test] += (6 if is_beside else 1) * (f"test_{stem}" in test)
    for name in {name for name in names.split() if not name.startswith("__")}:
        having = [test for test, text in reaching.items() if re.search(rf"\b{name}\b", text)]
        if len(having) <= max(_FEW, len(reaching) // 5):
            points.update(dict.fromkeys(having, 2))
    order = sorted(points, key=lambda test: (-points[test], test))
    near = [test for test in order if points[test] >= _NEAR and test not in first]
    return [*first, *near], [test for test in order if test not in near and test not in first]


@cache
def _read_tests(root: Path) -> Mapping[str, str]:
    files = sorted((root / "tests").rglob("test_*.py"))
    named = {file.relative_to(root).as_posix(): file.read_text(encoding="utf-8") for file in files}
    return {name: text for name, text in named.items() if not name.startswith(_LEFT_OUT)}


@cache
def _find_reaching(root: Path, path: str) -> frozenset[str]:
    """The files of tests that import a file, directly or through others."""
    found = find_users(root, path)
    return frozenset(test for test in _read_tests(root) if test in found)


@cache
def find_users(root: Path, path: str) -> frozenset[str]:
    """The files of sources and tests that import a file, directly or through others; it is one of them."""
    target = path.removeprefix("src/").removesuffix(".py").replace("/", ".").removesuffix(".__init__")
    users: dict[str, set[str]] = defaultdict(set)
    for name, imported in _list_imports(root).items():
        for other in imported:
            users[other].add(name)
    found, waiting = {target}, [target]
    while waiting:
        for name in users[waiting.pop()] - found:
            found.add(name)
            waiting.append(name)
    return frozenset(name.replace(".", "/") + ".py" for name in found)


@cache
def _list_imports(root: Path) -> Mapping[str, frozenset[str]]:
    """What each module imports; whatever is imported from a package counts as all that the package takes."""
    imports = {}
    for top in ("src/cloister", "tests", "papers"):
        for path in sorted((root / top).rglob("*.py")):
            name = path.relative_to(root).with_suffix("").as_posix().removeprefix("src/").replace("/", ".")
            imports[name.removesuffix(".__init__")] = frozenset(_imported(ast.parse(path.read_bytes())))
    return imports


def _imported(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
