"""On which line of a TOML text each key is, which the standard library's parser does not report.

A scanner over text that ``tomllib`` has already accepted: it follows headers, dotted and quoted keys, strings
of all four kinds, comments, arrays and inline tables, and ignores the values themselves.
"""

from __future__ import annotations

import re
import tomllib

from cloister.job.refusals import KeyPath

_BLANK = re.compile(r"[ \t]*")
_BLANK_AND_COMMENTS = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
# Longest quotes first. Up to two quotes of a multi-line string may stand right before its closing ones.
_STRING = re.compile(
    r'"""(?:[^\\]|\\.)*?"""(?:"{0,2})|'
    r"'''.*?'''(?:'{0,2})|"
    r'"(?:[^"\\]|\\.)*"|'
    r"'[^']*'",
    re.DOTALL,
)
_ATOM = re.compile(r"[^,\]}#\r\n]+")


class KeyLines:
    """The line of every key, header, array element and inline key of a valid TOML text.

    Parameters
    ----------
    text
        What ``tomllib.loads`` accepts.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._counted_to, self._line = 0, 1
        self._lines: dict[KeyPath, int] = {}
        self._table_counts: dict[KeyPath, int] = {}
        self._scan()

    def find(self, path: KeyPath) -> int | None:
        """Return the line of a key, or of the innermost table around it that appears in the text; None if none does."""
        for length in range(len(path), 0, -1):
            line = self._lines.get(path[:length])
            if line is not None:
                return line
        return None

    def _scan(self) -> None:
        """Walk the statements: headers change the table, the rest are ``key = value``."""
        table: KeyPath = ()
        self._skip(_BLANK_AND_COMMENTS)
        while self._at < len(self._text):
            if self._text[self._at] == "[":
                table = self._read_header()
            else:
                self._read_pair(table)
            self._skip(_BLANK_AND_COMMENTS)

    def _read_header(self) -> KeyPath:
        """Read ``[table]`` or ``[[table]]``; the latter starts the next element of an array of tables."""
        line = self._current_line()
        is_array = self._text.startswith("[[", self._at)
        self._at += 2 if is_array else 1
        names = self._read_key()
        self._at += 2 if is_array else 1
        path: KeyPath = ()
        for name in names[:-1]:
            path = self._enter(path, name, line)
        path = (*path, names[-1])
        self._lines.setdefault(path, line)
        if is_array:
            index = self._table_counts.get(path, 0)
            self._table_counts[path] = index + 1
            path = (*path, index)
            self._lines[path] = line
        return path

    def _enter(self, path: KeyPath, name: str, line: int) -> KeyPath:
        """Step into a table named in a header; of an array of tables, into the last element."""
        path = (*path, name)
        self._lines.setdefault(path, line)
        count = self._table_counts.get(path)
        return path if count is None else (*path, count - 1)

    def _read_pair(self, table: KeyPath) -> None:
        """Read ``key = value`` in a table or an inline table."""
        line = self._current_line()
        path = table
        for name in self._read_key():
            path = (*path, name)
            self._lines.setdefault(path, line)
        self._at += 1  # the sign =
        self._skip(_BLANK)
        self._read_value(path)

    def _read_key(self) -> list[str]:
        """Read a dotted key, and the blanks after it."""
        names: list[str] = []
        while True:
            self._skip(_BLANK)
            if self._text[self._at] in "\"'":
                names.append(tomllib.loads("key = " + self._take(_STRING))["key"])
            else:
                names.append(self._take(_BARE_KEY))
            self._skip(_BLANK)
            if self._text[self._at] != ".":
                return names
            self._at += 1

    def _read_value(self, path: KeyPath) -> None:
        """Skip a value; note the lines of array elements and of the keys of inline tables."""
        opening = self._text[self._at]
        if opening in "\"'":
            self._skip(_STRING)
        elif opening == "[":
            self._at += 1
            self._skip(_BLANK_AND_COMMENTS)
            index = 0
            while self._text[self._at] != "]":
                self._lines[(*path, index)] = self._current_line()
                self._read_value((*path, index))
                self._pass_comma()
                index += 1
            self._at += 1
        elif opening == "{":
            self._at += 1
            self._skip(_BLANK_AND_COMMENTS)
            while self._text[self._at] != "}":
                self._read_pair(path)
                self._pass_comma()
            self._at += 1
        else:
            self._skip(_ATOM)

    def _pass_comma(self) -> None:
        """Skip what separates two elements."""
        self._skip(_BLANK_AND_COMMENTS)
        if self._text[self._at] == ",":
            self._at += 1
            self._skip(_BLANK_AND_COMMENTS)

    def _skip(self, pattern: re.Pattern[str]) -> None:
        """Move past what the pattern matches here."""
        self._take(pattern)

    def _take(self, pattern: re.Pattern[str]) -> str:
        """Move past what the pattern matches here, and return it."""
        match = pattern.match(self._text, self._at)
        if match is None:
            raise AssertionError(f"the text must be valid TOML; line {self._current_line()} is not")
        self._at = match.end()
        return match.group()

    def _current_line(self) -> int:
        """Return the line of the current position, counted from the last one asked for."""
        self._line += self._text.count("\n", self._counted_to, self._at)
        self._counted_to = self._at
        return self._line
