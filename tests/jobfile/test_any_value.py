"""Whatever stands in a job file: it is read or refused with a `ConfigError`, and a long one takes linear time."""

from __future__ import annotations

import copy
import itertools
import time
import tomllib
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

from cloister.errors import ConfigError
from cloister.job.options import known_options
from cloister.jobfile import load_own_side, parse_setup
from cloister.jobfile.sections import SECTION_KEYS, list_own_sections

# One or more of every type that TOML has, at the edges of what Python makes of it.
VALUES = [
    "true",
    "0",
    "-1",
    "3",
    "9223372036854775808",
    "1" + "0" * 400,
    "1.5",
    "nan",
    '""',
    '"b"',
    '"aggregator"',
    '"published"',
    '"\\u0000"',
    "[]",
    "[1]",
    '["a"]',
    '["none", "none", 1]',
    "[[1, 2], [3, nan]]",
    "{}",
    "{ a = 1 }",
    '[{ name = "a" }, { name = 1 }]',
    "1979-05-27",
]
COLUMNS = "[columns]\nx = { low = 0, high = 1 }\ny = { low = -1.5, high = 2 }\n"
PARTIES = '[[parties]]\nname = "a"\ndata = "a.csv"\n[[parties]]\nname = "b"\ndata = "b.csv"\n'
COMMON = 'name = "x"\n[clusters]\nk = 2\n[run]\nseed = 1\nsecure = false\n[network]\nmodel = "LAN500"\n'
BUDGET = '[budget]\nepsilon = 1.0\ndelta = 1e-6\nunit = "record"\n[ledger]\npath = "books"\n'
HALVES = PARTIES.replace('"a"\n', '"a"\ncolumns = ["x"]\n').replace('"b"\n', '"b"\ncolumns = ["y"]\n')


def _private(protocol: str, data: str = "") -> str:
    return COMMON + BUDGET + COLUMNS + PARTIES + f"[data]\nrecords = 1000\n{data}[protocol]\n{protocol}"


BASES = {
    "synopsis": _private('name = "synopsis"\n').replace("k = 2", "choose_k = true\nk_max = 3")
    + "[synopsis]\nrestarts = 4\n",
    "feddp": _private('name = "feddp"\n', 'server = "s.csv"\n') + "[feddp]\n",
    "fastlloyd": _private('name = "fastlloyd"\ninitialisation = "given"\nstart = [[0, 0], [1, 1]]\n'),
    "published": _private(
        'name = "fastlloyd"\nvariant = "published"\npostprocess = ["none", "none", "none"]\n'
        "alpha_min = 1.1\nalpha_max = 1.2\n"
    ).replace('[ledger]\npath = "books"\n', ""),
    "mask-noise-average": COMMON + BUDGET + COLUMNS + PARTIES + '[protocol]\nname = "mask-noise-average"\n',
    "masked-sum-count": COMMON + COLUMNS + PARTIES + '[protocol]\nname = "masked-sum-count"\niterations = 3\n',
    "secfc": COMMON + COLUMNS + PARTIES + '[[parties]]\nname = "c"\ndata = "c.csv"\n[protocol]\nname = "secfc"\n',
    "vertical": COMMON + BUDGET + COLUMNS + HALVES + '[data]\nid = "id"\nid_form = "text"\n'
    '[protocol]\nname = "vertical"\ncomputing = "a"\nlabels = ["a"]\n',
}


def _list_places(document: dict[str, Any]) -> Iterator[tuple[str | int, ...]]:
    """Every key of the document, and every key that its sections could have."""
    protocol = known_options()[document["protocol"]["name"]]
    document["protocol"] |= {key: None for key in protocol.__struct_fields__ if key not in document["protocol"]}
    for section, keys in SECTION_KEYS.items():
        document.setdefault(section, {})
        document[section] |= {key: None for key in keys if key not in document[section]}
    kind = list_own_sections().get(document["protocol"]["name"])
    if kind is not None:
        document.setdefault(protocol.facts.section or "", {})
    for party in document["parties"]:
        party |= {key: None for key in ("columns", "separator", "decimal", "dataset", "alignment") if key not in party}
    for column in document["columns"].values():
        column |= {key: None for key in ("weight", "levels", "boolean", "from", "to", "bounds") if key not in column}
    yield from _walk(document, ())


def _walk(node: Any, path: tuple[str | int, ...]) -> Iterator[tuple[str | int, ...]]:
    if path:
        yield path
    if isinstance(node, dict | list):
        for key, inner in node.items() if isinstance(node, dict) else enumerate(node):
            yield from _walk(inner, (*path, key))


def _put(document: dict[str, Any], path: tuple[str | int, ...], value: object) -> None:
    """Set one key, and sections around it that are missing; nothing, if what was there has been replaced before."""
    node: Any = document
    for i, key in enumerate(path):
        is_list = isinstance(node, list) and isinstance(key, int) and key < len(node)
        if not is_list and not (isinstance(node, dict) and isinstance(key, str)):
            return
        if i == len(path) - 1:
            node[key] = value
        elif not is_list:
            node.setdefault(key, {})
        node = node[key]


