"""The faults: each operator looks at one node of a syntax tree and says what could stand there instead.

A mutant replaces one piece of text by another, so that its difference is a line or two. Messages are left alone: what
stands in a ``raise``, a formatted string, an annotation, a decorator or a docstring decides nothing.
"""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

Faults = Iterator[tuple[ast.AST, str]]
"""What to replace, and by which text."""
Operator = Callable[[ast.AST], Faults]

_SWAPPED = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq}
_SCALES = ("scale", "sigma", "variance", "sensitivity", "l1", "l2_squared", "bound", "delta", "epsilon", "rho", "times")
_CLIPS = ("clip", "min", "max", "minimum", "maximum", "bound", "fmin", "fmax")
_CONTEXTS = ("derive_key", "child", "from_seed", "seal_keyed", "open_keyed", "encode_context", "sign", "is_signed")
_CHECKS = ("check", "require", "verify", "refuse")
_CHARGES = ("charge", "prepay", "charge_all", "check_all", "pay")
_SYMMETRIC = ("isinstance", "getattr", "max", "min", "gcd")
_INDICES = ("i", "j", "k", "f", "r", "place", "number")
_WORDS = (ast.Raise, ast.JoinedStr, ast.Import, ast.ImportFrom, ast.Assert)
_ZEROS = '__import__("cloister.crypto", fromlist=["Stream"]).Stream(bytes(32))'


@dataclass(frozen=True)
class Mutant:
    """One fault: the text from ``start`` to ``end`` of a file, in bytes, replaced by another."""

    path: str
    line: int
    column: int
    operator: str
    start: int
    end: int
    old: str
    new: str
    scope: str = ""

    @property
    def id(self) -> str:
        """What it is called: file, line and column, what is around it, operator and new text."""
        scope = self.scope.replace(" ", ".") or "-"
        return f"{self.path}:{self.line}:{self.column} {scope} {self.operator} {self.new!r}"

    def name_place(self, source: bytes) -> str:
        """Return what a test that notices may name: what is around the mutant, and the names on its line."""
        line = source.decode().splitlines()[self.line - 1]
        return " ".join([self.scope, *re.findall(r"[A-Za-z_]\w{3,}", line)])

    def apply(self, source: bytes) -> bytes:
        """Return the source with the fault in it."""
        return source[: self.start] + self.new.encode() + source[self.end :]


def compare_otherwise(node: ast.AST) -> Faults:
    """``<`` for ``<=``, ``==`` for ``!=``."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _SWAPPED:
        yield node, _with(node, ops=[_SWAPPED[type(node.ops[0])]()])


def negate_condition(node: ast.AST) -> Faults:
    """``if not (x)`` for ``if x``, ``or`` for ``and``."""
    if isinstance(node, ast.If | ast.While | ast.IfExp):
        yield node.test, f"not ({ast.unparse(node.test)})"
    if isinstance(node, ast.BoolOp):
        yield node, _with(node, op=ast.Or() if isinstance(node.op, ast.And) else ast.And())


def drop_check(node: ast.AST) -> Faults:
    """No ``if ...: raise``, no call whose name begins with check, require, verify or refuse; one condition less."""
    if isinstance(node, ast.If) and not node.orelse and isinstance(node.body[-1], ast.Raise):
        yield node, "pass"
    if isinstance(node, ast.Expr) and _called(node.value).lstrip("_").startswith(_CHECKS):
        yield node, "pass"
    if isinstance(node, ast.BoolOp):
        for i in range(len(node.values)):
            rest = node.values[:i] + node.values[i + 1 :]
            yield node, ast.unparse(rest[0]) if len(rest) == 1 else _with(node, values=rest)


def skip_charge(node: ast.AST) -> Faults:
    """Nobody pays; or who pays does so after the next step."""
    if isinstance(node, ast.Expr) and _called(node.value) in _CHARGES:
        yield node, "pass"
    body = getattr(node, "body", None)
    if isinstance(node, ast.stmt) and isinstance(body, list):
        for one, other in pairwise(body):
            if isinstance(one, ast.Expr) and _called(one.value) in _CHARGES and not isinstance(other, ast.Return):
                yield _span(one, other), f"{ast.unparse(other)}\n{ast.unparse(one)}"


def drop_term(node: ast.AST) -> Faults:
    """One term of a sum, or one factor of a product, less."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub | ast.Mult) and not _is_text(node):
        yield node, ast.unparse(node.left)
        yield node, f"-({ast.unparse(node.right)})" if isinstance(node.op, ast.Sub) else ast.unparse(node.right)


