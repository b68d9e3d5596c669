"""How many digits a plan's numbers are worth: as many as come out the same when it is made anew.

Between plans with other streams an excess loss scatters by 20 to 30 %, the noise on a centre by 10 to 12 %
(docs/plan.md). So an excess is shown with one digit that matters, or two that begin with 1, and noise with two.
"""

from __future__ import annotations

from math import floor, log10

_SMALLEST_EXCESS = 0.001  # smaller ones are k-means' own starts
_SMALLEST_PLAIN = 1e-6


def format_ratio(ratio: float) -> str:
    """Write a loss over that without privacy: 1.002, 1.12, 1.3, 2.7, 6."""
    excess = abs(ratio - 1.0)
    if excess < _SMALLEST_EXCESS / 2:
        return "1.000"
    return _write(ratio, decimals=min(3, _decimals_of(excess)))


def format_percent(ratio: float) -> str:
    """Write by how many per cent a ratio is above one, none where it is below: 0.2, 12, 30."""
    excess = 100.0 * max(0.0, ratio - 1.0)
    return "0" if excess < 50 * _SMALLEST_EXCESS else _write(excess, decimals=min(1, _decimals_of(excess)))


def format_noise(value: float) -> str:
    """Write a standard deviation with two digits that matter and no exponent, unless it is tiny: 0.021, 3.4, 1,200."""
    if value < _SMALLEST_PLAIN:
        return f"{value:.2g}"
    return _write(value, decimals=1 - floor(log10(value)))


def _decimals_of(excess: float) -> int:
    """Where the last digit stands that an excess supports; negative before the point."""
    power = floor(log10(excess))
    return -power + (excess < 2 * 10.0**power)


def _write(value: float, *, decimals: int) -> str:
    return f"{round(value, decimals):,.{max(0, decimals)}f}"
