"""What all parties compute in common is the same on every processor: correctly rounded operations only.

Products of BLAS, transcendental functions of NumPy and libm, whatever SciPy compiles, and kernels with ``fastmath``
round differently from one processor or library to another. Elementwise + - * / sqrt rint, comparisons, and NumPy's sums
do not. (Python's own ``x ** 2`` is a call of libm's ``pow`` where x is a float: squares are written as products.)

What is computed in common is not listed by hand: sessions of every family run with a trace, and whatever runs below
the functions in `ROOTS` is looked at.
"""

import ast
import functools
import importlib
import os
import sys
from pathlib import Path
from unittest import mock

import pytest

from cloister.compiled import _Kernel, compile_loop
from cloister.jobfile import load_setup
from cloister.kmeans import cluster_sums
from cloister.protocols.fastlloyd import offsets
from cloister.protocols.guided_sums.postprocessing import shrink_mean
from cloister.records import ArrayRecords
from cloister.sessions import simulate
from tests.golden.jobs import JOBS
from tests.golden.tables import write_tables

SOURCE = Path(__file__).parents[1] / "src" / "cloister"
ROOTS = {
    "protocols/multiparty_lloyd/party.py": (
        "LloydState.subject",
        "LloydState.begin",
        "LloydState.take",
        "LloydState.released_counts",
    ),
    "protocols/secfc/party.py": ("SecfcParty._read_layout", "SecfcParty._finish"),
    "protocols/align/party.py": ("AlignParty.handle",),
    "protocols/guided_sums/statements.py": ("Forms._read",),
    "aggregation/follower.py": ("Follower.take", "Follower.vote", "Follower.check_votes"),
    "aggregation/common_masks.py": ("CommonMasks.read",),
    "aggregation/double_masks.py": ("DoubleMasks.read",),
}
"""What all parties run on the same values: centres, sums, results, and what follows from a question but its answer."""
EXACT = {
    "field/prime_field.py": {"largest_distance": "**"},
    "protocols/feddp/published_questions.py": {"form": "**"},
    "protocols/feddp/questions.py": {"form": "**"},
    "protocols/feddp/settings.py": {"bounds": "**"},
    "protocols/guided_sums/refinement.py": {"split_share": "**", "form": "**"},
    "protocols/guided_sums/statistics.py": {"project_offsets": "@", "scale_moments": "**", "form": "**"},
    "protocols/synopsis/questions.py": {"split": "**", "form": "**"},
}
"""Products of integers below 2^53 in whatever order, and powers of Python's integers, of which prices are made."""
FASTMATH = 0
"""Stands for a line, where a compiled loop may be rounded in any order."""
BLAS = {"dot", "matmul", "einsum", "vdot", "inner", "outer", "tensordot", "linalg", "kron"}
TRANSCENDENTAL = {
    "exp", "expm1", "exp2", "log", "log1p", "log2", "log10", "power", "float_power", "pow", "cbrt", "hypot",
    "sin", "cos", "tan", "arcsin", "arccos", "arctan", "arctan2", "sinh", "cosh", "tanh", "gamma", "lgamma", "erf",
}  # fmt: skip


def offences(tree, foreign=frozenset()):
    """What in a piece of code may round differently elsewhere; ``foreign`` are names from compiled libraries."""
    exact = {call.func for call in ast.walk(tree) if isinstance(call, ast.Call) and len(call.args) == 3}
    for node in walk_own(tree):
        if isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.MatMult):
            yield "@"
        elif isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.Pow):
            base = node.left if isinstance(node, ast.BinOp) else node.target
            if not (isinstance(base, ast.Constant) and base.value == 2):  # powers of two are exact
                yield "**"
        elif isinstance(node, ast.Attribute | ast.Name):
            name = node.attr if isinstance(node, ast.Attribute) else node.id
            if name in (BLAS | TRANSCENDENTAL | foreign) and not (name == "pow" and node in exact):  # modulo
                yield name
        elif isinstance(node, ast.keyword) and node.arg == "fastmath" and ast.unparse(node.value) != "False":
            yield "fastmath"


def walk_own(tree):
    """Walk a function, without functions in it (which are looked at where they run) and texts of errors."""
    yield tree
    for node in ast.iter_child_nodes(tree):
        if not isinstance(node, ast.FunctionDef | ast.Raise):
            yield from walk_own(node)


class Trace:
    """Notes all functions of Cloister that run below the roots, in this thread."""

    def __init__(self):
        self.depth, self.found = 0, set()

    def __enter__(self):
        sys.setprofile(self._look)
        return self

    def __exit__(self, *error):
        sys.setprofile(None)

    def _look(self, frame, event, arg):
        if event not in ("call", "return"):
            return
        code = frame.f_code
        is_root = code in find_roots()
        if event == "call":
            self.depth += is_root
            if self.depth and code.co_filename.startswith(str(SOURCE)):
                self.found.add(place_of(code))
                if code is _Kernel.__call__.__code__:
                    self.found |= {*list_compiled(frame.f_locals["self"])}
        else:
            self.depth -= is_root


def place_of(code):
    """The file and the line of a function."""
    return Path(code.co_filename).relative_to(SOURCE).as_posix(), code.co_firstlineno


def list_compiled(kernel):
    """The places of a compiled function, which no trace enters, and of those that it calls."""
    path, line = place_of(kernel._function.__code__)
    if getattr(kernel._compiler, "__self__", compile_loop)._options.get("fastmath"):
        yield path, FASTMATH
    yield path, line
    for name in kernel._function.__code__.co_names:
        if isinstance(inner := kernel._function.__globals__.get(name), _Kernel):
            yield from list_compiled(inner)