def flip_sign(node: ast.AST) -> Faults:
    """Minus for plus, and plus for minus."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub) and not _is_text(node):
        yield node, _with(node, op=ast.Sub() if isinstance(node.op, ast.Add) else ast.Add())


def halve_scale(node: ast.AST) -> Faults:
    """Half of what is called a scale, a bound or a sensitivity, and half of a number that is not 0 or 1."""
    if isinstance(node, ast.keyword) and (node.arg or "").endswith(_SCALES):
        yield node, f"{node.arg}=({ast.unparse(node.value)}) / 2"
    number = node.value if isinstance(node, ast.Constant) else None
    if isinstance(number, int | float) and abs(number) not in (0, 1):
        yield node, repr(number // 2 if isinstance(number, int) else number / 2)


def skip_clip(node: ast.AST) -> Faults:
    """What was to be clipped or bounded, as it is."""
    if isinstance(node, ast.Call) and _called(node) in _CLIPS and len(node.args) > 1 and not node.keywords:
        yield from (
            (node, ast.unparse(argument)) for argument in node.args[:2] if not isinstance(argument, ast.Starred)
        )


def shift_index(node: ast.AST) -> Faults:
    """One further: a place in an array, the beginning or the end of a range or of a part."""
    one = ast.Constant(1)
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
        index = node.slice
        is_number = isinstance(index, ast.Constant) and isinstance(index.value, int)
        if is_number or (isinstance(index, ast.Name) and index.id in _INDICES):
            yield index, f"{ast.unparse(index)} + 1"
        for limit in (index.lower, index.upper) if isinstance(index, ast.Slice) else ():
            if limit is not None:
                yield limit, ast.unparse(ast.BinOp(limit, ast.Add(), one))
    if isinstance(node, ast.Call) and _called(node) == "range":
        for i, limit in enumerate(node.args[:2]):
            yield limit, ast.unparse(ast.BinOp(limit, ast.Add() if i < len(node.args) - 1 else ast.Sub(), one))


def reuse_context(node: ast.AST) -> Faults:
    """A key, a nonce or a signature for one label less: what differed only there is now the same."""
    if isinstance(node, ast.Call) and _called(node) in _CONTEXTS:
        for i in range(1, len(node.args)):
            yield node, _with(node, args=node.args[:i] + node.args[i + 1 :])
    if isinstance(node, ast.Return | ast.keyword) and isinstance(node.value, ast.Tuple):
        labels = node.value.elts
        if any(isinstance(label, ast.Constant) and isinstance(label.value, str) for label in labels):
            for i in range(len(labels)):
                yield node.value, _with(node.value, elts=labels[:i] + labels[i + 1 :])
    if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add):
        yield node, "pass"


def fix_entropy(node: ast.AST) -> Faults:
    """A constant where there was a secret."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "bytes" and node.args:
        source = ast.unparse(node.func.value).lower()
        if any(word in source for word in ("entropy", "stream", "source")):
            yield node, f"bytes({ast.unparse(node.args[0])})"
    if isinstance(node, ast.Call) and _called(node) in ("make_entropy", "SystemEntropy"):
        yield node, _ZEROS
    if isinstance(node, ast.keyword) and node.arg == "entropy":
        yield node, f"entropy={_ZEROS}"


def swap_arguments(node: ast.AST) -> Faults:
    """Two arguments the other way round."""
    if isinstance(node, ast.Call) and len(node.args) >= 2 and _called(node) not in _SYMMETRIC:
        first, second = node.args[:2]
        if isinstance(first, ast.Name | ast.Attribute) and isinstance(second, ast.Name | ast.Attribute):
            yield node, _with(node, args=[second, first, *node.args[2:]])


