"""Measure the shape of the source tree against its marks: ``python -m tools.shape [--places]``.

How each mark is counted, from the syntax trees alone:

per-protocol modules
    Modules outside ``protocols/`` with a protocol's name among the words of their path: a package of ``protocols/``,
    or one of ``NICKNAMES``. The packages in ``MATHEMATICS`` are free to say ring and Lloyd. Those in ``SESSIONS`` are
    not clustering protocols: aligning records is a session of its own, and has a home in several layers.
comparisons with a protocol's name
    Outside ``protocols/``: ``==``, ``!=``, ``in``, ``not in`` and ``case`` with a constant such as ``VERTICAL``, or
    with a literal such as ``"vertical"`` where the other side reads ``name`` or ``protocol``. An option may well have
    the value ``"synopsis"``; what the name of the protocol decides belongs into the protocol's package.
tables of protocols' names
    Outside ``protocols/``: dictionaries with a protocol's name as a key, and collections that hold two or more. They
    are comparisons in another form.
fan-out
    The names that a package imports from, below ``cloister``: top-level packages and modules, and one level deeper in
    ``protocols``.
import cycles
    Groups of modules that reach each other by imports, including imports inside functions and for type checking.
complexity
    McCabe's number as ruff's C901 computes it.

The column "at the start" has what these rules give on commit 9fa6975, without the modules in the two papers' folders of
that time, ``reproduction/feddp`` and ``reproduction/secfc``.
"""

from __future__ import annotations

import argparse
import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import median
from typing import NamedTuple

SOURCE = Path(__file__).parents[1] / "src" / "cloister"
PROTOCOLS = "protocols"
NAMES = (
    "synopsis",
    "feddp",
    "fastlloyd",
    "secfc",
    "vertical",
    "naive",
    "masked-sum-count",
    "masked-centroid",
    "mask-noise-average",
)
NICKNAMES = ("guided", "lloyd", "ring", "serverless")
SESSIONS = ("align",)
MATHEMATICS = ("kmeans", "lattice", "numeric")
ASSEMBLIES = ("sessions", "simulation", "planning", "forecast", "audit")
COMPLEXITY_MOST = 10


class Place(NamedTuple):
    """Where something is that should not be."""

    path: Path
    line: int
    what: str


@dataclass(frozen=True)
class Module:
    """One file of the tree, parsed; ``path`` is relative to the package's folder."""

    path: Path
    name: str
    lines: int
    nodes: tuple[ast.AST, ...]

    @property
    def is_protocol(self) -> bool:
        """Whether the module lies in ``protocols/``, where names of protocols are at home."""
        return self.path.parts[0] == PROTOCOLS

    def imports(self) -> Iterator[str]:
        """Yield every dotted name that the module imports, at any depth."""
        for node in self.nodes:
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                yield from (f"{node.module}.{alias.name}" for alias in node.names)


@dataclass(frozen=True, kw_only=True)
class Shape:
    """What ``measure`` found."""

    protocol_modules: tuple[Place, ...]
    name_comparisons: tuple[Place, ...]
    name_tables: tuple[Place, ...]
    complex_functions: tuple[Place, ...]
    cycles: tuple[tuple[str, ...], ...]
    fan_out: Mapping[str, int]
    lengths: Mapping[Path, int]
    import_lines: int

    @property
    def files(self) -> int:
        """The number of modules."""
        return len(self.lengths)

    @property
    def lines(self) -> int:
        """The number of lines in all modules."""
        return sum(self.lengths.values())

    @property
    def import_share(self) -> float:
        """The part of all lines that belongs to import statements."""
        return self.import_lines / self.lines if self.lines else 0.0


def measure(root: Path = SOURCE) -> Shape:
    """Measure the package in the folder ``root``."""
    modules = _read_modules(root)
    return Shape(
        protocol_modules=tuple(find_protocol_modules(root)),
        name_comparisons=tuple(find_name_comparisons(root)),
        name_tables=tuple(find_name_tables(root)),
        complex_functions=tuple(find_complex_functions(root)),
        cycles=tuple(find_cycles(root)),
        fan_out={unit: len(fan_out(root, unit)) for unit in ASSEMBLIES if (root / unit).is_dir()},
        lengths={module.path: module.lines for module in modules},
        import_lines=sum(_count_import_lines(module) for module in modules),
    )


def find_protocol_modules(root: Path = SOURCE) -> Iterator[Place]:
    """Yield the modules outside ``protocols/`` that are named after a protocol."""
    families = {*NAMES, *NICKNAMES, *_list_packages(root)}
    for module in _read_modules(root):
        # Underscores at both ends make a family's name match whole words only: string.py is not about the ring.
        words = f"_{'__'.join(module.path.with_suffix('').parts)}_"
        named = sorted(family for family in families if f"_{family}_" in words)
        if named and not module.is_protocol and module.path.parts[0] not in MATHEMATICS:
            yield Place(module.path, 1, f"named after {named[0]}")


