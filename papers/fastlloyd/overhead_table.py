"""Table 3: time and bytes of an iteration, from real sessions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from papers.fastlloyd.datasets import DataSet, DrawnSet
from papers.fastlloyd.lab import Lab
from papers.fastlloyd.lines import FAILS
from papers.fastlloyd.printed_fastlloyd import TABLE_3, Overhead
from papers.fastlloyd.products import Product, Table, Value
from papers.fastlloyd.round_times import compute_round_trip_ms, measure_round
from papers.fastlloyd.scope import Scope
from papers.fastlloyd.trials import Trial


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
                label = "alg. 1" if method == "published" else "sound"
                found = measure_round(data, method, 1.0, scope.sessions, lab, f"{self.name}: {row.data}, {label}")
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
                        label,
                        f"{row.records:,}",
                        row.clusters,
                        row.dimensions,
                        total_ms,
                        found.noise_ms.mean,
                        row.time_ms,
                        f"{row.time_ms / total_ms:.1f}x",
                        int(sent),
                        row.bytes_sent,
                    )
                )
        return Product(
            table=Table(columns=_TABLE_3_COLUMNS, rows=tuple(rows)),
            summary=Table(
                columns=("data", "", "N", "k", "d", "ms", "+ noise", "printed", "faster", "bytes", "printed"),
                rows=tuple(summary),
                words=2,
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
