"""SecFC, vertical clustering and alignment give what they gave."""

from __future__ import annotations

from typing import Any

from tests.golden.record import list_differences

FAMILY = "coded"


def test_golden(job: str, fresh: dict[str, Any], golden: dict[str, Any]) -> None:
    differences = list_differences(golden["jobs"][job], fresh[job], golden["texts"] | fresh["texts"])
    assert not differences, "\n".join((f"{job} differs from golden.json:", *differences[:20]))
