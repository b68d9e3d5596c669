"""A party whose library rounds exponentials and logarithms otherwise agrees with all others on public parameters."""

import gc
import math
import sys
from functools import _lru_cache_wrapper
from random import Random

import pytest

from cloister.jobfile import parse_job
from cloister.privacy.calibration import round_for_all
from cloister.protocol import PublicInput
from cloister.protocols.fastlloyd import sound
from cloister.protocols.multiparty_lloyd import noise
from cloister.sessions.assembly import open_session
from tests.runtime.jobs import JOBS

NAMES = ("mask-noise-average", "FastLloyd", "FastLloyd, ring", "FastLloyd, joint noise")
BUDGETS = (0.5, 1, 3)
SEEDS = 2


class OtherLibrary:
    """The module ``math``, whose last bits are often other ones."""

    def __init__(self, seed):
        self._rng = Random(seed)

    def __getattr__(self, name):
        function = getattr(math, name)
        if name not in ("exp", "expm1", "log", "log1p", "log2", "tanh", "pow"):
            return function

        def other(*arguments):
            value = function(*arguments)
            return self._rng.choice((value, math.nextafter(value, math.inf), math.nextafter(value, -math.inf)))

        return other


def find_digest(name, epsilon, library, monkeypatch):
    """What a party with this library agrees to."""
    for one in gc.get_objects():
        if isinstance(one, _lru_cache_wrapper) and str(getattr(one, "__module__", "")).startswith("cloister."):
            one.cache_clear()
    with monkeypatch.context() as patch:
        for module in [module for path, module in sys.modules.items() if path.startswith("cloister.")]:
            if vars(module).get("math") is math:
                patch.setattr(module, "math", library)
        job = parse_job(JOBS[name].replace("epsilon = 8.0", f"epsilon = {epsilon}"))
        directory = tuple(bytes([number]) * 32 for number in range(len(job.parties)))
        session = open_session(job, directory, PublicInput(), session=bytes(16))
        return session.protocol.digest(session.agreed)


def differ(monkeypatch):
    """How often two parties do not agree."""
    found = [
        {find_digest(name, epsilon, library, monkeypatch) for library in (math, *map(OtherLibrary, range(SEEDS)))}
        for name in NAMES
        for epsilon in BUDGETS
    ]
    return sum(len(digests) > 1 for digests in found)


def test_parties_with_other_libraries_agree(monkeypatch):
    assert differ(monkeypatch) == 0


def test_without_rounding_they_would_not(monkeypatch):
    """The mutant: scales as they come."""
    monkeypatch.setattr(noise, "round_for_all", lambda derived: derived)
    monkeypatch.setattr(sound, "round_for_all", lambda derived: derived)
    assert differ(monkeypatch) >= 3


@pytest.mark.parametrize("derived", [1e-300, 0.6, 1.0, math.pi, 2.0**24 + 1, 1e200])
def test_what_is_rounded_is_never_less_and_hardly_more(derived):
    rounded = round_for_all(derived)
    assert derived <= rounded <= derived * (1 + 2.0**-23)
    assert round_for_all(rounded) == rounded
    assert math.frexp(rounded)[0] * 2**24 % 1 == 0
