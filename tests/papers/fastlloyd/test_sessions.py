"""Timed rounds are those of real sessions: their number, their noise, their bytes."""

from __future__ import annotations

import pytest

from papers.fastlloyd.datasets import DrawnSet
from papers.fastlloyd.sessions import count_traffic, time_rounds
from papers.fastlloyd.trials import Trial

DATA = DrawnSet(family="TimeSynth", clusters=4, dimensions=3, records=800)


@pytest.mark.parametrize("method", ["sound", "published", "mna"])
def test_every_round_but_the_first_is_timed_noise_apart(method) -> None:
    costs = time_rounds(Trial(data=DATA, method=method, run=0, epsilon=1.0), iterations=5)
    assert len(costs) == 4
    assert all(cost.cpu_ms > 0 and cost.noise_ms > 0 for cost in costs)


@pytest.mark.parametrize(
    ("method", "numbers"), [("sound", 4 * 4), ("mna", 4 * 4), ("published", 4 * 3), ("amn", 4 * 3)]
)
def test_a_round_sends_its_numbers_and_a_small_envelope(method, numbers) -> None:
    traffic = count_traffic(Trial(data=DATA, method=method, run=0, epsilon=1.0))
    assert traffic.ring_bits == 32
    for sent in (traffic.up, traffic.down):
        assert 4 * numbers < sent <= 4 * numbers + 64
