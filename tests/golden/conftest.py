"""What the test files of this folder share: each runs one family of jobs, once, in a pinned subprocess."""

from __future__ import annotations

import json
import platform
from typing import Any

import pytest

from tests.golden.jobs import list_jobs
from tests.golden.record import GOLDEN, list_versions, record


def _find_obstacle(recorded: dict[str, str]) -> str:
    """Say why numbers cannot be equal to the last bit here; empty if they can."""
    from llvmlite import binding

    features = binding.get_host_cpu_features()
    if platform.machine() not in ("x86_64", "AMD64") or not (features.get("avx2") and features.get("fma")):
        return f"golden numbers need an x86-64 processor with AVX2 and FMA; this is {platform.processor() or 'another'}"
    here = list_versions()
    other = [f"{name} {recorded[name]}, here {here[name]}" for name in recorded if recorded[name] != here[name]]
    return f"golden numbers were recorded with {'; '.join(other)}" if other else ""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "job" in metafunc.fixturenames:
        metafunc.parametrize("job", list_jobs(metafunc.module.FAMILY))


@pytest.fixture(scope="session")
def golden() -> dict[str, Any]:
    """What was recorded; skips where floats may differ."""
    golden: dict[str, Any] = json.loads(GOLDEN.read_text())
    if obstacle := _find_obstacle(golden["versions"]):
        pytest.skip(obstacle)
    return golden


@pytest.fixture(scope="module")
def fresh(request: pytest.FixtureRequest, golden: dict[str, Any]) -> dict[str, Any]:
    """What the file's jobs give now."""
    return record(list_jobs(request.module.FAMILY))
