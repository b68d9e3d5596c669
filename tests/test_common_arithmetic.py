"""What all parties compute in common is the same on every processor: correctly rounded operations only.

Products of BLAS, transcendental functions of NumPy and libm, and kernels with ``fastmath`` round differently from one
processor or library to another. Elementwise + - * / sqrt rint, comparisons, and NumPy's sums of integers do not.
"""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "cloister"

# Each module with the functions and classes in it that all parties run on the same values; None for all of it.
COMMON = {
    "protocols/multiparty_lloyd/rules.py": {
        "ExactSums.move",
        "ExactSums.check_sums",
        "ExactCentroids.move",
        "BoundedSums.move",
        "BoundedSums.read_counts",
    },
    "protocols/fastlloyd/offsets.py": {
        "Offsets.move",
        "Offsets.find_radii",
        "Offsets._widen",
        "Offsets.read_counts",
        "relocate",
    },
    "protocols/fastlloyd/published_rules.py": None,
    "kmeans/values.py": {"truncate", "fold"},
    "kmeans/lloyd.py": {"update_centres"},
    "privacy/encoder.py": {"SumCountEncoder.decode_sums", "SumCountEncoder.decode_counts"},
    "numeric.py": {"FixedPoint.decode", "Ring"},
    "protocols/secfc/party.py": None,
    "protocols/align/alignment.py": None,
    "aggregation/statements.py": None,
    "aggregation/double_masks.py": None,
    "aggregation/common_masks.py": None,
    "aggregation/masked_sum.py": None,
    "aggregation/follower.py": None,
}
BLAS = {"dot", "matmul", "einsum", "vdot", "inner", "outer", "tensordot", "linalg", "kron"}
TRANSCENDENTAL = {
    "exp", "expm1", "exp2", "log", "log1p", "log2", "log10", "power", "float_power", "pow", "cbrt", "hypot",
    "sin", "cos", "tan", "arcsin", "arccos", "arctan", "arctan2", "sinh", "cosh", "tanh", "gamma", "lgamma", "erf",
}  # fmt: skip


def offences(tree):
    """What in a piece of code may round differently elsewhere."""
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.MatMult):
            yield "@"
        elif isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.Pow):
            exponent = node.right if isinstance(node, ast.BinOp) else node.value
            base = node.left if isinstance(node, ast.BinOp) else node.target
            if "2" not in (ast.unparse(base), ast.unparse(exponent)):  # squares, and powers of two in Python's integers
                yield "**"
        elif isinstance(node, ast.Attribute | ast.Name):
            name = node.attr if isinstance(node, ast.Attribute) else node.id
            if name in BLAS | TRANSCENDENTAL:
                yield name
        elif isinstance(node, ast.keyword) and node.arg == "fastmath" and ast.unparse(node.value) != "False":
            yield "fastmath"


def definitions(tree):
    """All functions and classes by their dotted names."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            yield node.name, node
        elif isinstance(node, ast.ClassDef):
            yield node.name, node
            yield from ((f"{node.name}.{item.name}", item) for item in node.body if isinstance(item, ast.FunctionDef))


@pytest.mark.parametrize("path", COMMON)
def test_what_all_compute_in_common_rounds_alike_everywhere(path):
    tree = ast.parse((SOURCE / path).read_text())
    wanted = COMMON[path]
    found = dict(definitions(tree))
    pieces = [tree] if wanted is None else [found[name] for name in sorted(wanted)]
    assert [offence for piece in pieces for offence in offences(piece)] == []


def test_every_move_of_every_rule_is_looked_at():
    for path in (*SOURCE.glob("protocols/multiparty_lloyd/*.py"), *SOURCE.glob("protocols/fastlloyd/*.py")):
        moves = {name for name, _ in definitions(ast.parse(path.read_text())) if name.endswith(".move")}
        listed = COMMON.get(path.relative_to(SOURCE).as_posix(), set())
        if listed is not None:
            assert moves - {"Rule.move"} <= listed, path


@pytest.mark.parametrize(
    "code",
    [
        "a @ b", "a @= b", "np.dot(a, b)", "a.dot(b)", "np.linalg.norm(a)", "einsum('i,i', a, b)", "np.exp(a)",
        "math.log(a)", "a ** 0.5", "a **= b", "b ** a",
        "njit(fastmath=True)", "njit(fastmath={'contract'})",
    ],
)  # fmt: skip
def test_what_rounds_differently_is_found(code):
    assert list(offences(ast.parse(code)))


@pytest.mark.parametrize("code", ["a + b * c / d", "np.sqrt(a)", "a ** 2", "np.rint(a)", "njit(fastmath=False)"])
def test_what_is_correctly_rounded_is_not(code):
    assert not list(offences(ast.parse(code)))
