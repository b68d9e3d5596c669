"""How a broken rule of the job is told: a key, what must hold, what was got, what to do.

Rules know keys but not files. A job made in Python reports ``protocol.iterations must ...``; the reader of job files
puts ``job.toml:7:`` in front, because the error carries the key as data.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterable, Sequence
from typing import NoReturn

import msgspec

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
    """Return a value of the job as its author wrote it, shortened."""
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
    """Refuse a word that is not among the known ones, and suggest the nearest."""
    words = tuple(known)
    if not isinstance(value, str) or value not in words:
        what_to_do = suggest(value, words) if isinstance(value, str) else ""
        refuse(path, f"be one of {', '.join(words)}", show_value(value), what_to_do)


def check_text(path: KeyPath, value: object, *, longest: int = 64) -> None:
    """Refuse what is not a printable text of at most ``longest`` characters without blanks at its ends."""
    if not isinstance(value, str) or not 1 <= len(value) <= longest or not value.isprintable():
        refuse(path, f"be a printable text of 1 to {longest} characters", show_value(value))
    if value != value.strip():
        refuse(path, "not begin or end with a blank", show_value(value))


def check_fields(path: KeyPath, section: object) -> None:
    """Refuse a section with a field whose value does not fit its annotation.

    The annotation is the one place where a type and a range are stated: ``Annotated[int, Meta(ge=1, le=30)]``.

    Parameters
    ----------
    path
        Where the section stands in the job.
    section
        A msgspec struct or a dataclass.
    """
    kind = msgspec.inspect.type_info(type(section))
    assert isinstance(kind, msgspec.inspect.StructType | msgspec.inspect.DataclassType)
    for field in kind.fields:
        _check_value((*path, field.name), getattr(section, field.name), field.type)


def _check_value(path: KeyPath, value: object, kind: msgspec.inspect.Type) -> None:
    match kind:
        case msgspec.inspect.UnionType(types=types):
            wanted = [one for one in types if not isinstance(one, msgspec.inspect.NoneType)]
            if value is not None or len(wanted) == len(types):
                (only,) = wanted  # a value is of one kind, or left out
                _check_value(path, value, only)
        case msgspec.inspect.BoolType():
            if not isinstance(value, bool):
                refuse(path, "be true or false", show_value(value))
        case msgspec.inspect.IntType() | msgspec.inspect.FloatType():
            _check_range(path, value, kind)
        case msgspec.inspect.LiteralType(values=values):
            if isinstance(value, bool) or value not in values:
                what_to_do = suggest(value, map(str, values)) if isinstance(value, str) else ""
                refuse(path, f"be one of {', '.join(map(str, values))}", show_value(value), what_to_do)
        case msgspec.inspect.StrType(max_length=longest):
            check_text(path, value, longest=longest or 64)
        case msgspec.inspect.VarTupleType(item_type=item):
            for i, one in enumerate(_check_list(path, value)):
                _check_value((*path, i), one, item)
        case msgspec.inspect.TupleType(item_types=items):
            values = _check_list(path, value)
            if len(values) != len(items):
                refuse(path, f"be a list of {len(items)}", show_value(value))
            for i, (one, item) in enumerate(zip(values, items, strict=True)):
                _check_value((*path, i), one, item)
        case msgspec.inspect.StructType() | msgspec.inspect.DataclassType():
            check_fields(path, value)


def _check_list(path: KeyPath, value: object) -> Sequence[object]:
    if not isinstance(value, list | tuple):
        refuse(path, "be a list", show_value(value), "Write it in brackets.")
    return value


def _check_range(path: KeyPath, value: object, kind: msgspec.inspect.IntType | msgspec.inspect.FloatType) -> None:
    whole = isinstance(kind, msgspec.inspect.IntType)
    if whole:
        fits = isinstance(value, int) and not isinstance(value, bool)
        number = value if isinstance(value, int) else 0
    else:
        number, fits = check_number(path, value), True
    fits = fits and (kind.ge is None or number >= kind.ge) and (kind.gt is None or number > kind.gt)
    fits = fits and (kind.le is None or number <= kind.le) and (kind.lt is None or number < kind.lt)
    if not fits:
        refuse(path, f"be {_describe_range(kind, whole=whole)}", show_value(value))


def _describe_range(kind: msgspec.inspect.IntType | msgspec.inspect.FloatType, *, whole: bool) -> str:
    what = "an integer " if whole else ""
    if kind.ge is not None and kind.le is not None:
        return f"{what}from {kind.ge:g} to {kind.le:g}" if not whole else f"{what}from {kind.ge} to {kind.le}"
    limits = {"at least": kind.ge, "greater than": kind.gt, "at most": kind.le, "less than": kind.lt}
    said = " and ".join(f"{words} {limit:g}" for words, limit in limits.items() if limit is not None)
    return f"{what}{'of ' if whole and kind.ge is not None else ''}{said}".strip() or ("an integer" if whole else "a number")
