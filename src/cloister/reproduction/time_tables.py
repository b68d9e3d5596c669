"""Table 3 (time and bytes of an iteration) and thesis tables 8.6 and 8.7 (LAN and WAN), from real sessions.

Each round is one request to each party and one reply, so a network adds two delays to it. CPU is that of all three
roles together, one after another; on three machines the parties would work at the same time.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from cloister.reproduction.datasets import DataSet, DrawnSet
from cloister.reproduction.estimates import Estimate
from cloister.reproduction.lab import Lab
from cloister.reproduction.lines import FAILS
from cloister.reproduction.printed_fastlloyd import TABLE_3, Overhead
from cloister.reproduction.printed_thesis import TABLE_8_6, TABLE_8_7, TimeRow
from cloister.reproduction.products import Product, Table, Value
from cloister.reproduction.scope import Scope
from cloister.reproduction.sessions import Traffic, count_traffic, time_rounds
from cloister.reproduction.trials import Method, Trial
from cloister.runtime.network import NETWORKS

THESIS_EPSILON = 4.0
"""Thesis table 7.1."""
_SYNTH = DrawnSet(family="Synth", clusters=2, dimensions=2, records=5_000)


def compute_round_trip_ms(network: str) -> float:
    """What a network adds to a round: a request and a reply; the rows used here have no bandwidth and no jitter."""
    return 2.0 * NETWORKS[network].delay_ms


@dataclass(frozen=True, kw_only=True)
class _Measured:
    cpu_ms: Estimate
    noise_ms: Estimate
    traffic: Traffic


def _measure(data: DataSet, method: Method, epsilon: float, sessions: int, lab: Lab, label: str) -> _Measured:
    trials = [Trial(data=data, method=method, run=run, epsilon=epsilon) for run in range(sessions)]
    means = []
    time_rounds(trials[0], iterations=2)  # compiled kernels are loaded, data is in memory
    for trial in trials:
        costs = time_rounds(trial)
        means.append((_mean(cost.cpu_ms for cost in costs), _mean(cost.noise_ms for cost in costs)))
        lab.tick(label)
    return _Measured(
        cpu_ms=Estimate.of([cpu for cpu, _ in means]),
        noise_ms=Estimate.of([noise for _, noise in means]),
        traffic=count_traffic(trials[0]),
    )


def _mean(values: Iterable[float]) -> float:
    every = list(values)
    return sum(every) / len(every)


@dataclass(frozen=True, kw_only=True)
class OverheadTable:
    """Table 3."""

    name: ClassVar[str] = "table3"
    title: ClassVar[str] = "Table 3: time and bytes of an iteration, two clients, LAN of 0.5 ms a send (FastLloyd 6.3)"

    def list_trials(self, scope: Scope) -> list[Trial]:
        """None: these are sessions."""
        return []

    def count_sessions(self, scope: Scope) -> int:
        """Each row with both methods."""
        return 2 * scope.sessions * len(_find_rows(scope))

    def make(self, scope: Scope, lab: Lab) -> Product:
        """Time algorithm 1 as published, with its flow, and the sound default."""
        lan_ms = compute_round_trip_ms("fastlloyd-LAN")
        rows: list[tuple[Value, ...]] = []
        summary: list[tuple[Value, ...]] = []
        for row, data in _find_rows(scope):
            for method in ("published", "sound"):
                label = "algorithm 1" if method == "published" else "sound"
                found = _measure(data, method, 1.0, scope.sessions, lab, f"{self.name}: {row.data}, {label}")
                total_ms = found.cpu_ms.mean + lan_ms
                sent = 2 * (found.traffic.up + found.traffic.down)
                rows.append(
                    (
                        row.data,
                        row.records,
                        row.clusters,
                        row.dimensions,
                        method,
                        FAILS if method == "published" else "holds",
                        found.cpu_ms.mean,
                        found.cpu_ms.half_width,
                        found.noise_ms.mean,
                        lan_ms,
                        total_ms,
                        found.traffic.up,
                        found.traffic.down,
                        sent,
                        found.traffic.ring_bits,
                        row.time_ms,
                        row.interval_ms,
                        row.bytes_sent,
                        row.mohassel_ms,
                    )
                )
                summary.append(
                    (
                        row.data,
                        f"{row.records:,}",
                        row.clusters,
                        row.dimensions,
                        label,
                        total_ms,
                        found.noise_ms.mean,
                        f"{row.time_ms:g} ± {row.interval_ms:g}",
                        f"{row.time_ms / total_ms:.1f}x",
                        int(sent),
                        row.bytes_sent,
                    )
                )
        return Product(
            table=Table(columns=_TABLE_3_COLUMNS, rows=tuple(rows)),
            summary=Table(
                columns=("data", "N", "k", "d", "method", "ms", "+ noise", "printed ms", "faster", "bytes", "printed"),
                rows=tuple(summary),
            ),
            notes=(
                "ms: CPU of both clients and the server, added up, and the LAN; '+ noise': drawing exact noise, apart. "
                "Bytes: all messages of a round, both clients, both ways, envelopes included; the printed ones are the "
                f"numbers alone, 8 bytes each. {scope.sessions} sessions; the paper's machine was an M2 Max.",
                *_explain_missing(scope),
            ),
        )


_TABLE_3_COLUMNS = (
    "data",
    "records",
    "clusters",
    "dimensions",
    "method",
    "guarantee",
    "cpu_ms",
    "cpu_ms_ci95",
    "noise_sampling_ms",
    "lan_ms",
    "total_ms",
    "bytes_up_per_party",
    "bytes_down_per_party",
    "bytes_all",
    "ring_bits",
    "printed_ms",
    "printed_ms_ci95",
    "printed_bytes",
    "printed_mohlloyd_ms",
)


def _find_rows(scope: Scope) -> list[tuple[Overhead, DataSet]]:
    """The rows whose data is there; TimeSynth is drawn."""
    found: list[tuple[Overhead, DataSet]] = []
    for row in TABLE_3:
        if row.data != "TimeSynth":
            found += [(row, data) for data in scope.find_sets((row.data.lower(),))]
        elif row.records in scope.time_records:
            drawn = DrawnSet(family="TimeSynth", clusters=row.clusters, dimensions=row.dimensions, records=row.records)
            found.append((row, drawn))
    return found


def _explain_missing(scope: Scope) -> tuple[str, ...]:
    left_out = sorted({row.records for row in TABLE_3 if row.data == "TimeSynth"} - set(scope.time_records))
    sizes = tuple(f"TimeSynth with {records:,} records: left out to save time." for records in left_out)
    return scope.explain_missing(("lsun", "s1")) + sizes


@dataclass(frozen=True, kw_only=True)
class NetworkTable:
    """Thesis table 8.6 (NMA) or 8.7 (AMN)."""

    name: str
    method: Method
    printed: dict[str, TimeRow]

    @property
    def title(self) -> str:
        """What it shows."""
        protocol = "NMA" if self.method == "mna" else "AMN"
        return f"Thesis table {self.name.removeprefix('table')}: time of an iteration, {protocol}, LAN and WAN (8.6)"

    def list_trials(self, scope: Scope) -> list[Trial]:
        """None: these are sessions."""
        return []

    def count_sessions(self, scope: Scope) -> int:
        """Each row that has data."""
        return scope.sessions * sum(data is not None for _, data in self._find_rows(scope))

    def _find_rows(self, scope: Scope) -> list[tuple[str, DataSet | None]]:
        rows: list[tuple[str, DataSet | None]] = []
        for name in self.printed:
            found: tuple[DataSet, ...] = (_SYNTH,) if name == "synth" else ()
            if name not in ("synth", "image"):
                found = scope.find_sets((name,))
            rows.append((name, found[0] if found else None))
        return rows

    def make(self, scope: Scope, lab: Lab) -> Product:
        """Time sessions with the published noise and assignment at epsilon 4."""
        lan_ms, wan_ms = compute_round_trip_ms("thesis-LAN"), compute_round_trip_ms("thesis-WAN")
        rows: list[tuple[Value, ...]] = []
        summary: list[tuple[Value, ...]] = []
        for name, data in self._find_rows(scope):
            printed = self.printed[name]
            shown = (
                f"{printed.lan_ms:g} ± {printed.lan_interval_ms:g}",
                f"{printed.wan_ms:g} ± {printed.wan_interval_ms:g}",
            )
            numbers = (printed.lan_ms, printed.lan_interval_ms, printed.wan_ms, printed.wan_interval_ms)
            if data is None:
                rows.append((name, None, None, None, None, None, *numbers))
                summary.append((f"{name} (not at hand)", None, None, shown[0], None, shown[1]))
                continue
            label = f"{self.name}: {data.label}"
            found = _measure(data, self.method, THESIS_EPSILON, scope.sessions, lab, label)
            cpu_ms = found.cpu_ms.mean
            named = data.label if name != "synth" else name
            rows.append(
                (
                    named,
                    cpu_ms,
                    found.cpu_ms.half_width,
                    found.noise_ms.mean,
                    cpu_ms + lan_ms,
                    cpu_ms + wan_ms,
                    *numbers,
                )
            )
            summary.append((named, found.noise_ms.mean, cpu_ms + lan_ms, shown[0], cpu_ms + wan_ms, shown[1]))
        columns = ("data", "cpu_ms", "cpu_ms_ci95", "noise_sampling_ms", "lan_ms", "wan_ms")
        printed_columns = ("printed_lan_ms", "printed_lan_ms_ci95", "printed_wan_ms", "printed_wan_ms_ci95")
        return Product(
            table=Table(columns=columns + printed_columns, rows=tuple(rows)),
            summary=Table(
                columns=("data", "noise ms, apart", "LAN ms", "printed LAN", "WAN ms", "printed WAN"),
                rows=tuple(summary),
            ),
            notes=(
                "CPU of all roles and one round trip: 1 ms (LAN), 100 ms (WAN). The assignment is the constrained one, "
                f"by flow. {scope.sessions} sessions. The set image is not at hand.",
            ),
        )


TABLE_8_6_ARTEFACT = NetworkTable(name="table8.6", method="mna", printed=TABLE_8_6)
TABLE_8_7_ARTEFACT = NetworkTable(name="table8.7", method="amn", printed=TABLE_8_7)