def find_name_comparisons(root: Path = SOURCE) -> Iterator[Place]:
    """Yield the comparisons with a protocol's name outside ``protocols/``."""
    names = _Names.of(root)
    for module in _outside_protocols(root):
        for node in module.nodes:
            if isinstance(node, ast.Compare):
                sides = [node.left, *node.comparators]
                if names.are_compared(sides):
                    yield Place(module.path, node.lineno, ast.unparse(node))
            elif isinstance(node, ast.Match):
                for case in node.cases:
                    values = [part.value for part in ast.walk(case.pattern) if isinstance(part, ast.MatchValue)]
                    if names.are_compared([node.subject, *values]):
                        yield Place(module.path, case.pattern.lineno, f"case {ast.unparse(case.pattern)}")


def find_name_tables(root: Path = SOURCE) -> Iterator[Place]:
    """Yield the dictionaries and collections of protocols' names outside ``protocols/``."""
    names = _Names.of(root)
    for module in _outside_protocols(root):
        compared = {
            id(side)
            for node in module.nodes
            if isinstance(node, ast.Compare)
            for side in (node.left, *node.comparators)
        }
        for node in module.nodes:
            if isinstance(node, ast.Dict):
                found, least = [key for key in node.keys if key and names.is_name(key)], 1
            elif isinstance(node, ast.Tuple | ast.List | ast.Set) and id(node) not in compared:
                found, least = [element for element in node.elts if names.is_name(element)], 2
            else:
                continue
            if len(found) >= least:
                yield Place(module.path, node.lineno, ", ".join(ast.unparse(name) for name in found))


def find_complex_functions(root: Path = SOURCE, most: int = COMPLEXITY_MOST) -> Iterator[Place]:
    """Yield the functions whose complexity is above ``most``."""
    for module in _read_modules(root):
        for node in module.nodes:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and (number := complexity(node)) > most:
                yield Place(module.path, node.lineno, f"{node.name}: {number}")