@functools.cache
def find_roots():
    """The code of the roots."""
    codes = set()
    for path, names in ROOTS.items():
        module = importlib.import_module("cloister." + path.removesuffix(".py").replace("/", "."))
        for name in names:
            holder, _, member = name.partition(".")
            found = vars(getattr(module, holder))[member]
            codes.add((found.fget if isinstance(found, property) else found).__code__)
    return codes


@functools.cache
def parse(path):
    """The functions of a file by the line on which each begins, and the names that it has from compiled libraries."""
    tree = ast.parse((SOURCE / path).read_text())
    functions = {
        min(part.lineno for part in (node, *node.decorator_list)): node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
    }
    return functions, frozenset(name for name, module in list_names(tree) if module.startswith(("scipy", "sklearn")))


def list_names(tree):
    """Each name that a file has from elsewhere, imported or for later, with the module that it is from."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            for name in node.names:
                module = node.module or "" if isinstance(node, ast.ImportFrom) else name.name
                yield name.asname or name.name.partition(".")[0], module
        elif isinstance(node, ast.Assign) and ast.unparse(node.value).startswith("load_late("):
            yield ast.unparse(node.targets[0]), ast.literal_eval(node.value.args[0])


def look_at(found):
    """The offences in functions that ran, each with its place."""
    for path, line in sorted(found):
        functions, foreign = parse(path)
        if line == FASTMATH:
            yield f"{path}: fastmath"
        if line in functions:  # else a comprehension or a lambda: part of a function that ran
            function = functions[line]
            for offence in offences(function, foreign):
                if EXACT.get(path, {}).get(function.name) != offence:
                    yield f"{path}: {function.name}: {offence}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("tables")
    write_tables(made)
    return made


def trace(folder, text):
    """Run a job, in one thread."""
    path = folder / "job.toml"
    path.write_text(text)
    with mock.patch.object(os, "cpu_count", return_value=1), Trace() as traced:
        simulate(load_setup(path), seed=1, evaluate=False)
    return traced.found


GUIDED = [
    "synopsis-shared",
    "synopsis-projected",
    "feddp-record",
    "feddp-options",
    "feddp-separation",
    "feddp-published",
]
RUN = [name for name in JOBS if name.startswith(("mask", "fastlloyd", "secfc")) and "audited" not in name]
RUN = [*GUIDED, *(name for name in RUN if name not in ("fastlloyd-infeasible", "fastlloyd-ledger"))]


@pytest.mark.parametrize("name", RUN)
def test_what_all_compute_in_common_rounds_alike_everywhere(name, folder):
    found = trace(folder, JOBS[name])
    assert found
    assert list(look_at(found)) == []


def test_every_root_runs_in_some_session(folder):
    names = ("masked-sum-count", "fastlloyd-shared", "secfc-id", "synopsis-shared")
    found = set().union(*(trace(folder, JOBS[name]) for name in names))
    for path, roots in ROOTS.items():
        for root in roots:
            lines = [line for line, node in parse(path)[0].items() if node.name == root.rpartition(".")[2]]
            assert any((path, line) in found for line in lines), root


# --- planted ----------------------------------------------------------------------------------------------------------


def test_a_product_in_a_rule_is_found_wherever_it_stands(folder, monkeypatch):
    """The mutant: a rule calls something of which no list says that all parties run it."""
    real = offsets.Offsets.move

    def move(self, centres, total, **options):
        shrink_mean(centres[0], 1.0)
        return real(self, centres, total, **options)

    monkeypatch.setattr(offsets.Offsets, "move", move)
    found = trace(folder, JOBS["fastlloyd-shared"])
    assert any(offence.endswith(": @") for offence in look_at(found))


def test_a_compiled_loop_that_may_be_rounded_in_any_order_is_found(folder, monkeypatch):
    """The mutant: a rule measures as parties measure their own records."""
    real = offsets.Offsets.move

    def move(self, centres, total, **options):
        cluster_sums(ArrayRecords(centres), centres)
        return real(self, centres, total, **options)

    monkeypatch.setattr(offsets.Offsets, "move", move)
    found = trace(folder, JOBS["fastlloyd-shared"])
    assert "kmeans/blocks.py: fastmath" in look_at(found)


def test_names_from_compiled_libraries_are_found():
    """Distances from SciPy were how all parties placed the first centres."""
    functions, foreign = parse("kmeans/initialisation.py")
    offending = {node.name for node in functions.values() if "distance" in offences(node, foreign)}
    assert offending == {"kmeans_plus_plus"}


@pytest.mark.parametrize(
    "code",
    [
        "a @ b", "a @= b", "np.dot(a, b)", "a.dot(b)", "np.linalg.norm(a)", "einsum('i,i', a, b)", "np.exp(a)",
        "math.log(a)", "a ** 0.5", "a **= b", "b ** a", "radius ** 2", "pow(a, b)",
        "njit(fastmath=True)", "njit(fastmath={'contract'})",
    ],
)  # fmt: skip
def test_what_rounds_differently_is_found(code):
    assert list(offences(ast.parse(code)))


@pytest.mark.parametrize(
    "code", ["a + b * c / d", "np.sqrt(a)", "2.0**-53", "np.rint(a)", "pow(a, -1, p)", "njit(fastmath=False)"]
)
def test_what_is_correctly_rounded_is_not(code):
    assert not list(offences(ast.parse(code)))
