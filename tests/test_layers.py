"""Imports go down only; randomness, clocks, sockets and pickle stay where they belong."""

import ast
import re
from pathlib import Path

import pytest
from tools.shape import (
    fan_out,
    find_complex_functions,
    find_cycles,
    find_name_comparisons,
    find_name_tables,
    find_protocol_modules,
)

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "cloister"

# The picture in docs/architecture.md, as data. A module may import its own package and any lower layer.
LAYERS = {
    "errors": 0,
    "records": 0,
    "late": 0,
    "crypto": 1,
    "compiled": 1,
    "numeric": 1,
    "columns": 2,
    "refusals": 1,
    "field": 2,
    "joint_noise": 2,
    "lattice": 2,
    "roles": 2,
    "wire": 3,
    "kmeans": 3,
    "privacy": 3,
    "aggregation": 4,
    "credentials": 4,
    "runtime": 5,
    "data": 6,
    "job": 6,
    "jobfile": 7,
    "report": 7,
    "audit": 8,
    "forecast": 8,
    "protocol": 9,
    "protocols": 10,
    "agreement": 10,
    "sessions": 11,
    "planning": 11,
    "exposure": 12,
    "deployment": 12,
    "estimators": 13,
    "cli": 13,
}
BANNED_EVERYWHERE = {"pickle", "cPickle", "dill", "cloudpickle", "shelve", "marshal", "random"}
BANNED_IN_ROLES = {"socket", "asyncio", "time", "threading", "concurrent", "multiprocessing", "selectors", "ssl", "os"}
ROLE_PACKAGES = {"aggregation", "protocols", "wire", "roles"}
ONE_SOURCE_OF_ENTROPY = {"secrets", "uuid"}
LARGE = {"scipy", "numba", "llvmlite", "sklearn", "opendp", "matplotlib", "grpc", "pyarrow", "pandas", "dp_accounting"}
"""Libraries that take long to load: a command that does not use them must not wait for them."""
DERIVES_FROM = ("estimators", "sklearn")
"""Estimators derive from scikit-learn's classes; their package is loaded when one of its names is first used."""
DRAWS_ITSELF = ("generate_private_key", "generate_key", "random_serial_number", "PrivateKey.generate")
"""Functions of cryptography that draw keys and numbers themselves; ours come from crypto's entropy."""


def modules():
    return sorted(SOURCE.rglob("*.py"))


def unit_of(path):
    """The first name below cloister: a package or a top-level module."""
    part = path.relative_to(SOURCE).parts[0]
    return part.removesuffix(".py")


def imports_of(tree):
    """Every dotted name that a module imports, at any depth, or names for later."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports hide the layer"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("load_late"):
            yield ast.literal_eval(node.args[0])


def imports_at_once(statements):
    """Every dotted name that is imported when the module is: not inside functions, nor for type checking."""
    for node in statements:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from imports_of(node)
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.If):
            yield from imports_at_once(ast.iter_child_nodes(node))
        elif isinstance(node, ast.If):
            yield from imports_at_once(
                node.orelse if ast.unparse(node.test) == "TYPE_CHECKING" else node.body + node.orelse
            )


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
        elif rest and rest[-1] in DRAWS_ITSELF:
            yield f"a key that does not come from crypto's entropy: {name}"
    for name in imports_at_once([tree]):
        if name.split(".")[0] in LARGE and (unit, name.split(".")[0]) != DERIVES_FROM:
            yield f"{name} when the module is loaded: see late.py and compiled.py"
    for use in attributes_of(tree):
        if use.startswith(("np.random", "numpy.random", "os.urandom", "scipy.stats.")):
            yield f"banned use of {use}"
        if use.endswith(DRAWS_ITSELF):
            yield f"a key that does not come from crypto's entropy: {use}"
        if use in ("np.load", "numpy.load", "np.save", "np.savez") and unit != "report":
            yield f"array files outside report: {use}"


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_every_module_keeps_to_its_layer(path):
    assert not list(violations(unit_of(path), ast.parse(path.read_text())))


def concrete_protocols(tree):
    """The protocols' packages that a module imports; aligning records is a session of its own, not a protocol."""
    for name in imports_of(tree):
        top, *rest = name.split(".")
        if top == "cloister" and rest[:1] == ["protocols"] and len(rest) > 1 and rest[1] != "align":
            yield name


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_nobody_outside_protocols_imports_a_concrete_protocol(path):
    if unit_of(path) != "protocols":
        assert not list(concrete_protocols(ast.parse(path.read_text())))


def test_a_concrete_protocol_is_noticed():
    assert list(concrete_protocols(ast.parse("from cloister.protocols.synopsis import pipeline")))
    assert list(concrete_protocols(ast.parse("def f():\n    import cloister.protocols.secfc.party")))
    assert not list(
        concrete_protocols(ast.parse("import cloister.protocols\nfrom cloister.protocols.align import Mode"))
    )


def test_nobody_outside_protocols_is_named_after_a_protocol_or_asks_for_its_name():
    assert not list(find_protocol_modules())
    assert not list(find_name_comparisons())
    assert not list(find_name_tables())


def test_no_module_reaches_itself_by_imports():
    assert not list(find_cycles())


def test_sessions_plans_and_audits_know_few_others():
    reached = {unit: fan_out(SOURCE, unit) for unit in ("sessions", "planning", "audit")}
    assert {unit: len(others) for unit, others in reached.items() if len(others) > 9} == {}


def test_functions_are_simple():
    assert not list(find_complex_functions())


@pytest.mark.parametrize(
    "path", sorted((SOURCE / "protocols").rglob("*/__init__.py")), ids=lambda path: path.parent.name
)
def test_a_protocols_package_imports_nothing_before_one_of_its_modules_is_asked_for(path):
    """Its options are needed by every command; all that its roles need, only by a job that names it."""
    assert not list(imports_of(ast.parse(path.read_text())))


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
        ("data", "from cloister.report import Result"),
        ("protocols", "import time"),
        ("aggregation", "from threading import Lock"),
        ("protocols", "def f():\n    import socket"),
        ("cli", "import pickle"),
        ("kmeans", "import random"),
        ("data", "from numpy.random import default_rng"),
        ("runtime", "import numpy as np\nnp.random.default_rng(1)"),
        ("kmeans", "import secrets"),
        ("data", "import os\nos.urandom(4)"),
        ("kmeans", "from scipy.spatial.distance import cdist"),
        ("kmeans", "class A:\n    import numba"),
        ("kmeans", "try:\n    import sklearn.cluster\nexcept ImportError:\n    pass"),
        ("kmeans", "if TYPE_CHECKING:\n    pass\nelse:\n    import matplotlib"),
        ("kmeans", "report = load_late('cloister.report')"),
        ("data", "stats = late.load_late('numpy.random')"),
        ("credentials", "from cryptography.hazmat.primitives.asymmetric.ec import generate_private_key"),
        ("credentials", "from cryptography import x509\nx509.random_serial_number()"),
        ("credentials", "Ed25519PrivateKey.generate()"),
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
