"""Sums with one check removed: every check that stands in the code, found there, and rules and contexts by name."""

from __future__ import annotations

import ast
import importlib
import inspect
import itertools
from contextlib import contextmanager
from dataclasses import dataclass
from types import CodeType

import pytest

MODULES = (
    "common_masks",
    "coordination",
    "double_masks",
    "follower",
    "introduction",
    "masked_sum",
    "own_masks",
    "pairwise_pads",
    "seed_agreement",
    "statements",
    "terms",
)
CHECKERS = {"check", "check_shares", "check_agreement", "kind", "read_words", "require_members", "verify"}
CHECKERS |= {"_check_keys", "_check_votes", "_give_up", "_verify"}
"""Calls that stand alone refuse something."""


@dataclass(frozen=True)
class Mutant:
    """A function of a module with something removed or replaced."""

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
        codes = {code.co_qualname: code for code in _functions_in(self.code)}
        try:
            for name, function in _functions_of(load(self.module)).items():
                patched.setattr(function, "__code__", codes[name])
            yield
        finally:
            patched.undo()


def load(module):
    return importlib.import_module(f"cloister.aggregation.{module}")


def _functions_of(module):
    found = {}
    for holder in (module, *(one for one in vars(module).values() if inspect.isclass(one))):
        if holder is not module and holder.__module__ != module.__name__:
            continue
        for member in vars(holder).values():
            function = member.fget if isinstance(member, property) else member
            own = inspect.isfunction(function) and function.__module__ == module.__name__
            if own and function.__code__.co_filename == module.__file__:  # not what a dataclass wrote
                found[function.__qualname__] = function
    return found


def _functions_in(code):
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _functions_in(constant)


# --- checks, as they stand in the code --------------------------------------------------------------------------------


def find_mutants():
    """One mutant for each check, for each alternative in it, and for each call that refuses."""
    for module in MODULES:
        source = inspect.getsource(load(module))
        for at, what in _find_checks(ast.parse(source)):
            tree = ast.parse(source)
            function, without = _remove(tree, at, what)
            yield Mutant(
                module, function, without, compile(ast.fix_missing_locations(tree), load(module).__file__, "exec")
            )


def _find_checks(tree):
    """The places of checks in the tree, and which part of each is removed: None for all of it."""
    for at, node in enumerate(ast.walk(tree)):
        if isinstance(node, ast.If) and _refuses(node.body):
            yield at, None
            if isinstance(node.test, ast.BoolOp) and isinstance(node.test.op, ast.Or):
                yield from ((at, part) for part in range(len(node.test.values)))
            for place, pair in enumerate(_pairs(node.test)):
                yield from ((at, (place, part)) for part in range(len(pair.left.elts)))
        elif isinstance(node, ast.Expr) and _name_of(node.value) in CHECKERS and _name_of(node.value) != "_give_up":
            yield at, None


def _refuses(body):
    last = body[-1]
    return isinstance(last, ast.Raise) or (isinstance(last, ast.Expr) and _name_of(last.value) == "_give_up")


def _name_of(node):
    if not isinstance(node, ast.Call):
        return None
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


# --- rules and contexts, by name --------------------------------------------------------------------------------------


def replaced(module, without, *changes):
    """A module in which texts, each of which occurs once, are replaced by others."""
    source = inspect.getsource(load(module))
    for old, new in changes:
        assert source.count(old) == 1, f"{old!r} must occur once in {module}; it occurs {source.count(old)} times"
        source = source.replace(old, new)
    return Mutant(module, "rule", without, compile(source, load(module).__file__, "exec"))


def find_contexts(module, function, *texts):
    """One mutant for each of these elements: of a function's last tuple or call, without it."""
    for text in texts:
        tree = ast.parse(inspect.getsource(load(module)))
        inside = next(n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.name == function)
        lists = [
            n.args if isinstance(n, ast.Call) else n.elts
            for n in ast.walk(inside)
            if isinstance(n, ast.Call | ast.Tuple)
        ]
        at = [(one, [ast.unparse(part) for part in one].index(text)) for one in lists if text in map(ast.unparse, one)]
        assert len(at) == 1, f"{text} must occur once as an element in {function}; it occurs {len(at)} times"
        one, place = at[0]
        del one[place]
        yield Mutant(
            module, function, f"without {text}", compile(ast.fix_missing_locations(tree), load(module).__file__, "exec")
        )


