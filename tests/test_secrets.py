"""Where randomness comes from: without a seed, from the operating system and from nowhere else.

Every protocol runs twice with the same tables and without a seed. Whatever is secret in one run (identities, session
keys, session numbers, keys of streams and boxes, shares of keys) must not occur in the other. A key that is constant,
or comes from a seed that somebody could guess, occurs in both.
"""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import cloister.crypto.secret_sharing
from cloister.crypto import Identity, SeededEntropy, SessionKey, Stream, SystemEntropy
from cloister.jobfile import parse_setup
from cloister.privacy import samplers
from cloister.privacy.simulation_sampler import SimulationSampler
from cloister.sessions import alignment, simulate, simulation
from tests.golden.jobs import JOBS, MANY, SHARED, _synopsis
from tests.golden.tables import write_tables

RUNS = (
    "naive",
    "masked-sum-count",
    "synopsis-aggregator",
    "synopsis-shared",
    "feddp-shared",
    "mask-noise-average",
    "mask-noise-average-laplace-shared",
    "mask-noise-average-ring-joint",
    "fastlloyd-shared",
    "fastlloyd-ring-shared",
    "secfc-budget",
    "secfc-id",
    "vertical-labels",
    "vertical-id",
    "vertical-server-aided",
    "vertical-collective",
    "vertical-threshold",
    "vertical-joint",
    "shares of masks",
)
# With five parties one may leave, so that members give out shares of what makes their masks.
TEXTS = {**JOBS, "shares of masks": _synopsis(f"{SHARED}\nmin_parties = 4", parties=MANY[:5])}
# Streams that make no secret: start values of trials, simulated delays.
PUBLIC_KEYS = {"public sample"}
PUBLIC_STREAMS = {"plan", "network", "coordinator", "relay"}


@dataclass
class Drawn:
    """What one run drew, by kind, and what it must not have made at all."""

    secrets: dict[str, list[bytes]] = field(default_factory=dict)
    typed: set[object] = field(default_factory=set)
    public: set[bytes] = field(default_factory=set)
    seeded: list[str] = field(default_factory=list)

    def note(self, kind: str, secret: bytes) -> None:
        self.secrets.setdefault(kind, []).append(secret)


def _watch(patch: pytest.MonkeyPatch, drawn: Drawn) -> None:
    """Note every key, number and share that is made from now on."""
    make_stream, make_identity, make_session_key = Stream.__init__, Identity.__init__, SessionKey.__init__
    derive_child, from_seed, evaluate = (
        Stream.child,
        Stream.from_seed.__func__,
        cloister.crypto.secret_sharing._evaluate,
    )

    def stream(self: Stream, key: bytes, *nonce: bytes, **named: bytes) -> None:
        make_stream(self, key, *nonce, **named)
        drawn.note("stream", key)

    def child(self: Stream, *context: Any) -> Stream:
        other = derive_child(self, *context)
        if self._key in drawn.public:
            drawn.public.add(other._key)
        return other

    def seeded_stream(kind: type[Stream], seed: int | bytes, *context: Any) -> Stream:
        made: Stream = from_seed(kind, seed, *context)
        if isinstance(seed, int):
            drawn.typed.add(context[0])
            drawn.public.add(made._key)
        return made

    def identity(self: Identity, entropy: Any) -> None:
        make_identity(self, entropy)
        drawn.note("identity", self.public_bytes)

    def session_key(self: SessionKey, entropy: Any) -> None:
        make_session_key(self, entropy)
        drawn.note("session key", self.public_bytes)

    def share(coefficients: list[int], at: int) -> int:
        value = evaluate(coefficients, at)
        for coefficient in coefficients[1:]:
            drawn.note("coefficient of shares", coefficient.to_bytes(33, "little"))
        drawn.note("share", value.to_bytes(33, "little"))
        return value

    for module in [module for name, module in sys.modules.items() if name.startswith("cloister.")]:
        if "derive_key" in vars(module) and module is not sys.modules["cloister.crypto"]:
            patch.setattr(module, "derive_key", _noting(drawn, module.derive_key))
    patch.setattr(Stream, "__init__", stream)
    patch.setattr(Stream, "child", child)
    patch.setattr(Stream, "from_seed", classmethod(seeded_stream))
    patch.setattr(Identity, "__init__", identity)
    patch.setattr(SessionKey, "__init__", session_key)
    patch.setattr(cloister.crypto.secret_sharing, "_evaluate", share)
    for module in (simulation, alignment):
        patch.setattr(module, "run_local", _noting_session(drawn, module.run_local))
    for seeded in (SeededEntropy, SimulationSampler):
        patch.setattr(seeded, "__init__", _noting_seeded(drawn, seeded.__init__, seeded.__name__))


