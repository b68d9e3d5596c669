"""A network model: how long messages would take, without sleeping.

A message of s bytes over a link with bandwidth b, one-way delay D, jitter J, packet loss p and token-bucket burst B
takes

    D + |J z| + 8 max(0, s - B) / b + 2 D r,        z standard normal,

where r is the number of retransmission rounds: each of the ceil(s / 1460) packets is lost independently with
probability p, the lost ones are sent again one round trip later, until none is lost. A step of a protocol takes
as long as its slowest party's request and reply; local computation is not counted, and links do not share bandwidth.

The rows are those of Table 1 of Mazzone et al., "Privacy-Preserving Vertical K-Means Clustering" (its columns quantum
and r2q divide bandwidth between competing classes; with one class they change nothing); of section 6.1 of Diaa,
Humphries and Kerschbaum, "FastLloyd: Federated, Accurate, Secure, and Tunable k-Means Clustering with Differential
Privacy", 2024 (0.5 ms for every send); and of section 8.1 of Ahmed's thesis, "Differentially-Private Multiparty
Clustering", 2023 (round trips of 1 ms and 100 ms). FastLloyd gives no WAN of its own: it says to add a fixed latency
per round, as thesis-WAN does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil, inf

from cloister.crypto import Stream
from cloister.errors import ConfigError

PACKET_BYTES = 1460


@dataclass(frozen=True, kw_only=True)
class NetworkModel:
    """One kind of link between a party and the coordinator."""

    name: str
    description: str
    source: str
    bandwidth_mbps: float
    delay_ms: float
    jitter_ms: float = 0.0
    loss_percent: float = 0.0
    burst_kb: float = 0.0

    def __post_init__(self) -> None:
        if not (
            self.bandwidth_mbps > 0 <= self.delay_ms < inf
            and 0 <= self.jitter_ms < inf
            and self.burst_kb >= 0 <= self.loss_percent < 100
        ):
            raise ConfigError(
                "a network must have bandwidth > 0, delay, jitter and burst >= 0 and loss from 0 to below 100 percent; "
                f"got {self.bandwidth_mbps} Mbps, {self.delay_ms} ms, {self.jitter_ms} ms, {self.burst_kb} kB, "
                f"{self.loss_percent} %."
            )

    def draw_time_s(self, message_bytes: int, stream: Stream) -> float:
        """Simulate the time of one message; the stream makes it reproducible."""
        jitter_s = abs(float(stream.normal(1)[0])) * self.jitter_ms / 1e3 if self.jitter_ms else 0.0
        queued_bytes = max(0.0, message_bytes - self.burst_kb * 1e3)
        retransmissions = 0
        outstanding = ceil(message_bytes / PACKET_BYTES) if self.loss_percent else 0
        while outstanding:
            outstanding = int((stream.uniform(outstanding) < self.loss_percent / 100).sum())
            retransmissions += outstanding > 0
        delay_s = self.delay_ms / 1e3
        return delay_s + jitter_s + queued_bytes * 8 / (self.bandwidth_mbps * 1e6) + 2 * delay_s * retransmissions


def _vertical(name: str, description: str, *row: float) -> NetworkModel:
    bandwidth, delay, jitter, loss, burst = row
    return NetworkModel(
        name=name,
        description=description,
        source="Vertical K-Means",
        bandwidth_mbps=bandwidth,
        delay_ms=delay,
        jitter_ms=jitter,
        loss_percent=loss,
        burst_kb=burst,
    )


NETWORKS: Mapping[str, NetworkModel] = {
    model.name: model
    for model in (
        _vertical("LAN500", "LAN (low)", 500, 1, 0.2, 0, 0),
        _vertical("LAN1000", "LAN (medium)", 1000, 0.3, 0.02, 0, 0),
        _vertical("LAN10000", "LAN (high)", 10000, 0.1, 0.01, 0, 0),
        _vertical("regWAN100", "Regional WAN (low)", 100, 20, 15, 0.1, 500),
        _vertical("regWAN250", "Regional WAN (medium)", 250, 15, 5, 0.1, 1000),
        _vertical("regWAN500", "Regional WAN (high)", 500, 10, 2, 0.1, 1500),
        _vertical("ccWAN50", "Cross-continental WAN (low)", 50, 150, 25, 0.5, 500),
        _vertical("ccWAN100", "Cross-continental WAN (medium)", 100, 120, 15, 0.3, 1000),
        _vertical("ccWAN200", "Cross-continental WAN (high)", 200, 100, 10, 0.2, 2000),
        _vertical("crpWAN500", "Corporate WAN (high resilience)", 500, 50, 5, 0.1, 1000),
        NetworkModel(
            name="fastlloyd-LAN",
            description="0.5 ms for every send",
            source="FastLloyd 6.1",
            bandwidth_mbps=inf,
            delay_ms=0.5,
        ),
        NetworkModel(
            name="thesis-LAN",
            description="round trip 1 ms",
            source="thesis 8.1",
            bandwidth_mbps=inf,
            delay_ms=0.5,
        ),
        NetworkModel(
            name="thesis-WAN",
            description="round trip 100 ms",
            source="thesis 8.1",
            bandwidth_mbps=inf,
            delay_ms=50,
        ),
    )
}
