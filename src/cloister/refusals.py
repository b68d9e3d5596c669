"""How a broken rule of the job is reported: a key, what must hold, what was got, what to do.

Rules know keys but not files. A job made in Python reports ``protocol.iterations must ...``; the reader of job files
puts ``job.toml:7:`` in front, because the error carries the key as data.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterable
from typing import NoReturn

from cloister.errors import ConfigError

KeyPath = tuple[str | int, ...]

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_SHOWN_CHARACTERS = 60


class KeyedConfigError(ConfigError):
    """A ``ConfigError`` that knows at which key of the job it happened."""

    def __init__(self, path: KeyPath, message: str) -> None:
        super().__init__(message)
        self.path = path


def format_path(path: KeyPath) -> str:
    """Write a key path as TOML writes dotted keys, with list positions in brackets: ``parties[0].name``."""
    out = ""
    for part in path:
        if isinstance(part, int):
            out += f"[{part}]"
        else:
            out += ("." if out else "") + quote_key(part)
    return out


def quote_key(key: str) -> str:
    """Return a key as it must stand in a TOML file: bare if it can be, else as a basic string."""
    return key if _BARE_KEY.fullmatch(key) else quote_string(key)


def quote_string(text: str) -> str:
    """Return a TOML basic string."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(c if c.isprintable() else f"\\U{ord(c):08x}" for c in escaped) + '"'


def show_value(value: object) -> str:
    """Return a value of the job as its author wrote it, abbreviated."""
    if isinstance(value, bool):
        text = "true" if value else "false"
    elif isinstance(value, str):
        text = quote_string(value)
    elif isinstance(value, dict):
        text = "a table"
    elif isinstance(value, (list, tuple)):
        text = f"a list of {len(value)}"
    else:
        text = str(value)
    return text if len(text) <= _SHOWN_CHARACTERS else text[: _SHOWN_CHARACTERS - 3] + "..."


def refuse(path: KeyPath, must: str, got: str, what_to_do: str = "") -> NoReturn:
    """Raise the error for one broken rule."""
    message = f"{format_path(path)} must {must}; got {got}."
    raise KeyedConfigError(path, f"{message} {what_to_do}".rstrip())


def suggest(word: str, known: Iterable[str]) -> str:
    """Return "Did you mean ...?" for a misspelled word, or nothing."""
    close = difflib.get_close_matches(word.lower(), list(known), n=1, cutoff=0.6)
    return f"Did you mean {quote_string(close[0])}?" if close else ""


def check_integer(path: KeyPath, value: object, low: int, high: int) -> None:
    """Refuse what is not an integer (a bool is not one) in [low, high]."""
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        refuse(path, f"be an integer from {low} to {high}", show_value(value))


def check_number(path: KeyPath, value: object, *, must: str = "be a finite number") -> float:
    """Refuse what is not a finite number (a bool is not one), else return it."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        refuse(path, must, show_value(value))
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        refuse(path, must, show_value(value))
    return number


def check_choice(path: KeyPath, value: object, known: Iterable[str]) -> None:
    """Refuse a word that is not among the known ones, and suggest the closest."""
    words = tuple(known)
    if not isinstance(value, str) or value not in words:
        what_to_do = suggest(value, words) if isinstance(value, str) else ""
        refuse(path, f"be one of {', '.join(words)}", show_value(value), what_to_do)


def check_text(path: KeyPath, value: object, *, longest: int = 64) -> None:
    """Refuse what is not printable text of at most ``longest`` characters without blanks at either end."""
    if not isinstance(value, str) or not 1 <= len(value) <= longest or not value.isprintable():
        refuse(path, f"be printable text of 1 to {longest} characters", show_value(value))
    if value != value.strip():
        refuse(path, "not begin or end with a blank", show_value(value))