def _noting(drawn: Drawn, derive: Any) -> Any:
    def derive_key(secret: bytes, *context: Any) -> bytes:
        key: bytes = derive(secret, *context)
        drawn.note("derived key", key)
        if secret in drawn.public or (secret.startswith(b"int") and context[0] == "seed"):
            drawn.public.add(key)
        elif context[0] not in PUBLIC_KEYS:
            drawn.note("root", secret)  # which may be constant although keys differ: they are a session's
        return key

    return derive_key


def _noting_session(drawn: Drawn, run_local: Any) -> Any:
    def run(*roles: Any, **options: Any) -> Any:
        drawn.note("session number", options["session"])
        return run_local(*roles, **options)

    return run


def _noting_seeded(drawn: Drawn, make: Any, name: str) -> Any:
    def init(self: Any, *arguments: Any, **named: Any) -> None:
        drawn.seeded.append(name)
        make(self, *arguments, **named)

    return init


def _run(name: str, folder: Path) -> Drawn:
    drawn = Drawn()
    setup = parse_setup(TEXTS[name].replace("[run]\nseed = 11\n", ""), folder=folder)
    assert setup.seed is None
    with pytest.MonkeyPatch.context() as patch:
        _watch(patch, drawn)
        result = simulate(setup, evaluate=False, on_labels=lambda labels: None)
    assert not result.seeded
    return drawn


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tables")
    write_tables(folder)
    return folder


@pytest.mark.parametrize("name", RUNS)
def test_two_runs_without_a_seed_have_no_secret_in_common(name: str, folder: Path) -> None:
    first, second = _run(name, folder), _run(name, folder)
    public = first.public | second.public
    assert {"identity", "session number"} <= first.secrets.keys()
    for kind, secrets in first.secrets.items():
        repeated = {secret for secret in secrets if secret in second.secrets.get(kind, ())} - public
        assert not repeated, f"{len(repeated)} of {len(set(secrets))} {kind}s occur in two runs"
    for drawn in (first, second):
        for kind in ("identity", "session key", "session number", "share"):
            times = Counter(drawn.secrets.get(kind, []))
            assert not times or max(times.values()) == 1, f"a {kind} occurs twice in one run"
        assert drawn.typed <= PUBLIC_STREAMS
        assert not [made for made in drawn.seeded if made == "SeededEntropy"]


def test_the_test_sees_a_seeded_run(folder: Path) -> None:
    """A run with a seed, made to look as if it had none, repeats everything."""
    made = []
    for _ in range(2):
        drawn = Drawn()
        with pytest.MonkeyPatch.context() as patch:
            _watch(patch, drawn)
            simulate(parse_setup(JOBS["masked-sum-count"], folder=folder), evaluate=False)
        made.append(drawn)
    for kind in ("identity", "session key", "session number", "stream", "derived key"):
        assert set(made[0].secrets[kind]) == set(made[1].secrets[kind])
    assert "entropy" in made[0].typed
    assert "SeededEntropy" in made[0].seeded


def test_the_systems_entropy_is_the_operating_systems(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def token_bytes(count: int) -> bytes:
        asked.append(count)
        return b"\x07" * count

    monkeypatch.setattr("secrets.token_bytes", token_bytes)
    assert SystemEntropy().bytes(5) == b"\x07" * 5
    assert asked == [5]


def test_whatever_samples_noise_without_a_seed_is_exact(folder: Path) -> None:
    drawn = _run("mask-noise-average-shared", folder)
    assert "SimulationSampler" not in drawn.seeded
    assert not samplers.ExactSampler.is_simulation
