"""Every counter of tools.shape counts what it says and nothing else, on trees of a few lines."""

import ast
from textwrap import dedent

import pytest
from tools.shape import (
    complexity,
    fan_out,
    find_complex_functions,
    find_cycles,
    find_name_comparisons,
    find_name_tables,
    find_protocol_modules,
    main,
    measure,
)


@pytest.fixture
def plant(tmp_path):
    """Write a package ``cloister`` from a mapping of paths to texts and return its folder."""

    def write(files):
        root = tmp_path / "cloister"
        for path, text in {"__init__.py": "", "protocols/spectral/__init__.py": "", **files}.items():
            file = root / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(dedent(text))
        return root

    return write


def at(places):
    return [f"{place.path.as_posix()}:{place.line}" for place in places]


@pytest.mark.parametrize(
    "path",
    [
        "audit/vertical_views.py",
        "planning/ring_traffic.py",
        "sessions/spectral.py",  # a package of protocols/ that no list knows
        "planning/feddp/draft.py",
        "planning/of_secfc.py",
        "vertical.py",
    ],
)
def test_a_module_named_after_a_protocol_is_found(plant, path):
    assert at(find_protocol_modules(plant({path: ""}))) == [f"{path}:1"]


@pytest.mark.parametrize(
    "path", ["protocols/vertical/party.py", "kmeans/lloyd.py", "lattice/ring.py", "data/string.py", "cli/verticals.py"]
)
def test_other_modules_may_have_their_names(plant, path):
    assert not at(find_protocol_modules(plant({path: ""})))


@pytest.mark.parametrize(
    "code",
    [
        'job.protocol.name == "synopsis"',
        '"naive" != name',
        "kind == VERTICAL",
        "kind != settings.FASTLLOYD",
        "protocol.name in (SYNOPSIS, FEDDP)",
        'result.protocol not in {"mask-noise-average"}',
        'name == "spectral"',
        "f(name == MASKED_CENTROID)",
        'match name:\n    case "a" | "secfc": pass',
        "match kind:\n    case names.SECFC: pass",
    ],
)
def test_a_comparison_with_a_name_is_found(plant, code):
    assert len(at(find_name_comparisons(plant({"job.py": code})))) == 1


@pytest.mark.parametrize(
    "code",
    [
        'settings.start == "synopsis"',
        'name == "shared"',
        'match start:\n    case "synopsis": pass',
        "match name:\n    case _: pass",
        'name = "synopsis"',
        "vertical == vertical",
    ],
)
def test_other_comparisons_are_left_alone(plant, code):
    assert not at(find_name_comparisons(plant({"job.py": code})))


def test_protocols_may_compare_their_names(plant):
    assert not at(find_name_comparisons(plant({"protocols/__init__.py": "name == SYNOPSIS"})))
    assert not at(find_name_tables(plant({"protocols/__init__.py": "{SYNOPSIS: 1}"})))


def test_places_come_in_order_with_their_lines(plant):
    root = plant({"a.py": "\nif True:\n    name == SECFC\nname == FEDDP\n", "b.py": "name == VERTICAL"})
    assert at(find_name_comparisons(root)) == ["a.py:3", "a.py:4", "b.py:1"]


@pytest.mark.parametrize(
    ("code", "count"),
    [
        ("{SYNOPSIS: f, **others}", 1),
        ('{"secfc": 1}', 1),
        ('NAMES = ("secfc", FEDDP)', 1),
        ('Literal["secfc", "naive"]', 1),
        ('f("secfc")', 0),
        ('("secfc", 1)', 0),
        ("name in (SYNOPSIS, FEDDP)", 0),  # a comparison already
        ('{"k": "secfc"}', 0),
    ],
)
def test_tables_of_names_are_found(plant, code, count):
    assert len(at(find_name_tables(plant({"job.py": code})))) == count


