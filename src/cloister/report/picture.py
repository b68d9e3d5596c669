"""The picture of a result: where the centres are, how much of that is noise, and their profiles.

A picture of records discloses them, so records are drawn only if they are passed in.
"""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from cloister.columns import Coordinate, clip_unit, column_highs, column_lows, show_date, to_unit
from cloister.errors import ConfigError, MissingExtraError
from cloister.late import load_late
from cloister.records import FloatArray
from cloister.report.layout import format_number, format_quantity, format_value, is_lost
from cloister.report.result import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

distance = load_late("scipy.spatial.distance")

# Okabe and Ito's colours, which all common kinds of colour vision distinguish; yellow last, as it is faint on white.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#5F5F5F", "#F0E442")
_FAINT = "#9A9A9A"
_WIDTH_PX, _CURVE_PX, _HEIGHT_PX, _DPI = 1200, 400, 500, 100
_MOST_NUMBERED = 30
_MOST_ANNOTATED = 90
_MOST_TICKS, _MOST_KS = 30, 12
_LONGEST_TICK = 9  # characters; five such labels fit side by side
_CANDIDATES = 12
_MOST_COMPARED = 500
_MOST = 0.5  # of all coordinates
_BESIDE_MARKER = 0.025  # of a column's range: a longer bar shows beside its centre's marker
_MOST_ROWS_WITH_NOISE, _MOST_COLUMNS_WITH_NOISE = 8, 5


def draw_picture(result: Result, *, records: FloatArray | None = None) -> bytes:
    """Return `make_figure` as a PNG file of 1200 x 500 pixels, or of 1600 x 500 with the curve if k was chosen."""
    out = io.BytesIO()
    make_figure(result, records=records).savefig(out, format="png", dpi=_DPI, metadata={"Software": None})
    return out.getvalue()


def make_figure(result: Result, *, records: FloatArray | None = None) -> Any:
    """Draw a result: its centres, their profiles, and the curve if k was chosen.

    Parameters
    ----------
    result
        What a run returned.
    records
        (n, d) in original units, drawn lightly in the colour of their nearest centre. Only pass records that
        everyone who sees the picture may see.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    """
    if records is not None and (records.ndim != 2 or records.shape[1] != len(result.coordinates)):
        raise ConfigError(f"records must have {len(result.coordinates)} coordinates; got shape {records.shape}.")
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415 (optional)
        from matplotlib.figure import Figure  # noqa: PLC0415 (optional)
        from matplotlib.layout_engine import ConstrainedLayoutEngine  # noqa: PLC0415 (optional)
    except ImportError:
        raise MissingExtraError("the picture", "matplotlib", "report") from None
    layout = ConstrainedLayoutEngine(w_pad=0.1, h_pad=0.1)
    width_px = _WIDTH_PX + (_CURVE_PX if result.curve else 0)
    figure = Figure(figsize=(width_px / _DPI, _HEIGHT_PX / _DPI), dpi=_DPI, layout=layout)
    FigureCanvasAgg(figure)
    panels = 3 if result.curve else 2
    where, profiles, *others = figure.subplots(1, panels, width_ratios=(3, 3, 2)[:panels])
    _draw_centres(where, result, records)
    _draw_profiles(figure, profiles, result)
    for axes in others:
        _draw_curve(axes, result)
    shown = "; the records drawn are not private" if records is not None and result.card is not None else ""
    figure.suptitle(_title(result) + shown, fontsize=10, x=0.01, ha="left", fontweight="bold", parse_math=False)
    return figure


def _title(result: Result) -> str:
    """Name the result and what it promises, since a picture may be passed on without its report."""
    card = result.card
    if card is None:
        promise = "exact, not differentially private"
    elif card.scope:
        promise = "centres with noise, not differentially private as a whole"
    elif card.flaw:
        promise = "as published, a guarantee that DOES NOT HOLD"
    elif card.is_weak:
        promise = f"NO PROTECTION CLAIMED, epsilon {format_number(card.epsilon, 3)}"
    elif not card.private:
        promise = "a seeded study, not private"
    else:
        promise = f"differentially private, epsilon {format_number(card.epsilon, 3)}"
    centres, parties = format_quantity(result.k, "centre"), format_quantity(len(result.party_names), "party", "parties")
    return f"{result.name}: {centres}, {parties}; {result.ran}; {promise}{_name_mostly_noise(result)}"


