"""What one holder of noise adds to a total: Alice under encryption, Bob after decryption."""

from __future__ import annotations

import numpy as np

from cloister.privacy.samplers import Sampler
from cloister.protocols.vertical.query import Query
from cloister.protocols.vertical.settings import Settings
from cloister.records import IntArray


def draw_share(settings: Settings, query: Query, sampler: Sampler) -> IntArray:
    """What one holder of noise adds to a total: a draw for each part, in order."""
    drawn = [
        np.zeros(part.length, dtype=np.int64)
        if part.sigma is None
        else sampler.draw(settings.share_of(part.sigma), part.length)
        for part in query.parts
    ]
    return np.concatenate(drawn)
