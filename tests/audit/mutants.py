"""Every way of being wrong that an audit must notice, and how many runs it takes."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

LONG = bool(os.environ.get("CLOISTER_LONG"))

# Runs per input, half to train and half to count, where the mutant costs about four times the claimed rho. Over fresh
# seeds the mean bound then lies about five deviations above the claim. Half as many runs missed the swapped split at
# epsilon 0.5 on one seed of twelve.
QUADRUPLE_COST = {0.5: 160_000, 1.0: 64_000, 3.0: 16_000}
# A sound release is not flagged whatever the runs: fewer save time.
SOUND_RUNS = dict.fromkeys((0.5, 1.0, 3.0), 1_000_000) if LONG else {0.5: 60_000, 1.0: 32_000, 3.0: 32_000}
# The same from (epsilon, delta) alone.
LONG_RUNS = {0.5: 2_000_000, 1.0: 1_000_000, 3.0: 300_000}
FEW = {0.5: 24_000, 1.0: 8_000, 3.0: 8_000}


@dataclass(frozen=True, kw_only=True)
class Mutant:
    name: str
    changes: dict[str, Any] = field(hash=False)
    runs: dict[float, int] = field(hash=False)
    shown_by: str
    """A part of the report's event that names the defect, or of its neighbours."""


SOUND = (
    Mutant(name="joint release", changes={}, runs=SOUND_RUNS, shown_by=""),
    Mutant(name="separate split", changes={"separate_split": True}, runs=SOUND_RUNS, shown_by=""),
    Mutant(name="norm bound", changes={"norm_bound": 50_000}, runs=SOUND_RUNS, shown_by=""),
)

MUTANTS = (
    Mutant(name="half noise", changes={"noise_factor": 0.5}, runs=QUADRUPLE_COST, shown_by=""),
    Mutant(name="half sensitivity", changes={"sensitivity_factor": 0.5}, runs=QUADRUPLE_COST, shown_by=""),
    Mutant(
        name="swapped split",
        changes={"separate_split": True, "swap_split": True},
        runs=QUADRUPLE_COST,
        shown_by="",
    ),
    Mutant(name="no clip", changes={"clip": False}, runs=FEW, shown_by="outside the domain"),
    Mutant(name="one seed for two noises", changes={"one_seed": True}, runs=FEW, shown_by="move together"),
    Mutant(
        name="noise reused across rounds", changes={"reuse_noise": True}, runs=FEW, shown_by="another, empty cluster"
    ),
    Mutant(name="noise known to the receiver", changes={"reveal_noise": True}, runs=FEW, shown_by="noise of"),
)