def find_rules():
    """What is not a check: what boxes, keys and statements are bound to, what is remembered, and how many it takes."""
    yield from find_contexts(
        "statements",
        "state_attempt",
        "session",
        "place.link",
        "attempt.round",
        "attempt.number",
        "attempt.members",
        "place.subject",
    )
    yield from find_contexts("statements", "start_link", "session", "agreement")
    yield from find_contexts("statements", "extend_link", "statement", "write_words(total)")
    yield from find_contexts("own_masks", "derive_mask_key", "statement")
    yield from find_contexts("pairwise_pads", "_keystream", "self._ring.bits", "statement")
    yield from find_contexts(
        "double_masks",
        "context",
        "self._seat.session",
        "purpose",
        "attempt.round",
        "attempt.number",
        "attempt.members",
        "sender",
        "detail",
    )
    yield from find_contexts(
        "own_masks", "_context", "self._session", "attempt.round", "attempt.number", "attempt.members", "sender"
    )
    keyed = 'Stream(derive_key(seed, "check words", statement))'
    yield replaced("statements", "check words of a statement", (keyed, 'Stream(derive_key(seed, "check words"))'))
    yield replaced(
        "statements", "check words of a seed", (keyed, 'Stream(derive_key(b"seed", "check words", statement))')
    )
    yield replaced(
        "follower",
        "link in a vote",
        ("sign(_FOUND, place.link, ", "sign(_FOUND, "),
        ("identity, _FOUND, place.link, ", "identity, _FOUND, "),
    )
    yield replaced(
        "follower",
        "subject in a vote",
        ("place.link, place.subject)\n        return", "place.link)\n        return"),
        ("place.link, place.subject)\n        if", "place.link)\n        if"),
    )
    yield replaced(
        "follower",
        "purpose in a vote",
        ("sign(_FOUND, place", "sign(place"),
        ("identity, _FOUND, place", "identity, place"),
    )
    yield replaced(
        "follower",
        "session around a vote",
        ('masks.seed, self._seat.session, "result", self', 'masks.seed, "result", self'),
        ('masks.seed, self._seat.session, "result", vote', 'masks.seed, "result", vote'),
    )
    yield replaced(
        "follower",
        "sender of a vote",
        ('"result", self._seat.number)', '"result")'),
        ('"result", vote.party)', '"result")'),
    )
    yield replaced(
        "follower", "link of the next round", ("total.attempt.round, reading.link", "total.attempt.round, self._link")
    )
    yield replaced("follower", "a branch of its own", ("self.contributor.branch()", "self.contributor"))
    yield replaced(
        "double_masks",
        "purpose in an opener's signature",
        ("sign(_VOTE, entered", "sign(entered"),
        ("identity, _VOTE, entered", "identity, entered"),
    )
    yield replaced(
        "double_masks",
        "statement in an opener's signature",
        ("sign(_VOTE, entered.statement)", "sign(_VOTE)"),
        ("identity, _VOTE, entered.statement)", "identity, _VOTE)"),
    )
    yield replaced("double_masks", "vector kept", ("vector = make() if kept is None else kept", "vector = make()"))
    yield replaced("double_masks", "opened once", ('self._progress = "opened"', 'self._progress = "answered"'))
    yield replaced("double_masks", "restored once", ('self._progress = "restored"', 'self._progress = "opened"'))
    yield replaced(
        "double_masks", "restored is closed", ('("opened", "restored")\n            if', '("opened",)\n            if')
    )
    yield replaced("double_masks", "digest kept", ("opened_digest=request.digest", 'opened_digest=b""'))
    yield replaced("double_masks", "pads", (".pad(entered.members,", ".pad((self._seat.number,),"))
    yield replaced(
        "double_masks", "own mask", ("    blinded = blinded + expand_mask(", "    blinded = blinded + 0 * expand_mask(")
    )
    yield replaced("own_masks", "fresh secret", ("return entropy.bytes(SECRET_BYTES)", "return bytes(SECRET_BYTES)"))
    yield replaced("common_masks", "one answer a round", ("        self._answered = attempt.round\n", ""))
    yield replaced("common_masks", "mask", ("self._schedule.mask(vector, ", "(lambda v, r, n: v)(vector, "))
    yield replaced(
        "terms", "a threshold above those that may collude", ("self.colluding_max + 1", "max(1, self.colluding_max)")
    )
    yield replaced("terms", "2q > n + t", ("(parties + colluding_max) // 2 + 1", "(parties + colluding_max) // 2"))
    yield replaced(
        "seed_agreement",
        "keys once",
        ("isinstance(request, OpenSession) and self._key is None", "isinstance(request, OpenSession)"),
    )
    yield replaced("seed_agreement", "seed once", ("        if self.seed is None:\n", "        if True:\n"))
    yield replaced("coordination", "late members left out", ("len(answered) == len(members):", "answered:"))


# --- tests that kill --------------------------------------------------------------------------------------------------


def kills(test, mutant):
    """Whether a test fails while the mutant is alive, for some of its parameters."""
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