def _show(value: Any) -> str:
    """Write one parsed value as TOML, on one line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_quote(key)} = {_show(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_show, value)) + "]"
    if isinstance(value, str):
        return _quote(value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def _quote(text: str) -> str:
    return '"' + "".join(c if c.isalnum() else f"\\U{ord(c):08x}" for c in text) + '"'


def _parse(document: dict[str, Any]) -> None:
    text = "".join(f"{_quote(key)} = {_show(value)}\n" for key, value in document.items())
    try:
        parse_setup(text)
    except ConfigError:
        pass
    except Exception as error:
        raise AssertionError(f"{type(error).__name__}: {error}\n{text[:2000]}") from error


@pytest.mark.parametrize("name", BASES)
def test_a_base_is_a_good_job(name: str) -> None:
    parse_setup(BASES[name])
    _parse(tomllib.loads(BASES[name]))


@pytest.mark.parametrize("name", BASES)
def test_every_value_of_every_key_is_read_or_refused(name: str) -> None:
    values = [tomllib.loads(f"v = {text}")["v"] for text in VALUES]
    places = list(_list_places(tomllib.loads(BASES[name])))
    assert len(places) > 30
    for path, value in itertools.product(places, values):
        document = tomllib.loads(BASES[name])
        _put(document, path, copy.deepcopy(value))
        _parse(document)


@pytest.mark.parametrize("name", BASES)
def test_two_values_at_once_are_read_or_refused(name: str) -> None:
    rng = np.random.default_rng(17)
    values = [tomllib.loads(f"v = {text}")["v"] for text in VALUES]
    places = list(_list_places(tomllib.loads(BASES[name])))
    for _ in range(600):
        document = tomllib.loads(BASES[name])
        for place in rng.integers(len(places), size=2):
            _put(document, places[place], copy.deepcopy(values[rng.integers(len(values))]))
        _parse(document)


@pytest.mark.parametrize("key", ["data", "dataset", "ledger", "alignment", "other"])
def test_every_value_of_an_own_side_is_read_or_refused(key: str, tmp_path: Any) -> None:
    for text in VALUES:
        (tmp_path / "own.toml").write_text(f"{key} = {text}\n")
        with suppress(ConfigError):
            load_own_side(tmp_path / "own.toml")


def _many_columns(count: int) -> str:
    columns = "".join(f"c{i} = {{ low = 0, high = 1 }}\n" for i in range(count))
    return BASES["synopsis"].replace("[columns]\n", "[columns]\n" + columns)


def _many_parties(count: int) -> str:
    return BASES["synopsis"] + "".join(f'[[parties]]\nname = "p{i}"\n' for i in range(count))


def _many_columns_of_a_party(count: int) -> str:
    return BASES["vertical"].replace('["x"]', "[" + ", ".join(f'"c{i}"' for i in range(count)) + "]")


def _many_split_columns(count: int) -> str:
    return _many_columns_of_a_party(count).replace(
        "[columns]\n", "[columns]\n" + "".join(f"c{i} = {{ low = 0, high = 1 }}\n" for i in range(count))
    )


def _many_unknown_keys(count: int) -> str:
    return BASES["synopsis"] + "[run.more]\n" + "".join(f"key{i} = [1, [2], {{ a = 1 }}]\n" for i in range(count))


def _many_tables(count: int) -> str:
    return BASES["synopsis"] + "".join(f"[more.table{i}]\n" for i in range(count))


def _many_labels(count: int) -> str:
    return BASES["vertical"].replace('labels = ["a"]', "labels = [" + ", ".join(['"b", "a"'] * count) + "]")


@pytest.mark.parametrize(
    ("statement", "line"),
    [
        ("\n[run]\n" + "a." * 200_000 + "b = 1", 3),
        ("[run." + "a . " * 200_000 + "b]", 1),
        ("[run]\n" + '"\\"".' * 20 + "b = 1", 2),
        ("run = { " + "'.'." * 20 + "b = 1 }", 1),
    ],
)
def test_a_key_of_very_many_parts_is_refused_before_it_costs_anything(statement: str, line: int) -> None:
    with pytest.raises(ConfigError, match=rf"^job:{line}: a job must not nest tables this deeply"):
        parse_setup(statement)


def test_long_values_are_not_long_keys() -> None:
    text = '# a.b.c\n[data]\nid = "' + "../" * 30 + '"\nother = [' + "1.5, " * 30 + "]\n"
    with pytest.raises(ConfigError, match=r"^job:4: data\.other must be a known key"):
        parse_setup(text)


@pytest.mark.parametrize(
    "write",
    [
        _many_columns,
        _many_parties,
        _many_columns_of_a_party,
        _many_split_columns,
        _many_unknown_keys,
        _many_tables,
        _many_labels,
    ],
)
def test_time_grows_with_the_length_of_a_job_and_not_faster(write: Callable[[int], str]) -> None:
    """Linear is a ratio of 4 and quadratic one of 16: the least of several ratios, since other work only adds time."""
    ratios = (_measure(write(16_000)) / _measure(write(4_000)) for _ in range(6))
    assert any(ratio < 8 for ratio in ratios)


def _measure(text: str) -> float:
    start = time.process_time()
    with suppress(ConfigError):
        parse_setup(text)
    return time.process_time() - start
