"""What a job means where it says nothing: values that follow from public ones.

Options that only some protocols take are None in the model where they are not given, so that one that does not apply
can be refused instead of ignored; here is what None stands for.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, Literal

from cloister.protocols.feddp.settings import FEDDP
from cloister.protocols.synopsis.settings import SYNOPSIS

if TYPE_CHECKING:
    from cloister.job.model import ProtocolOptions

PROTOCOL: Final = SYNOPSIS
ITERATIONS: Final = 10
INITIALISATION: Final = "sphere-packing"
ASSIGNMENT: Final = "unconstrained"
NOISE: Final[Literal["gaussian"]] = "gaussian"
_DELTA = 1e-6


def resolve_noise(protocol: ProtocolOptions) -> Literal["gaussian", "laplace"]:
    """Return the noise of a private protocol: what published variants of FastLloyd print is Laplace."""
    if protocol.is_published and protocol.name != FEDDP:
        return "laplace"
    return protocol.noise or NOISE


def choose_delta(records: int | None) -> float:
    """Return the delta of a budget that names none.

    Parameters
    ----------
    records
        The number of records n, where it is declared public.

    Returns
    -------
    float
        1e-6; or 1 / (n ln n) where n is public and this is less. A mechanism that publishes one record at random is
        (0, 1/n)-DP, so delta must stay well below 1/n.
    """
    if records is None or records < 2:
        return _DELTA
    return min(_DELTA, 1 / (records * math.log(records)))
