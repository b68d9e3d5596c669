"""Accuracy against k' as bars, with the printed numbers as rings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from papers.fastlloyd.drawing import BLACK, BLUE, GREY, ORANGE, RED, make_figure, save_figure, tidy_axes
from papers.secfc.printed import Printed
from papers.secfc.trials import Method

_COLOURS: dict[Method, str] = {"centralised": GREY, "k-fed": RED, "k-fed-repaired": ORANGE, "secfc": BLUE}


@dataclass(frozen=True, kw_only=True)
class Bar:
    """One cell of a table, in percent."""

    method: Method
    local_clusters: int
    percent: float
    spread: float
    printed: Printed | None


@dataclass(frozen=True, kw_only=True)
class Panel:
    """The cells of one data set."""

    title: str
    bars: tuple[Bar, ...]


def draw_panels(title: str, panels: Sequence[Panel], names: Mapping[Method, str]) -> bytes:
    """Draw one panel for each data set; returns a PNG file."""
    figure = make_figure(5.2 * len(panels), 3.9)
    width = 0.8 / len(names)
    for axes, panel in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
        places = {local: at for at, local in enumerate(dict.fromkeys(bar.local_clusters for bar in panel.bars))}
        for number, (method, name) in enumerate(names.items()):
            bars = [bar for bar in panel.bars if bar.method == method]
            x = np.array([places[bar.local_clusters] for bar in bars]) + (number - (len(names) - 1) / 2) * width
            axes.bar(
                x,
                [bar.percent for bar in bars],
                0.9 * width,
                yerr=np.nan_to_num([bar.spread for bar in bars]),
                color=_COLOURS[method],
                error_kw={"linewidth": 0.8},
                label=name,
            )
            shown = [(at, bar.printed.mean) for at, bar in zip(x, bars, strict=True) if bar.printed is not None]
            if shown:
                axes.plot(*zip(*shown, strict=True), "o", color=BLACK, markerfacecolor="white", markersize=4)
        axes.set_xticks(range(len(places)), [str(local) for local in places])
        axes.set_ylim(0, 105)
        tidy_axes(axes, title=panel.title, x="k', components that a client holds at most", y="accuracy, %")
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(names), fontsize=9, frameon=False)
    figure.suptitle(f"{title}. Rings: as printed.", fontsize=9, x=0.01, ha="left")
    return save_figure(figure)