def test_fan_out_counts_units_once_and_protocols_one_by_one(plant):
    root = plant(
        {
            "planning/a.py": """
                import numpy
                import cloister.wire.codec
                from cloister.wire import endpoint
                from cloister.protocols.vertical.party import Party
                from cloister.protocols import spectral, leakage
                from cloister.planning.b import f
                def late():
                    from cloister.errors import ConfigError
            """,
            "planning/b.py": "from cloister import records",
            "audit.py": "from cloister.job import Job",
        }
    )
    units = {"wire", "protocols.vertical", "protocols.spectral", "protocols.leakage", "errors", "records"}
    assert fan_out(root, "planning") == units
    assert fan_out(root, "audit") == {"job"}


def test_cycles_are_groups_of_modules_that_reach_each_other(plant):
    root = plant(
        {
            "p/__init__.py": "",
            "p/a.py": "from cloister.p import b",
            "p/b.py": "if TYPE_CHECKING:\n    from cloister.p.c import C",
            "p/c.py": "def f():\n    import cloister.p.a",
            "p/d.py": "from cloister.p.a import x",
            "p/e.py": "from cloister.p.d import x",
            "q/__init__.py": "from cloister.q.a import x",
            "q/a.py": "from cloister.q import y",
        }
    )
    assert list(find_cycles(root)) == [("cloister.p.a", "cloister.p.b", "cloister.p.c"), ("cloister.q", "cloister.q.a")]


# What ruff's C901 gives for each of these.
@pytest.mark.parametrize(
    ("body", "number"),
    [
        ("pass", 1),
        ("if a:\n    b\nelif c:\n    d\nelse:\n    e", 3),
        ("for a in b:\n    c\nelse:\n    d", 2),
        ("while a:\n    b", 2),
        ("with a:\n    if b:\n        c", 2),
        ("try:\n    a\nexcept B:\n    c\nexcept D:\n    e\nfinally:\n    f", 3),
        ("try:\n    a\nexcept B:\n    c\nelse:\n    d", 3),
        ("match a:\n    case 1:\n        b\n    case _:\n        c", 2),
        ("match a:\n    case 1:\n        b\n    case 2:\n        c", 3),
        ("match a:\n    case 1:\n        b\n    case _ if c:\n        d", 3),
        ("def g():\n    if a:\n        b", 3),
        ("a = b if c else d\nreturn a and b or [c for c in d if c]", 1),
    ],
)
def test_complexity_is_that_of_ruff(body, number):
    text = "def f():\n" + "\n".join(f"    {line}" for line in body.splitlines())
    assert complexity(ast.parse(text).body[0]) == number


def test_functions_over_the_limit_are_found(plant):
    branches = "\n".join(f"    if {number}: pass" for number in range(10))
    root = plant({"a.py": f"def simple():\n    pass\n\n\nclass A:\n  async def hard(self):\n{branches}"})
    assert at(find_complex_functions(root)) == ["a.py:6"]
    assert at(find_complex_functions(root, most=11)) == []


def test_sizes_and_the_part_of_imports(plant):
    root = plant({"a.py": "import ast\nfrom b import (\n    c,\n)\n\nx = 1\n", "b.py": "y = 1\n\n\nz = 2\n"})
    shape = measure(root)
    assert (shape.files, shape.lines, shape.import_lines) == (4, 10, 4)
    assert shape.import_share == 0.4


def test_the_table_shows_the_marks_and_the_places(plant, capsys, monkeypatch):
    root = plant({"planning/vertical.py": "from cloister import job\nname == SECFC"})
    monkeypatch.setattr("sys.argv", ["shape", "--places", str(root)])
    main()
    printed = capsys.readouterr().out
    assert [line.split()[-3:] for line in printed.splitlines() if line.startswith("per-protocol modules out")] == [
        ["1", "0", "32"]
    ]
    assert "planning/vertical.py:2: name == SECFC" in printed


def test_the_tree_itself_can_be_measured():
    shape = measure()
    assert shape.files > 100
    assert shape.fan_out.keys() >= {"planning", "audit"}
