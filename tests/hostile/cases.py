"""Small sessions of every protocol, for hostile parties to play in."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

from cloister.privacy.placement import Local, Shared
from cloister.privacy.units import Budget
from cloister.protocols.align.terms import Mode
from cloister.protocols.serverless.messages import CODEC as RING
from cloister.protocols.vertical.labels.session import LabelRoles
from tests.protocols.align.sessions import AlignSession, name_ids
from tests.protocols.fastlloyd.sessions import FastLloydSession
from tests.protocols.feddp.sessions import Session as FeddpSession
from tests.protocols.feddp.sessions import make_mixture
from tests.protocols.multiparty_lloyd.sessions import make_session
from tests.protocols.secfc.sessions import SecfcSession, spread
from tests.protocols.serverless.sessions import SumSession, random_vectors
from tests.protocols.synopsis.sessions import Session as SynopsisSession
from tests.protocols.vertical.labels.sessions import Case
from tests.protocols.vertical.sessions import FEW, TINY
from tests.protocols.vertical.sessions import Session as VerticalSession
from tests.protocols.vertical.tables import mixture
from tests.sessions import Session, blobs, split

_TABLE = mixture(40, 2, 2, seed=5)
_WIDE = mixture(40, 3, 2, seed=5)
_POINTS = split(blobs(60, 2, 2, seed=3), 3)


def _vertical(columns: Any = ((0,), (1,)), table: Any = _TABLE, **options: Any) -> VerticalSession:
    return VerticalSession(table, columns, **{**TINY, **options})


def _labels(**options: Any) -> Session:
    case = Case(records=30, clusters=2, **options)
    return Session(LabelRoles(), case.agreement(), [case.part(number) for number in case.numbers], seed=case.seed)


def _union() -> SecfcSession:
    places = list(np.array_split(np.random.default_rng(0).permutation(24), 3))
    points = spread(24, 2, seed=6)
    return SecfcSession([points[own] for own in places], clusters=2, positions=places)


def _secfc(**options: Any) -> SecfcSession:
    return SecfcSession(split(spread(24, 2, seed=4), 3), clusters=2, options={"rounds_max": 4, **options})


class _Ring:
    """A session of the ring, with the names that others have."""

    def __init__(self, **options: Any) -> None:
        self._session = SumSession(random_vectors(3, 2, 3), **options)
        self.numbers, self.duties, self.agreed = range(1, 4), dict[int, Any](), None
        self.roles = SimpleNamespace(codec=lambda _: RING)

    def party(self, number: int) -> Any:
        return self._session.party(number)

    def coordinator(self) -> Any:
        return self._session.relay()


def _fed(**options: Any) -> FeddpSession:
    parts, server, _ = make_mixture(clients=3, each=20, d=2, k=2)
    return FeddpSession(parts, server, clusters=2, **options)


def _lloyd(variant: str, **options: Any) -> Any:
    return make_session(variant, records=_POINTS, clusters=2, iterations=2, **options)


_SHARED = Shared(parties=3, colluding_max=1)
_THREE = ((0,), (1,), ())
CASES: dict[str, Callable[[], Any]] = {
    "vertical, two parties": _vertical,
    "vertical, exact": lambda: _vertical(budget=None, residuals=True),
    "vertical, histogram": lambda: _vertical(start="synopsis", rounds=1, cells=4, knobs=FEW),
    "vertical, many columns": lambda: _vertical(
        ((0,), (1, 2, 3)), mixture(40, 4, 2, seed=5), start="synopsis", rounds=1, cells=3, knobs=FEW
    ),
    "vertical, server-aided": lambda: _vertical(((0,), (), (1,)), model="server-aided", key_holder=2),
    "vertical, collective": lambda: _vertical(_THREE, model="collective"),
    "vertical, threshold": lambda: _vertical((*_THREE, ()), model="collective", threshold=2),
    "vertical, joint cells": lambda: _vertical(((0,), (1,), (2,)), _WIDE, model="server-aided", key_holder=3, rounds=1),
    "vertical, joint cells, collective": lambda: _vertical(((0,), (1,), (2,)), _WIDE, model="collective", rounds=1),
    "labels": lambda: _labels(columns=((0,), (1,)), cells=(2,), granted=(1, 2)),
    "labels, server-aided": lambda: _labels(
        columns=((0,), (1,), ()), cells=(2,), key_holder=3, model="server-aided", granted=(1, 2)
    ),
    "secfc": _secfc,
    "secfc, two primes, noise": lambda: _secfc(coordinate_bits=27, budget=Budget(epsilon=1.0, delta=1e-6)),
    "secfc, union": _union,
    "align": lambda: AlignSession([name_ids(range(6)), name_ids(range(2, 9)), name_ids(range(1, 6))]),
    "align, union": lambda: AlignSession([name_ids(range(3)), name_ids(range(2, 5))], mode=Mode.UNION),
    "serverless": lambda: _Ring(colluding_max=1),
    "serverless, joint noise": lambda: _Ring(scale=1.5),
    "naive": lambda: _lloyd("naive"),
    "masked sums": lambda: _lloyd("masked-sum-count"),
    "masked sums, double": lambda: _lloyd("masked-sum-count", masks="double", colluding_max=1, members_min=3),
    "masked centroids": lambda: _lloyd("masked-centroid"),
    "fastlloyd": FastLloydSession,
    "fastlloyd, double": lambda: FastLloydSession(placement=_SHARED, masks="double", members_min=3),
    "fastlloyd, published": lambda: FastLloydSession("csulloyd"),
    "synopsis": lambda: SynopsisSession(_POINTS, clusters=2, placement=_SHARED, members_min=3),
    "synopsis, local": lambda: SynopsisSession(_POINTS, clusters=2, placement=Local(parties=3)),
    "feddp": _fed,
}
