"""Time and bytes of an iteration from real sessions: FastLloyd's table 3, and thesis tables 8.6 and 8.7."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from papers.fastlloyd import printed
from papers.fastlloyd.datasets import DataSet, DrawnSet, Scope
from papers.fastlloyd.lines import FAILS
from papers.fastlloyd.printed import TABLE_3, Overhead, TimeRow
from papers.fastlloyd.sessions import RoundTime, compute_round_trip_ms, measure_round
from papers.fastlloyd.trials import Method, Score, Trial, TrialLab
from papers.lab.paper import Artefact
from papers.lab.products import Product, Table, Value

_SYNTH = DrawnSet(family="Synth", clusters=2, dimensions=2, records=5_000)
_METHODS: dict[Method, str] = {"published": "alg. 1", "sound": "sound"}


@dataclass(frozen=True, kw_only=True)
class _Timed:
    """One row of table 3 with one method."""

    row: Overhead
    method: Method
    found: RoundTime
    lan_ms: float

    @property
    def total_ms(self) -> float:
        """CPU and network."""
        return self.found.cpu_ms.mean + self.lan_ms

    @property
    def bytes_all(self) -> float:
        """Of both clients, both ways."""
        return 2 * (self.found.traffic.up + self.found.traffic.down)


@dataclass(frozen=True, kw_only=True)
class OverheadTable(Artefact[Scope, Trial, Score]):
    """FastLloyd's table 3."""

    name: str = "table3"
    title: str = "Table 3: time and bytes of an iteration, two clients, LAN of 0.5 ms a send (FastLloyd 6.3)"

    def count_sessions(self, scope: Scope) -> int:
        """Each row with both methods."""
        return len(_METHODS) * scope.sessions * len(_find_rows(scope))

    def make(self, scope: Scope, lab: TrialLab) -> Product:
        """Time algorithm 1 as published, with its flow, and the sound default."""
        timed = [
            _Timed(
                row=row,
                method=method,
                found=measure_round(data, method, 1.0, scope.sessions, lab, f"{self.name}: {row.data}, {label}"),
                lan_ms=compute_round_trip_ms("fastlloyd-LAN"),
            )
            for row, data in _find_rows(scope)
            for method, label in _METHODS.items()
        ]
        return Product(
            table=Table.of(
                timed,
                {
                    "data": lambda each: each.row.data,
                    "records": lambda each: each.row.records,
                    "clusters": lambda each: each.row.clusters,
                    "dimensions": lambda each: each.row.dimensions,
                    "method": lambda each: each.method,
                    "guarantee": lambda each: FAILS if each.method == "published" else "holds",
                    "cpu_ms": lambda each: each.found.cpu_ms.mean,
                    "cpu_ms_ci95": lambda each: each.found.cpu_ms.half_width,
                    "noise_sampling_ms": lambda each: each.found.noise_ms.mean,
                    "lan_ms": lambda each: each.lan_ms,
                    "total_ms": lambda each: each.total_ms,
                    "bytes_up_per_party": lambda each: each.found.traffic.up,
                    "bytes_down_per_party": lambda each: each.found.traffic.down,
                    "bytes_all": lambda each: each.bytes_all,
                    "ring_bits": lambda each: each.found.traffic.ring_bits,
                    "printed_ms": lambda each: each.row.time_ms,
                    "printed_ms_ci95": lambda each: each.row.interval_ms,
                    "printed_bytes": lambda each: each.row.bytes_sent,
                    "printed_mohlloyd_ms": lambda each: each.row.mohassel_ms,
                },
            ),
            summary=Table.of(
                timed,
                {
                    "data": lambda each: each.row.data,
                    "": lambda each: _METHODS[each.method],
                    "N": lambda each: f"{each.row.records:,}",
                    "k": lambda each: each.row.clusters,
                    "d": lambda each: each.row.dimensions,
                    "ms": lambda each: each.total_ms,
                    "+ noise": lambda each: each.found.noise_ms.mean,
                    "printed": lambda each: each.row.time_ms,
                    "faster": lambda each: f"{each.row.time_ms / each.total_ms:.1f}x",
                    "bytes": lambda each: int(each.bytes_all),
                    "printed bytes": lambda each: each.row.bytes_sent,
                },
                words=2,
            ),
            notes=(
                "ms: CPU of both clients and the server, added up, and the LAN; '+ noise': drawing exact noise, apart. "
                "Bytes: all messages of a round, both clients, both ways, envelopes included; the printed ones are the "
                f"numbers alone, 8 bytes each. {scope.sessions} sessions; the paper's machine was an M2 Max.",
                *_explain_missing(scope),
            ),
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
class NetworkTable(Artefact[Scope, Trial, Score]):
    """Thesis table 8.6 (NMA) or 8.7 (AMN)."""

    method: Method
    printed: Mapping[str, TimeRow] = field(repr=False)

    def count_sessions(self, scope: Scope) -> int:
        """Each row that has data."""
        return scope.sessions * sum(data is not None for data in self._find_rows(scope).values())

    def _find_rows(self, scope: Scope) -> dict[str, DataSet | None]:
        rows: dict[str, DataSet | None] = dict.fromkeys(self.printed)
        rows |= {data.name: data for data in scope.find_sets([name for name in rows if name not in ("synth", "image")])}
        return rows | {"synth": _SYNTH}

    def make(self, scope: Scope, lab: TrialLab) -> Product:
        """Time sessions with the published noise and assignment at epsilon 4."""
        lan_ms, wan_ms = compute_round_trip_ms("thesis-LAN"), compute_round_trip_ms("thesis-WAN")
        rows: list[tuple[Value, ...]] = []
        summary: list[tuple[Value, ...]] = []
        for name, data in self._find_rows(scope).items():
            row = self.printed[name]
            numbers = (row.lan_ms, row.lan_interval_ms, row.wan_ms, row.wan_interval_ms)
            shown = (f"{row.lan_ms:g} ± {row.lan_interval_ms:g}", f"{row.wan_ms:g} ± {row.wan_interval_ms:g}")
            if data is None:
                rows.append((name, None, None, None, None, None, *numbers))
                summary.append((f"{name} (not available)", None, None, shown[0], None, shown[1]))
                continue
            label = f"{self.name}: {data.label}"
            found = measure_round(data, self.method, printed.EPSILON, scope.sessions, lab, label)
            cpu, noise = found.cpu_ms, found.noise_ms
            named = data.label if name != "synth" else name
            over_lan, over_wan = cpu.mean + lan_ms, cpu.mean + wan_ms
            rows.append((named, cpu.mean, cpu.half_width, noise.mean, over_lan, over_wan, *numbers))
            summary.append((named, noise.mean, over_lan, shown[0], over_wan, shown[1]))
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
                f"by flow. {scope.sessions} sessions. The set image is not available.",
            ),
        )


NETWORK_TABLES = (
    NetworkTable(
        name="table8.6",
        title="Thesis table 8.6: time of an iteration, NMA, LAN and WAN (8.6)",
        method="mna",
        printed=printed.TABLE_8_6,
    ),
    NetworkTable(
        name="table8.7",
        title="Thesis table 8.7: time of an iteration, AMN, LAN and WAN (8.6)",
        method="amn",
        printed=printed.TABLE_8_7,
    ),
)
