"""Rounding a vector to integers: how long it may be before, so that its length afterwards is known exactly."""

from __future__ import annotations

from math import sqrt

from cloister.errors import ConfigError


def find_reach(longest: int, entries: int) -> float:
    """Return how long a vector of doubles may be so that, rounded to integers, it is at most ``longest``, exactly.

    Lemma. Let x be m doubles and r = longest - sqrt(m)/2 - 1 > 0, and let y be x times r / max(|x|, c) for some
    c >= 0, computed in doubles, with max(|x|, c) >= 1e-100. If longest (m + 4) <= 2^53, then |rint(y)| <= longest.

    Proof. Rounding moves every entry by at most 1/2, so it adds at most sqrt(m)/2 to the length. Summing m squares in
    any order, the root, the quotient and the product leave a relative error in |y| of less than (m + 4) 2^-53 (squares
    that underflow are nothing beside 1e-200), and r (m + 4) 2^-53 < 1. So |rint(y)| < r + 1 + sqrt(m)/2 = longest. The
    same holds for x times a constant r / c where |x| <= c is known beforehand.

    Parameters
    ----------
    longest
        What the length of the integer vector must not exceed.
    entries
        m, how many entries it has.

    Raises
    ------
    ConfigError
        If there is no room for rounding, or too much for doubles.
    """
    reach = longest - sqrt(entries) / 2 - 1
    if reach <= 0 or longest * (entries + 4) > 2**53:
        raise ConfigError(
            f"a vector of m = {entries} integers must be allowed a length greater than sqrt(m)/2 + 1 and at most "
            f"2^53 / (m + 4); got {longest}. If it is too short, give this release a larger share of the budget, or "
            "divide the budget among fewer rounds, columns or cells."
        )
    return reach
