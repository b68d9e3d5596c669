"""A package's modules with one thing removed: every check that stands in them, found there, and rules by name.

A package's own test names for each of them the test that dies of it (`tests/aggregation/test_mutants.py`). So a check
that is added without a test fails there.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import CodeType

import pytest

_LONG = 70  # a call that takes more is named by its first argument


@dataclass(frozen=True)
class Mutant:
    """A module with something removed or replaced; ``function`` says where."""

    package: str
    module: str
    function: str
    without: str
    code: CodeType

    def __str__(self):
        return f"{self.module}.{self.function}: {self.without}"

    @contextmanager
    def alive(self):
        """Run the mutant instead of the module, whoever has imported what from it."""
        patched = pytest.MonkeyPatch()
        codes = {code.co_qualname: code for code in _codes_in(self.code)}
        functions = _functions_of(load(self.package, self.module))
        try:
            for name, function in functions.items():
                patched.setattr(inspect.unwrap(function), "__code__", codes[name])
            _forget(functions)
            yield
        finally:
            patched.undo()
            _forget(functions)


def load(package, module):
    return importlib.import_module(f"{package}.{module}")


def _functions_of(module):
    found = {}
    for holder in (module, *(one for one in vars(module).values() if inspect.isclass(one))):
        if holder is not module and holder.__module__ != module.__name__:
            continue
        for member in vars(holder).values():
            function = _function_of(member)
            plain = inspect.unwrap(function) if callable(function) else None
            own = inspect.isfunction(plain) and plain.__module__ == module.__name__
            if own and plain.__code__.co_filename == module.__file__:  # not what a dataclass wrote
                found[plain.__qualname__] = function
    return found


def _function_of(member):
    """What a property or a class method wraps."""
    for name in ("fget", "func", "__func__"):
        member = getattr(member, name, member)
    return member


def _forget(functions):
    """Empty the caches of functions that have one."""
    for function in functions.values():
        getattr(function, "cache_clear", lambda: None)()


def _codes_in(code):
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes_in(constant)


@dataclass(frozen=True)
class Package:
    """Where mutants are made.

    Parameters
    ----------
    name
        Of the package, as it is imported.
    checkers
        Calls that refuse something where they stand alone.
    """

    name: str
    checkers: frozenset[str]

    def find_checks(self, *modules: str) -> Iterator[Mutant]:
        """One mutant for each check, for each alternative in it, and for each call that refuses."""
        for module in modules:
            source = self._source(module)
            for at, what in self._find_checks(ast.parse(source)):
                tree = ast.parse(source)
                function, without = _remove(tree, at, what)
                yield self._make(module, function, without, tree)

    def replaced(self, module, without, *changes):
        """A module in which texts, each of which occurs once, are replaced by others."""
        source = self._source(module)
        for old, new in changes:
            assert source.count(old) == 1, f"{old!r} must occur once in {module}; it occurs {source.count(old)} times"
            source = source.replace(old, new)
        return self._make(module, "rule", without, ast.parse(source))

    def find_contexts(self, module, function, *texts):
        """One mutant for each of these elements of a function's one tuple or call that has it, without it."""
        for text in texts:
            tree = ast.parse(self._source(module))
            inside = next(n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.name == function)
            lists = [
                n.args if isinstance(n, ast.Call) else n.elts
                for n in ast.walk(inside)
                if isinstance(n, ast.Call | ast.Tuple)
            ]
            at = [
                (one, [ast.unparse(part) for part in one].index(text)) for one in lists if text in map(ast.unparse, one)
            ]
            assert len(at) == 1, f"{text} must occur once as an element in {function}; it occurs {len(at)} times"
            one, place = at[0]
            del one[place]
            yield self._make(module, function, f"without {text}", tree)

    def find_calls(self, change, *modules: str) -> Iterator[Mutant]:
        """One mutant for each call of which ``change`` makes another expression, with a name; None for all others."""
        for module in modules:
            source = self._source(module)
            for at, node in enumerate(ast.walk(ast.parse(source))):
                if isinstance(node, ast.Call) and change(node) is not None:
                    tree = ast.parse(source)
                    call = next(itertools.islice(ast.walk(tree), at, None))
                    function, (without, other) = _function_around(tree, call), change(call)
                    yield self._make(module, function, without, _Replacing(call, other).visit(tree))

    def _source(self, module):
        return inspect.getsource(load(self.name, module))

    def _make(self, module, function, without, tree):
        code = compile(ast.fix_missing_locations(tree), load(self.name, module).__file__, "exec")
        return Mutant(self.name, module, function, without, code)

    def _find_checks(self, tree):
        """The places of checks in the tree, and which part of each is removed: None for all of it."""
        for at, node in enumerate(ast.walk(tree)):
            if isinstance(node, ast.If) and _refuses(node.body):
                yield at, None
                if isinstance(node.test, ast.BoolOp) and isinstance(node.test.op, ast.Or):
                    yield from ((at, part) for part in range(len(node.test.values)))
                for place, pair in enumerate(_pairs(node.test)):
                    yield from ((at, (place, part)) for part in range(len(pair.left.elts)))
            elif isinstance(node, ast.Expr) and _name_of(node.value) in self.checkers:
                yield at, None