def _name_mostly_noise(result: Result) -> str:
    """Say whether the centres are mostly noise, or how many of them are in some column or by their size."""
    if result.mostly_noise.mean() >= _MOST:
        return "; MOSTLY NOISE"
    lost = int((result.mostly_noise.any(axis=1) | _find_lost_sizes(result)).sum())
    return f"; {lost:,} OF {result.k:,} CENTRES MAY BE NOISE" if lost else ""


def choose_columns(centres: FloatArray) -> tuple[int, int]:
    """Return the two columns in which the two closest centres, in unit scaling, lie furthest apart."""
    d = centres.shape[1]
    if d == 1 or centres.shape[0] == 1:
        return 0, min(1, d - 1)
    centres = centres[:: -(-len(centres) // _MOST_COMPARED)]  # all pairs are compared
    candidates = sorted(np.argsort(-np.var(centres, axis=0), kind="stable")[:_CANDIDATES].tolist())
    x, y = max(combinations(candidates, 2), key=lambda pair: float(distance.pdist(centres[:, list(pair)]).min()))
    return int(x), int(y)


def _draw_centres(axes: Axes, result: Result, records: FloatArray | None) -> None:
    """Draw numbered centres within the public bounds of two columns; a single column becomes a line."""
    x, y = choose_columns(to_unit(result.centres, result.coordinates))
    flat = x == y
    colours = _choose_colours(result.k)
    if records is not None and len(records):
        labels = _find_labels(records, result)
        heights = np.zeros(len(records)) if flat else records[:, y]
        axes.scatter(records[:, x], heights, s=9, c=colours[labels], alpha=0.35, linewidths=0, rasterized=True)
    heights = np.zeros(result.k) if flat else result.centres[:, y]
    numbered = result.k <= _MOST_NUMBERED
    size = 230 if numbered else 40
    edge = 1.6 if numbered else 0.6
    lost = result.mostly_noise[:, [x, y]].any(axis=1) | _find_lost_sizes(result)
    faces, edges = np.where(lost[:, None], 1.0, colours), np.where(lost[:, None], colours, 1.0)
    axes.scatter(result.centres[:, x], heights, s=size, c=faces, edgecolors=edges, linewidths=edge, zorder=3)
    shows_noise = _draw_noise(axes, result, x, None if flat else y, colours)
    if numbered:
        for j, (at_x, at_y) in enumerate(zip(result.centres[:, x], heights, strict=True)):
            ink = _choose_ink(faces[j])
            label = axes.annotate(str(j), (at_x, at_y), ha="center", va="center", color=ink, fontsize=9, zorder=4)
            label.set_fontweight("bold")
    axis_x, axis_y = result.coordinates[x], result.coordinates[y]
    axes.set_xlim(*_widen_bounds(axis_x))
    _set_ticks(axes.xaxis, axis_x)
    axes.set_xlabel(_escape(axis_x.name))
    if flat:
        axes.set_yticks([])
        axes.spines["left"].set_visible(False)
    else:
        axes.set_ylim(*_widen_bounds(axis_y))
        _set_ticks(axes.yaxis, axis_y)
        axes.set_ylabel(_escape(axis_y.name))
    shown = "no records drawn" if records is None else f"{format_quantity(len(records), 'record')} drawn"
    noise = ["bars: ± of the noise"] * shows_noise + ["hollow: may be noise"] * bool(lost.any())
    lines = [f"Centres within the public bounds ({shown})", _explain_columns(result), "; ".join(noise).capitalize()]
    axes.set_title("\n".join(filter(None, lines)), fontsize=10, loc="left")
    axes.grid(color="#E6E6E6", linewidth=0.7)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def _find_lost_sizes(result: Result) -> Any:
    """Return which clusters' sizes are lost in the noise: such a cluster may not be there at all."""
    sizes = result.sizes
    return np.zeros(result.k, dtype=bool) if sizes is None else list(map(is_lost, sizes.clusters, sizes.noise))


def _draw_noise(axes: Axes, result: Result, x: int, y: int | None, colours: Any) -> bool:
    """Draw a bar of one standard deviation each way where it shows beside the marker; return whether one does."""
    if result.centre_noise is None:
        return False
    drawn = False
    for j, centre in enumerate(result.centres):
        for column in (x,) if y is None else (x, y):
            noise, bounds = result.centre_noise[j, column], result.coordinates[column]
            if noise < _BESIDE_MARKER * (bounds.high - bounds.low):
                continue
            along = "xerr" if column == x else "yerr"
            at = (centre[x], 0.0 if y is None else centre[y])
            axes.errorbar(*at, **{along: noise}, color=colours[j], capsize=3, elinewidth=1.2, zorder=2)
            drawn = True
    return drawn


def _explain_columns(result: Result) -> str:
    """Explain which columns are drawn; empty if there are no others."""
    d = len(result.coordinates)
    if d <= 2:
        return ""
    if result.k == 1:
        return f"Drawn: the first 2 of {d:,} columns"
    return f"Drawn: the 2 of {d:,} columns that best separate the closest centres"


def _set_ticks(axis: Axis, column: Coordinate) -> None:
    """Put round numbers on an axis, few enough not to overlap."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator  # noqa: PLC0415 (optional)

    decimals = max(0, 1 - math.floor(math.log10(column.high - column.low)))

    def write(value: float, _: int | None = None) -> str:
        if column.kind == "date":
            return show_date(value)
        if column.kind != "number":
            return f"{100 * value:.0f} %"
        text = f"{value:,.{decimals}f}"
        return text if len(text) <= 2 * _LONGEST_TICK else f"{value:.3g}"

    longest = max(len(write(column.low)), len(write(column.high)))
    bins, least = (5, 3) if longest <= _LONGEST_TICK else (3, 2)
    axis.set_major_locator(MaxNLocator(bins, steps=[1, 2, 5, 10], min_n_ticks=least))
    axis.set_major_formatter(FuncFormatter(write))
    axis.set_tick_params(labelsize=9)


def _widen_bounds(column: Coordinate) -> tuple[float, float]:
    """Return the ends of an axis: the public bounds, with room for a marker on them."""
    margin = 0.04 * (column.high - column.low)
    return column.low - margin, column.high + margin


def _name_columns(axes: Axes, columns: Sequence[Coordinate]) -> None:
    """Write the columns' names below, steep where they need room."""
    steep = max(len(column.name) for column in columns) * len(columns) > 60
    names = [_escape(column.name, 20 if steep else 24) for column in columns]
    axes.set_xticks(
        range(len(names)), names, rotation=40 if steep else 0, ha="right" if steep else "center", fontsize=9
    )


def _write_values(axes: Axes, result: Result, share: FloatArray) -> None:
    """Write each centre's values into its row; on white where they are mostly noise."""
    k, d = result.centres.shape
    for j in range(k):
        for i in range(d):
            ink = "white" if share[j, i] > 0.68 else "black"
            text = axes.text(i, j, _label_cell(result, j, i), ha="center", va="center", color=ink)
            text.set_fontsize(10 if d <= 6 else 8)
            if result.mostly_noise[j, i]:
                text.set_bbox({"facecolor": "white", "edgecolor": "none", "pad": 1.5})
                text.set_color("black")


def _draw_profiles(figure: Figure, axes: Axes, result: Result) -> None:
    """Draw each centre as a row, coloured by its position between the bounds, with values in original units."""
    from matplotlib.patches import Rectangle  # noqa: PLC0415 (optional)

    k, d = result.centres.shape
    lows, highs = column_lows(result.coordinates), column_highs(result.coordinates)
    share = (result.centres - lows) / (highs - lows)
    image = axes.imshow(share, aspect="auto", cmap="Blues", vmin=-0.08, vmax=1.15, interpolation="nearest")
    annotated = k * d <= _MOST_ANNOTATED and d <= 10 and k <= 16
    lost = result.mostly_noise
    for j, i in np.argwhere(lost).tolist():
        axes.add_patch(Rectangle((i - 0.5, j - 0.5), 1, 1, fill=False, hatch="///", edgecolor=_FAINT, linewidth=0))
    if annotated:
        _write_values(axes, result, share)
    if d <= _MOST_TICKS:
        _name_columns(axes, result.coordinates)
    if k <= _MOST_TICKS:
        axes.set_yticks(range(k), [f"cluster {j}" for j in range(k)], fontsize=9)
    axes.tick_params(which="both", length=0)
    axes.spines[:].set_visible(False)
    title = "Profile of each centre" + (", values in original units" if annotated else " between the bounds")
    if annotated and "±" in _label_cell(result, 0, 0):
        title += ", ± of the noise"
    if lost.any():
        title += "; hatched: mostly noise"
    axes.set_title(title, fontsize=10, loc="left")
    if k <= _MOST_TICKS and d <= _MOST_TICKS:
        axes.set_xticks(np.arange(d + 1) - 0.5, minor=True)
        axes.set_yticks(np.arange(k + 1) - 0.5, minor=True)
        axes.grid(which="minor", color="white", linewidth=2)
    bar = figure.colorbar(image, ax=axes, ticks=[0, 0.5, 1], pad=0.02, aspect=30)
    bar.ax.set_ylim(0, 1)
    bar.ax.tick_params(length=0)
    bar.ax.set_yticklabels(["low", "middle", "high"], fontsize=8)
    bar.outline.set_visible(False)


def _label_cell(result: Result, j: int, i: int) -> str:
    """Return a coordinate in original units, with its noise below it where there is room."""
    if result.centre_noise is None:
        return format_value(float(result.centres[j, i]), result.coordinates[i])
    text = format_value(float(result.centres[j, i]), result.coordinates[i], float(result.centre_noise[j, i]))
    value, noise = text.split(" ± ")
    k, d = result.centres.shape
    return f"{value}\n± {noise}" if k <= _MOST_ROWS_WITH_NOISE and d <= _MOST_COLUMNS_WITH_NOISE else value


def _draw_curve(axes: Axes, result: Result) -> None:
    """Draw the score over k with the chosen k marked, and the loss faintly behind it on its own scale."""
    tried = sorted(result.curve, key=lambda choice: choice.k)
    ks = [choice.k for choice in tried]
    behind = axes.twinx()
    behind.plot(ks, [choice.loss for choice in tried], color=_FAINT, linewidth=1.2, linestyle="--")
    behind.set_ylabel("loss (dashed)", fontsize=9, color=_FAINT)
    behind.tick_params(axis="y", labelsize=8, colors=_FAINT, length=0)
    behind.spines[:].set_visible(False)
    axes.plot(ks, [choice.score for choice in tried], color=_COLOURS[0], linewidth=1.6, marker="o", markersize=4)
    chosen = next(choice for choice in tried if choice.k == result.k)
    axes.scatter([chosen.k], [chosen.score], s=90, color=_COLOURS[1], edgecolors="white", linewidths=1.4, zorder=3)
    axes.set_xlabel("k")
    axes.set_ylabel("score", fontsize=9)
    axes.tick_params(labelsize=8)
    axes.set_xticks(ks[:: -(-len(ks) // _MOST_KS)])
    axes.set_title(f"Choice of k: {result.k}", fontsize=10, loc="left")
    axes.grid(color="#E6E6E6", linewidth=0.7)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def _choose_colours(k: int) -> Any:
    """Return one colour per centre: the eight fixed ones, or steps of viridis if there are more centres."""
    from matplotlib import colormaps  # noqa: PLC0415 (optional)
    from matplotlib.colors import to_rgba_array  # noqa: PLC0415 (optional)

    if k <= len(_COLOURS):
        return to_rgba_array(_COLOURS[:k])
    return colormaps["viridis"](np.linspace(0, 0.95, k))


def _choose_ink(colour: Any) -> str:
    """Return black or white, whichever is easier to read on a colour (by relative luminance)."""
    luminance = float(np.dot(colour[:3], (0.2126, 0.7152, 0.0722)))
    return "black" if luminance > 0.5 else "white"


def _find_labels(records: FloatArray, result: Result) -> Any:
    """Label records by their nearest centre in unit scaling."""
    from cloister.kmeans import nearest  # noqa: PLC0415 (numba takes a second to load)

    points = clip_unit(to_unit(records, result.coordinates), result.coordinates)
    return nearest(points, to_unit(result.centres, result.coordinates)).labels


def _escape(name: str, longest: int = 24) -> str:
    """Keep matplotlib from reading dollar signs as mathematics, and shorten what would not fit."""
    shown = name if len(name) <= longest else name[: longest - 3] + "..."
    return shown.replace("$", r"\$")