def complexity(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Return McCabe's number of a function: its branches and one; a function inside it counts as a branch."""
    return sum(_count_branches(node) for node in ast.walk(function))


def fan_out(root: Path, unit: str) -> set[str]:
    """Return the other units that a package or module imports from."""
    reached = set()
    for module in _read_modules(root):
        if module.path.parts[0].removesuffix(".py") == unit:
            for name in module.imports():
                top, *parts = name.split(".")
                if top == root.name and parts:
                    reached.add(".".join(parts[: 2 if parts[0] == PROTOCOLS else 1]))
    return reached - {unit}


def find_cycles(root: Path = SOURCE) -> Iterator[tuple[str, ...]]:
    """Yield every group of modules of which each imports each other, directly or through others."""
    names = {module.name for module in _read_modules(root)}
    imported = {module.name: set(_resolve(module, names)) for module in _read_modules(root)}
    reached = {name: _reach(name, imported) for name in imported}
    groups = {tuple(sorted(other for other in reached[name] if name in reached[other])) for name in imported}
    yield from sorted(group for group in groups if group)


def _resolve(module: Module, names: set[str]) -> Iterator[str]:
    for name in module.imports():
        owner = name if name in names else name.rpartition(".")[0]
        if owner in names and owner != module.name:
            yield owner


def _reach(start: str, imported: Mapping[str, set[str]]) -> set[str]:
    reached: set[str] = set()
    waiting = [start]
    while waiting:
        for name in imported[waiting.pop()] - reached:
            reached.add(name)
            waiting.append(name)
    return reached


class _Names(NamedTuple):
    literals: frozenset[str]
    constants: frozenset[str]

    @classmethod
    def of(cls, root: Path) -> _Names:
        literals = frozenset({*NAMES, *_list_packages(root)})
        return cls(literals, frozenset(name.upper().replace("-", "_") for name in literals))

    def is_constant(self, node: ast.expr) -> bool:
        return _last_word(node) in self.constants

    def is_name(self, node: ast.expr) -> bool:
        return self.is_constant(node) or (isinstance(node, ast.Constant) and node.value in self.literals)

    def are_compared(self, sides: Sequence[ast.expr]) -> bool:
        parts = [part for side in sides for part in _elements(side)]
        asks_for_protocol = any(_last_word(part) in ("name", "protocol") for part in parts)
        return any(self.is_constant(part) or (asks_for_protocol and self.is_name(part)) for part in parts)


def _elements(node: ast.expr) -> list[ast.expr]:
    return node.elts if isinstance(node, ast.Tuple | ast.List | ast.Set) else [node]


def _last_word(node: ast.expr) -> str | None:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else None


def _count_branches(node: ast.AST) -> int:
    match node:
        case ast.If() | ast.For() | ast.AsyncFor() | ast.While() | ast.ExceptHandler():
            return 1
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            return 1
        case ast.Try(orelse=[_, *_]):
            return 1
        case ast.Match(cases=cases):
            # A last `case _` is the else of the others.
            last = cases[-1]
            return len(cases) - (last.guard is None and _is_wildcard(last.pattern))
        case _:
            return 0


def _is_wildcard(pattern: ast.pattern) -> bool:
    return isinstance(pattern, ast.MatchAs) and pattern.pattern is None


def _count_import_lines(module: Module) -> int:
    imports = [node for node in module.nodes if isinstance(node, ast.Import | ast.ImportFrom)]
    return sum((node.end_lineno or node.lineno) - node.lineno + 1 for node in imports)


def _list_packages(root: Path) -> list[str]:
    packages = [file.parent.name for file in (root / PROTOCOLS).glob("*/__init__.py")]
    return [name for name in packages if name not in SESSIONS]


def _outside_protocols(root: Path) -> Iterator[Module]:
    return (module for module in _read_modules(root) if not module.is_protocol)


@cache
def _read_modules(root: Path) -> tuple[Module, ...]:
    return tuple(_read_module(root, path) for path in sorted(root.rglob("*.py")))


def _read_module(root: Path, path: Path) -> Module:
    text = path.read_text(encoding="utf-8")
    inside = path.relative_to(root)
    parts = (root.name, *inside.with_suffix("").parts)
    name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    nodes = sorted(ast.walk(ast.parse(text, filename=str(path))), key=lambda node: getattr(node, "lineno", 0))
    return Module(inside, name, len(text.splitlines()), tuple(nodes))


def _print_marks(shape: Shape) -> None:
    fan = dict(shape.fan_out)
    sessions = fan.get("sessions", fan.get("simulation", 0))
    rows = [
        ("per-protocol modules outside protocols/", len(shape.protocol_modules), "0", "32"),
        ("comparisons with a protocol's name", len(shape.name_comparisons), "0", "53"),
        ("tables of protocols' names", len(shape.name_tables), "0", "9"),
        ("fan-out of sessions", sessions, "<= 9", "24"),
        ("fan-out of planning", fan.get("planning", 0), "<= 9", "22"),
        ("fan-out of forecast", fan.get("forecast", 0), "", ""),
        ("fan-out of audit", fan.get("audit", 0), "<= 9", "17"),
        ("import cycles", len(shape.cycles), "0", "4"),
        (f"functions over complexity {COMPLEXITY_MOST}", len(shape.complex_functions), "0", "7"),
        ("files", shape.files, "~ 250", "442"),
        ("installed lines", f"{shape.lines:,}", "~ 40,000", "53,373"),
        ("imports, part of all lines", f"{100 * shape.import_share:.1f} %", "<= 6 %", "9.2 %"),
        ("median length of a file", f"{median(shape.lengths.values()):.0f}", "", "106"),
    ]
    print(f"{'':40} {'now':>8}  {'mark':>8}  {'at the start':>12}")
    for what, now, mark, start in rows:
        print(f"{what:40} {now:>8}  {mark:>8}  {start:>12}")
    print("\nlargest files")
    for path, lines in sorted(shape.lengths.items(), key=lambda item: -item[1])[:5]:
        print(f"{lines:6} {path}")


def _print_places(shape: Shape) -> None:
    for heading, places in (
        ("per-protocol modules", shape.protocol_modules),
        ("comparisons with a protocol's name", shape.name_comparisons),
        ("tables of protocols' names", shape.name_tables),
        ("complex functions", shape.complex_functions),
    ):
        print(f"\n{heading}")
        for place in places:
            print(f"  {place.path}:{place.line}: {place.what}")
    print("\nimport cycles")
    for cycle in shape.cycles:
        print(f"  {' '.join(cycle)}")


def main() -> None:
    """Print the marks; with ``--places`` also what misses them."""
    parser = argparse.ArgumentParser(prog="python -m tools.shape", description="The marks of the tree's shape.")
    parser.add_argument("--places", action="store_true", help="also list what misses the marks")
    parser.add_argument("root", nargs="?", type=Path, default=SOURCE, help="the package's folder")
    arguments = parser.parse_args()
    shape = measure(arguments.root)
    _print_marks(shape)
    if arguments.places:
        _print_places(shape)


if __name__ == "__main__":
    main()
