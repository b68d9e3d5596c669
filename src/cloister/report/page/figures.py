"""The drawings: each column's profile, the map of two columns, and the curve of the choice of k.

All are drawn here. The script moves the marks of the map to other columns; it is given their places.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial

import numpy as np

from cloister.columns import column_slices, to_unit
from cloister.report.centres import LevelShares, find_shares, format_share
from cloister.report.page.groups import format_mean, format_own
from cloister.report.page.html import Html, join, tag
from cloister.report.page.marks import COLOURS, Scale, draw_key, draw_mark
from cloister.report.page.view import View
from cloister.report.picture import choose_columns

_PANELS_MOST = 40
_POINTS_MOST = 1500
_FOCUS_MOST = 150
_LANE, _APART = 15.0, 14.0
_PANEL_WIDTH, _PANEL_LEFT, _PANEL_RIGHT = 360.0, 14.0, 346.0
_MAP_WIDTH, _MAP_HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 560.0, 430.0, 64.0, 546.0, 12.0, 384.0
_MAP_CLUSTERS_MOST = 300
_BAR, _BAR_LEFT, _BARS_MOST, _LEVELS_MOST = 22.0, 28.0, 30, 12


def show_profiles(view: View) -> Html:
    """Return a panel for each column, with every cluster's mark and the spread of its noise."""
    mean = "The dashed line is the mean of all records. " if view.means is not None else ""
    noise = "A whisker is one standard deviation of the noise each way. " if view.noise is not None else ""
    drawn = _list_panels(view)
    most = max(1, min(_PANELS_MOST, _POINTS_MOST // view.result.k))
    more = len(drawn) - most
    return tag(
        "section",
        tag("h2", "Profiles"),
        tag("p", f"One panel for each column. {noise}{mean}", class_="lead"),
        _show_legend(view),
        tag("div", [draw() for draw in drawn[:most]], class_="panels"),
        tag("p", f"{more:,} more columns are in the table below.") if more > 0 else None,
        id="profiles",
    )


def _list_panels(view: View) -> list[Callable[[], Html]]:
    """Return what draws each column: a category by the shares of its levels, all else by marks on an axis."""
    result = view.result
    shares = find_shares(result)
    panels: list[Callable[[], Html]] = []
    for column, place in zip(result.columns, column_slices(result.columns), strict=True):
        own = shares.get(column.name)
        draw = partial(_draw_panel, view, place.start) if own is None else partial(_draw_shares, view, own)
        panels.append(draw)
    return panels


def _draw_shares(view: View, own: LevelShares) -> Html:
    """Draw a category: a bar for each cluster, cut into the shares of its levels."""
    shown = view.clusters[:_BARS_MOST]
    bars = []
    for n, cluster in enumerate(shown):
        j, left, y = cluster.number, _BAR_LEFT, 6.0 + _BAR * n
        parts = [draw_mark(j, 14.0, y + 8.0, hollow=cluster.is_lost)]
        for level, name in enumerate(own.levels):
            width = float(own.shares[j, level]) * (_PANEL_RIGHT - _BAR_LEFT)
            title = tag("title", f"cluster {j}: {name} {format_share(own, j, level)}")
            parts.append(
                tag("rect", title, class_=f"level l{level % 6}", x=left, y=y, width=max(width, 0.0), height=_BAR - 6.0)
            )
            left += width
        bars.append(tag("g", parts))
    keys = [tag("li", tag("span", class_=f"swatch l{n % 6}"), name) for n, name in enumerate(own.levels[:_LEVELS_MOST])]
    said = "; ".join(
        f"cluster {c.number}: "
        + ", ".join(f"{name} {format_share(own, c.number, n)}" for n, name in enumerate(own.levels))
        for c in shown[:12]
    )
    height = 10.0 + _BAR * len(shown)
    drawing = tag(
        "svg", bars, viewbox=f"0 0 {_PANEL_WIDTH:g} {height:g}", role="img", aria_label=f"{own.column}: {said}"
    )
    return tag("figure", tag("figcaption", own.column), drawing, tag("ul", keys, class_="levels"), class_="panel")


def _show_legend(view: View) -> Html:
    keys = [tag("li", draw_key(c.number, hollow=_is_doubtful(view, c.number)), str(c.number)) for c in view.clusters]
    return tag("ul", keys, class_="legend", aria_label="Marks of the clusters")


def _is_doubtful(view: View, j: int) -> bool:
    lost = next(cluster.is_lost for cluster in view.clusters if cluster.number == j)
    return lost or bool(view.result.mostly_noise[j].any())


def _draw_panel(view: View, i: int) -> Html:
    """Draw one column: marks that would overlap stand one above the other."""
    result = view.result
    axis = view.axes[i]
    scale = _make_scale(view, i, _PANEL_LEFT, _PANEL_RIGHT)
    places = [scale.place(float(value)) for value in result.centres[:, i]]
    lanes = _choose_lanes(places)
    bottom = 14.0 + _LANE * (max(lanes) + 1)
    marks = [
        _draw_point(view, j, i, scale, place, bottom - 8.0 - _LANE * lane)
        for j, (place, lane) in enumerate(zip(places, lanes, strict=True))
    ]
    said = "; ".join(f"cluster {j}: {format_own(view, j, i)}" for j in range(min(result.k, 12)))
    drawing = tag(
        "svg",
        _draw_mean(view, i, scale, bottom),
        _draw_axis(scale, bottom),
        marks,
        viewbox=f"0 0 {_PANEL_WIDTH:g} {bottom + 24:g}",
        role="group" if _may_focus(view) else "img",
        aria_label=f"{axis.name}: {said}" + ("; more in the table" if result.k > 12 else ""),
    )
    return tag("figure", tag("figcaption", axis.name), drawing, class_="panel")


def _choose_lanes(places: list[float]) -> list[int]:
    """Return a lane for each mark in which it touches no other."""
    ends: list[float] = []
    lanes = [0] * len(places)
    for j in sorted(range(len(places)), key=places.__getitem__):
        lane = next((n for n, end in enumerate(ends) if places[j] - end >= _APART), len(ends))
        ends[lane : lane + 1] = [places[j]]
        lanes[j] = lane
    return lanes


def _may_focus(view: View) -> bool:
    return view.result.centres.size <= _FOCUS_MOST


def _draw_point(view: View, j: int, i: int, scale: Scale, x: float, y: float) -> Html:
    said = f"cluster {j}, {view.axes[i].name}: {format_own(view, j, i)}"
    whisker = None
    if view.noise is not None:
        value, noise = float(view.result.centres[j, i]), float(view.noise[j, i])
        ends = scale.place(value - noise), scale.place(value + noise)
        whisker = tag("line", class_=f"whisker c{j % COLOURS}", x1=ends[0], x2=ends[1], y1=y, y2=y)
    focus = {"tabindex": "0", "role": "img", "aria_label": said} if _may_focus(view) else {}
    mark = draw_mark(j, x, y, hollow=bool(view.result.mostly_noise[j, i]))
    return tag("g", whisker, mark, tag("title", said), class_="point", **focus)


def _draw_mean(view: View, i: int, scale: Scale, bottom: float) -> Html | None:
    if view.means is None or view.result.k == 1:
        return None
    x = scale.place(float(view.means[i]))
    title = tag("title", f"all records: {format_mean(view, i)}")
    return tag("g", tag("line", class_="mean", x1=x, x2=x, y1=2.0, y2=bottom), title)


def _draw_axis(scale: Scale, y: float) -> Html:
    ticks = [
        join(
            tag("line", class_="tick", x1=scale.place(number), x2=scale.place(number), y1=y, y2=y + 4),
            tag("text", text, class_="tick", x=scale.place(number), y=y + 17, text_anchor="middle"),
        )
        for number, text in scale.ticks()
    ]
    return tag("g", tag("line", class_="axis", x1=scale.start, x2=scale.end, y1=y, y2=y), ticks, aria_hidden="true")


def show_map(view: View) -> Html | None:
    """Return the clusters in two columns, which the script lets the reader choose."""
    result = view.result
    if len(view.axes) < 2 or result.k > _MAP_CLUSTERS_MOST:
        return None
    x, y = choose_columns(to_unit(result.centres, view.axes))
    around = "An ellipse is one standard deviation of the noise each way. " if view.noise is not None else ""
    which = "Shown first are the columns that part the closest clusters." if len(view.axes) > 2 else ""
    return tag(
        "section",
        tag("h2", "Map"),
        tag("p", f"The centres in two columns. {around}{which}", class_="lead"),
        _show_choice(view, x, y) if len(view.axes) > 2 else None,
        tag("figure", _draw_map(view, x, y), class_="map"),
        tag("script", Html(_list_places(view)), type="application/json", id="places"),
        id="map",
    )


def _show_choice(view: View, x: int, y: int) -> Html:
    """Return the two lists of columns; shown where the script runs."""
    boxes = []
    for axis, chosen, name in (("x", x, "Across"), ("y", y, "Up")):
        options = [tag("option", column.name, value=str(i), selected=i == chosen) for i, column in enumerate(view.axes)]
        boxes.append(tag("label", f"{name} ", tag("select", options, data_axis=axis)))
    return tag("p", boxes, class_="choice scripted")


def _draw_map(view: View, x: int, y: int) -> Html:
    result = view.result
    across, up = _make_scale(view, x, _LEFT, _RIGHT), _make_scale(view, y, _BOTTOM, _TOP)
    points = []
    for j in range(result.k):
        at = across.place(float(result.centres[j, x])), up.place(float(result.centres[j, y]))
        ellipse = None
        if view.noise is not None:
            rx = float(view.noise[j, x]) / _width(view, x) * (_RIGHT - _LEFT)
            ry = float(view.noise[j, y]) / _width(view, y) * (_BOTTOM - _TOP)
            ellipse = tag("ellipse", class_=f"noise c{j % COLOURS}", rx=min(rx, _MAP_WIDTH), ry=min(ry, _MAP_HEIGHT))
        label = tag("text", str(j), class_="number", x=9, y=-7) if result.k <= 40 else None
        said = f"cluster {j}: {view.axes[x].name} {format_own(view, j, x)}"
        said += f", {view.axes[y].name} {format_own(view, j, y)}"
        mark = draw_mark(j, hollow=_is_doubtful(view, j))
        place = f"translate({at[0]:.2f},{at[1]:.2f})"
        points.append(tag("g", ellipse, mark, label, tag("title", said), class_="point", transform=place))
    return tag(
        "svg",
        tag("rect", class_="frame", x=_LEFT, y=_TOP, width=_RIGHT - _LEFT, height=_BOTTOM - _TOP),
        tag("g", _draw_ticks(across, up), class_="ticks"),
        tag("text", view.axes[x].name, class_="title", x=(_LEFT + _RIGHT) / 2, y=_BOTTOM + 38, data_of="x"),
        tag(
            "text",
            view.axes[y].name,
            class_="title",
            transform=f"translate(14,{(_TOP + _BOTTOM) / 2:g}) rotate(-90)",
            data_of="y",
        ),
        tag("clipPath", tag("rect", x=_LEFT, y=_TOP, width=_RIGHT - _LEFT, height=_BOTTOM - _TOP), id="inside"),
        tag("g", points, class_="points"),
        viewbox=f"0 0 {_MAP_WIDTH:g} {_MAP_HEIGHT:g}",
        role="img",
        aria_label=f"Map of {result.k} centres; every number is in the table of all numbers",
    )


def _draw_ticks(across: Scale, up: Scale) -> list[Html]:
    below = [
        tag("text", text, class_="tick", x=across.place(number), y=_BOTTOM + 17, text_anchor="middle")
        for number, text in across.ticks()
    ]
    beside = [
        tag("text", text, class_="tick", x=_LEFT - 7, y=up.place(number) + 4, text_anchor="end")
        for number, text in up.ticks()
    ]
    return below + beside


def _make_scale(view: View, i: int, start: float, end: float) -> Scale:
    low, high = view.find_range(i)
    return Scale(low, high, start, end, view.axes[i].kind)


def _width(view: View, i: int) -> float:
    low, high = view.find_range(i)
    return high - low


def _list_places(view: View) -> str:
    """Return, for the script, where each mark is on each column's axis: from 0 to 1, as everything else in it."""
    result = view.result
    columns = []
    for i, column in enumerate(view.axes):
        unit = _make_scale(view, i, 0.0, 1.0)
        columns.append(
            {
                "name": column.name,
                "at": [round(unit.place(float(value)), 5) for value in result.centres[:, i]],
                "noise": None if view.noise is None else np.round(view.noise[:, i] / _width(view, i), 5).tolist(),
                "ticks": [[round(unit.place(number), 5), text] for number, text in unit.ticks()],
                "said": [format_own(view, j, i) for j in range(result.k)],
            }
        )
    frame = {"left": _LEFT, "right": _RIGHT, "top": _TOP, "bottom": _BOTTOM}
    text = json.dumps({"columns": columns, "frame": frame}, ensure_ascii=True, separators=(",", ":"))
    return text.replace("<", "\\u003c")  # so that no name of a column ends the script


def show_curve(view: View) -> Html | None:
    """Return the score of each k that was tried; None if k was given."""
    result = view.result
    if len(result.curve) < 2:
        return None
    tried = sorted(result.curve, key=lambda choice: choice.k)
    scores = np.array([choice.score for choice in tried])
    low, high = float(scores.min()), float(scores.max())
    left, right, top, bottom = 24.0, 540.0, 16.0, 150.0
    first, last = tried[0].k, tried[-1].k
    places = [
        (
            left + (choice.k - first) / (last - first) * (right - left),
            bottom - (choice.score - low) / max(high - low, 1e-300) * (bottom - top),
        )
        for choice in tried
    ]
    line = tag("path", class_="curve", d="M" + "L".join(f"{x:.1f},{y:.1f}" for x, y in places))
    step = -(-len(tried) // 12)
    ticks = [
        tag("text", str(choice.k), class_="tick", x=x, y=bottom + 22, text_anchor="middle")
        for n, (choice, (x, _)) in enumerate(zip(tried, places, strict=True))
        if n % step == 0 or choice.k == result.k
    ]
    dots = [
        tag(
            "g",
            tag(
                "circle",
                class_="chosen" if choice.k == result.k else "tried",
                cx=x,
                cy=y,
                r=7 if choice.k == result.k else 3.5,
            ),
            tag("title", f"k = {choice.k}: score {choice.score:.4g}, loss {choice.loss:.4g}"),
        )
        for choice, (x, y) in zip(tried, places, strict=True)
    ]
    said = f"Score of k from {first} to {last}; the largest, at k = {result.k}, was chosen"
    return tag(
        "section",
        tag("h2", "Choosing k"),
        tag(
            "p",
            f"k = {result.k} has the largest score of {first} to {last}. Scores are from the noisy histogram, which "
            "was released anyway, so the choice cost no privacy.",
            class_="lead",
        ),
        tag("figure", tag("svg", line, dots, ticks, viewbox="0 0 560 180", role="img", aria_label=said), class_="map"),
        id="curve",
    )