def forget_state(node: ast.AST) -> Faults:
    """What a role should remember, it does not."""
    if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]).startswith("self."):
        yield node, "pass"


OPERATORS: tuple[Operator, ...] = (
    compare_otherwise,
    negate_condition,
    drop_check,
    skip_charge,
    drop_term,
    flip_sign,
    halve_scale,
    skip_clip,
    shift_index,
    reuse_context,
    fix_entropy,
    swap_arguments,
    forget_state,
)


def find_mutants(root: Path, path: Path) -> Iterator[Mutant]:
    """Yield every mutant of one file."""
    source = path.read_bytes()
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    for node, scope in _walk(ast.parse(source), ""):
        for operator in OPERATORS:
            if operator is forget_state and scope.endswith("__init__"):
                continue  # an attribute that does not exist is no fault that needs a test
            for place, text in operator(node):
                new = _fit(text, place)
                start = starts[_int(place, "lineno") - 1] + _int(place, "col_offset")
                end = starts[_int(place, "end_lineno") - 1] + _int(place, "end_col_offset")
                mutant = Mutant(
                    path=path.relative_to(root).as_posix(),
                    line=_int(place, "lineno"),
                    column=_int(place, "col_offset"),
                    operator=operator.__name__,
                    start=start,
                    end=end,
                    old=source[start:end].decode(),
                    new=new,
                    scope=scope,
                )
                if mutant.old != new:
                    yield mutant


def _walk(node: ast.AST, scope: str) -> Iterator[tuple[ast.AST, str]]:
    """Yield the nodes that decide something, each with the names of what it is defined in."""
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "decorator_list") or (isinstance(node, ast.ClassDef) and field != "body"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if not isinstance(child, ast.AST) or isinstance(child, _WORDS):
                continue
            inside = scope
            if isinstance(child, ast.FunctionDef | ast.ClassDef):
                if child.name.lstrip("_").startswith(("describe", "repr__", "format_", "show_")):
                    continue
                inside = f"{scope} {child.name}".strip()
            if hasattr(child, "lineno"):
                yield child, inside
            yield from _walk(child, inside)


def _fit(text: str, place: ast.AST) -> str:
    """Indent statements, and bracket what may stand inside an expression."""
    if isinstance(place, ast.stmt):
        return text.replace("\n", "\n" + " " * _int(place, "col_offset"))
    return f"({text})" if isinstance(place, ast.expr) and not isinstance(place, ast.Constant) else text


def _int(node: ast.AST, name: str) -> int:
    return int(getattr(node, name))


def _span(first: ast.stmt, last: ast.stmt) -> ast.stmt:
    """A statement that stands where these two and all between them do."""
    return ast.Pass(
        lineno=first.lineno, col_offset=first.col_offset, end_lineno=last.end_lineno, end_col_offset=last.end_col_offset
    )


def _with_node(node: ast.AST, **fields: object) -> ast.AST:
    changed = copy.copy(node)
    for name, value in fields.items():
        setattr(changed, name, value)
    return ast.fix_missing_locations(changed)


def _with(node: ast.AST, **fields: object) -> str:
    return ast.unparse(_with_node(node, **fields))


def _called(node: ast.AST) -> str:
    """The last word of what is called; empty if it is no call."""
    function = node.func if isinstance(node, ast.Call) else None
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _is_text(node: ast.BinOp) -> bool:
    """Whether this joins texts or lists rather than adding numbers."""
    return any(
        isinstance(side, ast.JoinedStr | ast.List | ast.Tuple)
        or (isinstance(side, ast.Constant) and not isinstance(side.value, int | float))
        for side in (node.left, node.right)
    )


def is_python(source: bytes) -> bool:
    """Whether this compiles; a fault that no interpreter accepts is none."""
    try:
        compile(source, "mutant", "exec")
    except SyntaxError:
        return False
    return True