class _Replacing(ast.NodeTransformer):
    def __init__(self, node, by):
        self._node, self._by = node, by

    def generic_visit(self, node):
        return self._by if node is self._node else super().generic_visit(node)


def _refuses(body):
    last = body[-1]
    return isinstance(last, ast.Raise) or (isinstance(last, ast.Expr) and _name_of(last.value) == "_give_up")


def _name_of(node):
    """What is called; of ``expect(kind)(party, reply)``, what made it."""
    if not isinstance(node, ast.Call):
        return None
    if isinstance(node.func, ast.Call):
        return _name_of(node.func)
    return node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", None)


def _pairs(test):
    """Comparisons of tuples."""
    return [
        node
        for node in ast.walk(test)
        if isinstance(node, ast.Compare)
        and isinstance(node.left, ast.Tuple)
        and isinstance(node.comparators[0], ast.Tuple)
    ]


def _remove(tree, at, what):
    node = next(itertools.islice(ast.walk(tree), at, None))
    function = _function_around(tree, node)
    if isinstance(node, ast.Expr):
        without = ast.unparse(node)
        if len(without) > _LONG:
            without = f"{_name_of(node.value)}({ast.unparse(node.value.args[0])}, ...)"
        node.value = ast.Constant(None)
    elif what is None:
        without = ast.unparse(node.test)
        node.test = ast.Constant(False)
    elif isinstance(what, int):
        values = node.test.values
        without = ast.unparse(values.pop(what))
        node.test = node.test if len(values) > 1 else values[0]
    else:
        pair = _pairs(node.test)[what[0]]
        without = ast.unparse(pair.left.elts.pop(what[1]))
        pair.comparators[0].elts.pop(what[1])
    return function, without


def _function_around(tree, node):
    inside = [
        one for one in ast.walk(tree) if isinstance(one, ast.FunctionDef | ast.ClassDef) and node in ast.walk(one)
    ]
    return ".".join(one.name for one in inside)


# --- tests that kill --------------------------------------------------------------------------------------------------


def name_killers(killed_by):
    """From the mutants that each test kills to the test that kills each mutant."""
    return {mutant: test for test, mutants in killed_by.items() for mutant in mutants}


def kills(tests, name, mutant):
    """Whether a test, ``module::function`` of a package of tests, fails while the mutant is alive, for some case."""
    module, _, function = name.partition("::")
    test = getattr(importlib.import_module(f"{tests}.{module}"), function)
    for case in _cases_of(test):
        with mutant.alive(), pytest.MonkeyPatch.context() as patched:
            fixtures = {"monkeypatch": patched} if "monkeypatch" in inspect.signature(test).parameters else {}
            try:
                test(**case, **fixtures)
            except (Exception, pytest.fail.Exception):
                return True
    return False


def _cases_of(test):
    marks = [mark.args for mark in getattr(test, "pytestmark", ()) if mark.name == "parametrize"]
    sets = [
        [{names: value} if isinstance(names, str) else dict(zip(names, value, strict=True)) for value in values]
        for names, values in marks
    ]
    for chosen in itertools.product(*sets):
        yield {name: value for one in chosen for name, value in one.items()}
