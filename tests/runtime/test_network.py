"""The network models are the papers' rows, and their times follow the formula in the module."""

import math
from pathlib import Path

import pytest

from cloister.crypto import Stream
from cloister.errors import ConfigError
from cloister.runtime import NETWORKS, NetworkModel

SEED_TEXT = Path(__file__).parents[3] / "shared" / "seeds" / "003_778cb885a773dfd7.txt"


@pytest.mark.skipif(not SEED_TEXT.exists(), reason="the papers' texts are not beside the repository")
def test_the_ten_rows_are_those_of_table_1():
    lines = SEED_TEXT.read_text().splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith("Identifier\tDescription\tBandwidth"))
    rows = [line.split("\t") for line in lines[first + 1 : first + 11]]
    assert len(rows) == 10
    for name, description, bandwidth, delay, jitter, loss, burst, *_ in rows:
        model = NETWORKS[name]
        assert model.description == description
        printed = [0.0 if cell == "-" else float(cell) for cell in (bandwidth, delay, jitter, loss, burst)]
        assert [
            model.bandwidth_mbps,
            model.delay_ms,
            model.jitter_ms,
            model.loss_percent,
            model.burst_kb,
        ] == printed


def test_times_without_chance_follow_the_formula():
    model = NetworkModel(name="t", description="", source="", bandwidth_mbps=8, delay_ms=20, burst_kb=1)
    stream = Stream.from_seed(1, "t")
    assert model.draw_time_s(500, stream) == pytest.approx(0.02)  # inside the burst
    assert model.draw_time_s(11_000, stream) == pytest.approx(0.02 + 0.01)
    assert NETWORKS["thesis-WAN"].draw_time_s(10**9, stream) == pytest.approx(0.05)


def test_jitter_and_loss_have_their_means():
    stream = Stream.from_seed(2, "means")
    model = NetworkModel(name="t", description="", source="", bandwidth_mbps=math.inf, delay_ms=0, jitter_ms=10)
    mean = sum(model.draw_time_s(1, stream) for _ in range(4000)) / 4000
    assert mean == pytest.approx(0.01 * math.sqrt(2 / math.pi), rel=0.06)  # E|z|
    lossy = NetworkModel(name="t", description="", source="", bandwidth_mbps=math.inf, delay_ms=10, loss_percent=50)
    mean = sum(lossy.draw_time_s(1, stream) for _ in range(4000)) / 4000
    assert mean == pytest.approx(0.01 + 0.02 * 1.0, rel=0.1)  # a geometric number of losses with mean 1
    one = lossy.draw_time_s(10**6, Stream.from_seed(3, "x"))
    assert one == lossy.draw_time_s(10**6, Stream.from_seed(3, "x"))


@pytest.mark.parametrize(
    "wrong",
    [
        {"bandwidth_mbps": 0},
        {"delay_ms": -1},
        {"loss_percent": 100},
        {"jitter_ms": math.nan},
        {"burst_kb": -1},
    ],
)
def test_impossible_networks_are_refused(wrong):
    with pytest.raises(ConfigError, match="a network must have"):
        NetworkModel(**{"name": "t", "description": "", "source": "", "bandwidth_mbps": 1, "delay_ms": 1, **wrong})
