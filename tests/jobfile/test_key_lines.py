"""The line of every key, on documents whose writer knows the lines."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cloister.job.refusals import KeyPath, format_path, quote_key, quote_string
from cloister.jobfile.key_lines import KeyLines

NASTY = ["a = 1", "[x]", "# no", "}", "]", ",", '"', "'", "\\", "é", "x.y", " ", "[[p]]", "=", "\t", "z"]
texts = st.lists(st.sampled_from(NASTY), max_size=4).map("".join)
names = st.one_of(st.sampled_from(["low", "high-1", "_x", "3"]), texts)
comments = st.sampled_from(["", "  # k = [1, {", '# "', "\t#'''"])


class Writer:
    """Writes TOML and notes at which line each path begins."""

    def __init__(self, draw: Any) -> None:
        self.draw, self.text, self.lines = draw, "", dict[KeyPath, int]()

    @property
    def line(self) -> int:
        return self.text.count("\n") + 1

    def note(self, path: KeyPath) -> None:
        self.lines.setdefault(path, self.line)

    def key(self, name: str) -> str:
        if "'" not in name and "\t" not in name and self.draw(st.booleans()):
            return f"'{name}'"
        return quote_key(name) if self.draw(st.booleans()) else quote_string(name)

    def end_line(self) -> None:
        self.text += self.draw(comments) + self.draw(st.sampled_from(["\n", "\n\n", "\n# [t] a = 1\n"]))

    def blank(self, *, lines: bool) -> None:
        self.text += self.draw(st.sampled_from(["", " ", "\t"]))
        if lines and self.draw(st.booleans()):
            self.end_line()

    def value(self, path: KeyPath, depth: int, *, lines: bool) -> None:
        kind = self.draw(
            st.sampled_from(["atom", "string", "block", "array", "table"] if depth else ["atom", "string"])
        )
        if kind == "atom":
            atoms = ["1", "-2.5e3", "true", "1979-05-27T07:32:00Z", "1979-05-27 07:32:00", "inf", "0x1F", "''", '""']
            self.text += self.draw(st.sampled_from(atoms))
        elif kind == "string":
            self.text += quote_string(self.draw(texts))
        elif kind == "block":
            self.block(lines=lines)
        elif kind == "array":
            self.array(path, depth - 1)
        else:
            self.table(path, depth - 1)

    def block(self, *, lines: bool) -> None:
        """Write a string with three quotes, which may hold quotes, and up to two right before its end."""
        body = self.draw(texts).replace("\\", "/").replace('"""', "").replace("'''", "").strip("\"'")
        middle = "\n" if lines and self.draw(st.booleans()) else ""
        quotes = self.draw(st.sampled_from(['"', "'"]))
        own = quotes * self.draw(st.integers(0, 2))
        self.text += quotes * 3 + f"m{body}{middle}{quotes}{body}m{own}" + quotes * 3

    def array(self, path: KeyPath, depth: int) -> None:
        self.text += "["
        self.blank(lines=True)
        count = self.draw(st.integers(0, 3))
        for i in range(count):
            self.note((*path, i))
            self.value((*path, i), depth, lines=True)
            self.blank(lines=True)
            if i + 1 < count or self.draw(st.booleans()):
                self.text += ","
            self.blank(lines=True)
        self.text += "]"

    def table(self, path: KeyPath, depth: int) -> None:
        self.text += "{"
        self.blank(lines=False)
        keys = self.draw(st.lists(names, max_size=3, unique=True))
        for i, name in enumerate(keys):
            self.pair((*path, name), depth, lines=False)
            self.blank(lines=False)
            if i + 1 < len(keys):
                self.text += ","
            self.blank(lines=False)
        self.text += "}"

    def pair(self, path: KeyPath, depth: int, *, lines: bool, shown: int = 1) -> None:
        """Write the last ``shown`` parts of the path as a (dotted) key, and a value."""
        for length in range(len(path) - shown + 1, len(path) + 1):
            self.note(path[:length])
        self.text += self.draw(st.sampled_from([".", " . "])).join(self.key(str(part)) for part in path[-shown:])
        self.text += self.draw(st.sampled_from(["=", " = ", "\t= "]))
        self.value(path, depth, lines=lines)


@st.composite
def documents(draw: Any) -> tuple[str, dict[KeyPath, int]]:
    writer = Writer(draw)
    for name in draw(st.lists(names, max_size=3, unique=True)):
        if draw(st.booleans()):
            writer.pair((name + "top",), 3, lines=True)
        else:
            writer.pair((name + "top", "inner"), 3, lines=True, shown=2)
        writer.end_line()
    for name in draw(st.lists(names, max_size=3, unique=True)):
        path: KeyPath = (name + "section",)
        for index in range(draw(st.integers(1, 3))) if draw(st.booleans()) else [None]:
            writer.note(path)
            inner = path if index is None else (*path, index)
            writer.note(inner)
            brackets = ("[", "]") if index is None else ("[[", "]]")
            writer.text += brackets[0] + writer.key(str(path[0])) + brackets[1]
            writer.end_line()
            for key in draw(st.lists(names, max_size=3, unique=True)):
                writer.pair((*inner, key), 2, lines=True)
                writer.end_line()
            if draw(st.booleans()):  # a sub-table; in an array of tables it belongs to the last element
                writer.note((*inner, "sub table"))
                writer.text += f'[{writer.key(str(path[0]))} . "sub table"]'
                writer.end_line()
                writer.pair((*inner, "sub table", "leaf"), 1, lines=True)
                writer.end_line()
    return writer.text, writer.lines


def list_paths(value: Any, path: KeyPath = ()) -> list[KeyPath]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    inner = [found for key, item in items for found in list_paths(item, (*path, key))]
    return [path, *inner] if path else inner


@settings(max_examples=300, deadline=None)
@given(documents())
def test_every_key_is_found_on_its_line(document: tuple[str, dict[KeyPath, int]]) -> None:
    text, expected = document
    found = KeyLines(text)
    paths = list_paths(tomllib.loads(text))
    assert set(paths) == set(expected)
    assert {path: found.find(path) for path in paths} == expected


def test_a_missing_key_falls_back_to_its_section_and_then_to_nothing() -> None:
    lines = KeyLines('name = "x"\n\n[protocol]\niterations = 3\n[columns]\nage = { low = 1 }\n')
    assert lines.find(("protocol", "name")) == 3
    assert lines.find(("columns", "age", "high")) == 6
    assert lines.find(("columns", "bmi", "high")) == 5
    assert lines.find(("budget", "epsilon")) is None


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (("parties", 0, "name"), "parties[0].name"),
        (("columns", "body mass", "low"), 'columns."body mass".low'),
        (("columns", 'a"b\\'), r'columns."a\"b\\"'),
    ],
)
def test_paths_are_written_as_toml_writes_them(path: KeyPath, expected: str) -> None:
    assert format_path(path) == expected
