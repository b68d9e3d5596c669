"""Thesis tables 8.6 and 8.7: time of an iteration of NMA and AMN over a LAN and a WAN, from real sessions."""

from __future__ import annotations

from dataclasses import dataclass

from papers.fastlloyd.datasets import DataSet, DrawnSet
from papers.fastlloyd.lab import Lab
from papers.fastlloyd.printed_thesis import EPSILON, TABLE_8_6, TABLE_8_7, TimeRow
from papers.fastlloyd.products import Product, Table, Value
from papers.fastlloyd.round_times import compute_round_trip_ms, measure_round
from papers.fastlloyd.scope import Scope
from papers.fastlloyd.trials import Method, Trial

_SYNTH = DrawnSet(family="Synth", clusters=2, dimensions=2, records=5_000)


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
            found = measure_round(data, self.method, EPSILON, scope.sessions, lab, label)
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


NETWORK_TABLES = (
    NetworkTable(name="table8.6", method="mna", printed=TABLE_8_6),
    NetworkTable(name="table8.7", method="amn", printed=TABLE_8_7),
)
