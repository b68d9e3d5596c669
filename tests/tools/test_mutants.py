"""The tool that plants faults: each operator, what it leaves alone, and that a verdict is what the tests said."""

from __future__ import annotations

import ast
from pathlib import Path
from textwrap import dedent

import pytest
from tools.mutants import __main__ as command
from tools.mutants import choice, operators
from tools.mutants.choice import draw_mutants, find_users, rank_tests
from tools.mutants.equivalent import EQUIVALENT, without_place
from tools.mutants.named import NAMED
from tools.mutants.trial import Copy

ROOT = Path(__file__).parents[2]


def plant(tmp_path, code, name="src/cloister/privacy/books.py"):
    """Write one module; return its mutants as (operator, mutated text)."""
    file = tmp_path / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(dedent(code))
    source = file.read_bytes()
    return [(one.operator, one.apply(source).decode()) for one in operators.find_mutants(tmp_path, file)]


@pytest.mark.parametrize(
    ("operator", "code", "mutants"),
    [
        ("compare_otherwise", "x = a < b", ["x = (a <= b)"]),
        ("compare_otherwise", "x = a == b", ["x = (a != b)"]),
        ("negate_condition", "if a:\n    b()", ["if (not (a)):\n    b()"]),
        ("negate_condition", "x = a and b", ["x = (a or b)"]),
        ("drop_check", "if a:\n    raise E", ["pass"]),
        ("drop_check", "def f():\n    check_keys(a)", ["def f():\n    pass"]),
        ("drop_check", "x = a or b", ["x = (b)", "x = (a)"]),
        ("skip_charge", "def f():\n    books.charge(a)\n    return b", ["def f():\n    pass\n    return b"]),
        (
            "skip_charge",
            "def f():\n    books.charge(a)\n    b = draw()",
            ["def f():\n    b = draw()\n    books.charge(a)", "def f():\n    pass\n    b = draw()"],
        ),
        ("drop_term", "x = a + b", ["x = (a)", "x = (b)"]),
        ("drop_term", "x = a - b", ["x = (a)", "x = (-(b))"]),
        ("flip_sign", "x = a - b", ["x = (a + b)"]),
        ("halve_scale", "f(scale=a)", ["f(scale=(a) / 2)"]),
        ("halve_scale", "x = 6.0", ["x = 3.0"]),
        ("skip_clip", "x = min(a, b)", ["x = (a)", "x = (b)"]),
        ("skip_clip", "x = np.clip(a, b, c)", ["x = (a)", "x = (b)"]),
        ("shift_index", "x = a[0]", ["x = a[0 + 1]"]),
        ("shift_index", "x = a[b:]", ["x = a[(b + 1):]"]),
        ("shift_index", "x = range(a)", ["x = range((a - 1))"]),
        ("reuse_context", 'k = derive_key(s, "mask", i)', ["k = (derive_key(s, i))", "k = (derive_key(s, 'mask'))"]),
        ("reuse_context", 'f(context=("seed", i))', ["f(context=((i,)))", "f(context=(('seed',)))"]),
        ("reuse_context", "x += 1", ["pass"]),
        ("fix_entropy", "k = self._entropy.bytes(32)", ["k = (bytes(32))"]),
        ("swap_arguments", "f(a, b)", ["(f(b, a))"]),
        ("forget_state", "def f(self):\n    self.a = b", ["def f(self):\n    pass"]),
    ],
)
def test_an_operator_plants_its_fault(tmp_path, operator, code, mutants):
    assert [text for name, text in plant(tmp_path, code) if name == operator] == mutants


def test_every_operator_has_a_case():
    cases = {
        mark.args[1][i][0] for mark in test_an_operator_plants_its_fault.pytestmark for i in range(len(mark.args[1]))
    }
    assert cases == {operator.__name__ for operator in operators.OPERATORS}


@pytest.mark.parametrize(
    "code",
    [
        '"""A docstring with 5 < 6."""',
        'raise E(f"{a + 5}")',
        "def f(a: Annotated[int, Meta(ge=7)]) -> T[8]: pass",
        "@lru_cache(maxsize=64)\ndef f(): pass",
        "class A(Struct, tag=2): pass",
        "def _describe(a):\n    return a + 5",
        'x = "a" + b',
        "class A:\n    def __init__(self):\n        self.a = b",
    ],
)
def test_what_decides_nothing_is_left_alone(tmp_path, code):
    assert plant(tmp_path, code) == []


def test_the_same_seed_draws_the_same_and_another_draws_others(monkeypatch):
    monkeypatch.setattr(choice, "UNITS", ("privacy", "crypto", "aggregation"))
    one, again, other = (draw_mutants(ROOT, seed, 60) for seed in ("a", "a", "b"))
    assert one == again
    assert len({mutant.id for mutant in one}) == 60
    assert len({(mutant.path, mutant.line) for mutant in one}) == 60
    assert len({mutant.id for mutant in one} & {mutant.id for mutant in other}) < 20
    assert {mutant.operator for mutant in one} == {operator.__name__ for operator in operators.OPERATORS}
    for mutant in one:
        source = (ROOT / mutant.path).read_bytes()
        ast.parse(mutant.apply(source))
        assert source[mutant.start : mutant.end].decode() == mutant.old != mutant.new


@pytest.mark.parametrize("named", NAMED, ids=lambda named: named.name)
def test_a_named_mutant_has_its_place_and_its_tests(named):
    """Where code has moved, its mutant moves with it."""
    assert named.apply(ROOT) != (ROOT / named.path).read_bytes()
    assert all((ROOT / test).exists() for test in named.tests)


