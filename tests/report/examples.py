"""Results for tests."""

from __future__ import annotations

from typing import Any

import numpy as np

from cloister.data import Column
from cloister.report.result import Evaluation, Learned, NetworkTime, PartyTraffic, Result

COLUMNS = (
    Column(name="age", low=18, high=95),
    Column(name="systolic_bp", low=80, high=220),
    Column(name="bmi", low=14, high=60),
    Column(name="hba1c", low=4, high=14),
)
CENTRES = np.array([[33.0, 116, 23.5, 5.2], [72, 160, 26.5, 5.8], [57, 139, 36, 8.8], [29, 120, 23, 10.4]])


def make_result(**changes: Any) -> Result:
    values: dict[str, Any] = {
        "name": "clinics",
        "protocol": "masked-sum-count",
        "ran": "simulated",
        "columns": COLUMNS,
        "centres": CENTRES,
        "rounds": 12,
        "parties": tuple(
            PartyTraffic(name=name, bytes_sent=2312, bytes_received=20_001, messages_sent=13, messages_received=14)
            for name in ("north", "harbour", "valley")
        ),
        "leakage": (
            Learned(role="coordinator", what="the centres", how="not", note="it sees masked numbers"),
            Learned(role="every party", what="the total of every cluster", how="exactly"),
        ),
        "breaks_if": "the coordinator and one party put together what they saw.",
        "transcript_sha256": "ab" * 32,
        "created": "2026-01-31T12:00:00+00:00",
        "cloister_version": "0.1.0",
        "fractional_bits": 16,
        "ring_bits": 32,
        "seeded": True,
        "evaluation": Evaluation(loss=0.15, reference_loss=0.1),
        "network": NetworkTime(model="regWAN100", simulated_s=1.234),
        "notes": ("A seed was given, so the masks are not secret.",),
    }
    return Result(**(values | changes))
