"""A job between organisations, and everyone's keys, for tests."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from cloister import Budget, Column, Job, JobParty
from cloister.credentials import OwnKeys, make_keys
from cloister.job import COORDINATOR, JobCoordinator

NAMES = ("north", "harbour", "valley")


@dataclass(frozen=True)
class People:
    job: Job
    keys: dict[str, OwnKeys]
    folder: Path

    def number(self, name: str) -> int:
        return (COORDINATOR, *NAMES).index(name)


def make_people(folder: Path, **changes: object) -> People:
    keys = {name: make_keys(name, folder) for name in (COORDINATOR, *NAMES)}
    values: dict[str, object] = {
        "name": "clinics",
        "k": 4,
        "columns": (Column(name="age", low=18, high=95), Column(name="bmi", low=14, high=60)),
        "parties": tuple(JobParty(name=name, identity=keys[name].public.fingerprint) for name in NAMES),
        "budget": Budget(epsilon=1.0, delta=1e-6),
        "coordinator": JobCoordinator(identity=keys[COORDINATOR].public.fingerprint, address="localhost:7400"),
    }
    return People(Job(**(values | changes)), keys, folder)  # type: ignore[arg-type]
