"""Rules about the fields of a section: an annotation is the one place where a type and a range are stated.

How a broken rule is reported is in :mod:`cloister.refusals`, for the job and for whatever is below it.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from functools import cache
from typing import Any

import msgspec

from cloister.refusals import (
    KeyedConfigError,
    KeyPath,
    check_choice,
    check_integer,
    check_number,
    check_text,
    format_path,
    quote_key,
    quote_string,
    refuse,
    show_value,
    suggest,
)

__all__ = [
    "KeyPath",
    "KeyedConfigError",
    "check_choice",
    "check_fields",
    "check_integer",
    "check_number",
    "check_text",
    "format_path",
    "quote_key",
    "quote_string",
    "refuse",
    "show_value",
    "suggest",
]


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
