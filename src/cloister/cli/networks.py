"""``cloister networks``: the network models that a simulation can time its messages with."""

from __future__ import annotations

from math import isinf


def networks() -> None:
    """List the network models."""
    from rich.box import SIMPLE_HEAD  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415

    from cloister.report.layout import make_console, print_line  # noqa: PLC0415
    from cloister.runtime.network import NETWORKS  # noqa: PLC0415 (not before it is needed)

    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for heading in ("name", "Mbit/s", "delay ms", "jitter ms", "loss %", "what it is", "source"):
        table.add_column(heading, justify="left" if heading in ("name", "what it is", "source") else "right")
    for name, model in NETWORKS.items():
        numbers = (model.bandwidth_mbps, model.delay_ms, model.jitter_ms, model.loss_percent)
        table.add_row(
            name,
            *("unlimited" if isinf(number) else f"{number:g}" for number in numbers),
            model.description,
            model.source,
        )
    console = make_console()
    console.print(table)
    console.print()
    print_line(
        console,
        'Vertical K-Means: Mazzone et al., "Privacy-Preserving Vertical K-Means Clustering", Table 1. '
        'FastLloyd: Diaa et al., "FastLloyd: Federated, Accurate, Secure, and Tunable k-Means Clustering with '
        'Differential Privacy". Thesis: "Differentially-Private Multiparty Clustering".',
    )
