"""A17: imports go down only; randomness, clocks, sockets and pickle stay where they belong."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "cloister"

# The picture in docs/architecture.md, as data. A module may import its own package and any lower layer.
LAYERS = {
    "errors": 0,
    "records": 0,
    "crypto": 1,
    "numeric": 1,
    "columns": 2,
    "field": 2,
    "joint_noise": 2,
    "lattice": 2,
    "roles": 2,
    "wire": 3,
    "kmeans": 3,
    "privacy": 3,
    "aggregation": 4,
    "protocols": 5,
    "runtime": 6,
    "data": 6,
    "job": 7,
    "report": 8,
    "simulation_desks": 9,
    "simulation": 10,
    "audit": 11,
    "planning": 11,
    "cli": 12,
}
BANNED_EVERYWHERE = {"pickle", "cPickle", "dill", "cloudpickle", "shelve", "marshal", "random"}
BANNED_IN_ROLES = {"socket", "asyncio", "time", "threading", "concurrent", "multiprocessing", "selectors", "ssl", "os"}
ROLE_PACKAGES = {"aggregation", "protocols", "wire", "roles"}
ONE_SOURCE_OF_ENTROPY = {"secrets", "uuid"}


def modules():
    return sorted(SOURCE.rglob("*.py"))


def unit_of(path):
    """The first name below cloister: a package or a top-level module."""
    part = path.relative_to(SOURCE).parts[0]
    return part.removesuffix(".py")


def imports_of(tree):
    """Every dotted name that a module imports, at any depth."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports hide the layer"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def attributes_of(tree):
    """Every dotted use such as np.random.default_rng."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            yield ast.unparse(node)


def violations(unit, tree):
    """What one module does that its layer may not."""
    for name in imports_of(tree):
        top, *rest = name.split(".")
        if top == "cloister" and rest and rest[0] in LAYERS:
            if rest[0] != unit and unit in LAYERS and LAYERS[rest[0]] >= LAYERS[unit]:
                yield f"upward import of {name}"
        elif top in BANNED_EVERYWHERE or name.startswith(("numpy.random", "os.urandom")):
            yield f"banned import of {name}"
        elif top in BANNED_IN_ROLES and unit in ROLE_PACKAGES:
            yield f"{name} in a package without I/O"
        elif top in ONE_SOURCE_OF_ENTROPY and unit != "crypto":
            yield f"{name} outside crypto"
    for use in attributes_of(tree):
        if use.startswith(("np.random", "numpy.random", "os.urandom", "scipy.stats.")):
            yield f"banned use of {use}"
        if use in ("np.load", "numpy.load", "np.save", "np.savez") and unit != "report":
            yield f"array files outside report: {use}"


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_every_module_keeps_to_its_layer(path):
    assert not list(violations(unit_of(path), ast.parse(path.read_text())))


def test_the_package_does_without_the_papers():
    """papers/ is not in the wheel."""
    for path in modules():
        assert not [name for name in imports_of(ast.parse(path.read_text())) if name.split(".")[0] == "papers"], path


def test_every_unit_has_a_layer():
    units = {unit_of(path) for path in modules()} - {"__init__", "__main__"}
    assert units == set(LAYERS)


@pytest.mark.parametrize(
    ("unit", "code"),
    [
        ("kmeans", "from cloister.protocols import leakage"),
        ("wire", "import cloister.runtime.local"),
        ("data", "from cloister.runtime import Progress"),
        ("protocols", "import time"),
        ("aggregation", "from threading import Lock"),
        ("protocols", "def f():\n    import socket"),
        ("cli", "import pickle"),
        ("kmeans", "import random"),
        ("data", "from numpy.random import default_rng"),
        ("runtime", "import numpy as np\nnp.random.default_rng(1)"),
        ("kmeans", "import secrets"),
        ("data", "import os\nos.urandom(4)"),
    ],
)
def test_the_walker_catches(unit, code):
    assert list(violations(unit, ast.parse(code)))


def test_the_picture_in_the_documentation_has_every_unit_at_its_layer():
    lines = (ROOT / "docs" / "architecture.md").read_text().splitlines()
    drawn = dict(
        re.match(r"  (\w+)(?:\.py|/) +(\d+) ", line).groups() for line in lines if re.match(r"  \w+(\.py|/) +\d", line)
    )
    assert {unit: int(layer) for unit, layer in drawn.items()} == LAYERS


def test_the_readme_lists_the_units_in_topological_order():
    rows = [line.split("`")[1] for line in (ROOT / "README.md").read_text().splitlines() if line.startswith("| `")]
    listed = [row for row in rows if row in LAYERS]
    assert sorted(listed) == sorted(LAYERS)
    assert [LAYERS[unit] for unit in listed] == sorted(LAYERS.values())
