"""Questions of every kind, honest and not; and what a leader sends that states whatever it likes."""

from __future__ import annotations

from functools import partial

import msgspec
import numpy as np
from msgspec import structs

from cloister.columns import Column, list_coordinates
from cloister.crypto import SeededEntropy, Stream
from cloister.crypto.sealing import seal_keyed
from cloister.privacy.units import Budget, Unit
from cloister.protocols.feddp.options import ExtraSteps, FeddpKnobs
from cloister.protocols.feddp.pipeline import bind_server
from cloister.protocols.feddp.settings import FeddpSettings
from cloister.protocols.guided_sums.query import PublicValues
from cloister.protocols.guided_sums.statements import Forms, Stated, Statements
from cloister.protocols.synopsis.pipeline import run_synopsis
from cloister.protocols.synopsis.settings import Knobs, Settings, SpreadSettings
from cloister.records import ArrayRecords
from cloister.wire import Array
from cloister.wire.codec import DTYPES
from tests.protocols.feddp.sessions import make_mixture
from tests.sessions import SESSION, blobs, identity, make_directory

SEED, IDENTITIES = bytes(range(32)), 7
PARTS, SERVER, _ = make_mixture(clients=2, each=40, d=4)
FEDDP = {
    "feddp": {},
    "moved": {"options": ExtraSteps.algorithm_5(weight_min=0.2, sigma_max=1e-3)},
    "published": {"variant": "published", "records": 80, "lloyd_steps": 1},
}
NUMBERS = (Column(name="x", low=-1, high=1), Column(name="y", low=-9, high=50, weight=2))
KINDS = (Column.unbounded("z"), Column.boolean("b"), Column.category("c", ("1", "2", "3")))
SPREAD = {"spread": (2, list_coordinates(NUMBERS)), "unbounded": (7, list_coordinates((*NUMBERS, *KINDS)))}
FAMILIES = ("direct", "projected", *SPREAD, *FEDDP)
CASES = [(family, unit) for family in FAMILIES for unit in (Unit.RECORD, Unit.CLIENT)]
CASES = [(family, unit) for family, unit in CASES if unit is Unit.RECORD or family not in SPREAD]


def make_settings(family, unit):
    budget = Budget(epsilon=20.0, delta=1e-6, unit=unit)
    if family in FEDDP:
        settings = FeddpSettings(
            clusters=3,
            dimensions=4,
            budget=budget,
            parties=2 if unit is Unit.RECORD else 100,
            knobs=FeddpKnobs(restarts=1),
            **FEDDP[family],
        )
        return settings.for_server(SERVER), bind_server(SERVER), SERVER
    knobs = Knobs(cells_max=64, rounds_max=3, restarts=1)
    dimensions, axes = SPREAD.get(family, (2 if family == "direct" else 7, None))
    settings = (Settings if axes is None else partial(SpreadSettings, axes=axes))(
        clusters=3,
        dimensions=dimensions,
        budget=budget,
        parties=2 if unit is Unit.RECORD else 100,
        knobs=knobs,
    )
    return settings, run_synopsis, None


def make_forms(settings, points):
    return Forms(PublicValues(settings=settings, points=points), [(slot.name, slot.kind) for slot in settings.slots])


def walk(settings, algorithm):
    """The honest question of each round; with clients, of a hundred that hold the same."""
    d, times = settings.dimensions, 100 if settings.client_level else 1
    table = ArrayRecords(PARTS[0]) if d == 4 else ArrayRecords(np.round(blobs(3000, d, 3, seed=5) * 2**16) / 2**16)
    asking = algorithm(settings, Stream.from_seed(3, "common"))
    query = next(asking)
    for _ in settings.slots:
        yield query
        try:
            query = asking.send(times * query.measure(table))
        except StopIteration:
            return


def make_statements(forms):
    return Statements(forms=forms, directory=make_directory(IDENTITIES, 2), seed=SEED, session=SESSION)


def seal(
    round_,
    encoded,
    room,
    *,
    seed=SEED,
    leader=1,
    signer=1,
    session=SESSION,
    named=None,
    identities=IDENTITIES,
    padding=b"",
):
    """What a leader sends that pads, seals and signs whatever it likes."""
    written = (len(encoded).to_bytes(4, "little") + encoded).ljust(room, b"\0") + padding
    salt = SeededEntropy(5, "salt").bytes(16)
    box = seal_keyed(written, seed, "question", session, round_, leader, salt)
    signature = identity(identities, signer).sign("guided sums question", session, round_, leader, salt, box)
    return Stated(named or leader, salt, box, signature)


def encode(question):
    return msgspec.msgpack.encode(question)


def change(question, path, value):
    """The question with the field at a path replaced: by a value, or by what a function makes of it."""
    name, *rest = path.split(".")
    old = getattr(question, name)
    new = change(old, ".".join(rest), value) if rest else value(old) if callable(value) else value
    return structs.replace(question, **{name: new})


def numbers(array):
    return np.frombuffer(array.data, DTYPES[array.code]).reshape(array.shape).copy()


def every(make):
    """A change of all numbers of an array."""
    return lambda array: Array.of(np.ascontiguousarray(make(numbers(array))))


def first(value):
    """A change of the first number of an array."""

    def make(array):
        changed = numbers(array)
        changed.flat[0] = value
        return Array.of(changed)

    return make


def list_fields(struct, prefix=""):
    """The paths of all that stands in a question."""
    for name in struct.__struct_fields__:
        value = getattr(struct, name)
        if isinstance(value, msgspec.Struct) and not isinstance(value, Array):
            yield from list_fields(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value