def test_names_are_unique_and_proofs_are_of_something():
    assert len({named.name for named in NAMED}) == len(NAMED)
    for place, proof in EQUIVALENT.items():
        assert place == without_place(place.replace(" ", ":1:2 ", 1))
        assert (ROOT / place.split(" ")[0]).exists()
        assert len(proof) > 20


def test_near_tests_come_first_and_golden_files_never():
    near, far = rank_tests(ROOT, "src/cloister/crypto/secret_sharing.py", "split_secret")
    assert near[0] == "tests/crypto/test_secret_sharing.py"
    assert any(test.startswith("tests/aggregation/") for test in [*near, *far])
    assert not [test for test in [*near, *far] if test.startswith("tests/golden")]
    assert rank_tests(ROOT, "src/cloister/cli/run.py", "")[1].count("tests/crypto/test_stream.py") == 0


def test_files_whose_kernels_call_a_files_kernels_use_it():
    users = find_users(ROOT, "src/cloister/lattice/ntt.py")
    assert {f"cloister/lattice/{name}.py" for name in ("ntt", "ring", "slots", "weighted_sums")} <= users
    assert "cloister/lattice/ntt.py" not in find_users(ROOT, "src/cloister/lattice/ring.py")


@pytest.fixture
def tree(tmp_path):
    """A tree of one module and two tests, of which one never passes."""
    root = tmp_path / "tree"
    for name, text in {
        "src/cloister/__init__.py": "",
        "src/cloister/privacy/__init__.py": "",
        "src/cloister/privacy/books.py": "def f(a):\n    return a + 1\n\n\ndef g(a):\n    return a < 1\n",
        "tests/__init__.py": "",
        "tests/privacy/__init__.py": "",
        "tests/privacy/test_books.py": """
            import time
            from cloister.privacy.books import f, g
            def test_what_never_passes():
                assert f(1) == 7
            def test_f():
                assert f(1) == 2
                while f(2) == 2:
                    time.sleep(0.1)
            """,
        "pyproject.toml": "[tool.pytest.ini_options]\naddopts = '-q'\n",
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(dedent(text))
    return root


@pytest.mark.parametrize(
    ("old", "new", "status", "by"),
    [
        (b"a + 1", b"a", "killed", "tests/privacy/test_books.py::test_f"),
        (b"a < 1", b"a <= 1", "survived", ""),
        (b"a + 1", b"2", "timeout", "tests/privacy/test_books.py"),
        (b"def f", b"def h", "killed", "tests/privacy/test_books.py"),
    ],
)
def test_a_verdict_is_that_of_the_tests_that_pass_without_the_mutant(tree, old, new, status, by):
    source = (tree / "src/cloister/privacy/books.py").read_bytes()
    copy = Copy(tree, limit_s=6 if status == "timeout" else 15, wide_s=60)
    try:
        verdict = copy.try_mutant("m", "src/cloister/privacy/books.py", source.replace(old, new))
        assert (copy.root / "src/cloister/privacy/books.py").read_bytes() == source
    finally:
        copy.close()
    assert (verdict.status, verdict.by) == (status, by)
    assert f"+    return {new.decode()}" in verdict.difference or new == b"def h"
    assert (tree / "src/cloister/privacy/books.py").read_bytes() == source
    assert not copy.root.exists()


def test_a_test_whose_name_has_spaces_kills(tree):
    (tree / "tests/privacy/test_books.py").write_text(
        dedent("""
            import pytest
            from cloister.privacy.books import f
            @pytest.mark.parametrize("name", ["two parties, shared"])
            def test_f(name):
                assert f(1) == 2, "more or less - as in sums"
        """)
    )
    copy = Copy(tree, limit_s=15, wide_s=60)
    try:
        verdict = copy.try_mutant(
            "m", "src/cloister/privacy/books.py", b"def f(a):\n    return a\n", first=["tests/privacy/test_books.py"]
        )
    finally:
        copy.close()
    assert (verdict.status, verdict.by) == ("killed", "tests/privacy/test_books.py::test_f[two parties, shared]")


def test_a_file_that_cannot_be_read_anyway_kills_nothing(tree):
    (tree / "tests/privacy/test_books.py").write_text("import cloister.missing  # privacy.books\n")
    copy = Copy(tree, limit_s=15, wide_s=60)
    try:
        verdict = copy.try_mutant(
            "m", "src/cloister/privacy/books.py", b"broken = 1\n", first=["tests/privacy/test_books.py"]
        )
    finally:
        copy.close()
    assert verdict.status == "survived"


def test_a_run_goes_on_where_the_last_one_stopped(tree, monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(command, "ROOT", tree)
    monkeypatch.setattr("signal.signal", lambda *given: None)  # or whoever stops the tests later stops them there
    monkeypatch.setattr(choice, "UNITS", ("privacy",))
    report = tmp_path / "report.jsonl"
    arguments = ["mutants", "--seed", "1", "--count", "2", "--limit", "15", "--report", str(report)]
    monkeypatch.setattr("sys.argv", arguments)
    assert command.main() == 1
    first = report.read_text()
    assert len(first.splitlines()) == 2
    assert "survived" in capsys.readouterr().out
    assert command.main() == 1
    assert report.read_text() == first
    monkeypatch.setattr("sys.argv", [*arguments, "--list"])
    assert command.main() == 0
    assert "src/cloister/privacy/books.py:2:" in capsys.readouterr().out.split("survived")[-1]
