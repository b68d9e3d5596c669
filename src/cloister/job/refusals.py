"""How a broken rule of the job is reported: a key, what must hold, what was got, what to do.

Rules know keys but not files. A job made in Python reports ``protocol.iterations must ...``; the reader of job files
puts ``job.toml:7:`` in front, because the error carries the key as data.
"""

from __future__ import annotations

import difflib
import math
import operator
import re
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, NoReturn

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
    kind: Any = type(section)
    for field in _read_annotations(kind):
        _check_value((*path, field.name), getattr(section, field.name), field.type)


@cache
def _read_annotations(section: type[Any]) -> tuple[msgspec.inspect.Field, ...]:
    kind = msgspec.inspect.type_info(section)
    assert isinstance(kind, msgspec.inspect.StructType | msgspec.inspect.DataclassType)
    return kind.fields


def _check_value(path: KeyPath, value: object, kind: msgspec.inspect.Type) -> None:
    match kind:
        case msgspec.inspect.UnionType(types=types):
            _check_optional(path, value, types)
        case msgspec.inspect.BoolType():
            if not isinstance(value, bool):
                refuse(path, "be true or false", show_value(value))
        case msgspec.inspect.IntType() | msgspec.inspect.FloatType():
            _check_range(path, value, kind)
        case msgspec.inspect.LiteralType(values=values):
            _check_literal(path, value, values)
        case msgspec.inspect.StrType(max_length=longest):
            check_text(path, value, longest=longest or 64)
        case msgspec.inspect.VarTupleType(item_type=item):
            listed = _check_list(path, value)
            _check_items(path, listed, [item] * len(listed))
        case msgspec.inspect.TupleType(item_types=items):
            _check_items(path, _check_list(path, value), items)
        case msgspec.inspect.StructType() | msgspec.inspect.DataclassType():
            check_fields(path, value)


def _check_optional(path: KeyPath, value: object, kinds: Sequence[msgspec.inspect.Type]) -> None:
    wanted = [kind for kind in kinds if not isinstance(kind, msgspec.inspect.NoneType)]
    if value is not None or len(wanted) == len(kinds):
        (only,) = wanted  # a value is of one kind, or left out
        _check_value(path, value, only)


def _check_literal(path: KeyPath, value: object, known: Sequence[object]) -> None:
    if value in known and not isinstance(value, bool):
        return
    words = [one for one in known if isinstance(one, str)]
    listed = map(str, words) if len(words) == len(known) else map(show_value, known)  # 64 is not "64"
    what_to_do = suggest(value, words) if isinstance(value, str) else ""
    refuse(path, f"be one of {', '.join(listed)}", show_value(value), what_to_do)


def _check_list(path: KeyPath, value: object) -> Sequence[object]:
    if not isinstance(value, list | tuple):
        refuse(path, "be a list", show_value(value), "Write it in brackets.")
    return value


def _check_items(path: KeyPath, values: Sequence[object], kinds: Sequence[msgspec.inspect.Type]) -> None:
    if len(values) != len(kinds):
        refuse(path, f"be a list of {len(kinds)}", show_value(values))
    for i, (value, kind) in enumerate(zip(values, kinds, strict=True)):
        _check_value((*path, i), value, kind)


def _check_range(path: KeyPath, value: object, kind: msgspec.inspect.IntType | msgspec.inspect.FloatType) -> None:
    if isinstance(kind, msgspec.inspect.FloatType):
        number = check_number(path, value)
    elif isinstance(value, int) and not isinstance(value, bool):
        number = value  # not as a float, which rounds large ones
    else:
        refuse(path, f"be {_describe_range(kind)}", show_value(value))
    limits = ((operator.ge, kind.ge), (operator.gt, kind.gt), (operator.le, kind.le), (operator.lt, kind.lt))
    if not all(limit is None or holds(number, limit) for holds, limit in limits):
        refuse(path, f"be {_describe_range(kind)}", show_value(value))


def _describe_range(kind: msgspec.inspect.IntType | msgspec.inspect.FloatType) -> str:
    what = "an integer" if isinstance(kind, msgspec.inspect.IntType) else ""
    if kind.ge is not None and kind.le is not None:
        said = f"from {_show_limit(kind.ge)} to {_show_limit(kind.le)}"
    else:
        limits = {"at least": kind.ge, "greater than": kind.gt, "at most": kind.le, "less than": kind.lt}
        said = " and ".join(f"{words} {_show_limit(limit)}" for words, limit in limits.items() if limit is not None)
        if what and kind.ge is not None:
            said = f"of {said}"
    return f"{what} {said}".strip() or "a number"


def _show_limit(limit: float) -> str:
    return str(limit) if isinstance(limit, int) else f"{limit:g}"
